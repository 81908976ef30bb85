/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "gpu/kfd/failure.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "util/advice.h"
#include "util/macros.h"

#define NAME_MAX_LEN 64

int gkfd_fail(struct gkfd_failure *fail, int error, enum gkfd_why why, const char *step)
{
	*fail = (struct gkfd_failure){ .why = why, .step = step };
	return error;
}

int gkfd_fail_by(struct gkfd_failure *fail, int error, const struct gkfd_meaning *meanings,
		 const char *step)
{
	for (const struct gkfd_meaning *m = meanings; m->error; m++)
		if (m->error == error)
			return gkfd_fail(fail, m->told ? m->told : error, m->why, step);
	return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, step);
}

/* "4711 (python3)", or the bare number where the name is not known. */
static const char *name_process(struct gkfd *k, pid_t pid, char buf[NAME_MAX_LEN])
{
	struct gkfd_proc_ident ident;

	if (k && gkfd_proc_identify(k, pid, &ident) >= 0)
		snprintf(buf, NAME_MAX_LEN, "%d (%s)", (int)pid, ident.comm);
	else
		snprintf(buf, NAME_MAX_LEN, "%d", (int)pid);
	return buf;
}

static void say_no_process(struct gkfd *k, pid_t pid, struct gpu_why *ret)
{
	pid_t here = k ? gkfd_pid_from_container(k, pid) : 0;
	char hint[128] = "see what uses the GPU with: gpreempt list";

	if (here > 0)
		snprintf(hint, sizeof(hint), "a container's process %d is process %d here: use %d",
			 (int)pid, (int)here, (int)here);
	gpu_why_set(ret, GPU_WHY_ABSENT, hint, "there is no process %d", (int)pid);
}

static void say_no_kfd_process(struct gkfd *k, pid_t pid, struct gpu_why *ret)
{
	pid_t here = k ? gkfd_pid_from_container(k, pid) : 0;
	char hint[128] = "see what uses the GPU with: gpreempt list";
	char name[NAME_MAX_LEN];

	if (here > 0 && here != pid)
		snprintf(hint, sizeof(hint),
			 "if you meant process %d of a container, it is %d here", (int)pid,
			 (int)here);
	gpu_why_set(ret, GPU_WHY_ABSENT, hint, "process %s does not use the GPU driver",
		    name_process(k, pid, name));
}

/* 0 also where there is no Yama. */
static int yama_scope(struct gkfd *k)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_PROC, "sys/kernel/yama/ptrace_scope", &text, &len) < 0)
		return 0;
	return (int)strtol(text, NULL, 10);
}

static void say_no_right(struct gkfd *k, pid_t pid, struct gpu_why *ret)
{
	const char *hint = "needs the same user, or CAP_SYS_PTRACE; try sudo";
	struct gkfd_proc_ident ident;
	char name[NAME_MAX_LEN];

	if (k && gkfd_proc_identify(k, pid, &ident) >= 0 && ident.uid == geteuid() &&
	    yama_scope(k) > 0)
		hint = "it is yours, but kernel.yama.ptrace_scope forbids tracing it; try sudo";
	gpu_why_set(ret, GPU_WHY_REFUSED, hint, "no right to trace process %s",
		    name_process(k, pid, name));
}

static void say_traced(struct gkfd *k, pid_t pid, pid_t tracer, struct gpu_why *ret)
{
	char hint[64], name[NAME_MAX_LEN];
	pid_t holder = 0;

	if (tracer <= 0) {
		gpu_why_set(ret, GPU_WHY_REFUSED, "end that debugger first",
			    "process %d is already being debugged", (int)pid);
	} else if (k && gkfd_holder_of(k, tracer, &holder) == 1) {
		snprintf(hint, sizeof(hint), "end that hold with: gpreempt release %d", (int)pid);
		gpu_why_set(ret, GPU_WHY_REFUSED, hint, "process %d is already held by process %s",
			    (int)pid, name_process(k, holder, name));
	} else {
		gpu_why_set(ret, GPU_WHY_REFUSED, "end that debugger first",
			    "process %d is already being debugged by process %s", (int)pid,
			    name_process(k, tracer, name));
	}
}

/* Through the driver's extension, which knows by whom. */
static void say_held(struct gkfd *k, pid_t pid, pid_t holder, struct gpu_why *ret)
{
	char hint[64], name[NAME_MAX_LEN] = "that cannot be seen from here";

	snprintf(hint, sizeof(hint), "end that hold with: gpreempt release %d", (int)pid);
	if (holder > 0)
		name_process(k, holder, name);
	gpu_why_set(ret, GPU_WHY_REFUSED, hint, "process %d is already held by process %s",
		    (int)pid, name);
}

/* What is the same for every process and needs no look at anything. */
struct plain_failure {
	enum gkfd_why why;
	enum gpu_why_kind kind;
	const char *message; /* after "process N" */
	const char *hint;
};

static const struct plain_failure plain_failures[] = {
	{ GKFD_WHY_OWN_PROCESS, GPU_WHY_USAGE, "is the caller itself", "name another process" },
	{ GKFD_WHY_NO_DEBUG, GPU_WHY_REFUSED, "uses a GPU whose driver mode has no debug interface",
	  "see why with: gpreempt doctor" },
	{ GKFD_WHY_RUNTIME_TOO_OLD, GPU_WHY_REFUSED,
	  "has a runtime too old for K2: it never enabled debugging, which the driver wants",
	  "its ROCm runtime is too old (before 5.5), or it is still starting; run it with a newer "
	  "ROCm, or hold it with --level K1" },
	{ GKFD_WHY_RUNTIME_BUSY, GPU_WHY_FAILED,
	  "could not be attached: the driver did not activate debugging", "try again" },
	{ GKFD_WHY_EXITED, GPU_WHY_ABSENT, "has ended", "nothing of it is held" },
	{ GKFD_WHY_EXECED, GPU_WHY_ABSENT, "now runs another program",
	  "try again once that program uses the GPU" },
	{ GKFD_WHY_TAKEN, GPU_WHY_REFUSED, "was taken over by another debugger",
	  "nothing of it is held any more; end that debugger first" },
	{ GKFD_WHY_TOO_MANY_QUEUES, GPU_WHY_USAGE,
	  "cannot be held by so many queue ids: the driver takes 1024 at once",
	  "name no ids to hold all queues" },
	{ GKFD_WHY_RESTLESS, GPU_WHY_FAILED,
	  "creates and destroys queues faster than they can be held",
	  "nothing is held; try again" },
	{ GKFD_WHY_ALREADY_HELD, GPU_WHY_USAGE, "is already held by the caller",
	  "resume it first" },
	{ GKFD_WHY_GUARD_DIED, GPU_WHY_FAILED, "was let go because the guard process has died",
	  "nothing is held; start again" },
	{ GKFD_WHY_LET_GO, GPU_WHY_FAILED,
	  "could not be held any longer and runs again: it shut its ROCm runtime down, ended its "
	  "main thread, or made queues faster than they can be held",
	  "nothing is held; try again" },
	{ GKFD_WHY_PAUSED, GPU_WHY_REFUSED,
	  "is already paused by somebody (level K1), who does not trace it any more",
	  "if that was not meant to last: gpreempt release PID" },
	{ GKFD_WHY_NO_CRIU_RIGHT, GPU_WHY_REFUSED, "cannot be paused by the caller (level K1)",
	  "needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; try sudo" },
	{ GKFD_WHY_WHOLE_ONLY, GPU_WHY_USAGE, "can be paused only as a whole (level K1)",
	  "name no queues" },
	{ GKFD_WHY_NO_RING, GPU_WHY_REFUSED,
	  "cannot suspend its queues at once here, and one by one only with their rings",
	  "name the queues with ring_base, ring_bytes and priority" },
	{ GKFD_WHY_TOO_LATE, GPU_WHY_FAILED,
	  "was to be held for a time that was over before the driver could be asked",
	  "nothing is held; try again" },
	{ GKFD_WHY_STAINED, GPU_WHY_REFUSED,
	  "cannot be held by the caller, which has ended somebody else's debug session: the driver "
	  "would not resume it should the caller die",
	  "start the caller again" },
	{ GKFD_WHY_FREEZER, GPU_WHY_REFUSED,
	  "cannot be held from here: this program is in a freezer group of cgroup v1 that the "
	  "process is not in, and who is frozen there could not let go",
	  "run it outside of that group (of a container: on the host), or with cgroup v2" },
	{ GKFD_WHY_LAPSED, GPU_WHY_FAILED,
	  "runs again: the caller stood still for too long, and its hold was over",
	  "nothing is held; start again" },
};

static void say_plain(int error, pid_t pid, enum gkfd_why why, struct gpu_why *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(plain_failures); i++) {
		const struct plain_failure *p = &plain_failures[i];

		if (p->why == why) {
			gpu_why_set(ret, p->kind, p->hint, "process %d %s", (int)pid, p->message);
			return;
		}
	}
	gpu_why_set(ret, GPU_WHY_FAILED, NULL, "process %d: %s", (int)pid, strerror(-error));
}

static void say_queue(pid_t pid, const struct gkfd_failure *f, struct gpu_why *ret)
{
	char hint[64];

	snprintf(hint, sizeof(hint), "see its queues with: gpreempt queues %d", (int)pid);
	if (f->why == GKFD_WHY_NO_SUCH_QUEUE)
		gpu_why_set(ret, GPU_WHY_ABSENT, hint, "process %d has no queue %u", (int)pid,
			    f->queue_id);
	else if (f->why == GKFD_WHY_DUPLICATE_QUEUE)
		gpu_why_set(ret, GPU_WHY_USAGE, "name each queue once", "queue %u is named twice",
			    f->queue_id);
	else if (f->queue_id == GKFD_ALL_QUEUES)
		gpu_why_set(ret, GPU_WHY_FAILED,
			    "nothing is held; the driver may reset that GPU: look at dmesg",
			    "the queues of process %d could not be taken off the GPU", (int)pid);
	else
		gpu_why_set(ret, GPU_WHY_FAILED,
			    "nothing is held; the driver may reset that GPU: look at dmesg",
			    "queue %u of process %d could not be taken off the GPU", f->queue_id,
			    (int)pid);
}

static void say_system(struct gkfd *k, int error, pid_t pid, const char *step, struct gpu_why *ret)
{
	if (error == -ESRCH)
		say_no_process(k, pid, ret);
	else
		gpu_why_set(ret, GPU_WHY_FAILED,
			    advice_for(error, "see what works here with: gpreempt doctor"),
			    "process %d: %s: %s", (int)pid, step ? step : "the driver",
			    strerror(-error));
}

/* What stands in the way of any hold of the process. */
static void say_blocked(struct gkfd *k, pid_t pid, const struct gkfd_failure *f,
			struct gpu_why *ret)
{
	char hint[64];

	switch (f->why) {
	case GKFD_WHY_NOT_A_LEADER:
		snprintf(hint, sizeof(hint), "use %d", (int)f->other_pid);
		gpu_why_set(ret, GPU_WHY_USAGE, f->other_pid ? hint : NULL,
			    "%d is a thread of process %d", (int)pid, (int)f->other_pid);
		break;
	case GKFD_WHY_DEBUGGED:
		snprintf(hint, sizeof(hint), "if no debugger is left: gpreempt release %d",
			 (int)pid);
		gpu_why_set(ret, GPU_WHY_REFUSED, hint,
			    "somebody has a GPU debug session on process %d", (int)pid);
		break;
	case GKFD_WHY_NO_VM:
		gpu_why_set(ret, GPU_WHY_REFUSED,
			    "AMD's runtime opens all of them; for others: --level K1",
			    "process %d has not opened GPU %u, and the driver would crash "
			    "suspending it "
			    "(level K2)",
			    (int)pid, f->gpu_id);
		break;
	default:
		gpu_why_set(ret, GPU_WHY_REFUSED, "needs Linux 6.5 or later",
			    "the GPU driver is too old: KFD %u.%u, need 1.13", k->major, k->minor);
	}
}

void gkfd_failure_describe(struct gkfd *k, int error, pid_t pid, const struct gkfd_failure *f,
			   struct gpu_why *ret)
{
	switch (f->why) {
	case GKFD_WHY_NONE:
	case GKFD_WHY_SYSTEM:
		say_system(k, error, pid, f->step, ret);
		break;
	case GKFD_WHY_NO_PROCESS:
		say_no_process(k, pid, ret);
		break;
	case GKFD_WHY_NO_KFD_PROCESS:
		say_no_kfd_process(k, pid, ret);
		break;
	case GKFD_WHY_NO_RIGHT:
		say_no_right(k, pid, ret);
		break;
	case GKFD_WHY_TRACED:
		say_traced(k, pid, f->other_pid, ret);
		break;
	case GKFD_WHY_HELD:
		say_held(k, pid, f->other_pid, ret);
		break;
	case GKFD_WHY_NOT_A_LEADER:
	case GKFD_WHY_DEBUGGED:
	case GKFD_WHY_KFD_TOO_OLD:
	case GKFD_WHY_NO_VM:
		say_blocked(k, pid, f, ret);
		break;
	case GKFD_WHY_NO_SUCH_QUEUE:
	case GKFD_WHY_DUPLICATE_QUEUE:
	case GKFD_WHY_PREEMPTION_FAILED:
		say_queue(pid, f, ret);
		break;
	default:
		say_plain(error, pid, f->why, ret);
	}
}
