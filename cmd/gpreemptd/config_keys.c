/* SPDX-License-Identifier: MIT */
/* Every key there is, with its bounds. */
#include <stddef.h>

#include "cmd/gpreemptd/config_internal.h"
#include "util/macros.h"

#define DURATION(key, field, low, high) \
	{ \
		key, CONFIG_U64, UNIT_DURATION, offsetof(struct config, field), low, high \
	}
#define COUNT(key, field, low, high) \
	{ \
		key, CONFIG_U32, UNIT_COUNT, offsetof(struct config, field), low, high \
	}
#define SHARE(key, field) \
	{ \
		key, CONFIG_U32, UNIT_SHARE, offsetof(struct config, field), 0, 1000 \
	}
#define OTHER(key, type, field) \
	{ \
		.name = key, .kind = type, .offset = offsetof(struct config, field) \
	}

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

static const struct config_key observe_keys[] = {
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
	{ "group", CONFIG_NAME, UNIT_COUNT, offsetof(struct config, group), 0,
	  sizeof(((struct config *)0)->group) },
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
	SECTION("observe", observe_keys),
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

#define RULE(key, type, field) \
	{ \
		.name = key, .kind = type, .offset = offsetof(struct rule, field) \
	}
#define RULE_NUMBER(key, type, unit, field, low, high, classes) \
	{ \
		key, type, unit, offsetof(struct rule, field), low, high, classes \
	}

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
	RULE_NUMBER("priority", CONFIG_U8, UNIT_COUNT, verdict.priority, 0, UINT8_MAX, 0),
	{ "latency_critical", CONFIG_BOOL, UNIT_COUNT, offsetof(struct rule, verdict.critical), 0,
	  0, CONFIG_ONLY_ONLINE },
	RULE_NUMBER("target", CONFIG_U64, UNIT_DURATION, verdict.target_ns, 1 * US, 60 * S,
		    CONFIG_ONLY_ONLINE),
	{ "gang", CONFIG_NAME, UNIT_COUNT, offsetof(struct rule, verdict.gang), 0,
	  sizeof(((struct verdict *)0)->gang), CONFIG_ONLY_OFFLINE },
	RULE_NUMBER("weight", CONFIG_U32, UNIT_COUNT, verdict.weight, 1, 1000, CONFIG_ONLY_OFFLINE),
	RULE_NUMBER("minimum", CONFIG_U32, UNIT_SHARE, verdict.min_permille, 0, 1000,
		    CONFIG_ONLY_OFFLINE),
	RULE_NUMBER("longest_wait", CONFIG_U64, UNIT_DURATION, verdict.wait_bound_ns, 10 * MS,
		    60 * S, CONFIG_ONLY_OFFLINE),
	RULE("lazy", CONFIG_BOOL, verdict.lazy),
	RULE("auto_deactivate", CONFIG_BOOL, verdict.auto_deactivate),
};

const struct config_section config_rule = SECTION("rule NAME", rule_keys);
