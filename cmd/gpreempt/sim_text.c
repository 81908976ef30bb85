/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/sim.h"
#include "cmd/gpreempt/table.h"
#include "util/units.h"

static void duration_cell(struct libscols_table *t, size_t column, bool known, uint64_t ns)
{
	char buf[UNIT_TEXT_SIZE];

	table_cell(t, column, "%s", known ? text_duration(ns, buf) : "");
}

static void percent_cell(struct libscols_table *t, size_t column, double percent)
{
	if (percent >= 0)
		table_cell(t, column, "%.1f %%", percent);
}

static void over_alone_cell(struct libscols_table *t, size_t column, const struct sim_outcome *o,
			    enum sim_mode mode)
{
	if (sim_has_over_alone(o, mode))
		table_cell(t, column, "%+.1f %%", sim_over_alone(o, mode));
}

/* ---- one outcome ---- */

static void print_mode(struct libscols_table *t, const struct sim_outcome *o, enum sim_mode mode,
		       const char *policy)
{
	const struct sim_quantiles *q = &o->of[mode].online;

	table_row(t);
	if (mode == SIM_ENGINE)
		table_cell(t, 0, "gpreempt, %s", policy);
	else
		table_cell(t, 0, "%s", sim_mode_text(mode));
	table_cell(t, 1, "%llu", (unsigned long long)q->n);
	duration_cell(t, 2, q->n, q->mean_ns);
	duration_cell(t, 3, q->n, q->p50_ns);
	duration_cell(t, 4, q->n, q->p99_ns);
	duration_cell(t, 5, q->n, q->p999_ns);
	if (mode != SIM_ALONE)
		over_alone_cell(t, 6, o, mode);
	percent_cell(t, 7, sim_goodput(o, mode));
	percent_cell(t, 8, sim_throughput(o, mode));
}

static void print_modes(const struct sim_outcome *o, const char *policy)
{
	static const struct column columns[] = {
		{ "modelled", false },	{ "REQUESTS", true }, { "MEAN", true },
		{ "P50", true },	{ "P99", true },      { "P99.9", true },
		{ "OVER ALONE", true }, { "OFFLINE", true },  { "TOTAL", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	for (unsigned int mode = SIM_ALONE; mode < SIM_MODES; mode++)
		print_mode(t, o, mode, policy);
	print_mode(t, o, SIM_ENGINE, policy);
	table_print(t);
}

#define OVERLOADED_MAX 6 /* jobs named */

/* Jobs whose requests come faster than they are done, each with what is left of them. */
static void print_overload(const struct sim_result *r)
{
	const struct sim_job *last = NULL;
	unsigned int named = 0;

	if (!r->overloaded)
		return;
	printf("overloaded: requests come faster than they are done; given up or waiting at the "
	       "end:");
	for (size_t i = 0; i < r->n_jobs; i++) {
		uint64_t backlog = 0;

		if (!r->jobs[i].overloaded || r->jobs[i].job == last)
			continue;
		last = r->jobs[i].job;
		for (size_t n = i; n < r->n_jobs && r->jobs[n].job == last; n++)
			backlog += r->jobs[n].backlog;
		if (named++ < OVERLOADED_MAX)
			printf("%s %llu of %s", named > 1 ? "," : "", (unsigned long long)backlog,
			       last->name);
	}
	printf("%s\n", named > OVERLOADED_MAX ? ", and more" : "");
}

static void print_rest(const struct sim_result *r)
{
	const struct sim_quantiles *q = &r->preemption;
	char p50[UNIT_TEXT_SIZE], p99[UNIT_TEXT_SIZE], longest[UNIT_TEXT_SIZE];

	printf("preemptions: %llu", (unsigned long long)r->preemptions);
	if (q->n)
		printf(", off the GPU within %s (p50), %s (p99), %s (max)",
		       text_duration(q->p50_ns, p50), text_duration(q->p99_ns, p99),
		       text_duration(q->max_ns, longest));
	printf("; scheduling cycles: %llu\n", (unsigned long long)r->cycles);
	if (r->inversion.n)
		printf("urgent work slowed by lesser work: %llu times, at most %s (p99 %s)\n",
		       (unsigned long long)r->inversion.n,
		       text_duration(r->inversion.max_ns, longest),
		       text_duration(r->inversion.p99_ns, p99));
	if (r->slot_ns)
		printf("slots in use: %.1f %%; an online queue waited at most %s for one\n",
		       sim_slots_used(r), text_duration(r->online_slot_wait_max_ns, longest));
	printf("starved: %u\n", r->starved);
	print_overload(r);
}

static void print_head(struct cli *cli, const struct sim_report *report)
{
	const struct sim_scenario *s = &report->written;
	char name[SIM_NAME + 16], time[UNIT_TEXT], cycle[UNIT_TEXT], assumes[SIM_ASSUMES];

	printf("%s: %s\n", bold(cli, s->name, name, sizeof(name)), s->title);
	printf("%u x %s, %s, seed %llu", s->gpus, s->chip,
	       unit_text(UNIT_DURATION, s->duration_ns, time), (unsigned long long)report->seed);
	if (s->cycle_ns)
		printf(", a cycle of %s", unit_text(UNIT_DURATION, s->cycle_ns, cycle));
	if (s->kernel_permille != 1000)
		printf(", kernels x %s", unit_text(UNIT_SCALE, s->kernel_permille, cycle));
	printf("%s\n", s->save_in_host_memory ? ", save areas in host memory" : "");
	printf("Assumed: %s.\n", sim_assumes(s, assumes));
	printf("All figures are modelled. OFFLINE and TOTAL: parts of what no preemption gets done,"
	       "\nof offline work and of all requests.\n\n");
}

/* ---- a sweep ---- */

static void print_value(struct libscols_table *t, const struct sim_report *report, size_t i)
{
	const struct sim_outcome *o = &report->outcomes[i];
	const struct sim_result *ours = &o->of[SIM_ENGINE];
	char value[UNIT_TEXT];

	table_row(t);
	table_cell(t, 0, "%s", sim_scenario_sweep_text(report->s, i - 1, value, sizeof(value)));
	duration_cell(t, 1, o->of[SIM_ALONE].online.n, o->of[SIM_ALONE].online.mean_ns);
	duration_cell(t, 2, o->of[SIM_NONE].online.n, o->of[SIM_NONE].online.mean_ns);
	duration_cell(t, 3, ours->online.n, ours->online.mean_ns);
	duration_cell(t, 4, ours->online.n, ours->online.p99_ns);
	over_alone_cell(t, 5, o, SIM_ENGINE);
	duration_cell(t, 6, ours->preemption.n, ours->preemption.p50_ns);
	duration_cell(t, 7, ours->preemption.n, ours->preemption.p99_ns);
	percent_cell(t, 8, sim_goodput(o, SIM_ENGINE));
	table_cell(t, 9, "%s", ours->overloaded ? "overloaded" : "");
}

static void print_sweep(const struct sim_report *report)
{
	const struct column columns[] = {
		{ report->s->sweep_key, true },
		{ "ALONE", true },
		{ "NO PREEMPTION", true },
		{ "GPREEMPT", true },
		{ "P99", true },
		{ "OVER ALONE", true },
		{ "PREEMPTION, P50", true },
		{ "P99", true },
		{ "OFFLINE", true },
		{ "", false },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 1; i < report->n; i++)
		print_value(t, report, i);
	printf("\n");
	table_print(t);
}

int sim_report_text(struct cli *cli, const struct sim_report *report)
{
	print_head(cli, report);
	print_modes(&report->outcomes[0], report->policy->name);
	printf("\n");
	print_rest(&report->outcomes[0].of[SIM_ENGINE]);
	if (report->n > 1)
		print_sweep(report);
	return EXIT_DONE;
}

/* ---- what there is ---- */

static int list_json(struct cli *cli)
{
	struct json_object *object = json_object_new_object();
	struct json_object *policies = json_object_new_array();
	struct json_object *scenarios = json_object_new_array();

	for (const struct gpol_ops *const *p = gpol_all; *p; p++) {
		struct json_object *one = json_object_new_object();

		json_add_string(one, "name", (*p)->name);
		json_add_string(one, "summary", (*p)->summary);
		json_object_array_add(policies, one);
	}
	for (const char *const *name = sim_scenario_names; *name; name++) {
		struct json_object *one = json_object_new_object();

		json_add_string(one, "name", *name);
		json_add_string(one, "title", sim_scenario_title(*name));
		json_object_array_add(scenarios, one);
	}
	json_add(object, "policies", policies);
	json_add(object, "scenarios", scenarios);
	return cli_print_json(cli, object);
}

int sim_list(struct cli *cli)
{
	if (cli->json)
		return list_json(cli);
	printf("policies:\n");
	for (const struct gpol_ops *const *p = gpol_all; *p; p++)
		printf("  %-20s  %s\n", (*p)->name, (*p)->summary);
	printf("\nscenarios:\n");
	for (const char *const *name = sim_scenario_names; *name; name++)
		printf("  %-20s  %s\n", *name, sim_scenario_title(*name));
	return EXIT_DONE;
}
