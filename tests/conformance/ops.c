/* SPDX-License-Identifier: MIT */
#include "tests/conformance/ops.h"

static const char *const op_names[] = {
	"enable",     "disable",     "send_runtime", "set_exceptions",
	"override",   "launch_mode", "suspend",	     "resume",
	"watch",      "unwatch",     "flags",	     "query_event",
	"query_info", "queues",	     "devices",	     "15",
};

static void fill(struct world *w, uint32_t op, struct kfd_ioctl_dbg_trap_args *a)
{
	switch (op) {
	case KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED:
		a->set_exceptions_enabled.exception_mask = NEW | DELETED;
		break;
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		a->suspend_queues.queue_array_ptr = (uintptr_t)arena(w, 64);
		a->suspend_queues.num_queues = 1;
		break;
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		a->resume_queues.queue_array_ptr = (uintptr_t)arena(w, 64);
		a->resume_queues.num_queues = 1;
		break;
	case KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH:
		a->set_node_address_watch.gpu_id = gpu_id(w);
		a->set_node_address_watch.address = 0x10000;
		break;
	case KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH:
		a->clear_node_address_watch.gpu_id = gpu_id(w);
		break;
	case KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO:
		a->query_exception_info.info_ptr = (uintptr_t)arena(w, 64);
		a->query_exception_info.info_size = 64;
		a->query_exception_info.exception_code = EC_PROCESS_RUNTIME;
		break;
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		a->queue_snapshot.snapshot_buf_ptr = (uintptr_t)arena(w, 1024);
		a->queue_snapshot.num_queues = 16;
		a->queue_snapshot.entry_size = 64;
		break;
	case KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT:
		a->device_snapshot.snapshot_buf_ptr = (uintptr_t)arena(w, 1024);
		a->device_snapshot.num_devices = 8;
		a->device_snapshot.entry_size = 120;
		break;
	default:
		break;
	}
}

/* "-EPERM" for all, else "0 (suspend resume), -EAGAIN (query_event)" in order of appearance. */
static void say_grouped(struct world *w, const char *what, const int *results, const uint32_t *ops,
			size_t n)
{
	bool said[ARRAY_SIZE(op_names)] = { 0 };
	char line[512];
	size_t at = 0, left = n;

	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		if (said[i])
			continue;
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s", at ? "), " : "",
				       text_of(results[i]));
		for (size_t k = i; k < n; k++)
			same += results[k] == results[i];
		if (same == n)
			break;
		for (size_t k = i; k < n; k++) {
			if (results[k] != results[i])
				continue;
			said[k] = true;
			at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s",
					       k == i ? " (" : " ", op_names[ops[k]]);
			left--;
		}
	}
	say(w, "%s: %s%s", what, line, left == n ? "" : ")");
}

void say_ops(struct who by, struct actor *target, enum ops_how how, bool disable_too,
	     const char *what)
{
	uint32_t ops[ARRAY_SIZE(op_names)];
	int results[ARRAY_SIZE(op_names)];
	size_t n = 0;

	for (uint32_t op = 2; op <= ARRAY_SIZE(op_names); op++) {
		struct kfd_ioctl_dbg_trap_args args = { 0 };

		ops[n] = op == ARRAY_SIZE(op_names) ? KFD_IOC_DBG_TRAP_DISABLE : op;
		if (ops[n] == KFD_IOC_DBG_TRAP_DISABLE && !disable_too)
			break;
		if (how == OPS_SENSIBLE)
			fill(by.actor->w, ops[n], &args);
		results[n] = dbg(by, target->pid, ops[n], &args);
		n++;
	}
	say_grouped(by.actor->w, what, results, ops, n);
}

int enable_without_fd(struct who by, struct actor *target)
{
	struct kfd_ioctl_dbg_trap_args args = { .enable.dbg_fd = UINT32_MAX };

	return dbg(by, target->pid, KFD_IOC_DBG_TRAP_ENABLE, &args);
}
