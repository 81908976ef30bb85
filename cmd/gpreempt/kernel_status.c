/* SPDX-License-Identifier: MIT */
/* How the scheduler inside the driver is. */
#include <stdio.h>

#include "cmd/gpreempt/kernel.h"
#include "cmd/gpreempt/table.h"

/* ---- for programs ---- */

static void add_settings(struct json_object *o, const struct gpreempt_kernel_gpu *g)
{
	if (g->valid & GPREEMPT_KERNEL_POLICY)
		json_add_string(o, "policy", g->policy);
	if (g->valid & GPREEMPT_KERNEL_INTERVALS) {
		json_add_uint(o, "interval_us", g->interval_us);
		json_add_uint(o, "critical_interval_us", g->critical_interval_us);
	}
	if (g->valid & GPREEMPT_KERNEL_TURN)
		json_add_uint(o, "turn_ms", g->turn_ms);
	if (g->valid & GPREEMPT_KERNEL_HOLD_MAX)
		json_add_uint(o, "hold_max_ms", g->hold_max_ms);
	if (g->valid & GPREEMPT_KERNEL_RESERVED) {
		json_add_uint(o, "online_permille", g->online_permille);
		json_add_uint(o, "offline_permille", g->offline_permille);
	}
}

static void add_figures(struct json_object *o, const struct gpreempt_kernel_gpu *g)
{
	if (g->valid & GPREEMPT_KERNEL_JOBS) {
		json_add_uint(o, "online", g->online);
		json_add_uint(o, "offline", g->offline);
		json_add_uint(o, "held", g->held);
	}
	if (g->valid & GPREEMPT_KERNEL_LOOKS) {
		json_add_uint(o, "looks", g->looks);
		json_add(o, "busy_us", json_us(g->busy_ns));
	}
	if (g->valid & GPREEMPT_KERNEL_ACTIONS) {
		json_add_uint(o, "holds", g->holds);
		json_add_uint(o, "resumes", g->resumes);
		json_add_uint(o, "failures", g->failures);
		json_add(o, "tripped", json_object_new_boolean(g->tripped));
	}
}

static struct json_object *gpu_to_json(const struct gpreempt_kernel_gpu *g)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "gpu_id", g->gpu_id);
	json_add(o, "on", json_object_new_boolean(g->on));
	if (g->valid & GPREEMPT_KERNEL_SLOTS) {
		json_add_uint(o, "slots", g->slots);
		json_add_uint(o, "queues", g->queues);
		json_add_uint(o, "held_queues", g->held_queues);
	}
	if (g->on) {
		add_settings(o, g);
		add_figures(o, g);
	}
	return o;
}

static int print_json(struct cli *cli, const struct gpreempt_kernel_gpu *gpus, size_t n)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, gpu_to_json(&gpus[i]));
	json_add(o, "gpus", list);
	return cli_print_json(cli, o);
}

/* ---- for people ---- */

static const char *state_word(const struct gpreempt_kernel_gpu *g)
{
	if (!g->on)
		return "off";
	return g->tripped ? "TRIPPED" : "on";
}

static void cell(struct libscols_table *t, size_t column, bool known, uint64_t value)
{
	table_cell(t, column, known ? "%llu" : "-", (unsigned long long)value);
}

static void print_row(struct libscols_table *t, const struct gpreempt_kernel_gpu *g)
{
	bool jobs = g->on && g->valid & GPREEMPT_KERNEL_JOBS;
	bool actions = g->on && g->valid & GPREEMPT_KERNEL_ACTIONS;
	char every[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%u", g->gpu_id);
	table_cell(t, 1, "%s", state_word(g));
	table_cell(t, 2, "%s", g->on && g->valid & GPREEMPT_KERNEL_POLICY ? g->policy : "-");
	table_cell(t, 3, "%s",
		   g->on && g->valid & GPREEMPT_KERNEL_INTERVALS ?
			   text_duration(g->interval_us * NSEC_PER_USEC, every) :
			   "-");
	cell(t, 4, jobs, g->online);
	cell(t, 5, jobs, g->offline);
	cell(t, 6, jobs, g->held);
	cell(t, 7, actions, g->holds);
	cell(t, 8, actions, g->failures);
	if (g->on && g->valid & GPREEMPT_KERNEL_RESERVED)
		table_cell(t, 9, "%u:%u %%", g->online_permille / 10, g->offline_permille / 10);
	else
		table_cell(t, 9, "-");
}

static int print_text(const struct gpreempt_kernel_gpu *gpus, size_t n)
{
	static const struct column columns[] = {
		{ "GPU", true },      { "SCHEDULER", false }, { "POLICY", false },
		{ "EVERY", true },    { "ONLINE", true },     { "OFFLINE", true },
		{ "HELD", true },     { "HOLDS", true },      { "FAILURES", true },
		{ "RESERVED", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));
	size_t on = 0;

	for (size_t i = 0; i < n; i++) {
		print_row(t, &gpus[i]);
		on += gpus[i].on;
	}
	table_print(t);
	if (on == 0)
		printf("\nthe kernel's scheduler is off; turn it on with: gpreempt kernel on\n");
	for (size_t i = 0; i < n; i++)
		if (gpus[i].tripped)
			printf("\na preemption failed on GPU %u: it is left alone until gpreempt "
			       "kernel rearm %u\n",
			       gpus[i].gpu_id, gpus[i].gpu_id);
	return EXIT_DONE;
}

int kernel_status(struct cli *cli, const struct request *q)
{
	struct gpreempt_kernel_gpu gpus[GPREEMPT_MAX_GPUS] = { { .size = sizeof(gpus[0]) } };
	int n = gpreempt_kernel_get_gpus(cli->ctx, gpus, ARRAY_SIZE(gpus));

	(void)q;
	if (n < 0)
		return cli_fail_ctx(cli);
	n = MIN(n, (int)ARRAY_SIZE(gpus));
	return cli->json ? print_json(cli, gpus, (size_t)n) : print_text(gpus, (size_t)n);
}
