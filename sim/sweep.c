/* SPDX-License-Identifier: MIT */
/* One key of a scenario that takes several values, one a run. */
#include <string.h>

#include "sim/parse.h"
#include "util/macros.h"

#define MAX_SWEEP 256

/* Not stored by name: see sim_sweep_take. */
const struct sim_key sim_sweep_keys[] = {
	{ .name = "key", .kind = SIM_KEY_TEXT, .required = true },
	{ .name = "values", .kind = SIM_KEY_TEXT, .required = true },
	{ 0 },
};

/* A key and what it belongs to. */
struct target {
	const struct sim_key *key;
	void *object;
};

static struct sim_job *find_job(struct sim_scenario *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (strlen(s->jobs[i].name) == len && !memcmp(s->jobs[i].name, name, len))
			return &s->jobs[i];
	}
	return NULL;
}

static struct sim_model *find_model(struct sim_scenario *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n_models; i++) {
		if (strlen(s->models[i].name) == len && !memcmp(s->models[i].name, name, len))
			return &s->models[i];
	}
	return NULL;
}

/* "key" of the scenario or its policy, or "name.key" of a job or a model. */
static struct target find_target(struct sim_scenario *s, const char *text)
{
	const char *dot = strchr(text, '.');
	struct target t = { 0 };

	if (dot) {
		t.object = find_job(s, text, (size_t)(dot - text));
		t.key = t.object ? sim_key_find(sim_job_keys, dot + 1) : NULL;
		if (t.key)
			return t;
		t.object = find_model(s, text, (size_t)(dot - text));
		t.key = t.object ? sim_key_find(sim_model_keys, dot + 1) : NULL;
		return t;
	}
	t = (struct target){ sim_key_find(sim_scenario_keys, text), s };
	if (!t.key)
		t = (struct target){ sim_key_find(sim_params_keys, text), &s->params };
	return t;
}

/* What has a place in the world cannot change after it was checked. */
static bool may_change(const struct sim_key *key)
{
	return (key->kind == SIM_KEY_NUMBER || key->kind == SIM_KEY_ANNOUNCE ||
		key->kind == SIM_KEY_DETECT) &&
	       strcmp(key->name, "gpu") && strcmp(key->name, "gpus");
}

static int take_target(struct sim_scenario *s, struct inifile *ini, const char *value)
{
	struct target t = find_target(s, value);

	if (!t.key)
		return inifile_wrong(ini, value,
				     "'%.64s' is no 'key' of [scenario] or [policy] and no "
				     "'name.key' of a job or model",
				     value);
	if (!may_change(t.key))
		return inifile_wrong(ini, value, "'%s' cannot be swept", t.key->name);
	if (strlen(value) >= sizeof(s->sweep_key))
		return inifile_wrong(ini, value, "a key of at most %zu characters",
				     sizeof(s->sweep_key) - 1);
	snprintf(s->sweep_key, sizeof(s->sweep_key), "%s", value);
	return 0;
}

static int take_values(struct sim_scenario *s, struct inifile *ini, const char *text)
{
	struct target t = find_target(s, s->sweep_key);
	const char *at = text;

	if (!t.key)
		return inifile_wrong(ini, text, "'key' must come before 'values'");
	s->sweep = calloc(MAX_SWEEP, sizeof(*s->sweep));
	if (!s->sweep)
		return inifile_wrong(ini, text, "memory is short");
	for (size_t len; *at; at += len + strspn(at + len, " \t")) {
		struct inifile_mistake m = { 0 };
		char value[64];

		len = strcspn(at, " \t");
		snprintf(value, sizeof(value), "%.*s", (int)MIN(len, sizeof(value)), at);
		if (s->n_sweep == MAX_SWEEP)
			return inifile_wrong(ini, at, "more than %d values", MAX_SWEEP);
		if (sim_key_parse(t.key, s, value, &s->sweep[s->n_sweep], &m) < 0)
			return inifile_blame(ini, at, &m);
		s->n_sweep++;
	}
	if (!s->n_sweep)
		return inifile_wrong(ini, text, "no values");
	return 0;
}

int sim_sweep_take(struct sim_scenario *s, struct inifile *ini, const char *key, const char *value)
{
	return !strcmp(key, "key") ? take_target(s, ini, value) : take_values(s, ini, value);
}

void sim_sweep_apply(struct sim_scenario *s, size_t i)
{
	struct target t = find_target(s, s->sweep_key);

	if (t.key && i < s->n_sweep)
		sim_key_store(t.key, t.object, s->sweep[i]);
}

const char *sim_scenario_sweep_text(const struct sim_scenario *s, size_t i, char *buf, size_t size)
{
	struct target t = find_target((struct sim_scenario *)s, s->sweep_key);
	uint64_t value = i < s->n_sweep ? s->sweep[i] : 0;
	char text[UNIT_TEXT] = "";

	if (t.key && t.key->kind == SIM_KEY_ANNOUNCE)
		sim_announce_time_text(value, text, sizeof(text));
	else if (t.key && t.key->kind == SIM_KEY_DETECT)
		sim_detect_text(value, text, sizeof(text));
	else if (t.key)
		unit_text(t.key->unit, value, text);
	snprintf(buf, size, "%s", text);
	return buf;
}
