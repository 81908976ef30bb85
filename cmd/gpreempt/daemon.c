/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/daemon.h"

static bool kernel_schedules(struct cli *cli)
{
	if (!cli->ctx && gpreempt_open(cli->device, &cli->ctx, NULL) < 0)
		return false;
	return gpreempt_kernel_is_on(cli->ctx) > 0;
}

static int open_daemon(struct cli *cli, struct gpreempt_daemon **ret, bool or_kernel)
{
	struct gpreempt_error e = { .size = sizeof(e),
				    .kind = GPREEMPT_ERROR_FAILED,
				    .message = "out of memory",
				    .hint = "free some memory" };

	if (gpreempt_daemon_open(cli->socket, ret, &e) >= 0)
		return EXIT_DONE;
	/* Who names a socket means that daemon. */
	if (or_kernel && e.kind == GPREEMPT_ERROR_ABSENT && !cli->socket && kernel_schedules(cli))
		return EXIT_DONE;
	return cli_fail_error(cli, &e);
}

int daemon_connect(struct cli *cli, struct gpreempt_daemon **ret)
{
	return open_daemon(cli, ret, false);
}

int scheduler_connect(struct cli *cli)
{
	return open_daemon(cli, &cli->daemon, true);
}

int daemon_begin(struct cli *cli, int argc, char **argv)
{
	int status = take_options(cli, argc, argv, NULL, 0);

	return status == EXIT_DONE ? daemon_connect(cli, &cli->daemon) : status;
}

int daemon_fail_error(struct cli *cli, struct gpreempt_error *e)
{
	if (!e->hint[0])
		snprintf(e->hint, sizeof(e->hint), "see how it is with: gpreempt status");
	return cli_fail_error(cli, e);
}

int daemon_failed(struct cli *cli, const struct gpreempt_daemon *d)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_daemon_get_error(d, &e);
	return daemon_fail_error(cli, &e);
}
