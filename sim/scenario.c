/* SPDX-License-Identifier: MIT */
/* Scenario files: sections and what each describes. Keys and values: keys.c, units.c. */
#include "sim/scenario.h"

#include <errno.h>
#include <string.h>

#include "sim/bursts.h"
#include "util/inifile.h"
#include "sim/keys.h"
#include "sim/parse.h"
#include "util/macros.h"

#define MAX_SECTIONS 20000u /* jobs, models or cost tables */
#define FIRST_ROOM ((size_t)8)
#define MAX_QUEUES 200000u /* of all processes on all GPUs */

/*
 * A file is read three times, so that it may name what comes later in it: first what there is to
 * name, then what is simulated, then what is swept.
 */
enum pass { PASS_TABLES, PASS_WORLD, PASS_SWEEP, N_PASSES };

enum kind { KIND_NONE, SCENARIO, PARAMS, JOB, MODEL, COSTS, DETECTION, TRACE, SWEEP };

static const struct section {
	const char *name;
	enum kind kind;
	enum pass pass;
	bool has_name; /* [job NAME]: any number of them */
	const struct sim_key *keys;
} sections[] = {
	{ "scenario", SCENARIO, PASS_WORLD, false, sim_scenario_keys },
	{ "policy", PARAMS, PASS_WORLD, false, sim_params_keys },
	{ "job", JOB, PASS_WORLD, true, sim_job_keys },
	{ "model", MODEL, PASS_TABLES, true, sim_model_keys },
	{ "costs", COSTS, PASS_TABLES, true, sim_costs_keys },
	{ "detection", DETECTION, PASS_TABLES, false, sim_detection_keys },
	{ "trace", TRACE, PASS_WORLD, false, sim_bursts_keys },
	{ "sweep", SWEEP, PASS_SWEEP, false, sim_sweep_keys },
	{ NULL },
};

struct parser {
	struct sim_scenario *s;
	enum pass pass;
	const struct section *section; /* NULL: none yet */
	char section_name[64]; /* as in the file */
	unsigned int section_line;
	unsigned int once; /* sections seen that come but once, by kind */
	uint64_t seen; /* keys of this section, by place in the table */
	void *object; /* what it describes */
	struct sim_bursts bursts;
	unsigned int trace_line;
	unsigned int *job_lines;
};

/* ---- sections ---- */

/* The array with room for one more than @n, which is zeroed; NULL: memory is short. */
static void *grow(void *array, size_t n, size_t size)
{
	if (n == 0 || (n >= FIRST_ROOM && (n & (n - 1)) == 0)) {
		array = reallocarray(array, MAX(2 * n, FIRST_ROOM), size);
		if (!array)
			return NULL;
	}
	memset((char *)array + n * size, 0, size);
	return array;
}

static bool name_taken(const void *array, size_t n, size_t size, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp((const char *)array + i * size, name))
			return true;
	}
	return false;
}

static int check_name(struct inifile *ini, const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_+";
	size_t good = strspn(name, allowed);

	if (name[good])
		return inifile_wrong(ini, name + good,
				     "names are made of letters, digits, '-', '_' and '+'");
	if (!good || good >= SIM_NAME)
		return inifile_wrong(ini, name, "a name has 1 to %d characters", SIM_NAME - 1);
	return 0;
}

/* Names come first in what is described. */
static_assert(offsetof(struct sim_job, name) == 0, "");
static_assert(offsetof(struct sim_model, name) == 0, "");
static_assert(offsetof(struct sim_costs, name) == 0, "");

/* @array: of what there is, @n times @size, each with its name in front. */
static int check_new(const struct parser *p, struct inifile *ini, const char *name,
		     const void *array, size_t n, size_t size)
{
	int r = check_name(ini, name);

	if (r < 0)
		return r;
	if (name_taken(array, n, size, name))
		return inifile_wrong(ini, name, "there is a %s '%s' already", p->section->name,
				     name);
	if (n == MAX_SECTIONS)
		return inifile_wrong(ini, name, "more than %u of these", MAX_SECTIONS);
	return 0;
}

static int add_job(struct parser *p, const struct inifile *ini)
{
	struct sim_scenario *s = p->s;
	struct sim_job *jobs = grow(s->jobs, s->n_jobs, sizeof(*jobs));
	unsigned int *lines;

	if (!jobs)
		return -ENOMEM;
	s->jobs = jobs;
	lines = grow(p->job_lines, s->n_jobs, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	p->job_lines = lines;
	lines[s->n_jobs] = inifile_line(ini);
	jobs[s->n_jobs] = (struct sim_job){
		.copies = 1,
		.queues = 1,
		.weight = 1,
		.arrival = SIM_CLOSED,
		.announce_ns = SIM_NOT_ANNOUNCED,
	};
	p->object = &jobs[s->n_jobs++];
	return 0;
}

static int add_model(struct parser *p)
{
	struct sim_scenario *s = p->s;
	struct sim_model *models = grow(s->models, s->n_models, sizeof(*models));

	if (!models)
		return -ENOMEM;
	s->models = models;
	models[s->n_models].occupancy_permille = 1000;
	models[s->n_models].workgroup_ns = UINT64_MAX; /* as long as its kernel, whatever that is */
	p->object = &models[s->n_models++];
	return 0;
}

static int add_costs(struct parser *p)
{
	struct sim_scenario *s = p->s;
	struct sim_costs *tables = grow(s->cost_tables, s->n_cost_tables, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	s->cost_tables = tables;
	p->object = &tables[s->n_cost_tables++];
	return 0;
}

static int begin_named(struct parser *p, struct inifile *ini, const char *name)
{
	struct sim_scenario *s = p->s;
	int r;

	switch (p->section->kind) {
	case JOB:
		r = check_new(p, ini, name, s->jobs, s->n_jobs, sizeof(*s->jobs));
		r = r < 0 ? r : add_job(p, ini);
		break;
	case MODEL:
		r = check_new(p, ini, name, s->models, s->n_models, sizeof(*s->models));
		r = r < 0 ? r : add_model(p);
		break;
	default:
		r = check_new(p, ini, name, s->cost_tables, s->n_cost_tables,
			      sizeof(*s->cost_tables));
		r = r < 0 ? r : add_costs(p);
		break;
	}
	if (r == -ENOMEM)
		return inifile_wrong(ini, name, "memory is short");
	if (r == 0)
		snprintf(p->object, SIM_NAME, "%s", name);
	return r;
}

static int begin_only(struct parser *p, struct inifile *ini, const char *name)
{
	unsigned int bit = 1u << p->section->kind;

	if (p->once & bit)
		return inifile_wrong(ini, name, "a second [%s]", p->section->name);
	p->once |= bit;
	switch (p->section->kind) {
	case PARAMS:
		p->object = &p->s->params;
		break;
	case DETECTION:
		p->object = &p->s->detection;
		break;
	case TRACE:
		p->object = &p->bursts;
		p->trace_line = inifile_line(ini);
		break;
	default:
		p->object = p->s;
		break;
	}
	return 0;
}

/* What is required and was not said. */
static int end_section(struct parser *p, struct inifile *ini)
{
	const struct sim_key *keys = p->section ? p->section->keys : NULL;

	if (!keys || p->section->pass != p->pass)
		return 0;
	for (size_t i = 0; keys[i].name; i++) {
		if (keys[i].required && !(p->seen & 1ull << i))
			return inifile_wrong_line(ini, p->section_line, "[%s] needs '%s'",
						  p->section_name, keys[i].name);
	}
	if (p->section->kind == JOB)
		return sim_job_settle(p->object, p->seen, ini, p->section_line);
	return 0;
}

static const struct section *find_section(const char *name, size_t len)
{
	for (const struct section *s = sections; s->name; s++) {
		if (strlen(s->name) == len && !memcmp(s->name, name, len))
			return s;
	}
	return NULL;
}

static int check_end(struct parser *p, struct inifile *ini);

static int take_section(void *user, struct inifile *ini, const char *text)
{
	struct parser *p = user;
	const char *name;
	size_t len;
	int r = end_section(p, ini);

	if (r < 0 || !text)
		return r < 0 ? r : check_end(p, ini);
	len = strcspn(text, " \t");
	name = text + len + strspn(text + len, " \t");
	p->section = find_section(text, len);
	if (!p->section)
		return inifile_wrong(ini, text,
				     "no section '%.*s': there are scenario, policy, job NAME, "
				     "model NAME, costs NAME, detection, trace, sweep",
				     (int)MIN(len, 64u), text);
	if (!p->section->has_name && *name)
		return inifile_wrong(ini, name, "[%s] has no name", p->section->name);
	snprintf(p->section_name, sizeof(p->section_name), "%s", text);
	p->section_line = inifile_line(ini);
	p->seen = 0;
	if (p->section->pass != p->pass)
		return 0;
	return p->section->has_name ? begin_named(p, ini, name) : begin_only(p, ini, name);
}

/* ---- keys ---- */

static int take_time(struct parser *p, struct inifile *ini, const char *value)
{
	struct sim_scenario *s = p->s;
	uint64_t at = 0;
	const char *wrong = unit_parse(UNIT_DURATION, value, &at);
	int r;

	if (wrong)
		return inifile_wrong(ini, value, "'%.64s' %s", value, wrong);
	if (s->n_trace && at < s->trace_ns[s->n_trace - 1])
		return inifile_wrong(ini, value, "times of a trace do not go back");
	r = sim_trace_add(s, at);
	if (r < 0)
		return inifile_wrong(ini, value, "too many times, or too little memory");
	return 0;
}

static int take_key(struct parser *p, struct inifile *ini, const struct sim_key *key,
		    const char *value)
{
	struct inifile_mistake m = { 0 };

	if (p->section->kind == SWEEP)
		return sim_sweep_take(p->s, ini, key->name, value);
	if (sim_key_set(key, p->s, p->object, value, &m) < 0)
		return inifile_blame(ini, value, &m);
	return 0;
}

static int take_pair(void *user, struct inifile *ini, const char *name, const char *value)
{
	struct parser *p = user;
	const struct sim_key *key;
	char names[200];
	uint64_t bit;

	if (!p->section)
		return inifile_wrong(ini, name, "a [section] must come first");
	if (p->section->pass != p->pass)
		return 0;
	if (p->section->kind == TRACE && !strcmp(name, "at"))
		return take_time(p, ini, value);
	key = sim_key_find(p->section->keys, name);
	if (!key) {
		sim_key_list(p->section->keys, names, sizeof(names));
		return inifile_wrong(ini, name, "no key '%.32s' in [%s]: there are %s", name,
				     p->section->name, names);
	}
	bit = 1ull << (key - p->section->keys);
	if (p->seen & bit)
		return inifile_wrong(ini, name, "'%s' twice in [%s]", name, p->section_name);
	p->seen |= bit;
	return take_key(p, ini, key, value);
}

/* ---- as a whole ---- */

static uint64_t count_queues(const struct sim_scenario *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct sim_job *job = &s->jobs[i];

		n += (uint64_t)job->copies * job->queues * (job->gang ? s->gpus : 1);
	}
	return n;
}

static int make_trace(struct parser *p, struct inifile *ini)
{
	const struct sim_bursts *b = &p->bursts;
	bool any = b->length_ns || b->burst_rate_mhz || b->quiet_rate_mhz;

	if (!any)
		return 0;
	if (p->s->n_trace)
		return inifile_wrong_line(ini, p->trace_line,
					  "[trace] has times and makes some up as well");
	if (!b->length_ns || !b->burst_rate_mhz || !b->quiet_ns || !b->burst_ns)
		return inifile_wrong_line(ini, p->trace_line,
					  "[trace] needs length, burst-rate, quiet and burst");
	if (sim_bursts_make(b, p->s) < 0)
		return inifile_wrong_line(ini, p->trace_line, "[trace] makes more than %d requests",
					  SIM_MAX_TRACE);
	return 0;
}

static int check_jobs(const struct parser *p, struct inifile *ini)
{
	const struct sim_scenario *s = p->s;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct sim_job *job = &s->jobs[i];

		if (job->gpu >= s->gpus)
			return inifile_wrong_line(ini, p->job_lines[i],
						  "[job %s] is on GPU %u of %u, counted from 0",
						  job->name, job->gpu, s->gpus);
		if (job->arrival == SIM_TRACE && !s->n_trace)
			return inifile_wrong_line(ini, p->job_lines[i],
						  "[job %s] follows a trace, and [trace] has none",
						  job->name);
	}
	if (count_queues(s) > MAX_QUEUES)
		return inifile_wrong_line(ini, p->job_lines[0], "more than %u queues in all",
					  MAX_QUEUES);
	return 0;
}

static int check_end(struct parser *p, struct inifile *ini)
{
	int r;

	p->section = NULL;
	if (p->pass != PASS_WORLD)
		return 0;
	if (!(p->once & 1u << SCENARIO))
		return inifile_wrong_line(ini, 1, "there is no [scenario] with a title");
	r = make_trace(p, ini);
	return r < 0 ? r : check_jobs(p, ini);
}

int sim_scenario_sweep(struct sim_scenario *s, size_t i)
{
	sim_sweep_apply(s, i);
	return count_queues(s) > MAX_QUEUES ? -EINVAL : 0;
}

int sim_parse_text(struct sim_scenario *s, const char *file, const char *text, size_t len,
		   bool only_tables, struct inifile_mistake *mistake)
{
	static const struct inifile_ops ops = { .section = take_section, .pair = take_pair };
	struct parser p = { .s = s };
	int r = 0;

	for (p.pass = 0; !r && p.pass < (only_tables ? PASS_WORLD : N_PASSES); p.pass++) {
		p.section = NULL;
		r = inifile_parse(file, text, len, &ops, &p, mistake);
	}
	free(p.job_lines);
	return r;
}

int sim_scenario_set(struct sim_scenario *s, const char *key, const char *value,
		     struct inifile_mistake *mistake)
{
	const struct sim_key *k = sim_key_find(sim_scenario_keys, key);
	struct sim_job scratch;
	int r;

	*mistake = (struct inifile_mistake){ 0 };
	if (k)
		return sim_key_set(k, s, s, value, mistake);
	k = sim_key_find(sim_job_keys, key);
	if (!k) {
		snprintf(mistake->text, sizeof(mistake->text), "no key '%.64s'", key);
		return -EINVAL;
	}
	r = sim_key_set(k, s, &scratch, value, mistake);
	for (size_t i = 0; !r && i < s->n_jobs; i++) {
		if (s->jobs[i].online)
			r = sim_key_set(k, s, &s->jobs[i], value, mistake);
	}
	return r;
}
