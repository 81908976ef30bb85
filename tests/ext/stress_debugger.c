/* SPDX-License-Identifier: MIT */
/* A debugger of one target: it suspends queues and goes, resuming them or not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "abi/kfd.h"
#include "tests/ext/stress.h"

#define LONGEST_MS 20

static int trap(int kfd, struct kfd_ioctl_dbg_trap_args *a, pid_t pid, uint32_t op)
{
	a->pid = (uint32_t)pid;
	a->op = op;
	return ioctl(kfd, AMDKFD_IOC_DBG_TRAP, a);
}

static bool enable(int kfd, pid_t pid)
{
	struct kfd_runtime_info info = { 0 };
	struct kfd_ioctl_dbg_trap_args a = {
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int fds[2];

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		return false;
	a.enable.dbg_fd = (uint32_t)fds[1];
	return !trap(kfd, &a, pid, KFD_IOC_DBG_TRAP_ENABLE);
}

/* How many there are; new queues count as seen and can be suspended. */
static uint32_t snapshot(int kfd, pid_t pid, uint32_t *ids)
{
	struct kfd_queue_snapshot_entry qs[STRESS_QUEUES] = { 0 };
	struct kfd_ioctl_dbg_trap_args a = {
		.queue_snapshot = {
			.exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
			.snapshot_buf_ptr = (uintptr_t)qs,
			.num_queues = STRESS_QUEUES,
			.entry_size = sizeof(qs[0]),
		},
	};

	if (trap(kfd, &a, pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT))
		return 0;
	for (uint32_t i = 0; i < STRESS_QUEUES; i++)
		ids[i] = qs[i].queue_id;
	return a.queue_snapshot.num_queues < STRESS_QUEUES ? a.queue_snapshot.num_queues :
							     STRESS_QUEUES;
}

static void suspend(struct world *w, int kfd, pid_t pid)
{
	uint32_t ids[STRESS_QUEUES];
	struct kfd_ioctl_dbg_trap_args a = { 0 };

	a.suspend_queues.num_queues = snapshot(kfd, pid, ids);
	a.suspend_queues.queue_array_ptr = (uintptr_t)ids;
	a.suspend_queues.grace_period = 1;
	if (a.suspend_queues.num_queues && trap(kfd, &a, pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES) > 0)
		atomic_fetch_add(&w->suspends, 1);
}

static void resume(int kfd, pid_t pid)
{
	uint32_t ids[STRESS_QUEUES];
	struct kfd_ioctl_dbg_trap_args a = { 0 };

	a.resume_queues.num_queues = snapshot(kfd, pid, ids);
	a.resume_queues.queue_array_ptr = (uintptr_t)ids;
	trap(kfd, &a, pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES);
}

_Noreturn void stress_debugger(struct world *w, unsigned int seed)
{
	unsigned int slot = stress_below(&seed, STRESS_TARGETS);
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	struct kfd_ioctl_dbg_trap_args a = { 0 };
	bool enabled;
	pid_t pid;

	if (kfd < 0 || !stress_enter(w, slot, DOOR_DEBUGGER))
		_exit(0);
	pid = atomic_load(&w->targets[slot].pid);
	enabled = pid && !ptrace(PTRACE_SEIZE, pid, NULL, NULL) && enable(kfd, pid);
	atomic_store(&w->targets[slot].door, DOOR_OPEN);
	if (!enabled)
		_exit(0);
	atomic_fetch_add(&w->sessions, 1);
	suspend(w, kfd, pid);
	poll(NULL, 0, (int)stress_below(&seed, LONGEST_MS));
	if (stress_below(&seed, 2))
		resume(kfd, pid);
	if (stress_below(&seed, 2))
		trap(kfd, &a, pid, KFD_IOC_DBG_TRAP_DISABLE);
	_exit(0);
}
