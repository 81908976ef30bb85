/* SPDX-License-Identifier: MIT */
/* Acting through the backend, on the software device. */
#include "tests/kfd/backend_rig.h"
#include "tests/kfd/counts.h"

static int setup(void **state)
{
	return rig_setup(state, "mi308x,gpus=2");
}

static void it_says_what_it_can(void **state)
{
	struct rig *rig = *state;
	const struct gpu_caps *caps = &rig->b->caps;
	struct gpu_node nodes[8];

	assert_string_equal(caps->name, "model");
	assert_string_equal(caps->level, "K2");
	assert_true(caps->modelled && caps->counts_progress && caps->disturbs_all);
	assert_false(caps->outlives_owner);
	assert_int_equal(caps->unit, GPU_UNIT_QUEUE);
	assert_int_equal(ops_of(rig)->nodes(rig->b, nodes, ARRAY_SIZE(nodes)), 2);
	assert_int_equal(nodes[1].gpu, model_gpu_id(rig_lock(rig), 1));
	rig_unlock(rig);
	assert_int_equal(nodes[0].slots, 24);
	assert_int_equal(ops_of(rig)->nodes(rig->b, nodes, 1), 2);
}

static void our_own_process_is_not_listed(void **state)
{
	struct rig *rig = *state;
	struct proc_files files;
	pid_t pids[8] = { 0 };
	uid_t owner = 1;

	assert_int_equal(ops_of(rig)->processes(rig->b, pids, ARRAY_SIZE(pids)), 3);
	assert_int_equal(pids[0], OFFLINE);
	assert_int_equal(pids[2], EMPTY);
	assert_int_equal(ops_of(rig)->processes(rig->b, pids, 1), 3);
	assert_int_equal(ops_of(rig)->ask(rig->b, 1001, PROC_BIT(PROC_STAT)), 0);
	assert_int_equal(ops_of(rig)->ask(rig->b, 1001, PROC_BIT(PROC_STAT)), -EALREADY);
	assert_true(ops_of(rig)->answer(rig->b, &files));
	assert_int_equal(files.result, 0);
	assert_int_equal(strncmp(files.text[PROC_STAT], "1001", 4), 0);
	proc_files_done(&files);
	assert_false(ops_of(rig)->answer(rig->b, &files));
	assert_int_equal(ops_of(rig)->owner(rig->b, 1001, &owner), 0);
	assert_int_equal(ops_of(rig)->owner(rig->b, 4711, &owner), -ESRCH);
}

static void a_queue_that_is_not_there_changes_nothing(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	const uint32_t ids[] = { 1, 2 }, wrong[] = { 3, 77 };

	ops_of(rig)->suspend(t, &(struct gpu_hold){ ids, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 2);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ wrong, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, -EINVAL, 0);
	assert_true(rig_is_suspended(rig, OFFLINE, 1) && rig_is_suspended(rig, OFFLINE, 2));
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 2);
	assert_true(rig_is_quiet(rig)); /* and the target has not ended */
}

static void a_target_that_dies_while_it_is_attached_is_refused(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t;

	rig_block(rig, OFFLINE);
	assert_int_equal(ops_of(rig)->attach(rig->b, &(struct gpu_attach){ OFFLINE }, 1, &t), 0);
	rig_await_blocked(rig);
	model_proc_exit(rig_lock(rig), OFFLINE);
	rig_unlock(rig);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 2);
	rig_unblock(rig);
	rig_expect(rig, GPU_ATTACH, -ESRCH, 0);
	rig_expect(rig, GPU_SUSPEND, -ESRCH, 0);
	assert_true(rig_is_quiet(rig));
}

static void a_failed_preemption_names_its_gpu_and_ends_the_target(void **state)
{
	struct rig *rig = *state;
	struct model_fault stuck = {
		.kind = MODEL_FAULT_STUCK_QUEUE,
		.pid = OFFLINE,
		.queue_id = 3,
	};
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	const uint32_t before[] = { 1 };
	struct gpu_done done;

	ops_of(rig)->suspend(t, &(struct gpu_hold){ before, 1 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 1);
	assert_int_equal(model_fault_set(rig_lock(rig), &stuck), 0);
	rig_unlock(rig);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	done = rig_next(rig);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_int_equal(done.result, -EIO);
	assert_true(done.gpu_failed);
	assert_int_equal(done.gpu, model_gpu_id(rig_lock(rig), 0));
	rig_unlock(rig);
	done = rig_next(rig);
	assert_int_equal(done.verb, GPU_ENDED);
	assert_true(done.gpu_failed);
	assert_int_not_equal(done.gpu, 0);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	ops_of(rig)->resume(t, NULL, 0, 0);
	assert_int_equal(rig_next(rig).result, -EIO);
}

static void a_target_whose_driver_call_waits_delays_no_other(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *stuck = rig_attach(rig, OFFLINE), *other = rig_attach(rig, ONLINE);

	rig_block(rig, OFFLINE);
	ops_of(rig)->suspend(stuck, &(struct gpu_hold){ 0 }, 1);
	rig_await_blocked(rig);
	for (uint64_t i = 0; i < 10; i++) {
		ops_of(rig)->suspend(other, &(struct gpu_hold){ 0 }, 2);
		rig_expect(rig, GPU_SUSPEND, 0, 2);
		ops_of(rig)->resume(other, NULL, 0, 3);
		rig_expect(rig, GPU_RESUME, 0, 2);
	}
	ops_of(rig)->release(stuck, 4);
	ops_of(rig)->release(other, 5);
	assert_int_equal(rig_next(rig).cookie, 5);
	rig_unblock(rig);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	rig_expect(rig, GPU_RELEASE, 0, 0);
}

static void a_driver_without_the_interface_is_refused_with_a_reason(void **state)
{
	size_t fds = count_fds();
	struct gpu_why why = { 0 };
	struct rig rig = { 0 };

	assert_int_equal(rig_try(&rig, "mi308x,kfd_minor=12", GKFD_BY_DEBUG, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why.message, "1.12"));
	assert_null(rig.b);
	rig_close(&rig);
	assert_int_equal(count_fds(), fds);
}

static void pausing_takes_whole_processes(void **state)
{
	const uint32_t ids[] = { 1 };
	struct gpu_target *t;
	struct rig rig = { 0 };

	assert_int_equal(rig_try(&rig, "mi308x,kfd_minor=12", GKFD_BY_PAUSE, NULL), 0);
	assert_string_equal(rig.b->caps.level, "K1");
	assert_int_equal(rig.b->caps.unit, GPU_UNIT_CONTEXT);
	assert_true(rig.b->caps.outlives_owner);
	t = rig_attach(&rig, OFFLINE);
	ops_of(&rig)->suspend(t, &(struct gpu_hold){ ids, 1 }, 0);
	rig_expect(&rig, GPU_SUSPEND, -EINVAL, 0);
	ops_of(&rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(&rig, GPU_SUSPEND, 0, 10);
	ops_of(&rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(&rig, GPU_SUSPEND, 0, 0);
	ops_of(&rig)->resume(t, NULL, 0, 0);
	rig_expect(&rig, GPU_RESUME, 0, 10);
	rig_close(&rig);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_says_what_it_can),
		T(our_own_process_is_not_listed),
		T(a_queue_that_is_not_there_changes_nothing),
		T(a_target_that_dies_while_it_is_attached_is_refused),
		T(a_failed_preemption_names_its_gpu_and_ends_the_target),
		T(a_target_whose_driver_call_waits_delays_no_other),
		cmocka_unit_test(a_driver_without_the_interface_is_refused_with_a_reason),
		cmocka_unit_test(pausing_takes_whole_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
