/* SPDX-License-Identifier: MIT */
/*
 * The hardware half of the model: compute units, command processors, context save.
 *
 * It knows queues as descriptors in memory, never processes or rights. Workgroups of all queues on
 * hardware compete for room on compute units. On each XCC those of a higher pipe priority start
 * first, equals in turns; one that runs is never displaced but by a save.
 *
 * When more queues are mapped than there are slots (SDMA queues need none), or more address spaces
 * than VMIDs, the firmware goes round: some are on hardware for a quantum, then the next. That
 * takes the waves of those that leave to memory and those of the next ones back.
 *
 * A dispatch packet (abi/aql.h) launches grid_x / workgroup_x workgroups (rounded up), dealt to
 * the XCCs in turn, going on where the queue's last packet stopped. Its kernel_object points at a
 * struct hw_kernel in the same address space. PM4 and SDMA rings hold struct hw_timed_packet:
 * 64 bytes that keep the engine busy for a time, one after the other.
 *
 * A packet is consumed when all of it is launched, not when it is done: the read pointer moves
 * and, in an AQL ring, the header turns invalid. Nothing is instant: a packet with nothing to do
 * is done 1 ns after it was consumed, so a program that refills its ring moves the clock.
 *
 * Not modelled: which compute unit a workgroup sits on. Each XCC is one pool of room. A workgroup
 * takes the share of a compute unit it has when only its like are there, so equal workgroups fill
 * the pool exactly as they fill the units; unequal ones may use room that on hardware is left
 * over in crumbs on several units.
 */
#ifndef GPREEMPT_GPU_MODEL_HW_H
#define GPREEMPT_GPU_MODEL_HW_H

#include "abi/aql.h"
#include "gpu/model/event.h"
#include "gpu/model/mem.h"
#include "gpu/model/model.h"

#define HW_CU_UNITS 65536u /* room on one compute unit */
#define HW_CU_WAVES 32u /* wave slots on one: no more workgroups fit, however small */
#define HW_WAVE_CTL_BYTES 8u /* of a wave on the control stack */
#define HW_KERNEL_MAGIC 0x6b65726e656c3031ull
#define HW_TIMED_MAGIC 0x74696d65u

struct hw_kernel {
	uint64_t magic;
	uint64_t wg_ns;
	uint32_t wg_units; /* 1..HW_CU_UNITS */
	uint32_t pad;
};

struct hw_timed_packet {
	uint32_t magic;
	uint32_t pad0;
	uint64_t busy_ns;
	uint64_t completion_signal;
	uint64_t pad1[5];
};

enum hw_ring { HW_RING_AQL, HW_RING_PM4, HW_RING_SDMA }; /* pointers count packets, dwords, bytes */

struct hw_gpu;
struct hw_queue;

/* What the driver writes into a queue descriptor. */
struct hw_queue_config {
	enum hw_ring ring;
	struct mem_space *vm; /* borrowed; must outlive the queue */
	uint64_t ring_va;
	uint32_t ring_bytes;
	uint64_t read_ptr_va, write_ptr_va;
	uint32_t target_xcc; /* PM4 only */
	uint32_t priority; /* 0..15 */
	bool log_packets;
};

/*
 * Pipe priorities; higher is more urgent: low up to a priority of 6, medium up to 10, high from 11
 * on (Linux 6.12 kfd_mqd_manager.c, pipe_priority_map). Dispatch treats all of one pipe alike.
 */
enum { HW_PIPE_LOW, HW_PIPE_MEDIUM, HW_PIPE_HIGH, HW_N_PIPES };
uint32_t hw_pipe_of(uint32_t priority);

/* NULL: out of memory, or a chip that lacks something: XCCs, slots, clock, bandwidth, quantum... */
struct hw_gpu *hw_gpu_new(const struct model_chip *chip, struct timeline *time);
void hw_gpu_free(struct hw_gpu *gpu); /* all its queues must be freed before */

/* Both pointers start at 0. NULL: out of memory. */
struct hw_queue *hw_queue_new(struct hw_gpu *gpu, const struct hw_queue_config *config);
/* As UPDATE_QUEUE may change it while the queue is not mapped. */
void hw_queue_set_ring(struct hw_queue *q, uint64_t ring_va, uint32_t ring_bytes);
/* Counts from the next time it comes on hardware. */
void hw_queue_set_priority(struct hw_queue *q, uint32_t priority);
/* Must not be mapped; waves it had saved are gone. Accepts NULL. */
void hw_queue_free(struct hw_queue *q);

/* Told by its owner that the write pointer moved; dropped unless on hardware. */
void hw_doorbell(struct hw_queue *q);

/*
 * Calls @completed after each packet completes (@index counts packets). For programs that refill
 * their ring. May submit and ring, may not map, unmap, reset or free.
 */
void hw_queue_on_complete(struct hw_queue *q, void (*completed)(void *user, uint64_t index),
			  void *user);

struct hw_saved {
	uint64_t bytes;
	uint64_t ns; /* moving them */
};

struct hw_unmap {
	uint32_t grace_kclk; /* as the 8-bit register has it: 0 never ends */
	uint64_t timeout_ns; /* after which the fence counts as lost */
	uint64_t extra_ns; /* an injected delay */
	struct hw_queue *stuck; /* an injected fault: this one cannot be saved; the time the
				 * firmware tries for is for extra_ns to give */
	bool dead; /* an injected fault: the fence never comes */

	/* results */
	uint64_t took_ns;
	uint64_t saved_bytes;
	uint64_t save_ns; /* of it, moving those bytes: without the way into the trap handler */
	uint32_t unmapped; /* queues */
};

/*
 * Takes every mapped queue off the GPU: no new workgroup starts; those that end within the
 * grace period end; the rest is saved, remaining time and all. Time passes meanwhile, on other
 * GPUs too. What is saved moves at each XCC's share of the bandwidth of the memory that the save
 * area is in, all XCCs at once; what a map still had to bring back stays where it was saved and
 * need not move. With @only that one leaves, without a grace period, and the others run on: how MES
 * (gfx11 and later) schedules.
 *
 * 0; -ETIME: the fence did not come in time (dead, a grace without end, or just too late): the
 * queues are off and what they had on the GPU is lost; -EREMOTEIO: a stuck queue was given up and
 * lost its work, the others are saved. A queue that lost work has failed (hw_see()).
 * Results are set in each case. -EINVAL: @only is not mapped.
 */
int hw_unmap(struct hw_gpu *gpu, struct hw_queue *only, struct hw_unmap *op);

/*
 * Maps exactly @qs and returns at once; they start after the map cost, restoring saved
 * workgroups first (their bytes move back before they run). Where there is no room for all that
 * is saved the rest waits for room, and nothing new of the same or a lower pipe priority starts on
 * that XCC before it. Each queue's write pointer is read anew when it comes on hardware, the first
 * ones at once, the others in their turn.
 * -EBUSY: some queue is mapped already; -EINVAL: a queue twice, or of another GPU; -ENOMEM.
 */
int hw_map(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n);

/*
 * The same for one queue beside others that stay. While it is added, and while turns change, the
 * others run on but start nothing new. -EBUSY: it is mapped already; -ENOMEM.
 */
int hw_add(struct hw_queue *q);

/*
 * Unmaps that go on at the same time, each on a GPU of its own. Some queues leave at once, without
 * a grace period, and the others run on; one by one each waits for the one before, and the first
 * that fails is the last.
 */
struct hw_unmap_part {
	struct hw_gpu *gpu;
	struct hw_unmap op;
	struct hw_queue *const *some; /* mapped ones; NULL: all queues, as hw_unmap() */
	size_t n_some;
	bool one_by_one;
	/* When this one is over, while others may go on; may map and add. NULL: nobody asks. */
	void (*over)(struct hw_unmap_part *part);
	void *user;

	int result;
	uint64_t began_ns, deadline_ns; /* the rest is hw_unmap.c's */
	uint64_t until_ns; /* of the grace period, or of the save */
	size_t at; /* in some */
	struct hw_saved saved; /* by the last save */
	enum { HW_UNMAP_GRACE, HW_UNMAP_SAVE, HW_UNMAP_OVER } stage;
};

void hw_unmap_parts(struct hw_unmap_part *parts, size_t n);

/* A whole-GPU reset: what is resident or saved is lost, nothing is mapped. */
void hw_reset(struct hw_gpu *gpu);

/* What the firmware did by itself, going round. */
struct hw_turns {
	uint64_t rotations;
	struct hw_saved saved;
};

const struct hw_turns *hw_gpu_turns(const struct hw_gpu *gpu);

/* What the last save left, as the driver finds it in the descriptor of one XCC. */
struct hw_saved_state {
	uint32_t ctl_stack_used; /* bytes, HW_WAVE_CTL_BYTES per wave */
	uint32_t wave_bytes; /* 0: nothing ran there */
};

struct hw_queue_seen {
	bool mapped; /* in the run list */
	bool on; /* and on hardware this turn */
	/*
	 * It stopped for good: it lost work, or met a packet no hardware could run (an unknown
	 * type, a kernel that is not one, a ring that is not there), which it did not consume.
	 */
	bool failed;
	uint64_t read, write; /* in units of the ring's pointers; as last seen */
	uint64_t completed; /* packets */
	uint64_t resident, saved; /* workgroups on compute units, and in the save area */
	uint32_t waves[MODEL_MAX_XCC]; /* in flight now */
	struct hw_saved_state left[MODEL_MAX_XCC];
};

const struct hw_queue_seen *hw_see(const struct hw_queue *q);
/* With log_packets. Submission is when the doorbell rang, mapped or not. */
size_t hw_queue_packets(const struct hw_queue *q, uint64_t first, struct model_packet *ret,
			size_t max);
/* Drops the oldest records: those before packet @before that are done. */
void hw_queue_forget_packets(struct hw_queue *q, uint64_t before);

#endif
