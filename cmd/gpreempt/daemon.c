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

int daemon_failed(struct cli *cli, const struct gpreempt_daemon *d)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_daemon_get_error(d, &e);
	text_clean(e.message);
	text_clean(e.hint);
	if (!e.hint[0])
		snprintf(e.hint, sizeof(e.hint), "see how it is with: gpreempt status");
	return cli_fail_error(cli, &e);
}

static int no_memory(struct cli *cli)
{
	return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
}

int daemon_read_gpus(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_gpu **ret,
		     size_t *ret_n)
{
	struct gpreempt_daemon_gpu *list = NULL;
	size_t room = 32;
	int n;

	for (;;) {
		list = calloc(room, sizeof(*list));
		if (!list)
			return no_memory(cli);
		list[0].size = sizeof(*list);
		n = gpreempt_daemon_get_gpus(d, list, room);
		if (n >= 0 && (size_t)n <= room)
			break;
		free(list);
		if (n < 0)
			return daemon_failed(cli, d);
		room = (size_t)n;
	}
	*ret = list;
	*ret_n = (size_t)n;
	return EXIT_DONE;
}

int daemon_read_jobs(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret,
		     size_t *ret_n)
{
	struct gpreempt_daemon_job *list = NULL;
	size_t room = 64;
	int n;

	for (;;) {
		list = calloc(room, sizeof(*list));
		if (!list)
			return no_memory(cli);
		list[0].size = sizeof(*list);
		n = gpreempt_daemon_get_jobs(d, list, room);
		if (n >= 0 && (size_t)n <= room)
			break;
		free(list);
		if (n < 0)
			return daemon_failed(cli, d);
		room = (size_t)n;
	}
	*ret = list;
	*ret_n = (size_t)n;
	return EXIT_DONE;
}
