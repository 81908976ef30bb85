/* SPDX-License-Identifier: MIT */
/* pause, continue, rearm: the daemon's hands off the GPUs, and on again. */
#include <stdio.h>

#include "cmd/gpreempt/daemon.h"

static int report(struct cli *cli, bool paused, const char *text)
{
	struct json_object *o;

	if (!cli->json) {
		puts(text);
		return EXIT_DONE;
	}
	o = json_object_new_object();
	json_add(o, "paused", json_object_new_boolean(paused));
	return cli_print_json(cli, o);
}

int cmd_pause(struct cli *cli, int argc, char **argv)
{
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	struct progress progress;
	int status = daemon_begin(cli, argc, argv, &d), r;

	if (status != EXIT_DONE)
		return status;
	signals_let_through(); /* what was asked for happens, waited for or not */
	progress_begin(&progress);
	progress_now(&progress, "waiting until every GPU is let go of");
	r = gpreempt_daemon_pause(d);
	progress_end(&progress);
	if (r < 0)
		return daemon_failed(cli, d);
	return report(cli, true,
		      "paused: nothing is held, and every GPU is let go of\n"
		      "take up again with: gpreempt continue");
}

int cmd_continue(struct cli *cli, int argc, char **argv)
{
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	int status = daemon_begin(cli, argc, argv, &d);

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_continue(d) < 0)
		return daemon_failed(cli, d);
	return report(cli, false, "not paused: online jobs are made room for");
}

int cmd_rearm(struct cli *cli, int argc, char **argv)
{
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	int status = take_options(cli, argc, argv, NULL, 0);
	struct json_object *o;
	uint64_t gpu = 0;

	if (status == EXIT_DONE)
		status = parse_number(cli, "a GPU's id", argv[optind], 0, UINT32_MAX, &gpu);
	if (status == EXIT_DONE)
		status = daemon_connect(cli, &d);
	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_rearm(d, (uint32_t)gpu) < 0)
		return daemon_failed(cli, d);
	if (!cli->json) {
		printf("GPU %llu: jobs may be held there again\n", (unsigned long long)gpu);
		return EXIT_DONE;
	}
	o = json_object_new_object();
	json_add_uint(o, "rearmed", gpu);
	return cli_print_json(cli, o);
}
