/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cmd/gpreempt/daemon.h"

#define LONGEST_NS NSEC_PER_SEC

static uint64_t unit_ns(const char *text)
{
	if (!strcmp(text, "us"))
		return NSEC_PER_USEC;
	if (!strcmp(text, "ms"))
		return NSEC_PER_MSEC;
	return strcmp(text, "s") ? 0 : NSEC_PER_SEC;
}

static int option_duration(struct cli *cli, const struct command_option *o, const char *text)
{
	const char *unit = text + strspn(text, "0123456789.");
	char *end = NULL;
	double ns = unit > text ? strtod(text, &end) * (double)unit_ns(unit) : 0;

	if (end != unit || !(ns >= 1) || !(ns <= (double)LONGEST_NS))
		return cli_usage(cli, "--%s must be a time up to 1s, as 500us or 4.4ms, not '%s'",
				 o->name, text);
	*(uint64_t *)o->ret = (uint64_t)(ns + 0.5);
	return EXIT_DONE;
}

static int tell(struct cli *cli, pid_t pid, uint64_t ahead_ns, uint64_t for_ns)
{
	struct json_object *o;

	if (cli->daemon && gpreempt_daemon_hint(cli->daemon, pid, ahead_ns, for_ns) < 0)
		return daemon_failed(cli, cli->daemon);
	if (!cli->daemon && gpreempt_kernel_hint(cli->ctx, pid, ahead_ns, for_ns) < 0)
		return cli_fail_ctx(cli);
	o = json_of("hinted", json_object_new_int((int)pid));
	json_add_string(o, "scheduler", cli->daemon ? "gpreemptd" : "kernel");
	return cli_answer(cli, o, "%s knows that work of process %d comes\n",
			  cli->daemon ? "the daemon" : "the kernel's scheduler", (int)pid);
}

int cmd_hint(struct cli *cli, int argc, char **argv)
{
	uint64_t ahead_ns = 0, for_ns = 0;
	const struct command_option options[] = {
		{ "ahead", 0, option_duration, &ahead_ns },
		{ "for", 0, option_duration, &for_ns },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));
	pid_t pid = 0;

	if (status == EXIT_DONE)
		status = parse_pid(cli, argv[optind], &pid);
	if (status == EXIT_DONE)
		status = scheduler_connect(cli);
	return status == EXIT_DONE ? tell(cli, pid, ahead_ns, for_ns) : status;
}
