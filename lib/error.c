/* SPDX-License-Identifier: MIT */
/* Failures as a line for people, and what to do about them. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "gpu/kfd/release.h"
#include "lib/internal.h"

#define NAME_MAX_LEN 64

void error_note(struct gpreempt_error *e, int r, enum gpreempt_error_kind kind, const char *hint,
		const char *fmt, va_list ap)
{
	e->kind = kind;
	e->error = r;
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	snprintf(e->hint, sizeof(e->hint), "%s", hint ? hint : "");
}

int ctx_fail(struct gpreempt_ctx *ctx, int r, enum gpreempt_error_kind kind, const char *hint,
	     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	error_note(&ctx->last, r, kind, hint, fmt, ap);
	va_end(ap);
	return r;
}

int ctx_fail_errno(struct gpreempt_ctx *ctx, int r, const char *what)
{
	if (r == -EACCES || r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "try sudo", "%s: %s", what,
				strerror(-r));
	if (r == -EBADMSG)
		return ctx_fail(
			ctx, r, GPREEMPT_ERROR_FAILED,
			"this driver prints something gpreempt does not know; please report it",
			"%s: the contents make no sense", what);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED, NULL, "%s: %s", what, strerror(-r));
}

void ctx_clear_error(struct gpreempt_ctx *ctx)
{
	ctx->last = (struct gpreempt_error){ .size = sizeof(ctx->last) };
}

EXPORT void gpreempt_get_error(const struct gpreempt_ctx *ctx, struct gpreempt_error *ret)
{
	out_struct(ret, &ctx->last);
}

/* "4711 (python3)", or the bare number where the name is not known. */
static const char *name_process(struct gpreempt_ctx *ctx, pid_t pid, char buf[NAME_MAX_LEN])
{
	struct gkfd_proc_ident ident;

	if (gkfd_proc_identify(ctx->k, pid, &ident) >= 0)
		snprintf(buf, NAME_MAX_LEN, "%d (%s)", (int)pid, ident.comm);
	else
		snprintf(buf, NAME_MAX_LEN, "%d", (int)pid);
	return buf;
}

static int fail_no_process(struct gpreempt_ctx *ctx, int r, pid_t pid)
{
	pid_t here = gkfd_pid_from_container(ctx->k, pid);
	char hint[128] = "see what uses the GPU with: gpreempt list";

	if (here > 0)
		snprintf(hint, sizeof(hint), "a container's process %d is process %d here: use %d",
			 (int)pid, (int)here, (int)here);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, hint, "there is no process %d", (int)pid);
}

static int fail_no_kfd_process(struct gpreempt_ctx *ctx, int r, pid_t pid)
{
	pid_t here = gkfd_pid_from_container(ctx->k, pid);
	char hint[128] = "see what uses the GPU with: gpreempt list";
	char name[NAME_MAX_LEN];

	if (here > 0 && here != pid)
		snprintf(hint, sizeof(hint),
			 "if you meant process %d of a container, it is %d here", (int)pid,
			 (int)here);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, hint,
			"process %s does not use the GPU driver", name_process(ctx, pid, name));
}

/* 0 also where there is no Yama. */
static int yama_scope(struct gpreempt_ctx *ctx)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (gkfd_read_file(ctx->k, GKFD_TREE_PROC, "sys/kernel/yama/ptrace_scope", &text, &len) < 0)
		return 0;
	return (int)strtol(text, NULL, 10);
}

static int fail_no_right(struct gpreempt_ctx *ctx, int r, pid_t pid)
{
	const char *hint = "needs the same user, or CAP_SYS_PTRACE; try sudo";
	struct gkfd_proc_ident ident;
	char name[NAME_MAX_LEN];

	if (gkfd_proc_identify(ctx->k, pid, &ident) >= 0 && ident.uid == geteuid() &&
	    yama_scope(ctx) > 0)
		hint = "it is yours, but kernel.yama.ptrace_scope forbids tracing it; try sudo";
	return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, hint, "no right to trace process %s",
			name_process(ctx, pid, name));
}

static bool is_daemon(struct gpreempt_ctx *ctx, pid_t pid)
{
	struct gkfd_proc_ident ident;

	return gkfd_proc_identify(ctx->k, pid, &ident) >= 0 && !strcmp(ident.comm, "gpreemptd");
}

static int fail_traced(struct gpreempt_ctx *ctx, int r, pid_t pid, pid_t tracer)
{
	char hint[128], name[NAME_MAX_LEN];
	pid_t holder = 0;

	if (tracer <= 0)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "end that debugger first",
				"process %d is already being debugged", (int)pid);
	if (gkfd_holder_of(ctx->k, tracer, &holder) == 1) {
		if (is_daemon(ctx, holder)) {
			snprintf(hint, sizeof(hint),
				 "make it let go of everything with: gpreempt pause; end only its "
				 "hold with: gpreempt release %d",
				 (int)pid);
			return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, hint,
					"process %d is attached by the daemon, gpreemptd (%d)",
					(int)pid, (int)holder);
		}
		snprintf(hint, sizeof(hint), "end that hold with: gpreempt release %d", (int)pid);
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, hint,
				"process %d is already held by process %s", (int)pid,
				name_process(ctx, holder, name));
	}
	return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "end that debugger first",
			"process %d is already being debugged by process %s", (int)pid,
			name_process(ctx, tracer, name));
}

/* What is the same for every process and needs no look at anything. */
struct plain_failure {
	enum gkfd_why why;
	enum gpreempt_error_kind kind;
	const char *message; /* after "process N" */
	const char *hint;
};

static const struct plain_failure plain_failures[] = {
	{ GKFD_WHY_OWN_PROCESS, GPREEMPT_ERROR_USAGE, "is the caller itself",
	  "name another process" },
	{ GKFD_WHY_NO_DEBUG, GPREEMPT_ERROR_REFUSED,
	  "uses a GPU whose driver mode has no debug interface", "see why with: gpreempt doctor" },
	{ GKFD_WHY_RUNTIME_TOO_OLD, GPREEMPT_ERROR_REFUSED,
	  "has a runtime too old for K2: it never enabled debugging, which the driver wants",
	  "its ROCm runtime is too old (before 5.5), or it is still starting; run it with a newer "
	  "ROCm, or hold it with --level K1" },
	{ GKFD_WHY_RUNTIME_BUSY, GPREEMPT_ERROR_FAILED,
	  "could not be attached: the driver did not activate debugging", "try again" },
	{ GKFD_WHY_EXITED, GPREEMPT_ERROR_ABSENT, "has ended", "nothing of it is held" },
	{ GKFD_WHY_EXECED, GPREEMPT_ERROR_ABSENT, "now runs another program",
	  "try again once that program uses the GPU" },
	{ GKFD_WHY_TAKEN, GPREEMPT_ERROR_REFUSED, "was taken over by another debugger",
	  "nothing of it is held any more; end that debugger first" },
	{ GKFD_WHY_TOO_MANY_QUEUES, GPREEMPT_ERROR_USAGE,
	  "cannot be held by so many queue ids: the driver takes 1024 at once",
	  "name no ids to hold all queues" },
	{ GKFD_WHY_RESTLESS, GPREEMPT_ERROR_FAILED,
	  "creates and destroys queues faster than they can be held",
	  "nothing is held; try again" },
	{ GKFD_WHY_ALREADY_HELD, GPREEMPT_ERROR_USAGE, "is already held by the caller",
	  "resume it first" },
	{ GKFD_WHY_GUARD_DIED, GPREEMPT_ERROR_FAILED,
	  "was let go because the guard process has died", "nothing is held; start again" },
	{ GKFD_WHY_LET_GO, GPREEMPT_ERROR_FAILED,
	  "could not be held any longer and runs again: it shut its ROCm runtime down, ended its "
	  "main thread, or made queues faster than they can be held",
	  "nothing is held; try again" },
	{ GKFD_WHY_PAUSED, GPREEMPT_ERROR_REFUSED,
	  "is already paused by somebody (level K1), who does not trace it any more",
	  "if that was not meant to last: gpreempt release PID" },
	{ GKFD_WHY_NO_CRIU_RIGHT, GPREEMPT_ERROR_REFUSED,
	  "cannot be paused by the caller (level K1)",
	  "needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; try sudo" },
	{ GKFD_WHY_WHOLE_ONLY, GPREEMPT_ERROR_USAGE,
	  "can be paused only as a whole (level K1)", "name no queues" },
	{ GKFD_WHY_NO_RING, GPREEMPT_ERROR_REFUSED,
	  "cannot suspend its queues at once here, and one by one only with their rings",
	  "name the queues with ring_base, ring_bytes and priority" },
	{ GKFD_WHY_STAINED, GPREEMPT_ERROR_REFUSED,
	  "cannot be held by the caller, which has ended somebody else's debug session: the driver "
	  "would not resume it should the caller die",
	  "start the caller again" },
};

static int fail_plain(struct gpreempt_ctx *ctx, int r, pid_t pid, enum gkfd_why why)
{
	for (size_t i = 0; i < ARRAY_SIZE(plain_failures); i++) {
		const struct plain_failure *f = &plain_failures[i];

		if (f->why == why)
			return ctx_fail(ctx, r, f->kind, f->hint, "process %d %s", (int)pid,
					f->message);
	}
	return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED, NULL, "process %d: %s", (int)pid,
			strerror(-r));
}

static int fail_queue(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct gkfd_failure *f)
{
	char hint[64];

	snprintf(hint, sizeof(hint), "see its queues with: gpreempt queues %d", (int)pid);
	if (f->why == GKFD_WHY_NO_SUCH_QUEUE)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, hint, "process %d has no queue %u",
				(int)pid, f->queue_id);
	if (f->why == GKFD_WHY_DUPLICATE_QUEUE)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, "name each queue once",
				"queue %u is named twice", f->queue_id);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED,
			"nothing is held; the driver may reset that GPU: look at dmesg",
			"queue %u of process %d could not be taken off the GPU", f->queue_id,
			(int)pid);
}

static int fail_system(struct gpreempt_ctx *ctx, int r, pid_t pid, const char *step)
{
	if (r == -ESRCH)
		return fail_no_process(ctx, r, pid);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED, "see what works here with: gpreempt doctor",
			"process %d: %s: %s", (int)pid, step ? step : "the driver", strerror(-r));
}

int ctx_fail_target(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct gkfd_failure *f)
{
	char hint[64];

	switch (f->why) {
	case GKFD_WHY_NONE:
	case GKFD_WHY_SYSTEM:
		return fail_system(ctx, r, pid, f->step);
	case GKFD_WHY_NO_PROCESS:
		return fail_no_process(ctx, r, pid);
	case GKFD_WHY_NO_KFD_PROCESS:
		return fail_no_kfd_process(ctx, r, pid);
	case GKFD_WHY_NO_RIGHT:
		return fail_no_right(ctx, r, pid);
	case GKFD_WHY_TRACED:
		return fail_traced(ctx, r, pid, f->other_pid);
	case GKFD_WHY_NOT_A_LEADER:
		snprintf(hint, sizeof(hint), "use %d", (int)f->other_pid);
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, f->other_pid ? hint : NULL,
				"%d is a thread of process %d", (int)pid, (int)f->other_pid);
	case GKFD_WHY_DEBUGGED:
		snprintf(hint, sizeof(hint), "if no debugger is left: gpreempt release %d",
			 (int)pid);
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, hint,
				"somebody has a GPU debug session on process %d", (int)pid);
	case GKFD_WHY_KFD_TOO_OLD:
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "needs Linux 6.5 or later",
				"the GPU driver is too old: KFD %u.%u, need 1.13", ctx->k->major,
				ctx->k->minor);
	case GKFD_WHY_NO_SUCH_QUEUE:
	case GKFD_WHY_DUPLICATE_QUEUE:
	case GKFD_WHY_PREEMPTION_FAILED:
		return fail_queue(ctx, r, pid, f);
	case GKFD_WHY_NO_VM:
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"AMD's runtime opens all of them; for others: --level K1",
				"process %d has not opened GPU %u, and the driver would crash "
				"suspending it (level K2)",
				(int)pid, f->gpu_id);
	default:
		return fail_plain(ctx, r, pid, f->why);
	}
}
