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

void say_ops(struct who by, struct actor *target, enum ops_how how, bool disable_too,
	     const char *what)
{
	struct world *w = by.actor->w;
	char line[512];
	size_t at = 0;

	for (uint32_t op = 2; op <= ARRAY_SIZE(op_names); op++) {
		struct kfd_ioctl_dbg_trap_args args = { 0 };
		uint32_t n = op == ARRAY_SIZE(op_names) ? KFD_IOC_DBG_TRAP_DISABLE : op;

		if (n == KFD_IOC_DBG_TRAP_DISABLE && !disable_too)
			break;
		if (how == OPS_SENSIBLE)
			fill(w, n, &args);
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%s %s", at ? ", " : "",
				       op_names[n], text_of(dbg(by, target->pid, n, &args)));
	}
	say(w, "%s: %s", what, line);
}

int enable_without_fd(struct who by, struct actor *target)
{
	struct kfd_ioctl_dbg_trap_args args = { .enable.dbg_fd = UINT32_MAX };

	return dbg(by, target->pid, KFD_IOC_DBG_TRAP_ENABLE, &args);
}
