/* SPDX-License-Identifier: MIT */
/*
 * Whether the model is worth asking: what it says of ways to share a GPU that others have measured.
 * GPreempt (USENIX ATC'25, section 5.2) ran DISB on an MI100; its averages are compared with those
 * of the same workloads here. No figure of gpreempt itself enters.
 */
#include <stdio.h>

#include "cmd/gpreempt/sim.h"
#include "cmd/gpreempt/table.h"

#define BOUND 1.5 /* a factor, either way */

static const char *const workloads[] = { "disb-a", "disb-b", "disb-c", "disb-d", "disb-e" };
#define N_WORKLOADS ARRAY_SIZE(workloads)

/* An average over the workloads. */
static const struct {
	const char *key, *text;
	double (*of)(const struct sim_outcome *o, enum sim_mode mode);
	enum sim_mode mode;
	double measured; /* percent */
} figures[] = {
	{ "none_over_alone_pct", "latency, no preemption, over alone", sim_over_alone, SIM_NONE,
	  170.1 },
	{ "sequential_over_alone_pct", "latency, sequential, over alone", sim_over_alone,
	  SIM_SEQUENTIAL, 297.9 },
	{ "sequential_throughput_pct", "throughput, sequential", sim_throughput, SIM_SEQUENTIAL,
	  53.1 },
	{ "alone_throughput_pct", "throughput, online alone", sim_throughput, SIM_ALONE, 38.8 },
};

struct calibration {
	struct sim_outcome outcomes[N_WORKLOADS];
	double means[ARRAY_SIZE(figures)];
	bool between; /* stream priority lies between alone and no preemption, everywhere */
	bool good;
};

static int run_workloads(struct cli *cli, uint64_t seed, struct calibration *c)
{
	static const unsigned int modes =
		1u << SIM_ALONE | 1u << SIM_NONE | 1u << SIM_STREAM_PRIORITY | 1u << SIM_SEQUENTIAL;
	struct sim_options options = { .seed = seed };
	int status = EXIT_DONE, r;

	for (size_t i = 0; status == EXIT_DONE && i < N_WORKLOADS; i++) {
		struct sim_scenario *s = NULL;
		struct inifile_mistake m = { 0 };

		r = sim_scenario_read(workloads[i], &s, &m);
		status = r < 0 ? sim_fail(cli, r, &m) :
				 sim_run_modes(cli, s, options, modes, &c->outcomes[i]);
		sim_scenario_free(s);
	}
	return status;
}

static double factor(double modelled, double measured)
{
	if (modelled <= 0)
		return 1000;
	return modelled > measured ? modelled / measured : measured / modelled;
}

static void judge(struct calibration *c)
{
	c->between = true;
	c->good = true;
	for (size_t i = 0; i < N_WORKLOADS; i++) {
		const struct sim_outcome *o = &c->outcomes[i];
		double added = sim_over_alone(o, SIM_STREAM_PRIORITY);

		c->between &= added >= 0 && added <= sim_over_alone(o, SIM_NONE);
	}
	for (size_t f = 0; f < ARRAY_SIZE(figures); f++) {
		for (size_t i = 0; i < N_WORKLOADS; i++)
			c->means[f] +=
				figures[f].of(&c->outcomes[i], figures[f].mode) / N_WORKLOADS;
		c->good &= factor(c->means[f], figures[f].measured) <= BOUND;
	}
	c->good &= c->between;
}

/* ---- told ---- */

static struct json_object *workload_json(const char *name, const struct sim_outcome *o)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "scenario", name);
	for (unsigned int mode = SIM_ALONE; mode < SIM_MODES; mode++) {
		struct json_object *one = json_object_new_object();

		json_add(one, "online", sim_online_json(o, mode));
		sim_add_percent(one, "total_throughput_pct", sim_throughput(o, mode));
		json_add(object, sim_mode_key(mode), one);
	}
	return object;
}

static int print_json(struct cli *cli, uint64_t seed, const struct calibration *c)
{
	struct json_object *object = json_object_new_object();
	struct json_object *means = json_object_new_object();
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < N_WORKLOADS; i++)
		json_object_array_add(array, workload_json(workloads[i], &c->outcomes[i]));
	for (size_t f = 0; f < ARRAY_SIZE(figures); f++) {
		struct json_object *one = json_object_new_object();

		json_add(one, "modelled", json_decimal(c->means[f], 2));
		json_add(one, "measured", json_decimal(figures[f].measured, 1));
		json_add(one, "factor", json_decimal(factor(c->means[f], figures[f].measured), 3));
		json_add(means, figures[f].key, one);
	}
	json_add(object, "modelled", json_object_new_boolean(true));
	json_add_uint(object, "seed", seed);
	json_add(object, "workloads", array);
	json_add(object, "means", means);
	json_add(object, "stream_priority_between", json_object_new_boolean(c->between));
	json_add(object, "bound_factor", json_decimal(BOUND, 1));
	json_add(object, "calibrated", json_object_new_boolean(c->good));
	return cli_print_json(cli, object);
}

static void print_workloads(const struct calibration *c)
{
	static const struct column columns[] = {
		{ "modelled, MI100", false },
		{ "ALONE", true },
		{ "NO PREEMPTION", true },
		{ "STREAM PRIORITY", true },
		{ "SEQUENTIAL", true },
		{ "THROUGHPUT, SEQUENTIAL", true },
		{ "ALONE", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));
	char buf[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < N_WORKLOADS; i++) {
		const struct sim_outcome *o = &c->outcomes[i];

		table_row(t);
		table_cell(t, 0, "%s", workloads[i]);
		table_cell(t, 1, "%s", text_duration(o->of[SIM_ALONE].online.mean_ns, buf));
		for (unsigned int mode = SIM_NONE; mode < SIM_MODES; mode++)
			table_cell(t, mode, "%+.0f %%", sim_over_alone(o, mode));
		table_cell(t, 5, "%.0f %%", sim_throughput(o, SIM_SEQUENTIAL));
		table_cell(t, 6, "%.0f %%", sim_throughput(o, SIM_ALONE));
	}
	table_print(t);
}

static int print_text(const struct calibration *c)
{
	static const struct column columns[] = {
		{ "mean of all", false },
		{ "MODELLED", true },
		{ "MEASURED BY OTHERS", true },
		{ "FACTOR", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	print_workloads(c);
	for (size_t f = 0; f < ARRAY_SIZE(figures); f++) {
		table_row(t);
		table_cell(t, 0, "%s", figures[f].text);
		table_cell(t, 1, "%.1f %%", c->means[f]);
		table_cell(t, 2, "%.1f %%", figures[f].measured);
		table_cell(t, 3, "%.2f", factor(c->means[f], figures[f].measured));
	}
	printf("\n");
	table_print(t);
	printf("\nstream priority between alone and no preemption: %s\n"
	       "%s: every factor must be at most %.1f\n",
	       c->between ? "yes" : "no", c->good ? "calibrated" : "NOT calibrated", BOUND);
	return EXIT_DONE;
}

int sim_calibrate(struct cli *cli, uint64_t seed)
{
	struct calibration c = { 0 };
	int status = run_workloads(cli, seed, &c);

	if (status == EXIT_DONE) {
		judge(&c);
		status = cli->json ? print_json(cli, seed, &c) : print_text(&c);
	}
	for (size_t i = 0; i < N_WORKLOADS; i++)
		sim_outcome_done(&c.outcomes[i]);
	return status == EXIT_DONE && !c.good ? EXIT_FAILED : status;
}
