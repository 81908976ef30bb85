/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/daemon.h"
#include "util/list.h"

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

static int read_list(struct cli *cli, struct gpreempt_daemon *d, list_get_fn get, size_t size,
		     void *ret, size_t *ret_n)
{
	int n = list_read(get, d, size, ret);

	if (n == -ENOMEM)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (n < 0)
		return daemon_failed(cli, d);
	*ret_n = (size_t)n;
	return EXIT_DONE;
}

static int get_gpus(void *of, void *list, size_t room)
{
	return gpreempt_daemon_get_gpus(of, list, room);
}

int daemon_read_gpus(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_gpu **ret,
		     size_t *ret_n)
{
	return read_list(cli, d, get_gpus, sizeof(**ret), ret, ret_n);
}

static int get_jobs(void *of, void *list, size_t room)
{
	return gpreempt_daemon_get_jobs(of, list, room);
}

int daemon_read_jobs(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret,
		     size_t *ret_n)
{
	return read_list(cli, d, get_jobs, sizeof(**ret), ret, ret_n);
}
