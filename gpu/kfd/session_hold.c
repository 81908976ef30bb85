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

static int check_ids(const struct gkfd_hold_request *request,
		     const struct kfd_queue_snapshot_entry *entries, uint32_t n_entries,
		     struct gkfd_failure *fail)
{
	for (uint32_t i = 0; request->ids && i < request->n; i++) {
		if (in_snapshot(entries, n_entries, request->ids[i]))
			continue;
		gkfd_fail(fail, -EINVAL, GKFD_WHY_NO_SUCH_QUEUE, "hold");
		fail->queue_id = request->ids[i];
		return -EINVAL;
	}
	return 0;
}

/* The ids to suspend, out of what there is and is not held; *ret is the caller's to free. */
static int choose_ids(const struct gkfd_session *s, const struct gkfd_hold_request *request,
		      const struct kfd_queue_snapshot_entry *entries, uint32_t n_entries,
		      uint32_t **ret, uint32_t *ret_n, struct gkfd_failure *fail)
{
	uint32_t asked = request->ids ? request->n : n_entries, n = 0;
	uint32_t *ids = calloc(asked ? asked : 1, sizeof(*ids));

	if (!ids)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "hold");
	for (uint32_t i = 0; i < asked; i++) {
		uint32_t id = request->ids ? request->ids[i] : entries[i].queue_id;

		if (!gkfd_session_holds(s, id))
			ids[n++] = id;
	}
	if (n > IDS_PER_CALL_MAX) {
		free(ids);
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_TOO_MANY_QUEUES, "hold");
	}
	*ret = ids;
	*ret_n = n;
	return 0;
}

/* @s has @ids as well from now on. */
static int keep_ids(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
		    struct gkfd_failure *fail)
{
	uint32_t *held = reallocarray(s->held, s->n_held + n + 1, sizeof(*held));

	if (!held)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "hold");
	s->held = held;
	memcpy(held + s->n_held, ids, n * sizeof(*ids));
	s->n_held += n;
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

	s->touched = s->tried = true;
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

static uint32_t gpu_of(const struct kfd_queue_snapshot_entry *entries, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].queue_id == id)
			return entries[i].gpu_id;
	return 0;
}

/* A process that is to be held wholly may have grown since it was looked at. */
static int check_grown(struct gkfd_session *s, uint32_t n_entries, struct gkfd_failure *fail)
{
	uint32_t now = 0;
	int r = gkfd_dbg_queue_snapshot(s->k, s->pid, 0, NULL, &now);

	if (r < 0)
		return errno_of_suspend(r, fail);
	if (now > n_entries)
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RESTLESS, "suspend");
	return 0;
}

/* One round: look, suspend, look again. On 0 the session has the ids. */
static int hold_round(struct gkfd_session *s, const struct gkfd_hold_request *request,
		      struct gkfd_hold *hold, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ uint32_t *ids = NULL;
	uint32_t n_entries = 0, n = 0;
	int r;

	r = gkfd_session_snapshot(s, &entries, &n_entries, fail);
	if (r >= 0)
		r = check_ids(request, entries, n_entries, fail);
	if (r >= 0)
		r = choose_ids(s, request, entries, n_entries, &ids, &n, fail);
	if (r >= 0 && n > 0)
		r = suspend_once(s, ids, n, hold, fail);
	if (r == -EIO)
		fail->gpu_id = gpu_of(entries, n_entries, fail->queue_id);
	if (r >= 0 && !request->ids)
		r = check_grown(s, n_entries, fail);
	return r < 0 ? r : keep_ids(s, ids, n, fail);
}

/* Whatever part was suspended runs again; if even that fails, giving up the session does it. */
static void undo(struct gkfd_session *s)
{
	bool touched = s->touched;

	s->holding = s->touched = s->holds_all = false;
	free(steal_ptr(&s->held));
	s->n_held = 0;
	if (!touched || gkfd_dbg_resume_queues(s->k, s->pid, NULL, 0) >= 0)
		return;
	if (gkfd_session_disable(s) >= 0)
		s->enabled = false;
}

/*
 * Undoes this hold alone. What it had not suspended runs already, and counts as resumed again.
 * False: it could not be told from what was held before, or not be resumed.
 */
static bool undo_part(struct gkfd_session *s, const struct gkfd_hold_request *request)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ uint32_t *ids = NULL;
	uint32_t n_entries = 0, n = 0;
	struct gkfd_failure fail;

	if (!s->tried)
		return true;
	if (gkfd_session_snapshot(s, &entries, &n_entries, &fail) < 0 ||
	    choose_ids(s, request, entries, n_entries, &ids, &n, &fail) < 0)
		return false;
	return n == 0 || gkfd_dbg_resume_queues(s->k, s->pid, ids, n) >= 0;
}

/* Nothing is wrong with the session or the GPU, so what was held before can stay so. */
static bool is_harmless(const struct gkfd_failure *fail)
{
	switch (fail->why) {
	case GKFD_WHY_NO_SUCH_QUEUE:
	case GKFD_WHY_DUPLICATE_QUEUE:
	case GKFD_WHY_TOO_MANY_QUEUES:
	case GKFD_WHY_RESTLESS:
		return true;
	default:
		return false;
	}
}

static uint32_t clamp_grace(uint32_t kclk)
{
	return MIN(MAX(kclk, KFD_GRACE_KCLK_MIN), KFD_GRACE_KCLK_MAX);
}

int gkfd_session_hold(struct gkfd_session *s, const struct gkfd_hold_request *request,
		      struct gkfd_hold *ret, struct gkfd_failure *fail)
{
	uint32_t held_before = s->n_held;
	struct gkfd_hold hold = { 0 };
	int r;

	if (s->holding && !request->more)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "hold");
	r = check_request(request, fail);
	if (r < 0)
		return r;

	s->tried = false;
	s->grace_kclk = clamp_grace(request->grace_kclk);
	for (int round = 0; round < ROUNDS; round++) {
		r = hold_round(s, request, &hold, fail);
		if (r != -EAGAIN || fail->why != GKFD_WHY_RESTLESS)
			break;
	}
	if (r < 0) {
		if (!s->holding || !is_harmless(fail) || !undo_part(s, request))
			undo(s);
		return r;
	}
	s->holding = true;
	s->holds_all |= !request->ids;
	hold.ids = s->held + held_before;
	hold.n = s->n_held - held_before;
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

/* The driver marks in @ids what it made of them. */
static int resume_ids(struct gkfd_session *s, uint32_t *ids, uint32_t n, struct gkfd_resumed *ret,
		      struct gkfd_failure *fail)
{
	struct gkfd_resumed done = { .began_ns = gkfd_now_ns(s->k) };
	int r = n ? gkfd_dbg_resume_queues(s->k, s->pid, ids, n) : 0;
	int resumed;

	done.done_ns = n ? gkfd_now_ns(s->k) : done.began_ns;
	if (r < 0 && !runtime_has_ended(s, r))
		return resume_by_force(s, r, fail);
	resumed = count_resumed(ids, n);
	if (resumed < 0)
		return resume_by_force(s, -EIO, fail);
	done.n = (uint32_t)resumed;
	*ret = done;
	return 0;
}

int gkfd_session_resume(struct gkfd_session *s, struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	int r = resume_ids(s, s->held, s->holding ? s->n_held : 0, ret, fail);

	if (r < 0)
		return r;
	s->holding = s->touched = s->holds_all = false;
	free(steal_ptr(&s->held));
	s->n_held = 0;
	return 0;
}

/* Moves those of the held that are among @ids behind the others; how many they are. */
static uint32_t part_from_held(struct gkfd_session *s, const uint32_t *ids, uint32_t n)
{
	uint32_t end = s->n_held;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < end; j++) {
			if (s->held[j] != ids[i])
				continue;
			s->held[j] = s->held[--end];
			s->held[end] = ids[i];
			break;
		}
	}
	return s->n_held - end;
}

int gkfd_session_resume_some(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
			     struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	uint32_t part = part_from_held(s, ids, n);
	int r;

	if (part > 0 && part == s->n_held)
		return gkfd_session_resume(s, ret, fail);
	r = resume_ids(s, part ? s->held + (s->n_held - part) : NULL, part, ret, fail);
	if (r < 0)
		return r;
	s->n_held -= part;
	s->holds_all = s->holds_all && part == 0;
	return 0;
}
