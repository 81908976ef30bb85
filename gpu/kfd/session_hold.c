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

static const struct kfd_queue_snapshot_entry *find(const struct kfd_queue_snapshot_entry *entries,
						   uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].queue_id == id)
			return &entries[i];
	return NULL;
}

static int check_request(const struct gpu_hold *what, struct gkfd_failure *fail)
{
	if (what->n > IDS_PER_CALL_MAX)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_TOO_MANY_QUEUES, "hold");
	for (uint32_t i = 0; i < what->n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (what->ids[i] != what->ids[j])
				continue;
			gkfd_fail(fail, -EINVAL, GKFD_WHY_DUPLICATE_QUEUE, "hold");
			fail->queue_id = what->ids[i];
			return -EINVAL;
		}
	}
	return 0;
}

static int check_ids(const struct gpu_hold *what, const struct kfd_queue_snapshot_entry *entries,
		     uint32_t n_entries, struct gkfd_failure *fail)
{
	for (uint32_t i = 0; what->ids && i < what->n; i++) {
		if (find(entries, n_entries, what->ids[i]))
			continue;
		gkfd_fail(fail, -EINVAL, GKFD_WHY_NO_SUCH_QUEUE, "hold");
		fail->queue_id = what->ids[i];
		return -EINVAL;
	}
	return 0;
}

/* The ids to suspend, out of what there is and is not held; *ret is the caller's to free. */
static int choose_ids(const struct gkfd_session *s, const struct gpu_hold *what,
		      const struct kfd_queue_snapshot_entry *entries, uint32_t n_entries,
		      uint32_t **ret, uint32_t *ret_n, struct gkfd_failure *fail)
{
	uint32_t asked = what->ids ? what->n : n_entries, n = 0;
	uint32_t *ids = calloc(asked ? asked : 1, sizeof(*ids));

	if (!ids)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "hold");
	for (uint32_t i = 0; i < asked; i++) {
		uint32_t id = what->ids ? what->ids[i] : entries[i].queue_id;

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

/*
 * Reads what the driver did from the ids, not from the count: a dead scheduler answers 0 like
 * a process without queues. Ids with a bit set are good for nothing else afterwards.
 */
static int judge(const uint32_t *ids, uint32_t n, int count, struct gkfd_failure *fail)
{
	bool missed = (uint32_t)count != n;

	for (uint32_t i = 0; i < n; i++) {
		if (ids[i] & KFD_DBG_QUEUE_ERROR_MASK) {
			gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, "suspend");
			fail->queue_id = ids[i] & ID_MASK;
			return -EIO;
		}
		missed |= ids[i] & KFD_DBG_QUEUE_INVALID_MASK;
	}
	return missed ? gkfd_fail(fail, -EAGAIN, GKFD_WHY_RESTLESS, "suspend") : 0;
}

static int suspend_failed(int error, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -ESRCH, GKFD_WHY_EXITED },
		/* An empty snapshot just worked, so it is not the session. */
		{ -EPERM, GKFD_WHY_RUNTIME_BUSY, -EAGAIN },
		{ -ETIME, GKFD_WHY_PREEMPTION_FAILED, -EIO },
		{ -EIO, GKFD_WHY_PREEMPTION_FAILED },
		{ 0 },
	};

	return gkfd_fail_by(fail, error, meanings, "suspend");
}

/* One suspend call. 0: all of @ids are off; -EAGAIN: some are not, look again; else an error. */
static int suspend_once(struct gkfd_session *s, uint32_t *ids, uint32_t n, struct gkfd_moved *moved,
			struct gkfd_failure *fail)
{
	uint64_t began_ns = gkfd_now_ns(s->k);
	int r;

	s->touched = s->tried = true;
	r = gkfd_dbg_suspend_queues(s->k, s->pid, ids, n, s->grace_kclk);
	moved->began_ns = moved->began_ns ? moved->began_ns : began_ns;
	moved->done_ns = gkfd_now_ns(s->k);
	return r < 0 ? suspend_failed(r, fail) : judge(ids, n, r, fail);
}

/* A process that is to be held wholly may have grown since it was looked at. */
static int check_grown(struct gkfd_session *s, uint32_t n_entries, struct gkfd_failure *fail)
{
	uint32_t now = 0;
	int r = gkfd_dbg_queue_snapshot(s->k, s->pid, 0, NULL, &now);

	if (r < 0)
		return suspend_failed(r, fail);
	if (now > n_entries)
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RESTLESS, "suspend");
	return 0;
}

/* One round: look, suspend, look again. On 0 the session has the ids. */
static int hold_round(struct gkfd_session *s, const struct gpu_hold *what, struct gkfd_moved *moved,
		      struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	const struct kfd_queue_snapshot_entry *broken;
	_cleanup_free_ uint32_t *ids = NULL;
	uint32_t n_entries = 0, n = 0;
	int r;

	r = gkfd_session_snapshot(s, &entries, &n_entries, fail);
	if (r >= 0)
		r = check_ids(what, entries, n_entries, fail);
	if (r >= 0)
		r = choose_ids(s, what, entries, n_entries, &ids, &n, fail);
	if (r >= 0 && n > 0)
		r = suspend_once(s, ids, n, moved, fail);
	broken = r == -EIO ? find(entries, n_entries, fail->queue_id) : NULL;
	if (broken)
		fail->gpu_id = broken->gpu_id;
	if (r >= 0 && !what->ids)
		r = check_grown(s, n_entries, fail);
	return r < 0 ? r : keep_ids(s, ids, n, fail);
}

/* Whatever part was suspended runs again; if even that fails, giving up the session does it. */
static void undo(struct gkfd_session *s)
{
	bool touched = s->touched;

	gkfd_session_forget_held(s);
	if (!touched || gkfd_dbg_resume_queues(s->k, s->pid, NULL, 0) >= 0)
		return;
	if (gkfd_session_disable(s) >= 0)
		s->enabled = false;
}

/*
 * Undoes this hold alone. What it had not suspended runs already, and counts as resumed again.
 * False: it could not be told from what was held before, or not be resumed.
 */
static bool undo_part(struct gkfd_session *s, const struct gpu_hold *what)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	_cleanup_free_ uint32_t *ids = NULL;
	uint32_t n_entries = 0, n = 0;
	struct gkfd_failure fail;

	if (!s->tried)
		return true;
	if (gkfd_session_snapshot(s, &entries, &n_entries, &fail) < 0 ||
	    choose_ids(s, what, entries, n_entries, &ids, &n, &fail) < 0)
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

int gkfd_session_hold(struct gkfd_session *s, const struct gpu_hold *what, struct gkfd_moved *ret,
		      struct gkfd_failure *fail)
{
	uint32_t held_before = s->n_held;
	struct gkfd_moved moved = { 0 };
	int r = check_request(what, fail);

	if (r < 0)
		return r;

	s->tried = false;
	s->grace_kclk = clamp_grace(what->grace_kclk);
	for (int round = 0; round < ROUNDS; round++) {
		r = hold_round(s, what, &moved, fail);
		if (r != -EAGAIN || fail->why != GKFD_WHY_RESTLESS)
			break;
	}
	if (r < 0) {
		if (!s->holding || !is_harmless(fail) || !undo_part(s, what))
			undo(s);
		return r;
	}
	s->holding = true;
	s->holds_all |= !what->ids;
	moved.n = s->n_held - held_before;
	*ret = moved;
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

/* The last @n of the held. The driver marks in the ids what it made of them. */
static int resume_last(struct gkfd_session *s, uint32_t n, struct gkfd_moved *ret,
		       struct gkfd_failure *fail)
{
	struct gkfd_moved done = { .began_ns = gkfd_now_ns(s->k) };
	uint32_t *ids = n ? s->held + (s->n_held - n) : NULL;
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

int gkfd_session_resume(struct gkfd_session *s, const uint32_t *ids, uint32_t n,
			struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	uint32_t part = ids ? part_from_held(s, ids, n) : s->n_held;
	bool whole = !ids || (part > 0 && part == s->n_held);
	int r = resume_last(s, part, ret, fail);

	if (r < 0)
		return r;
	if (whole) {
		gkfd_session_forget_held(s);
		return 0;
	}
	s->n_held -= part;
	s->holds_all = s->holds_all && part == 0;
	return 0;
}
