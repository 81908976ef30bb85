/* SPDX-License-Identifier: MIT */
/*
 * Is a queue waiting, running or idle? Told from the target's memory alone: its pointers, the
 * headers of its packets, the signals they complete. Needs the right to ptrace the target, not
 * an attachment, and disturbs nothing.
 *
 * What memory shows is what the target wrote: good enough to decide whom to help, never to
 * decide whom to hurt.
 */
#ifndef GPREEMPT_GPU_KFD_PROGRESS_H
#define GPREEMPT_GPU_KFD_PROGRESS_H

#include "gpu/kfd/kfd.h"

/*
 * AQL queues are followed packet by packet. Where the last packet consumed names no signal, or
 * its slot is written again, nobody but the hardware knows whether it still runs: UNKNOWN, which
 * a cu_occupancy of 0 may settle. PM4 and SDMA queues are PENDING or, once they were used,
 * UNKNOWN: consumed is not finished there either. Reserved packets that are not published yet
 * are no work.
 */
enum gkfd_queue_state {
	GKFD_QUEUE_UNKNOWN, /* memory could not be read, or makes no sense */
	GKFD_QUEUE_IDLE, /* never used; or nothing queued, and the last packet's signal is done */
	GKFD_QUEUE_RUNNING, /* nothing more queued, but the last packet has not finished */
	GKFD_QUEUE_PENDING, /* published packets wait */
	GKFD_QUEUE_BLOCKED, /* waits at a barrier packet for signals that are not done */
};

struct gkfd_queue_addr { /* where to look; from a snapshot or from mqds */
	uint32_t type; /* KFD_IOC_QUEUE_TYPE_* */
	uint64_t ring_base;
	uint64_t ring_bytes;
	uint64_t read_ptr_addr, write_ptr_addr;
};

struct gkfd_progress {
	enum gkfd_queue_state state;
	bool pointers_known;
	uint64_t read_index, write_index; /* AQL: packets; PM4: dwords; SDMA: bytes */
	/* AQL: published packets, of which at most GKFD_PROGRESS_SCAN are counted; else units. */
	uint64_t pending;
};

/* At most so many headers are looked at to tell published from reserved packets. */
#define GKFD_PROGRESS_SCAN 64

/*
 * Looks at @n queues of one process with a few vectored reads for all of them together. Fills
 * every entry of @ret; an error (-ESRCH, -EPERM) only when nothing could be read at all.
 */
int gkfd_progress_read(struct gkfd *k, pid_t pid, const struct gkfd_queue_addr *queues, size_t n,
		       struct gkfd_progress *ret);

/*
 * For looking again and again: memory for @queues at a time, of each of which @scan packets at
 * most are looked at.
 */
struct gkfd_progress_room;
int gkfd_progress_room_new(size_t queues, size_t scan, struct gkfd_progress_room **ret);
void gkfd_progress_room_free(struct gkfd_progress_room *room); /* accepts NULL */
/*
 * gkfd_progress_read() less its first step: the caller has read the pointers, the read before the
 * write pointer, into the indices of @ret. Allocates nothing; @n is at most the room's.
 */
void gkfd_progress_follow(struct gkfd *k, pid_t pid, struct gkfd_mem *mem,
			  struct gkfd_progress_room *room, const struct gkfd_queue_addr *queues,
			  size_t n, struct gkfd_progress *ret);
const char *gkfd_queue_state_name(enum gkfd_queue_state state); /* "pending", ... */

/*
 * Bytes of waves that a suspend left in the save area of one queue, on all XCCs; 0: none was there.
 * -EFAULT: not readable. -EBADMSG: sizes beyond the area, so nothing was ever saved there.
 * -EINVAL: no area, or more XCCs than any GPU has.
 */
int gkfd_saved_read(struct gkfd *k, pid_t pid, uint64_t cwsr_base, uint32_t cwsr_bytes,
		    uint32_t n_xcc, uint64_t *ret_bytes);

#endif
