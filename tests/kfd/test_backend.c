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

static void who_is_attached_stays_listed(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	pid_t pids[8];

	assert_int_equal(ops_of(rig)->processes(rig->b, pids, ARRAY_SIZE(pids)), 3);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	assert_int_equal(ops_of(rig)->processes(rig->b, pids, ARRAY_SIZE(pids)), 3);
	assert_int_equal(pids[0], OFFLINE);
}

static void a_process_is_held_and_runs_again(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);

	assert_int_equal(ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 7), 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 10);
	assert_int_equal(ops_of(rig)->resume(t, NULL, 0, 8), 0);
	rig_expect(rig, GPU_RESUME, 0, 10);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	assert_true(rig_is_quiet(rig));
}

static void cookies_come_back_in_order(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t;

	assert_int_equal(ops_of(rig)->attach(rig->b, &(struct gpu_attach){ OFFLINE }, 100, &t), 0);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 2 * i), 0);
		assert_int_equal(ops_of(rig)->resume(t, NULL, 0, 2 * i + 1), 0);
	}
	assert_int_equal(rig_next(rig).cookie, 100);
	for (uint64_t i = 0; i < 40; i++) {
		struct gpu_done done = rig_next(rig);

		assert_ptr_equal(done.target, t);
		assert_int_equal(done.cookie, i);
		assert_int_equal(done.result, 0);
		assert_int_equal(done.verb, i % 2 ? GPU_RESUME : GPU_SUSPEND);
	}
}

static void queues_are_held_in_addition_and_resumed_in_part(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	const uint32_t some[] = { 1, 2 }, more[] = { 2, 3 }, off[] = { 1, 9 }, rest[] = { 2, 3 };

	ops_of(rig)->suspend(t, &(struct gpu_hold){ some, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 2);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ more, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 1); /* of which one was off already */
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 3);
	ops_of(rig)->resume(t, off, 2, 0);
	rig_expect(rig, GPU_RESUME, 0, 1); /* and one on */
	assert_false(rig_is_suspended(rig, OFFLINE, 1));
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 2);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 8);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 10);
	ops_of(rig)->resume(t, rest, 2, 0);
	rig_expect(rig, GPU_RESUME, 0, 2);
	assert_false(rig_is_suspended(rig, OFFLINE, 3));
	ops_of(rig)->resume(t, NULL, 0, 0);
	rig_expect(rig, GPU_RESUME, 0, 8);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
}

static uint64_t cycles(struct rig *rig)
{
	struct model_gpu_stats stats;

	assert_int_equal(model_gpu_stats(rig_lock(rig), 0, &stats), 0);
	rig_unlock(rig);
	return stats.cycles;
}

/* Each call to the driver makes everybody on the GPU stand still. */
static void what_is_as_it_should_be_costs_no_cycle(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	const uint32_t ids[] = { 1, 2 }, on[] = { 4, 5 };
	uint64_t before;

	ops_of(rig)->suspend(t, &(struct gpu_hold){ ids, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 2);
	before = cycles(rig);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ ids, 2 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 0);
	ops_of(rig)->resume(t, on, 2, 0);
	rig_expect(rig, GPU_RESUME, 0, 0);
	assert_int_equal(cycles(rig), before);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 2);
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

static void a_refused_attach_refuses_what_follows(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t;

	assert_int_equal(ops_of(rig)->attach(rig->b, &(struct gpu_attach){ 4711 }, 1, &t), 0);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 2);
	ops_of(rig)->resume(t, NULL, 0, 3);
	ops_of(rig)->release(t, 4);
	rig_expect(rig, GPU_ATTACH, -ESRCH, 0);
	rig_expect(rig, GPU_SUSPEND, -ESRCH, 0);
	rig_expect(rig, GPU_RESUME, -ESRCH, 0);
	rig_expect(rig, GPU_RELEASE, 0, 0);
	assert_true(rig_is_quiet(rig));
}

static void release_resumes_and_forgets(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	struct gpu_done done;

	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	assert_int_equal(ops_of(rig)->release(t, 99), 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	done = rig_next(rig);
	assert_int_equal(done.verb, GPU_RELEASE);
	assert_int_equal(done.cookie, 99);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	(void)rig_attach(rig, OFFLINE); /* nobody is left who traces it */
}

static void a_target_that_dies_while_held_is_told_of_once(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	struct gpu_done done;

	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	model_proc_exit(rig_lock(rig), OFFLINE);
	rig_unlock(rig);
	done = rig_next(rig); /* it looks after what it holds */
	assert_int_equal(done.verb, GPU_ENDED);
	assert_int_equal(done.result, -ESRCH);
	assert_false(done.gpu_failed);
	ops_of(rig)->resume(t, NULL, 0, 5);
	rig_expect(rig, GPU_RESUME, -ESRCH, 0);
	ops_of(rig)->release(t, 6);
	rig_expect(rig, GPU_RELEASE, 0, 0);
	assert_true(rig_is_quiet(rig));
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

static void await_resumed(struct rig *rig, uint64_t step_ns)
{
	struct pollfd nothing = { .fd = -1 };

	for (int i = 0; i < 1000 && rig_count_suspended(rig, OFFLINE); i++) {
		rig_advance(rig, step_ns);
		poll(&nothing, 1, 5);
	}
}

static void a_hold_ends_by_itself_after_its_longest_time(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	uint64_t called_ns = ops_of(rig)->now_ns(rig->b);

	ops_of(rig)->suspend(t, &(struct gpu_hold){ .longest_ns = 20 * NSEC_PER_MSEC }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
	await_resumed(rig, 2 * NSEC_PER_MSEC);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	assert_true(ops_of(rig)->now_ns(rig->b) - called_ns >= 20 * NSEC_PER_MSEC);
	assert_true(ops_of(rig)->now_ns(rig->b) - called_ns < 60 * NSEC_PER_MSEC);
	ops_of(rig)->resume(t, NULL, 0, 0);
	rig_expect(rig, GPU_RESUME, 0, 0); /* a later one does no harm */
	ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	rig_expect(rig, GPU_SUSPEND, 0, 10);
}

static void the_latest_of_several_ends_counts(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t = rig_attach(rig, OFFLINE);
	const uint32_t one[] = { 1 }, two[] = { 2 }, three[] = { 3 };
	uint64_t called_ns;

	ops_of(rig)->suspend(t, &(struct gpu_hold){ one, 1, 20 * NSEC_PER_MSEC }, 0);
	called_ns = ops_of(rig)->now_ns(rig->b);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ two, 1, 200 * NSEC_PER_MSEC }, 0);
	ops_of(rig)->suspend(t, &(struct gpu_hold){ three, 1, 40 * NSEC_PER_MSEC }, 0);
	for (int i = 0; i < 3; i++)
		rig_expect(rig, GPU_SUSPEND, 0, 1);
	await_resumed(rig, NSEC_PER_MSEC);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	assert_true(ops_of(rig)->now_ns(rig->b) - called_ns >= 200 * NSEC_PER_MSEC);
}

/* It would otherwise hold the job when nobody counts on it any more. */
static void a_hold_whose_time_is_over_before_it_begins_is_not_made(void **state)
{
	struct rig *rig = *state;
	struct gpu_target *t;

	rig_block(rig, OFFLINE);
	assert_int_equal(ops_of(rig)->attach(rig->b, &(struct gpu_attach){ OFFLINE }, 1, &t), 0);
	rig_await_blocked(rig);
	rig_advance(rig, NSEC_PER_MSEC); /* the clock begins at 0 */
	ops_of(rig)->suspend(t, &(struct gpu_hold){ .longest_ns = NSEC_PER_SEC }, 2);
	rig_advance(rig, NSEC_PER_SEC);
	rig_unblock(rig);
	rig_expect(rig, GPU_ATTACH, 0, 0);
	rig_expect(rig, GPU_SUSPEND, -ETIMEDOUT, 0);
	assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
}

static void attaching_again_and_again_leaves_nothing(void **state)
{
	struct rig *rig = *state;
	size_t threads = count_threads(), fds = count_fds();

	for (uint32_t i = 0; i < 200; i++) {
		struct gpu_target *t = rig_attach(rig, OFFLINE);

		ops_of(rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
		if (i % 2) /* else the release has to wait for it */
			rig_expect(rig, GPU_SUSPEND, 0, 10);
		ops_of(rig)->release(t, 0);
		if (i % 2 == 0)
			rig_expect(rig, GPU_SUSPEND, 0, 10);
		rig_expect(rig, GPU_RELEASE, 0, 0);
		assert_int_equal(rig_count_suspended(rig, OFFLINE), 0);
	}
	assert_int_equal(count_threads(), threads);
	assert_int_equal(count_fds(), fds);
}

static void closing_lets_everybody_go_and_leaves_nothing(void **state)
{
	size_t threads = count_threads(), fds = count_fds();
	struct rig rig = { 0 };
	struct gpu_target *t, *u;
	struct gpu_watch *w;

	rig_open(&rig, "mi308x");
	t = rig_attach(&rig, OFFLINE);
	assert_int_equal(ops_of(&rig)->attach(rig.b, &(struct gpu_attach){ ONLINE }, 1, &u), 0);
	assert_int_equal(ops_of(&rig)->watch(rig.b, OFFLINE, &w), 0);
	ops_of(&rig)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	ops_of(&rig)->suspend(u, &(struct gpu_hold){ 0 }, 0);
	ops_of(&rig)->release(u, 0);
	rig_close(&rig);
	assert_int_equal(count_threads(), threads);
	assert_int_equal(count_fds(), fds);
}

static void a_driver_without_the_interface_is_refused_with_a_reason(void **state)
{
	size_t fds = count_fds();
	char why[GPU_WHY_SIZE] = "";
	struct rig rig = { 0 };

	assert_int_equal(rig_try(&rig, "mi308x,kfd_minor=12", GKFD_BY_DEBUG, why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "1.12"));
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
		T(who_is_attached_stays_listed),
		T(a_process_is_held_and_runs_again),
		T(cookies_come_back_in_order),
		T(queues_are_held_in_addition_and_resumed_in_part),
		T(what_is_as_it_should_be_costs_no_cycle),
		T(a_queue_that_is_not_there_changes_nothing),
		T(a_refused_attach_refuses_what_follows),
		T(release_resumes_and_forgets),
		T(a_target_that_dies_while_held_is_told_of_once),
		T(a_target_that_dies_while_it_is_attached_is_refused),
		T(a_failed_preemption_names_its_gpu_and_ends_the_target),
		T(a_target_whose_driver_call_waits_delays_no_other),
		T(a_hold_ends_by_itself_after_its_longest_time),
		T(the_latest_of_several_ends_counts),
		T(attaching_again_and_again_leaves_nothing),
		T(a_hold_whose_time_is_over_before_it_begins_is_not_made),
		cmocka_unit_test(closing_lets_everybody_go_and_leaves_nothing),
		cmocka_unit_test(a_driver_without_the_interface_is_refused_with_a_reason),
		cmocka_unit_test(pausing_takes_whole_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
