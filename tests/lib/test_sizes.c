/* SPDX-License-Identifier: MIT */
/*
 * Structs begin with their size. One that is older than the library, or later, is understood; one
 * whose size was forgotten is refused, before anything is done.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "gpreempt/kernel.h"
#include "gpreempt/model.h"
#include "lib/daemon_internal.h"
#include "lib/internal.h"

#define TRAIN 1001

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

/* ---- how structs grow ---- */

struct first { /* as it was in the first version */
	size_t size;
	uint32_t a;
};

struct known { /* as it is in this one */
	size_t size;
	uint32_t a, b;
	uint64_t c;
};

struct later {
	size_t size;
	uint32_t a, b;
	uint64_t c, d;
};

#define FIRST UP_TO(struct first, a)

static struct known defaults(void)
{
	return (struct known){ .size = sizeof(struct known), .a = 1, .b = 2, .c = 3 };
}

static void options_of_an_older_program_leave_the_rest_as_it_is(void **state)
{
	struct first given = { .size = FIRST, .a = 7 };
	struct known o = defaults();
	struct gpreempt_error e;

	assert_int_equal(in_struct(&e, &o, &given, FIRST), 0);
	assert_int_equal(o.size, sizeof(o));
	assert_int_equal(o.a, 7);
	assert_int_equal(o.b, 2);
	assert_int_equal(o.c, 3);
	o = defaults();
	assert_int_equal(in_struct(&e, &o, NULL, FIRST), 0);
	assert_int_equal(o.a, 1);
}

static void options_of_a_later_program_count_unless_they_ask_for_more(void **state)
{
	struct later given = { .size = sizeof(given), .a = 7, .b = 8, .c = 9 };
	struct known o = defaults();
	struct gpreempt_error e;

	assert_int_equal(in_struct(&e, &o, &given, FIRST), 0);
	assert_int_equal(o.size, sizeof(o));
	assert_int_equal(o.c, 9);
	o = defaults();
	given.d = 1ull << 63;
	assert_int_equal(in_struct(&e, &o, &given, FIRST), -EINVAL);
	assert_int_equal(e.kind, GPREEMPT_ERROR_USAGE);
	assert_non_null(strstr(e.message, "fields set"));
	assert_non_null(strstr(e.hint, "later libgpreempt"));
	assert_int_equal(o.c, 3); /* untouched */
}

static void sizes_that_cannot_be_are_refused(void **state)
{
	const size_t sizes[] = { 0, 1, sizeof(size_t), FIRST - 1, 4097, SIZE_MAX };
	struct known o = defaults(), given = defaults();
	struct gpreempt_error e;
	struct out_array out;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		given.size = sizes[i];
		assert_int_equal(in_struct(&e, &o, &given, FIRST), -EINVAL);
		assert_non_null(strstr(e.message, "a size it cannot have"));
		assert_int_equal(out_check(&e, &given, FIRST), -EINVAL);
		assert_int_equal(out_array_init(&e, &out, &given, 1, FIRST), -EINVAL);
	}
	given.size = sizeof(given) + 1; /* would leave the next entry unaligned */
	assert_int_equal(out_array_init(&e, &out, &given, 1, FIRST), -EINVAL);
	assert_int_equal(out_array_init(&e, &out, NULL, 0, FIRST), 0);
	assert_int_equal(out_check(&e, NULL, FIRST), 0);
}

static void results_fill_what_the_program_knows_and_no_more(void **state)
{
	struct known entry = defaults();
	struct first old[3] = { { .size = sizeof(old[0]) }, { .a = 0x5a }, { .a = 0x5a } };
	struct later late = { .size = sizeof(late), .d = 0x5a };
	struct gpreempt_error e;
	struct out_array out;

	assert_int_equal(out_array_init(&e, &out, old, 2, FIRST), 0);
	for (int i = 0; i < 3; i++)
		out_array_add(&out, &entry);
	assert_int_equal(out.n, 3);
	assert_int_equal(old[1].size, sizeof(old[1]));
	assert_int_equal(old[1].a, 1);
	assert_int_equal(old[2].a, 0x5a);
	assert_int_equal(out_check(&e, &late, FIRST), 0);
	out_struct(&late, &entry);
	assert_int_equal(late.size, sizeof(late));
	assert_int_equal(late.c, 3);
	assert_int_equal(late.d, 0);
}

/* ---- every call that takes one ---- */

static void refused(struct gpreempt_ctx *ctx, int r)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	assert_int_equal(r, -EINVAL);
	assert_int_equal(e.error, -EINVAL);
	assert_int_equal(e.kind, GPREEMPT_ERROR_USAGE);
	assert_non_null(strstr(e.hint, ".size"));
	ctx_clear_error(ctx);
}

static void a_hold_whose_end_would_be_lost_is_not_begun(void **state)
{
	struct gpreempt_suspend_options later[2] = { { .longest_ns = NSEC_PER_MSEC } };
	struct gpreempt_timing timing = { 0 };
	struct gpreempt_process *p = NULL;
	struct gpreempt_ctx *ctx = *state;

	assert_int_equal(gpreempt_attach(ctx, TRAIN, 0, &p), 0);
	for (later[0].size = 0; later[0].size < UP_TO(struct gpreempt_suspend_options, want_saved);
	     later[0].size++) {
		refused(ctx, gpreempt_suspend_queues(p, NULL, 0, later, NULL));
		refused(ctx, gpreempt_batch_unmap_queues(&p, 1, later));
	}
	later[0].size = sizeof(later);
	later[1].grace_kclk = 1;
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, later, NULL), -EINVAL);
	later[0].size = sizeof(later[0]);
	refused(ctx, gpreempt_suspend_queues(p, NULL, 0, later, &timing));
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	gpreempt_detach(p);
}

static void a_resumption_is_made_whatever_it_was_asked_to_tell(void **state)
{
	struct gpreempt_timing timing = { 0 };
	struct gpreempt_process *p = NULL;
	struct gpreempt_ctx *ctx = *state;

	assert_int_equal(gpreempt_attach(ctx, TRAIN, 0, &p), 0);
	assert_int_equal(gpreempt_suspend_queues(p, NULL, 0, NULL, NULL), 0);
	refused(ctx, gpreempt_resume_queues(p, &timing));
	assert_int_equal(gpreempt_held_queues(p, NULL, 0), 0);
	gpreempt_detach(p);
	refused(ctx, gpreempt_resume_own(ctx, &timing));
}

static void options_without_a_size_are_refused(void **state)
{
	const struct gpreempt_queue_filter filter = { .job_class = GPREEMPT_CLASS_ONLINE };
	const struct gpreempt_own_queue own = { .queue_id = 1 };
	const struct gpreempt_suspend_options suspend = { 0 };
	const struct gpreempt_kernel_options kernel = { .turn_ms = 5 };
	const struct gpreempt_class_request class = { .job_class = GPREEMPT_CLASS_OFFLINE };
	const struct gpreempt_model_work work = { .workgroups = 1 };
	struct gpreempt_ctx *ctx = *state;

	refused(ctx, gpreempt_get_all_queues(ctx, &filter, NULL, 0));
	refused(ctx, gpreempt_suspend_own(ctx, &own, 1, NULL, NULL));
	refused(ctx, gpreempt_suspend_own(ctx, NULL, 0, &suspend, NULL));
	refused(ctx, gpreempt_kernel_on(ctx, GPREEMPT_ALL_GPUS, &kernel));
	refused(ctx, gpreempt_kernel_set_class(ctx, TRAIN, &class));
	refused(ctx, gpreempt_model_submit(ctx, TRAIN, 0, &work, NULL));
}

static void results_without_a_size_are_refused(void **state)
{
	union {
		size_t size;
		struct gpreempt_gpu gpu;
		struct gpreempt_level level;
		struct gpreempt_hqd_status hqd;
		struct gpreempt_process_info process;
		struct gpreempt_queue queue;
		struct gpreempt_kernel_gpu kernel;
		struct gpreempt_model_packet packet;
		struct gpreempt_device_info device;
		struct gpreempt_model_queue model_queue;
		struct gpreempt_model_gpu model_gpu;
		struct gpreempt_stats stats;
		struct gpreempt_timing timing;
	} u = { .size = sizeof(size_t) };
	struct gpreempt_process *p = NULL;
	struct gpreempt_monitor *mon = NULL;
	struct gpreempt_ctx *ctx = *state;

	refused(ctx, gpreempt_get_device_info(ctx, &u.device));
	refused(ctx, gpreempt_get_gpus(ctx, &u.gpu, 1));
	refused(ctx, gpreempt_get_levels(ctx, &u.level, 1));
	refused(ctx, gpreempt_get_hqd_status(ctx, &u.hqd, 1));
	refused(ctx, gpreempt_list_processes(ctx, &u.process, 1));
	refused(ctx, gpreempt_get_all_queues(ctx, NULL, &u.queue, 1));
	refused(ctx, gpreempt_find_idle_offline_queues(ctx, &u.queue, 1));
	refused(ctx, gpreempt_kernel_get_gpus(ctx, &u.kernel, 1));
	refused(ctx, gpreempt_model_get_packets(ctx, TRAIN, 0, 0, &u.packet, 1));
	refused(ctx, gpreempt_model_get_queue(ctx, TRAIN, 0, &u.model_queue));
	refused(ctx, gpreempt_model_get_gpu(ctx, 0, &u.model_gpu));
	refused(ctx, gpreempt_suspend_own(ctx, NULL, 0, NULL, &u.timing));
	assert_int_equal(gpreempt_attach(ctx, TRAIN, 0, &p), 0);
	refused(ctx, gpreempt_snapshot(p, &u.queue, 1, NULL));
	assert_int_equal(gpreempt_monitor_new(p, &mon), 0);
	assert_true(gpreempt_monitor_sample(mon, NULL, NULL) > 0);
	refused(ctx, gpreempt_monitor_stats(mon, &u.stats));
	gpreempt_monitor_free(mon);
	gpreempt_detach(p);
}

static void an_error_without_a_size_is_not_filled(void **state)
{
	struct gpreempt_error e = { .size = UP_TO(struct gpreempt_error, hint) - 1 };
	struct gpreempt_ctx *ctx = *state;

	refused(ctx, gpreempt_get_gpus(ctx, &(struct gpreempt_gpu){ .size = 0 }, 1));
	ctx_fail(ctx, -EIO, GPREEMPT_ERROR_FAILED, "hint", "message");
	gpreempt_get_error(ctx, &e);
	assert_int_equal(e.error, 0);
	e.size++;
	gpreempt_get_error(ctx, &e);
	assert_int_equal(e.error, -EIO);
}

static void nothing_is_asked_of_the_daemon_without_a_size(void **state)
{
	struct gpreempt_daemon d = { .last = { .size = sizeof(d.last) }, .timeout_ns = 1 };
	const struct gpreempt_class_request class = { .job_class = GPREEMPT_CLASS_OFFLINE };
	struct gpreempt_daemon_status status = { 0 };
	struct gpreempt_daemon_gpu gpu = { 0 };
	struct gpreempt_daemon_job job = { 0 };
	struct gpreempt_policy policy = { 0 };
	struct gpreempt_event event = { 0 };
	int fds[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	d.fd = fds[0];
	assert_int_equal(gpreempt_daemon_get_status(&d, &status), -EINVAL);
	assert_int_equal(gpreempt_daemon_get_gpus(&d, &gpu, 1), -EINVAL);
	assert_int_equal(gpreempt_daemon_get_jobs(&d, &job, 1), -EINVAL);
	assert_int_equal(gpreempt_daemon_get_policy(&d, &policy), -EINVAL);
	assert_int_equal(gpreempt_daemon_set_class(&d, "7", &class), -EINVAL);
	assert_non_null(strstr(d.last.hint, ".size"));
	d.subscribed = true;
	assert_int_equal(gpreempt_daemon_next_event(&d, &event), -EINVAL);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1);
	close(fds[0]);
	close(fds[1]);
}

#define MODEL_TEST(f) cmocka_unit_test_setup_teardown(f, open_model, close_model)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_an_older_program_leave_the_rest_as_it_is),
		cmocka_unit_test(options_of_a_later_program_count_unless_they_ask_for_more),
		cmocka_unit_test(sizes_that_cannot_be_are_refused),
		cmocka_unit_test(results_fill_what_the_program_knows_and_no_more),
		MODEL_TEST(a_hold_whose_end_would_be_lost_is_not_begun),
		MODEL_TEST(a_resumption_is_made_whatever_it_was_asked_to_tell),
		MODEL_TEST(options_without_a_size_are_refused),
		MODEL_TEST(results_without_a_size_are_refused),
		MODEL_TEST(an_error_without_a_size_is_not_filled),
		cmocka_unit_test(nothing_is_asked_of_the_daemon_without_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
