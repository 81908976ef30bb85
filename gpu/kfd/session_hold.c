/* SPDX-License-Identifier: MIT */
/* Holding and resuming: all or nothing, with the driver's answer read queue by queue. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/session.h"
#include "util/macros.h"

/* Queues may come and go between snapshot and suspend; so often we try to catch them all. */
#define ROUNDS 4
#define ID_MASK (~(KFD_DBG_QUEUE_ERROR_MASK | KFD_DBG_QUEUE_INVALID_MASK))
#define IDS_PER_CALL_MAX 1024u /* the driver refuses more (Linux 6.12: KFD_MAX_NUM_OF_QUEUES) */

static bool in_snapshot(const struct kfd_queue_snapshot_entry *entries, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].queue_id == id)
			return true;
	return false;
}

static int check_request(const struct gkfd_hold_request *request, struct gkfd_failure *fail)
{
	if (request->n > IDS_PER_CALL_MAX)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_TOO_MANY_QUEUES, "hold");
	for (uint32_t i = 0; i < request->n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (request->ids[i] != request->ids[j])
				continue;
			gkfd_fail(fail, -EINVAL, GKFD_WHY_DUPLICATE_QUEUE, "hold");
			fail->queue_id = request->ids[i];
			return -EINVAL;
		}
	}
	return 0;
}

/* The ids to suspend, out of what there is; *ret is the caller's to free. */
static int choose_ids(const struct gkfd_hold_request *request,
		      const struct kfd_queue_snapshot_entry *entries, uint32_t n_entries,
		      uint32_t **ret, uint32_t *ret_n, struct gkfd_failure *fail)
{
	uint32_t n = request->ids ? request->n : n_entries;
	uint32_t *ids;

	if (n > IDS_PER_CALL_MAX)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_TOO_MANY_QUEUES, "hold");
	for (uint32_t i = 0; request->ids && i < n; i++) {
		if (in_snapshot(entries, n_entries, request->ids[i]))
			continue;
		gkfd_fail(fail, -EINVAL, GKFD_WHY_NO_SUCH_QUEUE, "hold");
		fail->queue_id = request->ids[i];
		return -EINVAL;
	}
	ids = calloc(n ? n : 1, sizeof(*ids));
	if (!ids)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "hold");
	for (uint32_t i = 0; i < n; i++)
		ids[i] = request->ids ? request->ids[i] : entries[i].queue_id;
	*ret = ids;
	*ret_n = n;
	return 0;
}

enum verdict { ALL_SUSPENDED, SOME_MISSED, BROKEN };

/*
 * Reads what the driver did from the ids, not from the count: a dead scheduler answers 0 like
 * a process without queues. Ids with a bit set are good for nothing else afterwards.
 */
static enum verdict judge(const uint32_t *ids, uint32_t n, int count, uint32_t *ret_broken)
{
	enum verdict verdict = (uint32_t)count == n ? ALL_SUSPENDED : SOME_MISSED;

	for (uint32_t i = 0; i < n; i++) {
		if (ids[i] & KFD_DBG_QUEUE_ERROR_MASK) {
			*ret_broken = ids[i] & ID_MASK;
			return BROKEN;
		}
		if (ids[i] & KFD_DBG_QUEUE_INVALID_MASK)
			verdict = SOME_MISSED;
	}
	return verdict;
}

static int errno_of_suspend(int error, struct gkfd_failure *fail)
{
	switch (error) {
	case -ESRCH:
		return gkfd_fail(fail, error, GKFD_WHY_EXITED, "suspend");
	case -EPERM: /* an empty snapshot just worked, so it is not the session */
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RUNTIME_BUSY, "suspend");
	case -ETIME:
	case -EIO:
		return gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, "suspend");
	default:
		return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, "suspend");
	}
}

/* One suspend call. 0: all of @ids are off; -EAGAIN: some are not, look again; else an error. */
static int suspend_once(struct gkfd_session *s, uint32_t *ids, uint32_t n, struct gkfd_hold *hold,
			struct gkfd_failure *fail)
{
	uint64_t began_ns = gkfd_now_ns(s->k);
	uint32_t broken = 0;
	int r;

	s->touched = true;
	r = gkfd_dbg_suspend_queues(s->k, s->pid, ids, n, s->grace_kclk);
	hold->began_ns = hold->began_ns ? hold->began_ns : began_ns;
	hold->done_ns = gkfd_now_ns(s->k);
	if (r < 0)
		return errno_of_suspend(r, fail);
	switch (judge(ids, n, r, &broken)) {
	case ALL_SUSPENDED:
		return 0;
	case SOME_MISSED:
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RESTLESS, "suspend");
	case BROKEN:
	default:
		gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, "suspend");
		fail->queue_id = broken;
		return -EIO;
	}
}

/*
 * One round: look, suspend, and for a whole process look again whether it has grown meanwhile.
 * On 0 the session owns the ids.
 */
static int hold_round(struct gkfd_session *s, const struct gkfd_hold_request *request,
		      struct gkfd_hold *hold, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ uint32_t *ids = NULL;
	uint32_t n_entries = 0, n = 0, now = 0;
	int r;

	r = gkfd_session_snapshot(s, &entries, &n_entries, fail);
	if (r < 0)
		return r;
	r = choose_ids(request, entries, n_entries, &ids, &n, fail);
	if (r < 0)
		return r;
	if (n > 0) {
		r = suspend_once(s, ids, n, hold, fail);
		if (r < 0)
			return r;
	}
	if (!request->ids) {
		r = gkfd_dbg_queue_snapshot(s->k, s->pid, 0, NULL, &now);
		if (r < 0)
			return errno_of_suspend(r, fail);
		if (now > n)
			return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RESTLESS, "suspend");
	}
	free(s->held);
	s->held = steal_ptr(&ids);
	s->n_held = n;
	return 0;
}

/* Whatever part was suspended runs again; if even that fails, giving up the session does it. */
static void undo(struct gkfd_session *s)
{
	bool touched = s->touched;

	s->holding = s->touched = false;
	free(steal_ptr(&s->held));
	s->n_held = 0;
	if (!touched || gkfd_dbg_resume_queues(s->k, s->pid, NULL, 0) >= 0)
		return;
	if (gkfd_session_disable(s) >= 0)
		s->enabled = false;
}

static uint32_t clamp_grace(uint32_t kclk)
{
	return MIN(MAX(kclk, KFD_GRACE_KCLK_MIN), KFD_GRACE_KCLK_MAX);
}

int gkfd_session_hold(struct gkfd_session *s, const struct gkfd_hold_request *request,
		      struct gkfd_hold *ret, struct gkfd_failure *fail)
{
	struct gkfd_hold hold = { 0 };
	int r;

	if (s->holding)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "hold");
	r = check_request(request, fail);
	if (r < 0)
		return r;

	s->grace_kclk = clamp_grace(request->grace_kclk);
	for (int round = 0; round < ROUNDS; round++) {
		r = hold_round(s, request, &hold, fail);
		if (r != -EAGAIN || fail->why != GKFD_WHY_RESTLESS)
			break;
	}
	if (r < 0) {
		undo(s);
		return r;
	}
	s->holding = true;
	s->holds_all = !request->ids;
	hold.ids = s->held;
	hold.n = s->n_held;
	*ret = hold;
	return 0;
}

/* -1: the driver says the resume itself failed on a GPU. */
static int count_resumed(const uint32_t *ids, uint32_t n)
{
	int resumed = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ids[i] & KFD_DBG_QUEUE_ERROR_MASK)
			return -1;
		if (!(ids[i] & KFD_DBG_QUEUE_INVALID_MASK))
			resumed++;
	}
	return resumed;
}

/*
 * The session is lost or will not obey: taking it over and ending it is the driver's own way to
 * resume everything. The session is closed afterwards.
 */
static int resume_by_force(struct gkfd_session *s, int error, struct gkfd_failure *fail)
{
	int r;

	if (error == -ESRCH)
		gkfd_session_disable(s); /* of no effect unless only the leader is gone */
	gkfd_session_forget(s);
	if (error == -ESRCH)
		return gkfd_fail(fail, error, GKFD_WHY_EXITED, "resume");
	r = gkfd_session_recover(s->k, s->pid, fail);
	if (r < 0)
		return r;
	return gkfd_fail(fail, error, error == -EPERM ? GKFD_WHY_TAKEN : GKFD_WHY_PREEMPTION_FAILED,
			 "resume");
}

/* The target has shut its runtime down: the driver resumed everything before it let it. */
static bool runtime_has_ended(struct gkfd_session *s, int error)
{
	uint32_t none = 0;

	return error == -EPERM && gkfd_dbg_queue_snapshot(s->k, s->pid, 0, NULL, &none) >= 0;
}

int gkfd_session_resume(struct gkfd_session *s, struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	struct gkfd_resumed done = { .began_ns = gkfd_now_ns(s->k) };
	int r, n;

	if (!s->holding || s->n_held == 0) {
		s->holding = false;
		done.done_ns = done.began_ns;
		*ret = done;
		return 0;
	}
	r = gkfd_dbg_resume_queues(s->k, s->pid, s->held, s->n_held);
	done.done_ns = gkfd_now_ns(s->k);
	if (r < 0 && !runtime_has_ended(s, r))
		return resume_by_force(s, r, fail);
	n = count_resumed(s->held, s->n_held);
	if (n < 0)
		return resume_by_force(s, -EIO, fail);
	done.n = (uint32_t)n;
	s->holding = s->touched = false;
	free(steal_ptr(&s->held));
	s->n_held = 0;
	*ret = done;
	return 0;
}
