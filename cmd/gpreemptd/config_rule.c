/* SPDX-License-Identifier: MIT */
/* Does a rule make sense as a whole? */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"

/* A key that says nothing of this class was meant for another. */
static const char *idle_key(const struct rule *rule, uint64_t keys)
{
	for (size_t i = 0; i < config_rule.n; i++) {
		unsigned int classes = config_rule.keys[i].classes;

		if ((keys & (1ull << i)) && classes && !(classes & (1u << rule->verdict.job_class)))
			return config_rule.keys[i].name;
	}
	return NULL;
}

static int wrong_rule(struct config_reader *r, unsigned int line, const char *text,
		      const char *hint)
{
	config_hint(r, "%s", hint);
	r->hint_line = line;
	return inifile_wrong_line(r->ini, line, "%s", text);
}

int config_check_rule(struct config_reader *r, const struct rule *rule, uint64_t keys,
		      unsigned int line)
{
	const struct config_key *class = config_find_key(&config_rule, "class");
	const char *key = idle_key(rule, keys);
	char text[120];

	if (!(keys & 1ull << (class - config_rule.keys)))
		return wrong_rule(r, line, "the rule gives no class",
				  "class = online, offline or none");
	if (!rule_is_trusted(rule) && !rule->command && !rule->path && !rule->variable)
		return wrong_rule(r, line, "the rule matches nobody",
				  "say whom: user, uid, group, cgroup, container, command, path, "
				  "environment");
	if (rule->verdict.job_class == JOB_ONLINE && !rule_is_trusted(rule))
		return wrong_rule(
			r, line, "anybody could make this match, and so preempt everybody else",
			"an online rule also needs user, uid, group, cgroup or container");
	if (!key)
		return 0;
	snprintf(text, sizeof(text), "'%s' says nothing about a job of this class", key);
	return wrong_rule(r, line, text, "");
}
