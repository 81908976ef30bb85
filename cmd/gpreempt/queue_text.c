/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/table.h"

bool queue_is_group(const struct gpreempt_queue *q)
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

	if (queue_is_group(q))
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
	const char *const *columns = n && queue_is_group(&queues[0]) ? groups : rings;

	print_records(fields, ARRAY_SIZE(fields), columns + !with_pid, queues, n, sizeof(*queues));
}

void print_id_array(const uint32_t *ids, size_t n)
{
	printf("static const unsigned int queue_ids[%zu] = {", n);
	for (size_t i = 0; i < n; i++)
		printf("%s%s%u", i ? "," : "", i % 16 ? " " : i ? "\n\t" : " ", ids[i]);
	printf(" };\n");
}
