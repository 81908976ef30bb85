/* SPDX-License-Identifier: MIT */
/* Every key there is, with its bounds. */
#include <stddef.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"
#include "util/macros.h"

/* What follows the field are the members of struct config_key behind its size. */
#define KEY(object, key, type, field, ...) \
	{ \
		.name = key, .kind = type, .offset = offsetof(struct object, field), \
		.size = sizeof(((struct object *)0)->field), ##__VA_ARGS__ \
	}
#define OTHER(key, type, field) KEY(config, key, type, field)
#define NUMBER(key, field, unit, low, high) \
	KEY(config, key, CONFIG_NUMBER, field, 0, unit, low, high)
#define DURATION(key, field, low, high) NUMBER(key, field, UNIT_DURATION, low, high)
#define COUNT(key, field, low, high) NUMBER(key, field, UNIT_COUNT, low, high)
#define SHARE(key, field) NUMBER(key, field, UNIT_SHARE, 0, 1000)
#define RULE(key, type, field, ...) KEY(rule, key, type, field, ##__VA_ARGS__)

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define S NSEC_PER_SEC

static const struct config_key policy_keys[] = {
	OTHER("name", CONFIG_POLICY, engine.policy),
	DURATION("linger", engine.params.linger_ns, 0, 1 * S),
	DURATION("turn", engine.params.turn_ns, 1 * MS, 60 * S),
	DURATION("ceiling", engine.params.ceiling_ns, 0, 60 * S),
	DURATION("margin", engine.params.margin_ns, 0, 1 * S),
};

static const struct config_key look_keys[] = {
	OTHER("watch", CONFIG_BOOL, watch),
	NUMBER("cpu", look_permille, UNIT_SHARE, 1, 1000),
	DURATION("interval", engine.interval_ns, 100 * US, 1 * S),
	DURATION("critical_interval", engine.critical_interval_ns, 100 * US, 1 * S),
	DURATION("idle_interval", engine.idle_interval_ns, 1 * MS, 10 * S),
	DURATION("scan", scan_ns, 10 * MS, 60 * S),
};

static const struct config_key hold_keys[] = {
	DURATION("longest", engine.hold_max_ns, 10 * MS, 60 * S),
	DURATION("min_run", engine.min_run_ns, 0, 10 * S),
	DURATION("attach_age", attach_age_ns, 0, 3600 * S),
	COUNT("cycles_per_second", engine.cycles_per_s, 0, 100000),
};

static const struct config_key slots_keys[] = {
	OTHER("ration", CONFIG_BOOL, ration_slots),
	SHARE("online", engine.online_permille),
	SHARE("offline", engine.offline_permille),
	COUNT("low_water", engine.low_water, 0, 1024),
	DURATION("turn", engine.slot_turn_ns, 1 * MS, 60 * S),
	DURATION("idle", engine.idle_queue_ns, 1 * MS, 60 * S),
};

static const struct config_key hint_keys[] = {
	DURATION("expires", engine.hint_ns, 100 * US, 1 * S),
};

static const struct config_key kernel_keys[] = {
	OTHER("scheduler", CONFIG_BOOL, kernel_scheduler),
};

static const struct config_key control_keys[] = {
	OTHER("group", CONFIG_NAME, group),
	COUNT("clients", clients, 1, 1024),
	COUNT("clients_per_user", clients_per_uid, 1, 1024),
	COUNT("requests_per_second", requests_per_s, 1, 1000000),
	OTHER("show_others", CONFIG_BOOL, show_others),
};

static const struct config_key metrics_keys[] = {
	DURATION("every", metrics_ns, 1 * S, 3600 * S),
};

static const struct config_key log_keys[] = {
	OTHER("level", CONFIG_LOG_LEVEL, log_level),
};

static const struct config_key default_keys[] = {
	OTHER("class", CONFIG_DEFAULT_CLASS, rules.fallback),
};

#define SECTION(name, keys) \
	{ \
		name, keys, ARRAY_SIZE(keys) \
	}

const struct config_section config_sections[] = {
	SECTION("policy", policy_keys),
	SECTION("look", look_keys),
	SECTION("hold", hold_keys),
	SECTION("slots", slots_keys),
	SECTION("hint", hint_keys),
	SECTION("kernel", kernel_keys),
	SECTION("control", control_keys),
	SECTION("metrics", metrics_keys),
	SECTION("log", log_keys),
	SECTION("default", default_keys),
	{ 0 },
};

static const struct config_key rule_keys[] = {
	{ .name = "user", .kind = CONFIG_USER },
	{ .name = "uid", .kind = CONFIG_UID, .max = UINT32_MAX - 1 },
	{ .name = "group", .kind = CONFIG_GROUP },
	RULE("cgroup", CONFIG_TEXT, cgroup),
	RULE("container", CONFIG_CONTAINER, container),
	RULE("command", CONFIG_TEXT, command),
	RULE("path", CONFIG_TEXT, path),
	{ .name = "environment", .kind = CONFIG_ENVIRONMENT },
	RULE("class", CONFIG_CLASS, verdict),
	RULE("priority", CONFIG_NUMBER, verdict.priority, 0, UNIT_COUNT, 0, UINT8_MAX),
	RULE("latency_critical", CONFIG_BOOL, verdict.critical, CONFIG_ONLY_ONLINE),
	RULE("target", CONFIG_NUMBER, verdict.target_ns, CONFIG_ONLY_ONLINE, UNIT_DURATION, 1 * US,
	     60 * S),
	RULE("gang", CONFIG_NAME, verdict.gang, CONFIG_ONLY_OFFLINE),
	RULE("weight", CONFIG_NUMBER, verdict.weight, CONFIG_ONLY_OFFLINE, UNIT_COUNT, 1, 1000),
	RULE("minimum", CONFIG_NUMBER, verdict.min_permille, CONFIG_ONLY_OFFLINE, UNIT_SHARE, 0,
	     1000),
	RULE("longest_wait", CONFIG_NUMBER, verdict.wait_bound_ns, CONFIG_ONLY_OFFLINE,
	     UNIT_DURATION, 10 * MS, 60 * S),
	RULE("lazy", CONFIG_BOOL, verdict.lazy),
	RULE("auto_deactivate", CONFIG_BOOL, verdict.auto_deactivate),
};

const struct config_section config_rule = SECTION("rule NAME", rule_keys);

const struct config_key *config_find_key(const struct config_section *section, const char *name)
{
	for (size_t i = 0; i < section->n; i++) {
		if (!strcmp(section->keys[i].name, name))
			return &section->keys[i];
	}
	return NULL;
}
