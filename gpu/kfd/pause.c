/* SPDX-License-Identifier: MIT */
/*
 * A process paused through the driver's checkpoint interface (K1): all its queues on all GPUs at
 * once, whatever its runtime.
 *
 * The driver does not undo a pause when its maker dies, and up to Linux 6.12.115 it counts: paused
 * twice, it takes one "unpause" and then knows nothing of the other (kfd_chardev.c). So a pause is
 * made only where there is none, and only the tracer can make one.
 */
#include <errno.h>
#include <string.h>

#include "gpu/guard.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "util/macros.h"

_Static_assert(sizeof(struct kfd_ioctl_criu_args) <= GUARD_UNDO_ARG_MAX, "a guard could not undo");

static int criu_op(const struct gkfd_session *s, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return s->k->transport->ioctl_on(s->k->data, s->pid, s->fd, AMDKFD_IOC_CRIU_OP, &args);
}

void gkfd_pause_undo(struct guard_undo *ret)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_UNPAUSE };

	ret->traced = true;
	ret->n_calls = 1;
	ret->calls[0] = (struct guard_call){
		.request = AMDKFD_IOC_CRIU_OP,
		.pointer_at = GUARD_NO_POINTER,
	};
	memcpy(ret->calls[0].arg, &args, sizeof(args));
}

/*
 * Finds a descriptor that the process itself has opened and asks on it. "Unpause" is the one
 * question the driver has: it refuses what is not paused (-EINVAL), and what was paused by
 * somebody runs (0). -ENOENT: it has no descriptor.
 */
static int unpause_somewhere(struct gkfd_session *s)
{
	const struct gkfd_transport *t = s->k->transport;

	for (unsigned int nth = 0;; nth++) {
		int r;

		s->fd = t->borrow(s->k->data, s->pid, nth);
		if (s->fd < 0)
			return s->fd;
		r = criu_op(s, KFD_CRIU_OP_UNPAUSE);
		if (r != -EBADF)
			return r;
		closep(&s->fd);
		s->fd = -1;
	}
}

/* Borrows a descriptor and makes sure that nobody has the process paused. */
static int pause_begin(struct gkfd_session *s, struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -ENOENT, GKFD_WHY_NO_KFD_PROCESS, -ESRCH },
		{ -ESRCH, GKFD_WHY_EXITED },
		{ -EBUSY, GKFD_WHY_PAUSED },
		{ -EACCES, GKFD_WHY_NO_CRIU_RIGHT },
		{ -EPERM, GKFD_WHY_NO_RIGHT },
		{ 0 },
	};
	int r;

	*s = GKFD_SESSION_NONE;
	s->k = k;
	s->pid = pid;
	r = unpause_somewhere(s);
	if (r == -EINVAL)
		return 0;
	if (r >= 0 && criu_op(s, KFD_CRIU_OP_PROCESS_INFO) >= 0) /* as it was, and not ours */
		r = -EBUSY;
	gkfd_session_forget(s);
	return gkfd_fail_by(fail, r < 0 ? r : -EIO, meanings, "borrow");
}

static void pause_end(struct gkfd_session *s)
{
	if (s->holding)
		criu_op(s, KFD_CRIU_OP_UNPAUSE);
	gkfd_session_forget(s);
}

static int pause_snapshot(struct gkfd_session *s, struct kfd_queue_snapshot_entry **ret,
			  uint32_t *ret_n, struct gkfd_failure *fail)
{
	_cleanup_(gkfd_proc_done) struct gkfd_proc proc = { 0 };
	struct kfd_queue_snapshot_entry *entries;
	int r;

	/* From inside a pid namespace its queues cannot be told: none are listed. */
	if (gkfd_pids_are_global(s->k)) {
		r = gkfd_proc_read(s->k, s->pid, &proc);
		if (r < 0 && r != -ESRCH)
			return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "list queues");
	}
	entries = calloc(MAX(proc.n_queues, (size_t)1), sizeof(*entries));
	if (!entries)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "list queues");
	for (size_t i = 0; i < proc.n_queues; i++)
		entries[i] = (struct kfd_queue_snapshot_entry){
			.queue_id = proc.queues[i].queue_id,
			.gpu_id = proc.queues[i].gpu_id,
			.queue_type = proc.queues[i].type,
			.ring_size = (uint32_t)proc.queues[i].ring_bytes,
		};
	*ret = entries;
	*ret_n = (uint32_t)proc.n_queues;
	return 0;
}

/* Which queues are held; nothing but a list for people. */
static int note_ids(struct gkfd_session *s, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	uint32_t n = 0;
	int r = pause_snapshot(s, &entries, &n, fail);

	if (r < 0)
		return r;
	free(s->held);
	s->n_held = 0;
	s->held = calloc(n ? n : 1, sizeof(*s->held));
	if (!s->held)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "pause");
	for (uint32_t i = 0; i < n; i++)
		s->held[i] = entries[i].queue_id;
	s->n_held = n;
	return 0;
}

static int call_failed(int error, const char *step, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -EBADF, GKFD_WHY_EXITED,
		  -ESRCH }, /* we trace nobody any more who has opened it */
		{ -ESRCH, GKFD_WHY_EXITED },
		{ -EACCES, GKFD_WHY_NO_CRIU_RIGHT },
		{ -ETIME, GKFD_WHY_PREEMPTION_FAILED, -EIO },
		{ -EIO, GKFD_WHY_PREEMPTION_FAILED },
		{ 0 },
	};

	return gkfd_fail_by(fail, error, meanings, step);
}

static int pause_hold(struct gkfd_session *s, const struct gpu_hold *what, struct gkfd_moved *ret,
		      struct gkfd_failure *fail)
{
	struct gkfd_moved moved = { 0 };
	int r;

	if (what->ids && s->holding)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "pause");
	if (what->ids)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_WHOLE_ONLY, "pause");
	r = s->holding ? 0 : note_ids(s, fail);
	if (r < 0)
		return r;
	moved.began_ns = gkfd_now_ns(s->k);
	if (!s->holding) {
		r = criu_op(s, KFD_CRIU_OP_PROCESS_INFO); /* one that fails has undone its part */
		moved.n = s->n_held;
	}
	moved.done_ns = gkfd_now_ns(s->k);
	if (r < 0)
		return call_failed(r, "pause", fail);
	s->holding = true;
	*ret = moved;
	return 0;
}

/* On an error it is still paused: the guard's turn, or gkfd_target_recover()'s. */
static int pause_resume(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
			struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	struct gkfd_moved done = { .began_ns = gkfd_now_ns(s->k) };
	int r = 0;

	if (ids)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_WHOLE_ONLY, "unpause");
	if (s->holding)
		r = criu_op(s, KFD_CRIU_OP_UNPAUSE);
	done.done_ns = gkfd_now_ns(s->k);
	if (r < 0 && r != -EINVAL) /* which says that it is not paused: it has done so itself */
		return call_failed(r, "unpause", fail);
	done.n = s->holding ? s->n_held : 0;
	gkfd_session_forget_held(s);
	*ret = done;
	return 0;
}

int gkfd_pause_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	struct gkfd_session s = { .k = k, .pid = pid, .fd = -1 };
	int r;

	if (!gkfd_has(k, GKFD_CAP_CRIU))
		return 0;
	r = unpause_somewhere(&s);
	closep(&s.fd);
	if (r >= 0)
		return 1;
	if (r == -EIO || r == -ETIME)
		return call_failed(r, "unpause", fail);
	return 0;
}

const struct gkfd_session_ops gkfd_session_by_pause = {
	.begin = pause_begin,
	.end = pause_end,
	.snapshot = pause_snapshot,
	.hold = pause_hold,
	.resume = pause_resume,
};
