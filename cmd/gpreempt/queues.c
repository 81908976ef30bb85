/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/cli.h"

const char help_queues[] =
	"  --all               of all processes; attaches to nobody\n"
	"  --class CLASS       only of 'online' or 'offline' processes (with --all)\n"
	"  --min-priority N    only queues of priority N (0 to 15) or more (with --all)\n"
	"  --max-priority N    only queues of priority N or less (with --all)\n"
	"  --ids               only the ids, as a C array\n"
	"\n"
	"With a PID it attaches for a moment, because only the driver knows the addresses: this\n"
	"needs the right to trace the process, and without the kernel extension fails while\n"
	"somebody debugs it.\n"
	"A dash stands for what cannot be known; priorities need root (debugfs).\n"
	"On NVIDIA GPUs it shows channel groups: what a context is made of, and can be held.\n";

struct request {
	bool all, ids;
	pid_t pid;
	struct gpreempt_queue_filter filter;
};

struct answer {
	struct gpreempt_queue *queues;
	size_t n;
	uint64_t time_ns;
};

static int parse(struct cli *cli, int argc, char **argv, struct request *q)
{
	struct gpreempt_queue_filter *f = &q->filter;
	const struct command_option options[] = {
		{ "all", 0, NULL, &q->all },
		{ "class", 0, option_class, &f->job_class },
		{ "min-priority", 0, option_u32, &f->min_priority, 0, 15 },
		{ "max-priority", 0, option_u32, &f->max_priority, 0, 15 },
		{ "ids", 0, NULL, &q->ids },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = check_arguments(cli, argc - optind, !q->all, !q->all);
	if (status != EXIT_DONE)
		return status;
	if (!q->all && (f->job_class || f->min_priority >= 0 || f->max_priority >= 0))
		return cli_usage(cli, "--class and priorities select among all queues: use --all");
	return q->all ? EXIT_DONE : parse_pid(cli, argv[optind], &q->pid);
}

struct source {
	struct gpreempt_ctx *ctx;
	struct gpreempt_process *process; /* NULL: all */
	const struct gpreempt_queue_filter *filter;
	uint64_t *ret_time_ns;
};

static int get_all(void *of, void *list, size_t room)
{
	const struct source *s = of;

	return s->process ? gpreempt_snapshot(s->process, list, room, s->ret_time_ns) :
			    gpreempt_get_all_queues(s->ctx, s->filter, list, room);
}

static int read_queues(struct cli *cli, const struct request *q, struct gpreempt_process *p,
		       struct answer *a)
{
	struct source from = { cli->ctx, p, &q->filter, &a->time_ns };

	return cli_read_list(cli, get_all, &from, sizeof(*a->queues), &a->queues, &a->n);
}

static int look(struct cli *cli, const struct request *q, struct answer *a)
{
	struct gpreempt_process *p = NULL;
	int status;

	if (q->all) {
		a->time_ns = gpreempt_now_ns(cli->ctx);
		return read_queues(cli, q, NULL, a);
	}
	if (gpreempt_attach(cli->ctx, q->pid, GPREEMPT_ATTACH_LOOK_ONLY, &p) < 0)
		return cli_fail_ctx(cli);
	status = read_queues(cli, q, p, a);
	gpreempt_detach(p);
	return status;
}

static int print_json(struct cli *cli, const struct request *q, const struct answer *a)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array_ext((int)a->n);

	if (!q->all)
		json_object_object_add(o, "pid", json_object_new_int((int)q->pid));
	json_add_uint(o, "time_ns", a->time_ns);
	for (size_t i = 0; i < a->n; i++)
		json_object_array_add(list, queue_to_json(&a->queues[i]));
	json_add(o, "queues", list);
	json_add(o, "by_type", json_by_type(a->queues, a->n));
	json_add(o, "by_gpu", json_by_gpu(a->queues, a->n));
	return cli_print_json(cli, o);
}

static int print_ids(struct cli *cli, const struct answer *a)
{
	_cleanup_free_ uint32_t *ids = calloc(a->n ? a->n : 1, sizeof(*ids));

	if (!ids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	for (size_t i = 0; i < a->n; i++)
		ids[i] = a->queues[i].queue_id;
	print_id_array(ids, a->n);
	return EXIT_DONE;
}

static int print_text(struct cli *cli, const struct request *q, const struct answer *a)
{
	const char *unit = a->n && queue_is_group(&a->queues[0]) ? "channel group" : "queue";

	if (q->all)
		printf("%zu %s%s on this machine\n", a->n, unit, a->n == 1 ? "" : "s");
	else
		printf("process %d: %zu %s%s\n", (int)q->pid, a->n, unit, a->n == 1 ? "" : "s");
	if (a->n == 0)
		return EXIT_DONE;
	printf("\n");
	print_queue_table(a->queues, a->n, q->all);
	printf("\n");
	print_distribution(a->queues, a->n);
	if (q->all)
		return EXIT_DONE;
	printf("\n");
	return print_ids(cli, a);
}

int cmd_queues(struct cli *cli, int argc, char **argv)
{
	struct answer a = { 0 };
	struct request q = {
		.filter = { .size = sizeof(q.filter), .min_priority = -1, .max_priority = -1 },
	};
	int status;

	status = parse(cli, argc, argv, &q);
	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status == EXIT_DONE)
		status = look(cli, &q, &a);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(cli, &q, &a)
			 : q.ids   ? print_ids(cli, &a)
				   : print_text(cli, &q, &a);
	free(a.queues);
	return status;
}
