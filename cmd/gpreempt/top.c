/* SPDX-License-Identifier: MIT */
/* The live screen is a program of its own, so that this one needs no terminal library. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"

#define PROGRAM "gpreempt-top"

void find_program(const char *const *places, size_t n, char ret[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < n; i++) {
		snprintf(ret, PATH_MAX, "%.*s/%s", (int)(slash - self), self, places[i]);
		if (access(ret, X_OK) == 0)
			return;
	}
	snprintf(ret, PATH_MAX, "%s", places[0]);
}

static int option_interval(struct cli *cli, const struct command_option *o, const char *text)
{
	struct command_option seconds = *o;
	uint64_t ns;

	seconds.ret = &ns;
	option_text(cli, o, text);
	return option_seconds(cli, &seconds, text);
}

int cmd_top(struct cli *cli, int argc, char **argv)
{
	static const char *const places[] = { PROGRAM };
	const char *interval = NULL, *args[8] = { PROGRAM };
	bool once = false;
	const struct command_option options[] = {
		{ "once", 0, NULL, &once },
		{ "interval", 0, option_interval, &interval },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options)), n = 1;
	char path[PATH_MAX];

	if (status != EXIT_DONE)
		return status;
	if (cli->json)
		return cli_fail(cli, EXIT_USAGE, "use: gpreempt --json status",
				"top is for people and has no JSON");
	if (once)
		args[n++] = "--once";
	if (interval) {
		args[n++] = "--interval";
		args[n++] = interval;
	}
	if (cli->socket) {
		args[n++] = "--socket";
		args[n++] = cli->socket;
	}
	signals_inherit(cli);
	find_program(places, ARRAY_SIZE(places), path);
	execvp(path, (char **)args);
	return cli_fail(cli, EXIT_FAILED, "install " PROGRAM ", or use: gpreempt status",
			"cannot start " PROGRAM ": %s", strerror(errno));
}
