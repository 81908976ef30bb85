/* SPDX-License-Identifier: MIT */
/* A scheduler on a fake backend, in virtual time, and everything it told. */
#ifndef GPREEMPT_TESTS_DAEMON_RIG_H
#define GPREEMPT_TESTS_DAEMON_RIG_H

#include "cmd/gpreemptd/rules.h"
#include "cmd/gpreemptd/scheduler.h"
#include "tests/daemon/fake_backend.h"
#include "tests/daemon/fake_guard.h"
#include "util/macros.h"

#define MS NSEC_PER_MSEC
#define S NSEC_PER_SEC
#define USER 1000u

#define ONLINE_PID 100
#define OFFLINE_PID 200

struct rig {
	struct fake fake;
	struct guard guard;
	struct config config;
	struct rule rules[8];
	struct journal *journal;
	struct events *events;
	struct scheduler *s;
	char path[64];
	char run_dir[64];
	char cgroups[64]; /* in place of the folder of hierarchies; tests empty it */
	uint32_t told[GPREEMPT_EVENT_SEES + 1]; /* by kind */
	struct gpreempt_event last[GPREEMPT_EVENT_SEES + 1];
	uint64_t turns;
};

/*
 * Rules: cgroup /online makes online, /critical too and latency-critical, /none unmanaged, /gang
 * offline of one gang; the rest is offline. Classes are looked for every second, attached at once.
 */
struct rig *rig_new(size_t processes);
struct rig *rig_new_contexts(size_t processes); /* on GPUs that have no more than those */
void rig_kill_guard(struct rig *r);
void rig_free(struct rig *r);
/* Judges the run too: no faults, and no holds outlive their scheduler. */
void rig_end(struct rig *r);

void rig_run(struct rig *r, uint64_t ns);
void rig_turn(struct rig *r); /* one, now */
/* Runs until what the caller asks about is so; fails after a minute. */
#define rig_run_until(r, condition) \
	do { \
		for (int _i = 0; _i < 60000 && !(condition); _i++) \
			rig_run(r, MS); \
		assert_true(condition); \
	} while (0)

struct fake_process *rig_online(struct rig *r, pid_t pid, uint32_t gpu);
struct fake_process *rig_critical(struct rig *r, pid_t pid, uint32_t gpu);
struct fake_process *rig_offline(struct rig *r, pid_t pid, uint32_t gpu); /* with work */
/* One of each on GPU 1, and the offline one attached. */
void rig_pair(struct rig *r, struct fake_process **ret_online, struct fake_process **ret_offline);
/* And held, as there is online work. */
void rig_held(struct rig *r, struct fake_process **ret_online, struct fake_process **ret_offline);

bool rig_job(struct rig *r, pid_t pid, uint32_t gpu, struct gpreempt_daemon_job *ret);
struct class_request rig_request(uint32_t selector, pid_t pid, enum job_class job_class);

#endif
