/* SPDX-License-Identifier: MIT */
/* The library on a driver of which it knows nothing: the toy's, the only one of this machine. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/internal.h"
#include "tests/backend/toy/toy.h"

#define JOB 501
#define OTHER 502

const struct gpu_driver *const gpu_drivers[] = { &toy_driver, NULL };

struct rig {
	struct toy toy;
	struct gpreempt_ctx *ctx;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->toy.procs[0] = (struct toy_proc){ .pid = JOB, .start_ticks = 71, .n = 3 };
	r->toy.procs[1] = (struct toy_proc){ .pid = OTHER, .start_ticks = 72, .n = 2 };
	toy_machine = &r->toy;
	assert_int_equal(gpreempt_open("auto", &r->ctx, NULL), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	gpreempt_unref(r->ctx);
	for (size_t i = 0; i < TOY_PROCS; i++)
		assert_int_equal(r->toy.procs[i].off, 0);
	free(r);
	return 0;
}

static struct gpreempt_process *attach(struct rig *r, pid_t pid, unsigned int flags)
{
	struct gpreempt_process *p = NULL;

	assert_int_equal(gpreempt_attach(r->ctx, pid, flags, &p), 0);
	return p;
}

static void the_machine_is_told(void **state)
{
	struct rig *r = *state;
	struct gpreempt_device_info info = { .size = sizeof(info) };
	struct gpreempt_gpu gpu = { .size = sizeof(gpu) };
	struct gpreempt_level level = { .size = sizeof(level) };

	assert_string_equal(gpreempt_backend(r->ctx), "toy");
	assert_true(gpreempt_is_modelled(r->ctx));
	assert_int_equal(gpreempt_abilities(r->ctx), GPREEMPT_HAS_QUEUES);
	assert_int_equal(gpreempt_get_device_info(r->ctx, &info), 0);
	assert_string_equal(info.backend, "toy");
	assert_int_equal(gpreempt_get_gpus(r->ctx, &gpu, 1), 1);
	assert_int_equal(gpu.gpu_id, TOY_GPU);
	assert_int_equal(gpu.hqd_total, TOY_QUEUES);
	assert_int_equal(gpreempt_get_levels(r->ctx, &level, 1), 1);
	assert_string_equal(level.level, "T1");
	assert_true(level.available);
	r->toy.now_ns = 77;
	assert_int_equal(gpreempt_now_ns(r->ctx), 77);
}

static void processes_and_queues_are_listed(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process_info list[4] = { { .size = sizeof(list[0]) } };
	struct gpreempt_queue queues[8] = { { .size = sizeof(queues[0]) } };
	pid_t pids[4];

	assert_int_equal(gpreempt_list_processes(r->ctx, list, 4), 2);
	assert_int_equal(list[0].pid, JOB);
	assert_string_equal(list[0].comm, "toy");
	assert_string_equal(list[0].state, "running");
	assert_int_equal(list[0].queues, 3);
	assert_int_equal(list[0].n_gpus, 1);
	assert_int_equal(list[0].gpus[0], TOY_GPU);
	assert_int_equal(list[1].queues, 2);
	assert_int_equal(gpreempt_list_pids(r->ctx, pids, 4), 2);
	assert_int_equal(gpreempt_get_all_queues(r->ctx, NULL, queues, 8), 5);
	assert_int_equal(queues[0].pid, JOB);
	assert_int_equal(queues[0].type, GPREEMPT_QUEUE_OTHER); /* nobody knows */
	assert_int_equal(queues[4].pid, OTHER);
	assert_int_equal(queues[4].queue_id, 1);
	assert_int_equal(queues[0].valid, 0);
}

static void a_job_is_held_and_runs_again(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB, 0);
	struct gpreempt_suspend_options options = { .size = sizeof(options), .want_saved = true };
	struct gpreempt_timing timing = { .size = sizeof(timing) };
	struct gpreempt_queue queues[4] = { { .size = sizeof(queues[0]) } };
	uint32_t held[4], one = 1;

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, &timing), 0);
	assert_int_equal(timing.queues, 3);
	assert_false(timing.has_saved || timing.has_save_ns);
	assert_int_equal(toy_count_off(&r->toy.procs[0]), 3);
	assert_int_equal(gpreempt_held_queues(p, held, 4), 3);
	assert_int_equal(held[2], 2);
	assert_int_equal(gpreempt_snapshot(p, queues, 4, NULL), 3);
	assert_string_equal(queues[0].state, "suspended");
	assert_int_equal(gpreempt_resume_queues(p, &timing), 0);
	assert_int_equal(toy_count_off(&r->toy.procs[0]), 0);
	assert_int_equal(gpreempt_suspend_queues(p, &one, 1, NULL, NULL), 0);
	assert_int_equal(r->toy.procs[0].off, 1u << 1);
	gpreempt_detach(p);
	assert_int_equal(r->toy.procs[0].off, 0);
}

static void several_jobs_are_held_at_once(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p[] = { attach(r, JOB, 0), attach(r, OTHER, 0) };

	assert_int_equal(gpreempt_batch_unmap_queues(p, 2, NULL), 0);
	assert_int_equal(toy_count_off(&r->toy.procs[0]) + toy_count_off(&r->toy.procs[1]), 5);
	assert_int_equal(gpreempt_fast_remap_queues(p, 2), 0);
	assert_int_equal(toy_count_off(&r->toy.procs[0]) + toy_count_off(&r->toy.procs[1]), 0);
}

static void a_hold_has_an_end(void **state)
{
	struct rig *r = *state;
	struct gpreempt_suspend_options options = { .size = sizeof(options), .longest_ns = 50 };

	assert_int_equal(gpreempt_suspend_queues(attach(r, JOB, 0), NULL, 0, &options, NULL), 0);
	toy_advance(&r->toy, 49);
	assert_int_equal(toy_count_off(&r->toy.procs[0]), 3);
	toy_advance(&r->toy, 1);
	assert_int_equal(toy_count_off(&r->toy.procs[0]), 0);
}

/* The one who looks hears of it, though others were asked about meanwhile. */
static void the_end_of_a_process_is_told(void **state)
{
	struct rig *r = *state;
	struct gpreempt_process *p = attach(r, JOB, GPREEMPT_ATTACH_LOOK_ONLY);
	struct gpreempt_process_info info = { .size = sizeof(info) };
	struct pollfd fd = { .fd = gpreempt_process_fd(p), .events = POLLIN };

	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), -EPERM);
	assert_int_equal(gpreempt_process_check(p), 0);
	toy_exit(&r->toy, JOB);
	assert_int_equal(gpreempt_list_processes(r->ctx, &info, 1), 1);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(gpreempt_process_check(p), -ESRCH);
}

static void what_somebody_left_is_released(void **state)
{
	struct rig *r = *state;
	pid_t released[2], pid = OTHER;

	assert_int_equal(toy_move(&r->toy, JOB, 7, UINT64_MAX), 3);
	assert_int_equal(gpreempt_release(r->ctx, NULL, 0, released, 2), 1);
	assert_int_equal(released[0], JOB);
	assert_int_equal(r->toy.procs[0].off, 0);
	assert_int_equal(gpreempt_release(r->ctx, &pid, 1, released, 2), 0);
}

static void what_it_lacks_is_refused_with_a_reason(void **state)
{
	struct rig *r = *state;
	struct gpreempt_suspend_options options = { .size = sizeof(options), .grace_kclk = 3 };
	struct gpreempt_process *p = attach(r, JOB, 0), *never = NULL;
	struct gpreempt_monitor *m = NULL;
	struct gpreempt_error error = { .size = sizeof(error) };

	assert_int_equal(gpreempt_monitor_new(p, &m), -EOPNOTSUPP);
	gpreempt_get_error(r->ctx, &error);
	assert_int_equal(error.kind, GPREEMPT_ERROR_REFUSED);
	assert_non_null(strstr(error.message, "the toy's driver has no"));
	assert_int_equal(gpreempt_get_hqd_status(r->ctx, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(gpreempt_suspend_own(r->ctx, NULL, 0, NULL, NULL), -EOPNOTSUPP);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, &options, NULL), -EOPNOTSUPP);
	assert_int_equal(gpreempt_attach(r->ctx, OTHER, GPREEMPT_ATTACH_PAUSE, &never),
			 -EOPNOTSUPP);
	assert_int_equal(gpreempt_self_test(r->ctx, 0, NULL), -EOPNOTSUPP);
	assert_true(gpreempt_is_queue_active(p, 9) < 0);
	assert_int_equal(gpreempt_attach(r->ctx, 99, 0, &never), -ESRCH);
}

/* The backends have it, and are opened anew with another. */
static void a_dead_guard_is_replaced(void **state)
{
	struct rig *r = *state;
	struct pollfd guard = { .events = POLLIN };

	gpreempt_detach(attach(r, JOB, 0));
	guard.fd = gpreempt_guard_fd(r->ctx);
	assert_int_equal(kill(guard_pid(r->ctx->guard), SIGKILL), 0);
	assert_int_equal(poll(&guard, 1, 10000), 1);
	gpreempt_detach(attach(r, JOB, 0));
	assert_int_equal(gpreempt_now_ns(r->ctx), 0);
	assert_int_equal(gpreempt_list_pids(r->ctx, NULL, 0), 2);
}

static void devices_go_by_their_names(void **state)
{
	struct gpreempt_ctx *ctx = NULL;
	struct gpreempt_error error = { .size = sizeof(error) };

	assert_int_equal(gpreempt_open("toy", &ctx, &error), 0);
	gpreempt_unref(ctx);
	assert_int_equal(gpreempt_open("toy:1", &ctx, &error), -EINVAL);
	assert_int_equal(error.kind, GPREEMPT_ERROR_USAGE);
	assert_non_null(strstr(error.hint, "auto, toy, model[:PRESET]"));
	assert_int_equal(gpreempt_open("kfd", &ctx, &error), -EINVAL);
	toy_machine = NULL;
	assert_int_equal(gpreempt_open(NULL, &ctx, &error), -ENODEV);
	assert_int_equal(error.kind, GPREEMPT_ERROR_ABSENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_machine_is_told),
		TEST(processes_and_queues_are_listed),
		TEST(a_job_is_held_and_runs_again),
		TEST(several_jobs_are_held_at_once),
		TEST(a_hold_has_an_end),
		TEST(the_end_of_a_process_is_told),
		TEST(what_somebody_left_is_released),
		TEST(what_it_lacks_is_refused_with_a_reason),
		TEST(a_dead_guard_is_replaced),
		TEST(devices_go_by_their_names),
	};

	/* Of a daemon on this machine nobody is to be asked. */
	setenv("GPREEMPT_SOCKET", "/nonexistent/gpreempt.sock", 1);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
