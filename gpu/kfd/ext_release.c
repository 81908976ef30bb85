/* SPDX-License-Identifier: MIT */
/* Who holds what through the extension, and how to end it. */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "util/macros.h"

#define HOLDERS_MAX 8 /* one holds, and others have stopped its GPUs */

int gkfd_ext_holder(struct gkfd *k, pid_t pid, uint64_t start_ticks, pid_t *ret_holder)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n = gkfd_ext_queues(k, pid, start_ticks, &queues);

	for (int i = 0; i < n; i++) {
		const struct kfd_gpreempt_queue *q = &queues[i];

		if (!(q->flags & (KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_STOPPED)) ||
		    q->flags & KFD_GPREEMPT_QUEUE_MINE)
			continue;
		*ret_holder = (pid_t)q->preempted_by;
		return 1;
	}
	return MIN(n, 0);
}

int gkfd_ext_is_scheduled_off(struct gkfd *k, pid_t pid, uint64_t start_ticks)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n = gkfd_ext_queues(k, pid, start_ticks, &queues);

	for (int i = 0; i < n; i++)
		if (queues[i].flags & KFD_GPREEMPT_QUEUE_SCHEDULED)
			return 1;
	return MIN(n, 0);
}

static int explain_gone(struct gkfd *k, const struct kfd_gpreempt_entry *e,
			struct gkfd_failure *fail)
{
	struct gkfd_proc_ident now;
	bool ended = gkfd_proc_identify(k, (pid_t)e->pid, &now) < 0 || now.state == 'Z' ||
		     now.state == 'X' || (e->start_ticks && e->start_ticks != now.start_ticks);

	return gkfd_fail(fail, -ESRCH, ended ? GKFD_WHY_EXITED : GKFD_WHY_NO_KFD_PROCESS,
			 "extension");
}

int gkfd_ext_explain(struct gkfd *k, const struct kfd_gpreempt_entry *e, int result,
		     struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -EPERM, GKFD_WHY_NO_RIGHT },
		{ -ENOENT, GKFD_WHY_NO_SUCH_QUEUE, -EINVAL },
		{ -EBUSY, GKFD_WHY_HELD },
		{ -EALREADY, GKFD_WHY_LAPSED, -EAGAIN },
		{ -EIO, GKFD_WHY_PREEMPTION_FAILED },
		{ -ETIME, GKFD_WHY_PREEMPTION_FAILED, -EIO },
		{ 0 },
	};
	int r;

	if (result == 0)
		return 0;
	if (result == -ESRCH)
		return explain_gone(k, e, fail);
	r = gkfd_fail_by(fail, result, meanings, "kernel extension");
	fail->queue_id = e->queue_id;
	if (result == -EBUSY)
		gkfd_ext_holder(k, (pid_t)e->pid, e->start_ticks, &fail->other_pid);
	return r;
}

/* A software GPU is anybody's, and so is what it says: it must not have us end just any process. */
static bool may_end(struct gkfd *k, pid_t holder)
{
	pid_t known;

	return !k->transport->modelled || gkfd_holder_of(k, holder, &known) > 0;
}

/* A holder that died may have been seen just before the driver let go: it is not asked twice. */
static int end_holders(struct gkfd *k, const struct kfd_gpreempt_entry *e,
		       struct gkfd_failure *fail)
{
	pid_t pid = (pid_t)e->pid, holder = 0, last = 0;
	int ended = 0, r;

	while ((r = gkfd_ext_holder(k, pid, e->start_ticks, &holder)) > 0) {
		if (holder == 0 || holder == last || holder == pid || ended == HOLDERS_MAX)
			return gkfd_ext_explain(k, e, -EBUSY, fail);
		if (holder == getpid())
			return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "release");
		if (!may_end(k, holder))
			return gkfd_ext_explain(k, e, -EBUSY, fail);
		r = gkfd_end_holder(k, holder, fail);
		if (r < 0)
			return r;
		last = holder;
		ended++;
	}
	if (r == -ESRCH)
		return ended > 0; /* it has ended, or never used the driver */
	return r < 0 ? gkfd_ext_explain(k, e, r, fail) : ended > 0;
}

/* Without a class the scheduler in the driver leaves it alone: it lets go when it looks next. */
static int end_schedule(struct gkfd *k, const struct kfd_gpreempt_entry *e,
			struct gkfd_failure *fail)
{
	struct kfd_gpreempt_class none = {
		.pid = e->pid,
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.class = KFD_GPREEMPT_NO_CLASS,
		.start_ticks = e->start_ticks,
	};
	int r;

	if (gkfd_ext_is_scheduled_off(k, (pid_t)e->pid, e->start_ticks) <= 0)
		return 0;
	r = gkfd_ext_call(k, KFD_GPREEMPT_SET_CLASS, &none);
	if (r == -ESRCH)
		return 0; /* it has ended just now */
	return r < 0 ? gkfd_ext_explain(k, e, r, fail) : 1;
}

int gkfd_ext_release(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	struct kfd_gpreempt_version version;
	struct kfd_gpreempt_entry e;
	struct gkfd_proc_ident ident;
	int r = gkfd_ext_open(k, &version), scheduled;

	/* Where it cannot be used, nothing can be seen of what others hold through it. */
	if (r < 0)
		return 0;
	r = gkfd_proc_identify(k, pid, &ident);
	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_NO_PROCESS, "identify");
	e = gkfd_ext_entry(pid, ident.start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	r = gkfd_ext_bind(k, pid);
	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return gkfd_ext_explain(k, &e, r, fail);
	scheduled = end_schedule(k, &e, fail);
	if (scheduled < 0)
		return scheduled;
	r = end_holders(k, &e, fail);
	return r < 0 ? r : r | scheduled;
}
