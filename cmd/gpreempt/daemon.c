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

int daemon_begin(struct cli *cli, int argc, char **argv, int min, int max,
		 struct gpreempt_daemon **ret)
{
	int status = take_arguments(cli, argc, argv, min, max);

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

/* @get fills a list of entries of @entry_bytes, and answers how many there are. */
static int read_list(struct cli *cli, struct gpreempt_daemon *d, size_t entry_bytes,
		     int (*get)(struct gpreempt_daemon *d, void *list, size_t room), void **ret,
		     size_t *ret_n)
{
	_cleanup_free_ void *list = NULL;
	size_t room = 0;
	int n = 64;

	while ((size_t)n > room) {
		room = (size_t)n;
		free(list);
		list = calloc(room, entry_bytes);
		if (!list)
			return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
		n = get(d, list, room);
		if (n < 0)
			return daemon_failed(cli, d);
	}
	*ret = steal_ptr(&list);
	*ret_n = (size_t)n;
	return EXIT_DONE;
}

static int get_gpus(struct gpreempt_daemon *d, void *list, size_t room)
{
	struct gpreempt_daemon_gpu *gpus = list;

	gpus[0].size = sizeof(*gpus);
	return gpreempt_daemon_get_gpus(d, gpus, room);
}

int daemon_read_gpus(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_gpu **ret,
		     size_t *ret_n)
{
	void *list = NULL;
	int status = read_list(cli, d, sizeof(**ret), get_gpus, &list, ret_n);

	if (status == EXIT_DONE)
		*ret = list;
	return status;
}

static int get_jobs(struct gpreempt_daemon *d, void *list, size_t room)
{
	struct gpreempt_daemon_job *jobs = list;

	jobs[0].size = sizeof(*jobs);
	return gpreempt_daemon_get_jobs(d, jobs, room);
}

int daemon_read_jobs(struct cli *cli, struct gpreempt_daemon *d, struct gpreempt_daemon_job **ret,
		     size_t *ret_n)
{
	void *list = NULL;
	int status = read_list(cli, d, sizeof(**ret), get_jobs, &list, ret_n);

	if (status == EXIT_DONE)
		*ret = list;
	return status;
}
