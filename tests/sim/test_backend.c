/* SPDX-License-Identifier: MIT */
/* What acting costs, with an engine that does as it is told. */
#include "sim/machine.h"
#include "tests/sim/sim_rig.h"

/* A full MI100: 120 compute units of 610,304 bytes at 1.23 TB/s. */
#define FULL_SAVE_NS 59542u

/* An offline job that fills the GPU and an online one, 2 ms of work every 20. */
static void make_pair(struct sim_rig *rig)
{
	struct sim_job *online;

	sim_rig_init(rig);
	online = sim_rig_job(rig, JOB_ONLINE, 20, 100 * USEC);
	online->arrival = SIM_PERIODIC;
	online->rate_mhz = 50 * 1000;
	sim_rig_job(rig, JOB_OFFLINE, 100, 100 * USEC);
}

static void a_suspend_takes_call_cycle_trap_and_save(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].announce_ns = MSEC; /* so that the victim has the GPU to itself */
	stub_reset(STUB_PREEMPTS);
	stub.hold_ns = 10 * MSEC; /* over before the next one */
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.last_suspend_took_ns, 5000 + 20000 + 2000 + FULL_SAVE_NS);
	assert_int_equal(stub.last_resume_took_ns, 5000 + 20000 + FULL_SAVE_NS);
	assert_int_equal(r.preemption.max_ns, stub.last_suspend_took_ns);
	assert_in_range(r.preemptions, 49, 50);
	assert_int_equal(r.jobs[1].preempted, r.preemptions);
	assert_in_range(r.cycles, 2 * r.preemptions - 1, 2 * r.preemptions);
	assert_int_equal(r.engine_steps, stub.steps);
	sim_result_done(&r);
}

static void a_save_area_in_host_memory_costs_what_the_bus_gives(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].announce_ns = 5 * MSEC;
	rig.s.save_in_host_memory = true;
	stub_reset(STUB_PREEMPTS);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.last_suspend_took_ns, 27000 + 1144320); /* at 64 GB/s */
	sim_result_done(&r);
}

static void announced_in_time_an_online_request_meets_nobody(void **state)
{
	struct sim_result alone, r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].announce_ns = 200 * USEC;
	stub_reset(STUB_PREEMPTS);
	stub.interval_ns = SEC; /* it is told when to look, before and after */
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(r.preemptions, r.jobs[0].submitted);
	alone = sim_rig_run(&rig, SIM_ALONE, 1);
	assert_int_equal(alone.online.mean_ns, 2 * MSEC);
	assert_memory_equal(&r.online, &alone.online, sizeof(r.online));
	assert_int_equal(r.inversion.n, 0);
	assert_int_equal(stub.hints, r.jobs[0].submitted);
	sim_result_done(&alone);
	sim_result_done(&r);
}

static void unannounced_it_waits_for_the_look_and_the_save(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	stub_reset(STUB_PREEMPTS);
	stub.interval_ns = MSEC;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.hints, 0);
	/* Half speed until the victim is off: half of the inversion is lost. */
	assert_in_range(r.inversion.max_ns, 57000, MSEC + 87000);
	assert_in_range(r.online.max_ns, 2 * MSEC, 2 * MSEC + (MSEC + 87000) / 2 + 10);
	assert_true(r.online.max_ns > 2 * MSEC + 200 * USEC);
	sim_result_done(&r);
}

/* Both fit; what the online job loses to the one preemption there is. */
static uint64_t lost_by_an_online_job(bool disturbs_all)
{
	struct sim_result r;
	struct sim_rig rig;
	uint64_t latency;

	sim_rig_init(&rig);
	rig.costs.disturbs_all = disturbs_all;
	sim_rig_job(&rig, JOB_ONLINE, 1000, 100 * USEC);
	sim_rig_job(&rig, JOB_OFFLINE, 1000, 100 * USEC);
	for (size_t i = 0; i < 2; i++) {
		rig.models[i].occupancy_permille = 500;
		rig.models[i].state_permille = 500;
	}
	stub_reset(STUB_PREEMPTS);
	stub.hold_ns = SEC;
	rig.s.duration_ns = 150 * MSEC;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	latency = r.online.max_ns;
	assert_int_equal(r.online.n, 1);
	sim_result_done(&r);
	return latency - 100 * MSEC;
}

static void who_is_not_the_victim_is_left_alone_unless_the_driver_disturbs_all(void **state)
{
	assert_int_equal(lost_by_an_online_job(false), 0);
	/* A cycle; both are saved, and one is brought back. */
	assert_in_range(lost_by_an_online_job(true), 22000 + FULL_SAVE_NS * 3 / 2 - 10,
			22000 + FULL_SAVE_NS * 3 / 2 + 10);
}

static void a_hold_ends_at_its_deadline_even_if_the_engine_forgets_it(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].rate_mhz = 0;
	stub_reset(STUB_NEVER_LETS_GO);
	stub.hold_ns = 300 * MSEC;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	/* From when it stops, which is call_ns after the decision, until it runs. */
	assert_int_equal(r.jobs[1].longest_wait_ns, 300 * MSEC - 5000 + 25000 + FULL_SAVE_NS);
	assert_int_equal(r.cycles, 2);
	assert_true(r.jobs[1].starved); /* its bound is 100 ms */
	assert_int_equal(r.starved, 1);
	rig.jobs[1].wait_bound_ns = 300 * MSEC;
	sim_result_done(&r);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(r.starved, 0);
	sim_result_done(&r);
}

/* Held for @online_ns of every 10 ms, of which no hold is longer than the bound of 40 ms. */
static struct sim_result run_with_gaps(uint64_t online_ns)
{
	struct sim_rig rig;

	make_pair(&rig);
	rig.models[0].kernel_ns = online_ns / rig.models[0].kernels;
	rig.jobs[0].rate_mhz = 100 * 1000;
	rig.jobs[0].announce_ns = 0;
	rig.jobs[1].wait_bound_ns = 40 * MSEC;
	stub_reset(STUB_PREEMPTS);
	return sim_rig_run(&rig, SIM_ENGINE, 1);
}

static void a_moment_on_the_gpu_does_not_end_a_wait(void **state)
{
	struct sim_result r = run_with_gaps(9800 * USEC);

	assert_true(r.jobs[1].preempted > 90); /* let go as often */
	assert_true(r.jobs[1].longest_wait_ns > 80 * MSEC);
	assert_int_equal(r.starved, 1);
	sim_result_done(&r);

	/* Half a millisecond each time is enough after four of them. */
	r = run_with_gaps(9400 * USEC);
	assert_in_range(r.jobs[1].longest_wait_ns, 30 * MSEC, 60 * MSEC);
	assert_int_equal(r.starved, 0);
	sim_result_done(&r);

	r = run_with_gaps(5 * MSEC);
	assert_in_range(r.jobs[1].longest_wait_ns, 5 * MSEC, 6 * MSEC);
	sim_result_done(&r);
}

static void nobody_is_let_go_twice(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].announce_ns = MSEC;
	stub_reset(STUB_PREEMPTS);
	stub.hold_ns = 3 * MSEC + 40 * USEC; /* the deadline comes while the resume is under way */
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_in_range(r.preemptions, 49, 50);
	assert_in_range(r.cycles, 2 * r.preemptions - 1, 2 * r.preemptions);
	sim_result_done(&r);
}

static void requests_go_to_the_queues_in_turn(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.jobs[0].queues = 4;
	stub_reset(STUB_IDLE);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	for (size_t i = 0; i < 4; i++)
		assert_in_range(stub.seen[i].write, 12 * 20, 13 * 20);
	sim_result_done(&r);
}

static void a_single_queue_can_be_parked(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	sim_rig_job(&rig, JOB_OFFLINE, 10, 100 * USEC)->queues = 2;
	stub_reset(STUB_PARKS);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(r.preemptions, 0);
	assert_int_equal(r.cycles, 1);
	/* One queue of two at full speed: every millisecond a request, and the host's turn. */
	assert_in_range(r.jobs[0].done, 985, 991);
	assert_in_range(r.jobs[0].longest_wait_ns, 998 * MSEC, SEC);
	sim_result_done(&r);
}

static void the_engine_sees_kernels_waiting_and_running(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	sim_rig_init(&rig);
	rig.s.duration_ns = 4 * MSEC + 500 * USEC;
	sim_rig_job(&rig, JOB_OFFLINE, 100, 100 * USEC);
	stub_reset(STUB_IDLE);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.n_seen, 1);
	assert_int_equal(stub.seen[0].write, 100);
	/* It began in the first millisecond and was last looked at after 4. */
	assert_in_range(stub.seen[0].read, 30, 41);
	sim_result_done(&r);
	rig.costs.counts_progress = false;
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.seen[0].write, 0);
	assert_false(stub.seen[0].busy);
	sim_result_done(&r);
}

static void the_engine_is_told_what_acting_costs(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig);
	rig.s.cycle_ns = 123 * USEC;
	rig.s.online_permille = 77;
	stub_reset(STUB_IDLE);
	r = sim_rig_run(&rig, SIM_ENGINE, 1);
	assert_int_equal(stub.config.costs.cycle_ns, 123 * USEC);
	assert_int_equal(stub.config.costs.suspend_ns, 130 * USEC + FULL_SAVE_NS);
	assert_true(stub.config.costs.counts_progress);
	assert_int_equal(stub.config.online_permille, 77);
	assert_ptr_equal(stub.config.policy, &gpol_priority);
	sim_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_suspend_takes_call_cycle_trap_and_save),
		cmocka_unit_test(a_save_area_in_host_memory_costs_what_the_bus_gives),
		cmocka_unit_test(announced_in_time_an_online_request_meets_nobody),
		cmocka_unit_test(unannounced_it_waits_for_the_look_and_the_save),
		cmocka_unit_test(
			who_is_not_the_victim_is_left_alone_unless_the_driver_disturbs_all),
		cmocka_unit_test(a_hold_ends_at_its_deadline_even_if_the_engine_forgets_it),
		cmocka_unit_test(a_moment_on_the_gpu_does_not_end_a_wait),
		cmocka_unit_test(nobody_is_let_go_twice),
		cmocka_unit_test(requests_go_to_the_queues_in_turn),
		cmocka_unit_test(a_single_queue_can_be_parked),
		cmocka_unit_test(the_engine_sees_kernels_waiting_and_running),
		cmocka_unit_test(the_engine_is_told_what_acting_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
