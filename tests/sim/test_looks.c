/* SPDX-License-Identifier: MIT */
/* Who is looked at when: watchpoints, a doorbell that traps, and what a budget of CPU buys. */
#include "tests/sim/sim_rig.h"

#define INTERVAL (5 * MSEC)
#define LOOK (200 * USEC)

/* 2 ms of online work every 20, beside an offline job; an engine that does nothing. */
static void make_pair(struct sim_rig *rig, uint64_t detect)
{
	struct sim_job *online;

	sim_rig_init(rig);
	rig->s.detect = detect;
	online = sim_rig_job(rig, JOB_ONLINE, 20, 100 * USEC);
	online->arrival = SIM_PERIODIC;
	online->rate_mhz = 50 * 1000;
	sim_rig_job(rig, JOB_OFFLINE, 100, 100 * USEC);
}

/* With what a trace hears, so that it is known when requests came. */
static struct sim_result run(struct sim_rig *rig)
{
	const struct sim_options options = {
		.mode = SIM_ENGINE,
		.policy = &gpol_priority,
		.seed = 1,
		.trace = (struct sim_trace *)rig,
	};
	struct sim_result r;

	stub_reset(STUB_IDLE);
	n_heard = 0;
	assert_int_equal(sim_run(&rig->s, &options, &r), 0);
	return r;
}

/* The next request of the online job from @i on; false: there is none. */
static bool next_request(size_t *i, struct heard *ret)
{
	while (*i < n_heard) {
		const struct heard *h = &heard[(*i)++];

		if (h->kind != HEARD_REQUEST || h->process != 0)
			continue;
		*ret = *h;
		return true;
	}
	return false;
}

static size_t looks_between(uint64_t from_ns, uint64_t to_ns, bool all)
{
	size_t n = 0;

	for (size_t i = 0; i < stub.n_looks; i++) {
		const struct stub_look *l = &stub.looks[i];

		n += l->at_ns >= from_ns && l->at_ns < to_ns && l->all == all;
	}
	return n;
}

static bool is_looked_at(uint64_t at_ns, bool all)
{
	return looks_between(at_ns, at_ns + 1, all) > 0;
}

static void check_begins(uint64_t detect, uint64_t delay_ns)
{
	struct sim_result r;
	struct sim_rig rig;
	struct heard h;
	size_t requests = 0, extra = 0, i = 0;

	make_pair(&rig, detect);
	r = run(&rig);
	while (next_request(&i, &h)) {
		requests++;
		assert_false(is_looked_at(h.from_ns + delay_ns - 1, true));
		assert_true(is_looked_at(h.from_ns + delay_ns, true));
	}
	for (i = 0; i < stub.n_looks; i++)
		extra += stub.looks[i].all && stub.looks[i].at_ns % INTERVAL;
	assert_in_range(requests, 49, 50);
	assert_int_equal(extra, r.jobs[0].submitted); /* one a burst, and none for offline work */
	sim_result_done(&r);
}

static void the_first_request_of_a_burst_tells_that_it_comes(void **state)
{
	check_begins(SIM_DETECT_WATCH, 20 * USEC);
	check_begins(SIM_DETECT_TRAP, 10 * USEC);
}

static void online_work_is_looked_at_until_it_is_seen_to_end(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct heard h;
	size_t i = 0;

	make_pair(&rig, SIM_DETECT_WATCH);
	r = run(&rig);
	while (next_request(&i, &h)) {
		uint64_t told_ns = h.from_ns + 20 * USEC;
		uint64_t seen_ns = (h.to_ns + LOOK - 1) / LOOK * LOOK;

		if (seen_ns + 10 * MSEC > rig.s.duration_ns)
			break;
		/* Looks at all are looks at online jobs, too. */
		assert_int_equal(looks_between(told_ns + 1, seen_ns + 1, false) +
					 looks_between(told_ns + 1, seen_ns + 1, true),
				 seen_ns / LOOK - told_ns / LOOK);
		assert_int_equal(looks_between(seen_ns + 1, h.from_ns + 20 * MSEC, false), 0);
	}
	for (i = 0; i < stub.n_looks; i++)
		assert_int_equal(stub.looks[i].n, stub.looks[i].all ? 2 : 1);
	sim_result_done(&r);
}

/* Two queues, each with a request of 3 ms every 4 ms, in turn: one is always busy. */
static void a_burst_of_many_requests_tells_once(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	size_t extra = 0;

	make_pair(&rig, SIM_DETECT_WATCH);
	rig.jobs[0].queues = 2;
	rig.jobs[0].rate_mhz = 500 * 1000;
	rig.models[0].kernel_ns = 150 * USEC;
	rig.models[0].occupancy_permille = rig.models[1].occupancy_permille = 300;
	r = run(&rig);
	for (size_t i = 0; i < stub.n_looks; i++)
		extra += stub.looks[i].all && stub.looks[i].at_ns % INTERVAL;
	assert_in_range(r.jobs[0].submitted, 490, 500);
	assert_int_equal(extra, 1);
	sim_result_done(&r);
}

static void a_budget_of_cpu_says_how_often_that_is(void **state)
{
	struct sim_detection d = { .look_ns = 20 * USEC, .look_permille = 100 };

	assert_int_equal(sim_look_period_ns(&d), 200 * USEC);
	d.look_permille = 250;
	assert_int_equal(sim_look_period_ns(&d), 80 * USEC);
	d.look_least_ns = 90 * USEC;
	assert_int_equal(sim_look_period_ns(&d), 90 * USEC);
	d = (struct sim_detection){ 0 };
	assert_true(sim_look_period_ns(&d) > 0);
}

static void who_says_that_it_is_done_is_looked_at(void **state)
{
	struct sim_result r;
	struct sim_rig rig;
	struct heard h;
	size_t i = 0;

	make_pair(&rig, SIM_DETECT_WATCH);
	rig.jobs[0].announce_ns = 0;
	r = run(&rig);
	assert_int_equal(stub.hints, r.jobs[0].submitted);
	while (next_request(&i, &h)) {
		assert_true(is_looked_at(h.to_ns, false));
		assert_int_equal(looks_between(h.to_ns + 1, h.from_ns + 20 * MSEC, false), 0);
	}
	sim_result_done(&r);
}

static void where_nothing_can_be_seen_nobody_is_looked_at_in_vain(void **state)
{
	struct sim_result r;
	struct sim_rig rig;

	make_pair(&rig, SIM_DETECT_WATCH);
	rig.costs.counts_progress = false;
	r = run(&rig);
	assert_int_equal(looks_between(0, UINT64_MAX, false), 0);
	for (size_t i = 0; i < stub.n_looks; i++)
		assert_int_equal(stub.looks[i].at_ns % INTERVAL, 0);
	sim_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_request_of_a_burst_tells_that_it_comes),
		cmocka_unit_test(online_work_is_looked_at_until_it_is_seen_to_end),
		cmocka_unit_test(a_burst_of_many_requests_tells_once),
		cmocka_unit_test(a_budget_of_cpu_says_how_often_that_is),
		cmocka_unit_test(who_says_that_it_is_done_is_looked_at),
		cmocka_unit_test(where_nothing_can_be_seen_nobody_is_looked_at_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
