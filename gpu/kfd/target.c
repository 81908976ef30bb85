/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/target.h"

#include <errno.h>
#include <string.h>

#include "gpu/freezer.h"
#include "util/macros.h"

/* ---- its end ---- */

static void explain(const struct gkfd_target *t, int r, const struct gkfd_failure *fail,
		    struct gpu_done *done)
{
	done->result = r;
	done->gpu_failed = fail->why == GKFD_WHY_PREEMPTION_FAILED;
	done->gpu = fail->gpu_id;
	gkfd_failure_describe(t->k, r, t->with.pid, fail, &done->why);
}

void target_settle(struct gkfd_target *t)
{
	struct gpu_done done = { .verb = GPU_ENDED };

	t->busy = false;
	if (t->told || !t->attached || !t->error)
		return;
	t->told = true;
	done.began_ns = done.done_ns = gkfd_now_ns(t->k);
	explain(t, t->error, &t->failure, &done);
	t->with.hooks->ended(t->with.user, &done);
}

/* 0: it does not last. */
static int error_at_end(enum gkfd_why why)
{
	switch (why) {
	case GKFD_WHY_EXITED:
	case GKFD_WHY_EXECED:
		return -ESRCH;
	case GKFD_WHY_TAKEN:
		return -EPERM;
	case GKFD_WHY_GUARD_DIED:
		return -EOWNERDEAD;
	case GKFD_WHY_LET_GO:
		return -EAGAIN;
	case GKFD_WHY_PREEMPTION_FAILED: /* leave this GPU alone */
		return -EIO;
	default:
		return 0;
	}
}

static void end(struct gkfd_target *t, const struct gkfd_failure *fail)
{
	t->error = error_at_end(fail->why);
	t->failure = *fail;
	if (!t->busy)
		target_settle(t);
}

void target_end(struct gkfd_target *t, enum gkfd_why why)
{
	end(t, &(struct gkfd_failure){ .why = why });
}

void target_note_failure(struct gkfd_target *t, const struct gkfd_failure *fail)
{
	if (!t->error && error_at_end(fail->why))
		end(t, fail);
}

/* Still attached? */
static int check(const struct gkfd_target *t, struct gkfd_failure *fail)
{
	if (t->error)
		*fail = t->failure;
	return t->error;
}

/* ---- what is held ---- */

/*
 * What a guard could do for a model's process it could do to somebody else's; a model ends with
 * its owner anyway.
 */
static bool guard_has_to_undo(const struct gkfd_target *t)
{
	return t->with.way == GKFD_BY_PAUSE && t->slot >= 0 && !t->k->transport->modelled;
}

void target_publish(struct gkfd_target *t)
{
	__atomic_store_n(&t->holds, t->session.holding, __ATOMIC_RELEASE);
	if (guard_has_to_undo(t))
		guard_set_due(t->with.guard, t->slot, 0, t->session.holding);
}

void target_beat(struct gkfd_target *t, uint64_t allow_ns)
{
	if (t->slot >= 0)
		guard_beat(t->with.guard, t->slot, allow_ns);
}

void target_disarm(struct gkfd_target *t)
{
	if (t->slot >= 0)
		guard_disarm(t->with.guard, t->slot);
	t->slot = -1;
}

/* ---- attaching ---- */

/* Before the seizure: from then on a target whose tracer is stopped stops at its next signal. */
static int arm(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int slot = -1;

	if (t->with.guard)
		slot = guard_arm(t->with.guard, t->with.pid, GUARD_DRIVER_CALL_NS);
	if (slot == -EOWNERDEAD)
		return gkfd_fail(fail, slot, GKFD_WHY_GUARD_DIED, "attach");
	if (slot == -ENOSPC)
		return gkfd_fail(fail, slot, GKFD_WHY_SYSTEM, "guard");
	t->slot = slot;
	return 0;
}

static int entrust(struct gkfd_target *t, struct gkfd_failure *fail)
{
	_cleanup_close_ int pidfd = -1;
	struct guard_undo undo;
	int r;

	if (!guard_has_to_undo(t))
		return 0;
	pidfd = t->k->transport->trace->pidfd(t->k->data, t->with.pid);
	if (pidfd < 0)
		return gkfd_fail(fail, pidfd, GKFD_WHY_SYSTEM, "pidfd");
	gkfd_pause_undo(&undo);
	r = guard_entrust(t->with.guard, t->slot, t->session.fd, pidfd, &undo);
	if (r == -EOWNERDEAD)
		return gkfd_fail(fail, r, GKFD_WHY_GUARD_DIED, "attach");
	return r < 0 ? gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "guard") : 0;
}

/* What is seized. */
static int begin(struct gkfd_target *t, struct gkfd_failure *fail)
{
	struct gkfd_proc_ident now;
	int r;

	/* The pid may have passed to another process between the look and the seizure. */
	r = gkfd_proc_identify(t->k, t->with.pid, &now);
	if (r < 0 && r != -ESRCH)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "identify");
	if (r < 0 || now.start_ticks != t->ident.start_ticks)
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_PROCESS, "seize");
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = t->ops->begin(&t->session, t->k, t->with.pid, fail);
	if (r >= 0)
		r = entrust(t, fail);
	target_beat(t, GUARD_SILENCE_NS);
	return r;
}

static int seize(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int r = arm(t, fail);

	if (r < 0)
		return r;
	r = tracer_seize(t->tracer);
	if (r < 0)
		return gkfd_seize_failed(t->k, t->with.pid, r, fail);
	return begin(t, fail);
}

static int find_and_seize(struct gkfd_target *t, struct gkfd_failure *fail)
{
	enum gkfd_cap cap = t->with.way == GKFD_BY_DEBUG ? GKFD_CAP_DEBUG : GKFD_CAP_CRIU;
	int r = gkfd_target_find(t->k, t->with.pid, cap, &t->ident, fail);

	if (r < 0)
		return r;
	if (t->with.start_ticks && t->ident.start_ticks != t->with.start_ticks)
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_PROCESS, "identify");
	if (!t->k->transport->modelled && freezer_check(t->with.pid) < 0)
		return gkfd_fail(fail, -EPERM, GKFD_WHY_FREEZER, "attach");
	r = seize(t, fail);
	if (r < 0) {
		tracer_let_go(t->tracer);
		target_disarm(t);
	}
	return r;
}

int target_attach_here(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int r = find_and_seize(t, fail);

	t->attached = r >= 0;
	t->error = r;
	t->failure = *fail;
	return r;
}

/* ---- holding ---- */

/* A model's queues are nobody's: they may be held unguarded where the owner wants it so. */
static int check_guard(const struct gkfd_target *t, struct gkfd_failure *fail)
{
	if (!t->with.guard && t->k->transport->modelled)
		return 0;
	if (t->slot < 0 || !guard_alive(t->with.guard))
		return gkfd_fail(fail, -EOWNERDEAD, GKFD_WHY_GUARD_DIED, "hold");
	return 0;
}

static int check_vms(struct gkfd_target *t, struct gkfd_failure *fail)
{
	int r;

	if (t->with.way != GKFD_BY_DEBUG || t->vms_checked)
		return 0;
	target_beat(t, GUARD_DRIVER_CALL_NS); /* it may have as many descriptors as it likes */
	r = gkfd_vms_check(t->k, t->with.pid, fail);
	t->vms_checked = r >= 0;
	return r;
}

static int check_hold(struct gkfd_target *t, const struct gpu_hold *what, uint64_t called_ns,
		      struct gkfd_failure *fail)
{
	int r = check(t, fail);

	if (r < 0)
		return r;
	if (t->with.way == GKFD_BY_DEBUG && gkfd_is_stained())
		return gkfd_fail(fail, -EUCLEAN, GKFD_WHY_STAINED, "hold");
	if (what->longest_ns && gkfd_now_ns(t->k) - called_ns >= what->longest_ns)
		return gkfd_fail(fail, -ETIMEDOUT, GKFD_WHY_TOO_LATE, "hold");
	r = check_guard(t, fail);
	return r < 0 ? r : check_vms(t, fail);
}

static uint64_t resume_at_ns(const struct gpu_hold *what, uint64_t called_ns)
{
	uint64_t at_ns;

	if (!what->longest_ns || __builtin_add_overflow(called_ns, what->longest_ns, &at_ns))
		return UINT64_MAX;
	return at_ns;
}

int target_hold_here(struct gkfd_target *t, const struct gpu_hold *what, uint64_t called_ns,
		     struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	bool held = t->session.holding;
	uint64_t at_ns;
	int r = check_hold(t, what, called_ns, fail);

	if (r < 0) {
		target_beat(t, GUARD_SILENCE_NS);
		return r;
	}
	target_beat(t, GUARD_DRIVER_CALL_NS);
	if (guard_has_to_undo(t)) /* it hears of a pause before the driver does */
		guard_set_due(t->with.guard, t->slot, 0, true);
	r = t->ops->hold(&t->session, what, ret, fail);
	target_publish(t);
	target_beat(t, GUARD_SILENCE_NS);
	if (r < 0) {
		target_note_failure(t, fail);
		if (held && !t->session.holding && !t->error)
			target_end(t, GKFD_WHY_LET_GO);
		return r;
	}
	at_ns = resume_at_ns(what, called_ns);
	t->resume_at_ns = held ? MAX(t->resume_at_ns, at_ns) : at_ns;
	return 0;
}

int target_resume_here(struct gkfd_target *t, const uint32_t *ids, uint32_t n,
		       struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	int r = check(t, fail);

	if (r < 0)
		return r;
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = t->ops->resume(&t->session, ids, n, ret, fail);
	target_publish(t);
	target_beat(t, GUARD_SILENCE_NS);
	if (r < 0)
		target_note_failure(t, fail);
	return r;
}

/* ---- orders ---- */

static int dispatch(struct gkfd_target *t, enum gpu_verb verb, const struct gpu_hold *what,
		    uint64_t called_ns, struct gkfd_moved *moved, struct gkfd_failure *fail)
{
	int r;

	switch (verb) {
	case GPU_ATTACH:
		moved->began_ns = gkfd_now_ns(t->k);
		r = target_attach_here(t, fail);
		moved->done_ns = gkfd_now_ns(t->k);
		return r;
	case GPU_SUSPEND:
		return target_hold_here(t, what, called_ns, moved, fail);
	default:
		return target_resume_here(t, what->ids, (uint32_t)what->n, moved, fail);
	}
}

void target_run(struct gkfd_target *t, const struct gpu_hold *what, uint64_t called_ns,
		struct gpu_done *done)
{
	struct gkfd_moved moved = { 0 };
	struct gkfd_failure fail = { 0 };
	int r;

	t->busy = true;
	r = dispatch(t, done->verb, what, called_ns, &moved, &fail);
	if (!moved.began_ns) /* the driver was not asked, or did not say */
		moved.began_ns = moved.done_ns = gkfd_now_ns(t->k);
	done->began_ns = moved.began_ns;
	done->done_ns = moved.done_ns;
	done->queues = moved.n;
	if (r < 0)
		explain(t, r, &fail, done);
	done->holds = target_holds(t);
}

/* ---- for the owner ---- */

static void target_freep(struct gkfd_target **t)
{
	target_free(*t);
}

int target_new(struct gkfd *k, const struct target_options *options, struct gkfd_target **ret)
{
	_cleanup_(target_freep) struct gkfd_target *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->k = k;
	t->with = *options;
	t->ops = options->way == GKFD_BY_DEBUG ? &gkfd_session_by_debug : &gkfd_session_by_pause;
	t->session = GKFD_SESSION_NONE;
	t->slot = -1;
	r = tracer_new(k, options->pid, &target_tracer_ops, t, &t->tracer);
	if (r < 0)
		return r;
	*ret = steal_ptr(&t);
	return 0;
}

void target_leave(struct gkfd_target *t)
{
	tracer_leave(t->tracer);
}

void target_free(struct gkfd_target *t)
{
	if (!t)
		return;
	if (t->tracer)
		tracer_stop(t->tracer);
	target_disarm(t);
	free(t);
}

bool target_holds(struct gkfd_target *t)
{
	return __atomic_load_n(&t->holds, __ATOMIC_ACQUIRE);
}

struct held_args {
	const struct gkfd_session *s;
	uint32_t *ret;
	size_t max;
};

static int do_held(void *arg)
{
	struct held_args *a = arg;
	uint32_t n = a->s->holding ? a->s->n_held : 0;

	if (MIN(a->max, n))
		memcpy(a->ret, a->s->held, MIN(a->max, n) * sizeof(*a->ret));
	return (int)n;
}

int target_held(struct gkfd_target *t, uint32_t *ret, size_t max)
{
	struct held_args args = { &t->session, ret, max };

	return tracer_call(t->tracer, do_held, &args);
}

struct snapshot_args {
	struct gkfd_target *t;
	struct kfd_queue_snapshot_entry **ret;
	uint32_t *ret_n;
	struct gkfd_failure *fail;
};

static int do_snapshot(void *arg)
{
	struct snapshot_args *a = arg;
	struct gkfd_target *t = a->t;
	int r = check(t, a->fail);

	if (r < 0)
		return r;
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = t->ops->snapshot(&t->session, a->ret, a->ret_n, a->fail);
	target_beat(t, GUARD_SILENCE_NS);
	if (r < 0)
		target_note_failure(t, a->fail);
	return r;
}

int gkfd_target_snapshot(struct gkfd_target *t, struct kfd_queue_snapshot_entry **ret,
			 uint32_t *ret_n, struct gkfd_failure *ret_failure)
{
	struct snapshot_args args = { t, ret, ret_n, ret_failure };

	return tracer_call(t->tracer, do_snapshot, &args);
}

/* ---- ending what others have ---- */

struct recover_args {
	struct gkfd *k;
	pid_t pid;
	enum gkfd_way way;
	struct tracer *tracer;
	struct gkfd_failure *fail;
};

static int do_recover(void *arg)
{
	struct recover_args *a = arg;
	int paused = 0, debugged, r = tracer_seize(a->tracer);

	if (r < 0)
		return gkfd_seize_failed(a->k, a->pid, r, a->fail);
	if (a->way == GKFD_BY_PAUSE)
		paused = gkfd_pause_recover(a->k, a->pid, a->fail);
	if (paused < 0 || !gkfd_has(a->k, GKFD_CAP_DEBUG))
		return paused;
	debugged = gkfd_session_recover(a->k, a->pid, a->fail);
	if (debugged > 0)
		gkfd_stain();
	return debugged < 0 && paused == 0 ? debugged : paused || debugged > 0;
}

int gkfd_target_recover(struct gkfd *k, pid_t pid, enum gkfd_way way,
			struct gkfd_failure *ret_failure)
{
	struct recover_args args = { .k = k, .pid = pid, .way = way, .fail = ret_failure };
	struct gkfd_proc_ident ident;
	int r;

	r = gkfd_target_find(k, pid, GKFD_CAP_CRIU, &ident, ret_failure);
	if (r < 0)
		return r;
	r = tracer_new(k, pid, NULL, NULL, &args.tracer);
	if (r < 0)
		return gkfd_seize_failed(k, pid, r, ret_failure);
	r = tracer_launch(args.tracer);
	r = r < 0 ? gkfd_seize_failed(k, pid, r, ret_failure) :
		    tracer_call(args.tracer, do_recover, &args);
	tracer_stop(args.tracer);
	return r;
}
