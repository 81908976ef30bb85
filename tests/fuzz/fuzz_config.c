/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"
#include "tests/fuzz/fuzz.h"

/* Users and groups are asked for by name: not from a fuzzer, which would ask the machine's. */
struct passwd;
struct group;
struct passwd *getpwnam(const char *name);
struct group *getgrnam(const char *name);

struct passwd *getpwnam(const char *name)
{
	return NULL;
}

struct group *getgrnam(const char *name)
{
	return NULL;
}

/* The engine traps on what it was promised not to be given. */
static void check_engine(const struct engine_config *e)
{
	PROMISE(e->policy && e->hold_max_ns > 0);
	PROMISE(e->critical_interval_ns > 0 && e->critical_interval_ns <= e->interval_ns);
	PROMISE(e->interval_ns <= e->idle_interval_ns);
	PROMISE(e->online_permille + e->offline_permille <= 1000);
}

static void check_rule(const struct rule *rule)
{
	PROMISE(rule->name[0] && memchr(rule->name, '\0', sizeof(rule->name)));
	PROMISE(rule->verdict.job_class != JOB_ONLINE || rule_is_trusted(rule));
	PROMISE(!rule->variable == !rule->value);
	PROMISE(rule->verdict.weight >= 1);
}

static void check_config(struct config *c)
{
	struct identity id = { .stat = { .pid = 1, .comm = "a" }, .uid = 7 };
	struct verdict v;

	check_engine(&c->engine);
	PROMISE(c->clients >= c->clients_per_uid && c->clients_per_uid >= 1);
	PROMISE(c->scan_ns && c->metrics_ns && c->requests_per_s);
	PROMISE(c->rules.n <= CONFIG_MAX_RULES && c->rules.fallback.job_class != JOB_ONLINE);
	for (size_t i = 0; i < c->rules.n; i++)
		check_rule(&c->rules.rules[i]);
	rules_judge(&c->rules, &id, &v);
	PROMISE(v.source[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct config_mistake m = { 0 };
	struct config c;
	int r = config_parse((const char *)bytes, len, &c, &m);

	PROMISE(r == 0 || r == -EINVAL);
	if (r < 0) {
		PROMISE(m.line >= 0 && m.text[0]);
		PROMISE(memchr(m.text, '\0', sizeof(m.text)) &&
			memchr(m.hint, '\0', sizeof(m.hint)));
		return 0;
	}
	check_config(&c);
	config_done(&c);
	return 0;
}
