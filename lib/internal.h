/* SPDX-License-Identifier: MIT */
/* What the files of the library share. Nothing here is exported. */
#ifndef GPREEMPT_LIB_INTERNAL_H
#define GPREEMPT_LIB_INTERNAL_H

#include <poll.h>
#include <sys/queue.h>

#include "gpreempt/daemon.h"
#include "gpu/driver.h"
#include "gpu/guard.h"
#include "gpu/kfd/ext.h"
#include "gpu/kfd/kfd.h"
#include "gpu/kfd/match.h"
#include "gpu/kfd/own.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/topology.h"
#include "gpu/nvrm/machine.h"
#include "gpu/why.h"
#include "util/macros.h"

#define MAX_WAYS 3
#define EXPORT __attribute__((visibility("default")))

struct vendor;

struct gpreempt_process {
	LIST_ENTRY(gpreempt_process) link;
	struct gpreempt_ctx *ctx;
	struct gpu_backend *b;
	struct gpu_target *target;
	pid_t pid;
	bool look_only;
	bool waits; /* for the end of what was asked, */
	struct gpu_done done; /* which came to this */
	int over; /* it is attached no more, and this and over_why say why; 0: it is */
	struct gpu_why over_why;
	int over_fd; /* readable when it is over */
	int poll_fd; /* that, and what the backend has to say */
	struct gkfd_mqds mqds; /* of this process, sorted; read again when its queues change */
	bool mqds_read;
};

struct gpreempt_ctx {
	unsigned int refs;
	const struct gpu_driver *driver; /* NULL: none has been taken */
	void *data; /* the driver's */
	const struct vendor *vendor;
	struct gkfd *k; /* the same data; NULL: it is another vendor's */
	struct nvrm *nvrm; /* the same */
	unsigned int has; /* enum gpreempt_ability */
	bool modelled; /* its times are nobody's hardware's */
	bool alone; /* on a model of its own, which is nobody else's */
	struct nvrm_version nvrm_version;
	struct nvrm_finder *nvrm_finder; /* since processes were asked for first */
	/*
	 * By way to hold, since the first attachment by it; behind them the same without a guard,
	 * for those who only look and stop nobody by that.
	 */
	struct gpu_backend *backends[2 * MAX_WAYS];
	struct gpreempt_error last;
	struct gkfd_topology topology; /* read once */
	bool topology_read;
	struct guard *guard; /* since the first attachment that may suspend */
	bool promised; /* gpreempt_keepalive() was called */
	int slot; /* the caller's, while it promised and something is held; -1 */
	LIST_HEAD(, gpreempt_process) processes;
	struct gkfd_own own; /* gpreempt_suspend_own() */
	struct gpreempt_daemon *daemon; /* since the first hint */
};

/* ---- error.c ---- */

/* Notes a failure and returns @r. @hint may be NULL. */
int error_note(struct gpreempt_error *e, int r, enum gpreempt_error_kind kind, const char *hint,
	       const char *fmt, ...) _printf_(5, 6);
#define ctx_fail(ctx, ...) error_note(&(ctx)->last, __VA_ARGS__)
/* To a caller, who has no way to hear that the size of *ret makes no sense. @ret may be NULL. */
void error_tell(const struct gpreempt_error *e, struct gpreempt_error *ret);
/* For a step that failed with nothing to add to errno. */
int ctx_fail_errno(struct gpreempt_ctx *ctx, int r, const char *what);
int ctx_fail_why(struct gpreempt_ctx *ctx, int r, const struct gpu_why *why);
int ctx_fail_target(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct gkfd_failure *f);
void ctx_clear_error(struct gpreempt_ctx *ctx);

/* ---- ctx.c ---- */

struct gpreempt_ctx *ctx_new(void); /* of no device yet; NULL: no memory */
int ctx_take(struct gpreempt_ctx *ctx, const struct gpu_driver *driver, void *data);
/* The one at this place of ctx->backends; notes its failure. @level as in struct gpu_way. */
int ctx_open_backend(struct gpreempt_ctx *ctx, unsigned int slot, const char *level, bool guarded,
		     struct gpu_backend **ret);
/* Opens /dev/kfd once. */
int ctx_open_device(struct gpreempt_ctx *ctx);
pid_t ctx_own_pid(const struct gpreempt_ctx *ctx); /* as the device knows this process */
int ctx_topology(struct gpreempt_ctx *ctx, const struct gkfd_topology **ret);
/* Around calls that wait for the hardware: the owner cannot beat meanwhile. */
void ctx_call_begin(struct gpreempt_ctx *ctx);
void ctx_call_end(struct gpreempt_ctx *ctx);

/*
 * ---- array.c: structs of callers with other ideas of their size ----
 *
 * @first: the size up to the last field the struct had in the first version with it. What is
 * shorter was never a struct of ours: somebody forgot its size, and what he meant would be lost.
 */

#define UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

struct out_array {
	char *base;
	size_t stride, max, n;
};

/* The caller's size makes no sense, or leaves entries unaligned: -EINVAL, noted in *e. */
int out_array_init(struct gpreempt_error *e, struct out_array *a, void *ret, size_t max,
		   size_t first);
/* Counts an entry, and copies what fits of it. @entry begins with its size. */
void out_array_add(struct out_array *a, const void *entry);
/* Has an array of the caller's filled: how many entries there are, or why there are none. */
typedef int (*out_fill_fn)(struct gpreempt_ctx *ctx, struct out_array *out);
int out_list(struct gpreempt_ctx *ctx, out_fill_fn fill, void *ret, size_t max, size_t first);
/* Whether there is a struct to be filled, before anything is done for it. @ret may be NULL. */
int out_check(struct gpreempt_error *e, const void *ret, size_t first);
/* One struct that was checked: its size says how much of @entry fits. @ret may be NULL. 0. */
int out_struct(void *ret, const void *entry);
/*
 * The caller's options over @defaults, which have their full size: fields it lacks stay, and all
 * of them where @given is NULL. -EINVAL, noted: its size makes no sense, or it has set fields that
 * are not known here, and what it wants by them would not be done.
 */
int in_struct(struct gpreempt_error *e, void *defaults, const void *given, size_t first);
/* The same of one entry of an array, whose first entry's size counts. */
int in_entry(struct gpreempt_error *e, void *defaults, const void *array, size_t i, size_t first);

/* ---- what differs between vendors and ways ---- */

/* What only people ask a driver, and how its backends are opened. */
struct vendor {
	unsigned int has; /* enum gpreempt_ability */
	int (*begin)(struct gpreempt_ctx *ctx); /* on ctx->data; notes its failure */
	void (*end)(struct gpreempt_ctx *ctx); /* nothing is attached any more */
	/* For GPREEMPT_ATTACH_*; notes its failure. */
	int (*open_backend)(struct gpreempt_ctx *ctx, unsigned int flags, struct gpu_backend **ret);
	/*
	 * For plain_snapshot() and what is beside it: the queues of a process, to be freed, and
	 * whether it may have others; and who it is.
	 */
	int (*look)(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue **ret, size_t *ret_n,
		    bool *ret_hidden);
	int (*identify)(struct gpreempt_ctx *ctx, pid_t pid, struct gkfd_proc_ident *ret);
	/* All queues with everything known; *ret is the caller's to free. */
	int (*snapshot)(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n);
	/* What a suspension left in the save areas of the queues it took. NULL: nobody knows. */
	void (*saved)(struct gpreempt_process *p, struct gpreempt_timing *t);
	/* Of all GPUs so far, where times are modelled. NULL: nobody knows. */
	uint64_t (*save_ns)(struct gpreempt_ctx *ctx);
	uint64_t (*now_ns)(struct gpreempt_ctx *ctx);
	/* As ppoll(2): how many of @fds are ready, or -errno. */
	int (*wait)(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t ns);

	int (*device_info)(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info);
	out_fill_fn gpus;
	out_fill_fn levels;
	/* NULL: there is none. */
	int (*self_test)(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret);
	out_fill_fn processes;
	/* @only_idle: with GPREEMPT_HAS_PROGRESS only. */
	int (*queues)(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
		      bool only_idle, struct out_array *out);

	/* Pids that gpreempt_release() of all concerns; *ret is the caller's to free. */
	int (*list)(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n);
	/* 1: let go; 0: nothing to let go of, or, unless it was @named, none of ours. */
	int (*release)(struct gpreempt_ctx *ctx, pid_t pid, bool named);
};

#define level_reason(level, ...) snprintf((level)->reason, sizeof((level)->reason), __VA_ARGS__)

extern const struct vendor vendor_amd, vendor_nvidia;

/* ---- plain.c: a driver that has nothing but its backend, and what others have from there ---- */

extern const struct vendor vendor_plain;
int plain_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t ns);
int plain_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n);
int plain_processes(struct gpreempt_ctx *ctx, struct out_array *out);
int plain_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
		 bool only_idle, struct out_array *out);

/* 0, or -EOPNOTSUPP: "NVIDIA's driver has no WHAT". */
int ctx_needs(struct gpreempt_ctx *ctx, unsigned int ability, const char *what, const char *hint);

/* ---- of AMD's driver, behind vendor_amd ---- */

int amd_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n);
void amd_saved(struct gpreempt_process *p, struct gpreempt_timing *t);
int amd_processes(struct gpreempt_ctx *ctx, struct out_array *out);
int amd_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter, bool only_idle,
	       struct out_array *out);

/* ---- process.c ---- */

int ctx_start_guard(struct gpreempt_ctx *ctx);
/* @r: of the call that began something, or notes why it did not. */
int process_begun(struct gpreempt_process *p, int r, const char *what);
/*
 * Until what was asked of all of them, which are of one backend, is done. Where somebody stands
 * still the guard ends it.
 */
void process_await(struct gpreempt_process *const *procs, size_t n);
int process_fail(struct gpreempt_process *p); /* notes why that came to nothing */
/* 0, or why it is attached no more. */
int process_check(struct gpreempt_process *p);
/* Takes what backend @b has to say of the processes attached by it. */
void process_hear(struct gpreempt_ctx *ctx, struct gpu_backend *b);
/* The caller is well for so long. */
void backends_promise(struct gpreempt_ctx *ctx, uint64_t allow_ns);
void backends_tick(struct gpreempt_ctx *ctx); /* time that is made up has moved on */
void backends_close(struct gpreempt_ctx *ctx); /* nothing may be attached any more */

/* ---- model.c ---- */

uint64_t model_save_ns(struct gpreempt_ctx *ctx); /* also of a software GPU */

/* ---- processes.c: going through the processes of the machine without touching them ---- */

/* As they stand together by process. SDMA entries are dropped. */
int mqds_read(struct gpreempt_ctx *ctx, struct gkfd_mqds *ret);
/*
 * What one more compute queue makes of the class of its process, which begins as offline. @known:
 * its priority.
 */
enum gpreempt_class class_with(enum gpreempt_class so_far, bool known, uint32_t priority);
/* @n_compute: the compute queues it has, which all must be among @mqds. */
enum gpreempt_class mqds_class(const struct gkfd_mqd *mqds, size_t n, size_t n_compute);

/* @mqds is empty where debugfs cannot be read. A negative answer ends the walk. */
typedef int (*proc_visitor)(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
			    const struct gkfd_mqds *mqds, void *user);

int for_each_proc(struct gpreempt_ctx *ctx, proc_visitor visit, void *user);
enum gpreempt_class proc_class(const struct gkfd_mqds *mqds, const struct gkfd_proc *proc);
size_t proc_compute_queues(const struct gkfd_proc *proc);
void info_add_gpu(struct gpreempt_process_info *info, uint32_t gpu_id);
/* @kept: "held", "traced", ...; NULL: it is as /proc has it. */
void info_identify(struct gpreempt_process_info *info, const struct gkfd_proc_ident *ident,
		   const char *kept);

/* ---- queues.c ---- */

/* What is known of the queues of a process, for which @ret has room. */
int queues_of_proc(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
		   const struct gkfd_mqds *mqds, struct gpreempt_queue *ret);

/* ---- snapshot.c ---- */

/* Sizes are given per XCC; without their number the whole is not known. */
void describe_cwsr(struct gpreempt_ctx *ctx, struct gpreempt_queue *q, uint64_t base,
		   uint32_t per_xcc);
/*
 * What can be told from the memory of the process; @queues with their addresses. Memory that cannot
 * be read tells nothing, which is not a failure.
 */
int describe_progress(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue *queues, size_t n);
/* Notes which of the queues the caller holds. -ENOMEM. */
int snapshot_mark_held(struct gpreempt_process *p, struct gpreempt_queue *queues, size_t n);

/* ---- suspend.c ---- */

bool process_holds(const struct gpreempt_process *p);
/* Ids of what is off, ascending; *ret is the caller's to free. How many, or -ENOMEM. */
int process_held(const struct gpreempt_process *p, uint32_t **ret);
int suspend_check_timing(struct gpreempt_ctx *ctx, const struct gpreempt_timing *ret);
int suspend_options(struct gpreempt_ctx *ctx, struct gpreempt_suspend_options *ret,
		    const struct gpreempt_suspend_options *given);
/* ---- analyse.c: statistics over samples ---- */

struct tally { /* sorted by key */
	struct gpreempt_count *counts;
	size_t n, room;
};

struct analysis {
	uint64_t samples, queues;
	uint32_t min, max;
	struct tally ids, gpus, types;
};

int analysis_add(struct analysis *a, const struct gpreempt_queue *queues, size_t n);
void analysis_stats(const struct analysis *a, struct gpreempt_stats *ret);
void analysis_done(struct analysis *a);

#endif
