/* SPDX-License-Identifier: MIT */
#include "sim/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/model/model.h"
#include "util/macros.h"

const struct sim_key *sim_key_find(const struct sim_key *keys, const char *name)
{
	for (; keys->name; keys++) {
		if (!strcmp(keys->name, name))
			return keys;
	}
	return NULL;
}

/* ---- lists of names ---- */

static void add_name(char *buf, size_t size, const char *name)
{
	size_t len = strlen(buf);

	snprintf(buf + len, size - len, "%s%s", len ? ", " : "", name);
}

void sim_key_list(const struct sim_key *keys, char *buf, size_t size)
{
	buf[0] = '\0';
	for (; keys->name; keys++)
		add_name(buf, size, keys->name);
}

/* The @i-th name a key of this kind may have; NULL: there are no more. */
static const char *valid_name(const struct sim_key *key, const struct sim_scenario *s, size_t i)
{
	switch (key->kind) {
	case SIM_KEY_CHOICE:
		return key->choices[i];
	case SIM_KEY_MODEL:
		return i < s->n_models ? s->models[i].name : NULL;
	case SIM_KEY_COSTS:
		return i < s->n_cost_tables ? s->cost_tables[i].name : NULL;
	case SIM_KEY_CHIP:
		return model_chips[i].name;
	case SIM_KEY_POLICY:
		return gpol_all[i] ? gpol_all[i]->name : NULL;
	default:
		return NULL;
	}
}

static int find_name(const struct sim_key *key, const struct sim_scenario *s, const char *text,
		     uint64_t *ret, struct inifile_mistake *mistake)
{
	const char *name;

	for (size_t i = 0; (name = valid_name(key, s, i)); i++) {
		if (!strcmp(name, text)) {
			*ret = i;
			return 0;
		}
	}
	snprintf(mistake->text, sizeof(mistake->text), "no %s '%.64s'", key->name, text);
	mistake->names[0] = '\0';
	for (size_t i = 0; (name = valid_name(key, s, i)); i++)
		add_name(mistake->names, sizeof(mistake->names), name);
	return -EINVAL;
}

/* ---- values ---- */

static int parse_number(const struct sim_key *key, const char *text, uint64_t *ret,
			struct inifile_mistake *mistake)
{
	char min[UNIT_TEXT], max[UNIT_TEXT];
	const char *wrong = unit_parse(key->unit, text, ret);

	if (wrong) {
		snprintf(mistake->text, sizeof(mistake->text), "'%.64s' %s", text, wrong);
		return -EINVAL;
	}
	if (*ret >= key->min && *ret <= key->max)
		return 0;
	snprintf(mistake->text, sizeof(mistake->text), "%s is %s to %s, not %.64s", key->name,
		 unit_text(key->unit, key->min, min), unit_text(key->unit, key->max, max), text);
	return -EINVAL;
}

static int parse_detect(const struct sim_key *key, const char *text, uint64_t *ret,
			struct inifile_mistake *mistake)
{
	if (!strncmp(text, SIM_LOOK, strlen(SIM_LOOK)))
		return parse_number(key, text + strlen(SIM_LOOK), ret, mistake);
	if (strcmp(text, "watch") && strcmp(text, "trap")) {
		snprintf(mistake->text, sizeof(mistake->text),
			 "'%.64s' is neither watch nor trap, nor as look:5ms", text);
		return -EINVAL;
	}
	*ret = text[0] == 'w' ? SIM_DETECT_WATCH : SIM_DETECT_TRAP;
	return 0;
}

int sim_key_parse(const struct sim_key *key, const struct sim_scenario *s, const char *text,
		  uint64_t *ret, struct inifile_mistake *mistake)
{
	switch (key->kind) {
	case SIM_KEY_ANNOUNCE:
		if (!strcmp(text, "none") || !strcmp(text, "submission")) {
			*ret = text[0] == 'n' ? SIM_NOT_ANNOUNCED : 0;
			return 0;
		}
		return parse_number(key, text, ret, mistake);
	case SIM_KEY_DETECT:
		return parse_detect(key, text, ret, mistake);
	case SIM_KEY_NUMBER:
		return parse_number(key, text, ret, mistake);
	case SIM_KEY_TEXT:
		snprintf(mistake->text, sizeof(mistake->text), "%s is no number", key->name);
		return -EINVAL;
	default:
		return find_name(key, s, text, ret, mistake);
	}
}

void sim_key_store(const struct sim_key *key, void *object, uint64_t value)
{
	void *field = (char *)object + key->offset;

	switch (key->size) {
	case sizeof(uint8_t):
		*(uint8_t *)field = (uint8_t)value;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)field = (uint32_t)value;
		break;
	default:
		*(uint64_t *)field = value;
		break;
	}
}

static bool is_text(const struct sim_key *key)
{
	return key->kind >= SIM_KEY_TEXT;
}

int sim_key_set(const struct sim_key *key, const struct sim_scenario *s, void *object,
		const char *text, struct inifile_mistake *mistake)
{
	uint64_t value;
	int r;

	if (key->kind == SIM_KEY_TEXT && strlen(text) >= key->size) {
		snprintf(mistake->text, sizeof(mistake->text), "%s is at most %zu characters",
			 key->name, key->size - 1);
		return -EINVAL;
	}
	if (key->kind != SIM_KEY_TEXT) {
		r = sim_key_parse(key, s, text, &value, mistake);
		if (r < 0)
			return r;
	}
	if (is_text(key))
		snprintf((char *)object + key->offset, key->size, "%s", text);
	else
		sim_key_store(key, object, value);
	return 0;
}
