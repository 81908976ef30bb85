/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/cli.h"
#include "cmd/gpreempt/table.h"

/* A sum is known only where every part of it is. */
static struct gpreempt_hqd_status sum_up(const struct gpreempt_hqd_status *gpus, size_t n)
{
	struct gpreempt_hqd_status sum = { .valid = n ? ~0ull : 0 };

	for (size_t i = 0; i < n; i++) {
		sum.valid &= gpus[i].valid;
		sum.queues += gpus[i].queues;
		sum.total += gpus[i].total;
		sum.active += gpus[i].active;
		sum.free += gpus[i].free;
		sum.online_reserved += gpus[i].online_reserved;
		sum.offline_used += gpus[i].offline_used;
		sum.held += gpus[i].held;
	}
	return sum;
}

static bool knows_free(const struct gpreempt_hqd_status *s)
{
	return (s->valid & GPREEMPT_HQD_TOTAL) && (s->valid & GPREEMPT_HQD_ACTIVE);
}

static struct json_object *status_to_json(const struct gpreempt_hqd_status *s, bool with_id)
{
	struct json_object *o = json_object_new_object();

	if (with_id)
		json_add_uint(o, "gpu_id", s->gpu_id);
	if (s->valid & GPREEMPT_HQD_QUEUES)
		json_add_uint(o, "queues", s->queues);
	if (s->valid & GPREEMPT_HQD_TOTAL)
		json_add_uint(o, "total", s->total);
	if (s->valid & GPREEMPT_HQD_ACTIVE)
		json_add_uint(o, "active", s->active);
	if (knows_free(s))
		json_add_uint(o, "free", s->free);
	if (s->valid & GPREEMPT_HQD_RESERVED)
		json_add_uint(o, "online_reserved", s->online_reserved);
	if (s->valid & GPREEMPT_HQD_OFFLINE)
		json_add_uint(o, "offline_used", s->offline_used);
	if (s->valid & GPREEMPT_HQD_HELD)
		json_add_uint(o, "held", s->held);
	if (with_id && s->valid & GPREEMPT_HQD_HELD)
		json_object_object_add(o, "stopped", json_object_new_boolean(s->stopped));
	return o;
}

static int print_json(struct cli *cli, const struct gpreempt_hqd_status *gpus, size_t n)
{
	struct gpreempt_hqd_status sum = sum_up(gpus, n);
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, status_to_json(&gpus[i], true));
	json_add(o, "gpus", list);
	json_add(o, "total", status_to_json(&sum, false));
	return cli_print_json(cli, o);
}

static void cell(struct libscols_table *t, size_t column, bool known, uint32_t value)
{
	table_cell(t, column, known ? "%u" : "-", value);
}

static void print_row(struct libscols_table *t, const struct gpreempt_hqd_status *s)
{
	cell(t, 1, s->valid & GPREEMPT_HQD_QUEUES, s->queues);
	cell(t, 2, s->valid & GPREEMPT_HQD_TOTAL, s->total);
	cell(t, 3, s->valid & GPREEMPT_HQD_ACTIVE, s->active);
	cell(t, 4, knows_free(s), s->free);
	cell(t, 5, s->valid & GPREEMPT_HQD_RESERVED, s->online_reserved);
	cell(t, 6, s->valid & GPREEMPT_HQD_OFFLINE, s->offline_used);
	cell(t, 7, s->valid & GPREEMPT_HQD_HELD, s->held);
}

static int print_text(const struct gpreempt_hqd_status *gpus, size_t n)
{
	static const struct column columns[] = {
		{ "GPU", true },  { "QUEUES", true },	{ "SLOTS", true },   { "ACTIVE", true },
		{ "FREE", true }, { "RESERVED", true }, { "OFFLINE", true }, { "HELD", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));
	struct gpreempt_hqd_status sum = sum_up(gpus, n);
	uint32_t crowded = 0;

	for (size_t i = 0; i < n; i++) {
		table_row(t);
		table_cell(t, 0, "%u", gpus[i].gpu_id);
		print_row(t, &gpus[i]);
		crowded += (gpus[i].valid & GPREEMPT_HQD_TOTAL) && gpus[i].queues > gpus[i].total;
	}
	table_row(t);
	table_cell(t, 0, "all");
	print_row(t, &sum);
	table_print(t);
	for (size_t i = 0; i < n; i++)
		if (gpus[i].stopped)
			printf("\nGPU %u is STOPPED by gpreempt stop-gpu\n", gpus[i].gpu_id);
	if (crowded)
		printf("\n%u GPU%s more queues than slots: the firmware takes turns\n", crowded,
		       crowded == 1 ? " has" : "s have");
	return EXIT_DONE;
}

int cmd_hqd(struct cli *cli, int argc, char **argv)
{
	struct gpreempt_hqd_status gpus[GPREEMPT_MAX_GPUS] = { { .size = sizeof(gpus[0]) } };
	int status = take_arguments(cli, argc, argv, 0, 0), n;

	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status != EXIT_DONE)
		return status;
	n = gpreempt_get_hqd_status(cli->ctx, gpus, ARRAY_SIZE(gpus));
	if (n < 0)
		return cli_fail_ctx(cli);
	n = MIN(n, (int)ARRAY_SIZE(gpus));
	return cli->json ? print_json(cli, gpus, (size_t)n) : print_text(gpus, (size_t)n);
}
