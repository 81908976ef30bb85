/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>

#include "gpu/kfd/kfd.h"
#include "gpu/kfd/text.h"
#include "util/macros.h"

int gkfd_new(const struct gkfd_transport *transport, void *data, struct gkfd **ret)
{
	struct gkfd *k;

	if (!data)
		return -ENOMEM;
	k = calloc(1, sizeof(*k));
	if (!k) {
		transport->close(data);
		return -ENOMEM;
	}
	k->transport = transport;
	k->data = data;
	*ret = k;
	return 0;
}

struct gkfd *gkfd_ref(struct gkfd *k)
{
	k->more_refs++;
	return k;
}

void gkfd_free(struct gkfd *k)
{
	if (!k || k->more_refs-- > 0)
		return;
	k->transport->close(k->data);
	free(k);
}

void gkfd_freep(struct gkfd **k)
{
	gkfd_free(*k);
}

/* A forked child is another process to the driver, and clean. */
static pid_t stained_pid;

void gkfd_stain(void)
{
	__atomic_store_n(&stained_pid, getpid(), __ATOMIC_RELEASE);
}

bool gkfd_is_stained(void)
{
	return __atomic_load_n(&stained_pid, __ATOMIC_ACQUIRE) == getpid();
}

int gkfd_ioctl(struct gkfd *k, unsigned long request, void *arg)
{
	return k->transport->ioctl(k->data, request, arg);
}

uint64_t gkfd_now_ns(struct gkfd *k)
{
	return k->transport->now_ns(k->data);
}

int gkfd_wait(struct gkfd *k, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	return k->transport->wait(k->data, fds, n, timeout_ns);
}

int gkfd_read_file(struct gkfd *k, enum gkfd_tree tree, const char *path, char **ret_text,
		   size_t *ret_len)
{
	return k->transport->read_file(k->data, tree, path, ret_text, ret_len);
}

int gkfd_read_number(struct gkfd *k, enum gkfd_tree tree, const char *path, uint64_t max,
		     uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = gkfd_read_file(k, tree, path, &text, &len);

	if (r < 0)
		return r;
	return gkfd_text_is_number(text, len, max, ret) ? 0 : -EBADMSG;
}

int gkfd_read_mem(struct gkfd *k, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
		  size_t n)
{
	return n ? k->transport->read_mem(k->data, pid, mem, spans, n) : 0;
}

int gkfd_list_dir(struct gkfd *k, enum gkfd_tree tree, const char *path, char **ret_names)
{
	return k->transport->list_dir(k->data, tree, path, ret_names);
}

int gkfd_event_fds(struct gkfd *k, int ret_fds[2])
{
	if (k->transport->events)
		return k->transport->events(k->data, ret_fds);
	return pipe2(ret_fds, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
}

int gkfd_open_device(struct gkfd *k)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	int r;

	if (k->opened)
		return 0;
	r = k->transport->open(k->data);
	if (r < 0)
		return r;
	r = gkfd_ioctl(k, AMDKFD_IOC_GET_VERSION, &version);
	if (r < 0)
		return r;
	k->major = version.major_version;
	k->minor = version.minor_version;
	k->opened = true;
	return 0;
}

bool gkfd_has(const struct gkfd *k, enum gkfd_cap cap)
{
	return k->major == 1 && k->minor >= (uint32_t)cap;
}

static int dbg_trap(struct gkfd *k, pid_t pid, uint32_t op, struct kfd_ioctl_dbg_trap_args *args)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return gkfd_ioctl(k, AMDKFD_IOC_DBG_TRAP, args);
}

int gkfd_dbg_enable(struct gkfd *k, pid_t pid, uint64_t exception_mask, int dbg_fd,
		    struct kfd_runtime_info *rinfo)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.exception_mask = exception_mask,
			.rinfo_ptr = (uintptr_t)rinfo,
			.rinfo_size = sizeof(*rinfo),
			.dbg_fd = (uint32_t)dbg_fd,
		},
	};

	return dbg_trap(k, pid, KFD_IOC_DBG_TRAP_ENABLE, &args);
}

int gkfd_dbg_disable(struct gkfd *k, pid_t pid)
{
	struct kfd_ioctl_dbg_trap_args args = { 0 };

	return dbg_trap(k, pid, KFD_IOC_DBG_TRAP_DISABLE, &args);
}

int gkfd_dbg_send_runtime_event(struct gkfd *k, pid_t pid, uint64_t exception_mask)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.send_runtime_event = { .exception_mask = exception_mask },
	};

	return dbg_trap(k, pid, KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT, &args);
}

int gkfd_dbg_suspend_queues(struct gkfd *k, pid_t pid, uint32_t *ids, uint32_t n,
			    uint32_t grace_kclk)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = n,
			.grace_period = grace_kclk,
		},
	};

	return dbg_trap(k, pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);
}

int gkfd_dbg_resume_queues(struct gkfd *k, pid_t pid, uint32_t *ids, uint32_t n)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.resume_queues = {
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = n,
		},
	};

	return dbg_trap(k, pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES, &args);
}

int gkfd_dbg_queue_snapshot(struct gkfd *k, pid_t pid, uint64_t clear_mask,
			    struct kfd_queue_snapshot_entry *entries, uint32_t *n)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.exception_mask = clear_mask,
			.snapshot_buf_ptr = (uintptr_t)entries,
			.num_queues = *n,
			.entry_size = sizeof(*entries),
		},
	};
	int r = dbg_trap(k, pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);

	if (r >= 0)
		*n = args.queue_snapshot.num_queues;
	return r;
}

int gkfd_dbg_query_event(struct gkfd *k, pid_t pid, uint64_t clear_mask,
			 struct kfd_ioctl_dbg_trap_query_debug_event_args *ret)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.query_debug_event = { .exception_mask = clear_mask },
	};
	int r = dbg_trap(k, pid, KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT, &args);

	if (r >= 0)
		*ret = args.query_debug_event;
	return r;
}
