/* SPDX-License-Identifier: MIT */
/*
 * The software device in real time: its clock is CLOCK_MONOTONIC. Who comes in finds it advanced to
 * now; a driver call that waits for modelled hardware returns when that time has passed, while
 * others go on. All its times are modelled nevertheless.
 *
 * Inside such a call the model has run ahead by what the call takes, and whoever comes in meanwhile
 * finds what will be at its end.
 *
 * Real processes may be on it (model_proc_start() with their pids): /proc is the machine's own, but
 * for processes the model invented.
 */
#ifndef GPREEMPT_GPU_MODEL_LIVE_H
#define GPREEMPT_GPU_MODEL_LIVE_H

#include "gpu/model/model.h"

struct live;

/* SPEC as of model_new_empty(); this process is on it under its own pid, as root would be. */
int live_new(const char *spec, struct live **ret, char **ret_why);
void live_unref(struct live *l); /* accepts NULL */

/* What gkfd_new() takes with it: a reference, which the transport's close gives back. */
extern const struct gkfd_transport gkfd_transport_live;
void *live_transport(struct live *l);

/*
 * Readable after live_notify(), and, while anybody expects something (live_expect), whenever the
 * model has something to do. With nobody waiting it does that when somebody next comes in.
 */
int live_fd(const struct live *l);
/* With the lock: so many more, or fewer, pieces of work are waited for. */
void live_expect(struct live *l, int64_t more);
/* The model as it is now; everybody else waits until it is given back. Do not block meanwhile. */
struct model *live_lock(struct live *l);
void live_unlock(struct live *l);
/* By whoever has the lock, also from within the model: live_fd() is to turn readable. */
void live_notify(struct live *l);
/* To be called with the lock when live_fd() was readable: it no longer is. */
void live_hush(struct live *l);

#endif
