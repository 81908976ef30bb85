/* SPDX-License-Identifier: MIT */
/* The scheduler inside the driver, through the library: a model whose calls can be made to fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpreempt/kernel.h"
#include "gpu/kfd/scheduler.h"
#include "gpu/kfd/driver.h"
#include "gpu/model/model.h"
#include "lib/internal.h"

#define TRAIN 1001
#define INFER 1002
#define GPU 11547u
#define SECOND_GPU 18256u

static struct {
	unsigned long request; /* that fails */
	int error;
	unsigned int after; /* so many that do not */
} fault;

struct rig {
	struct gpreempt_ctx *ctx;
	struct gkfd_transport table;
};

static int ext(void *data, unsigned long request, void *arg)
{
	if (fault.error && request == fault.request && fault.after-- == 0)
		return fault.error;
	return gkfd_transport_model.ext(data, request, arg);
}

static void *open_with(const char *spec)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct model *m = NULL;
	struct gkfd *k = NULL;
	char *why = NULL;

	assert_non_null(r);
	fault.error = 0;
	r->table = gkfd_transport_model;
	r->table.ext = ext;
	assert_int_equal(model_new_preset(spec, &m, &why), 0);
	r->ctx = ctx_new();
	assert_non_null(r->ctx);
	assert_int_equal(gkfd_new(&r->table, model_transport_new(m), &k), 0);
	assert_int_equal(ctx_take(r->ctx, &gkfd_driver, k), 0);
	return r;
}

static int setup(void **state)
{
	*state = open_with("mi308x,gpus=2,ext=1");
	return 0;
}

static int setup_stock(void **state)
{
	*state = open_with("mi308x,gpus=2");
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	gpreempt_unref(r->ctx);
	free(r);
	return 0;
}

static void fail_call(unsigned long request, int error, unsigned int after)
{
	fault.request = request;
	fault.error = error;
	fault.after = after;
}

static bool is_on(struct rig *r, uint32_t gpu_id)
{
	struct gpreempt_kernel_gpu gpus[2] = { { .size = sizeof(gpus[0]) } };

	assert_int_equal(gpreempt_kernel_get_gpus(r->ctx, gpus, 2), 2);
	assert_int_equal(gpus[0].gpu_id, GPU);
	assert_int_equal(gpus[1].gpu_id, SECOND_GPU);
	return gpus[gpu_id == SECOND_GPU].on;
}

static void refused(struct rig *r, int result, int error, enum gpreempt_error_kind kind)
{
	assert_int_equal(result, error);
	assert_int_equal(r->ctx->last.kind, kind);
	assert_true(r->ctx->last.message[0]);
}

static void options_reach_the_driver(void **state)
{
	const struct gpreempt_kernel_options o = {
		.size = sizeof(o),
		.policy = "share",
		.interval_us = 2000,
		.critical_interval_us = 500,
		.turn_ms = 20,
		.hold_max_ms = 400,
		.reserve = true,
		.online_percent = 10,
		.offline_percent = 80,
	};
	struct gpreempt_kernel_gpu g = { .size = sizeof(g) };
	struct rig *r = *state;

	assert_int_equal(gpreempt_kernel_is_on(r->ctx), 0);
	assert_int_equal(gpreempt_kernel_on(r->ctx, GPU, &o), 0);
	assert_int_equal(gpreempt_kernel_is_on(r->ctx), 1);
	assert_int_equal(gpreempt_kernel_get_gpus(r->ctx, &g, 1), 2);
	assert_true(g.on);
	assert_string_equal(g.policy, "share");
	assert_int_equal(g.interval_us, 2000);
	assert_int_equal(g.critical_interval_us, 500);
	assert_int_equal(g.turn_ms, 20);
	assert_int_equal(g.hold_max_ms, 400);
	assert_int_equal(g.online_permille, 100);
	assert_int_equal(g.offline_permille, 800);
	assert_false(is_on(r, SECOND_GPU));
	assert_int_equal(gpreempt_kernel_off(r->ctx, GPREEMPT_ALL_GPUS), 0);
	assert_int_equal(gpreempt_kernel_is_on(r->ctx), 0);
}

static void what_is_kept_is_among_the_slots(void **state)
{
	struct gpreempt_hqd_status gpu = { .size = sizeof(gpu) };
	struct rig *r = *state;

	assert_int_equal(gpreempt_get_hqd_status(r->ctx, &gpu, 1), 2);
	assert_true(gpu.valid & GPREEMPT_HQD_RESERVED);
	assert_int_equal(gpu.online_reserved, 0);
	assert_int_equal(gpreempt_kernel_on(r->ctx, GPREEMPT_ALL_GPUS, NULL), 0);
	assert_int_equal(gpreempt_set_hqd_reservation(r->ctx, GPREEMPT_ALL_GPUS, 25, 50), 0);
	assert_int_equal(gpreempt_get_hqd_status(r->ctx, &gpu, 1), 2);
	assert_true(gpu.valid & GPREEMPT_HQD_RESERVED);
	assert_int_equal(gpu.online_reserved, gpu.total / 4);
}

static void a_reservation_that_fails_turns_nothing_on(void **state)
{
	const struct gpreempt_kernel_options o = {
		.size = sizeof(o),
		.reserve = true,
		.online_percent = 10,
		.offline_percent = 80,
	};
	struct rig *r = *state;

	fail_call(KFD_GPREEMPT_SET_HQD_RESERVATION, -ENOENT, 0);
	refused(r, gpreempt_kernel_on(r->ctx, GPREEMPT_ALL_GPUS, &o), -ENOENT,
		GPREEMPT_ERROR_REFUSED);
	assert_int_equal(gpreempt_kernel_is_on(r->ctx), 0);
}

static void what_was_on_before_stays_on_and_that_is_said(void **state)
{
	const struct gpreempt_kernel_options o = {
		.size = sizeof(o),
		.reserve = true,
		.online_percent = 10,
		.offline_percent = 80,
	};
	struct rig *r = *state;

	assert_int_equal(gpreempt_kernel_on(r->ctx, GPU, NULL), 0);
	fail_call(KFD_GPREEMPT_SET_HQD_RESERVATION, -ENOENT, 0);
	assert_int_equal(gpreempt_kernel_on(r->ctx, GPU, &o), -ENOENT);
	assert_non_null(strstr(r->ctx->last.hint, "stays on"));
	assert_true(is_on(r, GPU));
}

static void a_failure_on_the_way_is_undone(void **state)
{
	struct rig *r = *state;

	fail_call(KFD_GPREEMPT_SET_MONITOR, -ENOMEM, 0);
	assert_int_equal(gpreempt_kernel_on(r->ctx, GPREEMPT_ALL_GPUS, NULL), -ENOMEM);
	assert_null(strstr(r->ctx->last.hint, "stays on"));
	fail_call(KFD_GPREEMPT_SET_MONITOR, -ENOMEM, 0);
	assert_int_equal(gpreempt_kernel_on(r->ctx, GPU, NULL), -ENOMEM);
	assert_int_equal(gpreempt_kernel_is_on(r->ctx), 0);
}

static void nonsense_is_said(void **state)
{
	struct gpreempt_kernel_options o = { .size = sizeof(o), .policy = "nobody" };
	struct rig *r = *state;

	refused(r, gpreempt_kernel_on(r->ctx, GPU, &o), -EINVAL, GPREEMPT_ERROR_USAGE);
	assert_non_null(strstr(r->ctx->last.message, "nobody"));
	o.policy = "a-name-that-no-policy-could-have";
	refused(r, gpreempt_kernel_on(r->ctx, GPU, &o), -EINVAL, GPREEMPT_ERROR_USAGE);
	o = (struct gpreempt_kernel_options){ .size = sizeof(o), .interval_us = 1 };
	refused(r, gpreempt_kernel_on(r->ctx, GPU, &o), -EINVAL, GPREEMPT_ERROR_USAGE);
	o = (struct gpreempt_kernel_options){ .size = sizeof(o), .hold_max_ms = 60001 };
	refused(r, gpreempt_kernel_on(r->ctx, GPU, &o), -EINVAL, GPREEMPT_ERROR_USAGE);
	refused(r, gpreempt_kernel_on(r->ctx, 1, NULL), -ENODEV, GPREEMPT_ERROR_ABSENT);
	refused(r, gpreempt_kernel_off(r->ctx, 1), -ENODEV, GPREEMPT_ERROR_ABSENT);
	refused(r, gpreempt_kernel_rearm(r->ctx, GPU), -ENOENT, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_set_hqd_reservation(r->ctx, GPU, 10, 80), -ENOENT,
		GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_set_hqd_reservation(r->ctx, GPU, 60, 50), -EINVAL,
		GPREEMPT_ERROR_USAGE);
}

static void who_may_not_is_told_so(void **state)
{
	struct gpreempt_class_request online = {
		.size = sizeof(online),
		.job_class = GPREEMPT_CLASS_ONLINE,
		.priority = -1,
	};
	struct rig *r = *state;

	fail_call(KFD_GPREEMPT_SET_MONITOR, -EPERM, 0);
	refused(r, gpreempt_kernel_on(r->ctx, GPU, NULL), -EPERM, GPREEMPT_ERROR_REFUSED);
	assert_non_null(strstr(r->ctx->last.hint, "CAP_SYS_ADMIN"));
	fail_call(KFD_GPREEMPT_SET_CLASS, -EPERM, 0);
	refused(r, gpreempt_kernel_set_class(r->ctx, TRAIN, &online), -EPERM,
		GPREEMPT_ERROR_REFUSED);
	fail_call(KFD_GPREEMPT_SET_MONITOR, -ENOTTY, 0);
	refused(r, gpreempt_kernel_on(r->ctx, GPU, NULL), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
}

static void processes_are_classed_and_announced(void **state)
{
	struct gpreempt_class_request q = {
		.size = sizeof(q),
		.job_class = GPREEMPT_CLASS_ONLINE,
		.priority = 7,
		.critical = true,
		.target_us = 100,
	};
	struct gpreempt_kernel_gpu g = { .size = sizeof(g) };
	struct rig *r = *state;

	assert_int_equal(gpreempt_kernel_on(r->ctx, GPREEMPT_ALL_GPUS, NULL), 0);
	refused(r, gpreempt_kernel_hint(r->ctx, INFER, 0, 0), -EPERM, GPREEMPT_ERROR_REFUSED);
	assert_int_equal(gpreempt_kernel_set_class(r->ctx, INFER, &q), 0);
	assert_int_equal(gpreempt_kernel_hint(r->ctx, INFER, NSEC_PER_MSEC, 0), 0);
	assert_int_equal(gpreempt_hint(r->ctx, INFER), 0);
	q = (struct gpreempt_class_request){ .size = sizeof(q),
					     .job_class = GPREEMPT_CLASS_OFFLINE };
	assert_int_equal(gpreempt_kernel_set_class(r->ctx, TRAIN, &q), 0);
	assert_int_equal(gpreempt_kernel_get_gpus(r->ctx, &g, 1), 2);
	assert_int_equal(g.online, 1);
	assert_int_equal(g.offline, 1);
	refused(r, gpreempt_kernel_set_class(r->ctx, 999, &q), -ESRCH, GPREEMPT_ERROR_ABSENT);
	q.priority = 256;
	refused(r, gpreempt_kernel_set_class(r->ctx, TRAIN, &q), -EINVAL, GPREEMPT_ERROR_USAGE);
	refused(r, gpreempt_kernel_hint(r->ctx, INFER, 2 * NSEC_PER_SEC, 0), -EINVAL,
		GPREEMPT_ERROR_USAGE);
}

static void a_queue_policy_is_of_a_whole_process(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		gpreempt_set_queue_policy(r->ctx, TRAIN, GPREEMPT_ALL_QUEUES,
					  GPREEMPT_POLICY_LAZY | GPREEMPT_POLICY_PREEMPTIBLE),
		0);
	refused(r, gpreempt_set_queue_policy(r->ctx, TRAIN, 1, 0), -EOPNOTSUPP,
		GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_set_queue_policy(r->ctx, TRAIN, GPREEMPT_ALL_QUEUES, 0x80), -EINVAL,
		GPREEMPT_ERROR_USAGE);
}

static void without_the_extension_nothing_of_it_works(void **state)
{
	struct gpreempt_class_request q = { .size = sizeof(q) };
	struct rig *r = *state;

	refused(r, gpreempt_kernel_on(r->ctx, GPU, NULL), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_off(r->ctx, GPU), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_rearm(r->ctx, GPU), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_is_on(r->ctx), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_get_gpus(r->ctx, NULL, 0), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_set_class(r->ctx, TRAIN, &q), -EOPNOTSUPP,
		GPREEMPT_ERROR_REFUSED);
	refused(r, gpreempt_kernel_hint(r->ctx, TRAIN, 0, 0), -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED);
}

#define EXT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXT_TEST(options_reach_the_driver),
		EXT_TEST(what_is_kept_is_among_the_slots),
		EXT_TEST(a_reservation_that_fails_turns_nothing_on),
		EXT_TEST(what_was_on_before_stays_on_and_that_is_said),
		EXT_TEST(a_failure_on_the_way_is_undone),
		EXT_TEST(nonsense_is_said),
		EXT_TEST(who_may_not_is_told_so),
		EXT_TEST(processes_are_classed_and_announced),
		EXT_TEST(a_queue_policy_is_of_a_whole_process),
		cmocka_unit_test_setup_teardown(without_the_extension_nothing_of_it_works,
						setup_stock, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
