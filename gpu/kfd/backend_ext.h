/* SPDX-License-Identifier: MIT */
/*
 * The backend's acting half on level K3, through the driver's extension (gpu/kfd/ext.h).
 *
 * Nobody is traced and a target costs nothing: one worker makes the calls, which may wait for the
 * hardware. What waits for it is done together: of each target its first order, suspends and
 * resumes in one call that cycles each GPU once. Orders of one turn of the owner are kept until
 * ext_submit(), so that the worker does not begin with the first of them.
 *
 * A hold is the driver's for HOLD_NS at most and the worker renews it, so nobody is held for longer
 * than that by a process that is stopped or dead.
 */
#ifndef GPREEMPT_GPU_KFD_BACKEND_EXT_H
#define GPREEMPT_GPU_KFD_BACKEND_EXT_H

#include "gpu/helpers/borrow.h"
#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/ext.h"

#define HOLD_NS NSEC_PER_SEC
#define NEVER_NS UINT64_MAX

/* What is held of a process: one queue, or all on a GPU or on any, also those to come. */
struct scope {
	uint32_t queue; /* or KFD_GPREEMPT_ALL_QUEUES */
	uint32_t gpu; /* or KFD_GPREEMPT_ANY_GPU */
};

struct gpu_target {
	struct target_base base; /* but for ended, the owner's */
	bool holds; /* atomic: something of it is off */
	struct readers_task borrow; /* of its descriptors of the driver */
	struct order_list early; /* orders that wait for that, the attach first */

	/* the worker's */
	LIST_ENTRY(gpu_target) tied; /* while it is attached */
	bool attached;
	int refused; /* -errno of the attach, or of its end */
	struct gkfd_failure refusal;
	int pidfd; /* -1: there is none */
	uint64_t start_ticks;
	int fds[READER_FDS]; /* the driver's, of the process; or -1 */
	uint32_t n_fds;
	int borrow_error; /* why there are none */
	uint64_t round; /* in which an order of it was seen */
	struct scope *scopes;
	size_t n_scopes;
	uint64_t until_ns; /* then it is let go */
	bool exact; /* who lost it is told, and a queue that is gone is not forgotten in silence */
	uint64_t driver_ns; /* then the driver lets it go, if nobody renews that */
	uint64_t renew_ns; /* when to, if until_ns is later */
	uint32_t entry, n_entries; /* of the order that is run: its part of the call */
};

struct ext {
	struct backend *b;
	uint32_t max_entries;
	uint32_t flags; /* of every batch */
	bool borrows; /* the right to a process is proved by a descriptor of its own */
	struct borrow_request wanted; /* for that: of the driver */
	pthread_t thread;
	bool started;
	int wake_fd;
	uint64_t owner_ns; /* atomic: the owner is well until then */
	struct order_list kept; /* the owner's: of this turn */

	pthread_mutex_t lock; /* of what follows */
	struct order_list orders;
	bool stop;
	uint64_t ticks_asked, ticks_done;
	pthread_cond_t ticked;

	/* the worker's */
	struct order_list queue;
	LIST_HEAD(, gpu_target) tied;
	size_t n_tied, room; /* of polls */
	struct pollfd *polls;
	struct kfd_gpreempt_entry *entries; /* max_entries */
	uint64_t round;
};

/* ---- backend_ext.c: the owner's side ---- */

/* -ENODEV: the driver has no extension; others as gkfd_ext_open() says. */
int ext_new(struct backend *b, struct ext **ret);
void ext_free(struct ext *x); /* lets everybody go, waiting for it; accepts NULL */
bool ext_spares_others(const struct ext *x); /* only who is held leaves the GPU */

extern const struct acting acting_by_ext;
void ext_submit(struct gpu_backend *base);
extern const struct gpu_native_ops ext_native_ops; /* backend_native.c */
bool ext_holds(struct gpu_target *t);
int ext_held(struct gpu_target *t, uint32_t *ret, size_t max);
void ext_tick(struct gpu_backend *base);
void ext_promise(struct gpu_backend *base, uint64_t until_ns);

/* ---- backend_ext_work.c: the worker ---- */

int ext_work_start(struct ext *x);
void ext_work_stop(struct ext *x); /* and waits for it */
void ext_work_wake(struct ext *x);

/* The rest is the worker's own. */

/* In words that it failed. */
void ext_explain(struct order *o, int r, const struct gkfd_failure *failure);
void ext_finish(struct order *o); /* hands it back */
/* It is attached no more, by itself; nothing of it is held. */
void ext_lost(struct gpu_target *t, int r, const struct gkfd_failure *failure);
void ext_untie(struct gpu_target *t);

/* ---- backend_ext_batch.c: orders that are done together ---- */

/* Takes from the queue what can be; false: nothing. */
bool ext_batch_take(struct ext *x, struct order_list *ret);
void ext_batch_run(struct ext *x, struct order_list *batch);

struct ext_call { /* of the driver: the first n_unmap of ext.entries, and the n_map that follow */
	uint32_t n_unmap, n_map;
	uint64_t hold_ns; /* for the former, as the next */
	uint32_t grace_kclk; /* 0: the least there is */
	int r; /* out: -errno when nothing was tried; else what became of it is in the entries */
	uint64_t began_ns, done_ns, took_ns; /* out */
};

void ext_call(struct ext *x, struct ext_call *c);
/* For how long the driver is asked to hold what is to be held until then. */
uint64_t ext_hold_ns(const struct ext *x, uint64_t until_ns, uint64_t now_ns);
/* Why an entry of it failed; returns the -errno for it. */
int ext_explain_entry(struct gpu_target *t, const struct kfd_gpreempt_entry *e, int r,
		      struct gkfd_failure *fail);
/* One call has one time for all: may these go together? */
bool ext_lasts_alike(uint64_t a_ns, uint64_t b_ns);
void ext_note_hold(struct gpu_target *t, const struct ext_call *c);

/* ---- backend_ext_renew.c: what the worker does without orders ---- */

/* Renews what the driver would let go too early, forgets what it has let go; when next. */
uint64_t ext_renew(struct ext *x);
void ext_let_all_go(struct ext *x);

/* ---- backend_ext_scope.c: what is held of a target ---- */

/* Memory for what ext_scopes_add() of the same needs. -ENOMEM; -E2BIG: more than @max. */
int ext_scopes_reserve(struct gpu_target *t, const struct gpu_hold *what, size_t max);
void ext_scopes_add(struct gpu_target *t, const struct gpu_hold *what);
/* Maybe: of what is held of a GPU as a whole, nobody has said which queues are on it. */
bool ext_scopes_has(const struct gpu_target *t, uint32_t queue);
/*
 * What is to be mapped for a resume is written to @ret and is held no more. How many, at most as
 * many as it names, or one for all; or -errno: nothing has changed. -E2BIG: more than @max.
 */
int ext_scopes_remove(struct gpu_target *t, const struct gpu_hold *what,
		      struct kfd_gpreempt_entry *ret, size_t max);
void ext_scopes_clear(struct gpu_target *t);
/* One entry for each of them; how many. */
uint32_t ext_scopes_fill(const struct gpu_target *t, struct kfd_gpreempt_entry *ret);

#endif
