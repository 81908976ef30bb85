/* SPDX-License-Identifier: MIT */
/* Many queues of many processes at once. */
#include <errno.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define REMAP KFD_GPREEMPT_FAST_REMAP
#define PROCESSES 10u

static void one_for_the_other(void)
{
	struct actor *a = job(2), *b = job(3);
	struct kfd_gpreempt_entry *e = entries(2);
	struct kfd_gpreempt_batch *s = batch(e, 1, 1);
	int fd = open_ext();
	struct meter m;

	give(a, 100);
	give(b, 100);
	expect_is("hold", hold(fd, a), 0);
	e[0] = *entry_of(b, ALL, ANY);
	e[1] = *entry_of(a, ALL, ANY);
	m = meter(0);
	expect_is("SWITCH", ext(fd, KFD_GPREEMPT_SWITCH, s), 2);
	expect_one_cycle(m, 0, 3, 2);
	expect_is("taken off", e[0].queues, 3);
	expect_is("put on", e[1].queues, 2);
	expect_is("cycles", s->cycles, machine.is_mes ? 0 : 1);
	expect_runs(a);
	expect_stands(b);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(b, ALL, ANY);
	m = meter(0);
	expect_is("SWITCH back", ext(fd, KFD_GPREEMPT_SWITCH, s), 2);
	expect_one_cycle(m, 0, 2, 3);
	expect_runs(b);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
	expect_all_done(b);
}

/* Off and on again in one call: it is on, and was not touched twice. */
static void off_and_on(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_entry *e = entries(2);
	int fd = open_ext();

	give(a, 40);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(a, ALL, ANY);
	expect_is("SWITCH", ext(fd, KFD_GPREEMPT_SWITCH, batch(e, 1, 1)), 2);
	expect_is("held", hqd(0).held, 0);
	expect_all_done(a);
}

static void many_processes(void)
{
	struct kfd_gpreempt_entry *e = entries(PROCESSES);
	struct actor *a[PROCESSES];
	int fd = open_ext();
	struct meter m;

	for (unsigned int i = 0; i < PROCESSES; i++) {
		a[i] = job(2);
		e[i] = *entry_of(a[i], ALL, ANY);
		give(a[i], 30);
	}
	m = meter(0);
	expect_is("unmap", ext(fd, UNMAP, batch(e, PROCESSES, 0)), PROCESSES);
	expect_one_cycle(m, 0, 2 * PROCESSES, 0);
	for (unsigned int i = 0; i < PROCESSES; i++)
		expect_is("taken off", e[i].queues, 2);
	m = meter(0);
	expect_is("remap", ext(fd, REMAP, batch(e, 0, PROCESSES)), PROCESSES);
	expect_one_cycle(m, 0, 0, 2 * PROCESSES);
	for (unsigned int i = 0; i < PROCESSES; i++)
		expect_all_done(a[i]);
}

static void over_subscribed(void)
{
	struct actor *a = job(26), *b = job(2);
	int fd = open_ext();
	struct meter m;

	give(a, 4);
	give(b, 60);
	m = meter(0);
	expect_is("hold", hold(fd, a), 0);
	expect_one_cycle(m, 0, 26, 0);
	expect_runs(b);
	give(a, 3);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
	expect_all_done(b);
}

static void selective(void)
{
	struct actor *a = job(3);
	struct kfd_gpreempt_entry *e = entries(2);
	struct kfd_gpreempt_batch *b = batch(e, 2, 0);
	int fd = open_ext();
	struct meter m;

	give(a, 80);
	e[0] = *entry_of(a, queue_id(a, 0), ANY);
	e[1] = *entry_of(a, queue_id(a, 2), ANY);
	b->flags = KFD_GPREEMPT_KEEP_MQD | KFD_GPREEMPT_KEEP_STATE;
	m = meter(0);
	expect_is("SELECTIVE_UNMAP", ext(fd, KFD_GPREEMPT_SELECTIVE_UNMAP, b), 2);
	expect_one_cycle(m, 0, 2, 0);
	expect_queue_stands(a, 0);
	expect_queue_runs(a, 1);
	expect_queue_stands(a, 2);
	b->flags = 0;
	expect_is("without flags", ext(fd, KFD_GPREEMPT_SELECTIVE_UNMAP, b), 2);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void kinds(void)
{
	struct actor *a = job(1);
	int fd = open_ext();
	struct meter m;

	add_queues(a, 2, MK_PM4, 0);
	add_queues(a, 2, MK_SDMA, 0);
	for (int i = 0; i < 5; i++) {
		give(a, 20);
		m = meter(0);
		expect_is("hold", hold(fd, a), 0);
		expect_one_cycle(m, 0, 5, 0);
		give(a, 20);
		expect_stands(a);
		expect_is("let go", let_go(fd, a), 0);
	}
	expect_all_done(a);
}

const struct ext_case switch_cases[] = {
	{ "one job for the other is one cycle", one_for_the_other, BOTH },
	{ "a queue that goes off and on in one call is on", off_and_on, BOTH },
	{ "ten processes are one cycle", many_processes, BOTH },
	{ "more queues than slots are one cycle", over_subscribed, BOTH },
	{ "some queues of a process are unmapped", selective, BOTH },
	{ "queues of all kinds are held", kinds, BOTH },
	{ 0 },
};
