/* SPDX-License-Identifier: MIT */
/* What is told about GPUs and queues. */
#include <errno.h>
#include <unistd.h>

#include "abi/kfd.h"
#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)

static void of_gpus(void)
{
	struct kfd_gpreempt_hqd h = { .gpu_id = 12345 };
	struct actor *a;
	int fd = open_ext();

	expect_is("no such GPU", ext(fd, KFD_GPREEMPT_GET_HQD_STATUS, &h), -ENODEV);
	h = hqd(0);
	expect(h.total > 0 && h.total <= 32, "%u slots", h.total);
	expect(!h.active && !h.queues && !h.processes && !h.held, "an idle GPU has %u queues",
	       h.queues);
	a = job(2);
	add_queues(a, 1, MK_SDMA, 0);
	h = hqd(0);
	expect_is("queues", h.queues, 3);
	expect_is("active", h.active, 3);
	expect_is("compute", h.active_compute, 2);
	expect_is("processes", h.processes, 1);
	expect_is("held", h.held, 0);
	expect_is("MES", !!(h.flags & KFD_GPREEMPT_HQD_MES), machine.is_mes);
	expect_is("other flags", h.flags & ~KFD_GPREEMPT_HQD_MES, 0);
	expect_is("hold", hold(fd, a), 0);
	h = hqd(0);
	expect_is("queues", h.queues, 3);
	expect_is("active", h.active, 0);
	expect_is("compute", h.active_compute, 0);
	expect_is("held", h.held, 3);
}

static void over_subscribed(void)
{
	struct actor *a = job(hqd(0).total + 2);
	int fd = open_ext();

	expect(hqd(0).flags & KFD_GPREEMPT_HQD_OVERSUBSCRIBED, "it is not told");
	expect_is("hold", hold(fd, a), 0);
	add_queues(job(1), 1, MK_AQL, 0);
	expect(!(hqd(0).flags & KFD_GPREEMPT_HQD_OVERSUBSCRIBED), "it is still told");
}

static void of_queues(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_queue q;
	int fd = open_ext(), other = open_ext();
	uint64_t before;

	q = queue_stats(fd, a, 0);
	expect(q.ring_base && q.write_ptr && q.read_ptr && q.cwsr_base && q.cwsr_bytes,
	       "an address is missing");
	expect_is("GPU", q.gpu_id, (long)machine.gpu_ids[0]);
	expect_is("ring", q.ring_bytes, MK_SLOTS * 64);
	expect_is("type", q.type, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	expect_is("priority", q.priority, 7);
	expect_is("percent", q.percent, 100);
	expect_is("flags", q.flags, KFD_GPREEMPT_QUEUE_ACTIVE);
	expect(!q.preemptions && !q.preempted_by && !q.held_ns && !q.last_latency_ns,
	       "it was never preempted");
	expect_is("hold", hold(fd, a), 0);
	let_pass(20);
	q = queue_stats(fd, a, 0);
	expect_is("flags", q.flags, KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_MINE);
	expect_is("preemptions", q.preemptions, 1);
	expect_is("by", q.preempted_by, getpid());
	expect(q.held_ns >= 20000000 && q.held_ns < 2000000000, "held for %llu ns",
	       (unsigned long long)q.held_ns);
	expect(q.last_latency_ns && q.last_latency_ns == q.max_latency_ns &&
		       q.last_latency_ns < q.held_ns,
	       "latency %llu ns", (unsigned long long)q.last_latency_ns);
	expect_is("flags for others", queue_stats(other, a, 0).flags, KFD_GPREEMPT_QUEUE_HELD);
	expect_is("let go", let_go(fd, a), 0);
	before = queue_stats(fd, a, 0).held_ns;
	let_pass(10);
	q = queue_stats(fd, a, 0);
	expect(q.held_ns == before && before >= 20000000, "held for %llu ns, then %llu",
	       (unsigned long long)before, (unsigned long long)q.held_ns);
	expect_is("flags", q.flags, KFD_GPREEMPT_QUEUE_ACTIVE);
	expect_is("hold", hold(fd, a), 0);
	q = queue_stats(fd, a, 0);
	expect_is("preemptions", q.preemptions, 2);
	expect(q.max_latency_ns >= q.last_latency_ns, "the longest is shorter than the last");
}

static void flags(void)
{
	struct actor *a = job(1);
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[0], .hold_ms = 10000 };
	int fd = open_ext();

	expect_is("hold", hold_self(a), 0);
	expect_is("of its own", queue_stats(fd, a, 0).flags, KFD_GPREEMPT_QUEUE_HELD_SELF);
	expect_is("by", queue_stats(fd, a, 0).preempted_by, a->pid);
	expect_is("STOP_SCHED", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), 0);
	expect_is("stopped", queue_stats(fd, a, 0).flags,
		  KFD_GPREEMPT_QUEUE_HELD_SELF | KFD_GPREEMPT_QUEUE_STOPPED);
	expect_is("by who stopped it", queue_stats(fd, a, 0).preempted_by, getpid());
	expect_is("CRIU", criu(a, KFD_CRIU_OP_PROCESS_INFO), 0);
	expect_is("evicted", queue_stats(fd, a, 0).flags,
		  KFD_GPREEMPT_QUEUE_HELD_SELF | KFD_GPREEMPT_QUEUE_STOPPED |
			  KFD_GPREEMPT_QUEUE_EVICTED);
	close_ext(fd);
	fd = open_ext();
	expect_is("let go", let_go_self(a), 0);
	expect_is("evicted", queue_stats(fd, a, 0).flags, KFD_GPREEMPT_QUEUE_EVICTED);
	expect_is("CRIU", criu(a, KFD_CRIU_OP_UNPAUSE), 0);
	expect_is("active", queue_stats(fd, a, 0).flags, KFD_GPREEMPT_QUEUE_ACTIVE);
}

static void room(void)
{
	static struct kfd_gpreempt_queue queues[4];
	struct actor *a = job(3);
	struct kfd_gpreempt_stats s = { .pid = (uint32_t)a->pid, .queues = (uintptr_t)queues };
	int fd = open_ext();

	expect_is("no room", ext(fd, KFD_GPREEMPT_GET_STATS, &s), 0);
	expect_is("queues", s.n, 3);
	queues[2].queue_id = 77;
	s.n = 2;
	expect_is("room for two", ext(fd, KFD_GPREEMPT_GET_STATS, &s), 0);
	expect_is("queues", s.n, 3);
	expect_is("behind them", queues[2].queue_id, 77);
	s.n = UINT32_MAX;
	expect_is("room for all", ext(fd, KFD_GPREEMPT_GET_STATS, &s), 0);
	expect_is("queues", s.n, 3);
	s.start_ticks = 1;
	expect_is("another start", ext(fd, KFD_GPREEMPT_GET_STATS, &s), -ESRCH);
	s.start_ticks = start_ticks_of(a->pid);
	expect_is("its start", ext(fd, KFD_GPREEMPT_GET_STATS, &s), 0);
	s.pid = 0;
	expect_is("nobody", ext(fd, KFD_GPREEMPT_GET_STATS, &s), -ESRCH);
}

const struct ext_case look_cases[] = {
	{ "the books of a GPU are told", of_gpus, BOTH },
	{ "over-subscription is told", over_subscribed, ON_CP },
	{ "what became of a queue is told", of_queues, BOTH },
	{ "why a queue is off is told", flags, BOTH },
	{ "queues are told as far as there is room", room, BOTH },
	{ 0 },
};
