/* SPDX-License-Identifier: MIT */
/* A program that takes its own queues off the GPU, on the software device. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpreempt/model.h"
#include "gpu/model/model.h"
#include "lib/internal.h"

#define QUEUES 3

struct fixture {
	struct gpreempt_ctx *ctx;
	struct model *m;
	struct gpreempt_own_queue queues[QUEUES];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(gpreempt_open("model", &f->ctx, NULL), 0);
	assert_int_equal(ctx_open_device(f->ctx), 0);
	f->m = model_transport_get(f->ctx->k->data);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	gpreempt_unref(f->ctx);
	free(f);
	return 0;
}

/* Queues of ours that are busy for ever. */
static void make_queues(struct fixture *f)
{
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, .priority = 7 };
	const struct model_work work = { .workgroups = 4, .wg_ns = 50000, .wg_per_cu = 1 };

	for (uint32_t i = 0; i < QUEUES; i++) {
		struct gpreempt_own_queue *q = &f->queues[i];

		spec.ring_packets = 1024u << i; /* so that they can be told apart */
		assert_int_equal(model_queue_create(f->m, MODEL_SELF_PID, &spec, &q->queue_id), 0);
		assert_int_equal(model_loop(f->m, MODEL_SELF_PID, q->queue_id, &work, 4), 0);
		q->size = sizeof(*q);
		q->priority = 7;
	}
}

/* As a program knows them that has made them. */
static void add_rings(struct fixture *f)
{
	struct gpreempt_queue all[64] = { { .size = sizeof(all[0]) } };
	int n = gpreempt_get_all_queues(f->ctx, NULL, all, ARRAY_SIZE(all));
	size_t next = 0;

	for (int i = 0; i < n; i++) {
		struct gpreempt_own_queue *q = &f->queues[next];

		if (all[i].pid != MODEL_SELF_PID)
			continue;
		assert_true(all[i].valid & GPREEMPT_QUEUE_RING_BASE);
		q->ring_base = all[i].ring_base;
		q->ring_bytes = all[i].ring_bytes;
		next++;
	}
	assert_int_equal(next, QUEUES);
}

static uint64_t completed(struct fixture *f)
{
	struct model_queue_stats stats;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < QUEUES; i++) {
		model_queue_stats(f->m, MODEL_SELF_PID, f->queues[i].queue_id, &stats);
		sum += stats.completed;
	}
	return sum;
}

static uint64_t cycles(struct fixture *f)
{
	struct model_gpu_stats stats;

	model_gpu_stats(f->m, 0, &stats);
	return stats.cycles;
}

static void pass(struct fixture *f)
{
	gpreempt_wait(f->ctx, NULL, 0, NSEC_PER_MSEC);
}

static void stands_until_resumed(struct fixture *f)
{
	uint64_t before;

	before = completed(f);
	pass(f);
	assert_int_equal(completed(f), before);
	assert_int_equal(gpreempt_resume_own(f->ctx, NULL), 0);
	pass(f);
	assert_true(completed(f) > before);
}

static void own_queues_stand_and_go_on(void **state)
{
	struct gpreempt_timing t = { .size = sizeof(t) };
	struct fixture *f = *state;

	assert_int_equal(model_runtime_enable(f->m, MODEL_SELF_PID), 0);
	make_queues(f);
	pass(f);
	assert_true(completed(f) > 0);
	assert_int_equal(gpreempt_suspend_own(f->ctx, f->queues, QUEUES, NULL, &t), 0);
	assert_int_equal(t.queues, QUEUES);
	assert_int_equal(gpreempt_suspend_own(f->ctx, f->queues, QUEUES, NULL, NULL), -EALREADY);
	stands_until_resumed(f);
	assert_int_equal(gpreempt_suspend_own(f->ctx, NULL, 0, NULL, &t), 0);
	assert_int_equal(t.queues, QUEUES);
	stands_until_resumed(f);
}

/* The runtime of this one never announced itself. */
static void without_debugging_each_queue_costs_a_cycle(void **state)
{
	struct gpreempt_timing t = { .size = sizeof(t) };
	struct fixture *f = *state;
	uint64_t before;

	make_queues(f);
	assert_int_equal(gpreempt_suspend_own(f->ctx, f->queues, QUEUES, NULL, NULL), -EOPNOTSUPP);
	add_rings(f);
	pass(f);
	before = cycles(f);
	assert_int_equal(gpreempt_suspend_own(f->ctx, f->queues, QUEUES, NULL, &t), 0);
	assert_true(cycles(f) - before >= QUEUES);
	assert_int_equal(t.queues, QUEUES);
	stands_until_resumed(f);
}

static void bad_calls_are_told(void **state)
{
	struct fixture *f = *state;
	struct gpreempt_own_queue none = { .size = sizeof(none), .queue_id = 99 };
	struct gpreempt_suspend_options o = { .size = sizeof(o), .grace_kclk = 256 };

	assert_int_equal(model_runtime_enable(f->m, MODEL_SELF_PID), 0);
	make_queues(f);
	assert_int_equal(gpreempt_suspend_own(f->ctx, &none, 1, NULL, NULL), -EINVAL);
	assert_int_equal(gpreempt_suspend_own(f->ctx, &none, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gpreempt_suspend_own(f->ctx, NULL, 0, &o, NULL), -EINVAL);
	assert_int_equal(gpreempt_resume_own(f->ctx, NULL), 0);
	assert_int_equal(gpreempt_suspend_own(f->ctx, NULL, 0, NULL, NULL), 0);
	/* and left to the context to resume */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(own_queues_stand_and_go_on),
		TEST(without_debugging_each_queue_costs_a_cycle),
		TEST(bad_calls_are_told),
	};

	return cmocka_run_group_tests_name("own", tests, NULL, NULL) != 0;
}
