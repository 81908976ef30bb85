/* SPDX-License-Identifier: MIT */
/* AMD's driver as the software device plays it, in virtual time, on each of its levels. */
#include "tests/backend/ground.h"
#include "tests/kfd/backend_rig.h"

/* The device outlives the backend, so that it can be asked what that left behind. */
static void keep(void *data)
{
}

static void open_on(struct ground *g, const char *spec, enum gkfd_ext_use ext, enum gkfd_way way)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	g->own = rig;
	rig_ext = ext;
	assert_int_equal(rig_try(rig, spec, way, NULL), 0);
	rig->table.close = keep;
	g->b = steal_ptr(&rig->b);
	g->pid[GROUND_A] = OFFLINE;
	g->pid[GROUND_B] = ONLINE;
	g->gpu = model_gpu_id(rig_lock(rig), 0);
	rig_unlock(rig);
}

static void open_k1(struct ground *g)
{
	open_on(g, "mi308x,gpus=2", GKFD_EXT_NEVER, GKFD_BY_PAUSE);
}

static void open_k2(struct ground *g)
{
	open_on(g, "mi308x,gpus=2", GKFD_EXT_NEVER, GKFD_BY_DEBUG);
}

static void open_k3(struct ground *g)
{
	open_on(g, "mi308x,gpus=2,ext=1", GKFD_EXT_ONLY, GKFD_BY_DEBUG);
}

static void close_ground(struct ground *g)
{
	struct rig *rig = g->own;

	gkfd_transport_model.close(rig->device);
	rig_close(rig);
	free(rig);
}

static void pass(struct ground *g, uint64_t ns)
{
	struct rig *rig = g->own;

	rig_advance(rig, ns);
	if (g->b && g->b->ops->tick && !rig->blocked) /* it waits for who stands at the gate */
		g->b->ops->tick(g->b);
}

static bool is_off(const struct ground *g, const struct model_queue_stats *stats, bool reset)
{
	if (g->ops->open == open_k1) /* a reset evicts as a pause does, and everybody */
		return stats->evicted && !reset;
	return g->ops->open == open_k3 ? stats->held : stats->suspended;
}

static uint32_t off(struct ground *g, enum ground_job job)
{
	struct model *m = rig_lock(g->own);
	struct model_queue_stats stats;
	struct model_gpu_stats gpu;
	uint32_t n = 0;

	assert_int_equal(model_gpu_stats(m, 0, &gpu), 0);
	for (uint32_t id = 0; id < 64; id++)
		n += model_queue_stats(m, g->pid[job], id, &stats) == 0 &&
		     is_off(g, &stats, gpu.resets > 0);
	rig_unlock(g->own);
	return n;
}

/* Each cycle makes everybody on the GPU stand still. */
static uint64_t calls(struct ground *g)
{
	struct model_gpu_stats stats;

	assert_int_equal(model_gpu_stats(rig_lock(g->own), 0, &stats), 0);
	rig_unlock(g->own);
	return stats.cycles;
}

static void grow(struct ground *g, enum ground_job job)
{
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	uint32_t id;

	assert_int_equal(model_queue_create(rig_lock(g->own), g->pid[job], &spec, &id), 0);
	rig_unlock(g->own);
}

static void end(struct ground *g, enum ground_job job)
{
	model_proc_exit(rig_lock(g->own), g->pid[job]);
	rig_unlock(g->own);
}

static void break_gpu(struct ground *g)
{
	struct model_fault stuck = { .kind = MODEL_FAULT_STUCK_QUEUE,
				     .pid = OFFLINE,
				     .queue_id = 3 };

	assert_int_equal(model_fault_set(rig_lock(g->own), &stuck), 0);
	rig_unlock(g->own);
}

static void block(struct ground *g)
{
	rig_block(g->own, OFFLINE);
}

static void await_blocked(struct ground *g)
{
	rig_await_blocked(g->own);
}

static void unblock(struct ground *g)
{
	struct rig *rig = g->own;

	if (rig->gate[1] >= 0)
		rig_unblock(rig);
}

#define COMMON \
	.queues = { 10, 2 }, .grows = 1, .long_ns = 3 * NSEC_PER_SEC, .close = close_ground, \
	.off = off, .calls = calls, .grow = grow, .end = end, .break_gpu = break_gpu, \
	.block = block, .await_blocked = await_blocked, .unblock = unblock

const struct ground_ops ground_k1 = {
	COMMON,	      .name = "K1",    .open = open_k1,
	.pass = pass, .unnamed = true, /* a pause is of all its GPUs */
	.real_time = true, /* its thread comes when the machine lets it */
};

const struct ground_ops ground_k2 = {
	COMMON,
	.name = "K2",
	.open = open_k2,
	.pass = pass,
	.real_time = true, /* the same */
};

const struct ground_ops ground_k3 = {
	COMMON,		 .name = "K3",	 .open = open_k3,
	.pass = pass,	 .shared = true, /* it traces nobody */
	.unnamed = true, /* the extension names those that hang; the model's has been reset */
};
