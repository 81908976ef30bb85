/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/rules.h"

#include <string.h>

#include "util/macros.h"

#define CONTAINER_DIGITS_MIN 12 /* what tools print */

/* ---- patterns, of administrators, against texts of anybody ---- */

/* Only the last '*' is ever tried again: no text takes longer than its length times ours. */
static bool match_bytes(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL, *retry = NULL, *end = text + len;

	while (text < end) {
		bool escaped = *pattern == '\\' && pattern[1];

		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (escaped ? pattern[1] == *text : *pattern == '?' || *pattern == *text) {
			pattern += escaped ? 2 : 1;
			text++;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	pattern += strspn(pattern, "*");
	return !*pattern;
}

bool match_glob(const char *pattern, const char *text)
{
	return match_bytes(pattern, text, strlen(text));
}

bool match_cgroup(const char *pattern, const char *cgroup)
{
	_cleanup_free_ char *trimmed = NULL;
	size_t len = strlen(pattern);

	while (len > 1 && pattern[len - 1] == '/')
		len--;
	if (len == 1 && *pattern == '/')
		return true;
	trimmed = strndup(pattern, len);
	if (!trimmed)
		return false;
	for (const char *end = cgroup + strlen(cgroup); end > cgroup;) {
		if (match_bytes(trimmed, cgroup, (size_t)(end - cgroup)))
			return true;
		end = memrchr(cgroup, '/', (size_t)(end - cgroup));
		if (!end)
			return false;
	}
	return false;
}

bool match_container(const char *id, const char *container)
{
	size_t len = strlen(id);

	return len >= CONTAINER_DIGITS_MIN && !strncmp(id, container, len);
}

/* ---- rules ---- */

bool rule_is_trusted(const struct rule *rule)
{
	return rule->has_uid || rule->has_gid || rule->cgroup || rule->container;
}

/*
 * systemd gives user@UID.service to the user: "Delegate=" of that unit. What is below it, and what
 * it looks like, is up to them.
 */
size_t cgroup_trusted_bytes(const char *cgroup)
{
	static const char manager[] = "/user@";
	const char *at = strstr(cgroup, manager);

	return at ? strlen(manager) + (size_t)(at - cgroup) + strcspn(at + strlen(manager), "/") :
		    strlen(cgroup);
}

static bool is_within(const char *pattern, const char *cgroup, bool trusted)
{
	_cleanup_free_ char *named = NULL;

	if (!trusted)
		return match_cgroup(pattern, cgroup);
	named = strndup(cgroup, cgroup_trusted_bytes(cgroup));
	return named && match_cgroup(pattern, named);
}

/*
 * Of any hierarchy: where there are several, whoever made the cgroup may have made it in one only,
 * as Slurm does, and systemd has the process in another.
 */
bool identity_is_in_cgroup(const struct identity *id, const char *pattern, bool trusted)
{
	if (id->cgroup && is_within(pattern, id->cgroup, trusted))
		return true;
	for (const char *at = id->cgroups; at && *at; at += strlen(at) + 1) {
		if (is_within(pattern, at, trusted))
			return true;
	}
	return false;
}

bool identity_is_in_container(const struct identity *id, const char *digits, bool trusted)
{
	if (trusted && id->cgroup && id->cgroup[cgroup_trusted_bytes(id->cgroup)])
		return false;
	return id->cgroup && match_container(digits, id->container);
}

/* A rule that raises sees only what the system named. */
static bool matches_group(const struct rule *rule, const struct identity *id)
{
	bool raises = rule->verdict.job_class == JOB_ONLINE && !rule->has_uid && !rule->has_gid;

	if (rule->cgroup && !identity_is_in_cgroup(id, rule->cgroup, raises))
		return false;
	return !rule->container || identity_is_in_container(id, rule->container, raises);
}

/* By the short name, which any program may give itself, or by all of its arguments. */
static bool matches_command(const struct rule *rule, const struct identity *id)
{
	if (!rule->command || match_glob(rule->command, id->stat.comm))
		return true;
	return id->command && match_glob(rule->command, id->command);
}

static bool matches_environment(const struct rule *rule, const struct identity *id)
{
	size_t len;

	if (!rule->variable)
		return true;
	len = strlen(rule->variable);
	for (const char *at = id->environment; at && *at; at += strlen(at) + 1) {
		if (!strncmp(at, rule->variable, len) && at[len] == '=')
			return match_glob(rule->value, at + len + 1);
	}
	return false;
}

static bool rule_matches(const struct rule *rule, const struct identity *id)
{
	if (!rule_is_trusted(rule) && !rule->command && !rule->path && !rule->variable)
		return false;
	if (rule->has_uid && rule->uid != id->uid)
		return false;
	if (rule->has_gid && rule->gid != id->gid)
		return false;
	if (!matches_group(rule, id) || !matches_command(rule, id))
		return false;
	if (rule->path && !(id->path && match_glob(rule->path, id->path)))
		return false;
	return matches_environment(rule, id);
}

void rules_judge(const struct rules *rules, const struct identity *id, struct verdict *ret)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rules[i];

		if (rule->verdict.job_class == JOB_ONLINE && !rule_is_trusted(rule))
			continue;
		if (rule_matches(rule, id)) {
			*ret = rule->verdict;
			return;
		}
	}
	*ret = rules->fallback;
}

static void rule_done(struct rule *rule)
{
	free(rule->cgroup);
	free(rule->container);
	free(rule->command);
	free(rule->path);
	free(rule->variable);
	free(rule->value);
}

void rules_done(struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_done(&rules->rules[i]);
	free(rules->rules);
	rules->rules = NULL;
	rules->n = 0;
}
