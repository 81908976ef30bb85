/* SPDX-License-Identifier: MIT */

#include "cmd/gpreempt/sim.h"
#include "util/units.h"

void sim_add_percent(struct json_object *object, const char *key, double percent)
{
	if (percent >= 0)
		json_add(object, key, json_decimal(percent, 2));
}

static void add_bool(struct json_object *object, const char *key, bool value)
{
	json_add(object, key, json_object_new_boolean(value));
}

struct json_object *sim_online_json(const struct sim_outcome *o, enum sim_mode mode)
{
	const struct sim_quantiles *q = &o->of[mode].online;
	struct json_object *object = json_object_new_object();

	json_add_uint(object, "requests", q->n);
	if (!q->n)
		return object;
	json_add(object, "mean_us", json_us(q->mean_ns));
	json_add(object, "p50_us", json_us(q->p50_ns));
	json_add(object, "p95_us", json_us(q->p95_ns));
	json_add(object, "p99_us", json_us(q->p99_ns));
	json_add(object, "p999_us", json_us(q->p999_ns));
	json_add(object, "max_us", json_us(q->max_ns));
	if (sim_has_over_alone(o, mode))
		json_add(object, "over_alone_pct", json_decimal(sim_over_alone(o, mode), 2));
	return object;
}

/* Where the curve of a distribution goes: so many percent took no longer than so long. */
static void add_curve(struct json_object *online, const struct sim_result *r)
{
	if (r->online.n)
		json_add(online, "cdf", json_curve(r->online_curve_ns));
}

static struct json_object *duration_json(const struct sim_quantiles *q)
{
	struct json_object *object = json_object_new_object();

	if (!q->n)
		return object;
	json_add(object, "min", json_us(q->min_ns));
	json_add(object, "mean", json_us(q->mean_ns));
	json_add(object, "p50", json_us(q->p50_ns));
	json_add(object, "p99", json_us(q->p99_ns));
	json_add(object, "max", json_us(q->max_ns));
	return object;
}

/* What every mode has. */
static void add_shares(struct json_object *object, const struct sim_outcome *o, enum sim_mode mode)
{
	struct json_object *offline = json_object_new_object();

	sim_add_percent(offline, "goodput_pct", sim_goodput(o, mode));
	json_add(object, "offline", offline);
	sim_add_percent(object, "total_throughput_pct", sim_throughput(o, mode));
	sim_add_percent(object, "total_work_pct", sim_work(o, mode));
}

static struct json_object *baselines_json(const struct sim_outcome *o)
{
	struct json_object *object = json_object_new_object();

	for (unsigned int mode = SIM_ALONE; mode < SIM_MODES; mode++) {
		struct json_object *one = json_object_new_object();
		struct json_object *online = sim_online_json(o, mode);

		json_add(one, "online", online);
		add_curve(online, &o->of[mode]);
		add_shares(one, o, mode);
		add_bool(one, "overloaded", o->of[mode].overloaded);
		json_add(object, sim_mode_key(mode), one);
	}
	return object;
}

static struct json_object *with_count(uint64_t n, const struct sim_quantiles *q)
{
	struct json_object *object = json_object_new_object();

	json_add_uint(object, "count", n);
	json_add(object, "latency_us", duration_json(q));
	return object;
}

static struct json_object *preemptions_json(const struct sim_result *r)
{
	struct json_object *object = with_count(r->preemptions, &r->preemption);

	json_add(object, "suspend_us", json_us(r->suspend_ns));
	return object;
}

static struct json_object *slots_json(const struct sim_result *r)
{
	struct json_object *object = json_object_new_object();

	sim_add_percent(object, "used_pct", sim_slots_used(r));
	json_add(object, "online_wait_max_us", json_us(r->online_slot_wait_max_ns));
	return object;
}

/* The processes of a job, from @first on, as one. How many there are. */
static size_t add_job(struct json_object *array, const struct sim_result *r, size_t first)
{
	struct json_object *object = json_object_new_object();
	struct sim_job_result sum = { .job = r->jobs[first].job };
	size_t n = 0;

	for (; first + n < r->n_jobs && r->jobs[first + n].job == sum.job; n++) {
		const struct sim_job_result *j = &r->jobs[first + n];

		sum.submitted += j->submitted;
		sum.done += j->done;
		sum.backlog += j->backlog;
		sum.preempted += j->preempted;
		sum.longest_wait_ns = MAX(sum.longest_wait_ns, j->longest_wait_ns);
		sum.starved |= j->starved;
		sum.overloaded |= j->overloaded;
	}
	json_add_string(object, "name", sum.job->name);
	json_add_string(object, "class", sum.job->online ? "online" : "offline");
	if (r->jobs[first].announce_ns != SIM_NOT_ANNOUNCED)
		json_add(object, "announce_us", json_us(r->jobs[first].announce_ns));
	json_add_uint(object, "processes", n);
	json_add_uint(object, "submitted", sum.submitted);
	json_add_uint(object, "done", sum.done);
	json_add_uint(object, "backlog", sum.backlog);
	json_add_uint(object, "preempted", sum.preempted);
	json_add(object, "longest_wait_us", json_us(sum.longest_wait_ns));
	add_bool(object, "starved", sum.starved);
	add_bool(object, "overloaded", sum.overloaded);
	json_object_array_add(array, object);
	return n;
}

static struct json_object *jobs_json(const struct sim_result *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_jobs;)
		i += add_job(array, r, i);
	return array;
}

static void add_outcome(struct json_object *object, const struct sim_outcome *o)
{
	const struct sim_result *ours = &o->of[SIM_ENGINE];
	const struct sim_quantiles *alone = &o->of[SIM_ALONE].online;
	struct json_object *online = sim_online_json(o, SIM_ENGINE);

	if (alone->n) {
		json_add(online, "alone_mean_us", json_us(alone->mean_ns));
		json_add(online, "alone_p99_us", json_us(alone->p99_ns));
	}
	add_curve(online, ours);
	json_add(object, "online", online);
	add_shares(object, o, SIM_ENGINE);
	json_add(object, "baselines", baselines_json(o));
	json_add(object, "preemptions", preemptions_json(ours));
	json_add(object, "inversions", with_count(ours->inversion.n, &ours->inversion));
	json_add_uint(object, "cycles", ours->cycles);
	json_add_uint(object, "engine_steps", ours->engine_steps);
	json_add_uint(object, "starved", ours->starved);
	add_bool(object, "overloaded", ours->overloaded);
	if (ours->slot_ns)
		json_add(object, "slots", slots_json(ours));
	json_add(object, "jobs", jobs_json(ours));
}

static void add_sight(struct json_object *object, const struct sim_scenario *s)
{
	struct sim_sight sight = sim_sight(s);
	char text[UNIT_TEXT], assumes[SIM_ASSUMES];

	json_add_string(object, "detect",
			sight.any ? sim_detect_text(s->detect, text, sizeof(text)) : "none");
	if (sight.any && s->detect <= SIM_DETECT_TRAP)
		json_add(object, "seen_after_us", json_us(sight.begin_ns));
	if (sight.any)
		json_add(object, "look_every_us", json_us(sight.look_ns));
	json_add_string(object, "announce", sim_announce_text(s, text, sizeof(text)));
	json_add_string(object, "assumes", sim_assumes(s, assumes));
}

static struct json_object *settings_json(const struct sim_scenario *s)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "chip", s->chip);
	json_add_uint(object, "gpus", s->gpus);
	json_add_string(object, "costs", s->costs);
	add_sight(object, s);
	json_add_string(object, "save_area", s->save_in_host_memory ? "host" : "hbm");
	json_add(object, "duration_s", json_decimal((double)s->duration_ns / 1e9, 3));
	json_add(object, "kernel_scale", json_decimal((double)s->kernel_permille / 1000, 3));
	if (s->cycle_ns)
		json_add(object, "cycle_us", json_us(s->cycle_ns));
	return object;
}

static struct json_object *runs_json(const struct sim_report *report)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 1; i < report->n; i++) {
		struct json_object *run = json_object_new_object();
		char value[UNIT_TEXT];

		json_add_string(run, "key", report->s->sweep_key);
		json_add_string(run, "value",
				sim_scenario_sweep_text(report->s, i - 1, value, sizeof(value)));
		add_outcome(run, &report->outcomes[i]);
		json_object_array_add(array, run);
	}
	return array;
}

int sim_report_json(struct cli *cli, const struct sim_report *report)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "scenario", report->s->name);
	json_add_string(object, "title", report->s->title);
	json_add_string(object, "policy", report->policy->name);
	json_add_uint(object, "seed", report->seed);
	add_bool(object, "modelled", true);
	json_add(object, "settings", settings_json(&report->written));
	add_outcome(object, &report->outcomes[0]);
	if (report->n > 1)
		json_add(object, "runs", runs_json(report));
	return cli_print_json(cli, object);
}
