/* SPDX-License-Identifier: MIT */
/* What cases are made of. Each is one function; what it says is what the driver answered. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_CASE_H
#define GPREEMPT_TESTS_CONFORMANCE_CASE_H

#include "tests/conformance/world.h"

#define NEW KFD_EC_MASK(EC_QUEUE_NEW)
#define DELETED KFD_EC_MASK(EC_DEVICE_QUEUE_DELETE)
#define RUNTIME KFD_EC_MASK(EC_PROCESS_RUNTIME)
#define NO_ID 77u /* no case makes so many queues */
#define BAD_POINTER 8u
#define GRACE_DEFAULT 0xffffffffu

struct conformance_case { /* a table of them ends with a NULL name */
	const char *name;
	void (*run)(struct world *w);
};

/* ---- processes ---- */

struct actor *actor(struct world *w, const char *name); /* root's */
struct actor *actor_of(struct world *w, const char *name, uid_t uid);
struct actor *kfd_actor(struct world *w, const char *name); /* has the device open */
struct actor *forked(struct actor *parent, const char *name);
void exec_self(struct actor *a);
void kill_actor(struct actor *a);
void end_thread(struct actor *a);
struct who me(struct actor *a); /* its leader */
struct who second(struct actor *a); /* its other thread */
int open_kfd(struct actor *a);
int seize(struct who by, struct actor *a);
int detach(struct who by, struct actor *a);

/* ---- calls ---- */

/* @arg may lie anywhere; what it points to must be in the arena. */
int call(struct who who, unsigned long request, void *arg);
int call_on(struct who who, struct actor *owner, unsigned long request, void *arg);
int call_raw(struct who who, unsigned long request, void *arg); /* @arg as it is */
int later(struct who who); /* the result of a call that blocked, or BLOCKED */
void interrupt(struct who who);

/* "0", "3", "-EINVAL", "blocked". A few at a time can be used. */
const char *text_of(int r);
const char *ids_text(const uint32_t *ids, size_t n);

/*
 * "WHAT r ..." and what is to be seen after the call that gave @r. (Not for one say(): which of
 * its arguments is evaluated first is not defined.)
 */
void say_active(const char *what, int r, struct who owner, uint32_t n);
void say_ids(struct world *w, const char *what, int r, const uint32_t *ids, size_t n);
void say_events(struct world *w, const char *what, int r);

/* ---- queues ---- */

int acquire_vm(struct actor *a); /* on all GPUs: the driver crashes over targets without one */
uint64_t map_memory(struct actor *a, size_t bytes, const char *name);
/* Buffers as they must be for a queue of @type, and the arguments that name them. */
struct kfd_ioctl_create_queue_args queue_args(struct actor *a, uint32_t type);
struct kfd_ioctl_create_queue_args queue_args_on(struct actor *a, uint32_t gpu, uint32_t type);
void own_area(struct actor *a); /* the next queue shares its save area with none before it */
int create_queue(struct actor *a, struct kfd_ioctl_create_queue_args *args);
uint32_t add_queue(struct actor *a, uint32_t type); /* that must work; its id */
void add_queues(struct actor *a, uint32_t n); /* AQL */
uint32_t add_queue_on(struct actor *a, uint32_t gpu, uint32_t type);
int destroy_queue(struct who who, uint32_t id);
/* "1" for each queue 0..n-1 that the scheduler may run, "0" for one it may not, "-" for none. */
const char *active(struct who owner, uint32_t n);
uint32_t gpu_id(struct world *w); /* of the first */
void find_gpus(struct world *w);
uint32_t node_property(struct world *w, const char *name);
uint32_t gfx_version(struct world *w); /* 90402 */
bool is_mes(struct world *w);

/* ---- what calls cost: how often the scheduler took everything off, or what MES moved ---- */

struct meter {
	struct world *w;
	struct scheduler_work before[WORLD_GPUS];
};
struct meter meter(struct world *w);
void say_cost(struct meter *m, const char *what, int r); /* on each GPU, since the last time */

/* ---- debugging ---- */

int runtime(struct who who, uint32_t mode);
int dbg(struct who by, pid_t pid, uint32_t op, struct kfd_ioctl_dbg_trap_args *args);
int dbg_plain(struct who by, struct actor *target, uint32_t op); /* all arguments 0 */
int enable(struct who by, struct actor *target, uint64_t mask);
int enable_info(struct who by, struct actor *target, uint64_t mask, struct kfd_runtime_info *ret);
int disable(struct who by, struct actor *target);
int suspend(struct who by, struct actor *target, uint32_t *ids, uint32_t n, uint32_t grace);
int resume(struct who by, struct actor *target, uint32_t *ids, uint32_t n);
int resume_all(struct who by, struct actor *target);
int snapshot(struct who by, struct actor *target, uint64_t clear); /* how many, or an error */
int send_runtime(struct who by, struct actor *target);
int query_event(struct who by, struct actor *target, uint64_t clear,
		struct kfd_ioctl_dbg_trap_query_debug_event_args *ret);
int dots(struct world *w); /* what came through the first pipe since the last time */

/* A running process with @n acknowledged queues, and who debugs it. */
struct session {
	struct actor *target, *debugger;
	uint32_t *ids; /* room for 64, in the arena */
};
struct session attached(struct world *w, uint32_t n);
struct session attached_unacknowledged(struct world *w, uint32_t n);

#endif
