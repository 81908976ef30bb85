/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/pause.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "util/macros.h"

_Static_assert(sizeof(struct kfd_ioctl_criu_args) <= GUARD_UNDO_ARG_MAX, "a guard could not undo");

static int criu_op(const struct gkfd_pause *p, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return p->k->transport->ioctl_on(p->k->data, p->pid, p->fd, AMDKFD_IOC_CRIU_OP, &args);
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
static int unpause_somewhere(struct gkfd_pause *p)
{
	const struct gkfd_transport *t = p->k->transport;

	for (unsigned int nth = 0;; nth++) {
		int r;

		p->fd = t->borrow(p->k->data, p->pid, nth);
		if (p->fd < 0)
			return p->fd;
		r = criu_op(p, KFD_CRIU_OP_UNPAUSE);
		if (r != -EBADF)
			return r;
		closep(&p->fd);
		p->fd = -1;
	}
}

static int begin_failed(int error, struct gkfd_failure *fail)
{
	switch (error) {
	case -ENOENT:
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_KFD_PROCESS, "borrow");
	case -ESRCH:
		return gkfd_fail(fail, error, GKFD_WHY_EXITED, "borrow");
	case -EBUSY:
		return gkfd_fail(fail, error, GKFD_WHY_PAUSED, "probe");
	case -EACCES:
		return gkfd_fail(fail, error, GKFD_WHY_NO_CRIU_RIGHT, "probe");
	case -EPERM:
		return gkfd_fail(fail, error, GKFD_WHY_NO_RIGHT, "borrow");
	default:
		return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, "borrow");
	}
}

int gkfd_pause_begin(struct gkfd_pause *p, struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	int r;

	*p = (struct gkfd_pause){ .k = k, .pid = pid, .fd = -1 };
	r = unpause_somewhere(p);
	if (r == -EINVAL)
		return 0;
	if (r >= 0 && criu_op(p, KFD_CRIU_OP_PROCESS_INFO) >= 0) /* as it was, and not ours */
		r = -EBUSY;
	gkfd_pause_forget(p);
	return begin_failed(r < 0 ? r : -EIO, fail);
}

void gkfd_pause_forget(struct gkfd_pause *p)
{
	if (p->fd >= 0)
		closep(&p->fd);
	p->fd = -1;
	p->paused = false;
	free(steal_ptr(&p->ids));
	p->n_ids = 0;
}

void gkfd_pause_end(struct gkfd_pause *p)
{
	if (p->paused)
		criu_op(p, KFD_CRIU_OP_UNPAUSE);
	gkfd_pause_forget(p);
}

int gkfd_pause_snapshot(struct gkfd_pause *p, struct kfd_queue_snapshot_entry **ret,
			uint32_t *ret_n, struct gkfd_failure *fail)
{
	_cleanup_(gkfd_proc_done) struct gkfd_proc proc = { 0 };
	struct kfd_queue_snapshot_entry *entries;
	int r;

	/* From inside a pid namespace its queues cannot be told: none are listed. */
	if (gkfd_pids_are_global(p->k)) {
		r = gkfd_proc_read(p->k, p->pid, &proc);
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
static int note_ids(struct gkfd_pause *p, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	uint32_t n = 0;
	int r = gkfd_pause_snapshot(p, &entries, &n, fail);

	if (r < 0)
		return r;
	free(p->ids);
	p->n_ids = 0;
	p->ids = calloc(n ? n : 1, sizeof(*p->ids));
	if (!p->ids)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "pause");
	for (uint32_t i = 0; i < n; i++)
		p->ids[i] = entries[i].queue_id;
	p->n_ids = n;
	return 0;
}

static int call_failed(int error, const char *step, struct gkfd_failure *fail)
{
	switch (error) {
	case -EBADF: /* we trace nobody any more who has opened it */
	case -ESRCH:
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_EXITED, step);
	case -EACCES:
		return gkfd_fail(fail, error, GKFD_WHY_NO_CRIU_RIGHT, step);
	case -ETIME:
	case -EIO:
		return gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, step);
	default:
		return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, step);
	}
}

int gkfd_pause_hold(struct gkfd_pause *p, const struct gkfd_hold_request *request,
		    struct gkfd_hold *ret, struct gkfd_failure *fail)
{
	struct gkfd_hold hold = { 0 };
	int r;

	if (p->paused)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "pause");
	if (request->ids)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_WHOLE_ONLY, "pause");
	r = note_ids(p, fail);
	if (r < 0)
		return r;
	hold.began_ns = gkfd_now_ns(p->k);
	r = criu_op(p, KFD_CRIU_OP_PROCESS_INFO); /* one that fails has undone its part */
	hold.done_ns = gkfd_now_ns(p->k);
	if (r < 0)
		return call_failed(r, "pause", fail);
	p->paused = true;
	hold.ids = p->ids;
	hold.n = p->n_ids;
	*ret = hold;
	return 0;
}

int gkfd_pause_resume(struct gkfd_pause *p, struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	struct gkfd_resumed done = { .began_ns = gkfd_now_ns(p->k) };
	int r = p->paused ? criu_op(p, KFD_CRIU_OP_UNPAUSE) : 0;

	done.done_ns = gkfd_now_ns(p->k);
	if (r < 0 && r != -EINVAL) /* which says that it is not paused: it has done so itself */
		return call_failed(r, "unpause", fail);
	done.n = p->paused ? p->n_ids : 0;
	p->paused = false;
	*ret = done;
	return 0;
}

int gkfd_pause_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	struct gkfd_pause p = { .k = k, .pid = pid, .fd = -1 };
	int r;

	if (!gkfd_has(k, GKFD_CAP_CRIU))
		return 0;
	r = unpause_somewhere(&p);
	gkfd_pause_forget(&p);
	if (r >= 0)
		return 1;
	if (r == -EIO || r == -ETIME)
		return call_failed(r, "unpause", fail);
	return 0;
}
