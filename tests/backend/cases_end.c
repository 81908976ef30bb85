/* SPDX-License-Identifier: MIT */
/* Refusals, failures, and how it ends. */
#include <poll.h>

#include "tests/backend/cases.h"

#define NOBODY 4194000 /* a pid that no ground gives to anybody */
#define ROUNDS 50

static void expect_refusals(struct ground *g, struct gpu_target *t, int error)
{
	ground_suspend(g, t, NULL, 0, 0, 2);
	ground_expect(g, GPU_SUSPEND, error, 0);
	ground_resume(g, t, 3);
	ground_expect(g, GPU_RESUME, error, 0);
	if (ground_ops(g)->slice) {
		assert_int_equal(ground_ops(g)->slice(t, GPU_SLICE_SHORT, 4), 0);
		ground_expect(g, GPU_SLICE, error, 0);
	}
}

static void release(struct ground *g, struct gpu_target *t)
{
	struct gpu_done done;

	assert_int_equal(ground_ops(g)->release(t, 99), 0);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_RELEASE);
	assert_int_equal(done.cookie, 99);
	assert_ptr_equal(done.target, t);
	assert_int_equal(done.result, 0);
}

static void nothing_is_to_be_taken_at_first(void **state)
{
	assert_true(ground_is_quiet(*state));
}

static void a_refused_attach_refuses_what_follows(void **state)
{
	const struct gpu_attach request = { .pid = NOBODY };
	struct ground *g = *state;
	struct gpu_target *t = NULL;
	int r = ground_ops(g)->attach(g->b, &request, 1, &t);

	if (r < 0) {
		assert_int_equal(r, -ESRCH);
		assert_null(t);
		assert_true(ground_is_quiet(g));
		return;
	}
	ground_suspend(g, t, NULL, 0, 0, 2);
	ground_expect(g, GPU_ATTACH, -ESRCH, 0);
	ground_expect(g, GPU_SUSPEND, -ESRCH, 0);
	expect_refusals(g, t, -ESRCH);
	release(g, t);
	assert_true(ground_is_quiet(g));
}

static void a_process_that_started_at_another_time_is_another_one(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t;

	if (g->ops->any_start)
		return;
	ground_ask_attach(g, g->pid[GROUND_A], 1, 1, &t);
	ground_suspend(g, t, NULL, 0, 0, 2);
	ground_expect(g, GPU_ATTACH, -ESRCH, 0);
	ground_expect(g, GPU_SUSPEND, -ESRCH, 0);
	release(g, t);
	ground_await_off(g, GROUND_A, 0);
}

static void who_is_attached_is_not_attached_again(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A), *again;
	struct gpu_done done;

	ground_ask_attach(g, g->pid[GROUND_A], 0, 5, &again);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_ATTACH);
	assert_int_equal(done.cookie, 5);
	if (!g->ops->shared) {
		assert_true(done.result < 0);
		assert_true(done.why.message[0]);
	}
	release(g, again);
	ground_hold(g, t, GROUND_A);
}

static void a_release_lets_go_and_forgets(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);

	ground_suspend(g, t, NULL, 0, 0, 0);
	assert_int_equal(ground_ops(g)->release(t, 99), 0);
	ground_expect(g, GPU_SUSPEND, 0, g->ops->queues[GROUND_A]);
	ground_expect(g, GPU_RELEASE, 0, 0);
	ground_await_off(g, GROUND_A, 0);
	assert_true(ground_is_quiet(g));
	ground_hold(g, ground_attach(g, GROUND_A), GROUND_A); /* nobody is left who had it */
}

static void the_end_of_a_held_job_is_told_once_and_then_nothing_can_be_done(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A), *other = ground_attach(g, GROUND_B);

	ground_hold(g, t, GROUND_A);
	g->ops->end(g, GROUND_A);
	ground_await_news(g);
	ground_expect(g, GPU_ENDED, -ESRCH, 0);
	expect_refusals(g, t, -ESRCH);
	release(g, t);
	assert_true(ground_is_quiet(g));
	ground_hold(g, other, GROUND_B);
}

static void who_ends_while_it_is_let_go_is_no_trouble(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	struct gpu_done done;

	ground_hold(g, t, GROUND_A);
	g->ops->end(g, GROUND_A);
	assert_int_equal(ground_ops(g)->release(t, 99), 0);
	do
		done = ground_next(g);
	while (done.verb == GPU_ENDED);
	assert_int_equal(done.verb, GPU_RELEASE);
	assert_int_equal(done.result, 0);
	assert_true(ground_is_quiet(g));
}

static void a_gpu_that_cannot_preempt_is_named_and_nothing_stays_held(void **state)
{
	struct ground *g = *state;
	struct gpu_target *t = ground_attach(g, GROUND_A);
	struct gpu_done done;

	if (!g->ops->break_gpu)
		return;
	g->ops->break_gpu(g);
	ground_suspend(g, t, NULL, 0, 0, 5);
	done = ground_next(g);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_int_equal(done.cookie, 5);
	assert_true(done.result < 0);
	assert_true(done.gpu_failed);
	assert_int_equal(done.gpu, g->ops->unnamed ? 0 : g->gpu);
	assert_true(done.why.message[0]);
	assert_false(done.holds);
	ground_await_off(g, GROUND_A, 0);
}

static void a_pidfd_tells_of_the_end(void **state)
{
	struct ground *g = *state;
	struct pollfd p = { .events = POLLIN };

	p.fd = ground_ops(g)->pidfd(g->b, g->pid[GROUND_B]);
	if (p.fd < 0) {
		assert_int_equal(p.fd, -ENOSYS);
		return;
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	g->ops->end(g, GROUND_B);
	assert_int_equal(poll(&p, 1, 10000), 1);
	close(p.fd);
}

static void attaching_again_and_again_leaves_nothing(void **state)
{
	struct ground *g = *state;

	for (int i = 0; i < ROUNDS; i++) {
		struct gpu_target *t = ground_attach(g, GROUND_A);

		if (i % 2) {
			ground_hold(g, t, GROUND_A);
		} else { /* the release has to wait for it */
			ground_suspend(g, t, NULL, 0, 0, 0);
		}
		assert_int_equal(ground_ops(g)->release(t, 0), 0);
		if (i % 2 == 0)
			ground_expect(g, GPU_SUSPEND, 0, g->ops->queues[GROUND_A]);
		ground_expect(g, GPU_RELEASE, 0, 0);
		ground_await_off(g, GROUND_A, 0);
	}
}

/* That nothing is left of it, also of what was asked last, the teardown sees. */
static void closing_lets_everybody_go(void **state)
{
	struct ground *g = *state;
	struct gpu_target *a = ground_attach(g, GROUND_A), *b;
	struct gpu_watch *w;

	ground_hold(g, a, GROUND_A);
	assert_int_equal(ground_ops(g)->watch(g->b, g->pid[GROUND_A], &w), 0);
	ground_ask_attach(g, g->pid[GROUND_B], 0, 1, &b);
	ground_suspend(g, b, NULL, 0, 0, 2);
	assert_int_equal(ground_ops(g)->release(b, 3), 0);
	ground_close_backend(g);
	ground_await_off(g, GROUND_A, 0);
	ground_await_off(g, GROUND_B, 0);
}

const struct CMUnitTest cases_end[] = {
	CASE(nothing_is_to_be_taken_at_first),
	CASE(a_refused_attach_refuses_what_follows),
	CASE(a_process_that_started_at_another_time_is_another_one),
	CASE(who_is_attached_is_not_attached_again),
	CASE(a_release_lets_go_and_forgets),
	CASE(the_end_of_a_held_job_is_told_once_and_then_nothing_can_be_done),
	CASE(who_ends_while_it_is_let_go_is_no_trouble),
	CASE(a_gpu_that_cannot_preempt_is_named_and_nothing_stays_held),
	CASE(a_pidfd_tells_of_the_end),
	CASE(attaching_again_and_again_leaves_nothing),
	CASE(closing_lets_everybody_go),
};
const size_t n_cases_end = ARRAY_SIZE(cases_end);
