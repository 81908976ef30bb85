/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/eventfd.h>

#include "gpu/kfd/find.h"
#include "gpu/kfd/pause.h"
#include "gpu/kfd/session.h"
#include "gpu/kfd/target.h"
#include "gpu/kfd/tracer.h"
#include "gpu/kfd/vms.h"
#include "util/macros.h"

#define BEAT_MS 500 /* a quarter of the silence that kills */

struct gkfd_target {
	struct gkfd *k;
	struct gkfd_proc_ident ident;
	struct guard *guard;
	struct tracer *tracer;
	int state_fd;
	int state; /* enum gkfd_target_state; read by any thread */
	bool holds; /* as holding(); read by any thread */
	enum gkfd_way way;

	/* the tracer thread's */
	struct gkfd_session session; /* GKFD_BY_DEBUG */
	struct gkfd_pause pause; /* GKFD_BY_PAUSE */
	int slot; /* in the guard's page, -1: none */
	uint64_t longest_ns, held_since_ns;
	bool guard_gone;
	bool vms_checked; /* once it has them all it keeps them */
	bool vanished; /* the driver knew no such process at the last look */
};

static void set_state(struct gkfd_target *t, enum gkfd_target_state state)
{
	uint64_t one = 1;

	__atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
	while (write(t->state_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static int fail_by_state(struct gkfd_target *t, struct gkfd_failure *fail)
{
	switch (gkfd_target_state(t)) {
	case GKFD_TARGET_ATTACHED:
		return 0;
	case GKFD_TARGET_EXITED:
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_EXITED, "use");
	case GKFD_TARGET_EXECED:
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_EXECED, "use");
	case GKFD_TARGET_TAKEN:
		return gkfd_fail(fail, -EPERM, GKFD_WHY_TAKEN, "use");
	case GKFD_TARGET_GUARD_DIED:
		return gkfd_fail(fail, -EOWNERDEAD, GKFD_WHY_GUARD_DIED, "use");
	case GKFD_TARGET_LET_GO:
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_LET_GO, "use");
	case GKFD_TARGET_FAILED:
	default:
		return gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, "use");
	}
}

/* After a failure the state says whether there is any use in trying again. */
static void note_failure(struct gkfd_target *t, const struct gkfd_failure *fail)
{
	if (gkfd_target_state(t) != GKFD_TARGET_ATTACHED)
		return;
	if (fail->why == GKFD_WHY_EXITED)
		set_state(t, GKFD_TARGET_EXITED);
	else if (fail->why == GKFD_WHY_TAKEN)
		set_state(t, GKFD_TARGET_TAKEN);
	else if (fail->why == GKFD_WHY_PREEMPTION_FAILED)
		set_state(t, GKFD_TARGET_FAILED);
}

static bool holding(const struct gkfd_target *t)
{
	return t->session.holding || t->pause.paused;
}

/* After anything that may have begun or ended a hold. */
static void publish(struct gkfd_target *t)
{
	__atomic_store_n(&t->holds, holding(t), __ATOMIC_RELEASE);
}

static void beat(struct gkfd_target *t, uint64_t allow_ns)
{
	if (t->slot >= 0)
		guard_beat(t->guard, t->slot, allow_ns);
}

static void disarm(struct gkfd_target *t)
{
	if (t->slot >= 0)
		guard_disarm(t->guard, t->slot);
	t->slot = -1;
}

/* ---- on the tracer thread: one way or the other ---- */

/*
 * What a guard could do for a model's process it could do to somebody else's; a model ends with
 * its owner anyway.
 */
static bool guard_has_to_undo(const struct gkfd_target *t)
{
	return t->way == GKFD_BY_PAUSE && t->slot >= 0 && !t->k->transport->modelled;
}

static int entrust(struct gkfd_target *t, struct gkfd_failure *fail)
{
	_cleanup_close_ int pidfd = -1;
	struct guard_undo undo = gkfd_pause_undo();
	int r;

	if (!guard_has_to_undo(t))
		return 0;
	pidfd = t->k->transport->trace->pidfd(t->k->data, t->ident.pid);
	if (pidfd < 0)
		return gkfd_fail(fail, pidfd, GKFD_WHY_SYSTEM, "pidfd");
	r = guard_entrust(t->guard, t->slot, t->pause.fd, pidfd, &undo);
	if (r == -EOWNERDEAD)
		return gkfd_fail(fail, r, GKFD_WHY_GUARD_DIED, "attach");
	return r < 0 ? gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "guard") : 0;
}

static int begin_way(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_begin(&t->session, t->k, t->ident.pid, fail);
	r = gkfd_pause_begin(&t->pause, t->k, t->ident.pid, fail);
	return r < 0 ? r : entrust(t, fail);
}

static void end_way(struct gkfd_target *t)
{
	if (t->way == GKFD_BY_DEBUG)
		gkfd_session_end(&t->session);
	else
		gkfd_pause_end(&t->pause);
}

static void forget_way(struct gkfd_target *t)
{
	if (t->way == GKFD_BY_DEBUG)
		gkfd_session_forget(&t->session);
	else
		gkfd_pause_forget(&t->pause);
}

/* The guard hears of a pause before the driver does. */
static int hold_way(struct gkfd_target *t, const struct gkfd_hold_request *request,
		    struct gkfd_hold *ret, struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_hold(&t->session, request, ret, fail);
	if (guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, true);
	r = gkfd_pause_hold(&t->pause, request, ret, fail);
	if (r < 0 && guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, false);
	return r;
}

static int resume_way(struct gkfd_target *t, struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	int r;

	if (t->way == GKFD_BY_DEBUG)
		return gkfd_session_resume(&t->session, ret, fail);
	r = gkfd_pause_resume(&t->pause, ret, fail);
	if (r >= 0 && guard_has_to_undo(t))
		guard_set_due(t->guard, t->slot, false);
	return r;
}

/* ---- on the tracer thread ---- */

static void on_ended(void *user, enum tracer_end how)
{
	struct gkfd_target *t = user;

	forget_way(t); /* the driver has let go of its queues already */
	publish(t);
	disarm(t);
	set_state(t, how == TRACER_EXECED ? GKFD_TARGET_EXECED : GKFD_TARGET_EXITED);
}

static size_t on_watch(void *user, struct pollfd *fds)
{
	struct gkfd_target *t = user;
	int guard = t->guard && !t->guard_gone ? guard_fd(t->guard) : -1;

	fds[0] = (struct pollfd){ .fd = t->session.event_fd[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = guard, .events = POLLIN };
	return 2;
}

static void resume_now(struct gkfd_target *t)
{
	struct gkfd_resumed resumed;
	struct gkfd_failure fail;

	if (resume_way(t, &resumed, &fail) < 0)
		note_failure(t, &fail);
}

/* Nothing is held without a guard: the target runs again and stays alone from here on. */
static void lose_guard(struct gkfd_target *t)
{
	t->guard_gone = true;
	t->slot = -1;
	if (gkfd_target_state(t) != GKFD_TARGET_ATTACHED)
		return;
	resume_now(t);
	end_way(t);
	set_state(t, GKFD_TARGET_GUARD_DIED);
}

/*
 * An exec by a thread that is not the leader takes the traced task away without a word (since
 * Linux 5.8 not even a waiter is woken); what is left is to ask the driver now and then.
 */
static void look_for_exec(struct gkfd_target *t)
{
	struct gkfd_proc_ident now;
	uint32_t none = 0;

	if (gkfd_dbg_queue_snapshot(t->k, t->ident.pid, 0, NULL, &none) != -ESRCH)
		return;
	if (!t->vanished) {
		gkfd_session_end(&t->session); /* of no effect unless only the leader is gone */
		t->vanished = true; /* a process that just ends is told of before the next look */
		return;
	}
	t->vanished = false;
	if (gkfd_proc_identify(t->k, t->ident.pid, &now) < 0)
		on_ended(t, TRACER_EXITED);
	else if (now.state == 'Z')
		set_state(t, GKFD_TARGET_LET_GO); /* still seized: the end is yet to come */
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

	if (gkfd_proc_identify(t->k, t->ident.pid, &now) < 0 || now.state != 'Z')
		return;
	resume_now(t);
	set_state(t, GKFD_TARGET_LET_GO);
}

static void on_turn(void *user, const struct pollfd *fds, size_t n)
{
	struct gkfd_target *t = user;
	bool held = holding(t);
	struct gkfd_failure fail;

	if (fds[1].revents || (t->slot >= 0 && guard_fd(t->guard) < 0 && !guard_alive(t->guard)))
		lose_guard(t);
	beat(t, fds[0].revents ? GUARD_DRIVER_CALL_NS : GUARD_SILENCE_NS);
	if (fds[0].revents && t->session.enabled && gkfd_session_service(&t->session, &fail) < 0) {
		note_failure(t, &fail);
		resume_now(t); /* held wholly or not at all */
		if (held && gkfd_target_state(t) == GKFD_TARGET_ATTACHED)
			set_state(t, GKFD_TARGET_LET_GO);
	}
	beat(t, GUARD_SILENCE_NS);
	if (t->session.holding && gkfd_is_stained()) {
		resume_now(t); /* our death would not do it any more */
		set_state(t, GKFD_TARGET_LET_GO);
	}
	if (t->session.holding || t->vanished)
		look_for_exec(t);
	if (t->pause.paused)
		look_for_leader(t);
	if (holding(t) && t->longest_ns &&
	    gkfd_now_ns(t->k) - t->held_since_ns >= t->longest_ns)
		resume_now(t);
	publish(t);
}

static int on_timeout(void *user)
{
	struct gkfd_target *t = user;

	return t->slot >= 0 ? BEAT_MS : -1;
}

static void on_leave(void *user)
{
	struct gkfd_target *t = user;

	beat(t, GUARD_DRIVER_CALL_NS); /* disarmed by the owner, once the target is let go */
	end_way(t);
}

static const struct tracer_ops ops = {
	.ended = on_ended,
	.watch = on_watch,
	.turn = on_turn,
	.timeout_ms = on_timeout,
	.leave = on_leave,
};

struct begin_args {
	struct gkfd_target *t;
	struct gkfd_failure *fail;
};

static int do_begin(void *arg)
{
	struct begin_args *a = arg;
	struct gkfd_target *t = a->t;
	struct gkfd_proc_ident now;
	int r;

	/* The pid may have passed to another process between the look and the seizure. */
	r = gkfd_proc_identify(t->k, t->ident.pid, &now);
	if (r < 0 && r != -ESRCH)
		return gkfd_fail(a->fail, r, GKFD_WHY_SYSTEM, "identify");
	if (r < 0 || now.start_ticks != t->ident.start_ticks)
		return gkfd_fail(a->fail, -ESRCH, GKFD_WHY_NO_PROCESS, "seize");
	r = begin_way(t, a->fail);
	beat(t, GUARD_SILENCE_NS);
	return r;
}

struct snapshot_args {
	struct gkfd_target *t;
	struct kfd_queue_snapshot_entry *entries;
	uint32_t n;
	struct gkfd_failure *fail;
};

static int do_snapshot(void *arg)
{
	struct snapshot_args *a = arg;
	int r = fail_by_state(a->t, a->fail);

	if (r < 0)
		return r;
	r = a->t->way == GKFD_BY_DEBUG ?
		    gkfd_session_snapshot(&a->t->session, &a->entries, &a->n, a->fail) :
		    gkfd_pause_snapshot(&a->t->pause, &a->entries, &a->n, a->fail);
	if (r < 0)
		note_failure(a->t, a->fail);
	return r;
}

struct hold_args {
	struct gkfd_target *t;
	const struct gkfd_hold_request *request;
	struct gkfd_hold hold;
	struct gkfd_failure *fail;
};

static int check_guard(const struct gkfd_target *t, struct gkfd_failure *fail)
{
	if (t->slot < 0 || !guard_alive(t->guard))
		return gkfd_fail(fail, -EOWNERDEAD, GKFD_WHY_GUARD_DIED, "hold");
	return 0;
}

static int check_vms(struct gkfd_target *t, struct gkfd_failure *fail)
{
	uint32_t gpu_id;

	if (t->way != GKFD_BY_DEBUG || t->vms_checked)
		return 0;
	if (gkfd_vms_check(t->k, t->ident.pid, &gpu_id) < 0) {
		gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_NO_VM, "hold");
		fail->gpu_id = gpu_id;
		return -EOPNOTSUPP;
	}
	t->vms_checked = true;
	return 0;
}

static int do_hold(void *arg)
{
	struct hold_args *a = arg;
	struct gkfd_target *t = a->t;
	int r = fail_by_state(t, a->fail);

	if (r < 0)
		return r;
	if (holding(t))
		return gkfd_fail(a->fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "hold");
	if (t->way == GKFD_BY_DEBUG && gkfd_is_stained())
		return gkfd_fail(a->fail, -EUCLEAN, GKFD_WHY_STAINED, "hold");
	r = check_guard(t, a->fail);
	if (r >= 0)
		r = check_vms(t, a->fail);
	if (r < 0)
		return r;
	beat(t, GUARD_DRIVER_CALL_NS);
	r = hold_way(t, a->request, &a->hold, a->fail);
	publish(t);
	beat(t, GUARD_SILENCE_NS);
	if (r < 0) {
		note_failure(t, a->fail);
		return r;
	}
	t->longest_ns = a->request->longest_ns;
	t->held_since_ns = gkfd_now_ns(t->k);
	return 0;
}

struct resume_args {
	struct gkfd_target *t;
	struct gkfd_resumed resumed;
	struct gkfd_failure *fail;
};

static int do_resume(void *arg)
{
	struct resume_args *a = arg;
	struct gkfd_target *t = a->t;
	int r = fail_by_state(t, a->fail);

	if (r < 0)
		return r;
	beat(t, GUARD_DRIVER_CALL_NS);
	r = resume_way(t, &a->resumed, a->fail);
	publish(t);
	beat(t, GUARD_SILENCE_NS);
	if (r < 0)
		note_failure(t, a->fail);
	return r;
}

/* ---- for the owner ---- */

/* Before the seizure: from then on a target whose tracer is stopped stops at its next signal. */
static int arm(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int slot = t->guard ? guard_arm(t->guard, t->ident.pid, GUARD_DRIVER_CALL_NS) : -1;

	if (slot == -EOWNERDEAD)
		return gkfd_fail(fail, slot, GKFD_WHY_GUARD_DIED, "attach");
	if (slot == -ENOSPC)
		return gkfd_fail(fail, slot, GKFD_WHY_SYSTEM, "guard");
	t->slot = slot;
	return 0;
}

static int target_new(struct gkfd *k, const struct gkfd_proc_ident *ident, enum gkfd_way way,
		      struct guard *guard, struct gkfd_target **ret)
{
	struct gkfd_target *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct gkfd_target){ .k = k, .ident = *ident, .guard = guard, .slot = -1 };
	t->way = way;
	t->session.event_fd[0] = t->session.event_fd[1] = -1;
	t->pause.fd = -1;
	t->state_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->state_fd < 0) {
		free(t);
		return -errno;
	}
	*ret = t;
	return 0;
}

int gkfd_target_attach(struct gkfd *k, pid_t pid, struct guard *guard, struct gkfd_target **ret,
		       struct gkfd_failure *ret_failure)
{
	return gkfd_target_attach_by(k, pid, GKFD_BY_DEBUG, guard, ret, ret_failure);
}

int gkfd_target_attach_by(struct gkfd *k, pid_t pid, enum gkfd_way way, struct guard *guard,
			  struct gkfd_target **ret, struct gkfd_failure *ret_failure)
{
	enum gkfd_cap cap = way == GKFD_BY_DEBUG ? GKFD_CAP_DEBUG : GKFD_CAP_CRIU;
	_cleanup_(gkfd_target_releasep) struct gkfd_target *t = NULL;
	struct gkfd_proc_ident ident;
	struct begin_args args;
	int r;

	r = gkfd_target_find(k, pid, cap, &ident, ret_failure);
	if (r < 0)
		return r;
	r = target_new(k, &ident, way, guard, &t);
	if (r < 0)
		return gkfd_fail(ret_failure, r, GKFD_WHY_SYSTEM, "attach");
	r = arm(t, ret_failure);
	if (r < 0)
		return r;
	r = tracer_start(k, pid, &ops, t, &t->tracer);
	if (r < 0)
		return gkfd_seize_failed(k, pid, r, ret_failure);
	args = (struct begin_args){ .t = t, .fail = ret_failure };
	r = tracer_call(t->tracer, do_begin, &args);
	if (r < 0)
		return r;
	*ret = steal_ptr(&t);
	return 0;
}

void gkfd_target_release(struct gkfd_target *t)
{
	if (!t)
		return;
	if (t->tracer)
		tracer_stop(t->tracer);
	disarm(t);
	closep(&t->state_fd);
	free(t);
}

void gkfd_target_releasep(struct gkfd_target **t)
{
	gkfd_target_release(*t);
}

pid_t gkfd_target_pid(const struct gkfd_target *t)
{
	return t->ident.pid;
}

enum gkfd_target_state gkfd_target_state(struct gkfd_target *t)
{
	return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
}

bool gkfd_target_holds(struct gkfd_target *t)
{
	return __atomic_load_n(&t->holds, __ATOMIC_ACQUIRE);
}

int gkfd_target_fd(const struct gkfd_target *t)
{
	return t->state_fd;
}

int gkfd_target_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret,
			 uint32_t *ret_n, struct gkfd_failure *ret_failure)
{
	struct snapshot_args args = { .t = t, .fail = ret_failure };
	int r = tracer_call(t->tracer, do_snapshot, &args);

	if (r < 0)
		return r;
	*ret = args.entries;
	*ret_n = args.n;
	return 0;
}

int gkfd_target_hold(struct gkfd_target *t, const struct gkfd_hold_request *request,
		     struct gkfd_hold *ret, struct gkfd_failure *ret_failure)
{
	struct hold_args args = { .t = t, .request = request, .fail = ret_failure };
	int r = tracer_call(t->tracer, do_hold, &args);

	if (r >= 0)
		*ret = args.hold;
	return r;
}

int gkfd_target_resume(struct gkfd_target *t, struct gkfd_resumed *ret,
		       struct gkfd_failure *ret_failure)
{
	struct resume_args args = { .t = t, .fail = ret_failure };
	int r = tracer_call(t->tracer, do_resume, &args);

	if (r >= 0)
		*ret = args.resumed;
	return r;
}
