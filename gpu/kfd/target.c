/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "gpu/freezer.h"
#include "gpu/kfd/find.h"
#include "gpu/kfd/target_internal.h"
#include "gpu/kfd/vms.h"
#include "util/macros.h"

void target_set_state(struct gkfd_target *t, enum gkfd_target_state state)
{
	uint64_t one = 1;

	__atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
	while (write(t->state_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	if (t->hooks)
		t->hooks->state(t->hooks_user);
}

int target_check_here(struct gkfd_target *t, struct gkfd_failure *fail)
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
		gkfd_fail(fail, -EIO, GKFD_WHY_PREEMPTION_FAILED, "use");
		fail->queue_id = t->last.queue_id;
		fail->gpu_id = t->last.gpu_id;
		return -EIO;
	}
}

void target_note_failure(struct gkfd_target *t, const struct gkfd_failure *fail)
{
	if (gkfd_target_state(t) != GKFD_TARGET_ATTACHED)
		return;
	t->last = *fail;
	if (fail->why == GKFD_WHY_EXITED)
		target_set_state(t, GKFD_TARGET_EXITED);
	else if (fail->why == GKFD_WHY_TAKEN)
		target_set_state(t, GKFD_TARGET_TAKEN);
	else if (fail->why == GKFD_WHY_PREEMPTION_FAILED)
		target_set_state(t, GKFD_TARGET_FAILED);
}

bool target_holding(const struct gkfd_target *t)
{
	return t->session.holding || t->pause.paused;
}

void target_publish(struct gkfd_target *t)
{
	__atomic_store_n(&t->holds, target_holding(t), __ATOMIC_RELEASE);
}

void target_beat(struct gkfd_target *t, uint64_t allow_ns)
{
	if (t->slot >= 0)
		guard_beat(t->guard, t->slot, allow_ns);
}

void target_disarm(struct gkfd_target *t)
{
	if (t->slot >= 0)
		guard_disarm(t->guard, t->slot);
	t->slot = -1;
}

/* ---- on the tracer thread ---- */

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

/* What is seized. */
static int begin(struct gkfd_target *t, struct gkfd_failure *fail)
{
	struct gkfd_proc_ident now;
	int r;

	/* The pid may have passed to another process between the look and the seizure. */
	r = gkfd_proc_identify(t->k, t->ident.pid, &now);
	if (r < 0 && r != -ESRCH)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "identify");
	if (r < 0 || now.start_ticks != t->ident.start_ticks)
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_PROCESS, "seize");
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = way_begin(t, fail);
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
		return gkfd_seize_failed(t->k, t->ident.pid, r, fail);
	return begin(t, fail);
}

int target_attach_here(struct gkfd_target *t, struct gkfd_failure *fail)
{
	enum gkfd_cap cap = t->way == GKFD_BY_DEBUG ? GKFD_CAP_DEBUG : GKFD_CAP_CRIU;
	int r = gkfd_target_find(t->k, t->ident.pid, cap, &t->ident, fail);

	if (r < 0)
		return r;
	if (t->start_ticks && t->ident.start_ticks != t->start_ticks)
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_NO_PROCESS, "identify");
	if (!t->k->transport->modelled && freezer_check(t->ident.pid) < 0)
		return gkfd_fail(fail, -EPERM, GKFD_WHY_FREEZER, "attach");
	r = seize(t, fail);
	if (r < 0) {
		tracer_let_go(t->tracer);
		target_disarm(t);
	}
	return r;
}

struct attach_args {
	struct gkfd_target *t;
	struct gkfd_failure *fail;
};

static int do_attach(void *arg)
{
	struct attach_args *a = arg;

	return target_attach_here(a->t, a->fail);
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
	int r = target_check_here(a->t, a->fail);

	if (r < 0)
		return r;
	target_beat(a->t, GUARD_DRIVER_CALL_NS);
	r = way_snapshot(a->t, &a->entries, &a->n, a->fail);
	target_beat(a->t, GUARD_SILENCE_NS);
	if (r < 0)
		target_note_failure(a->t, a->fail);
	return r;
}

struct hold_args {
	struct gkfd_target *t;
	const struct gkfd_hold_request *request;
	struct gkfd_hold hold;
	struct gkfd_failure *fail;
};

/* A model's queues are nobody's: they may be held unguarded where the owner wants it so. */
static int check_guard(const struct gkfd_target *t, struct gkfd_failure *fail)
{
	if (!t->guard && t->k->transport->modelled)
		return 0;
	if (t->slot < 0 || !guard_alive(t->guard))
		return gkfd_fail(fail, -EOWNERDEAD, GKFD_WHY_GUARD_DIED, "hold");
	return 0;
}

static int check_vms(struct gkfd_target *t, struct gkfd_failure *fail)
{
	uint32_t gpu_id;

	if (t->way != GKFD_BY_DEBUG || t->vms_checked)
		return 0;
	target_beat(t, GUARD_DRIVER_CALL_NS); /* it may have as many descriptors as it likes */
	if (gkfd_vms_check(t->k, t->ident.pid, &gpu_id) < 0) {
		gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_NO_VM, "hold");
		fail->gpu_id = gpu_id;
		return -EOPNOTSUPP;
	}
	t->vms_checked = true;
	return 0;
}

static int check_hold(struct gkfd_target *t, const struct gkfd_hold_request *request,
		      struct gkfd_failure *fail)
{
	int r = target_check_here(t, fail);

	if (r < 0)
		return r;
	if (target_holding(t) && !request->more)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "hold");
	if (t->way == GKFD_BY_DEBUG && gkfd_is_stained())
		return gkfd_fail(fail, -EUCLEAN, GKFD_WHY_STAINED, "hold");
	if (request->since_ns && request->longest_ns &&
	    gkfd_now_ns(t->k) - request->since_ns >= request->longest_ns)
		return gkfd_fail(fail, -ETIMEDOUT, GKFD_WHY_TOO_LATE, "hold");
	r = check_guard(t, fail);
	return r < 0 ? r : check_vms(t, fail);
}

static uint64_t resume_at_ns(struct gkfd_target *t, const struct gkfd_hold_request *request)
{
	uint64_t since_ns = request->since_ns ? request->since_ns : gkfd_now_ns(t->k), at_ns;

	if (!request->longest_ns ||
	    __builtin_add_overflow(since_ns, request->longest_ns, &at_ns))
		return UINT64_MAX;
	return at_ns;
}

int target_hold_here(struct gkfd_target *t, const struct gkfd_hold_request *request,
		     struct gkfd_hold *ret, struct gkfd_failure *fail)
{
	bool held = target_holding(t);
	uint64_t at_ns;
	int r = check_hold(t, request, fail);

	if (r < 0) {
		target_beat(t, GUARD_SILENCE_NS);
		return r;
	}
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = way_hold(t, request, ret, fail);
	target_publish(t);
	target_beat(t, GUARD_SILENCE_NS);
	if (r < 0) {
		target_note_failure(t, fail);
		if (held && !target_holding(t) && gkfd_target_state(t) == GKFD_TARGET_ATTACHED)
			target_set_state(t, GKFD_TARGET_LET_GO);
		return r;
	}
	at_ns = resume_at_ns(t, request);
	t->resume_at_ns = held ? MAX(t->resume_at_ns, at_ns) : at_ns;
	return 0;
}

static int do_hold(void *arg)
{
	struct hold_args *a = arg;

	return target_hold_here(a->t, a->request, &a->hold, a->fail);
}

struct resume_args {
	struct gkfd_target *t;
	struct gkfd_resumed resumed;
	struct gkfd_failure *fail;
};

int target_resume_here(struct gkfd_target *t, const uint32_t *ids, uint32_t n,
		       struct gkfd_resumed *ret, struct gkfd_failure *fail)
{
	int r = target_check_here(t, fail);

	if (r < 0)
		return r;
	target_beat(t, GUARD_DRIVER_CALL_NS);
	r = way_resume(t, ids, n, ret, fail);
	target_publish(t);
	target_beat(t, GUARD_SILENCE_NS);
	if (r < 0)
		target_note_failure(t, fail);
	return r;
}

static int do_resume(void *arg)
{
	struct resume_args *a = arg;

	return target_resume_here(a->t, NULL, 0, &a->resumed, a->fail);
}

/* ---- for the owner ---- */

int target_new(struct gkfd *k, const struct target_options *options, struct gkfd_target **ret)
{
	_cleanup_(gkfd_target_releasep) struct gkfd_target *t = calloc(1, sizeof(*t));
	bool own = !options->tracer_ops;
	int r;

	if (!t)
		return -ENOMEM;
	*t = (struct gkfd_target){
		.k = k,
		.ident.pid = options->pid,
		.start_ticks = options->start_ticks,
		.guard = options->guard,
		.slot = -1,
		.way = options->way,
		.hooks = options->hooks,
		.hooks_user = options->user,
		.session.event_fd = { -1, -1 },
		.pause.fd = -1,
	};
	t->state_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->state_fd < 0)
		return -errno;
	r = tracer_new(k, options->pid, own ? &target_tracer_ops : options->tracer_ops,
		       own ? t : options->tracer_user, &t->tracer);
	if (r < 0)
		return r;
	*ret = steal_ptr(&t);
	return 0;
}

void target_leave(struct gkfd_target *t)
{
	tracer_leave(t->tracer);
}

int gkfd_target_attach(struct gkfd *k, pid_t pid, struct guard *guard, struct gkfd_target **ret,
		       struct gkfd_failure *ret_failure)
{
	return gkfd_target_attach_by(k, pid, GKFD_BY_DEBUG, guard, ret, ret_failure);
}

int gkfd_target_attach_by(struct gkfd *k, pid_t pid, enum gkfd_way way, struct guard *guard,
			  struct gkfd_target **ret, struct gkfd_failure *ret_failure)
{
	const struct target_options options = { .pid = pid, .way = way, .guard = guard };
	_cleanup_(gkfd_target_releasep) struct gkfd_target *t = NULL;
	struct attach_args args;
	int r = target_new(k, &options, &t);

	if (r >= 0)
		r = tracer_launch(t->tracer);
	if (r < 0)
		return gkfd_fail(ret_failure, r, GKFD_WHY_SYSTEM, "attach");
	args = (struct attach_args){ .t = t, .fail = ret_failure };
	r = tracer_call(t->tracer, do_attach, &args);
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
	target_disarm(t);
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

struct held_args {
	struct gkfd_target *t;
	uint32_t *ret;
	size_t max;
};

static int do_held(void *arg)
{
	struct held_args *a = arg;
	const struct gkfd_session *s = &a->t->session;
	const struct gkfd_pause *p = &a->t->pause;
	const uint32_t *ids = p->paused ? p->ids : s->held;
	uint32_t n = p->paused ? p->n_ids : s->holding ? s->n_held : 0;

	if (MIN(a->max, n))
		memcpy(a->ret, ids, MIN(a->max, n) * sizeof(*ids));
	return (int)n;
}

int gkfd_target_held(struct gkfd_target *t, uint32_t *ret, size_t max)
{
	struct held_args args = { t, ret, max };

	return tracer_call(t->tracer, do_held, &args);
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
