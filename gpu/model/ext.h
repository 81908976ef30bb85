/* SPDX-License-Identifier: MIT */
/*
 * The extension of the driver (abi/kfd_gpreempt.h, kernel/ext), as the driver half has it when it
 * was asked for. A held queue has one more reason not to run, beside the driver's own.
 *
 *   ext.c        files, rights, who is asked for what, and what can be seen
 *   ext_batch.c  entries, their results, tickets
 *   ext_hold.c   whose a queue is, how long, the brake; making it true on hardware
 *   ext_scheduler.c  how the scheduler in the driver is spoken to
 *
 * Asynchronous batches are done when the call returns: virtual time has passed by then.
 */
#ifndef GPREEMPT_GPU_MODEL_EXT_H
#define GPREEMPT_GPU_MODEL_EXT_H

#include <stdio.h>

#include "abi/kfd_gpreempt.h"
#include "gpu/model/event.h"
#include "gpu/model/model.h"

struct hw_queue;
struct model_gpu;
struct model_kproc;
struct model_proc;
struct model_queue;

struct ext_hold {
	uint64_t owner; /* a file's number; 0: there is no hold */
	uint64_t until_ns;
};

/* Who may have one on a queue. A hold is a reason, and so is that the GPU is stopped. */
enum ext_holder { EXT_HOLDER, EXT_ITSELF, EXT_N_HOLDERS };
#define EXT_BY(holder) (1u << (holder))
#define EXT_BY_STOP EXT_BY(EXT_N_HOLDERS)

struct ext_queue { /* of every queue */
	uint32_t reasons; /* it may run when there is none */
	struct ext_hold holds[EXT_N_HOLDERS];
	pid_t by; /* who took it off last */
	uint32_t preemptions;
	uint64_t since_ns; /* off since; 0: on */
	uint64_t held_ns; /* before that */
	uint64_t last_latency_ns, max_latency_ns;
	uint64_t mark; /* of the change that it was part of last */
	uint32_t class; /* KFD_GPREEMPT_NO_CLASS: its process's */
	bool class_by_admin;
};

struct ext_class { /* of a KFD process; what else is said of it only the scheduler would read */
	uint32_t class; /* KFD_GPREEMPT_* */
	bool by_admin;
};

struct ext_scheduler { /* of a GPU */
	bool on;
	const char *policy;
	uint32_t interval_us, critical_interval_us, turn_ms, hold_max_ms;
	uint32_t online_permille, offline_permille, low_water;
};

struct ext_stop { /* of one file, for one GPU */
	uint32_t count;
	uint64_t until_ns;
};

struct ext_batch;

#define EXT_MAX_BOUND 1024u

struct ext_file {
	struct ext_file *next;
	struct model *m;
	uint64_t id; /* never used twice */
	pid_t pid; /* whose end closes it */
	struct model_kproc *own; /* of /dev/kfd: only this one's queues; else NULL */
	uint64_t bound[EXT_MAX_BOUND]; /* serials of KFD processes */
	size_t n_bound;
	struct ext_stop stops[MODEL_MAX_GPUS];
	struct ext_batch *tickets[KFD_GPREEMPT_MAX_TICKETS]; /* oldest first */
	uint32_t n_tickets;
	uint64_t last_ticket;
};

struct model_ext {
	struct ext_file *files;
	uint64_t next_file, next_mark;
	struct event expire; /* when the next hold or stop is over */
	bool expired; /* that came while somebody waited for the hardware */
	uint32_t waits; /* who does */
};

/* ---- ext.c ---- */

struct ext_call {
	struct model *m;
	unsigned int nr; /* _IOC_NR() of the request, by which one function is several calls */
	struct ext_file *file;
	struct model_proc *caller;
	struct model_kproc *target; /* of calls that name one process */
	uint64_t began_ns;
};

/* The call of a process on its own descriptor of /dev/kfd. */
int model_ext_own_ioctl(struct model *m, struct model_proc *caller, unsigned long request,
			void *arg);
bool model_ext_is_command(const struct model *m, unsigned int nr);
/* At its end, and when it becomes another program. */
void model_ext_close_files_of(struct model *m, pid_t pid);
/* The process an entry names. -ESRCH, -EPERM. */
int model_ext_target(const struct ext_call *c, uint32_t pid, uint64_t start_ticks,
		     struct model_kproc **ret);
void model_ext_fill_hqd(const struct model_gpu *gpu, struct kfd_gpreempt_hqd *ret);

/* ---- ext_hold.c ---- */

struct ext_change { /* of one GPU */
	struct model_gpu *gpu;
	uint64_t mark; /* no other change has it */
	uint64_t began_ns; /* of the call it is for */
	uint32_t grace;
	bool victims_wanted; /* leave others alone where that is possible */
	pid_t by;

	bool off, on; /* some queue left the run list; some came onto it */
	bool victims; /* others were left alone */
	bool cycled;
	uint64_t cycle_ns;
	int result;

	uint64_t asked_ns; /* the hardware; the rest is ext_hold.c's */
	struct hw_queue **leaving;
};

/* One for each GPU; all have the same mark. */
void model_ext_changes(struct model *m, struct ext_change changes[MODEL_MAX_GPUS], pid_t by);
/* All GPUs at the same time. The results are in the changes; queues to be off stay off. */
void model_ext_commit(struct model *m, struct ext_change changes[MODEL_MAX_GPUS]);

struct ext_item { /* of a batch */
	struct model_kproc *process; /* NULL: the result is there already */
	struct kfd_gpreempt_entry e; /* what was asked, and the results */
	bool map, matched;
};

struct ext_batch {
	enum ext_holder holder;
	uint64_t owner;
	uint64_t until_ns;
	struct kfd_gpreempt_collect told; /* but for where to */
	uint32_t n;
	struct ext_item items[];
};

/* What it wants of the queues of one GPU, noted in @c and in the items. */
void model_ext_apply(struct ext_batch *b, struct ext_change *c);
void model_ext_new_queue(struct model_queue *q); /* about to be active or not */
void model_ext_end_holds(struct model *m, uint64_t owner); /* of a file that is closed */
/* Ends what is over, unless somebody waits for the hardware: he will call this. */
void model_ext_expire(struct model *m);
bool model_ext_is_stopped(const struct model_gpu *gpu);
int model_ext_stop(struct ext_call *c, void *data); /* and START_SCHED */

/* ---- ext_batch.c ---- */
int model_ext_batch(struct ext_call *c, void *data); /* those of several entries */
int model_ext_one(struct ext_call *c, void *data);
int model_ext_collect(struct ext_call *c, void *data);
void model_ext_free_tickets(struct ext_file *f);

/* ---- ext_scheduler.c ---- */
extern const char *const model_ext_policies[]; /* ended by NULL */
int model_ext_monitor(struct ext_call *c, void *data);
int model_ext_reserve(struct ext_call *c, void *data);
int model_ext_class(struct ext_call *c, void *data);
int model_ext_policy(struct ext_call *c, void *data);
int model_ext_hint(struct ext_call *c, void *data);
bool model_ext_schedules(const struct model *m); /* it is on, on some GPU */
void model_ext_scheduler_on(struct model *m); /* on all, as it is by default */
void model_ext_print_state(const struct model *m, FILE *out); /* debugfs */

#endif
