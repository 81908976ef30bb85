/* SPDX-License-Identifier: MIT */
#include "sim/keys.h"
#include "util/macros.h"

#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define NUMBER(text, type, member, of, least, most) \
	{ \
		.name = text, .kind = SIM_KEY_NUMBER, .unit = of, .min = least, .max = most, \
		FIELD(type, member) \
	}
#define CHOICE(text, type, member, words) \
	{ \
		.name = text, .kind = SIM_KEY_CHOICE, .choices = words, FIELD(type, member) \
	}

#define HOUR (3600 * NSEC_PER_SEC)
#define DURATION(text, type, member) NUMBER(text, type, member, UNIT_DURATION, 0, HOUR)
#define SHARE(text, type, member, least) NUMBER(text, type, member, UNIT_SHARE, least, 1000)
#define YES_NO(text, type, member) CHOICE(text, type, member, no_yes)
#define MAX_RATE 1000000000ull /* a million a second */

static const char *const no_yes[] = { "no", "yes", NULL };
static const char *const places[] = { "hbm", "host", NULL };
static const char *const classes[] = { "offline", "online", NULL };
static const char *const arrivals[] = { "periodic", "poisson", "trace", "continuous", NULL };

/* clang-format off */
#define S struct sim_scenario
const struct sim_key sim_scenario_keys[] = {
	{ .name = "title", .kind = SIM_KEY_TEXT, .required = true, FIELD(S, title) },
	{ .name = "chip", .kind = SIM_KEY_CHIP, FIELD(S, chip) },
	{ .name = "policy", .kind = SIM_KEY_POLICY, FIELD(S, policy) },
	{ .name = "costs", .kind = SIM_KEY_COSTS, FIELD(S, costs) },
	NUMBER("gpus", S, gpus, UNIT_COUNT, 1, SIM_MAX_GPUS),
	NUMBER("duration", S, duration_ns, UNIT_DURATION, NSEC_PER_MSEC, HOUR),
	CHOICE("save-area", S, save_in_host_memory, places),
	NUMBER("kernel-scale", S, kernel_permille, UNIT_SCALE, 1, 1000000),
	NUMBER("cycle", S, cycle_ns, UNIT_DURATION, 1, NSEC_PER_SEC),
	{ .name = "detect", .kind = SIM_KEY_DETECT, .unit = UNIT_DURATION,
	  .min = 10 * NSEC_PER_USEC, .max = NSEC_PER_SEC, FIELD(S, detect) },
	SHARE("online-slots", S, online_permille, 0),
	SHARE("offline-slots", S, offline_permille, 0),
	{ 0 },
};
#undef S

#define S struct gpol_params
const struct sim_key sim_params_keys[] = {
	DURATION("linger", S, linger_ns),
	NUMBER("turn", S, turn_ns, UNIT_DURATION, NSEC_PER_MSEC, HOUR),
	DURATION("ceiling", S, ceiling_ns),
	DURATION("margin", S, margin_ns),
	{ 0 },
};
#undef S

#define S struct sim_job
const struct sim_key sim_job_keys[] = {
	{ .name = "model", .kind = SIM_KEY_MODEL, .required = true, FIELD(S, model) },
	CHOICE("class", S, online, classes),
	NUMBER("priority", S, priority, UNIT_COUNT, 0, UINT8_MAX),
	NUMBER("copies", S, copies, UNIT_COUNT, 0, 100000),
	NUMBER("queues", S, queues, UNIT_COUNT, 1, 1000),
	NUMBER("gpu", S, gpu, UNIT_COUNT, 0, SIM_MAX_GPUS - 1),
	YES_NO("gang", S, gang),
	CHOICE("arrival", S, arrival, arrivals),
	NUMBER("rate", S, rate_mhz, UNIT_RATE, 1, MAX_RATE),
	DURATION("prepare", S, prepare_ns),
	{ .name = "announce", .kind = SIM_KEY_ANNOUNCE, .unit = UNIT_DURATION, .max = NSEC_PER_SEC,
	  FIELD(S, announce_ns) },
	DURATION("target", S, target_ns),
	DURATION("wait-bound", S, wait_bound_ns),
	NUMBER("weight", S, weight, UNIT_COUNT, 1, 1000000),
	SHARE("min-share", S, min_permille, 0),
	YES_NO("latency-critical", S, latency_critical),
	YES_NO("lazy", S, lazy),
	YES_NO("auto-deactivate", S, auto_deactivate),
	{ 0 },
};
#undef S

#define S struct sim_model
const struct sim_key sim_model_keys[] = {
	{ .name = "kernels", .kind = SIM_KEY_NUMBER, .required = true, .unit = UNIT_COUNT, .min = 1,
	  .max = 1000000, FIELD(S, kernels) },
	{ .name = "kernel", .kind = SIM_KEY_NUMBER, .required = true, .unit = UNIT_DURATION,
	  .max = 60 * NSEC_PER_SEC, FIELD(S, kernel_ns) },
	NUMBER("gap", S, gap_ns, UNIT_DURATION, 0, NSEC_PER_SEC),
	SHARE("occupancy", S, occupancy_permille, 1),
	DURATION("workgroup", S, workgroup_ns),
	SHARE("state", S, state_permille, 0),
	{ 0 },
};
#undef S

#define S struct sim_costs
const struct sim_key sim_costs_keys[] = {
	DURATION("call", S, call_ns),
	DURATION("cycle", S, cycle_ns),
	DURATION("trap", S, trap_ns),
	YES_NO("disturbs-all", S, disturbs_all),
	YES_NO("counts-progress", S, counts_progress),
	NUMBER("save", S, save_bytes, UNIT_BYTES, 0, 1ull << 40),
	NUMBER("host", S, host_bytes_per_s, UNIT_BYTES_PER_S, 0, 1000000000000000),
	DURATION("change", S, change_ns),
	DURATION("slice", S, slice_ns),
	DURATION("short-slice", S, short_slice_ns),
	DURATION("long-slice", S, long_slice_ns),
	{ 0 },
};
#undef S

#define S struct sim_detection
const struct sim_key sim_detection_keys[] = {
	DURATION("watch", S, watch_ns),
	DURATION("trap", S, trap_ns),
	DURATION("look", S, look_ns),
	SHARE("look-share", S, look_permille, 1),
	NUMBER("look-least", S, look_least_ns, UNIT_DURATION, NSEC_PER_USEC, NSEC_PER_SEC),
	{ 0 },
};
#undef S

#define S struct sim_bursts
const struct sim_key sim_bursts_keys[] = {
	NUMBER("length", S, length_ns, UNIT_DURATION, NSEC_PER_MSEC, HOUR),
	NUMBER("quiet-rate", S, quiet_rate_mhz, UNIT_RATE, 0, MAX_RATE),
	NUMBER("burst-rate", S, burst_rate_mhz, UNIT_RATE, 1, MAX_RATE),
	NUMBER("quiet", S, quiet_ns, UNIT_DURATION, NSEC_PER_MSEC, HOUR),
	NUMBER("burst", S, burst_ns, UNIT_DURATION, NSEC_PER_MSEC, HOUR),
	NUMBER("seed", S, seed, UNIT_COUNT, 0, UINT64_MAX),
	{ 0 },
};
#undef S
/* clang-format on */
