/* SPDX-License-Identifier: MIT */
/* pause, continue, rearm: the daemon's hands off the GPUs, and on again. */
#include "cmd/gpreempt/daemon.h"

int cmd_pause(struct cli *cli, int argc, char **argv)
{
	struct progress progress;
	int status = daemon_begin(cli, argc, argv), r;

	if (status != EXIT_DONE)
		return status;
	signals_let_through(); /* what was asked for happens, waited for or not */
	progress_begin(&progress);
	progress_now(&progress, "waiting until every GPU is let go of");
	r = gpreempt_daemon_pause(cli->daemon);
	progress_end(&progress);
	if (r < 0)
		return daemon_failed(cli, cli->daemon);
	return cli_answer(cli, json_of("paused", json_object_new_boolean(true)),
			  "paused: nothing is held, and every GPU is let go of\n"
			  "take up again with: gpreempt continue\n");
}

int cmd_continue(struct cli *cli, int argc, char **argv)
{
	int status = daemon_begin(cli, argc, argv);

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_continue(cli->daemon) < 0)
		return daemon_failed(cli, cli->daemon);
	return cli_answer(cli, json_of("paused", json_object_new_boolean(false)),
			  "not paused: online jobs are made room for\n");
}

int cmd_rearm(struct cli *cli, int argc, char **argv)
{
	int status = take_options(cli, argc, argv, NULL, 0);
	uint64_t gpu = 0;

	if (status == EXIT_DONE)
		status = parse_number(cli, "a GPU's id", argv[optind], 0, UINT32_MAX, &gpu);
	if (status == EXIT_DONE)
		status = daemon_connect(cli, &cli->daemon);
	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_rearm(cli->daemon, (uint32_t)gpu) < 0)
		return daemon_failed(cli, cli->daemon);
	return cli_answer(cli, json_of("rearmed", json_object_new_uint64(gpu)),
			  "GPU %llu: jobs may be held there again\n", (unsigned long long)gpu);
}
