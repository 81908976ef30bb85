/* SPDX-License-Identifier: MIT */
/* The live screen is a program of its own, so that this one needs no terminal library. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"

#define PROGRAM "gpreempt-top"

struct arguments {
	char *argv[8];
	int n;
};

static void add(struct arguments *a, const char *option, const char *value)
{
	a->argv[a->n++] = (char *)option;
	if (value)
		a->argv[a->n++] = (char *)value;
}

static int option_interval(struct cli *cli, const struct command_option *o, const char *text)
{
	uint64_t ns;

	option_text(cli, o, text);
	return parse_seconds(cli, "--interval", text, &ns);
}

static int parse(struct cli *cli, int argc, char **argv, struct arguments *ret)
{
	const char *interval = NULL;
	bool once = false;
	const struct command_option options[] = {
		{ "once", 0, NULL, &once },
		{ "interval", 0, option_interval, &interval },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE && cli->json)
		status = cli_fail(cli, EXIT_USAGE, "use: gpreempt --json status",
				  "top is for people and has no JSON");
	add(ret, PROGRAM, NULL);
	if (once)
		add(ret, "--once", NULL);
	if (interval)
		add(ret, "--interval", interval);
	if (cli->socket)
		add(ret, "--socket", cli->socket);
	return status;
}

int cmd_top(struct cli *cli, int argc, char **argv)
{
	struct arguments args = { 0 };
	int status = parse(cli, argc, argv, &args);
	char self[PATH_MAX], *slash;
	ssize_t n;

	if (status != EXIT_DONE)
		return status;
	signals_inherit(cli);
	n = readlink("/proc/self/exe", self, sizeof(self) - sizeof("/" PROGRAM));
	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			memcpy(slash + 1, PROGRAM, sizeof(PROGRAM));
			execv(self, args.argv);
		}
	}
	execvp(PROGRAM, args.argv);
	return cli_fail(cli, EXIT_FAILED, "install " PROGRAM ", or use: gpreempt status",
			"cannot start " PROGRAM ": %s", strerror(errno));
}
