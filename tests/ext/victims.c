/* SPDX-License-Identifier: MIT */
/* Only the victims leave the GPU. */
#include <errno.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define PROCESSES 7u /* with one more all that can be on a GPU at a time */
#define ALLOWED "gpreempt_victims_only"

/* Its queues stay on the GPU for as long as one looks. */
struct bystander {
	struct actor *a;
	uint64_t maps, unmaps;
};

static struct bystander bystander(unsigned int n)
{
	struct bystander b = { .a = job(n) };

	give(b.a, 900);
	return b;
}

static void begin(struct bystander *b)
{
	process_counters(0, b->a->pid, &b->maps, &b->unmaps);
}

static void expect_untouched(const struct bystander *b)
{
	uint64_t maps, unmaps;

	process_counters(0, b->a->pid, &maps, &unmaps);
	expect(maps == b->maps && unmaps == b->unmaps, "another job's queues were unmapped: %llu",
	       (unsigned long long)(unmaps - b->unmaps));
	expect_runs(b->a);
}

static struct kfd_gpreempt_batch *victims(struct kfd_gpreempt_entry *e, unsigned int n)
{
	struct kfd_gpreempt_batch *b = batch(e, n, 0);

	b->flags = KFD_GPREEMPT_VICTIMS_ONLY;
	return b;
}

static void expect_packets(struct meter before, unsigned int unmaps)
{
	struct meter m = since(before, 0);

	if (!machine.is_mes)
		expect_is("UNMAP_QUEUES", (long)m.unmaps, unmaps);
	expect_is("RUN_LIST", (long)m.runlists, 0);
	expect_is("queues mapped", (long)m.map_queues, 0);
}

static void not_allowed(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_version v;
	struct kfd_gpreempt_one *o = one(a, ALL);
	int fd = open_ext();

	set_parameter(ALLOWED, "N");
	expect_is("GET_VERSION", ext(fd, KFD_GPREEMPT_GET_VERSION, &v), 0);
	expect_is("ability", v.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY, 0);
	expect_is("unmap", ext(fd, UNMAP, victims(entry_of(a, ALL, ANY), 1)), -EOPNOTSUPP);
	o->flags = KFD_GPREEMPT_VICTIMS_ONLY;
	expect_is("PREEMPT_QUEUE", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), -EOPNOTSUPP);
	set_parameter(ALLOWED, "Y");
	expect_is("GET_VERSION", ext(fd, KFD_GPREEMPT_GET_VERSION, &v), 0);
	expect(v.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY, "the ability is not told");
	expect_is("PREEMPT_QUEUE", ext(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o), 0);
	set_parameter(ALLOWED, "N");
}

static void by_process(void)
{
	struct bystander online = bystander(3);
	struct actor *a = job(3), *b = job(2);
	struct kfd_gpreempt_entry *e = entries(2);
	struct kfd_gpreempt_batch *v = victims(e, 2);
	int fd = open_ext();
	struct meter m;

	set_parameter(ALLOWED, "Y");
	add_queues(b, 1, MK_SDMA, 0);
	give(a, 300);
	give(b, 300);
	e[0] = *entry_of(a, ALL, ANY);
	e[1] = *entry_of(b, ALL, ANY);
	begin(&online);
	m = meter(0);
	expect_is("unmap", ext(fd, UNMAP, v), 2);
	expect_packets(m, 2);
	expect_is("cycles", v->cycles, 0);
	expect_is("victims", v->victims, 1);
	expect_untouched(&online);
	expect_stands(a);
	give(b, 5);
	expect_stands(b);
	expect_is("let go", let_go(fd, a), 0);
	expect_is("let go", let_go(fd, b), 0);
	expect_all_done(a);
	expect_all_done(b);
}

static void by_doorbells(void)
{
	struct bystander online = bystander(2);
	struct actor *a = job(7);
	struct kfd_gpreempt_entry *e = entries(6);
	int fd = open_ext();
	struct meter m;

	set_parameter(ALLOWED, "Y");
	give(a, 400);
	for (unsigned int i = 0; i < 6; i++)
		e[i] = *entry_of(a, queue_id(a, i), ANY);
	begin(&online);
	m = meter(0);
	expect_is("unmap", ext(fd, UNMAP, victims(e, 6)), 6);
	expect_packets(m, 2);
	expect_untouched(&online);
	for (unsigned int i = 0; i < 6; i++)
		expect_queue_stands(a, i);
	expect_queue_runs(a, 6);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

/* The next run list must not bring them back. */
static void stay_off(void)
{
	struct bystander online = bystander(1);
	struct actor *a = job(3);
	struct kfd_gpreempt_entry *e = entry_of(a, queue_id(a, 1), ANY);
	int fd = open_ext();

	set_parameter(ALLOWED, "Y");
	give(a, 600);
	expect_is("unmap", ext(fd, UNMAP, victims(e, 1)), 1);
	add_queues(online.a, 1, MK_AQL, 0);
	expect_queue_stands(a, 1);
	expect_queue_runs(a, 0);
	destroy_queue(a, 0);
	expect_queue_stands(a, 1);
	expect_is("the rest", ext(fd, UNMAP, victims(entry_of(a, ALL, ANY), 1)), 1);
	expect_stands(a);
	destroy_queue(a, 1);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_all_done(a);
}

static void with_grace(void)
{
	struct bystander online = bystander(1);
	struct actor *a = job(1);
	struct kfd_gpreempt_batch *v = victims(entry_of(a, ALL, ANY), 1);
	int fd = open_ext();
	uint64_t writes = counter(0, "write_data");

	set_parameter(ALLOWED, "Y");
	give(a, 60);
	v->grace = 3;
	begin(&online);
	expect_is("unmap", ext(fd, UNMAP, v), 1);
	expect_untouched(&online);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_is("register written", (long)(counter(0, "write_data") - writes), 2);
	expect_all_done(a);
}

static void over_subscribed(void)
{
	struct actor *a = job(26), *b = job(1);
	struct kfd_gpreempt_batch *v = victims(entry_of(b, ALL, ANY), 1);
	int fd = open_ext();
	struct meter m = meter(0);

	set_parameter(ALLOWED, "Y");
	give(b, 60);
	expect_is("unmap", ext(fd, UNMAP, v), 1);
	expect_one_cycle(m, 0, 1, 0);
	expect_is("cycles", v->cycles, 1);
	expect_is("victims", v->victims, 0);
	expect_stands(b);
	give(a, 2);
	expect_all_done(a);
	expect_is("let go", let_go(fd, b), 0);
	expect_all_done(b);
}

static void with_mapping(void)
{
	struct actor *a = job(1), *b = job(1);
	struct kfd_gpreempt_entry *e = entries(2);
	struct kfd_gpreempt_batch *v = batch(e, 1, 1);
	int fd = open_ext();
	struct meter m;

	set_parameter(ALLOWED, "Y");
	give(a, 60);
	expect_is("hold", hold(fd, a), 0);
	e[0] = *entry_of(b, ALL, ANY);
	e[1] = *entry_of(a, ALL, ANY);
	v->flags = KFD_GPREEMPT_VICTIMS_ONLY;
	m = meter(0);
	expect_is("SWITCH", ext(fd, KFD_GPREEMPT_SWITCH, v), 2);
	expect_one_cycle(m, 0, 1, 1);
	expect_is("cycles", v->cycles, 1);
	expect_all_done(a);
}

static void many_processes(void)
{
	struct kfd_gpreempt_entry *e = entries(PROCESSES);
	struct actor *a[PROCESSES];
	struct bystander online = bystander(1);
	struct meter m;
	int fd;

	set_parameter(ALLOWED, "Y");
	for (unsigned int i = 0; i < PROCESSES; i++) {
		a[i] = job(1);
		e[i] = *entry_of(a[i], ALL, ANY);
	}
	fd = open_ext(); /* of which they have no copy */
	begin(&online);
	m = meter(0);
	expect_is("unmap", ext(fd, UNMAP, victims(e, PROCESSES)), PROCESSES);
	expect_packets(m, PROCESSES);
	expect_untouched(&online);
	close_ext(fd);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		give(a[i], 3);
		expect_all_done(a[i]);
	}
}

const struct ext_case victim_cases[] = {
	{ "victims only has to be allowed", not_allowed, BOTH },
	{ "victims only: a process a packet, nobody else is touched", by_process, BOTH },
	{ "victims only: four queues a packet, nobody else is touched", by_doorbells, BOTH },
	{ "victims only: the next run list does not bring them back", stay_off, BOTH },
	{ "victims only: the grace is used and is gone afterwards", with_grace, ON_CP },
	{ "victims only: not where over-subscribed", over_subscribed, ON_CP },
	{ "victims only: not where others are mapped", with_mapping, ON_CP },
	{ "victims only: several processes", many_processes, BOTH },
	{ 0 },
};
