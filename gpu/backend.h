/* SPDX-License-Identifier: MIT */
/*
 * One table for every vendor's GPUs: who uses them, what waits in their queues, and taking a
 * process off them and back. What differs between vendors is told by gpu_caps, not by names.
 *
 * All calls come from one thread and none of them waits for a GPU or for a process: attach,
 * suspend, resume and release only begin, in the order they were asked for each target, and what
 * came of them is taken from take() when fd() is readable. So it is with asking and looking, which
 * a process can keep waiting for ever.
 */
#ifndef GPREEMPT_GPU_BACKEND_H
#define GPREEMPT_GPU_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/guard.h"
#include "gpu/helpers/proc_files.h"
#include "gpu/native.h"
#include "gpu/why.h"

#define GPU_ALL_QUEUES UINT32_MAX
#define GPU_NODES_MAX 64

struct gpu_backend; /* the implementation's own struct begins with this one */
struct gpu_watch; /* a process that is looked at; any class */
struct gpu_target; /* a process that can be held; online jobs only for their slices */

enum gpu_unit {
	GPU_UNIT_QUEUE, /* single queues can be held */
	GPU_UNIT_CONTEXT, /* a process on a GPU as a whole */
};

struct gpu_caps {
	const char *name; /* "kfd", "model", "nvrm" */
	const char *level; /* that holds are made by: "K2", ... */
	bool modelled; /* its times are nobody's hardware's */
	bool made_up_time; /* now_ns moves only when somebody moves it: ops->tick */
	enum gpu_unit unit;
	bool counts_progress; /* samples tell pending work; else only hints do */
	bool disturbs_all; /* a batch makes everybody on the GPU stand still for cycle_ns */
	bool outlives_owner; /* a hold is not ended by our death: somebody must undo it */
	bool slices; /* contexts can be given longer and shorter turns */
	bool attach_is_free; /* it stops nobody: no need to be sparing with it */
	bool schedules; /* the driver can do so itself: ops->native */
	uint64_t suspend_ns, resume_ns, cycle_ns; /* before anything was measured */
};

struct gpu_node {
	uint32_t gpu; /* the driver's id */
	uint32_t slots; /* hardware queue slots; 0: not known */
	char name[64];
};

/* One queue (or, where that is the unit, context) of a process. */
struct gpu_queue {
	uint32_t gpu;
	uint32_t queue; /* unique within the process */
	bool unseen; /* where its pointers are is not known yet */
};

enum gpu_state {
	GPU_IDLE,
	GPU_BUSY, /* something runs, or waits in the queue */
	GPU_UNKNOWN, /* nothing waits; whether the last thing still runs nobody can tell */
	GPU_UNSEEN, /* it cannot be looked at yet: read and write say nothing */
};

struct gpu_sample {
	uint32_t gpu, queue;
	uint64_t read, write; /* only grow, in one unit */
	enum gpu_state state;
};

/* Who is to be attached. */
struct gpu_attach {
	pid_t pid;
	/*
	 * Where a backend can tell before it touches anybody, it is -ESRCH if the process of that
	 * pid did not start then (ticks of /proc/PID/stat; 0: whenever).
	 */
	uint64_t start_ticks;
};

/* What is to be taken off the GPU. */
struct gpu_hold {
	const uint32_t *ids; /* NULL: all queues, also those created meanwhile */
	size_t n;
	uint64_t longest_ns; /* it comes back by itself so long after the call; 0: by a call only */
	uint32_t grace_kclk; /* thousand clocks for what runs, 1 to 255; 0: the least there is */
	/*
	 * These queues and no others, even where the unit is larger, and with all of them those
	 * that nobody waits for. Else what is best for who waits.
	 */
	bool exact;
};

struct gpu_effort {
	uint64_t helpers_ns; /* processor time of helpers */
	uint64_t traps; /* of the processes that are watched */
};

enum gpu_verb { GPU_ATTACH, GPU_SUSPEND, GPU_RESUME, GPU_RELEASE, GPU_ENDED, GPU_SLICE };

/* How long a context runs before another one that has work gets its turn. */
enum gpu_slice {
	GPU_SLICE_OWN, /* as it was */
	GPU_SLICE_SHORT, /* it leaves at once */
	GPU_SLICE_LONG, /* it stays until it is done */
};

/* What came of a call, or, with GPU_ENDED, of a target: it is no longer attached by itself. */
struct gpu_done {
	struct gpu_target *target; /* GPU_RELEASE: gone, to be compared only */
	uint64_t cookie; /* the caller's, of that call */
	enum gpu_verb verb;
	int result; /* 0 or -errno */
	bool gpu_failed; /* a preemption failed: leave gpu alone */
	uint32_t gpu; /* of the failure, 0: not known */
	uint64_t began_ns, done_ns; /* around the driver's call */
	uint64_t took_ns; /* by the driver's own measure; 0: it has none */
	uint32_t queues; /* suspended or resumed */
	bool holds; /* something of the target is off the GPU after it; of suspend and resume */
	struct gpu_why why; /* when result is not 0 */
};

struct gpu_ops {
	/* Resumes and releases everything, waiting for it, and forgets whom it watches. */
	void (*close)(struct gpu_backend *b);
	uint64_t (*now_ns)(struct gpu_backend *b);

	/* How many there are, of which @max at most are written. */
	int (*nodes)(struct gpu_backend *b, struct gpu_node *ret, size_t max);
	/* Pids of processes that use the GPUs, ascending; the same. Cheap: asked every scan. */
	int (*processes)(struct gpu_backend *b, pid_t *ret, size_t max);
	/*
	 * Whether processes() may tell of others than it did last: 1 or 0, for next to nothing, so
	 * that it can be asked at every turn. fd() is readable when it may have become so. -errno:
	 * nobody tells, only processes() does. NULL: the same.
	 */
	int (*came)(struct gpu_backend *b);
	/* The effective user of a process. -ESRCH. */
	int (*owner)(struct gpu_backend *b, pid_t pid, uid_t *ret);
	/*
	 * Asks for files of /proc (PROC_BITs), as the backend has them of its processes. The answer
	 * is taken from answer() at once, or after a take() when fd() is readable. -EALREADY: it
	 * was asked before and has not answered yet.
	 */
	int (*ask)(struct gpu_backend *b, pid_t pid, uint32_t files);
	bool (*answer)(struct gpu_backend *b, struct proc_files *ret); /* proc_files_done() it */
	/* Turns readable when @pid exits; the caller's to close. -ENOSYS: no way to tell. */
	int (*pidfd)(struct gpu_backend *b, pid_t pid);

	/* ---- looking; attaches to nobody ---- */

	int (*watch)(struct gpu_backend *b, pid_t pid, struct gpu_watch **ret);
	void (*unwatch)(struct gpu_watch *w); /* accepts NULL */
	/* Asks again which queues there are. 1: others than before; 0: the same; -ESRCH. */
	int (*refresh)(struct gpu_watch *w);
	/* Borrowed until the next refresh. */
	const struct gpu_queue *(*queues)(const struct gpu_watch *w, size_t *ret_n);
	/*
	 * Begins one look at the queues of each of these, and waits a short time for what it comes
	 * to. What takes longer makes fd() readable; until then that process is not looked at anew.
	 */
	void (*look)(struct gpu_backend *b, struct gpu_watch *const *watches, size_t n);
	/*
	 * What the look came to, told once: how many samples, one for each queue that can be looked
	 * at, or could if it were known where. Borrowed until the next look or refresh. -EAGAIN:
	 * it is still under way; -ECANCELED: none is, a refresh may have ended it. -ESRCH.
	 */
	int (*looked)(struct gpu_watch *w, const struct gpu_sample **ret);
	/*
	 * Why some of its queues cannot be looked at, for people; NULL: all can be. The same of
	 * everybody's, as far as it is known. Without these calls nothing can be in the way.
	 */
	const char *(*blind)(const struct gpu_watch *w);
	const char *(*problem)(struct gpu_backend *b);

	/* ---- being told at once; NULL, all of them: there is no way ---- */

	/*
	 * From here on, or no longer: whenever a look has found the process idle it is watched for
	 * its next work, of which alerted() tells once. What that costs the process is small, but
	 * not nothing.
	 */
	void (*alert)(struct gpu_watch *w, bool on);
	/*
	 * The next process that has submitted work since it was seen idle: its pid, and looked()
	 * tells of that without another look. 0: there is none.
	 */
	pid_t (*alerted)(struct gpu_backend *b);
	int (*alert_fd)(struct gpu_backend *b); /* readable when it has one; -1: none ever has */
	/*
	 * 1: it is watched now; 0: it is not yet, or has work, or was not asked for; -errno: it
	 * cannot be, and *ret_why says why, for people.
	 */
	int (*is_alert)(const struct gpu_watch *w, const char **ret_why);
	/* What looking and watching has cost so far. */
	void (*effort)(struct gpu_backend *b, struct gpu_effort *ret);

	/* ---- acting; each ends with a gpu_done ---- */

	/*
	 * *ret is there at once and may be asked for holds at once, which fail if it fails. Below
	 * 0: it was refused at once, and there is none; nothing will be told of it.
	 */
	int (*attach)(struct gpu_backend *b, const struct gpu_attach *request, uint64_t cookie,
		      struct gpu_target **ret);
	/* Takes queues off the GPU, in addition to those that are off. */
	int (*suspend)(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie);
	/* @ids NULL: everything. Of queues that are on, nothing happens. */
	int (*resume)(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie);
	/* Also of contexts it creates later. NULL: without caps.slices. */
	int (*slice)(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie);
	/* Resumes, gives slices back, detaches, frees; also of one that ended or was refused. */
	int (*release)(struct gpu_target *t, uint64_t cookie);
	/*
	 * Calls may be kept until this one, so that the driver gets what belongs together at once:
	 * to be called when there is no more to ask for now. NULL: none is kept.
	 */
	void (*submit)(struct gpu_backend *b);

	/* Something of it is off the GPU now, by us. */
	bool (*holds)(struct gpu_target *t);
	/* Which queues: how many, of which @max at most are written. NULL: where a way serves. */
	int (*held)(struct gpu_target *t, uint32_t *ret, size_t max);
	/*
	 * With caps.made_up_time, when that has moved on: does what has become due, and returns
	 * when that is done. NULL: nothing does.
	 */
	void (*tick)(struct gpu_backend *b);

	/*
	 * The owner is well until @until_ns, and says so again before: where no guard stands
	 * beside it, nothing is held beyond that. NULL: a guard does.
	 */
	void (*promise)(struct gpu_backend *b, uint64_t until_ns);

	int (*fd)(struct gpu_backend *b); /* readable while there is something to take */
	int (*take)(struct gpu_backend *b, struct gpu_done *ret); /* 1, or 0: nothing */

	const struct gpu_native_ops *native; /* NULL: without caps.schedules */
};

struct gpu_backend {
	const struct gpu_ops *ops;
	struct gpu_caps caps;
};

#endif
