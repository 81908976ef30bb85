/* SPDX-License-Identifier: MIT */
/* Taking jobs off their GPU and back. */
#include "tests/backend/cases.h"

#define MANY 64

static void a_job_is_held_and_runs_again(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint32_t n = g->ops->queues[GROUND_A];
	struct gpu_done done;

	ground_suspend(g, t, NULL, 0, 0, 7);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.queues, n);
	assert_int_equal(done.cookie, 7);
	assert_ptr_equal(done.target, t);
	assert_true(done.holds && ground_ops(g)->holds(t));
	ground_await_off(g, GROUND_A, n);
	ground_resume(g, t, 8);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_RESUME);
	assert_int_equal(done.result, 0);
	assert_int_equal(done.queues, n);
	assert_int_equal(done.cookie, 8);
	assert_false(done.holds || ground_ops(g)->holds(t));
	ground_await_off(g, GROUND_A, 0);
	assert_true(ground_is_quiet(g));
}

static void what_is_as_it_should_be_is_left_alone(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint64_t calls;

	ground_resume(g, t, 0);
	ground_expect(g, GPU_RESUME, 0, 0);
	ground_hold(g, t, GROUND_A);
	calls = g->ops->calls(g);
	ground_suspend(g, t, NULL, 0, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, 0);
	assert_int_equal(g->ops->calls(g), calls);
	assert_int_equal(g->ops->off(g, GROUND_A), g->ops->queues[GROUND_A]);
}

/* The first of them before it is attached. */
static void what_is_asked_of_one_target_ends_in_that_order(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t;

	ground_ask_attach(g, g->pid[GROUND_A], 0, 100, &t);
	for (uint64_t i = 0; i < 20; i++) {
		ground_suspend(g, t, NULL, 0, 0, 2 * i);
		ground_resume(g, t, 2 * i + 1);
	}
	assert_int_equal(ground_next(g).cookie, 100);
	for (uint64_t i = 0; i < 40; i++) {
		struct gpu_done done = ground_next(g);

		assert_ptr_equal(done.target, t);
		assert_int_equal(done.cookie, i);
		assert_int_equal(done.verb, i % 2 ? GPU_RESUME : GPU_SUSPEND);
		assert_int_equal(done.result, 0);
		assert_int_equal(done.queues, g->ops->queues[GROUND_A]);
	}
	ground_await_off(g, GROUND_A, 0);
}

static void one_job_is_held_and_the_other_runs(void **state)
{
	struct ground *g = *state;
	struct gpu_target *a = ground_attach(g, GROUND_A), *b = ground_attach(g, GROUND_B);

	ground_hold(g, a, GROUND_A);
	ground_await_off(g, GROUND_B, 0);
	ground_hold(g, b, GROUND_B);
	ground_resume(g, a, 0);
	ground_expect(g, GPU_RESUME, 0, g->ops->queues[GROUND_A]);
	ground_await_off(g, GROUND_A, 0);
	ground_await_off(g, GROUND_B, g->ops->queues[GROUND_B]);
}

static void resume_one(struct ground *g, struct gpu_target *t, uint32_t id, uint32_t n)
{
	assert_int_equal(ground_ops(g)->resume(t, &id, 1, 0), 0);
	ground_expect(g, GPU_RESUME, 0, n);
}

static void queues_are_held_in_addition_and_come_back_one_by_one(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint32_t ids[MANY], held[MANY], n = g->ops->queues[GROUND_A];
	uint64_t calls;

	assert_int_equal(ground_queue_ids(g, GROUND_A, ids, MANY), n);
	ground_suspend(g, t, ids, 1, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, 1);
	ground_suspend(g, t, ids, 2, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, 1); /* of which one was off already */
	ground_await_off(g, GROUND_A, 2);
	if (ground_ops(g)->held) {
		assert_int_equal(ground_ops(g)->held(t, held, MANY), 2);
		assert_true(held[0] == ids[0] || held[1] == ids[0]);
		assert_true(held[0] == ids[1] || held[1] == ids[1]);
	}
	resume_one(g, t, ids[0], 1);
	ground_await_off(g, GROUND_A, 1);
	ground_suspend(g, t, NULL, 0, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, n - 1);
	resume_one(g, t, ids[1], 1);
	calls = g->ops->calls(g);
	resume_one(g, t, ids[1], 0); /* which is on */
	ground_suspend(g, t, ids, 1, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, 0); /* and this off */
	assert_int_equal(g->ops->calls(g), calls);
	ground_await_off(g, GROUND_A, n - 1);
	ground_resume(g, t, 0);
	ground_expect(g, GPU_RESUME, 0, n - 1);
	ground_await_off(g, GROUND_A, 0);
}

/* The only unit there is: an id names it, and with it all. */
static void a_part_of_a_context_is_not_held(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint32_t ids[MANY], n = g->ops->queues[GROUND_A];
	struct gpu_done done;

	assert_true(ground_queue_ids(g, GROUND_A, ids, MANY) > 0);
	ground_suspend(g, t, ids, 1, 0, 0);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_int_equal(g->ops->off(g, GROUND_A), done.result == 0 ? n : 0);
}

static void parts_of_a_job_are_held_where_queues_are_the_unit(void **state)
{
	struct ground *g = *state;

	if (g->b->caps.unit == GPU_UNIT_QUEUE)
		queues_are_held_in_addition_and_come_back_one_by_one(state);
	else
		a_part_of_a_context_is_not_held(state);
}

static void what_a_held_job_creates_is_held(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint32_t n = g->ops->queues[GROUND_A] + g->ops->grows;
	struct gpu_done done;

	ground_hold(g, t, GROUND_A);
	g->ops->grow(g, GROUND_A);
	ground_await_off(g, GROUND_A, n);
	ground_resume(g, t, 3);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_RESUME);
	assert_int_equal(done.result, 0);
	ground_await_off(g, GROUND_A, 0);
	g->ops->grow(g, GROUND_A);
	ground_suspend(g, t, NULL, 0, 0, 0);
	(void)ground_next(g);
	ground_await_off(g, GROUND_A, n + g->ops->grows);
}

/* ---- time ---- */

static void a_hold_ends_by_itself_after_its_longest_time(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint64_t called_ns = ground_ops(g)->now_ns(g->b), held_ns;

	ground_suspend(g, t, NULL, 0, 30 * NSEC_PER_MSEC, 0);
	ground_expect(g, GPU_SUSPEND, 0, g->ops->queues[GROUND_A]);
	ground_await_off(g, GROUND_A, 0);
	held_ns = ground_ops(g)->now_ns(g->b) - called_ns;
	assert_true(held_ns >= 30 * NSEC_PER_MSEC);
	assert_true(held_ns < 60 * NSEC_PER_MSEC || g->ops->real_time);
	ground_resume(g, t, 0);
	ground_expect(g, GPU_RESUME, 0, 0); /* a later one does no harm */
	ground_hold(g, t, GROUND_A);
}

static void the_latest_of_several_ends_counts(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	uint64_t called_ns = ground_ops(g)->now_ns(g->b);

	ground_suspend(g, t, NULL, 0, 20 * NSEC_PER_MSEC, 0);
	ground_suspend(g, t, NULL, 0, 200 * NSEC_PER_MSEC, 0);
	ground_suspend(g, t, NULL, 0, 40 * NSEC_PER_MSEC, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ground_next(g).result, 0);
	ground_await_off(g, GROUND_A, 0);
	assert_true(ground_ops(g)->now_ns(g->b) - called_ns >= 200 * NSEC_PER_MSEC);
}

static void a_hold_without_an_end_lasts(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);

	ground_hold(g, t, GROUND_A);
	for (int i = 0; i < 10; i++) {
		g->ops->pass(g, g->ops->long_ns / 5);
		assert_int_equal(g->ops->off(g, GROUND_A), g->ops->queues[GROUND_A]);
	}
	ground_resume(g, t, 0);
	ground_expect(g, GPU_RESUME, 0, g->ops->queues[GROUND_A]);
}

/* It would otherwise hold the job when nobody counts on it any more. */
static void a_hold_whose_time_is_over_before_it_begins_is_not_made(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);

	if (!g->ops->block)
		return;
	g->ops->pass(g, NSEC_PER_MSEC); /* a clock may begin at 0 */
	g->ops->block(g);
	ground_suspend(g, t, NULL, 0, 0, 1);
	g->ops->await_blocked(g);
	ground_resume(g, t, 2);
	ground_suspend(g, t, NULL, 0, NSEC_PER_MSEC, 3);
	g->ops->pass(g, 2 * NSEC_PER_MSEC);
	g->ops->unblock(g);
	ground_expect(g, GPU_SUSPEND, 0, g->ops->queues[GROUND_A]);
	ground_expect(g, GPU_RESUME, 0, g->ops->queues[GROUND_A]);
	ground_expect(g, GPU_SUSPEND, -ETIMEDOUT, 0);
	ground_await_off(g, GROUND_A, 0);
}

/* ---- slices ---- */

static void slices_are_given_and_given_back(void **state)
{
	static const enum gpu_slice given[] = { GPU_SLICE_SHORT, GPU_SLICE_LONG, GPU_SLICE_OWN,
						GPU_SLICE_LONG };
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);

	if (!g->b->caps.slices) {
		assert_null(ground_ops(g)->slice);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		assert_int_equal(ground_ops(g)->slice(t, given[i], i), 0);
		ground_expect(g, GPU_SLICE, 0, 0);
		assert_int_equal(g->ops->slice(g, GROUND_A), given[i]);
	}
	assert_int_equal(ground_ops(g)->release(t, 0), 0);
	ground_expect(g, GPU_RELEASE, 0, 0);
	assert_int_equal(g->ops->slice(g, GROUND_A), GPU_SLICE_OWN);
}

const struct CMUnitTest cases_act[] = {
	CASE(a_job_is_held_and_runs_again),
	CASE(what_is_as_it_should_be_is_left_alone),
	CASE(what_is_asked_of_one_target_ends_in_that_order),
	CASE(one_job_is_held_and_the_other_runs),
	CASE(parts_of_a_job_are_held_where_queues_are_the_unit),
	CASE(what_a_held_job_creates_is_held),
	CASE(a_hold_ends_by_itself_after_its_longest_time),
	CASE(the_latest_of_several_ends_counts),
	CASE(a_hold_without_an_end_lasts),
	CASE(a_hold_whose_time_is_over_before_it_begins_is_not_made),
	CASE(slices_are_given_and_given_back),
};
const size_t n_cases_act = ARRAY_SIZE(cases_act);
