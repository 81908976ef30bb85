/* SPDX-License-Identifier: MIT */
/* Watching processes through the backend: what it shows comes from the worker, when it can. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define QUEUES_MAX 16

struct seen {
	struct gpu_queue queues[QUEUES_MAX];
	size_t n;
};

static struct gpu_watch *watch(struct bed *bed, pid_t pid)
{
	struct gpu_watch *w;

	assert_int_equal(bed_ops(bed)->watch(bed->b, pid, &w), 0);
	return w;
}

static struct seen see(struct bed *bed, const struct gpu_watch *w)
{
	const struct gpu_queue *queues;
	struct seen s;

	queues = bed_ops(bed)->queues(w, &s.n);
	assert_true(s.n <= QUEUES_MAX);
	for (size_t i = 0; i < s.n; i++)
		s.queues[i] = queues[i];
	return s;
}

static bool has(const struct seen *s, uint32_t gpu, uint32_t queue)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->queues[i].gpu == gpu && s->queues[i].queue == queue)
			return true;
	return false;
}

static void queues_appear_and_then_stay(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w = watch(bed, JOB);
	const struct gpu_sample *samples;
	struct seen s;

	bed_await_refresh(bed, w, 1);
	s = see(bed, w);
	assert_int_equal(s.n, GROUPS);
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(s.queues[i].gpu, FAKE_GPU);
		assert_false(s.queues[i].unseen);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(s.queues[i].queue, s.queues[j].queue);
	}
	assert_int_equal(bed_ops(bed)->refresh(w), 0);
	bed_ops(bed)->look(bed->b, &w, 1);
	assert_int_equal(bed_ops(bed)->looked(w, &samples), 0);
	bed_ops(bed)->unwatch(w);
	bed_ops(bed)->unwatch(NULL);
}

static void a_second_context_leaves_the_first_ones_numbers(void **state)
{
	struct bed *bed = *state;
	uint32_t client, first;
	struct seen before, both, after;
	struct gpu_watch *w;

	fake_rm_add_gpu(bed->fake, FAKE_GPU_2, "NVIDIA H200");
	client = fake_rm_job(bed->fake, OTHER);
	w = watch(bed, OTHER);
	bed_await_refresh(bed, w, 1);
	before = see(bed, w);
	first = fake_rm_context(bed->fake, client, FAKE_GPU_2, FAKE_CONNECTIONS);
	bed_await_refresh(bed, w, 1);
	both = see(bed, w);
	assert_int_equal(both.n, 2 * GROUPS);
	for (size_t i = 0; i < before.n; i++)
		assert_true(has(&both, before.queues[i].gpu, before.queues[i].queue));
	fake_rm_drop_context(bed->fake, client, first);
	bed_await_refresh(bed, w, 1);
	after = see(bed, w);
	assert_int_equal(after.n, GROUPS);
	for (size_t i = 0; i < before.n; i++)
		assert_true(has(&after, before.queues[i].gpu, before.queues[i].queue));
	bed_ops(bed)->unwatch(w);
}

static void who_has_no_context_yet_is_looked_at_again(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w;
	uint32_t client;
	int number;

	fake_rm_spawn(bed->fake, OTHER, 0, "job");
	number = fake_rm_open_file(bed->fake, OTHER, "/dev/nvidiactl");
	fake_rm_open_file(bed->fake, OTHER, "/dev/nvidia0");
	w = watch(bed, OTHER);
	assert_int_equal(bed_ops(bed)->refresh(w), 0);
	assert_int_equal(see(bed, w).n, 0);
	client = fake_rm_client(bed->fake, OTHER, number);
	fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	bed_await_refresh(bed, w, 1);
	assert_int_equal(see(bed, w).n, GROUPS);
	bed_ops(bed)->unwatch(w);
}

static void who_ends_is_told_of_whether_it_had_a_context_or_not(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *with = watch(bed, JOB), *without;

	fake_rm_spawn(bed->fake, OTHER, 0, "job");
	without = watch(bed, OTHER);
	bed_await_refresh(bed, with, 1);
	fake_rm_exit(bed->fake, JOB);
	fake_rm_exit(bed->fake, OTHER);
	bed_await_refresh(bed, with, -ESRCH);
	bed_await_refresh(bed, without, -ESRCH);
	assert_int_equal(fake_rm_pinned(bed->fake), 0);
	bed_ops(bed)->unwatch(with);
	bed_ops(bed)->unwatch(without);
}

static void who_is_not_there_is_told_of(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w = watch(bed, 4000);

	bed_await_refresh(bed, w, -ESRCH);
	bed_ops(bed)->unwatch(w);
}

static bool nothing_is_borrowed(struct bed *bed, size_t unused)
{
	return fake_rm_descriptors(bed->fake) == 0;
}

static void nothing_is_kept_of_whom_nobody_watches(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w = watch(bed, JOB), *again = watch(bed, JOB);

	bed_await_refresh(bed, w, 1);
	bed_ops(bed)->unwatch(w);
	bed_await_refresh(bed, again, 1); /* the other's is its own */
	assert_int_equal(see(bed, again).n, GROUPS);
	bed_ops(bed)->unwatch(again);
	bed_await(bed, nothing_is_borrowed, 0);
	bed_ops(bed)->unwatch(watch(bed, JOB)); /* before the worker has seen it */
	bed_await(bed, nothing_is_borrowed, 0);
}

static void watching_outlives_a_release_and_touches_nobody(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);
	struct gpu_watch *w = watch(bed, JOB);

	bed_await_refresh(bed, w, 1);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	assert_int_equal(fake_rm_disabled(bed->fake, JOB), 0);
	assert_true(bed_ops(bed)->refresh(w) >= 0);
	assert_int_equal(see(bed, w).n, GROUPS);
	t = bed_attach(bed, JOB);
	assert_int_equal(bed_ops(bed)->refresh(w), 0); /* shown again, and the same */
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_ops(bed)->unwatch(w);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
}

static void whom_we_may_not_look_at_is_tried_again(void **state)
{
	struct bed *bed = *state;
	struct fake_fault fault = { .op = FAKE_BORROW, .times = 3, .error = EPERM };
	struct gpu_watch *w;

	fake_rm_fault(bed->fake, &fault);
	w = watch(bed, JOB);
	bed_await_refresh(bed, w, 1);
	assert_int_equal(see(bed, w).n, GROUPS);
	assert_true(fake_rm_count(bed->fake, FAKE_BORROW, 0) > 3);
	bed_ops(bed)->unwatch(w);
}

#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
#define G(f) cmocka_unit_test_setup_teardown(f, bed_setup_guarded, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(queues_appear_and_then_stay),
		T(a_second_context_leaves_the_first_ones_numbers),
		T(who_has_no_context_yet_is_looked_at_again),
		T(who_ends_is_told_of_whether_it_had_a_context_or_not),
		T(who_is_not_there_is_told_of),
		T(nothing_is_kept_of_whom_nobody_watches),
		G(watching_outlives_a_release_and_touches_nobody),
		T(whom_we_may_not_look_at_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
