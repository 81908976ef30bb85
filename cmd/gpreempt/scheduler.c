/* SPDX-License-Identifier: MIT */
/* Who schedules on this machine: the daemon, or the driver itself. */
#include "cmd/gpreempt/kernel.h"

static bool kernel_schedules(struct cli *cli)
{
	if (!cli->ctx && gpreempt_open(cli->device, &cli->ctx, NULL) < 0)
		return false;
	return gpreempt_kernel_is_on(cli->ctx) > 0;
}

int scheduler_connect(struct cli *cli, struct gpreempt_daemon **ret)
{
	struct gpreempt_error e = { .size = sizeof(e),
				    .kind = GPREEMPT_ERROR_FAILED,
				    .message = "out of memory",
				    .hint = "free some memory" };

	if (gpreempt_daemon_open(cli->socket, ret, &e) >= 0)
		return EXIT_DONE;
	*ret = NULL;
	/* Who names a socket means that daemon. */
	if (e.kind == GPREEMPT_ERROR_ABSENT && !cli->socket && kernel_schedules(cli))
		return EXIT_DONE;
	text_clean(e.message);
	return cli_fail_error(cli, &e);
}
