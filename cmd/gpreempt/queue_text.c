/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"
#include "cmd/gpreempt/table.h"

#define UNKNOWN "-"

bool queue_is_group(const struct gpreempt_queue *q)
{
	return q->type == GPREEMPT_QUEUE_GROUP_COMPUTE || q->type == GPREEMPT_QUEUE_GROUP_COPY;
}

struct json_object *queue_to_json(const struct gpreempt_queue *q)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "pid", json_object_new_int((int)q->pid));
	json_add_uint(o, "queue_id", q->queue_id);
	json_add_uint(o, "gpu_id", q->gpu_id);
	json_add_string(o, "type", gpreempt_queue_type_name(q->type));
	if (q->job_class != GPREEMPT_CLASS_UNKNOWN)
		json_add_string(o, "class", gpreempt_class_name(q->job_class));
	if (q->valid & GPREEMPT_QUEUE_RING_BASE)
		json_add_uint(o, "ring_base", q->ring_base);
	if (!queue_is_group(q))
		json_add_uint(o, "ring_bytes", q->ring_bytes);
	if (q->valid & GPREEMPT_QUEUE_POINTERS) {
		json_add_uint(o, "read_ptr", q->read_ptr_addr);
		json_add_uint(o, "write_ptr", q->write_ptr_addr);
	}
	if (q->valid & GPREEMPT_QUEUE_INDICES) {
		json_add_uint(o, "read_index", q->read_index);
		json_add_uint(o, "write_index", q->write_index);
	}
	if (q->valid & GPREEMPT_QUEUE_CWSR_BASE)
		json_add_uint(o, "cwsr_base", q->cwsr_base);
	if (q->valid & GPREEMPT_QUEUE_CWSR_BYTES)
		json_add_uint(o, "cwsr_bytes", q->cwsr_bytes);
	if (q->valid & GPREEMPT_QUEUE_EXCEPTIONS)
		json_add_uint(o, "exceptions", q->exceptions);
	if (q->valid & GPREEMPT_QUEUE_PRIORITY)
		json_add_uint(o, "priority", q->priority);
	if (q->valid & GPREEMPT_QUEUE_PENDING)
		json_add_uint(o, "pending", q->pending);
	if (q->valid & GPREEMPT_QUEUE_STATE)
		json_add_string(o, "state", q->state);
	if (q->valid & GPREEMPT_QUEUE_CHANNELS)
		json_add_uint(o, "channels", q->channels);
	if (q->valid & GPREEMPT_QUEUE_SLICE)
		json_add_uint(o, "slice_us", q->slice_us);
	return o;
}

static void cell_number(struct libscols_table *t, size_t column, bool known, uint64_t value,
			const char *fmt)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (strcmp(fmt, "hex") == 0)
		snprintf(text, sizeof(text), "0x%" PRIx64, value);
	table_cell(t, column, "%s", known ? text : UNKNOWN);
}

static void cell_bytes(struct libscols_table *t, size_t column, bool known, uint64_t bytes)
{
	char buf[UNIT_TEXT_SIZE];

	table_cell(t, column, "%s", known ? text_bytes(bytes, buf) : UNKNOWN);
}

static void print_group_table(const struct gpreempt_queue *queues, size_t n, bool with_pid)
{
	static const struct column columns[] = {
		{ "PID", true },	{ "GROUP", true }, { "GPU", true },   { "TYPE", false },
		{ "CHANNELS", true }, { "SLICE", true }, { "STATE", false },
	};
	size_t skip = with_pid ? 0 : 1;
	struct libscols_table *t = table_new(columns + skip, ARRAY_SIZE(columns) - skip);
	char buf[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < n; i++) {
		const struct gpreempt_queue *q = &queues[i];
		bool sliced = q->valid & GPREEMPT_QUEUE_SLICE;

		table_row(t);
		if (with_pid)
			table_cell(t, 0, "%d", (int)q->pid);
		table_cell(t, 1 - skip, "%u", q->queue_id);
		table_cell(t, 2 - skip, "%u", q->gpu_id);
		table_cell(t, 3 - skip, "%s", gpreempt_queue_type_name(q->type));
		cell_number(t, 4 - skip, q->valid & GPREEMPT_QUEUE_CHANNELS, q->channels, "");
		table_cell(t, 5 - skip, "%s",
			   sliced ? text_duration(q->slice_us * NSEC_PER_USEC, buf) : UNKNOWN);
		table_cell(t, 6 - skip, "%s", q->valid & GPREEMPT_QUEUE_STATE ? q->state : UNKNOWN);
	}
	table_print(t);
}

static void print_ring_table(const struct gpreempt_queue *queues, size_t n, bool with_pid)
{
	static const struct column columns[] = {
		{ "PID", true },      { "QUEUE", true },     { "GPU", true },
		{ "TYPE", false },    { "PRIO", true },	     { "STATE", false },
		{ "PENDING", true },  { "RING", true },	     { "RING BASE", true },
		{ "READ PTR", true }, { "WRITE PTR", true }, { "SAVE AREA", true },
	};
	size_t skip = with_pid ? 0 : 1;
	struct libscols_table *t = table_new(columns + skip, ARRAY_SIZE(columns) - skip);

	for (size_t i = 0; i < n; i++) {
		const struct gpreempt_queue *q = &queues[i];

		table_row(t);
		if (with_pid)
			table_cell(t, 0, "%d", (int)q->pid);
		table_cell(t, 1 - skip, "%u", q->queue_id);
		table_cell(t, 2 - skip, "%u", q->gpu_id);
		table_cell(t, 3 - skip, "%s", gpreempt_queue_type_name(q->type));
		cell_number(t, 4 - skip, q->valid & GPREEMPT_QUEUE_PRIORITY, q->priority, "");
		table_cell(t, 5 - skip, "%s", q->valid & GPREEMPT_QUEUE_STATE ? q->state : UNKNOWN);
		cell_number(t, 6 - skip, q->valid & GPREEMPT_QUEUE_PENDING, q->pending, "");
		cell_bytes(t, 7 - skip, true, q->ring_bytes);
		cell_number(t, 8 - skip, q->valid & GPREEMPT_QUEUE_RING_BASE, q->ring_base, "hex");
		cell_number(t, 9 - skip, q->valid & GPREEMPT_QUEUE_POINTERS, q->read_ptr_addr,
			    "hex");
		cell_number(t, 10 - skip, q->valid & GPREEMPT_QUEUE_POINTERS, q->write_ptr_addr,
			    "hex");
		cell_bytes(t, 11 - skip, q->valid & GPREEMPT_QUEUE_CWSR_BYTES, q->cwsr_bytes);
	}
	table_print(t);
}

void print_queue_table(const struct gpreempt_queue *queues, size_t n, bool with_pid)
{
	if (n && queue_is_group(&queues[0]))
		print_group_table(queues, n, with_pid);
	else
		print_ring_table(queues, n, with_pid);
}

static void count_up(struct json_object *counts, const char *key)
{
	struct json_object *old;
	int64_t n = 0;

	if (json_object_object_get_ex(counts, key, &old))
		n = json_object_get_int64(old);
	json_object_object_add(counts, key, json_object_new_int64(n + 1));
}

struct json_object *json_by_type(const struct gpreempt_queue *queues, size_t n)
{
	struct json_object *counts = json_object_new_object();

	for (size_t i = 0; i < n; i++)
		count_up(counts, gpreempt_queue_type_name(queues[i].type));
	return counts;
}

struct json_object *json_by_gpu(const struct gpreempt_queue *queues, size_t n)
{
	struct json_object *counts = json_object_new_object();
	char key[16];

	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%u", queues[i].gpu_id);
		count_up(counts, key);
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

void print_distribution(const struct gpreempt_queue *queues, size_t n)
{
	print_counts("by type", json_by_type(queues, n));
	print_counts("by gpu", json_by_gpu(queues, n));
}

void print_id_array(const uint32_t *ids, size_t n)
{
	printf("static const unsigned int queue_ids[%zu] = {", n);
	for (size_t i = 0; i < n; i++)
		printf("%s%s%u", i ? "," : "", i % 16 ? " " : i ? "\n\t" : " ", ids[i]);
	printf(" };\n");
}
