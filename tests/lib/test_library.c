/* SPDX-License-Identifier: MIT */
/* The public interface, as a program uses it, on the software device. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpreempt/model.h"

#define TRAIN 1001
#define INFER 1002
#define IDLE 1003

static int open_model(void **state)
{
	struct gpreempt_ctx *ctx = NULL;

	if (gpreempt_open("model:mi308x,log=1", &ctx, NULL) < 0)
		return -1;
	*state = ctx;
	return 0;
}

static int close_model(void **state)
{
	gpreempt_unref(*state);
	return 0;
}

static enum gpreempt_error_kind last_kind(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	return e.kind;
}

static struct gpreempt_process *attach(struct gpreempt_ctx *ctx, pid_t pid)
{
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(ctx, pid, 0, &p), 0);
	return p;
}

static uint64_t completed(struct gpreempt_ctx *ctx, pid_t pid)
{
	struct gpreempt_model_queue q = { .size = sizeof(q) };
	uint64_t sum = 0;

	for (uint32_t id = 0; gpreempt_model_get_queue(ctx, pid, id, &q) == 0; id++)
		sum += q.completed;
	return sum;
}

static void nothing_completes_while_suspended_and_everything_after(void **state)
{
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = attach(ctx, TRAIN);
	uint64_t before;

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	before = completed(ctx, TRAIN);
	assert_int_equal(gpreempt_wait(ctx, NULL, 0, 50000000), 0);
	assert_int_equal(completed(ctx, TRAIN), before);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	assert_int_equal(gpreempt_wait(ctx, NULL, 0, 50000000), 0);
	assert_true(completed(ctx, TRAIN) > before);
	gpreempt_detach(p);
}

static void work_rung_in_while_suspended_runs_after_the_resume(void **state)
{
	struct gpreempt_model_work work = {
		.size = sizeof(work), .workgroups = 8, .wg_per_cu = 1, .wg_ns = 1000,
	};
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = attach(ctx, INFER);
	struct gpreempt_model_packet packet = { .size = sizeof(packet) };
	uint64_t index = 0;

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_model_submit(ctx, INFER, 0, &work, &index), 0);
	gpreempt_wait(ctx, NULL, 0, 50000000);
	gpreempt_model_get_packets(ctx, INFER, 0, index, &packet, 1);
	assert_int_equal(packet.done_ns, 0);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	gpreempt_wait(ctx, NULL, 0, 50000000);
	assert_int_equal(gpreempt_model_get_packets(ctx, INFER, 0, index, &packet, 1), 1);
	assert_int_not_equal(packet.done_ns, 0);
	assert_int_equal(packet.finished, 8);
	gpreempt_detach(p);
}

static void only_the_named_queues_are_suspended(void **state)
{
	const uint32_t ids[] = { 4, 2 };
	struct gpreempt_process *p = attach(*state, TRAIN);
	struct gpreempt_queue queues[16] = { { .size = sizeof(queues[0]) } };
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	uint32_t held[4];

	assert_int_equal(gpreempt_suspend_queues(p, ids, 2, NULL, &timing), 0);
	assert_int_equal(timing.queues, 2);
	assert_true(timing.call_ns > 0);
	assert_int_equal(gpreempt_held_queues(p, held, 4), 2);
	assert_int_equal(held[0], 2);
	assert_int_equal(held[1], 4);
	assert_int_equal(gpreempt_snapshot(p, queues, 16, NULL), 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(strcmp(queues[i].state, "suspended") == 0,
				 queues[i].queue_id == 2 || queues[i].queue_id == 4);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	gpreempt_detach(p);
}

static void bad_ids_are_refused_and_nothing_is_held(void **state)
{
	static uint32_t many[5000];
	const uint32_t twice[] = { 1, 1 }, unknown[] = { 0, 99 };
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = attach(ctx, TRAIN);
	struct gpreempt_model_queue q = { .size = sizeof(q) };

	for (uint32_t i = 0; i < 5000; i++)
		many[i] = i;
	assert_int_equal(gpreempt_suspend_queues(p, many, 5000, NULL, NULL), -EINVAL);
	assert_int_equal(last_kind(ctx), GPREEMPT_ERROR_USAGE);
	assert_int_equal(gpreempt_suspend_queues(p, many, 0, NULL, NULL), -EINVAL);
	assert_int_equal(last_kind(ctx), GPREEMPT_ERROR_USAGE);
	assert_int_equal(gpreempt_suspend_queues(p, twice, 2, NULL, NULL), -EINVAL);
	assert_int_equal(last_kind(ctx), GPREEMPT_ERROR_USAGE);
	assert_int_equal(gpreempt_suspend_queues(p, unknown, 2, NULL, NULL), -EINVAL);
	assert_int_equal(last_kind(ctx), GPREEMPT_ERROR_ABSENT);
	for (uint32_t id = 0; id < 10; id++) {
		assert_int_equal(gpreempt_model_get_queue(ctx, TRAIN, id, &q), 0);
		assert_false(q.suspended);
	}
	gpreempt_detach(p);
}

static void a_grace_period_the_register_cannot_hold_is_refused(void **state)
{
	struct gpreempt_suspend_options options = { .size = sizeof(options), .grace_kclk = 256 };
	struct gpreempt_process *p = attach(*state, TRAIN);

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, NULL), -EINVAL);
	options.grace_kclk = UINT32_MAX;
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, NULL), -EINVAL);
	options.grace_kclk = GPREEMPT_GRACE_MAX;
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, NULL), 0);
	gpreempt_detach(p);
}

static void a_batch_is_all_or_none(void **state)
{
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *procs[2] = { attach(ctx, TRAIN), attach(ctx, INFER) };
	struct gpreempt_model_queue q = { .size = sizeof(q) };

	/* The second cannot be held again, so the first must be let go. */
	assert_int_equal(gpreempt_suspend_queues(procs[1], NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_batch_unmap_queues(procs, 2, NULL), -EALREADY);
	gpreempt_model_get_queue(ctx, TRAIN, 0, &q);
	assert_false(q.suspended);
	assert_int_equal(gpreempt_resume_queues(procs[1], NULL), 0);

	assert_int_equal(gpreempt_batch_unmap_queues(procs, 2, NULL), 0);
	gpreempt_model_get_queue(ctx, TRAIN, 0, &q);
	assert_true(q.suspended);
	assert_int_equal(gpreempt_fast_remap_queues(procs, 2), 0);
	gpreempt_model_get_queue(ctx, INFER, 0, &q);
	assert_false(q.suspended);
}

static void detaching_resumes(void **state)
{
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = attach(ctx, TRAIN);
	struct gpreempt_model_queue q = { .size = sizeof(q) };

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_null(gpreempt_detach(p));
	gpreempt_model_get_queue(ctx, TRAIN, 0, &q);
	assert_false(q.suspended);
}

static void looking_is_not_holding(void **state)
{
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(ctx, TRAIN, GPREEMPT_ATTACH_LOOK_ONLY, &p), 0);
	assert_int_equal(gpreempt_guard_fd(ctx), -1);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -EPERM);
	gpreempt_detach(p);
}

static void a_guard_that_comes_later_leaves_lookers_as_they_are(void **state)
{
	struct gpreempt_ctx *ctx = *state;
	struct gpreempt_process *looker = NULL, *p = NULL;

	assert_int_equal(gpreempt_attach(ctx, INFER, GPREEMPT_ATTACH_LOOK_ONLY, &looker), 0);
	assert_int_equal(gpreempt_attach(ctx, TRAIN, 0, &p), 0);
	assert_true(gpreempt_guard_fd(ctx) >= 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_true(gpreempt_snapshot(looker, NULL, 0, NULL) > 0);
	gpreempt_detach(looker);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	gpreempt_detach(p);
}

static void what_was_saved_is_told_when_asked_for(void **state)
{
	struct gpreempt_suspend_options options = { .size = sizeof(options), .want_saved = true };
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	struct gpreempt_process *p = attach(*state, TRAIN);

	gpreempt_wait(*state, NULL, 0, 1000000); /* attaching took everything off for a moment */
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, &timing), 0);
	assert_false(timing.has_saved);
	assert_int_equal(gpreempt_resume_queues(p, NULL), 0);
	gpreempt_wait(*state, NULL, 0, 1000000);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, &timing), 0);
	assert_true(timing.has_saved && timing.saved_bytes > 1 << 20);
	assert_true(timing.has_save_ns && timing.save_ns > 0 && timing.save_ns < timing.call_ns);
	gpreempt_detach(p);
}

static void activity_is_told_per_queue(void **state)
{
	struct gpreempt_process *train = attach(*state, TRAIN), *infer = attach(*state, INFER);

	assert_int_equal(gpreempt_is_queue_active(train, 0), 1);
	assert_int_equal(gpreempt_is_queue_active(infer, 0), 0);
	assert_int_equal(gpreempt_is_queue_active(infer, 99), -EINVAL);
}

static void idle_offline_queues_are_found(void **state)
{
	struct gpreempt_queue queues[16] = { { .size = sizeof(queues[0]) } };
	struct gpreempt_ctx *ctx = NULL;

	assert_int_equal(gpreempt_find_idle_offline_queues(*state, queues, 16), 0);
	assert_int_equal(gpreempt_open("model:mi308x,occupancy=0", &ctx, NULL), 0);
	assert_int_equal(gpreempt_find_idle_offline_queues(ctx, queues, 16), 10);
	assert_int_equal(queues[0].pid, TRAIN);
	assert_string_equal(queues[9].state, "idle");
	gpreempt_unref(ctx);
}

static void too_small_an_array_is_filled_and_the_rest_counted(void **state)
{
	struct gpreempt_queue queues[4] = { { .size = sizeof(queues[0]) } };

	queues[3].queue_id = 4242;
	assert_int_equal(gpreempt_get_all_queues(*state, NULL, NULL, 0), 12);
	assert_int_equal(gpreempt_get_all_queues(*state, NULL, queues, 3), 12);
	assert_int_equal(queues[2].queue_id, 2);
	assert_int_equal(queues[3].queue_id, 4242);
	queues[0].size = 0;
	assert_int_equal(gpreempt_get_all_queues(*state, NULL, queues, 3), -EINVAL);
}

static void a_monitor_adds_up_its_samples(void **state)
{
	struct gpreempt_process *p = attach(*state, INFER);
	struct gpreempt_stats stats = { .size = sizeof(stats) };
	struct gpreempt_monitor *mon = NULL;
	const struct gpreempt_queue *queues = NULL;
	uint64_t when = 0;

	assert_int_equal(gpreempt_monitor_new(p, &mon), 0);
	assert_int_equal(gpreempt_monitor_stats(mon, &stats), -ENODATA);
	assert_int_equal(gpreempt_monitor_sample(mon, NULL, NULL), 2);
	assert_int_equal(gpreempt_monitor_sample(mon, &queues, &when), 2);
	assert_int_equal(queues[0].pid, INFER);
	assert_true(when > 0);
	assert_int_equal(gpreempt_monitor_stats(mon, &stats), 0);
	assert_int_equal(stats.samples, 2);
	assert_true(stats.stable);
	gpreempt_monitor_free(mon);
}

static void the_stock_driver_says_what_it_cannot_do(void **state)
{
	assert_int_equal(gpreempt_set_queue_policy(*state, TRAIN, 0, 0), -EOPNOTSUPP);
	assert_int_equal(gpreempt_set_hqd_reservation(*state, 0, 10, 80), -EOPNOTSUPP);
	assert_int_equal(gpreempt_hint(*state, TRAIN), -EOPNOTSUPP);
	assert_int_equal(last_kind(*state), GPREEMPT_ERROR_REFUSED);
}

static int count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

static void the_last_reference_gives_everything_back(void **state)
{
	struct gpreempt_ctx *ctx = NULL;
	struct gpreempt_process *p;
	int threads = count_threads();

	assert_int_equal(gpreempt_open("model", &ctx, NULL), 0);
	p = attach(ctx, TRAIN);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	assert_int_equal(gpreempt_keepalive(ctx), 0);
	assert_ptr_equal(gpreempt_ref(ctx), ctx);
	assert_null(gpreempt_unref(ctx));
	assert_int_equal(gpreempt_process_check(p), 0);
	assert_true(count_threads() > threads);
	assert_null(gpreempt_unref(ctx));
	assert_int_equal(count_threads(), threads);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1); /* no guard is left */
}

static void a_device_that_is_not_there_is_explained(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_ctx *ctx = NULL;

	assert_int_equal(gpreempt_open("toaster", &ctx, &e), -EINVAL);
	assert_int_equal(e.kind, GPREEMPT_ERROR_USAGE);
	assert_non_null(strstr(e.message, "toaster"));
	assert_int_equal(gpreempt_open("nvrm", &ctx, &e), -ENODEV);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	assert_int_equal(gpreempt_open("model:mi308x,gpus=99", &ctx, &e), -EINVAL);
	assert_non_null(strstr(e.message, "gpus is 1 to 8"));
	assert_null(ctx);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_model, close_model)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_completes_while_suspended_and_everything_after),
		TEST(work_rung_in_while_suspended_runs_after_the_resume),
		TEST(only_the_named_queues_are_suspended),
		TEST(bad_ids_are_refused_and_nothing_is_held),
		TEST(a_grace_period_the_register_cannot_hold_is_refused),
		TEST(a_batch_is_all_or_none),
		TEST(detaching_resumes),
		TEST(looking_is_not_holding),
		TEST(a_guard_that_comes_later_leaves_lookers_as_they_are),
		TEST(what_was_saved_is_told_when_asked_for),
		TEST(activity_is_told_per_queue),
		TEST(idle_offline_queues_are_found),
		TEST(too_small_an_array_is_filled_and_the_rest_counted),
		TEST(a_monitor_adds_up_its_samples),
		TEST(the_stock_driver_says_what_it_cannot_do),
		TEST(the_last_reference_gives_everything_back),
		TEST(a_device_that_is_not_there_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
