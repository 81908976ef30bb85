/* SPDX-License-Identifier: MIT */
/*
 * Acting on processes: the library as a client of gpu/backend.h that waits. Each way to hold
 * (levels) is a backend of its own, opened when the first process is attached by it.
 */
#ifndef GPREEMPT_LIB_ACT_H
#define GPREEMPT_LIB_ACT_H

#include "lib/internal.h"

/* Nothing may be attached any more. */
void backends_close(struct gpreempt_ctx *ctx);

/* Both note their failure. */
int process_attach(struct gpreempt_process *p);
void process_detach(struct gpreempt_process *p);
/* 0, or why it is attached no more. */
int process_check(struct gpreempt_process *p);

/* All of @procs, which are of one backend, or none. */
int process_suspend(struct gpreempt_process *const *procs, size_t n, const struct gpu_hold *hold,
		struct gpreempt_timing *timing);
int process_resume(struct gpreempt_process *const *procs, size_t n, struct gpreempt_timing *timing);

bool process_holds(const struct gpreempt_process *p);
/* Ids of what is off, ascending; *ret is the caller's to free. How many, or -ENOMEM. */
int process_held(const struct gpreempt_process *p, uint32_t **ret);

/* The caller is well for so long. */
void backends_promise(struct gpreempt_ctx *ctx, uint64_t allow_ns);
/* Time that is made up has moved on. */
void backends_tick(struct gpreempt_ctx *ctx);

#endif
