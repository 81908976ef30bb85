/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/table.h"

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

/* ---- queues for people and programs ---- */

/* Of channels, on an NVIDIA GPU. */
static bool is_group(const struct gpreempt_queue *q)
{
	return q->type == GPREEMPT_QUEUE_GROUP_COMPUTE || q->type == GPREEMPT_QUEUE_GROUP_COPY;
}

static const char *type_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	return gpreempt_queue_type_name(((const struct gpreempt_queue *)record)->type);
}

static const char *class_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	const struct gpreempt_queue *q = record;

	return q->job_class == GPREEMPT_CLASS_UNKNOWN ? NULL : gpreempt_class_name(q->job_class);
}

#define QUEUE(member) FIELD(struct gpreempt_queue, member)

static const struct field fields[] = {
	{ "pid", "PID", FIELD_NUMBER, QUEUE(pid) },
	{ "queue_id", "QUEUE", FIELD_NUMBER, QUEUE(queue_id) },
	{ NULL, "GROUP", FIELD_NUMBER, QUEUE(queue_id) },
	{ "gpu_id", "GPU", FIELD_NUMBER, QUEUE(gpu_id) },
	{ "type", "TYPE", FIELD_WORD, .word = type_word },
	{ "class", NULL, FIELD_WORD, .word = class_word },
	{ "ring_base", "RING BASE", FIELD_HEX, QUEUE(ring_base), GPREEMPT_QUEUE_RING_BASE },
	{ "ring_bytes", "RING", FIELD_BYTES, QUEUE(ring_bytes) },
	{ "read_ptr", "READ PTR", FIELD_HEX, QUEUE(read_ptr_addr), GPREEMPT_QUEUE_POINTERS },
	{ "write_ptr", "WRITE PTR", FIELD_HEX, QUEUE(write_ptr_addr), GPREEMPT_QUEUE_POINTERS },
	{ "read_index", NULL, FIELD_NUMBER, QUEUE(read_index), GPREEMPT_QUEUE_INDICES },
	{ "write_index", NULL, FIELD_NUMBER, QUEUE(write_index), GPREEMPT_QUEUE_INDICES },
	{ "cwsr_base", NULL, FIELD_NUMBER, QUEUE(cwsr_base), GPREEMPT_QUEUE_CWSR_BASE },
	{ "cwsr_bytes", "SAVE AREA", FIELD_BYTES, QUEUE(cwsr_bytes), GPREEMPT_QUEUE_CWSR_BYTES },
	{ "exceptions", NULL, FIELD_NUMBER, QUEUE(exceptions), GPREEMPT_QUEUE_EXCEPTIONS },
	{ "priority", "PRIO", FIELD_NUMBER, QUEUE(priority), GPREEMPT_QUEUE_PRIORITY },
	{ "pending", "PENDING", FIELD_NUMBER, QUEUE(pending), GPREEMPT_QUEUE_PENDING },
	{ "state", "STATE", FIELD_TEXT, QUEUE(state), GPREEMPT_QUEUE_STATE },
	{ "channels", "CHANNELS", FIELD_NUMBER, QUEUE(channels), GPREEMPT_QUEUE_CHANNELS },
	{ "slice_us", "SLICE", FIELD_US, QUEUE(slice_us), GPREEMPT_QUEUE_SLICE },
};

struct json_object *queue_to_json(const struct gpreempt_queue *q)
{
	struct json_object *o = json_of_fields(fields, ARRAY_SIZE(fields), q);

	if (is_group(q))
		json_object_object_del(o, "ring_bytes");
	return o;
}

void print_queue_table(const struct gpreempt_queue *queues, size_t n, bool with_pid)
{
	static const char *const rings[] = { "PID",	  "QUEUE",    "GPU",	   "TYPE",
					     "PRIO",	  "STATE",    "PENDING",   "RING",
					     "RING BASE", "READ PTR", "WRITE PTR", "SAVE AREA",
					     NULL };
	static const char *const groups[] = { "PID",	  "GROUP", "GPU",   "TYPE",
					      "CHANNELS", "SLICE", "STATE", NULL };
	const char *const *columns = n && is_group(&queues[0]) ? groups : rings;

	print_records(fields, ARRAY_SIZE(fields), columns + !with_pid, queues, n, sizeof(*queues));
}

void print_id_array(const uint32_t *ids, size_t n)
{
	printf("static const unsigned int queue_ids[%zu] = {", n);
	for (size_t i = 0; i < n; i++)
		printf("%s%s%u", i ? "," : "", i % 16 ? " " : i ? "\n\t" : " ", ids[i]);
	printf(" };\n");
}

/* ---- looking ---- */

struct look {
	bool all, ids;
	pid_t pid;
	struct gpreempt_queue_filter filter;

	struct gpreempt_ctx *ctx;
	struct gpreempt_process *process; /* NULL: all */
	uint64_t time_ns;
	struct gpreempt_queue *queues;
	size_t n;
};

static int parse(struct cli *cli, int argc, char **argv, struct look *l)
{
	struct gpreempt_queue_filter *f = &l->filter;
	const struct command_option options[] = {
		{ "all", 0, NULL, &l->all },
		{ "class", 0, option_class, &f->job_class },
		{ "min-priority", 0, option_u32, &f->min_priority, 0, 15 },
		{ "max-priority", 0, option_u32, &f->max_priority, 0, 15 },
		{ "ids", 0, NULL, &l->ids },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = check_arguments(cli, argc - optind, !l->all, !l->all);
	if (status != EXIT_DONE)
		return status;
	if (!l->all && (f->job_class || f->min_priority >= 0 || f->max_priority >= 0))
		return cli_usage(cli, "--class and priorities select among all queues: use --all");
	return l->all ? EXIT_DONE : parse_pid(cli, argv[optind], &l->pid);
}

static int get_queues(void *of, void *list, size_t room)
{
	struct look *l = of;

	return l->process ? gpreempt_snapshot(l->process, list, room, &l->time_ns) :
			    gpreempt_get_all_queues(l->ctx, &l->filter, list, room);
}

static int look(struct cli *cli, struct look *l)
{
	int status;

	l->ctx = cli->ctx;
	if (l->all)
		l->time_ns = gpreempt_now_ns(l->ctx);
	else if (gpreempt_attach(l->ctx, l->pid, GPREEMPT_ATTACH_LOOK_ONLY, &l->process) < 0)
		return cli_fail_ctx(cli);
	status = cli_read_list(cli, get_queues, l, sizeof(*l->queues), &l->queues, &l->n);
	gpreempt_detach(l->process);
	return status;
}

/* How many there are of each type, or on each GPU. */
static struct json_object *json_counts(const struct look *l, bool by_type)
{
	struct json_object *counts = json_object_new_object();

	for (size_t i = 0; i < l->n; i++) {
		char gpu[16];
		const char *key = by_type ? gpreempt_queue_type_name(l->queues[i].type) : gpu;

		snprintf(gpu, sizeof(gpu), "%u", l->queues[i].gpu_id);
		json_add(counts, key,
			 json_object_new_int(
				 json_object_get_int(json_object_object_get(counts, key)) + 1));
	}
	return counts;
}

static void print_counts(const char *what, struct json_object *counts)
{
	const char *separator = "";

	printf("%-8s", what);
	json_object_object_foreach(counts, key, value)
	{
		printf("%s%s: %d", separator, key, json_object_get_int(value));
		separator = ", ";
	}
	printf("\n");
	json_object_put(counts);
}

static int print_json(struct cli *cli, const struct look *l)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array_ext((int)l->n);

	if (!l->all)
		json_add(o, "pid", json_object_new_int((int)l->pid));
	json_add_uint(o, "time_ns", l->time_ns);
	for (size_t i = 0; i < l->n; i++)
		json_object_array_add(list, queue_to_json(&l->queues[i]));
	json_add(o, "queues", list);
	json_add(o, "by_type", json_counts(l, true));
	json_add(o, "by_gpu", json_counts(l, false));
	return cli_print_json(cli, o);
}

static int print_ids(struct cli *cli, const struct look *l)
{
	_cleanup_free_ uint32_t *ids = calloc(l->n ? l->n : 1, sizeof(*ids));

	if (!ids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	for (size_t i = 0; i < l->n; i++)
		ids[i] = l->queues[i].queue_id;
	print_id_array(ids, l->n);
	return EXIT_DONE;
}

static int print_text(struct cli *cli, const struct look *l)
{
	const char *unit = l->n && is_group(&l->queues[0]) ? "channel group" : "queue";

	if (l->all)
		printf("%zu %s%s on this machine\n", l->n, unit, l->n == 1 ? "" : "s");
	else
		printf("process %d: %zu %s%s\n", (int)l->pid, l->n, unit, l->n == 1 ? "" : "s");
	if (l->n == 0)
		return EXIT_DONE;
	printf("\n");
	print_queue_table(l->queues, l->n, l->all);
	printf("\n");
	print_counts("by type", json_counts(l, true));
	print_counts("by gpu", json_counts(l, false));
	if (l->all)
		return EXIT_DONE;
	printf("\n");
	return print_ids(cli, l);
}

int cmd_queues(struct cli *cli, int argc, char **argv)
{
	struct look l = {
		.filter = { .size = sizeof(l.filter), .min_priority = -1, .max_priority = -1 },
	};
	int status = parse(cli, argc, argv, &l);

	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status == EXIT_DONE)
		status = look(cli, &l);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(cli, &l) :
			 l.ids	   ? print_ids(cli, &l) :
				     print_text(cli, &l);
	free(l.queues);
	return status;
}
