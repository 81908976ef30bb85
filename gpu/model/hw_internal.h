/* SPDX-License-Identifier: MIT */
/*
 * Inside the hardware half. Who does what:
 *
 *   hw_gpu.c       the GPU object, its room, and dispatch: who may launch how much, and where
 *   hw_queue.c     the queue object, doorbells, what can be seen of it, the record of each packet
 *   hw_ring.c      reading packets: what the next one is and whether it may start
 *   hw_cohort.c    workgroups: launching, ending, saving, restoring
 *   hw_slots.c     which of the mapped queues sit on hardware, and taking turns
 *   hw_unmap.c     unmap: one GPU, several at the same time, or some of the queues; map, reset
 *
 * Dispatch runs only from its own event, never from inside something else, so a completion
 * callback or a write to a signal may ask for it at any time. Memory shortage delays: what cannot
 * be launched stays where it is and is tried again.
 */
#ifndef GPREEMPT_GPU_MODEL_HW_INTERNAL_H
#define GPREEMPT_GPU_MODEL_HW_INTERNAL_H

#include <sys/queue.h>

#include "gpu/model/hw.h"

static inline uint64_t hw_add_sat(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Workgroups of one packet that started together, and end together: one event for them all, on
 * whichever XCCs they are. Saved, its event is parked, so that it can be restored without
 * allocating.
 */
struct hw_cohort {
	struct event done;
	TAILQ_ENTRY(hw_cohort) link; /* in its queue's running or saved */
	struct hw_packet *packet;
	uint32_t count[MODEL_MAX_XCC];
	uint64_t since_ns; /* runs from then on; later than now while its bytes move back */
	uint64_t left_ns; /* of each workgroup, at since_ns */
};
TAILQ_HEAD(hw_cohorts, hw_cohort);

/* A packet from the moment its first workgroup may start until it completes. */
struct hw_packet {
	TAILQ_ENTRY(hw_packet) link;
	struct hw_queue *q;
	uint64_t index;
	uint64_t completion_signal;
	uint64_t wg_ns;
	uint64_t wg_room; /* what one takes of its XCC's pool; 0: needs no compute unit */
	uint32_t wg_units, wg_waves;
	bool started; /* some of it was launched */
	bool empty; /* stands for work without workgroups */
	uint32_t to_launch[MODEL_MAX_XCC];
	uint64_t unlaunched; /* their sum */
	size_t n_cohorts; /* running or saved */
	struct hw_cohort *fresh; /* the youngest running, to which more may be added */
	uint64_t save_seq; /* the last save that took some of it */
	struct model_packet unlogged; /* the record of one that is not to be kept */
};
TAILQ_HEAD(hw_packets, hw_packet);

struct hw_queue {
	TAILQ_ENTRY(hw_queue) link;
	TAILQ_ENTRY(hw_queue) list_link;
	struct hw_gpu *gpu;
	struct hw_queue_config config;
	struct hw_queue_seen seen;
	bool in_turn; /* in the run list, and to be on hardware this turn */
	uint32_t pipe; /* its priority since it was put there */
	bool unpublished; /* met an invalid header: waits for a doorbell */
	bool barred; /* met a barrier bit: waits for packets to be empty */
	bool waiting; /* at a barrier packet, for one of deps */
	uint32_t next_xcc; /* where the next packet's first workgroup goes */
	struct hw_packet *launching; /* the youngest of packets, while not all of it is launched */
	struct hw_packets packets; /* not complete, in order */
	struct hw_cohorts running, saved;
	uint64_t deps[AQL_MAX_DEPS];
	struct mem_watch watch;
	struct model_packet *log;
	uint64_t first_log; /* index of the oldest record that is kept */
	size_t n_log, cap_log;
	void (*on_complete)(void *user, uint64_t index);
	void *user;
};
TAILQ_HEAD(hw_queues, hw_queue);

struct hw_gpu {
	struct model_chip chip;
	struct timeline *time;
	struct event kick; /* dispatch; parked when there is no cause */
	struct hw_queues queues;
	struct hw_queues run_list; /* what is mapped; queues of one address space are neighbours */
	size_t n_listed;
	struct hw_queue *first; /* of run_list: this turn begins there; NULL: at its head */
	struct hw_queue **on; /* those on hardware, from first on */
	size_t n_on, cap_on;
	uint32_t pipes; /* 1 << pipe: no queue of another is on */
	struct event turn_over; /* parked while all that is mapped is on */
	struct hw_turns turns;
	uint64_t live_at_ns; /* the last map or turn and its restore are done then */
	uint64_t saved_at_ns; /* what the last turn took off is saved then */
	bool frozen; /* between the start of an unmap and its end */
	uint64_t waves; /* of all queues */
	uint64_t save_seq;
	uint64_t free_room[MODEL_MAX_XCC];
	size_t turn[MODEL_MAX_XCC][HW_N_PIPES]; /* into on: who is first asked */
	/* One more than the most urgent pipe with workgroups that find no room there; 0: none. */
	uint32_t saved_waits[MODEL_MAX_XCC];
	uint32_t new_waits[MODEL_MAX_XCC];
};

/* hw_gpu.c */
void hw_gpu_kick(struct hw_gpu *gpu); /* something may be launchable now */
void hw_gpu_kick_later(struct hw_gpu *gpu); /* out of memory: again in a while */
uint64_t hw_gpu_wg_room(uint32_t wg_units);
/* How long an XCC moves @bytes, all XCCs doing the same. */
uint64_t hw_gpu_move_ns(const struct hw_gpu *gpu, uint64_t bytes);

/* hw_queue.c */
uint32_t hw_queue_unit_bytes(const struct hw_queue *q); /* what its pointers count */
void hw_queue_see_write(struct hw_queue *q); /* reads the write pointer */
void hw_queue_watch(struct hw_queue *q, const uint64_t deps[AQL_MAX_DEPS]);
void hw_queue_unwatch(struct hw_queue *q);
void hw_queue_fail(struct hw_queue *q);
int hw_log_fetched(struct hw_packet *p, uint64_t workgroups); /* -ENOMEM */
/* Of a packet that was fetched, to be written to; valid until the next one is. */
struct model_packet *hw_log(struct hw_packet *p);

/* hw_ring.c */
/* Makes the next packet the launching one if there is one and it may start. */
bool hw_ring_fetch(struct hw_queue *q);
/* The launching packet is launched: moves the read pointer past it. */
void hw_ring_consume(struct hw_queue *q);

/* hw_slots.c */
void hw_list_add(struct hw_queue *q); /* for which there must be room in on */
void hw_list_drop(struct hw_queue *q);
/* Puts on hardware who is in turn, instead of who is not any more; they start by and by. */
void hw_slots_fill(struct hw_gpu *gpu);
void hw_turn_over(struct event *e);

/* hw_unmap.c; time does not pass */
struct hw_saved hw_save_running(struct hw_gpu *gpu, struct hw_queue *const *qs, size_t n);
void hw_note_saved_state(struct hw_queue *q);

/* hw_cohort.c */
/* @count of the packet's workgroups for @xcc, for which there must be room. False: no memory. */
bool hw_launch(struct hw_packet *p, uint32_t xcc, uint32_t count);
uint64_t hw_cohort_bytes(const struct hw_cohort *c, uint32_t xcc);
uint64_t hw_cohort_workgroups(const struct hw_cohort *c);
/* How much of left_ns each workgroup has behind it. */
uint64_t hw_cohort_ran_ns(const struct hw_cohort *c);
/* Takes a running cohort off the compute units and puts it among the saved. */
void hw_cohort_save(struct hw_cohort *c);
/*
 * Brings back what is saved and fits, pipe by pipe and queue by queue; it runs from the instant
 * returned on.
 */
uint64_t hw_restore(struct hw_gpu *gpu, uint64_t from_ns);
/* Everything it has on the GPU or saved is gone; it has failed if that was anything. */
void hw_queue_lose(struct hw_queue *q);

#endif
