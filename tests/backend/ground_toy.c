/* SPDX-License-Identifier: MIT */
/* The toy vendor (tests/backend/toy). */
#include "tests/backend/ground.h"
#include "tests/backend/toy/toy.h"

static void open_ground(struct ground *g)
{
	struct toy *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->procs[0] = (struct toy_proc){ .pid = 501, .start_ticks = 71, .n = 3 };
	d->procs[1] = (struct toy_proc){ .pid = 502, .start_ticks = 72, .n = 2 };
	g->own = d;
	g->pid[GROUND_A] = 501;
	g->pid[GROUND_B] = 502;
	g->gpu = TOY_GPU;
	assert_int_equal(toy_backend_open(d, &g->b), 0);
}

static void close_ground(struct ground *g)
{
	free(g->own);
}

static void pass(struct ground *g, uint64_t ns)
{
	toy_advance(g->own, ns);
}

static uint32_t off(struct ground *g, enum ground_job job)
{
	return toy_count_off(toy_find(g->own, g->pid[job]));
}

static uint64_t calls(struct ground *g)
{
	return ((struct toy *)g->own)->calls;
}

static void grow(struct ground *g, enum ground_job job)
{
	toy_find(g->own, g->pid[job])->n++;
}

static void end(struct ground *g, enum ground_job job)
{
	toy_exit(g->own, g->pid[job]);
}

static void break_gpu(struct ground *g)
{
	((struct toy *)g->own)->stuck = true;
}

static void block(struct ground *g)
{
	((struct toy *)g->own)->busy = true;
}

static void await_blocked(struct ground *g) /* it has no thread that has to come there first */
{
}

static void unblock(struct ground *g)
{
	((struct toy *)g->own)->busy = false;
}

const struct ground_ops ground_toy = {
	.name = "toy",
	.queues = { 3, 2 },
	.grows = 1,
	.long_ns = 10 * NSEC_PER_SEC,
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
};
