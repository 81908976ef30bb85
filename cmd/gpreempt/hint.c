/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/daemon.h"

enum { OPTION_IN = 2001 };
#define AHEAD_MAX_MS 10000

static int report(struct cli *cli, pid_t pid)
{
	struct json_object *o;

	if (!cli->json) {
		printf("the daemon knows that work of process %d comes\n", (int)pid);
		return EXIT_DONE;
	}
	o = json_object_new_object();
	json_add(o, "hinted", json_object_new_int((int)pid));
	return cli_print_json(cli, o);
}

int cmd_hint(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
		{ "in", required_argument, NULL, OPTION_IN },
		COMMON_OPTIONS,
	};
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	int status = EXIT_DONE, c;
	uint64_t ahead_ms = 0;
	pid_t pid = 0;

	while ((c = option_next(cli, argc, argv, ":h", options, &status)) != OPTIONS_DONE) {
		if (c != OPTIONS_STOP)
			status = parse_number(cli, "--in", optarg, 1, AHEAD_MAX_MS, &ahead_ms);
		if (status != EXIT_DONE)
			return status;
	}
	status = check_arguments(cli, argc - optind, 1, 1);
	if (status == EXIT_DONE)
		status = parse_pid(cli, argv[optind], &pid);
	if (status == EXIT_DONE)
		status = daemon_connect(cli, &d);
	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_hint(d, pid, ahead_ms * NSEC_PER_MSEC) < 0)
		return daemon_failed(cli, d);
	return report(cli, pid);
}
