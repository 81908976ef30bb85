/* SPDX-License-Identifier: MIT */
/* Over-subscription as the driver and its users see it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

#define FIRST_PID 1000
#define MAX_PIDS 16

/* @n processes, each with a busy queue. */
static struct model *crowd(const char *chip, uint32_t n)
{
	struct model_config config = { .chip = model_chip_find(chip), .n_gpus = 1 };
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	struct model_work work = {
		.workgroups = 1000, .wg_ns = NSEC_PER_MSEC, .wg_per_cu = 1,
	};
	struct model *m = NULL;
	uint32_t id;

	assert_int_equal(model_new(&config, &m), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct model_proc_spec proc = {
			.pid = FIRST_PID + (pid_t)i, .uid = 1000, .comm = "job",
		};

		assert_int_equal(model_proc_start(m, &proc), 0);
		assert_int_equal(model_kfd_open(m, (struct model_task){ proc.pid, proc.pid }), 0);
		assert_int_equal(model_queue_create(m, proc.pid, &spec, &id), 0);
		assert_int_equal(id, 0);
		assert_int_equal(model_loop(m, proc.pid, id, &work, 2), 0);
	}
	return m;
}

static struct model_queue_stats queue_of(const struct model *m, uint32_t i)
{
	struct model_queue_stats stats;

	assert_int_equal(model_queue_stats(m, FIRST_PID + (pid_t)i, 0, &stats), 0);
	return stats;
}

static struct model_gpu_stats gpu_of(const struct model *m)
{
	struct model_gpu_stats stats;

	assert_int_equal(model_gpu_stats(m, 0, &stats), 0);
	return stats;
}

static uint32_t count_on(const struct model *m, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		assert_true(queue_of(m, i).mapped);
		sum += queue_of(m, i).on;
	}
	return sum;
}

/* Registers that say "active", in the dump of the live ones. */
static uint32_t live_slots(struct model *m)
{
	struct rig r = { .m = m };
	_cleanup_free_ char *text = rig_file(&r, GKFD_TREE_DEBUGFS, "hqds");
	uint32_t n = 0;

	assert_non_null(text);
	for (const char *p = text; (p = strstr(p, " CP Pipe")); p++) {
		unsigned int first = 0, active = 0;

		if (sscanf(strchr(p, '\n'), " %*x: %x %*x %x", &first, &active) == 2)
			n += active != 0 || first != 0;
	}
	return n;
}

static void all_progress(const char *chip, uint32_t n, uint32_t vmids)
{
	struct model *m = crowd(chip, n);
	uint64_t before[MAX_PIDS];

	assert_int_equal(count_on(m, n), vmids);
	for (uint32_t i = 0; i < n; i++)
		before[i] = queue_of(m, i).completed;
	model_advance(m, NSEC_PER_SEC);
	for (uint32_t i = 0; i < n; i++)
		assert_true(queue_of(m, i).completed > before[i]);
	assert_in_range(gpu_of(m).rotations, 90, 100);
	assert_int_equal(gpu_of(m).resets, 0);
	model_free(m);
}

static void more_processes_than_vmids_all_progress(void **state)
{
	(void)state;
	all_progress("mi308x", 14, 13);
	all_progress("mi100", 14, 13);
	all_progress("gfx1150", 9, 8);
	all_progress("gfx1200", 10, 8);
}

static void as_many_processes_as_vmids_do_not_rotate(void **state)
{
	struct model *m = crowd("mi308x", 13);

	(void)state;
	model_advance(m, NSEC_PER_SEC);
	assert_int_equal(count_on(m, 13), 13);
	assert_int_equal(gpu_of(m).rotations, 0);
	model_free(m);
}

static void what_rotation_saves_counts_among_all_saves(void **state)
{
	struct model *m = crowd("mi308x", 14);
	struct model_gpu_stats before = gpu_of(m), after;

	(void)state;
	model_advance(m, NSEC_PER_SEC);
	after = gpu_of(m);
	assert_true(after.rotations > before.rotations);
	assert_true(after.saved_bytes > before.saved_bytes);
	assert_true(after.save_ns > before.save_ns);
	assert_int_equal(after.cycles, before.cycles);
	model_free(m);
}

static void the_registers_show_who_is_on_hardware(void **state)
{
	struct model *m = crowd("mi100", 14);

	(void)state;
	assert_int_equal(live_slots(m), 13);
	model_proc_exit(m, FIRST_PID);
	assert_int_equal(live_slots(m), 13);
	model_proc_exit(m, FIRST_PID + 1);
	assert_int_equal(live_slots(m), 12);
	model_free(m);
}

static void when_one_leaves_the_turns_end(void **state)
{
	struct model *m = crowd("mi308x", 14);
	uint64_t rotations;

	(void)state;
	model_advance(m, 100 * NSEC_PER_MSEC);
	model_proc_exit(m, FIRST_PID + 7);
	rotations = gpu_of(m).rotations;
	model_advance(m, NSEC_PER_SEC);
	assert_int_equal(gpu_of(m).rotations, rotations);
	for (uint32_t i = 0; i < 14; i++)
		assert_true(i == 7 || queue_of(m, i).on);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_processes_than_vmids_all_progress),
		cmocka_unit_test(as_many_processes_as_vmids_do_not_rotate),
		cmocka_unit_test(what_rotation_saves_counts_among_all_saves),
		cmocka_unit_test(the_registers_show_who_is_on_hardware),
		cmocka_unit_test(when_one_leaves_the_turns_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
