/* SPDX-License-Identifier: MIT */
/* From the text of a value to the field it is for. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"
#include "util/macros.h"
#include "wire/wire.h"

#define CONTAINER_MIN 12u
#define CONTAINER_MAX 64u

static int set_number(struct config_reader *r, const struct config_key *key, const char *text,
		      void *field)
{
	char low[UNIT_TEXT], high[UNIT_TEXT];
	uint64_t value = 0;
	const char *wrong = unit_parse(key->unit, text, &value);

	if (wrong)
		return inifile_wrong(r->ini, text, "'%.40s' %s", text, wrong);
	if (value < key->min || value > key->max) {
		config_hint(r, "%s may be from %s to %s", key->name,
			    unit_text(key->unit, key->min, low),
			    unit_text(key->unit, key->max, high));
		return inifile_wrong(r->ini, text, "'%.40s' is out of range", text);
	}
	if (key->size == sizeof(uint8_t))
		*(uint8_t *)field = (uint8_t)value;
	else if (key->size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)value;
	else
		*(uint64_t *)field = value;
	return 0;
}

static int set_bool(struct config_reader *r, const char *text, bool *field)
{
	if (strcmp(text, "yes") && strcmp(text, "no"))
		return inifile_wrong(r->ini, text, "'%.40s' is neither yes nor no", text);
	*field = !strcmp(text, "yes");
	return 0;
}

void config_policies(char *ret, size_t size, const char *between)
{
	size_t n = 0;

	for (const struct gpol_ops *const *p = gpol_all; *p && n < size; p++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? between : "", (*p)->name);
}

static int set_policy(struct config_reader *r, const char *text, const struct gpol_ops **field)
{
	const struct gpol_ops *policy = gpol_find(text);
	char names[96];

	if (policy) {
		*field = policy;
		return 0;
	}
	config_policies(names, sizeof(names), ", ");
	config_hint(r, "there are %s", names);
	return inifile_wrong(r->ini, text, "there is no policy '%.40s'", text);
}

static int set_log_level(struct config_reader *r, const char *text, enum log_level *field)
{
	static const char *const levels[] = {
		[LOG_LEVEL_ERROR] = "error",
		[LOG_LEVEL_WARNING] = "warning",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_DEBUG] = "debug",
	};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		if (!levels[i] || strcmp(text, levels[i]))
			continue;
		*field = (enum log_level)i;
		return 0;
	}
	config_hint(r, "levels are error, warning, info and debug");
	return inifile_wrong(r->ini, text, "there is no level '%.40s'", text);
}

static int set_class(struct config_reader *r, const struct config_key *key, const char *text,
		     struct verdict *verdict)
{
	uint32_t job_class;
	int error = wire_class_parse(text, &job_class);

	if (error == 0 && job_class == JOB_ONLINE && key->kind == CONFIG_DEFAULT_CLASS) {
		config_hint(r,
			    "it would let every user of the machine preempt; write a [rule NAME]");
		return inifile_wrong(r->ini, text, "nobody is online by default");
	}
	if (error < 0) {
		config_hint(r, "classes are %s",
			    key->kind == CONFIG_CLASS ? "online, offline and none" :
							"offline and none");
		return inifile_wrong(r->ini, text, "there is no class '%.40s'", text);
	}
	verdict->job_class = (enum job_class)job_class;
	return 0;
}

static int set_text(const char *text, char **field)
{
	free(*field);
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

static int set_container(struct config_reader *r, const char *text, char **field)
{
	size_t len = strlen(text);

	if (len < CONTAINER_MIN || len > CONTAINER_MAX || strspn(text, "0123456789abcdef") != len) {
		config_hint(r, "its first %u hexadecimal digits or more", CONTAINER_MIN);
		return inifile_wrong(r->ini, text, "'%.70s' is not the id of a container", text);
	}
	return set_text(text, field);
}

static int set_name(struct config_reader *r, const struct config_key *key, const char *text,
		    char *field)
{
	if (strlen(text) >= key->size)
		return inifile_wrong(r->ini, text, "'%.40s...' is longer than %u characters", text,
				     (unsigned int)key->size - 1);
	if (text[strcspn(text, " \t")])
		return inifile_wrong(r->ini, text, "'%.40s' has a blank in it", text);
	memset(field, 0, key->size);
	memcpy(field, text, strlen(text));
	return 0;
}

static int set_user(struct config_reader *r, const struct config_key *key, const char *text,
		    struct rule *rule)
{
	const struct passwd *user;
	uint64_t uid = 0;

	if (rule->has_uid)
		return inifile_wrong(r->ini, text, "a rule has one user: 'user' or 'uid'");
	if (key->kind == CONFIG_UID) {
		if (unit_parse(UNIT_COUNT, text, &uid) || uid > key->max)
			return inifile_wrong(r->ini, text, "'%.40s' is not the number of a user",
					     text);
	} else {
		user = getpwnam(text);
		if (!user) {
			config_hint(r, "where users come from the network, say 'uid'");
			return inifile_wrong(r->ini, text, "there is no user '%.40s'", text);
		}
		uid = user->pw_uid;
	}
	rule->has_uid = true;
	rule->uid = (uid_t)uid;
	return 0;
}

static int set_group(struct config_reader *r, const char *text, struct rule *rule)
{
	const struct group *group = getgrnam(text);
	uint64_t gid = 0;

	if (!unit_parse(UNIT_COUNT, text, &gid) && gid < UINT32_MAX) {
		rule->gid = (gid_t)gid;
	} else if (group) {
		rule->gid = group->gr_gid;
	} else {
		return inifile_wrong(r->ini, text, "there is no group '%.40s'", text);
	}
	rule->has_gid = true;
	return 0;
}

static int set_environment(struct config_reader *r, const char *text, struct rule *rule)
{
	size_t n = strcspn(text, "=");
	int error;

	if (n == 0 || text[n] != '=' || memchr(text, ' ', n)) {
		config_hint(r, "such as environment = SLURM_JOB_PARTITION=batch*");
		return inifile_wrong(r->ini, text, "'%.60s' is not NAME=PATTERN", text);
	}
	error = set_text(text, &rule->variable);
	if (error < 0)
		return error;
	rule->variable[n] = '\0';
	return set_text(text + n + 1, &rule->value);
}

int config_set(struct config_reader *r, const struct config_key *key, const char *value,
	       void *object)
{
	void *field = (char *)object + key->offset;

	if (!*value)
		return inifile_wrong(r->ini, value, "'%s' has no value", key->name);
	switch (key->kind) {
	case CONFIG_NUMBER:
		return set_number(r, key, value, field);
	case CONFIG_BOOL:
		return set_bool(r, value, field);
	case CONFIG_POLICY:
		return set_policy(r, value, field);
	case CONFIG_LOG_LEVEL:
		return set_log_level(r, value, field);
	case CONFIG_NAME:
		return set_name(r, key, value, field);
	case CONFIG_TEXT:
		return set_text(value, field);
	case CONFIG_CONTAINER:
		return set_container(r, value, field);
	case CONFIG_DEFAULT_CLASS:
	case CONFIG_CLASS:
		return set_class(r, key, value, field);
	case CONFIG_USER:
	case CONFIG_UID:
		return set_user(r, key, value, object);
	case CONFIG_GROUP:
		return set_group(r, value, object);
	case CONFIG_ENVIRONMENT:
		return set_environment(r, value, object);
	}
	return -EINVAL;
}
