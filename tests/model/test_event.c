/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gpu/model/event.h"
#include "util/macros.h"

struct mark {
	struct event e; /* first: found by its address */
	struct timeline *time;
	int id;
	int *order;
	int *n;
	uint64_t again_at; /* 0: once */
};

static void note(struct event *e)
{
	struct mark *m = (struct mark *)e;

	m->order[(*m->n)++] = m->id;
	assert_int_equal(m->time->now_ns, e->at_ns);
	if (m->again_at) {
		timeline_set(m->time, e, m->again_at);
		m->again_at = 0;
	}
}

static void events_run_in_time_order_and_ties_in_the_order_they_were_set(void **state)
{
	struct timeline t;
	struct mark marks[300];
	int order[300], n = 0;

	timeline_init(&t);
	for (int i = 0; i < 300; i++) {
		marks[i] = (struct mark){ { .run = note }, &t, i, order, &n, 0 };
		assert_int_equal(timeline_set(&t, &marks[i].e, (uint64_t)i * 7919 % 20), 0);
	}
	timeline_run(&t, 100);
	assert_int_equal(n, 300);
	for (int i = 1; i < 300; i++) {
		uint64_t a = marks[order[i - 1]].e.at_ns, b = marks[order[i]].e.at_ns;

		assert_true(a < b || (a == b && order[i - 1] < order[i]));
	}
	assert_int_equal(t.now_ns, 100);
	timeline_done(&t);
}

static void a_moved_event_goes_behind_those_already_set_for_that_instant(void **state)
{
	struct timeline t;
	struct mark marks[3];
	int order[3], n = 0;

	timeline_init(&t);
	for (int i = 0; i < 3; i++) {
		marks[i] = (struct mark){ { .run = note }, &t, i, order, &n, 0 };
		timeline_set(&t, &marks[i].e, 10);
	}
	timeline_set(&t, &marks[0].e, 5);
	timeline_set(&t, &marks[0].e, 10);
	timeline_run(&t, 10);
	assert_int_equal(n, 3);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[2], 0);
	timeline_done(&t);
}

static void cancelled_events_do_not_run_and_the_rest_stay_in_order(void **state)
{
	struct timeline t;
	struct mark marks[100];
	int order[100], n = 0;

	timeline_init(&t);
	for (int i = 0; i < 100; i++) {
		marks[i] = (struct mark){ { .run = note }, &t, i, order, &n, 0 };
		timeline_set(&t, &marks[i].e, 1 + (uint64_t)i * 37 % 100);
	}
	for (int i = 0; i < 100; i += 3)
		timeline_cancel(&t, &marks[i].e);
	timeline_cancel(&t, &marks[0].e);
	timeline_run(&t, 1000);
	assert_int_equal(n, 66);
	for (int i = 0; i < n; i++) {
		assert_int_not_equal(order[i] % 3, 0);
		assert_true(!i || marks[order[i - 1]].e.at_ns < marks[order[i]].e.at_ns);
	}
	timeline_done(&t);
}

static void a_step_runs_one_instant_and_stops_at_the_limit(void **state)
{
	struct timeline t;
	int order[8], n = 0;
	struct mark a = { { .run = note }, &t, 1, order, &n, 10 }; /* once more, same instant */
	struct mark b = { { .run = note }, &t, 2, order, &n, 0 };

	timeline_init(&t);
	timeline_set(&t, &a.e, 10);
	timeline_set(&t, &b.e, 20);
	assert_true(timeline_step(&t, 15));
	assert_int_equal(n, 2);
	assert_int_equal(t.now_ns, 10);
	assert_false(timeline_step(&t, 15));
	assert_int_equal(t.now_ns, 15);
	assert_true(timeline_step(&t, 20));
	assert_int_equal(order[2], 2);
	timeline_done(&t);
}

static void the_past_means_now_and_the_clock_never_goes_back(void **state)
{
	struct timeline t;
	int order[1], n = 0;
	struct mark a = { { .run = note }, &t, 1, order, &n, 0 };

	timeline_init(&t);
	timeline_run(&t, 50);
	timeline_run(&t, 40);
	assert_int_equal(t.now_ns, 50);
	timeline_set(&t, &a.e, 3);
	timeline_run(&t, 50);
	assert_int_equal(n, 1);
	assert_int_equal(t.now_ns, 50);
	timeline_done(&t);
}

static void what_is_parked_never_runs_not_even_at_the_end_of_time(void **state)
{
	struct timeline t;
	int order[1], n = 0;
	struct mark a = { { .run = note }, &t, 1, order, &n, 0 };

	timeline_init(&t);
	timeline_set(&t, &a.e, TIMELINE_NEVER);
	assert_false(timeline_step(&t, UINT64_MAX));
	assert_int_equal(n, 0);
	assert_int_not_equal(a.e.slot, 0);
	timeline_done(&t);
	assert_int_equal(a.e.slot, 0);
}

struct nested {
	struct event e;
	struct timeline *time;
};

static void let_time_pass(struct event *e)
{
	struct timeline *t = ((struct nested *)e)->time;

	timeline_run(t, t->now_ns + 100);
}

static void an_event_may_let_time_pass(void **state)
{
	struct timeline t;
	int order[1], n = 0;
	struct nested outer = { { .run = let_time_pass }, &t };
	struct mark inner = { { .run = note }, &t, 1, order, &n, 0 };

	timeline_init(&t);
	timeline_set(&t, &outer.e, 10);
	timeline_set(&t, &inner.e, 60);
	timeline_run(&t, 20);
	assert_int_equal(n, 1);
	assert_int_equal(t.now_ns, 110);
	timeline_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_run_in_time_order_and_ties_in_the_order_they_were_set),
		cmocka_unit_test(a_moved_event_goes_behind_those_already_set_for_that_instant),
		cmocka_unit_test(cancelled_events_do_not_run_and_the_rest_stay_in_order),
		cmocka_unit_test(a_step_runs_one_instant_and_stops_at_the_limit),
		cmocka_unit_test(the_past_means_now_and_the_clock_never_goes_back),
		cmocka_unit_test(what_is_parked_never_runs_not_even_at_the_end_of_time),
		cmocka_unit_test(an_event_may_let_time_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
