/* SPDX-License-Identifier: MIT */
/* The driver's own scheduler as the daemon's backend has it, on a model that plays its calls. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/kfd/backend.h"
#include "gpu/kfd/ext.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/scheduler.h"
#include "gpu/model/model.h"
#include "gpu/model/model.h"
#include "util/macros.h"

#define TRAIN 1001
#define INFER 1002

struct rig {
	struct gkfd *k; /* the backend's */
	struct gpu_backend *b;
	const struct gpu_native_ops *native;
};

static struct kfd_gpreempt_monitor asked; /* the last */

static int noting_ext(void *data, unsigned long request, void *arg)
{
	if (request == KFD_GPREEMPT_SET_MONITOR)
		asked = *(const struct kfd_gpreempt_monitor *)arg;
	return gkfd_transport_model.ext(data, request, arg);
}

static int setup(void **state)
{
	static struct gkfd_transport table;
	struct rig *r = calloc(1, sizeof(*r));
	struct model *m = NULL;
	char *why = NULL;

	assert_non_null(r);
	assert_int_equal(model_new_preset("mi308x,gpus=2,ext=1", &m, &why), 0);
	table = gkfd_transport_model;
	table.ext = noting_ext;
	assert_int_equal(gkfd_new(&table, model_transport_new(m), &r->k), 0);
	assert_int_equal(
		gkfd_backend_open(
			r->k, &(struct gkfd_backend_options){ .ext = GKFD_EXT_IF_PRESENT }, &r->b),
		0);
	r->native = r->b->ops->native;
	assert_non_null(r->native);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	r->b->ops->close(r->b);
	free(r);
	return 0;
}

static struct gkfd_scheduled first(struct rig *r)
{
	struct gkfd_schedulers all;
	struct gkfd_scheduled g;

	assert_int_equal(gkfd_schedulers_read(r->k, &all), 0);
	g = all.gpus[0];
	gkfd_schedulers_done(&all);
	return g;
}

static struct gpu_native_config config(void)
{
	return (struct gpu_native_config){
		.policy = "share",
		.interval_ns = 2 * NSEC_PER_MSEC,
		.critical_interval_ns = NSEC_PER_MSEC,
		.turn_ns = 20 * NSEC_PER_MSEC,
		.hold_max_ns = 2 * NSEC_PER_SEC,
		.online_permille = 100,
		.offline_permille = 800,
	};
}

static void no_limit_is_not_the_drivers_own(void **state)
{
	struct gpu_native_config c = config();
	struct rig *r = *state;

	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	assert_int_equal(asked.cycles_per_s, UINT32_MAX);
	c.cycles_per_s = 500;
	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	assert_int_equal(asked.cycles_per_s, 500);
}

static uint64_t start_of(struct rig *r, pid_t pid)
{
	struct gkfd_proc_ident ident;

	assert_int_equal(gkfd_proc_identify(r->k, pid, &ident), 0);
	return ident.start_ticks;
}

static void a_model_only_plays_it(void **state)
{
	struct rig *r = *state;

	assert_false(r->b->caps.schedules);
}

static void it_is_turned_on_with_settings_and_off(void **state)
{
	struct gpu_native_config c = config();
	struct rig *r = *state;
	struct gkfd_scheduled g;

	assert_int_equal(r->native->is_on(r->b), 0);
	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	assert_int_equal(r->native->is_on(r->b), 1);
	g = first(r);
	assert_string_equal(g.policy, "share");
	assert_int_equal(g.interval_us, 2000);
	assert_int_equal(g.critical_interval_us, 1000);
	assert_int_equal(g.turn_ms, 20);
	assert_int_equal(g.hold_max_ms, 2000);
	assert_int_equal(g.online_permille, 0); /* nothing was to be kept */
	c.reserve = true;
	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	g = first(r);
	assert_int_equal(g.online_permille, 100);
	assert_int_equal(g.offline_permille, 800);
	assert_int_equal(r->native->turn_off(r->b), 0);
	assert_int_equal(r->native->is_on(r->b), 0);
}

static void off_on_one_gpu_is_not_on(void **state)
{
	struct gpu_native_config c = config();
	struct kfd_gpreempt_monitor off = { 0 };
	struct rig *r = *state;

	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	off.gpu_id = first(r).gpu_id;
	assert_int_equal(gkfd_ext_call(r->k, KFD_GPREEMPT_SET_MONITOR, &off), 0);
	assert_int_equal(r->native->is_on(r->b), 0);
}

static void a_policy_it_does_not_know_is_refused(void **state)
{
	struct gpu_native_config c = config();
	struct rig *r = *state;

	c.policy = "nobody";
	assert_int_equal(r->native->turn_on(r->b, &c), -EINVAL);
	assert_int_equal(r->native->is_on(r->b), 0);
}

static void jobs_and_hints_reach_it(void **state)
{
	struct gpu_native_job online = { .job_class = JOB_ONLINE, .critical = true };
	struct gpu_native_job offline = { .job_class = JOB_OFFLINE, .lazy = true };
	struct gpu_native_config c = config();
	struct rig *r = *state;
	uint64_t start = start_of(r, INFER);

	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	assert_int_equal(r->native->hint(r->b, INFER, start, 0, 0), -EPERM);
	assert_int_equal(r->native->set_job(r->b, INFER, start, &online), 0);
	assert_int_equal(r->native->set_job(r->b, TRAIN, start_of(r, TRAIN), &offline), 0);
	assert_int_equal(first(r).online, 1);
	assert_int_equal(first(r).offline, 1);
	assert_int_equal(r->native->hint(r->b, INFER, start, NSEC_PER_MSEC, 0), 0);
	assert_int_equal(r->native->set_job(r->b, INFER, start + 1, &online), -ESRCH);
	assert_int_equal(r->native->set_job(r->b, 4711, 0, &online), -ESRCH);
	offline.job_class = JOB_UNMANAGED;
	assert_int_equal(r->native->set_job(r->b, TRAIN, start_of(r, TRAIN), &offline), 0);
	assert_int_equal(first(r).offline, 0);
}

static void one_that_is_off_is_not_rearmed(void **state)
{
	struct gpu_native_config c = config();
	struct rig *r = *state;

	assert_int_equal(r->native->rearm(r->b, first(r).gpu_id), -ENOENT);
	assert_int_equal(r->native->turn_on(r->b, &c), 0);
	assert_int_equal(r->native->rearm(r->b, first(r).gpu_id), 0);
	assert_int_equal(r->native->rearm(r->b, 77), -ENODEV);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_model_only_plays_it),	TEST(it_is_turned_on_with_settings_and_off),
		TEST(a_model_only_plays_it),	TEST(no_limit_is_not_the_drivers_own),
		TEST(off_on_one_gpu_is_not_on), TEST(a_policy_it_does_not_know_is_refused),
		TEST(jobs_and_hints_reach_it),	TEST(one_that_is_off_is_not_rearmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
