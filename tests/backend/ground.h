/* SPDX-License-Identifier: MIT */
/*
 * What a backend is tried on: a machine with two jobs, and hands that can do to it what a test
 * needs. The cases know backends by gpu/backend.h only, and machines by this table only; a vendor
 * that fills it in has them all.
 */
#ifndef GPREEMPT_TESTS_BACKEND_GROUND_H
#define GPREEMPT_TESTS_BACKEND_GROUND_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/backend.h"
#include "util/macros.h"

enum ground_job { GROUND_A, GROUND_B, GROUND_JOBS }; /* both have work on one GPU */

struct ground {
	const struct ground_ops *ops;
	struct gpu_backend *b;
	void *own; /* the ground's */
	pid_t pid[GROUND_JOBS];
	uint32_t gpu; /* where they are */
	size_t fds, threads; /* that this process had before */
};

struct ground_ops {
	const char *name;
	uint32_t queues[GROUND_JOBS]; /* that a hold of all takes off */
	uint32_t grows; /* how many more those are after grow() */
	uint64_t long_ns; /* longer than the driver keeps a hold that nobody renews */
	/* Where it may differ; who sets one says why. */
	bool shared; /* a process may be attached twice */
	bool any_start; /* attach does not look at start_ticks */
	bool unnamed; /* a GPU that fails is not named */
	bool real_time; /* how late something is depends on the machine */

	void (*open)(struct ground *g); /* fills g */
	void (*close)(struct ground *g); /* the backend is closed: NULL */
	/* Lets time pass on the backend's clock. */
	void (*pass)(struct ground *g, uint64_t ns);
	/*
	 * The truth: how many queues of a job are off the GPU. It may lag behind what was told, as
	 * hardware does that loads queues when it comes to it.
	 */
	uint32_t (*off)(struct ground *g, enum ground_job job);
	/* How often the driver was made to take somebody off the GPU or to put him back. */
	uint64_t (*calls)(struct ground *g);
	void (*grow)(struct ground *g, enum ground_job job); /* a job creates a queue, or context */
	void (*end)(struct ground *g, enum ground_job job); /* its process exits */
	/* The next preemption of A fails. NULL: that cannot be had. */
	void (*break_gpu)(struct ground *g);
	/* Driver calls about A wait; until one does; they go on. NULL: the same. */
	void (*block)(struct ground *g);
	void (*await_blocked)(struct ground *g);
	void (*unblock)(struct ground *g);
	/* The truth about turns; NULL: without caps.slices. */
	enum gpu_slice (*slice)(struct ground *g, enum ground_job job);
};

extern const struct ground_ops *const grounds[]; /* of this program; ends with NULL */

/* ---- for the cases ---- */

int ground_setup(void **state); /* *state is a struct ground */
int ground_teardown(void **state); /* fails the test where something is left */
void ground_close_backend(struct ground *g);

const struct gpu_ops *ground_ops(const struct ground *g);
/* The next that is done, within some seconds; everything that was asked is submitted first. */
struct gpu_done ground_next(struct ground *g);
/* Lets time pass until there is something to take: nobody need notice at once. */
void ground_await_news(struct ground *g);
/* It must be this, of a target with nothing to say about the GPU. */
void ground_expect(struct ground *g, enum gpu_verb verb, int result, uint32_t queues);
bool ground_is_quiet(struct ground *g); /* nothing is to be taken, and fd() says so */

void ground_ask_attach(struct ground *g, pid_t pid, uint64_t start_ticks, uint64_t cookie,
		       struct gpu_target **ret);
struct gpu_target *ground_attach(struct ground *g, enum ground_job job); /* and waits */
/* Every hold of the cases is asked for here. */
void ground_suspend(struct ground *g, struct gpu_target *t, const uint32_t *ids, size_t n,
		    uint64_t longest_ns, uint64_t cookie);
void ground_hold(struct ground *g, struct gpu_target *t, enum ground_job job); /* and waits */
void ground_resume(struct ground *g, struct gpu_target *t, uint64_t cookie); /* of all */

/* Until so many queues of the job are off, twice: a cycle takes everybody off for a moment. */
void ground_await_off(struct ground *g, enum ground_job job, uint32_t n);
/* Asks again which queues there are until that is the answer. */
void ground_await_refresh(struct ground *g, struct gpu_watch *w, int answer);
struct gpu_watch *ground_watch(struct ground *g, enum ground_job job);

/* Of the job, by a watch; how many. */
size_t ground_queue_ids(struct ground *g, enum ground_job job, uint32_t *ret, size_t max);

#endif
