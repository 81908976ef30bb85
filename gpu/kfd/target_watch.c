/* SPDX-License-Identifier: MIT */
/* What the tracer thread does by itself: its target ends, its guard dies, a hold grows too long. */
#include <errno.h>

#include "gpu/kfd/target.h"
#include "util/macros.h"

#define OWN_FDS 2

static void on_ended(void *user, enum tracer_end how)
{
	struct gkfd_target *t = user;

	gkfd_session_forget(&t->session); /* the driver has let go of its queues already */
	target_publish(t);
	target_disarm(t);
	target_end(t, how == TRACER_EXECED ? GKFD_WHY_EXECED : GKFD_WHY_EXITED);
}

static size_t on_watch(void *user, struct pollfd *fds)
{
	struct gkfd_target *t = user;
	int guard = t->with.guard && !t->guard_gone ? guard_fd(t->with.guard) : -1;
	int events = t->session.enabled ? t->session.event_fd[0] : -1;

	/* Nobody reads what is left in the pipe of a session that is over. */
	fds[0] = (struct pollfd){ .fd = events, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = guard, .events = POLLIN };
	return OWN_FDS + (t->with.hooks->watch ? t->with.hooks->watch(t->with.user, &fds[2]) : 0);
}

static void resume_now(struct gkfd_target *t)
{
	struct gkfd_moved moved;
	struct gkfd_failure fail;

	target_beat(t, GUARD_DRIVER_CALL_NS);
	if (t->ops->resume(&t->session, NULL, 0, &moved, &fail) < 0)
		target_note_failure(t, &fail);
	target_beat(t, GUARD_SILENCE_NS);
}

/*
 * Nothing is held without a guard: the target runs again and stays alone from here on. The timer
 * behind the guard runs on meanwhile, and must not end us afterwards.
 */
static void lose_guard(struct gkfd_target *t)
{
	bool attached = t->attached && !t->error;

	t->guard_gone = true;
	if (attached) {
		resume_now(t);
		target_beat(t, GUARD_DRIVER_CALL_NS);
		t->ops->end(&t->session);
	}
	target_disarm(t);
	if (attached)
		target_end(t, GKFD_WHY_GUARD_DIED);
}

/*
 * An exec by a thread that is not the leader takes the traced task away without a word (since
 * Linux 5.8 not even a waiter is woken); what is left is to ask the driver now and then.
 */
static void look_for_exec(struct gkfd_target *t)
{
	struct gkfd_proc_ident now;
	uint32_t none = 0;
	int r;

	/* It waits for whatever the target itself waits for in the driver. */
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = gkfd_dbg_queue_snapshot(t->k, t->with.pid, 0, NULL, &none);
	if (r == -ESRCH && !t->vanished)
		gkfd_session_end(&t->session); /* of no effect unless only the leader is gone */
	target_beat(t, GUARD_SILENCE_NS);
	if (r != -ESRCH)
		return;
	if (!t->vanished) {
		t->vanished = true; /* a process that just ends is told of before the next look */
		return;
	}
	t->vanished = false;
	if (gkfd_proc_identify(t->k, t->with.pid, &now) < 0)
		on_ended(t, TRACER_EXITED);
	else if (now.state == 'Z')
		target_end(t, GKFD_WHY_LET_GO); /* still seized: the end is yet to come */
	else
		on_ended(t, TRACER_EXECED);
}

/*
 * Once the leader has ended nobody can seize the process any more, and the guard could not
 * unpause it.
 */
static void look_for_leader(struct gkfd_target *t)
{
	struct gkfd_proc_ident now;
	int r = gkfd_proc_identify(t->k, t->with.pid, &now);

	if (r == -ESRCH) /* of a software device's process nobody else tells */
		on_ended(t, TRACER_EXITED);
	if (r < 0 || now.state != 'Z')
		return;
	resume_now(t);
	target_end(t, GKFD_WHY_LET_GO);
}

static void on_orders(void *user, const struct pollfd *fds)
{
	struct gkfd_target *t = user;

	if (t->with.hooks->turn)
		t->with.hooks->turn(t->with.user, &fds[OWN_FDS]);
}

static void on_turn(void *user, const struct pollfd *fds, size_t n)
{
	struct gkfd_target *t = user;
	bool by_debug = t->with.way == GKFD_BY_DEBUG, held = t->session.holding;
	struct gkfd_failure fail;

	if (fds[1].revents ||
	    (t->slot >= 0 && guard_fd(t->with.guard) < 0 && !guard_alive(t->with.guard)))
		lose_guard(t);
	if (fds[0].revents)
		target_beat(t, GUARD_DRIVER_CALL_NS);
	if (fds[0].revents && t->session.enabled && gkfd_session_service(&t->session, &fail) < 0) {
		target_note_failure(t, &fail);
		resume_now(t); /* held wholly or not at all */
		if (held && !t->error)
			target_end(t, GKFD_WHY_LET_GO);
	}
	target_beat(t, GUARD_SILENCE_NS);
	if (by_debug && t->session.holding && gkfd_is_stained()) {
		resume_now(t); /* our death would not do it any more */
		target_end(t, GKFD_WHY_LET_GO);
	}
	if (by_debug && (t->session.holding || t->vanished))
		look_for_exec(t);
	if (!by_debug && t->session.holding)
		look_for_leader(t);
	if (t->session.holding && gkfd_now_ns(t->k) >= t->resume_at_ns)
		resume_now(t);
	target_publish(t);
}

/*
 * A turn too early costs nothing, one too late is a hold too long. Who holds nothing has only to
 * say often enough that it is well.
 */
static int on_timeout(void *user)
{
	struct gkfd_target *t = user;
	uint64_t now_ns, left_ns = GUARD_BEAT_NS;

	if (!t->session.holding)
		return t->slot >= 0 || t->vanished ? (int)(2 * GUARD_BEAT_NS / NSEC_PER_MSEC) : -1;
	now_ns = gkfd_now_ns(t->k);
	if (t->resume_at_ns != UINT64_MAX)
		left_ns = MIN(left_ns, t->resume_at_ns > now_ns ? t->resume_at_ns - now_ns : 0);
	return (int)((left_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

static void on_leave(void *user)
{
	struct gkfd_target *t = user;

	target_beat(t, GUARD_DRIVER_CALL_NS); /* disarmed by the owner, once the target is let go */
	t->ops->end(&t->session);
}

static void on_gone(void *user)
{
	struct gkfd_target *t = user;

	target_disarm(t);
	t->with.hooks->gone(t->with.user);
}

const struct tracer_ops target_tracer_ops = {
	.ended = on_ended,
	.watch = on_watch,
	.orders = on_orders,
	.turn = on_turn,
	.timeout_ms = on_timeout,
	.leave = on_leave,
	.gone = on_gone,
};
