/* SPDX-License-Identifier: MIT */
/*
 * One look at a process's queues: the pointers of all in one read, and only where they have moved,
 * or the queue was not seen idle with them, the packets and signals behind them. It reads the
 * memory of the process, so it is for readers (gpu/helpers/readers.h), or for a software device.
 */
#ifndef GPREEMPT_GPU_KFD_LOOK_H
#define GPREEMPT_GPU_KFD_LOOK_H

#include "gpu/backend.h"
#include "gpu/helpers/reader.h"
#include "gpu/kfd/progress.h"

struct gkfd_look_queue {
	uint32_t gpu, queue;
	struct gkfd_queue_addr addr;
};

struct gkfd_look; /* at one process: what was seen last, and what makes the next quicker */
struct gkfd_look_room; /* memory for one look at a time, of any process */

int gkfd_look_room_new(struct gkfd_look_room **ret);
void gkfd_look_room_free(struct gkfd_look_room *room); /* accepts NULL */

int gkfd_look_new(pid_t pid, const struct gkfd_look_queue *queues, size_t n,
		  struct gkfd_look **ret);
void gkfd_look_free(struct gkfd_look *l); /* accepts NULL */

/*
 * Writes a sample of each queue, in their order. @held: something of the process is held off the
 * GPU. 1: some of the pointers could not be read or are another queue's by now, ask anew where
 * they are; 0: none. -ESRCH, -EPERM: nothing could be read.
 */
int gkfd_look(struct gkfd *k, struct gkfd_look *l, struct gkfd_look_room *room, bool held,
	      struct gpu_sample *ret);

/* ---- by a reader ---- */

enum { GKFD_LOOK_HELD = 1, GKFD_LOOK_NEW = 2 };

struct gkfd_look_request {
	uint32_t id; /* of the look, the owner's choice, below GKFD_LOOKS */
	uint32_t flags;
	uint32_t n; /* GKFD_LOOK_NEW: queues that follow, and take the place of those before */
	uint32_t unused;
};
#define GKFD_LOOKS 4096u

struct gkfd_lookers; /* what a reader keeps */
int gkfd_lookers_new(struct gkfd *k, struct gkfd_lookers **ret); /* @k is borrowed */
/* An answer is the samples; its result that of gkfd_look(). -ENOENT: no such look is known. */
int gkfd_look_serve(struct gkfd_lookers *all, pid_t pid, const void *request, size_t len,
		    struct reader_room *room);

#endif
