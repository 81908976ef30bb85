/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/release.h"
#include "lib/internal.h"
#include "wire/wire.h"

EXPORT const char *gpreempt_class_name(enum gpreempt_class job_class)
{
	const char *name = job_class == GPREEMPT_CLASS_UNKNOWN ? NULL : wire_class_name(job_class);

	return name ? name : "unknown";
}

int mqds_read(struct gpreempt_ctx *ctx, struct gkfd_mqds *ret)
{
	struct gkfd_mqds m = { 0 };
	size_t kept = 0;
	int r;

	r = gkfd_mqds_ask(ctx->k, &m);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m.n; i++)
		if (!m.mqds[i].sdma)
			m.mqds[kept++] = m.mqds[i];
	m.n = kept;
	*ret = m;
	return 0;
}

/* Linux 6.12 kfd_mqd_manager.c: priorities 0-6 are the low pipe class, 11-15 the high one. */
#define PRIORITY_OFFLINE_MAX 6
#define PRIORITY_ONLINE_MIN 11

enum gpreempt_class class_with(enum gpreempt_class so_far, bool known, uint32_t priority)
{
	if (so_far == GPREEMPT_CLASS_ONLINE || (known && priority >= PRIORITY_ONLINE_MIN))
		return GPREEMPT_CLASS_ONLINE;
	return known && priority <= PRIORITY_OFFLINE_MAX ? so_far : GPREEMPT_CLASS_UNKNOWN;
}

enum gpreempt_class mqds_class(const struct gkfd_mqd *mqds, size_t n, size_t n_compute)
{
	enum gpreempt_class job_class =
		n > 0 && n >= n_compute ? GPREEMPT_CLASS_OFFLINE : GPREEMPT_CLASS_UNKNOWN;

	for (size_t i = 0; i < n; i++)
		job_class = class_with(job_class, true, mqds[i].priority);
	return job_class;
}

size_t proc_compute_queues(const struct gkfd_proc *proc)
{
	size_t n = 0;

	for (size_t i = 0; i < proc->n_queues; i++)
		n += gkfd_type_is_compute(proc->queues[i].type);
	return n;
}

enum gpreempt_class proc_class(const struct gkfd_mqds *mqds, const struct gkfd_proc *proc)
{
	const struct gkfd_mqd *first;
	size_t n = gkfd_mqds_of_process(mqds, proc->pid, &first);

	return mqds_class(first, n, proc_compute_queues(proc));
}

void info_add_gpu(struct gpreempt_process_info *info, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i] == gpu_id)
			return;
	if (info->n_gpus < GPREEMPT_MAX_GPUS)
		info->gpus[info->n_gpus++] = gpu_id;
}

static const char *state_by_letter(char state)
{
	switch (state) {
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "zombie";
	default:
		return "running";
	}
}

void info_identify(struct gpreempt_process_info *info, const struct gkfd_proc_ident *ident,
		   const char *kept)
{
	info->uid = ident->uid;
	info->tracer_pid = ident->tracer_pid;
	snprintf(info->comm, sizeof(info->comm), "%s", ident->comm);
	snprintf(info->state, sizeof(info->state), "%s",
		 kept ? kept : state_by_letter(ident->state));
	info->valid |= GPREEMPT_PROC_COMM;
}

/* What keeps it, if anything does. */
static const char *kept_by(struct gpreempt_ctx *ctx, const struct gkfd_proc_ident *ident)
{
	pid_t holder;

	if (gkfd_ext_holder(ctx->k, ident->pid, ident->start_ticks, &holder) == 1 ||
	    gkfd_ext_is_scheduled_off(ctx->k, ident->pid, ident->start_ticks) == 1)
		return "held";
	if (!ident->tracer_pid)
		return NULL;
	return gkfd_holder_of(ctx->k, ident->tracer_pid, &holder) == 1 ? "attached" : "traced";
}

static void identify(struct gpreempt_ctx *ctx, struct gpreempt_process_info *info)
{
	struct gkfd_proc_ident ident;

	/* In another pid namespace sysfs speaks of pids that are somebody else's here. */
	if (!gkfd_pids_are_global(ctx->k) || gkfd_proc_identify(ctx->k, info->pid, &ident) < 0)
		return;
	info_identify(info, &ident, kept_by(ctx, &ident));
}

int for_each_proc(struct gpreempt_ctx *ctx, proc_visitor visit, void *user)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct gkfd_mqds mqds = { 0 };
	size_t n = 0;
	int r;

	r = gkfd_proc_list(ctx->k, &pids, &n);
	if (r == -ENOENT)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "needs a newer kernel",
				"this driver does not list its processes");
	if (r < 0)
		return ctx_fail_errno(ctx, r, "the list of GPU processes");
	/* Without debugfs classes and priorities stay unknown, which is not a failure. */
	if (mqds_read(ctx, &mqds) < 0)
		mqds = (struct gkfd_mqds){ 0 };

	for (size_t i = 0; i < n && r >= 0; i++) {
		struct gkfd_proc proc;

		r = gkfd_proc_read(ctx->k, pids[i], &proc);
		if (r == -ESRCH) {
			r = 0;
			continue;
		}
		if (r < 0) {
			ctx_fail_errno(ctx, r, "the list of GPU processes");
			break;
		}
		r = visit(ctx, &proc, &mqds, user);
		gkfd_proc_done(&proc);
	}
	gkfd_mqds_done(&mqds);
	return r;
}

static int list_one(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
		    const struct gkfd_mqds *mqds, void *user)
{
	struct gpreempt_process_info info = {
		.size = sizeof(info),
		.pid = proc->pid,
		.queues = (uint32_t)proc->n_queues,
		.job_class = proc_class(mqds, proc),
	};

	for (size_t i = 0; i < proc->n_queues; i++)
		info_add_gpu(&info, proc->queues[i].gpu_id);
	for (size_t i = 0; i < proc->n_gpus; i++) {
		if (!proc->gpus[i].has_vram)
			continue;
		info.vram_bytes += proc->gpus[i].vram_bytes;
		info.valid |= GPREEMPT_PROC_VRAM;
	}
	identify(ctx, &info);
	out_array_add(user, &info);
	return 0;
}

int amd_processes(struct gpreempt_ctx *ctx, struct out_array *out)
{
	return for_each_proc(ctx, list_one, out);
}

EXPORT int gpreempt_list_processes(struct gpreempt_ctx *ctx, struct gpreempt_process_info *ret,
				   size_t max)
{
	return out_list(ctx, ctx->vendor->processes, ret, max,
			UP_TO(struct gpreempt_process_info, hidden));
}
