/* SPDX-License-Identifier: MIT */
/* The scheduler in the driver: turning it on and off, and how it is. */
#include <errno.h>
#include <string.h>

#include "gpreempt/kernel.h"
#include "gpu/kfd/scheduler.h"
#include "lib/internal.h"

#define TURN_ON_HINT "turn it on with: gpreempt kernel on"

#define SCHEDULER "scheduler in the kernel"

/*
 * 1: the scheduler is on, on some GPU; 0: on none. Notes a failure, -EOPNOTSUPP where it is not
 * there. @what needs it.
 */
static int open_ext(struct gpreempt_ctx *ctx, const char *what)
{
	struct kfd_gpreempt_version version;
	int r = ctx_needs(ctx, GPREEMPT_HAS_SCHEDULER, what, "gpreemptd schedules there");

	if (r < 0)
		return r;
	r = gkfd_ext_open(ctx->k, &version);
	if (r == -EACCES)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "try sudo, or join its group",
				"no right to open /dev/" KFD_GPREEMPT_DEVICE ", which a %s needs",
				what);
	if (r == -EPROTO)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"install both from the same release",
				"the kernel extension is of another version than this program");
	if (r < 0)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"see what works here with: gpreempt doctor",
				"a %s needs the kernel extension (level K3), which is not loaded",
				what);
	return !!(version.abilities & KFD_GPREEMPT_SCHEDULES);
}

/* A call of @what failed with @r: notes what nobody knows better, and returns @r. */
static int fail(struct gpreempt_ctx *ctx, int r, const char *what)
{
	if (r == -ENOTTY)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"see what works here with: gpreempt doctor",
				"the kernel extension that is loaded has no scheduler");
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "needs CAP_SYS_ADMIN; try sudo",
				"no right to change the kernel's scheduler");
	return ctx_fail_errno(ctx, r, what);
}

/* ---- on and off ---- */

static bool is_within(uint32_t value, uint32_t least, uint32_t most)
{
	return value == 0 || (value >= least && value <= most);
}

static int check(struct gpreempt_ctx *ctx, const struct gpreempt_kernel_options *o)
{
	if (o->policy && strlen(o->policy) >= KFD_GPREEMPT_POLICY_NAME)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"see the names with: gpreempt sim --list", "no policy '%.40s'",
				o->policy);
	if (!is_within(o->interval_us, KFD_GPREEMPT_MIN_INTERVAL_US,
		       KFD_GPREEMPT_MAX_INTERVAL_US) ||
	    !is_within(o->critical_interval_us, KFD_GPREEMPT_MIN_INTERVAL_US,
		       KFD_GPREEMPT_MAX_INTERVAL_US))
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, NULL,
				"an interval is %u to %u us", KFD_GPREEMPT_MIN_INTERVAL_US,
				KFD_GPREEMPT_MAX_INTERVAL_US);
	if (!is_within(o->turn_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS) ||
	    !is_within(o->hold_max_ms, 1, KFD_GPREEMPT_MAX_HOLD_MS))
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, NULL,
				"a turn and a hold last 1 to %u ms", KFD_GPREEMPT_MAX_HOLD_MS);
	if (o->reserve && (uint64_t)o->online_percent + o->offline_percent > 100)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, NULL,
				"the shares of slots are more than 100 %% together");
	return 0;
}

static int fail_gpu(struct gpreempt_ctx *ctx, int r, uint32_t gpu_id, const char *what)
{
	if (r == -ENODEV && gpu_id == GPREEMPT_ALL_GPUS)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT, NULL, "the driver has no GPU");
	if (r == -ENODEV)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT,
				"see which there are with: gpreempt doctor", "there is no GPU %u",
				gpu_id);
	if (r == -ENOENT)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, TURN_ON_HINT,
				"the kernel's scheduler is off");
	return fail(ctx, r, what);
}

static int turn_on(struct gpreempt_ctx *ctx, uint32_t gpu_id,
		   const struct gpreempt_kernel_options *o)
{
	struct kfd_gpreempt_monitor args = {
		.gpu_id = gpu_id,
		.flags = KFD_GPREEMPT_MONITOR_ON,
		.interval_us = o->interval_us,
		.critical_interval_us = o->critical_interval_us,
		.turn_ms = o->turn_ms,
		.hold_max_ms = o->hold_max_ms,
	};
	int r;

	if (o->policy)
		memcpy(args.policy, o->policy, strlen(o->policy));
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_MONITOR, &args);
	if (r == -EINVAL)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE,
				"see the names with: gpreempt sim --list",
				"the kernel's scheduler has no policy '%s'", args.policy);
	return r < 0 ? fail_gpu(ctx, r, gpu_id, "turning the kernel's scheduler on") : 0;
}

static int turn_off(struct gpreempt_ctx *ctx, uint32_t gpu_id)
{
	struct kfd_gpreempt_monitor off = { .gpu_id = gpu_id };

	return gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_MONITOR, &off);
}

static int reserve(struct gpreempt_ctx *ctx, uint32_t gpu_id, uint32_t online_percent,
		   uint32_t offline_percent)
{
	struct kfd_gpreempt_reservation args = {
		.gpu_id = gpu_id,
		.online_permille = online_percent * 10,
		.offline_permille = offline_percent * 10,
	};
	int r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_HQD_RESERVATION, &args);

	return r < 0 ? fail_gpu(ctx, r, gpu_id, "reserving slots") : 0;
}

/* Those that were off are off again; with the first failure it stays as it is. */
static int undo(struct gpreempt_ctx *ctx, uint32_t gpu_id, const struct gkfd_schedulers *before)
{
	int r = before->n ? 0 : -ENODATA;

	for (size_t i = 0; i < before->n && r >= 0; i++) {
		const struct gkfd_scheduled *g = &before->gpus[i];

		if (gpu_id != GPREEMPT_ALL_GPUS && gpu_id != g->gpu_id)
			continue;
		r = g->on ? -EALREADY : turn_off(ctx, g->gpu_id);
	}
	return r;
}

/* What was said of the failure stays, and what became of the rest is said with it. */
static void undo_or_say(struct gpreempt_ctx *ctx, uint32_t gpu_id,
			const struct gkfd_schedulers *before)
{
	if (undo(ctx, gpu_id, before) < 0)
		snprintf(ctx->last.hint, sizeof(ctx->last.hint),
			 "the scheduler stays on, at least on some GPUs: see gpreempt kernel "
			 "status");
}

EXPORT int gpreempt_kernel_on(struct gpreempt_ctx *ctx, uint32_t gpu_id,
			      const struct gpreempt_kernel_options *options)
{
	struct gpreempt_kernel_options o = { .size = sizeof(o) };
	struct gkfd_schedulers before = { 0 };
	int r;

	r = in_struct(&ctx->last, &o, options,
		      UP_TO(struct gpreempt_kernel_options, offline_percent));
	if (r >= 0)
		r = open_ext(ctx, SCHEDULER);
	if (r >= 0)
		r = check(ctx, &o);
	if (r < 0)
		return r;
	if (gkfd_schedulers_read(ctx->k, &before) < 0)
		before = (struct gkfd_schedulers){ 0 };
	r = turn_on(ctx, gpu_id, &o);
	/* A refused call changes nothing; one that failed on the way may have turned some on. */
	if (r >= 0 && o.reserve)
		r = reserve(ctx, gpu_id, o.online_percent, o.offline_percent);
	if (r < 0 && r != -EPERM && r != -EINVAL && r != -ENODEV && r != -EOPNOTSUPP)
		undo_or_say(ctx, gpu_id, &before);
	gkfd_schedulers_done(&before);
	return r;
}

static int set(struct gpreempt_ctx *ctx, uint32_t gpu_id, uint32_t flags, const char *what)
{
	struct kfd_gpreempt_monitor args = { .gpu_id = gpu_id, .flags = flags };
	int r = open_ext(ctx, SCHEDULER);

	if (r < 0)
		return r;
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_MONITOR, &args);
	return r < 0 ? fail_gpu(ctx, r, gpu_id, what) : 0;
}

EXPORT int gpreempt_kernel_off(struct gpreempt_ctx *ctx, uint32_t gpu_id)
{
	return set(ctx, gpu_id, 0, "turning the kernel's scheduler off");
}

EXPORT int gpreempt_kernel_rearm(struct gpreempt_ctx *ctx, uint32_t gpu_id)
{
	return set(ctx, gpu_id, KFD_GPREEMPT_MONITOR_REARM, "rearming the kernel's scheduler");
}

EXPORT int gpreempt_set_hqd_reservation(struct gpreempt_ctx *ctx, uint32_t gpu_id,
					uint32_t online_percent, uint32_t offline_percent)
{
	const struct gpreempt_kernel_options o = {
		.reserve = true,
		.online_percent = online_percent,
		.offline_percent = offline_percent,
	};
	int r = open_ext(ctx, "reservation of hardware queues");

	if (r >= 0)
		r = check(ctx, &o);
	return r < 0 ? r : reserve(ctx, gpu_id, online_percent, offline_percent);
}

/* ---- how it is ---- */

EXPORT int gpreempt_kernel_is_on(struct gpreempt_ctx *ctx)
{
	return open_ext(ctx, SCHEDULER);
}

_Static_assert((int)GKFD_SCHEDULER_SLOTS == (int)GPREEMPT_KERNEL_SLOTS &&
		       (int)GKFD_SCHEDULER_POLICY == (int)GPREEMPT_KERNEL_POLICY &&
		       (int)GKFD_SCHEDULER_INTERVALS == (int)GPREEMPT_KERNEL_INTERVALS &&
		       (int)GKFD_SCHEDULER_TURN == (int)GPREEMPT_KERNEL_TURN &&
		       (int)GKFD_SCHEDULER_HOLD_MAX == (int)GPREEMPT_KERNEL_HOLD_MAX &&
		       (int)GKFD_SCHEDULER_RESERVED == (int)GPREEMPT_KERNEL_RESERVED &&
		       (int)GKFD_SCHEDULER_LOOKS == (int)GPREEMPT_KERNEL_LOOKS &&
		       (int)GKFD_SCHEDULER_ACTIONS == (int)GPREEMPT_KERNEL_ACTIONS &&
		       (int)GKFD_SCHEDULER_JOBS == (int)GPREEMPT_KERNEL_JOBS,
	       "what is known is told by the same bits");

static void add_gpu(struct out_array *out, const struct gkfd_scheduled *s)
{
	struct gpreempt_kernel_gpu g = {
		.size = sizeof(g),
		.valid = s->known,
		.gpu_id = s->gpu_id,
		.on = s->on,
		.tripped = s->tripped,
		.slots = (uint32_t)s->slots,
		.queues = (uint32_t)s->queues,
		.held_queues = (uint32_t)s->held_queues,
		.interval_us = (uint32_t)s->interval_us,
		.critical_interval_us = (uint32_t)s->critical_interval_us,
		.turn_ms = (uint32_t)s->turn_ms,
		.hold_max_ms = (uint32_t)s->hold_max_ms,
		.online_permille = (uint32_t)s->online_permille,
		.offline_permille = (uint32_t)s->offline_permille,
		.online = (uint32_t)s->online,
		.offline = (uint32_t)s->offline,
		.held = (uint32_t)s->held,
		.looks = s->looks,
		.busy_ns = s->busy_ns,
		.holds = s->holds,
		.resumes = s->resumes,
		.failures = s->failures,
	};

	snprintf(g.policy, sizeof(g.policy), "%s", s->policy);
	out_array_add(out, &g);
}

static int fail_reading(struct gpreempt_ctx *ctx, int r)
{
	if (r == -EACCES || r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "try sudo: debugfs is root's",
				"no right to read how the kernel's scheduler is");
	if (r == -ENOENT)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED,
				"mount it: mount -t debugfs debugfs /sys/kernel/debug",
				"how the kernel's scheduler is, debugfs tells, which is not there");
	return ctx_fail_errno(ctx, r, "the state of the kernel's scheduler");
}

static int fill_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	struct gkfd_schedulers all;
	int r = open_ext(ctx, SCHEDULER);

	if (r < 0)
		return r;
	r = gkfd_schedulers_read(ctx->k, &all);
	if (r < 0)
		return fail_reading(ctx, r);
	for (size_t i = 0; i < all.n; i++)
		add_gpu(out, &all.gpus[i]);
	gkfd_schedulers_done(&all);
	return 0;
}

EXPORT int gpreempt_kernel_get_gpus(struct gpreempt_ctx *ctx, struct gpreempt_kernel_gpu *ret,
				    size_t max)
{
	return out_list(ctx, fill_gpus, ret, max, UP_TO(struct gpreempt_kernel_gpu, failures));
}

/* ---- jobs ---- */

static int explain(struct gpreempt_ctx *ctx, const struct kfd_gpreempt_entry *who, int result)
{
	struct gkfd_failure failure = { 0 };
	int r;

	if (result == -ENOTTY)
		return fail(ctx, result, "the kernel's scheduler");
	r = gkfd_ext_explain(ctx->k, who, result, &failure);
	return ctx_fail_target(ctx, r, (pid_t)who->pid, &failure);
}

/* Who is meant by @pid, and the right to say something of it. */
static int name(struct gpreempt_ctx *ctx, pid_t pid, const char *what,
		struct kfd_gpreempt_entry *ret)
{
	struct gkfd_proc_ident ident;
	int r = open_ext(ctx, what);

	if (r < 0)
		return r;
	if (gkfd_proc_identify(ctx->k, pid, &ident) < 0)
		return ctx_fail(ctx, -ESRCH, GPREEMPT_ERROR_ABSENT,
				"see what uses the GPU with: gpreempt list",
				"there is no process %d", (int)pid);
	*ret = gkfd_ext_entry(pid, ident.start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	r = pid == ctx_own_pid(ctx) ? 0 : gkfd_ext_bind(ctx->k, pid);
	return r < 0 ? explain(ctx, ret, r) : 0;
}

EXPORT int gpreempt_kernel_set_class(struct gpreempt_ctx *ctx, pid_t pid,
				     const struct gpreempt_class_request *request)
{
	struct gpreempt_class_request req = { .size = sizeof(req), .priority = -1 };
	struct kfd_gpreempt_class args;
	struct kfd_gpreempt_entry who;
	int r;

	r = in_struct(&ctx->last, &req, request, UP_TO(struct gpreempt_class_request, withdraw));
	if (r >= 0)
		r = name(ctx, pid, "class in the kernel's scheduler", &who);
	if (r < 0)
		return r;
	if (req.priority > UINT8_MAX)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, NULL,
				"a priority is 0 to 255, not %d", req.priority);
	args = (struct kfd_gpreempt_class){
		.pid = (uint32_t)pid,
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.class = req.job_class, /* the numbers are the same: abi/job_class.h */
		.flags = req.critical ? KFD_GPREEMPT_CLASS_CRITICAL : 0,
		.priority = req.priority < 0 ? 0 : (uint32_t)req.priority,
		.target_ns = req.target_us * NSEC_PER_USEC,
		.start_ticks = who.start_ticks,
	};
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_CLASS, &args);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"without CAP_SYS_ADMIN a process can be made offline, and no more; "
				"try sudo",
				"no right to give process %d that class", (int)pid);
	return r < 0 ? explain(ctx, &who, r) : 0;
}

EXPORT int gpreempt_kernel_hint(struct gpreempt_ctx *ctx, pid_t pid, uint64_t ahead_ns,
				uint64_t for_ns)
{
	struct kfd_gpreempt_hint args = {
		.pid = (uint32_t)pid,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.ahead_ns = ahead_ns,
		.for_ns = for_ns,
	};
	struct kfd_gpreempt_entry who;
	int r = name(ctx, pid, "hint to the kernel's scheduler", &who);

	if (r < 0)
		return r;
	args.start_ticks = who.start_ticks;
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_HINT, &args);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"make it so with: gpreempt class PID online",
				"process %d is not online: only for those room is made", (int)pid);
	if (r == -EINVAL)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, NULL,
				"a hint is for a second ahead, and ten of work, at most");
	return r < 0 ? explain(ctx, &who, r) : 0;
}

_Static_assert((int)GPREEMPT_POLICY_LAZY == (int)KFD_GPREEMPT_LAZY_ACTIVATION, "ABI");
_Static_assert((int)GPREEMPT_POLICY_AUTO_DEACTIVATE == (int)KFD_GPREEMPT_AUTO_DEACTIVATION, "ABI");
_Static_assert((int)GPREEMPT_POLICY_PREEMPTIBLE == (int)KFD_GPREEMPT_PREEMPTIBLE, "ABI");

EXPORT int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				     uint32_t flags)
{
	struct kfd_gpreempt_policy args = { .pid = (uint32_t)pid, .flags = flags };
	struct kfd_gpreempt_entry who;
	int r = name(ctx, pid, "queue policy", &who);

	if (r < 0)
		return r;
	if (queue_id != GPREEMPT_ALL_QUEUES)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"say GPREEMPT_ALL_QUEUES: with some of its queues on and others "
				"off it could wait for itself",
				"a queue policy is of a process as a whole");
	args.start_ticks = who.start_ticks;
	r = gkfd_ext_call(ctx->k, KFD_GPREEMPT_SET_QUEUE_POLICY, &args);
	if (r == -EINVAL)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, NULL, "no such queue policy: %#x",
				flags);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"not to be preempted, and what an administrator has set, takes "
				"CAP_SYS_ADMIN; try sudo",
				"no right to set that policy of process %d", (int)pid);
	return r < 0 ? explain(ctx, &who, r) : 0;
}
