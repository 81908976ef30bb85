/* SPDX-License-Identifier: MIT */
/* Who comes between two scans, where somebody tells of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/daemon/rig.h"

static struct rig *rig_with_news(void)
{
	struct rig *r = rig_new(8);

	fake_give_news(&r->fake);
	r->config.scan_ns = 30 * S;
	rig_run(r, S);
	return r;
}

static void who_is_told_of_does_not_wait_for_a_scan(void **state)
{
	struct rig *r = rig_with_news();
	uint64_t began_ns = r->fake.now_ns;

	rig_offline(r, OFFLINE_PID, 1);
	r->fake.came = 1;
	rig_turn(r);
	rig_turn(r);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CAME], 1);
	assert_int_equal(r->fake.now_ns, began_ns);

	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 20 * S); /* nobody tells of that one */
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CAME], 1);
	rig_run(r, 11 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CAME], 2);
	rig_end(r);
}

static void who_is_there_already_is_not_met_again(void **state)
{
	struct rig *r = rig_with_news();
	struct fake_process *p = rig_offline(r, OFFLINE_PID, 1);
	uint32_t asks;

	r->fake.came = 1;
	rig_turn(r);
	rig_turn(r);
	asks = p->asks;
	for (int i = 0; i < 10; i++) {
		r->fake.came = 1;
		rig_turn(r);
	}
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CAME], 1);
	assert_int_equal(p->asks, asks);
	rig_end(r);
}

/* Somebody may have processes come and go between scans as often as he likes. */
static void between_scans_a_user_has_no_more_newcomers_than_in_one(void **state)
{
	struct rig *r = rig_with_news();
	uint32_t asks = 0;

	for (pid_t pid = 1000; pid < 2000; pid++) {
		struct fake_process *p = rig_offline(r, pid, 1);

		r->fake.came = 1;
		r->fake.silent = true;
		rig_turn(r);
		asks += p->asks;
		p->used = false;
	}
	assert_in_range(asks, 1, 512);
	r->fake.silent = false;
	rig_end(r);
}

static void with_nobody_there_who_is_told_of_scans_are_rare(void **state)
{
	struct rig *r = rig_with_news();
	uint32_t lists;

	r->config.scan_ns = 100 * MS;
	rig_run(r, 40 * S);
	lists = r->fake.lists;
	rig_run(r, 10 * S);
	assert_in_range(r->fake.lists - lists, 2, 3);
	r->fake.came = -ENOSPC; /* from now on only they tell */
	rig_run(r, 5 * S);
	lists = r->fake.lists;
	rig_run(r, 10 * S);
	assert_in_range(r->fake.lists - lists, 99, 101);
	r->fake.came = 0;
	rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 2 * S);
	lists = r->fake.lists;
	rig_run(r, 10 * S); /* somebody is there */
	assert_in_range(r->fake.lists - lists, 99, 101);
	rig_end(r);
}

/* Its descriptor would be readable for ever. */
static void news_are_taken_also_while_nobody_is_met(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	uint32_t asked;

	fake_give_news(&r->fake);
	rig_held(r, &online, &offline);
	scheduler_pause(r->s); /* and what is held is still to be resumed */
	asked = r->fake.came_asked;
	r->fake.came = 1;
	rig_turn(r);
	assert_true(r->fake.came_asked > asked);
	rig_run(r, S);
	scheduler_continue(r->s);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_told_of_does_not_wait_for_a_scan),
		cmocka_unit_test(who_is_there_already_is_not_met_again),
		cmocka_unit_test(between_scans_a_user_has_no_more_newcomers_than_in_one),
		cmocka_unit_test(with_nobody_there_who_is_told_of_scans_are_rare),
		cmocka_unit_test(news_are_taken_also_while_nobody_is_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
