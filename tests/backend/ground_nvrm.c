/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver, played, in real time. */
#include <poll.h>

#include "gpu/nvrm/process.h"
#include "tests/backend/ground.h"
#include "tests/nvrm/backend_rig.h"

#define COMPUTE_GROUP 0x5c000015u /* of the first context */

struct own {
	struct bed bed;
	uint32_t client[GROUND_JOBS];
};

static struct own *own_of(struct ground *g)
{
	return g->own;
}

static void open_ground(struct ground *g)
{
	struct own *own = calloc(1, sizeof(*own));

	assert_non_null(own);
	g->own = own;
	bed_make(&own->bed, true);
	own->client[GROUND_A] = NVRM_FIRST_CLIENT;
	own->client[GROUND_B] = fake_rm_job(own->bed.fake, OTHER);
	g->b = steal_ptr(&own->bed.b);
	g->pid[GROUND_A] = JOB;
	g->pid[GROUND_B] = OTHER;
	g->gpu = FAKE_GPU;
}

static void close_ground(struct ground *g)
{
	bed_unmake(&own_of(g)->bed);
	free(g->own);
}

static void pass(struct ground *g, uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	struct pollfd nothing = { .fd = -1 };

	ppoll(&nothing, 1, &t, NULL);
}

static uint32_t off(struct ground *g, enum ground_job job)
{
	assert_true(fake_rm_highest(own_of(g)->bed.fake, g->pid[job]) <= 1); /* it is counted */
	return (uint32_t)(fake_rm_disabled(own_of(g)->bed.fake, g->pid[job]) / HELD_CHANNELS);
}

static uint64_t calls(struct ground *g)
{
	return bed_disables(&own_of(g)->bed);
}

static void grow(struct ground *g, enum ground_job job)
{
	struct own *own = g->own;

	fake_rm_context(own->bed.fake, own->client[job], FAKE_GPU, FAKE_CONNECTIONS);
}

static void end(struct ground *g, enum ground_job job)
{
	fake_rm_exit(own_of(g)->bed.fake, g->pid[job]);
}

static void break_gpu(struct ground *g)
{
	const struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.times = 1,
		.status = NVRM_TIMEOUT,
		.applied = true,
	};

	fake_rm_fault(own_of(g)->bed.fake, &fault);
}

static void block(struct ground *g)
{
	fake_rm_block(own_of(g)->bed.fake, NVRM_CTRL_DISABLE_CHANNELS);
}

static void await_blocked(struct ground *g)
{
	fake_rm_wait_blocked(own_of(g)->bed.fake);
}

static void unblock(struct ground *g)
{
	fake_rm_unblock(own_of(g)->bed.fake);
}

static enum gpu_slice slice(struct ground *g, enum ground_job job)
{
	struct own *own = g->own;
	uint64_t us = fake_rm_slice(own->bed.fake, own->client[job], COMPUTE_GROUP);

	assert_true(us == NVRM_SHORT_SLICE_US || us == NVRM_LONG_SLICE_US ||
		    us == NVRM_CUDA_SLICE_US);
	return us == NVRM_SHORT_SLICE_US ? GPU_SLICE_SHORT :
	       us == NVRM_LONG_SLICE_US	 ? GPU_SLICE_LONG :
					   GPU_SLICE_OWN;
}

const struct ground_ops ground_nvrm = {
	.name = "nvrm",
	.queues = { HELD, HELD },
	.grows = HELD,
	.real_time = true,
	.any_start = true, /* it does not look at when a process started */
	.long_ns = 50 * NSEC_PER_MSEC,
	.open = open_ground,
	.close = close_ground,
	.pass = pass,
	.off = off,
	.calls = calls,
	.grow = grow,
	.end = end,
	.break_gpu = break_gpu,
	.block = block,
	.await_blocked = await_blocked,
	.unblock = unblock,
	.slice = slice,
};
