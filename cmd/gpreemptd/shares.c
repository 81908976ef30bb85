/* SPDX-License-Identifier: MIT */
/*
 * Room for processes and queues is limited, and shared between users: where it is full, whoever has
 * most of it makes room for those who have less. So nobody can keep others out.
 */
#include <errno.h>
#include <stdio.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define NEW_AT_ONCE 4096u /* processes whose users are asked for in one scan */
#define REFUSED_AT_ONCE 256u /* of those that found no room before */
#define NEWCOMERS_PER_USER 512u

enum room { PROCESSES, QUEUES };

static size_t sum_of(const struct scheduler *s, uid_t uid, enum room room)
{
	size_t n = 0;

	for_each_process(s, p) {
		if (p->identity.uid == uid)
			n += room == QUEUES ? p->n_queues : 1;
	}
	return n;
}

/* What the user with most has. */
static size_t most_of(const struct scheduler *s, enum room room, uid_t *ret_uid)
{
	size_t most = 0;

	for_each_process(s, p) {
		uid_t uid = p->identity.uid;
		size_t n = most && uid == *ret_uid ? 0 : sum_of(s, uid, room);

		if (n > most) {
			most = n;
			*ret_uid = uid;
		}
	}
	return most;
}

/* ---- processes ---- */

/* Would one more leave this user with no more than the one with most has then? */
static bool has_claim(struct scheduler *s, uid_t uid)
{
	struct refused *r = &s->refused;

	if (!r->most) /* of the scan, but for those who came in it */
		r->most = most_of(s, PROCESSES, &r->most_uid);
	return uid != r->most_uid && sum_of(s, uid, PROCESSES) + 1 < r->most;
}

/* Who is left alone anyway before all others, and then the last to come. */
static struct process *least_needed(const struct scheduler *s, uid_t uid)
{
	struct process *least = NULL;

	for_each_process(s, p) {
		bool managed = p->verdict.job_class != JOB_UNMANAGED;
		bool least_managed = least && least->verdict.job_class != JOB_UNMANAGED;

		if (p->identity.uid != uid)
			continue;
		if (!least || managed < least_managed ||
		    (managed == least_managed && p->seen_ns > least->seen_ns))
			least = p;
	}
	return least;
}

bool shares_make_room(struct scheduler *s, uid_t uid)
{
	struct process *p;

	if (s->n_processes < SCHEDULER_MAX_PROCESSES)
		return true;
	s->refused.most = 0;
	if (!has_claim(s, uid))
		return false;
	p = least_needed(s, s->refused.most_uid);
	s->refused.most = 0;
	act_let_go(s, p, "others have less room");
	process_drop(s, p);
	return true;
}

static size_t newcomers_of(const struct scheduler *s, uid_t uid, size_t *ret_all)
{
	const struct newcomer *c;
	size_t n = 0;

	*ret_all = 0;
	TAILQ_FOREACH(c, &s->newcomers, link) {
		n += c->uid == uid;
		++*ret_all;
	}
	return n;
}

static bool may_come(struct scheduler *s, uid_t uid)
{
	size_t all, own = newcomers_of(s, uid, &all);

	if (own >= NEWCOMERS_PER_USER || all >= SCHEDULER_MAX_PROCESSES)
		return false;
	return s->n_processes + all < SCHEDULER_MAX_PROCESSES || has_claim(s, uid);
}

/* Both ascend: what was refused in the last scan is passed by as this one goes on. */
static bool was_refused(struct scheduler *s, pid_t pid)
{
	struct refused *r = &s->refused;
	const pid_t *before = r->pids[!r->now];

	while (r->at < r->n_before && before[r->at] < pid)
		r->at++;
	return r->at < r->n_before && before[r->at] == pid;
}

static bool is_asked_now(struct scheduler *s, pid_t pid)
{
	struct refused *r = &s->refused;

	if (!was_refused(s, pid))
		return r->asked++ < NEW_AT_ONCE;
	return r->at - r->from < REFUSED_AT_ONCE; /* wraps: those before it wait for their turn */
}

static void refuse(struct scheduler *s, pid_t pid)
{
	struct refused *r = &s->refused;

	if (r->n < SCHEDULER_MAX_LISTED)
		r->pids[r->now][r->n++] = pid;
}

bool shares_admit(struct scheduler *s, pid_t pid, uid_t *ret_uid)
{
	if (is_asked_now(s, pid) && ops(s)->owner(s->b, pid, ret_uid) >= 0 && may_come(s, *ret_uid))
		return true;
	refuse(s, pid);
	return false;
}

/* Who found no room in the last scan waits for the next. */
static bool is_refused(const struct refused *r, pid_t pid)
{
	const pid_t *last = r->pids[r->now];
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (last[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->n && last[low] == pid;
}

bool shares_admit_between(struct scheduler *s, pid_t pid, uid_t *ret_uid)
{
	struct refused *r = &s->refused;

	return !is_refused(r, pid) && r->asked++ < NEW_AT_ONCE &&
	       ops(s)->owner(s->b, pid, ret_uid) >= 0 && may_come(s, *ret_uid);
}

void shares_begin(struct scheduler *s)
{
	struct refused *r = &s->refused;

	r->now = !r->now;
	r->n_before = r->n;
	r->n = r->at = r->asked = r->most = 0;
	r->from = r->from + REFUSED_AT_ONCE < r->n_before ? r->from + REFUSED_AT_ONCE : 0;
}

const char *shares_problem(const struct scheduler *s, char *buf, size_t size)
{
	if (!s->refused.n || s->n_processes < SCHEDULER_MAX_PROCESSES)
		return NULL; /* or they may come in the next scan */
	snprintf(buf, size, "more processes use a GPU than there is room for: %zu are left alone",
		 s->refused.n);
	return buf;
}

/* ---- queues ---- */

/* The one with most queues of the user with most, who has more than @n of @p's user would be. */
static struct process *heaviest(const struct scheduler *s, const struct process *p, size_t n)
{
	struct process *found = NULL;
	uid_t uid = p->identity.uid;
	size_t most = most_of(s, QUEUES, &uid);

	if (uid == p->identity.uid || most <= sum_of(s, p->identity.uid, QUEUES) - p->n_queues + n)
		return NULL;
	for_each_process(s, other) {
		if (other->identity.uid == uid && (!found || other->n_queues > found->n_queues))
			found = other;
	}
	return found;
}

bool shares_make_room_for_queues(struct scheduler *s, const struct process *p, size_t n)
{
	while (s->n_queues - p->n_queues + n > SCHEDULER_MAX_QUEUES) {
		struct process *other = heaviest(s, p, n);

		if (!other)
			return false;
		jobs_leave_alone(s, other);
	}
	return true;
}
