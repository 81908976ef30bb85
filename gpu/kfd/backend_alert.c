/* SPDX-License-Identifier: MIT */
/*
 * Being told at once when a process submits work: watchpoints on the write pointers of its queues.
 * They are armed when a look has found it idle. Of more queues than there are registers some are
 * watched, and as long as others are used, too, work is to be looked for.
 */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

static struct gpu_watch *watch_of(struct alert *a)
{
	return container_of(a, struct gpu_watch, alert);
}

/* ---- which queues ---- */

/* So many uses of another queue it takes to have the place of one that was not used meanwhile. */
#define USES 256
/* A process that used a queue that is not watched may do so again. */
#define MISSED_NS (10 * NSEC_PER_SEC)

static bool is_chosen(const uint32_t *chosen, size_t n, uint32_t queue)
{
	for (size_t i = 0; i < n; i++) {
		if (chosen[i] == queue)
			return true;
	}
	return false;
}

static bool can_be_watched(const struct gkfd_look_queue *q)
{
	return q->addr.write_ptr_addr && q->addr.write_ptr_addr % sizeof(uint64_t) == 0;
}

/* The one used last of those that are not chosen; n_known: there is none. */
static uint32_t used_last(const struct watched *q, const uint32_t *chosen, size_t n)
{
	uint32_t best = (uint32_t)q->n_known;

	for (uint32_t i = 0; i < q->n_known; i++) {
		if (is_chosen(chosen, n, i) || !can_be_watched(&q->known[i]))
			continue;
		if (best == q->n_known || q->used[i] > q->used[best])
			best = i;
	}
	return best;
}

/* One that has not been used for long makes room for one that has. */
static void replace_one(const struct watched *q, uint32_t *chosen, size_t n)
{
	uint32_t other = used_last(q, chosen, n);
	size_t least = 0;

	for (size_t i = 1; i < n; i++) {
		if (q->used[chosen[i]] < q->used[chosen[least]])
			least = i;
	}
	if (other < q->n_known && q->used[other] > q->used[chosen[least]] + USES)
		chosen[least] = other;
}

/* Those of the last time stay, but for one: others would cost a new watchpoint for each thread. */
static size_t choose(const struct gpu_watch *w, uint32_t *ret)
{
	const struct watched *q = &w->q;
	size_t n = w->alert.n;

	memcpy(ret, w->alert_queues, n * sizeof(*ret));
	if (n == POINTS_ADDRESSES) {
		replace_one(q, ret, n);
		return n;
	}
	for (; n < POINTS_ADDRESSES; n++) {
		ret[n] = used_last(q, ret, n);
		if (ret[n] == q->n_known)
			break;
	}
	return n;
}

/* ---- arming ---- */

static bool is_busy(const struct gpu_watch *w)
{
	for (size_t i = 0; i < w->q.n_known; i++) {
		const struct gpu_sample *s = &w->q.samples[i];

		if (s->state == GPU_BUSY || s->read != s->write)
			return true;
	}
	return false;
}

static void arm(struct gpu_watch *w)
{
	uint64_t addresses[POINTS_ADDRESSES] = { 0 }, expected[POINTS_ADDRESSES] = { 0 };
	uint32_t chosen[POINTS_ADDRESSES] = { 0 };
	size_t n = choose(w, chosen);

	if (!n)
		return;
	for (size_t i = 0; i < n; i++) {
		addresses[i] = w->q.known[chosen[i]].addr.write_ptr_addr;
		expected[i] = w->q.samples[chosen[i]].write;
	}
	if (!alert_arm(&w->alert, addresses, expected, n))
		return;
	w->alert_told = false;
	memcpy(w->alert_queues, chosen, sizeof(chosen));
	alerts_see(w->b->alerts);
}

/* As by a thread that came after it was armed, which may be so with each burst. */
static bool is_missed(struct gpu_watch *w, uint32_t queue)
{
	if (!is_chosen(w->alert_queues, w->alert.n, queue))
		return true;
	return !w->alert_told && alert_is_silent(&w->alert);
}

void alert_note_use(struct gpu_watch *w, uint32_t queue)
{
	w->q.used[queue] = ++w->uses;
	if (w->has_alert && w->alert.n && is_missed(w, queue))
		w->missed_ns = gkfd_now_ns(w->b->k);
}

static bool may_miss(const struct gpu_watch *w)
{
	return w->missed_ns && gkfd_now_ns(w->b->k) - w->missed_ns < MISSED_NS;
}

/* What was written since may not have been there yet when it was looked at. */
static void keep_struck(struct gpu_watch *w)
{
	for (uint32_t i = 0; i < w->alert.n; i++) {
		struct gpu_sample *s = &w->q.samples[w->alert_queues[i]];

		if (w->struck >> i & 1 && s->write == w->alert.expected[i])
			s->state = GPU_BUSY;
	}
}

void alert_looked(struct gpu_watch *w)
{
	if (!w->has_alert)
		return;
	keep_struck(w);
	if (!is_busy(w))
		arm(w);
}

/* ---- on and off ---- */

static int begin(struct gpu_watch *w)
{
	struct backend *b = w->b;

	if (!b->k->transport->is_real || !b->k->transport->is_real(b->k->data, w->pid))
		return -EOPNOTSUPP;
	return b->alerts ? alert_begin(b->alerts, &w->alert, w->pid) : b->alerts_error;
}

void alert_open(struct backend *b)
{
	b->alerts_error = -EOPNOTSUPP;
	if (!b->k->transport->is_real)
		return;
	b->alerts_error = alerts_new(&b->alerts);
	if (b->alerts_error >= 0)
		b->alerts_error = acting_poll(&b->base, PART_ALERTS, alerts_readers_fd(b->alerts));
}

int alert_fd(struct gpu_backend *base)
{
	const struct backend *b = (struct backend *)base;

	return b->alerts ? alerts_fd(b->alerts) : -1;
}

void alert_set(struct gpu_watch *w, bool on)
{
	if (w->wants_alert == on)
		return;
	w->wants_alert = on;
	if (!on) {
		alert_done(w);
		return;
	}
	w->alert_error = begin(w);
	w->has_alert = w->alert_error >= 0;
}

void alert_done(struct gpu_watch *w)
{
	if (w->has_alert)
		alert_end(&w->alert);
	w->has_alert = w->wants_alert = false;
	w->struck = 0;
}

void alert_changed(struct gpu_watch *w)
{
	w->struck = 0;
	if (w->has_alert)
		alert_disarm(&w->alert);
}

/* ---- what was told ---- */

static void strike(struct gpu_watch *w, uint32_t written)
{
	w->struck |= written;
	w->alert_told = true;
	for (uint32_t i = 0; i < w->alert.n; i++) {
		if (written >> i & 1)
			w->q.samples[w->alert_queues[i]].state = GPU_BUSY;
	}
	w->result = MAX(w->result, 0);
	w->looked = true;
}

pid_t alert_next(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;
	struct alert *a;
	uint32_t written;

	if (!b->alerts)
		return 0;
	a = alerts_next(b->alerts, &written);
	if (!a)
		return 0;
	strike(watch_of(a), written);
	return a->pid;
}

int alert_state(const struct gpu_watch *w, const char **ret_why)
{
	const struct alert *a = &w->alert;
	int error = w->has_alert ? a->error : w->alert_error;

	if (!w->wants_alert)
		return 0;
	if (error < 0) {
		*ret_why = error == -EOPNOTSUPP && !w->has_alert ?
				   "the device has made it up" :
				   alert_why(error);
		return error;
	}
	return a->state == ALERT_ARMED && !w->q.n_unseen && !may_miss(w);
}
