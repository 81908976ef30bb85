/* SPDX-License-Identifier: MIT */
/* Debug calls, one function each. */
#include <errno.h>
#include <string.h>

#include "tests/conformance/case.h"

#define SESSION_IDS 64

int runtime(struct who who, uint32_t mode)
{
	struct kfd_ioctl_runtime_enable_args args = { .mode_mask = mode };

	return call(who, AMDKFD_IOC_RUNTIME_ENABLE, &args);
}

int dbg(struct who by, pid_t pid, uint32_t op, struct kfd_ioctl_dbg_trap_args *args)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return call(by, AMDKFD_IOC_DBG_TRAP, args);
}

int dbg_plain(struct who by, struct actor *target, uint32_t op)
{
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	return dbg(by, target->pid, op, &args);
}

int enable_info(struct who by, struct actor *target, uint64_t mask, struct kfd_runtime_info *ret)
{
	struct kfd_runtime_info *info = arena(by.actor->w, sizeof(*info));
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.exception_mask = mask,
			.rinfo_ptr = (uintptr_t)info,
			.rinfo_size = sizeof(*info),
			.dbg_fd = (uint32_t)by.actor->w->pipes[0][1],
		},
	};
	int r = dbg(by, target->pid, KFD_IOC_DBG_TRAP_ENABLE, &args);

	*ret = *info;
	return r;
}

int enable(struct who by, struct actor *target, uint64_t mask)
{
	struct kfd_runtime_info ignored;

	return enable_info(by, target, mask, &ignored);
}

int disable(struct who by, struct actor *target)
{
	return dbg_plain(by, target, KFD_IOC_DBG_TRAP_DISABLE);
}

int suspend(struct who by, struct actor *target, uint32_t *ids, uint32_t n, uint32_t grace)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = n,
			.grace_period = grace,
		},
	};

	return dbg(by, target->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);
}

int resume(struct who by, struct actor *target, uint32_t *ids, uint32_t n)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.resume_queues = { .queue_array_ptr = (uintptr_t)ids, .num_queues = n },
	};

	return dbg(by, target->pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES, &args);
}

int resume_all(struct who by, struct actor *target)
{
	return resume(by, target, NULL, 0);
}

int snapshot(struct who by, struct actor *target, uint64_t clear)
{
	size_t bytes = SESSION_IDS * sizeof(struct kfd_queue_snapshot_entry);
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.exception_mask = clear,
			.snapshot_buf_ptr = (uintptr_t)arena(by.actor->w, bytes),
			.num_queues = SESSION_IDS,
			.entry_size = sizeof(struct kfd_queue_snapshot_entry),
		},
	};
	int r = dbg(by, target->pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);

	return r < 0 ? r : (int)args.queue_snapshot.num_queues;
}

int send_runtime(struct who by, struct actor *target)
{
	struct kfd_ioctl_dbg_trap_args args = { .send_runtime_event.exception_mask = RUNTIME };

	return dbg(by, target->pid, KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT, &args);
}

int query_event(struct who by, struct actor *target, uint64_t clear,
		struct kfd_ioctl_dbg_trap_query_debug_event_args *ret)
{
	struct kfd_ioctl_dbg_trap_args args = { .query_debug_event.exception_mask = clear };
	int r = dbg(by, target->pid, KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT, &args);

	*ret = args.query_debug_event;
	return r;
}

int dots(struct world *w)
{
	char buf[256];
	ssize_t n = read(w->pipes[0][0], buf, sizeof(buf));

	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != '.')
			broken("the driver wrote 0x%02x", buf[i]);
	return n < 0 ? 0 : (int)n;
}

void say_active(const char *what, int r, struct who owner, uint32_t n)
{
	say(owner.actor->w, "%s %s active %s", what, text_of(r), active(owner, n));
}

void say_ids(struct world *w, const char *what, int r, const uint32_t *ids, size_t n)
{
	say(w, "%s %s ids %s", what, text_of(r), ids_text(ids, n));
}

void say_events(struct world *w, const char *what, int r)
{
	say(w, "%s %s events %d", what, text_of(r), dots(w));
}

struct session attached_unacknowledged(struct world *w, uint32_t n)
{
	struct session s = {
		.target = kfd_actor(w, "target"),
		.debugger = kfd_actor(w, "debugger"),
		.ids = arena(w, SESSION_IDS * sizeof(uint32_t)),
	};

	if (acquire_vm(s.target) < 0 || runtime(me(s.target), 1) < 0)
		broken("%s: no process to debug", w->case_name);
	add_queues(s.target, n);
	for (uint32_t i = 0; i < SESSION_IDS; i++)
		s.ids[i] = i;
	if (seize(me(s.debugger), s.target) < 0 ||
	    enable(me(s.debugger), s.target, NEW | DELETED | RUNTIME) < 0)
		broken("%s: no debugger", w->case_name);
	return s;
}

struct session attached(struct world *w, uint32_t n)
{
	struct session s = attached_unacknowledged(w, n);

	if (snapshot(me(s.debugger), s.target, NEW) != (int)n)
		broken("%s: not %u queues", w->case_name, n);
	dots(w);
	return s;
}
