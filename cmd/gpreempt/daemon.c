/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/daemon.h"

int daemon_connect(struct cli *cli, struct gpreempt_daemon **ret)
{
	struct gpreempt_error e = { .size = sizeof(e), .kind = GPREEMPT_ERROR_FAILED,
				    .message = "out of memory", .hint = "free some memory" };

	if (gpreempt_daemon_open(cli->socket, ret, &e) < 0) {
		text_clean(e.message);
		return cli_fail_error(cli, &e);
	}
	return EXIT_DONE;
}

int daemon_begin(struct cli *cli, int argc, char **argv, struct gpreempt_daemon **ret)
{
	int status = take_options(cli, argc, argv, NULL, 0);

	return status == EXIT_DONE ? daemon_connect(cli, ret) : status;
}

int daemon_fail_error(struct cli *cli, struct gpreempt_error *e)
{
	text_clean(e->message);
	text_clean(e->hint);
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
