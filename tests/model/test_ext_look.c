/* SPDX-License-Identifier: MIT */
/* What the extension tells: tickets, the state of a GPU, the queues of a process. */
#include <errno.h>

#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

static int collect(struct rig *r, uint64_t file, struct kfd_gpreempt_collect *a,
		   struct kfd_gpreempt_entry *entries, uint32_t n)
{
	a->entries = (uintptr_t)entries;
	a->n = n;
	return ext_ioctl(r, file, KFD_GPREEMPT_COLLECT, a);
}

static uint64_t unmap_async(struct rig *r, uint64_t file, struct kfd_gpreempt_entry *e, uint32_t n)
{
	struct kfd_gpreempt_batch b = ext_batch(e, n, 0);

	b.flags = KFD_GPREEMPT_ASYNC;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 0);
	assert_int_not_equal(b.ticket, 0);
	return b.ticket;
}

static void an_asynchronous_batch_is_a_ticket_that_can_be_collected_once(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	struct kfd_gpreempt_entry e[] = { ext_entry(TARGET, 0), ext_entry(TARGET, 9) };
	struct kfd_gpreempt_collect a = { 0 };
	uint64_t ticket;

	ticket = unmap_async(r, file, e, 2);
	a.ticket = ticket;
	assert_int_equal(collect(r, file, &a, e, 2), 0);
	assert_int_equal(a.ticket, ticket);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.cycles, 1);
	assert_true(a.fence_ns > 0);
	assert_int_equal(e[0].result, 0);
	assert_int_equal(e[0].queues, 1);
	assert_int_equal(e[1].result, -ENOENT);
	assert_int_equal(collect(r, file, &a, e, 2), -ENOENT);
}

static void tickets_can_be_collected_oldest_first(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2), first, second;
	struct kfd_gpreempt_entry e[2] = { ext_entry(TARGET, 0), ext_entry(TARGET, 1) };
	struct kfd_gpreempt_collect a = { 0 };

	assert_int_equal(collect(r, file, &a, e, 2), -EAGAIN);
	first = unmap_async(r, file, &e[0], 1);
	second = unmap_async(r, file, &e[1], 1);
	assert_int_equal(collect(r, file, &a, e, 0), -ENOSPC);
	assert_int_equal(collect(r, file, &a, e, 2), 0);
	assert_int_equal(a.ticket, first);
	a.ticket = 0;
	assert_int_equal(collect(r, file, &a, e, 2), 0);
	assert_int_equal(a.ticket, second);
}

static void a_file_has_room_for_so_many_tickets(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_entry e = ext_entry(TARGET, 0);
	struct kfd_gpreempt_batch b = ext_batch(&e, 1, 0);
	struct kfd_gpreempt_collect a = { 0 };

	for (uint32_t i = 0; i < KFD_GPREEMPT_MAX_TICKETS; i++)
		unmap_async(r, file, &e, 1);
	b.flags = KFD_GPREEMPT_ASYNC;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), -ENOSPC);
	assert_int_equal(collect(r, file, &a, &e, 1), 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b), 0);
}

static void a_batch_that_takes_too_long_becomes_a_ticket(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 5 * NSEC_PER_MSEC };
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_one one = ext_one(TARGET, 0);
	struct kfd_gpreempt_entry e = { 0 };
	struct kfd_gpreempt_collect a = { 0 };

	one.timeout_ms = 2;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_PREEMPT_QUEUE, &one), 0);
	assert_int_equal(one.ticket, 0);
	model_fault_set(r->m, &slow);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_RESUME_QUEUE, &one), 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_PREEMPT_QUEUE, &one), -ETIME);
	assert_int_not_equal(one.ticket, 0);
	a.ticket = one.ticket;
	assert_int_equal(collect(r, file, &a, &e, 1), 0);
	assert_int_equal(a.done, 1);
	assert_true(a.took_ns >= 5 * NSEC_PER_MSEC);
}

static void the_state_of_a_gpu_counts_what_is_held(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 3);
	struct kfd_gpreempt_stop stop = { .gpu_id = model_gpu_id(r->m, 0) };
	struct kfd_gpreempt_hqd h;

	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	h = ext_hqd(r, file, 0);
	assert_int_equal(h.total, model_chip_of(r->m)->n_cp_queues);
	assert_int_equal(h.active_compute, 2);
	assert_int_equal(h.active, 3);
	assert_int_equal(h.active_sum, 3);
	assert_int_equal(h.queues, 4);
	assert_int_equal(h.processes, 1);
	assert_int_equal(h.held, 1);
	assert_int_equal(h.flags, 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_STOP_SCHED, &stop), 0);
	assert_int_equal(ext_hqd(r, file, 0).flags, KFD_GPREEMPT_HQD_STOPPED);
	assert_int_equal(ext_hqd(r, file, 0).held, 4);
	h.gpu_id = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_HQD_STATUS, &h), -ENODEV);
}

static void the_state_of_a_gpu_tells_its_scheduler(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(ext_hqd(r, file, 0).flags, KFD_GPREEMPT_HQD_MES);
}

static void a_queue_tells_who_holds_it_and_how_often(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), other = ext_open(r, r->second);
	struct kfd_gpreempt_queue q = ext_stats(r, file, TARGET, 0);

	assert_int_equal(q.flags, KFD_GPREEMPT_QUEUE_ACTIVE);
	assert_int_equal(q.gpu_id, model_gpu_id(r->m, 0));
	assert_int_equal(q.type, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(q.priority, 7);
	assert_int_equal(q.preemptions + q.preempted_by + q.held_ns + q.last_latency_ns, 0);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(ext_own_unmap(r, TARGET, 0), 0);
	model_advance(r->m, NSEC_PER_MSEC);
	q = ext_stats(r, file, TARGET, 0);
	assert_int_equal(q.flags, KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_HELD_SELF |
					  KFD_GPREEMPT_QUEUE_MINE);
	assert_int_equal(q.preemptions, 1);
	assert_int_equal(q.preempted_by, DAEMON);
	assert_true(q.held_ns >= NSEC_PER_MSEC);
	assert_true(q.last_latency_ns > 0);
	assert_int_equal(q.last_latency_ns, q.max_latency_ns);
	assert_false(ext_stats(r, other, TARGET, 0).flags & KFD_GPREEMPT_QUEUE_MINE);
}

/* Whom to end for it to run: the holder, also of what was made later or stopped before. */
static void whoever_keeps_a_queue_off_is_named(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), other = ext_open(r, r->second);
	struct kfd_gpreempt_stop stop = { .gpu_id = model_gpu_id(r->m, 0) };

	assert_int_equal(ext_own_unmap(r, TARGET, 0), 0);
	assert_int_equal(ext_stats(r, file, TARGET, 0).preempted_by, TARGET);
	assert_int_equal(ext_ioctl(r, other, KFD_GPREEMPT_STOP_SCHED, &stop), 0);
	assert_int_equal(ext_stats(r, file, TARGET, 0).preempted_by, r->second.pid);
	assert_int_equal(ext_unmap(r, file, TARGET, KFD_GPREEMPT_ALL_QUEUES, NULL), 0);
	assert_int_equal(ext_stats(r, file, TARGET, 0).preempted_by, DAEMON);
	model_ext_close(r->m, file);
	assert_int_equal(ext_stats(r, other, TARGET, 0).preempted_by, r->second.pid);
}

static void the_longest_latency_is_remembered(void **state)
{
	struct rig *r = *state;
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = 5 * NSEC_PER_MSEC };
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_queue q;

	model_fault_set(r->m, &slow);
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	assert_int_equal(ext_map(r, file, TARGET, 0, NULL), 0);
	model_fault_set(r->m, &(struct model_fault){ .kind = MODEL_FAULT_NONE });
	assert_int_equal(ext_unmap(r, file, TARGET, 0, NULL), 0);
	q = ext_stats(r, file, TARGET, 0);
	assert_true(q.max_latency_ns >= 5 * NSEC_PER_MSEC);
	assert_true(q.last_latency_ns < NSEC_PER_MSEC);
	assert_int_equal(q.preemptions, 2);
}

static void queues_are_counted_beyond_the_room_for_them(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 3);
	struct kfd_gpreempt_queue queues[2] = { 0 };
	struct kfd_gpreempt_stats a = { .pid = TARGET, .n = 1, .queues = (uintptr_t)queues };

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_STATS, &a), 0);
	assert_int_equal(a.n, 3);
	assert_int_equal(queues[1].ring_bytes, 0);
	a.queues = BAD_POINTER;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_STATS, &a), -EFAULT);
	a.pid = 4711;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_STATS, &a), -ESRCH);
	a = (struct kfd_gpreempt_stats){ .n = 0 };
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_GET_STATS, &a), 0);
	assert_int_equal(a.n, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup_ext, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_asynchronous_batch_is_a_ticket_that_can_be_collected_once),
		CASE(tickets_can_be_collected_oldest_first),
		CASE(a_file_has_room_for_so_many_tickets),
		CASE(a_batch_that_takes_too_long_becomes_a_ticket),
		CASE(the_state_of_a_gpu_counts_what_is_held),
		cmocka_unit_test_setup_teardown(the_state_of_a_gpu_tells_its_scheduler,
						rig_setup_ext_mes, rig_teardown),
		CASE(a_queue_tells_who_holds_it_and_how_often),
		CASE(whoever_keeps_a_queue_off_is_named),
		CASE(the_longest_latency_is_remembered),
		CASE(queues_are_counted_beyond_the_room_for_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
