/* SPDX-License-Identifier: MIT */
/*
 * Level K3 behind the library's calls: processes held through the driver's extension. Nobody is
 * traced and no guard is needed: what is held comes back by itself when this process ends, and
 * soon after it has stopped, because the driver is told to hold for a short time only and then
 * again and again. That is what the keeper does: a thread, or, where time is made up, whoever
 * waits.
 */
#ifndef GPREEMPT_LIB_EXT_H
#define GPREEMPT_LIB_EXT_H

#include "gpu/kfd/ext.h"
#include "lib/internal.h"

/* How long a hold lasts that nobody renews: a guard would not wait longer either. */
#define EXT_HOLD_NS GUARD_SILENCE_NS

/* All but poll_fd is to be touched between ext_enter() and ext_leave(). */
struct ext_attached {
	LIST_ENTRY(ext_attached) link;
	pid_t pid;
	uint64_t start_ticks;
	int pidfd; /* -1: the device's processes are not the kernel's */
	int over_fd;
	int poll_fd; /* readable when one of those is */
	int error; /* it is over, and this and failure say why; 0: it is not */
	struct gkfd_failure failure;
	struct kfd_gpreempt_entry *entries; /* what is held, or is to be; NULL: nothing */
	uint32_t n_entries;
	bool holds;
	uint64_t until_ns; /* let go then; UINT64_MAX: not by itself */
	uint64_t renew_at_ns;
	uint64_t lapses_ns; /* the driver lets go then, unless it is renewed */
};

extern const struct process_ops ext_process;

/* Whether processes can be attached to so. */
bool ext_is_usable(struct gpreempt_ctx *ctx);

/* ---- ext_keeper.c ---- */

int ext_keeper_new(struct gkfd *k, struct ext_keeper **ret);
/* Nothing may be attached any more. Accepts NULL. */
void ext_keeper_free(struct ext_keeper *k);
/* The owner promises to call this again within @allow_ns; what it holds is let go otherwise. */
void ext_beat(struct ext_keeper *k, uint64_t allow_ns);
/* Where there is no thread: called at least every GUARD_BEAT_NS of the device's time. */
void ext_tick(struct ext_keeper *k);

void ext_enter(struct ext_keeper *k);
void ext_leave(struct ext_keeper *k);

/* Between those two. */
void ext_add(struct ext_keeper *k, struct ext_attached *a);
void ext_remove(struct ext_attached *a); /* lets go of nothing */
/* Before the first hold: there is somebody to renew it. */
int ext_keep(struct ext_keeper *k);
/* For how long to ask the driver, now, for a hold until @until_ns; 0: it should not be held. */
uint32_t ext_hold_ms(struct ext_keeper *k, uint64_t until_ns);
/* The driver was asked at @asked_ns to hold it for @hold_ms. */
void ext_note_held(struct ext_keeper *k, struct ext_attached *a, uint64_t asked_ns,
		   uint32_t hold_ms);
/* Nothing of it is held any more. */
void ext_note_free(struct ext_attached *a);
/* 0, or why it is over, also if nobody has noticed yet. */
int ext_check(struct ext_keeper *k, struct ext_attached *a);
void ext_give_up(struct ext_attached *a, int error, const struct gkfd_failure *failure);

/* ---- ext_suspend.c ---- */

int ext_suspend(struct gpreempt_process *const *procs, size_t n, const uint32_t *ids, size_t n_ids,
		const struct gpreempt_suspend_options *options, struct gpreempt_timing *timing);
int ext_resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing);
bool ext_holds(const struct gpreempt_process *p);
int ext_held(const struct gpreempt_process *p, uint32_t *ret, size_t max);

/* ---- ext_snapshot.c ---- */

int ext_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n);

#endif
