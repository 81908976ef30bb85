/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/daemon.h"

const char help_run[] =
	"  --class CLASS       'online' or 'offline'\n"
	"  --priority N        within the class, 0 to 255\n"
	"  --latency-critical  make room for it at once, not when it has waited\n"
	"  --target-us N       the latency it should have, for policies that heed it\n"
	"  --lazy              attach to it only when somebody waits for it\n"
	"\n"
	"The program takes the place of this one, with the same pid, and what it starts is of\n"
	"the same class. Without a daemon nothing is started.\n";

static int parse(struct cli *cli, int argc, char **argv, struct gpreempt_class_request *request)
{
	const struct command_option options[] = {
		{ "class", 0, option_class, &request->job_class },
		CLASS_OPTIONS(request),
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status != EXIT_DONE)
		return status;
	if (request->job_class == GPREEMPT_CLASS_UNKNOWN)
		return cli_usage(cli, "--class online or --class offline must be given");
	if (optind >= argc || !argv[optind][0])
		return cli_usage(cli, "no program to start");
	return EXIT_DONE;
}

static int join_class(struct cli *cli, const struct gpreempt_class_request *request)
{
	int status = scheduler_connect(cli);
	char pid[16];

	if (status != EXIT_DONE)
		return status;
	/* The driver knows no process before it uses a GPU, and forgets it with its program. */
	if (!cli->daemon)
		return cli_fail(cli, EXIT_ABSENT,
				"start the daemon, or the program itself, and once it uses a GPU: "
				"gpreempt class PID CLASS",
				"gpreemptd is not running, and the kernel's scheduler knows only "
				"processes that use a GPU already");
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (gpreempt_daemon_set_class(cli->daemon, pid, request) < 0)
		return daemon_failed(cli, cli->daemon);
	return EXIT_DONE;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
	struct gpreempt_class_request request = { .size = sizeof(request), .priority = -1 };
	int status = parse(cli, argc, argv, &request);

	if (status == EXIT_DONE)
		status = join_class(cli, &request);
	if (status != EXIT_DONE)
		return status;
	signals_inherit(cli);
	execvp(argv[optind], argv + optind);
	return cli_fail(cli, EXIT_FAILED, "is it installed, and may you run it?",
			"cannot start '%s': %s", argv[optind], strerror(errno));
}
