/* SPDX-License-Identifier: MIT */
/*
 * A KFD device and one wrapper per ioctl. The wrappers have the driver's names and meaning and
 * add nothing; what a correct sequence of them is, target.h knows.
 */
#ifndef GPREEMPT_GPU_KFD_KFD_H
#define GPREEMPT_GPU_KFD_KFD_H

#include "abi/kfd.h"
#include "gpu/kfd/transport.h"

struct gkfd {
	const struct gkfd_transport *transport;
	void *data;
	uint32_t major, minor; /* 0.0 until gkfd_open_device() */
	bool opened;
	unsigned int more_refs;
};

/*
 * This process has ended a debug session it had not begun. The driver counts that one off
 * against the process (Linux 6.12 kfd_dbg_trap_disable) and would no longer resume all its
 * targets when it dies: it must hold nothing any more, through no context. The one thing that
 * is kept per process and not per context, because that is how the driver keeps it.
 */
void gkfd_stain(void);
bool gkfd_is_stained(void);

enum gkfd_cap { /* since KFD 1. ... */
		GKFD_CAP_CRIU = 7,
		GKFD_CAP_DEBUG = 13, /* suspend and resume of queues */
};

/* Takes over @data in any case. The device itself is opened only by gkfd_open_device(). */
int gkfd_new(const struct gkfd_transport *transport, void *data, struct gkfd **ret);
struct gkfd *gkfd_ref(struct gkfd *k); /* one more who frees it; by its owner's thread */
void gkfd_free(struct gkfd *k); /* accepts NULL */
void gkfd_freep(struct gkfd **k);

/*
 * Opens /dev/kfd and asks its version; a second call does nothing. The opening process gets a
 * KFD process of its own, on every GPU: readers of files do without.
 */
int gkfd_open_device(struct gkfd *k);
bool gkfd_has(const struct gkfd *k, enum gkfd_cap cap);

int gkfd_ioctl(struct gkfd *k, unsigned long request, void *arg);
uint64_t gkfd_now_ns(struct gkfd *k);
int gkfd_wait(struct gkfd *k, struct pollfd *fds, size_t n, uint64_t timeout_ns);
int gkfd_read_file(struct gkfd *k, enum gkfd_tree tree, const char *path, char **ret_text,
		   size_t *ret_len);
/* A file that is one decimal number. -EBADMSG. */
int gkfd_read_number(struct gkfd *k, enum gkfd_tree tree, const char *path, uint64_t max,
		     uint64_t *ret);
int gkfd_read_mem(struct gkfd *k, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
		  size_t n);
int gkfd_list_dir(struct gkfd *k, enum gkfd_tree tree, const char *path, char **ret_names);

/* For events of a debug session: [0] to be read, [1] for gkfd_dbg_enable(). */
int gkfd_event_fds(struct gkfd *k, int ret_fds[2]);

/* ---- the debug interface (GKFD_CAP_DEBUG) ---- */

/*
 * The caller thread must trace the group leader of @pid. -EALREADY still makes the caller the
 * debugger: never call this on a target somebody else may debug. *rinfo is filled on success;
 * its runtime_state tells what the return value hides (kfd_debug.c of 6.12: a failed activation
 * returns 0).
 */
int gkfd_dbg_enable(struct gkfd *k, pid_t pid, uint64_t exception_mask, int dbg_fd,
		    struct kfd_runtime_info *rinfo);
int gkfd_dbg_disable(struct gkfd *k, pid_t pid);
int gkfd_dbg_send_runtime_event(struct gkfd *k, pid_t pid, uint64_t exception_mask);

/*
 * Returns the number of queues suspended or found suspended, which may be fewer than @n: the
 * driver then ORs KFD_DBG_QUEUE_*_MASK into the @ids that failed, hence not const.
 */
int gkfd_dbg_suspend_queues(struct gkfd *k, pid_t pid, uint32_t *ids, uint32_t n,
			    uint32_t grace_kclk);
/* As above; @ids NULL: all queues of the target. */
int gkfd_dbg_resume_queues(struct gkfd *k, pid_t pid, uint32_t *ids, uint32_t n);

/*
 * Copies up to *n entries and sets *n to how many there are. @clear_mask is cleared from the
 * exceptions of each entry returned: KFD_EC_MASK(EC_QUEUE_NEW) acknowledges new queues, without
 * which the driver refuses to suspend them.
 */
int gkfd_dbg_queue_snapshot(struct gkfd *k, pid_t pid, uint64_t clear_mask,
			    struct kfd_queue_snapshot_entry *entries, uint32_t *n);
/* -EAGAIN: nothing is pending. */
int gkfd_dbg_query_event(struct gkfd *k, pid_t pid, uint64_t clear_mask,
			 struct kfd_ioctl_dbg_trap_query_debug_event_args *ret);

#endif
