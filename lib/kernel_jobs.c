/* SPDX-License-Identifier: MIT */
/* What the scheduler in the driver is told of processes. */
#include <errno.h>

#include "lib/kernel.h"

struct named {
	struct kfd_gpreempt_entry entry; /* for what explains */
	uint64_t start_ticks;
};

static int explain(struct gpreempt_ctx *ctx, pid_t pid, const struct named *n, int result)
{
	struct gkfd_failure failure = { 0 };
	int r;

	if (result == -ENOTTY)
		return kernel_fail(ctx, result, "the kernel's scheduler");
	r = gkfd_ext_explain(ctx->k, &n->entry, result, &failure);
	return ctx_fail_target(ctx, r, pid, &failure);
}

/* Who is meant by @pid, and the right to say something of it. */
static int name(struct gpreempt_ctx *ctx, pid_t pid, const char *what, struct named *ret)
{
	struct kfd_gpreempt_version version;
	struct gkfd_proc_ident ident;
	int r = kernel_open(ctx, what, &version);

	if (r < 0)
		return r;
	if (gkfd_proc_identify(ctx->k, pid, &ident) < 0)
		return ctx_fail(ctx, -ESRCH, GPREEMPT_ERROR_ABSENT,
				"see what uses the GPU with: gpreempt list",
				"there is no process %d", (int)pid);
	ret->start_ticks = ident.start_ticks;
	ret->entry = gkfd_ext_entry(pid, ident.start_ticks, KFD_GPREEMPT_ALL_QUEUES);
	r = pid == ctx_own_pid(ctx) ? 0 : gkfd_ext_bind(ctx->k, pid);
	return r < 0 ? explain(ctx, pid, ret, r) : 0;
}

static uint32_t kernel_class(enum gpreempt_class c)
{
	if (c == GPREEMPT_CLASS_UNKNOWN)
		return KFD_GPREEMPT_NO_CLASS;
	return c == GPREEMPT_CLASS_ONLINE ? KFD_GPREEMPT_ONLINE : KFD_GPREEMPT_OFFLINE;
}

EXPORT int gpreempt_kernel_set_class(struct gpreempt_ctx *ctx, pid_t pid,
				     const struct gpreempt_class_request *request)
{
	struct gpreempt_class_request req = { .size = sizeof(req), .priority = -1 };
	struct kfd_gpreempt_class args;
	struct named who;
	int r;

	r = ctx_take(ctx, &req, request, UP_TO(struct gpreempt_class_request, withdraw));
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
		.class = kernel_class(req.job_class),
		.flags = req.critical ? KFD_GPREEMPT_CLASS_CRITICAL : 0,
		.priority = req.priority < 0 ? 0 : (uint32_t)req.priority,
		.target_ns = req.target_us * NSEC_PER_USEC,
		.start_ticks = who.start_ticks,
	};
	r = gkfd_scheduler_set_class(ctx->k, &args);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"without CAP_SYS_ADMIN a process can be made offline, and no more; "
				"try sudo",
				"no right to give process %d that class", (int)pid);
	return r < 0 ? explain(ctx, pid, &who, r) : 0;
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
	struct named who;
	int r = name(ctx, pid, "hint to the kernel's scheduler", &who);

	if (r < 0)
		return r;
	args.start_ticks = who.start_ticks;
	r = gkfd_scheduler_hint(ctx->k, &args);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"make it so with: gpreempt class PID online",
				"process %d is not online: only for those room is made", (int)pid);
	if (r == -EINVAL)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, NULL,
				"a hint is for a second ahead, and ten of work, at most");
	return r < 0 ? explain(ctx, pid, &who, r) : 0;
}

_Static_assert((int)GPREEMPT_POLICY_LAZY == (int)KFD_GPREEMPT_LAZY_ACTIVATION, "ABI");
_Static_assert((int)GPREEMPT_POLICY_AUTO_DEACTIVATE == (int)KFD_GPREEMPT_AUTO_DEACTIVATION, "ABI");
_Static_assert((int)GPREEMPT_POLICY_PREEMPTIBLE == (int)KFD_GPREEMPT_PREEMPTIBLE, "ABI");

EXPORT int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
				     uint32_t flags)
{
	struct kfd_gpreempt_policy args = { .pid = (uint32_t)pid, .flags = flags };
	struct named who;
	int r = name(ctx, pid, "queue policy", &who);

	if (r < 0)
		return r;
	if (queue_id != GPREEMPT_ALL_QUEUES)
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"say GPREEMPT_ALL_QUEUES: with some of its queues on and others "
				"off it could wait for itself",
				"a queue policy is of a process as a whole");
	args.start_ticks = who.start_ticks;
	r = gkfd_scheduler_set_policy(ctx->k, &args);
	if (r == -EINVAL)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, NULL, "no such queue policy: %#x",
				flags);
	if (r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"not to be preempted, and what an administrator has set, takes "
				"CAP_SYS_ADMIN; try sudo",
				"no right to set that policy of process %d", (int)pid);
	return r < 0 ? explain(ctx, pid, &who, r) : 0;
}
