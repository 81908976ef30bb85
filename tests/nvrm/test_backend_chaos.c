/* SPDX-License-Identifier: MIT */
/*
 * Everything at once, at random: orders, ends, contexts and watches of many processes, in an order
 * that is the seed's, at moments that are the machine's. Whatever happens, no channel is disabled
 * twice, each order is answered once, and in the end nothing is left.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define PLACES 8
#define SPAWNS 40 /* that the fake has room for */
#define STEPS 2500
#define SEEDS 3

struct place {
	pid_t pid; /* 0: nobody */
	uint32_t client;
	unsigned int n_contexts;
	struct gpu_target *t;
	struct gpu_watch *w;
	bool released;
};

struct chaos {
	struct bed *bed;
	struct place places[PLACES];
	pid_t next;
	unsigned int seed;
	size_t asked, answered;
};

static unsigned int roll(struct chaos *c, unsigned int sides)
{
	return (unsigned int)rand_r(&c->seed) / 16 % sides;
}

static void come(struct chaos *c, struct place *p)
{
	if (p->pid || p->t || p->w || c->next >= 6000 + SPAWNS)
		return;
	p->pid = c->next++;
	p->client = fake_rm_job(c->bed->fake, p->pid);
	p->n_contexts = 1;
}

static void go(struct chaos *c, struct place *p)
{
	if (!p->pid || roll(c, 12))
		return;
	fake_rm_exit(c->bed->fake, p->pid);
	p->pid = 0;
}

static void grow(struct chaos *c, struct place *p)
{
	if (!p->pid || p->n_contexts >= 3 || roll(c, 8))
		return;
	fake_rm_context(c->bed->fake, p->client, roll(c, 2) ? FAKE_GPU : FAKE_GPU_2,
			FAKE_CONNECTIONS);
	p->n_contexts++;
}

static void attach(struct chaos *c, struct place *p)
{
	if (p->t || !p->pid)
		return;
	assert_int_equal(
		bed_ops(c->bed)->attach(c->bed->b, &(struct gpu_attach){ p->pid }, 0, &p->t), 0);
	p->released = false;
	c->asked++;
}

static void release(struct chaos *c, struct place *p)
{
	if (!p->t || p->released || roll(c, 6))
		return;
	assert_int_equal(bed_ops(c->bed)->release(p->t, 0), 0);
	p->released = true;
	c->asked++;
}

static void order(struct chaos *c, struct place *p)
{
	/* As the backend makes them: a number, and which of the two GPUs. */
	const uint32_t ids[] = { (1 + roll(c, 8)) << 5 | roll(c, 2), (1 + roll(c, 8)) << 5 };
	const struct gpu_ops *ops = bed_ops(c->bed);
	bool all = roll(c, 2);

	if (!p->t || p->released)
		return;
	c->asked++;
	switch (roll(c, 4)) {
	case 0:
		assert_int_equal(ops->suspend(p->t,
					      &(struct gpu_hold){ all ? NULL : ids, 2,
								  roll(c, 3) ? 0 : NSEC_PER_MSEC },
					      0),
				 0);
		break;
	case 1:
		assert_int_equal(ops->slice(p->t, (enum gpu_slice)roll(c, 3), 0), 0);
		break;
	default:
		assert_int_equal(ops->resume(p->t, all ? NULL : ids, 2, 0), 0);
		break;
	}
}

static void watch(struct chaos *c, struct place *p)
{
	const struct gpu_queue *queues;
	size_t n;

	if (!p->w && p->pid) {
		assert_int_equal(bed_ops(c->bed)->watch(c->bed->b, p->pid, &p->w), 0);
	} else if (p->w && (bed_ops(c->bed)->refresh(p->w) == -ESRCH || !roll(c, 8))) {
		bed_ops(c->bed)->unwatch(steal_ptr(&p->w));
	} else if (p->w) {
		queues = bed_ops(c->bed)->queues(p->w, &n);
		for (size_t i = 0; i < n; i++)
			assert_true(queues[i].queue > 0 && queues[i].gpu != 0);
	}
}

/* The driver refuses once, having done it or not. */
static void trouble(struct chaos *c, struct place *p)
{
	static const uint32_t cmds[] = { NVRM_CTRL_DISABLE_CHANNELS, NVRM_CTRL_SET_TIMESLICE };
	struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = cmds[roll(c, ARRAY_SIZE(cmds))],
		.status = roll(c, 2) ? NVRM_INVALID_STATE : NVRM_TIMEOUT,
		.applied = roll(c, 2),
	};

	if (roll(c, 4))
		return;
	fake_rm_mend(c->bed->fake);
	fake_rm_fault(c->bed->fake, &fault);
}

static void take(struct chaos *c)
{
	struct gpu_done done;

	while (bed_ops(c->bed)->take(c->bed->b, &done)) {
		c->answered += done.verb != GPU_ENDED;
		if (done.verb != GPU_RELEASE)
			continue;
		for (size_t i = 0; i < PLACES; i++)
			if (c->places[i].t == done.target)
				c->places[i].t = NULL;
	}
}

static void step(struct chaos *c)
{
	struct pollfd done = { .fd = bed_ops(c->bed)->fd(c->bed->b), .events = POLLIN };
	static void (*const moves[])(struct chaos *c, struct place *p) = {
		come, go, grow, attach, release, order, order, order, order, watch, trouble,
	};

	moves[roll(c, ARRAY_SIZE(moves))](c, &c->places[roll(c, PLACES)]);
	bed_ops(c->bed)->submit(c->bed->b);
	if (roll(c, 4) == 0) {
		poll(&done, 1, (int)roll(c, 4)); /* the worker gets its turn */
		take(c);
	}
	assert_true(fake_rm_highest(c->bed->fake, -1) <= 1);
}

static bool is_answered(struct bed *bed, size_t chaos)
{
	struct chaos *c = (struct chaos *)chaos;

	take(c);
	return c->asked == c->answered;
}

/* Half of the seeds are closed in the middle of it. */
static void play(struct bed *bed, unsigned int seed)
{
	struct chaos c = { .bed = bed, .next = 6000, .seed = seed };

	fake_rm_add_gpu(bed->fake, FAKE_GPU_2, "NVIDIA H200");
	for (int i = 0; i < STEPS; i++)
		step(&c);
	fake_rm_mend(bed->fake);
	if (seed % 2)
		bed_await(bed, is_answered, (size_t)&c);
	assert_int_equal(fake_rm_sins(bed->fake).strangers, 0);
}

static void whatever_happens_nothing_is_left(void **state)
{
	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct bed bed;

		bed_make(&bed, seed % 3 == 0);
		play(&bed, seed);
		bed_unmake(&bed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_happens_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
