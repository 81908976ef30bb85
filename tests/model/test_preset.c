/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

#define TRAIN 1001
#define INFER 1002
#define IDLE 1003

static struct model *preset(const char *spec)
{
	_cleanup_free_ char *why = NULL;
	struct model *m = NULL;

	if (model_new_preset(spec, &m, &why) < 0)
		fail_msg("%s: %s", spec, why ? why : "?");
	return m;
}

/* Suspends all of the training job once; what its save took. */
static uint64_t save_ns(const char *spec)
{
	struct rig r = { .m = preset(spec), .pipe = { -1, 1 } };
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	uint32_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct model_gpu_stats before, after;

	assert_int_equal(model_kfd_open(r.m, self), 0);
	assert_int_equal(model_ptrace_seize(r.m, self, TRAIN), 0);
	assert_int_equal(rig_enable(&r, self, TRAIN, 0, NULL), 0);
	assert_int_equal(rig_snapshot(&r, self, TRAIN, NEW_MASK, NULL), 10);
	model_advance(r.m, 5 * NSEC_PER_MSEC); /* all are back, over whatever link */
	model_gpu_stats(r.m, 0, &before);
	assert_int_equal(rig_suspend(&r, self, TRAIN, ids, 10, 1), 10);
	model_gpu_stats(r.m, 0, &after);
	assert_int_equal(after.cycles - before.cycles, 1);
	model_free(r.m);
	return after.save_ns - before.save_ns;
}

static void the_training_job_fills_every_compute_unit(void **state)
{
	struct rig r = { .m = preset(NULL) };
	_cleanup_free_ char *text = NULL;
	struct model_gpu_stats stats;
	struct model_queue_stats q;

	(void)state;
	text = rig_file(&r, GKFD_TREE_SYSFS, "proc/1001/stats_11547/cu_occupancy");
	assert_string_equal(text, "80\n");
	for (uint32_t id = 0; id < 10; id++) {
		assert_int_equal(model_queue_stats(r.m, TRAIN, id, &q), 0);
		assert_true(q.resident > 0);
		assert_true(q.completed > 0);
	}
	assert_int_equal(model_queue_stats(r.m, TRAIN, 10, &q), -ENOENT);
	model_gpu_stats(r.m, 0, &stats);
	assert_int_equal(stats.active_queues, 12);
	assert_int_equal(model_gpu_id(r.m, 7) != 0, 1);
	model_free(r.m);
}

static void the_inference_job_is_idle_with_a_past_and_the_third_has_no_queue(void **state)
{
	struct rig r = { .m = preset("mi308x,gpus=1") };
	_cleanup_free_ char *text = NULL;
	struct model_queue_stats q;

	(void)state;
	for (uint32_t id = 0; id < 2; id++) {
		assert_int_equal(model_queue_stats(r.m, INFER, id, &q), 0);
		assert_int_equal(q.completed, 8);
		assert_int_equal(q.resident, 0);
	}
	text = rig_file(&r, GKFD_TREE_SYSFS, "proc/1003/pasid");
	assert_non_null(text);
	assert_int_equal(model_queue_stats(r.m, IDLE, 0, &q), -ENOENT);
	model_free(r.m);
}

static void half_the_occupancy_takes_half_the_save(void **state)
{
	double ratio = (double)save_ns("mi308x,occupancy=50") / (double)save_ns("mi308x");

	(void)state;
	assert_true(ratio > 0.4 && ratio < 0.6);
}

static void an_mi300x_saves_3_8_times_what_an_mi308x_does(void **state)
{
	double ratio = (double)save_ns("mi300x") / (double)save_ns("mi308x");

	(void)state;
	/* Same bandwidth, 304 compute units to 80. */
	assert_true(ratio > 3.8 * 0.9 && ratio < 3.8 * 1.1);
}

static void a_save_area_in_host_memory_is_slower_by_the_ratio_of_the_bandwidths(void **state)
{
	double mi308x = (double)save_ns("mi308x,save_area=host") / (double)save_ns("mi308x");
	double mi100 = (double)save_ns("mi100,save_area=host") / (double)save_ns("mi100");

	(void)state;
	assert_true(mi308x > 5300.0 / 64 * 0.9 && mi308x < 5300.0 / 64 * 1.1);
	assert_true(mi100 > 1230.0 / 32 * 0.9 && mi100 < 1230.0 / 32 * 1.1);
	assert_int_equal(save_ns("mi308x,save_area=hbm"), save_ns("mi308x"));
}

/* How long a suspension takes when nobody has work. */
static uint64_t cycle_ns(const char *spec)
{
	struct rig r = { .m = preset(spec), .pipe = { -1, 1 } };
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	uint32_t id = 0;
	uint64_t before;

	model_kfd_open(r.m, self);
	model_ptrace_seize(r.m, self, INFER);
	rig_enable(&r, self, INFER, 0, NULL);
	rig_snapshot(&r, self, INFER, NEW_MASK, NULL);
	model_advance(r.m, NSEC_PER_MSEC);
	before = model_now_ns(r.m);
	assert_int_equal(rig_suspend(&r, self, INFER, &id, 1, 1), 1);
	before = model_now_ns(r.m) - before;
	model_free(r.m);
	return before;
}

static void options_change_what_a_runlist_cycle_costs(void **state)
{
	uint64_t usual = cycle_ns("mi308x,gpus=1,occupancy=0");

	(void)state;
	assert_int_equal(cycle_ns("mi308x,gpus=1,occupancy=0,unmap_us=500"),
			 usual + 485 * NSEC_PER_USEC);
	assert_int_equal(cycle_ns("mi308x,gpus=1,occupancy=0,unmap_us=0"),
			 usual - 15 * NSEC_PER_USEC);
	/* The driver does not wait for the map. */
	assert_int_equal(cycle_ns("mi308x,gpus=1,occupancy=0,map_us=500"), usual);
}

/* A save must find the work at whatever moment it comes. */
static void every_save_of_many_finds_the_compute_units_full(void **state)
{
	struct rig r = { .m = preset("mi308x,gpus=1"), .pipe = { -1, 1 } };
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	uint32_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct model_gpu_stats before, after;

	(void)state;
	model_kfd_open(r.m, self);
	model_ptrace_seize(r.m, self, TRAIN);
	rig_enable(&r, self, TRAIN, 0, NULL);
	rig_snapshot(&r, self, TRAIN, NEW_MASK, NULL);
	for (int i = 0; i < 100; i++) {
		model_advance(r.m, NSEC_PER_MSEC + (uint64_t)i * 7777);
		model_gpu_stats(r.m, 0, &before);
		assert_int_equal(rig_suspend(&r, self, TRAIN, ids, 10, 1), 10);
		model_gpu_stats(r.m, 0, &after);
		assert_in_range(after.saved_bytes - before.saved_bytes, 80 * 610304 * 85ull / 100,
				80 * 610304);
		assert_int_equal(rig_resume(&r, self, TRAIN, ids, 10), 10);
	}
	model_free(r.m);
}

static void an_old_runtime_cannot_be_suspended(void **state)
{
	struct rig r = { .m = preset("mi308x,runtime=old"), .pipe = { -1, 1 } };
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	struct kfd_runtime_info rinfo;
	uint32_t id = 0;

	(void)state;
	model_kfd_open(r.m, self);
	model_ptrace_seize(r.m, self, TRAIN);
	assert_int_equal(rig_enable(&r, self, TRAIN, 0, &rinfo), 0);
	assert_int_equal(rinfo.runtime_state, DEBUG_RUNTIME_STATE_DISABLED);
	assert_int_equal(rig_suspend(&r, self, TRAIN, &id, 1, 1), -EPERM);
	model_free(r.m);
}

static void options_choose_gpus_and_version(void **state)
{
	struct model_task self = { MODEL_SELF_PID, MODEL_SELF_PID };
	struct kfd_ioctl_get_version_args version = { 0 };
	struct model *m =
		preset("mi300x,gpus=3,kfd_minor=11,seed=18446744073709551615,occupancy=0");

	(void)state;
	model_kfd_open(m, self);
	assert_int_equal(model_ioctl(m, self, self.pid, AMDKFD_IOC_GET_VERSION, &version), 0);
	assert_int_equal(version.minor_version, 11);
	assert_int_not_equal(model_gpu_id(m, 2), 0);
	assert_int_equal(model_gpu_id(m, 3), 0);
	model_free(m);
}

static void nonsense_is_refused_with_a_reason(void **state)
{
	static const char *const specs[] = {
		"mi999",
		"mi308x,",
		"mi308x,gpus",
		"mi308x,gpus=0",
		"mi308x,gpus=9",
		"mi308x,gpus=-1",
		"mi308x,gpus=1x",
		"mi308x,occupancy=101",
		"mi308x,seed=",
		"mi308x,kfd_minor=18",
		"mi308x,kfd_minor=0",
		"mi308x,runtime=mad",
		"mi308x,colour=red",
		",gpus=1",
		"mi308x,seed=99999999999999999999",
		"mi308x,gpus= 1",
		"mi308x,save_area=ram",
		"mi308x,unmap_us=1000001",
		"mi308x,quantum_us=0",
		"mi308x,ext=2",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		_cleanup_free_ char *why = NULL;
		struct model *m = NULL;

		assert_int_equal(model_new_preset(specs[i], &m, &why), -EINVAL);
		assert_null(m);
		assert_non_null(why);
		assert_true(strlen(why) > 10);
		assert_null(strchr(why, '\n'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_training_job_fills_every_compute_unit),
		cmocka_unit_test(
			the_inference_job_is_idle_with_a_past_and_the_third_has_no_queue),
		cmocka_unit_test(half_the_occupancy_takes_half_the_save),
		cmocka_unit_test(an_mi300x_saves_3_8_times_what_an_mi308x_does),
		cmocka_unit_test(
			a_save_area_in_host_memory_is_slower_by_the_ratio_of_the_bandwidths),
		cmocka_unit_test(options_change_what_a_runlist_cycle_costs),
		cmocka_unit_test(every_save_of_many_finds_the_compute_units_full),
		cmocka_unit_test(an_old_runtime_cannot_be_suspended),
		cmocka_unit_test(options_choose_gpus_and_version),
		cmocka_unit_test(nonsense_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests_name("model/preset", tests, NULL, NULL) != 0;
}
