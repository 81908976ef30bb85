/* SPDX-License-Identifier: MIT */
/* The driver's own reasons for a queue to be off, and ours, in any order: it runs without any. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/kfd.h"
#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)

/* ---- a debugger ---- */

struct debug_args {
	pid_t target;
	uint32_t ids[4], n;
	struct kfd_ioctl_dbg_trap_args a;
};

static int debugger_kfd = -1; /* the debugger's own */

static int trap(struct debug_args *d, uint32_t op)
{
	int r;

	d->a.pid = (uint32_t)d->target;
	d->a.op = op;
	r = ioctl(debugger_kfd, AMDKFD_IOC_DBG_TRAP, &d->a);
	return r < 0 ? -errno : r;
}

static int do_attach(void *arg)
{
	static struct kfd_queue_snapshot_entry queues[16];
	static struct kfd_runtime_info info;
	struct debug_args *d = arg;
	int ends[2], r;

	debugger_kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (debugger_kfd < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) ||
	    ptrace(PTRACE_SEIZE, d->target, 0, 0))
		return -errno;
	d->a.enable = (struct kfd_ioctl_dbg_trap_enable_args){
		.exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
		.rinfo_ptr = (uintptr_t)&info,
		.rinfo_size = sizeof(info),
		.dbg_fd = (uint32_t)ends[1],
	};
	r = trap(d, KFD_IOC_DBG_TRAP_ENABLE);
	if (r)
		return r;
	d->a.queue_snapshot = (struct kfd_ioctl_dbg_trap_queue_snapshot_args){
		.exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
		.snapshot_buf_ptr = (uintptr_t)queues,
		.num_queues = 16,
		.entry_size = sizeof(*queues),
	};
	return trap(d, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT);
}

static int do_suspend(void *arg)
{
	struct debug_args *d = arg;

	d->a.suspend_queues = (struct kfd_ioctl_dbg_trap_suspend_queues_args){
		.queue_array_ptr = (uintptr_t)d->ids,
		.num_queues = d->n,
		.grace_period = KFD_GRACE_KEEP_DEFAULT,
	};
	return trap(d, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES);
}

static int do_resume(void *arg)
{
	struct debug_args *d = arg;

	d->a.resume_queues = (struct kfd_ioctl_dbg_trap_resume_queues_args){
		.queue_array_ptr = (uintptr_t)d->ids,
		.num_queues = d->n,
	};
	return trap(d, KFD_IOC_DBG_TRAP_RESUME_QUEUES);
}

struct debugged {
	struct actor *a, *debugger;
	struct debug_args *d;
};

static struct debugged debugged(void)
{
	struct debugged r = {
		.a = job_with_runtime(2),
		.debugger = actor(0),
		.d = shared(sizeof(*r.d)),
	};

	r.d->target = r.a->pid;
	r.d->n = 2;
	for (unsigned int i = 0; i < 2; i++)
		r.d->ids[i] = queue_id(r.a, i);
	expect_is("attach", in(r.debugger, do_attach, r.d), 0);
	give(r.a, 80);
	return r;
}

static void suspended_while_held(void)
{
	struct debugged s = debugged();
	int fd = open_ext();

	expect_is("hold", hold(fd, s.a), 0);
	expect_is("suspend", in(s.debugger, do_suspend, s.d), 2);
	expect_stands(s.a);
	expect_is("flags", queue_stats(fd, s.a, 0).flags,
		  KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_MINE |
			  KFD_GPREEMPT_QUEUE_SUSPENDED);
	expect_is("let go", let_go(fd, s.a), 0);
	expect_stands(s.a);
	expect_is("resume", in(s.debugger, do_resume, s.d), 2);
	expect_runs(s.a);
	expect_is("hold", hold(fd, s.a), 0);
	expect_is("suspend", in(s.debugger, do_suspend, s.d), 2);
	expect_is("resume", in(s.debugger, do_resume, s.d), 2);
	expect_stands(s.a);
	close_ext(fd);
	expect_all_done(s.a);
}

static void held_while_suspended(void)
{
	struct debugged s = debugged();
	int fd = open_ext();
	struct meter m;

	expect_is("suspend", in(s.debugger, do_suspend, s.d), 2);
	m = meter(0);
	expect_is("hold", hold(fd, s.a), 0);
	expect_no_work(m, 0);
	expect_is("resume", in(s.debugger, do_resume, s.d), 2);
	expect_stands(s.a);
	expect_is("suspend", in(s.debugger, do_suspend, s.d), 2);
	expect_is("let go", let_go(fd, s.a), 0);
	expect_stands(s.a);
	expect_is("hold", hold(fd, s.a), 0);
	kill_actor(s.debugger);
	expect_stands(s.a);
	expect_is("let go", let_go(fd, s.a), 0);
	expect_all_done(s.a);
}

static void one_of_two_suspended(void)
{
	struct debugged s = debugged();
	int fd = open_ext();

	s.d->n = 1;
	expect_is("suspend", in(s.debugger, do_suspend, s.d), 1);
	expect_is("hold", hold(fd, s.a), 0);
	expect_is("let go", let_go(fd, s.a), 0);
	expect_queue_runs(s.a, 1);
	expect_queue_stands(s.a, 0);
	expect_is("resume", in(s.debugger, do_resume, s.d), 1);
	expect_all_done(s.a);
}

/* ---- eviction, by a pause for CRIU ---- */

static void evicted_while_held(void)
{
	struct actor *a = job(2);
	int fd = open_ext();

	give(a, 80);
	expect_is("hold", hold(fd, a), 0);
	expect_is("pause", criu(a, KFD_CRIU_OP_PROCESS_INFO), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_stands(a);
	expect_is("unpause", criu(a, KFD_CRIU_OP_UNPAUSE), 0);
	expect_runs(a);
	expect_is("hold", hold(fd, a), 0);
	expect_is("pause", criu(a, KFD_CRIU_OP_PROCESS_INFO), 0);
	expect_is("unpause", criu(a, KFD_CRIU_OP_UNPAUSE), 0);
	expect_stands(a);
	close_ext(fd);
	expect_all_done(a);
}

static void held_while_evicted(void)
{
	struct actor *a = job(2);
	int fd = open_ext();
	struct meter m;

	give(a, 80);
	expect_is("pause", criu(a, KFD_CRIU_OP_PROCESS_INFO), 0);
	m = meter(0);
	expect_is("hold", hold(fd, a), 0);
	add_queues(a, 1, MK_AQL, 0);
	give_one(a, 2, 20);
	expect_no_work(m, 0);
	expect_is("unpause", criu(a, KFD_CRIU_OP_UNPAUSE), 0);
	expect_stands(a);
	expect_is("pause", criu(a, KFD_CRIU_OP_PROCESS_INFO), 0);
	expect_is("let go", let_go(fd, a), 0);
	expect_stands(a);
	expect_is("hold of one", hold_for(fd, a, 30), 0);
	let_pass(60);
	expect_stands(a);
	expect_is("unpause", criu(a, KFD_CRIU_OP_UNPAUSE), 0);
	expect_all_done(a);
}

/* ---- what the owner does ---- */

static void percent(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	give(a, 80);
	expect_is("hold", hold(fd, a), 0);
	expect_is("100 percent", set_percent(a, 0, 100), 0);
	expect_stands(a);
	expect_is("0 percent", set_percent(a, 0, 0), 0);
	expect_is("let go", let_go(fd, a), 0);
	expect_stands(a);
	expect_is("hold", hold(fd, a), 0);
	expect_is("50 percent", set_percent(a, 0, 50), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_runs(a);
	expect_is("0 percent", set_percent(a, 0, 0), 0);
	expect_is("hold of what is off", hold(fd, a), 0);
	expect_is("100 percent", set_percent(a, 0, 100), 0);
	expect_stands(a);
	close_ext(fd);
	expect_all_done(a);
}

static void cu_mask(void)
{
	struct actor *a = job(1);
	int fd = open_ext();

	give(a, 60);
	expect_is("hold", hold(fd, a), 0);
	expect_is("CU mask", set_cu_mask(a, 0, 3), 0);
	expect_stands(a);
	expect_is("let go", let_go(fd, a), 0);
	expect_runs(a);
	expect_is("CU mask", set_cu_mask(a, 0, UINT32_MAX), 0);
	expect_all_done(a);
}

const struct ext_case interplay_cases[] = {
	{ "a debugger suspends what is held", suspended_while_held, BOTH },
	{ "what a debugger suspended is held", held_while_suspended, BOTH },
	{ "a hold ends for what is suspended, too", one_of_two_suspended, BOTH },
	{ "what is held is evicted", evicted_while_held, BOTH },
	{ "what is evicted is held", held_while_evicted, BOTH },
	{ "the owner changes a held queue's share", percent, BOTH },
	{ "the owner changes a held queue's compute units", cu_mask, BOTH },
	{ 0 },
};
