/* SPDX-License-Identifier: MIT */
/* A backend whose questions about processes are answered later, or never. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define HOSTILE 3000
#define HOSTILE_UID 1001

static struct gpu_watch *watch(struct bed *bed, pid_t pid)
{
	struct gpu_watch *w;

	assert_int_equal(bed_ops(bed)->watch(bed->b, pid, &w), 0);
	return w;
}

static void start_hostile(struct bed *bed)
{
	uint32_t client;

	fake_rm_spawn(bed->fake, HOSTILE, HOSTILE_UID, "hostile");
	client = fake_rm_client(bed->fake, HOSTILE,
				fake_rm_open_file(bed->fake, HOSTILE, "/dev/nvidiactl"));
	fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
}

static bool is_asked(struct bed *bed, size_t n)
{
	return fake_rm_unanswered(bed->fake) == n;
}

static bool is_given_up(struct bed *bed, size_t n)
{
	return fake_rm_given_up(bed->fake).n >= n;
}

static void hold_and_let_go(struct bed *bed, struct gpu_target *t)
{
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
}

static void a_job_is_held_also_when_answers_come_later(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w = watch(bed, JOB);
	struct gpu_target *t = bed_attach(bed, JOB);

	bed_await_refresh(bed, w, 1);
	hold_and_let_go(bed, t);
	bed_ops(bed)->unwatch(w);
}

/* Its look stands still, and with it an attach; everybody else goes on. */
static void who_does_not_answer_keeps_nobody_held(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB), *hostile;

	start_hostile(bed);
	fake_rm_silence(bed->fake, HOSTILE);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	assert_int_equal(bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ HOSTILE }, 1, &hostile),
			 0);
	bed_await(bed, is_asked, 1);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
	hold_and_let_go(bed, t);
	fake_rm_job(bed->fake, OTHER);
	hold_and_let_go(bed, bed_attach(bed, OTHER));
	fake_rm_silence(bed->fake, 0);
	bed_expect(bed, GPU_ATTACH, 0, 0);
}

static void who_ends_before_it_is_answered_leaves_nothing(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w = watch(bed, HOSTILE);
	struct gpu_target *t;

	start_hostile(bed);
	fake_rm_silence(bed->fake, HOSTILE);
	assert_int_equal(bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ HOSTILE }, 1, &t), 0);
	bed_await(bed, is_asked, 1);
	fake_rm_exit(bed->fake, HOSTILE);
	bed_expect(bed, GPU_ATTACH, -ESRCH, 0);
	bed_await(bed, is_asked, 0);
	bed_ops(bed)->unwatch(w);
}

static void who_cannot_be_looked_into_is_not_attached(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t;

	start_hostile(bed);
	fake_rm_silence(bed->fake, HOSTILE);
	fake_rm_give_up(bed->fake);
	assert_int_equal(bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ HOSTILE }, 1, &t), 0);
	bed_expect(bed, GPU_ATTACH, -ETIMEDOUT, 0);
}

/* Or a job would end every hold of itself by making its readers hang. */
static void a_hold_stays_though_nobody_answers(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);

	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_silence(bed->fake, JOB);
	fake_rm_give_up(bed->fake);
	bed_await(bed, is_given_up, 2);
	assert_true(bed_job_off(bed, HELD_CHANNELS));
	assert_true(bed_is_quiet(bed));
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
}

static bool is_blind(struct bed *bed, size_t blind)
{
	return !bed_ops(bed)->blind(bed->watch) == !blind;
}

static void who_cannot_be_looked_into_is_told_of(void **state)
{
	struct bed *bed = *state;

	start_hostile(bed);
	fake_rm_silence(bed->fake, HOSTILE);
	fake_rm_give_up(bed->fake);
	bed->watch = watch(bed, HOSTILE);
	bed_await(bed, is_blind, true);
	assert_string_equal(bed_ops(bed)->blind(bed->watch), "it does not let itself be read");
	fake_rm_silence(bed->fake, 0);
	bed_await(bed, is_blind, false);
	bed_ops(bed)->unwatch(bed->watch);
}

/* What the driver tells needs no reader. Whose it is does, and until then nothing is done to it. */
static void contexts_are_followed_though_nobody_answers(void **state)
{
	struct bed *bed = *state;
	uint32_t client = fake_rm_job(bed->fake, OTHER);
	struct gpu_target *t = bed_attach(bed, OTHER);
	struct gpu_watch *w = bed->watch = watch(bed, OTHER);
	size_t before, after;

	bed_await_refresh(bed, w, 1);
	bed_ops(bed)->queues(w, &before);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_silence(bed->fake, OTHER);
	fake_rm_give_up(bed->fake);
	bed_await(bed, is_blind, true);
	fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	bed_await_refresh(bed, w, 1);
	bed_ops(bed)->queues(w, &after);
	assert_true(after > before);
	assert_true(bed_other_off(bed, HELD_CHANNELS));
	fake_rm_silence(bed->fake, 0);
	bed_await(bed, bed_other_off, 2 * HELD_CHANNELS);
	bed_ops(bed)->unwatch(w);
}

/* What the driver would not undo is tried again, with other looks than usual. */
static void who_owed_something_is_seen_again(void **state)
{
	const struct fake_fault fault = { .op = FAKE_IOCTL,
					  .cmd = NVRM_CTRL_DISABLE_CHANNELS,
					  .times = 3,
					  .status = NVRM_INVALID_STATE };
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);

	bed->watch = watch(bed, JOB);
	bed_await_refresh(bed, bed->watch, 1);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_silence(bed->fake, JOB);
	fake_rm_give_up(bed->fake);
	bed_await(bed, is_blind, true);
	fake_rm_silence(bed->fake, 0);
	fake_rm_fault(bed->fake, &fault);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	bed_await(bed, is_blind, false);
	bed_ops(bed)->unwatch(bed->watch);
}

static void who_cannot_be_looked_at_is_told_as_a_problem(void **state)
{
	struct fake_rm *seen = fake_rm_new(), *unseen = fake_rm_new();
	struct nvrm_backend_options options = { .untested = true };
	struct gpu_backend *b;
	pid_t pid;

	fake_rm_answer_later(unseen);
	fake_rm_job(unseen, JOB);
	options.finder = fake_rm_nvrm(unseen);
	assert_int_equal(nvrm_backend_open(fake_rm_nvrm(seen), &options, &b), 0);
	assert_int_equal(b->ops->processes(b, &pid, 1), 1);
	assert_null(b->ops->problem(b));
	fake_rm_silence(unseen, JOB);
	fake_rm_give_up(unseen);
	assert_int_equal(b->ops->processes(b, &pid, 1), 1);
	assert_string_equal(
		b->ops->problem(b),
		"1 process cannot be looked at: nobody knows whether it has a GPU open");
	b->ops->close(b);
	fake_rm_free(seen);
	fake_rm_free(unseen);
}

#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup_later, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_job_is_held_also_when_answers_come_later),
		T(who_does_not_answer_keeps_nobody_held),
		T(who_ends_before_it_is_answered_leaves_nothing),
		T(who_cannot_be_looked_into_is_not_attached),
		T(a_hold_stays_though_nobody_answers),
		T(who_cannot_be_looked_into_is_told_of),
		T(contexts_are_followed_though_nobody_answers),
		T(who_owed_something_is_seen_again),
		cmocka_unit_test(who_cannot_be_looked_at_is_told_as_a_problem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
