/* SPDX-License-Identifier: MIT */
/* Hardware queue slots: how many there are, and how many are taken. */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "gpu/kfd/scheduler.h"
#include "lib/internal.h"

struct account {
	const struct gkfd_topology *topology;
	struct gpreempt_hqd_status *gpus; /* as the topology has them */
	bool queues_known; /* the driver lists its processes */
	bool slots_known; /* read from the hardware */
	bool classes_known; /* of every process with queues */
	bool may_be_reserved; /* the scheduler in the driver is on */
};

static struct gpreempt_hqd_status *find(struct account *a, uint32_t gpu_id)
{
	for (size_t i = 0; i < a->topology->n; i++)
		if (a->gpus[i].gpu_id == gpu_id)
			return &a->gpus[i];
	return NULL;
}

static int count_process(struct gpreempt_ctx *ctx, const struct gkfd_proc *proc,
			 const struct gkfd_mqds *mqds, void *user)
{
	struct account *a = user;
	bool offline = proc_class(mqds, proc) == GPREEMPT_CLASS_OFFLINE;
	const struct gkfd_mqd *first;

	if (proc_compute_queues(proc) > 0 && gkfd_mqds_of_process(mqds, proc->pid, &first) == 0)
		a->classes_known = false;
	for (size_t i = 0; i < proc->n_queues; i++) {
		struct gpreempt_hqd_status *gpu = find(a, proc->queues[i].gpu_id);

		if (!gpu || !gkfd_type_is_compute(proc->queues[i].type))
			continue;
		gpu->queues++;
		gpu->offline_used += offline;
	}
	return 0;
}

/* The driver's own account, where it has the extension. */
static bool ask_extension(struct gpreempt_ctx *ctx, struct gpreempt_hqd_status *gpu)
{
	struct kfd_gpreempt_hqd hqd = { .gpu_id = gpu->gpu_id };

	if (gkfd_ext_call(ctx->k, KFD_GPREEMPT_GET_HQD_STATUS, &hqd) < 0)
		return false;
	gpu->active = hqd.active_compute;
	gpu->held = hqd.held;
	gpu->stopped = hqd.flags & KFD_GPREEMPT_HQD_STOPPED;
	gpu->valid |= GPREEMPT_HQD_HELD | GPREEMPT_HQD_ACTIVE;
	return true;
}

static void begin(struct account *a)
{
	for (size_t i = 0; i < a->topology->n; i++) {
		const struct gkfd_node *node = &a->topology->nodes[i];

		a->gpus[i] = (struct gpreempt_hqd_status){ .size = sizeof(a->gpus[i]),
							   .gpu_id = node->gpu_id };
		if (!(node->known & GKFD_NODE_CP_QUEUES))
			continue;
		a->gpus[i].total = node->num_cp_queues;
		a->gpus[i].valid |= GPREEMPT_HQD_TOTAL;
	}
}

static void conclude(const struct account *a, struct gpreempt_hqd_status *gpu)
{
	if (!a->may_be_reserved)
		gpu->valid |= GPREEMPT_HQD_RESERVED; /* 0: nobody is there who could */
	if (a->queues_known)
		gpu->valid |= GPREEMPT_HQD_QUEUES;
	if (a->queues_known || a->slots_known)
		gpu->valid |= GPREEMPT_HQD_ACTIVE;
	if (gpu->valid & GPREEMPT_HQD_TOTAL) {
		gpu->active = MIN(gpu->active, gpu->total);
		gpu->free = gpu->total - gpu->active;
		gpu->offline_used = MIN(gpu->offline_used, gpu->total);
	}
	if (a->queues_known && a->classes_known)
		gpu->valid |= GPREEMPT_HQD_OFFLINE;
}

/* What the scheduler in the driver keeps, where it is on and tells. */
static void read_reserved(struct gpreempt_ctx *ctx, struct account *a)
{
	struct kfd_gpreempt_version version;
	struct gkfd_schedulers all;

	if (gkfd_ext_open(ctx->k, &version) < 0 || !(version.abilities & KFD_GPREEMPT_SCHEDULES))
		return;
	a->may_be_reserved = true;
	if (gkfd_schedulers_read(ctx->k, &all) < 0)
		return;
	for (size_t i = 0; i < all.n; i++) {
		const struct gkfd_scheduled *s = &all.gpus[i];
		struct gpreempt_hqd_status *gpu = find(a, s->gpu_id);

		if (!gpu || !(gpu->valid & GPREEMPT_HQD_TOTAL) ||
		    (s->on && !(s->known & GKFD_SCHEDULER_RESERVED)))
			continue;
		gpu->online_reserved = (uint32_t)(gpu->total * s->online_permille / 1000);
		gpu->valid |= GPREEMPT_HQD_RESERVED;
	}
	gkfd_schedulers_done(&all);
}

/* A queue has a slot of the same number on every XCC: the first one tells. */
static void read_slots(struct gpreempt_ctx *ctx, struct account *a)
{
	struct gkfd_hqds hqds;

	if (gkfd_hqds_read(ctx->k, &hqds) < 0)
		return;
	a->slots_known = hqds.n > 0;
	for (size_t i = 0; i < a->topology->n && a->slots_known; i++)
		a->gpus[i].active = 0;
	for (size_t i = 0; i < hqds.n; i++) {
		const struct gkfd_hqd *hqd = &hqds.hqds[i];
		struct gpreempt_hqd_status *gpu = find(a, hqd->gpu_id);

		if (gpu && hqd->xcc == 0 && !hqd->hiq && hqd->active)
			gpu->active++;
	}
	gkfd_hqds_done(&hqds);
}

static int account(struct gpreempt_ctx *ctx, struct account *a)
{
	bool told = true;
	int r;

	begin(a);
	r = for_each_proc(ctx, count_process, a);
	if (r < 0 && r != -ENOENT)
		return r;
	a->queues_known = r >= 0;
	for (size_t i = 0; i < a->topology->n; i++)
		a->gpus[i].active = a->gpus[i].queues;
	for (size_t i = 0; i < a->topology->n && told; i++)
		told = ask_extension(ctx, &a->gpus[i]);
	if (!told)
		read_slots(ctx, a);
	read_reserved(ctx, a);
	for (size_t i = 0; i < a->topology->n; i++)
		conclude(a, &a->gpus[i]);
	return 0;
}

static int fill(struct gpreempt_ctx *ctx, struct out_array *out)
{
	_cleanup_free_ struct gpreempt_hqd_status *gpus = NULL;
	struct account a = { .classes_known = true };
	int r = ctx_needs(ctx, GPREEMPT_HAS_SLOTS, "hardware queue slots to be told",
			  "see who uses the GPUs with: gpreempt list");

	if (r >= 0)
		r = ctx_topology(ctx, &a.topology);
	if (r < 0)
		return r;
	gpus = calloc(a.topology->n + 1, sizeof(*gpus));
	if (!gpus)
		return ctx_fail_errno(ctx, -ENOMEM, "slots");
	a.gpus = gpus;
	r = account(ctx, &a);
	for (size_t i = 0; r >= 0 && i < a.topology->n; i++)
		out_array_add(out, &gpus[i]);
	return r;
}

EXPORT int gpreempt_get_hqd_status(struct gpreempt_ctx *ctx, struct gpreempt_hqd_status *ret,
				   size_t max)
{
	return out_list(ctx, fill, ret, max, UP_TO(struct gpreempt_hqd_status, stopped));
}
