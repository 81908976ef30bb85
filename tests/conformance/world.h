/* SPDX-License-Identifier: MIT */
/*
 * What a case can do: start processes, let their threads call the driver, trace, kill, and read
 * the driver's files. One implementation asks the software device (world_model.c), one the real
 * driver with real processes (world_driver.c). A case cannot tell which.
 */
#ifndef GPREEMPT_TESTS_CONFORMANCE_WORLD_H
#define GPREEMPT_TESTS_CONFORMANCE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/kfd.h"
#include "gpu/kfd/transport.h"
#include "tests/conformance/normalise.h"
#include "util/macros.h"

#define MAX_ACTORS 8
#define ACTOR_THREADS 2
#define MAX_NAMES 2048
#define WORLD_PIPES 2
#define MAX_AREAS 64
#define WORLD_GPUS 2
#define WORK_MS 10 /* how long what submit() makes takes on the GPU */

/* A call that sleeps in the driver. */
#define BLOCKED (-4097)

struct world;
struct process; /* what world_driver.c knows of an actor */

struct buffers { /* that the queues of an actor on a GPU share; 0: the next gets its own */
	uint64_t pointers, eop, area;
};

struct actor { /* a process with two threads */
	struct world *w;
	char name[16];
	pid_t pid;
	pid_t tids[ACTOR_THREADS];
	uid_t uid;
	bool alive;
	uint64_t areas[MAX_AREAS]; /* save areas of its queues, by id */
	struct buffers buffers[WORLD_GPUS];
	struct process *process;
};

struct who { /* makes a call */
	struct actor *actor;
	int thread;
};

struct scheduler_work { /* ever since */
	uint32_t unmaps; /* of all queues at a time */
	uint32_t adds, removes; /* MES: queues, one at a time */
};

enum world_fault { FAULT_STUCK_QUEUE, FAULT_RESETTABLE_QUEUE, FAULT_DEAD_SCHEDULER };

struct world_ops {
	const char *name;

	/* Before and after each case; after stop() nothing is left of its processes. */
	int (*start)(struct world *w);
	void (*stop)(struct world *w);

	int (*spawn)(struct world *w, struct actor *a);
	int (*fork)(struct world *w, struct actor *parent, struct actor *child);
	int (*exec)(struct world *w, struct actor *a); /* itself again; the memory is new */
	void (*kill)(struct world *w, struct actor *a); /* returns when the driver is done too */
	void (*end_thread)(struct world *w, struct who who); /* not the leader */
	int (*seize)(struct world *w, struct who by, struct actor *a);
	int (*detach)(struct world *w, struct who by, struct actor *a);

	int (*open)(struct world *w, struct who who); /* /dev/kfd */
	/* On the descriptor @owner opened. @arg as it is. BLOCKED: see result(). */
	int (*ioctl)(struct world *w, struct who who, struct actor *owner, unsigned long request,
		     void *arg);
	int (*result)(struct world *w, struct who who); /* of a blocked call, or BLOCKED still */
	void (*signal)(struct world *w, struct who who);

	int (*acquire_vm)(struct world *w, struct actor *a, uint32_t gpu);
	/* For that GPU too; or 0. */
	uint64_t (*map)(struct world *w, struct actor *a, uint32_t gpu, size_t bytes);
	int (*peek)(struct world *w, struct actor *a, uint64_t va, void *buf, size_t len);
	int (*poke)(struct world *w, struct actor *a, uint64_t va, const void *buf, size_t len);

	int (*read_file)(struct world *w, enum gkfd_tree tree, const char *path, char **ret_text);
	int (*list_dir)(struct world *w, enum gkfd_tree tree, const char *path, char **ret_names);

	/* As the hardware counts it; what no call waits for is not counted. */
	void (*scheduler_work)(struct world *w, uint32_t gpu, struct scheduler_work *ret);

	/* @n dispatches, one after the other, by who owns the AQL queue @q. */
	void (*submit)(struct world *w, struct actor *a,
		       const struct kfd_ioctl_create_queue_args *q, uint32_t n);
	void (*pass)(struct world *w, uint32_t ms);
	/*
	 * From now on GPU 0 does not do what it is told: queue @id of @a, the only one on it, does
	 * not yield, and cannot or can be reset alone; or the scheduler takes no orders. Until it
	 * is reset, the GPU or the queue.
	 */
	void (*break_gpu)(struct world *w, enum world_fault fault, struct actor *a, uint32_t id);
	void (*await_reset)(struct world *w); /* of GPU 0, that was asked for */

	void (*free)(struct world *w);
};

struct world {
	const struct world_ops *ops;
	void *data; /* of the implementation */
	int arena_fd;
	char *arena;
	size_t arena_used;
	/* For debug events: every process has them under these numbers. Empty as a case begins. */
	int pipes[WORLD_PIPES][2];

	uint32_t gpu_ids[WORLD_GPUS];
	uint32_t n_gpus;
	char *properties; /* of the first GPU's node; they are all the same chip */
	const char *case_name;
	struct actor actors[MAX_ACTORS];
	size_t n_actors;
	struct name names[MAX_NAMES];
	size_t n_names;
	FILE *out;
};

/* @spec: "driver", or "model:CHIP" with CHIP as gfx942x4. -EINVAL: no such world. */
int world_open(const char *spec, bool old_rule, struct world *w);
void world_close(struct world *w);
int world_model_open(struct world *w, const char *chip, bool old_rule);
int world_driver_open(struct world *w);

int world_begin(struct world *w, const char *case_name);
void world_end(struct world *w);

/* Memory every process has at the same address; but for its begin zeroed for each case. */
#define ARENA_BYTES (8u << 20)
#define ARENA_FIXED 2048u /* not arena()'s: the world's own */
#define ARENA_ADDRESS 0x200000000000ull
void *arena(struct world *w, size_t bytes);
bool in_arena(const struct world *w, const void *p);

/* Lines say these instead of the numbers. */
void world_name(struct world *w, enum name_kind kind, uint64_t value, uint64_t bytes,
		const char *fmt, ...) _printf_(5, 6);

/* One line of the case: "name: text". */
void say(struct world *w, const char *fmt, ...) _printf_(2, 3);

/* A broken world, not a wrong answer: says why and ends the program. */
_Noreturn void broken(const char *fmt, ...) _printf_(1, 2);

#endif
