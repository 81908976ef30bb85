/* SPDX-License-Identifier: MIT */
/*
 * A GPU as rates: how fast each queue's request gets on, given who else is on it.
 *
 * A request is so much work; alone on the GPU it takes alone_ns, the gaps between its kernels
 * included, and fills `room` of it on average. Nothing happens between two changes of who runs, so
 * there is one computation a change and none a kernel. What is lost by that: where kernels are few
 * and the GPU is not full, two that happen to meet wait for each other on hardware and not here.
 *
 * How room is shared follows gpu/model/hw_gpu.c. There queues take turns at the room that
 * comes free, whatever the workgroups take; so over time each holds room in proportion to the
 * length of its workgroups, and what one does not need goes to the others: weighted max-min.
 *
 * Integers only. Room is counted in parts of SIM_ROOM, speed in parts of SIM_SPEED, both rounded
 * down, and work in nanoseconds alone times SIM_SPEED, exactly. A request is done in the first
 * nanosecond in which nothing is left, so it loses less than one.
 */
#ifndef GPREEMPT_SIM_MACHINE_H
#define GPREEMPT_SIM_MACHINE_H

#include "gpu/model/model.h"
#include "sim/sim.h"

#define SIM_ROOM (1ull << 20) /* a whole GPU */
#define SIM_SPEED (1ull << 24) /* as fast as alone */
#define SIM_REQUEST_MAX_NS (1ull << 38) /* alone; longer ones are cut to that */

/* A model of the scenario on this chip. */
struct sim_program {
	uint64_t alone_ns; /* at least 1 */
	uint64_t room; /* on average while alone, 1..SIM_ROOM */
	uint64_t peak; /* of one kernel; no less than room */
	uint64_t workgroup_ns; /* at least 1 */
	uint64_t starts; /* of kernels before which the GPU was free of it */
	uint64_t kernels;
	uint64_t state_bytes; /* to save while a kernel has all the room it wants */
};

void sim_program_init(struct sim_program *p, const struct sim_model *model,
		      uint64_t kernel_permille, uint64_t save_bytes);

enum sim_place {
	SIM_ON, /* mapped; without a slot it still waits for its turn */
	SIM_LEAVING, /* being saved: stands still and keeps its room */
	SIM_OFF,
	SIM_COMING, /* being restored: stands still */
};

struct sim_queue {
	const struct sim_program *program;
	uint32_t process; /* whose address space */
	bool online;
	uint64_t slice_ns; /* where processes take turns */
	bool has_work;
	bool has_slot;
	uint8_t place; /* enum sim_place */
	uint64_t order; /* of the request, among all of this GPU */
	uint64_t left; /* of the request */
	uint64_t done; /* requests */
	uint64_t room, speed; /* it has now */
	uint64_t saved_bytes; /* while not SIM_ON, or without a slot */
	uint64_t no_slot_since_ns; /* online with work, no slot */
};

struct sim_machine {
	enum sim_mode mode;
	const struct model_chip *chip;
	struct sim_queue *queues; /* in the order of the run list: a process's are neighbours */
	size_t n;
	struct sim_queue **on; /* those with a slot, in the same order: never many */
	size_t n_on;
	struct sim_queue **scratch; /* room for all */
	uint64_t now_ns;
	uint64_t still_until_ns; /* nobody gets on before */
	uint64_t next_order;
	struct sim_queue *holder; /* SIM_SEQUENTIAL: whose request it is */
	/* turns, where change_ns is not 0 */
	uint64_t change_ns; /* from one process to the next */
	uint32_t turn; /* whose it is */
	bool contested; /* somebody else has work: it ends with the slice */
	uint64_t slice_ends_ns;
	/* slots */
	bool crowded; /* more queues or processes than fit: they take turns */
	bool slots_stale;
	size_t first; /* of queues: where the turn begins */
	uint64_t turn_ends_ns;
	size_t in_use; /* slots of queues with work */
	uint64_t moved_out, moved_in; /* bytes, by a change of turns */
	size_t online_out; /* online queues with work and no slot */
	uint64_t slot_used_ns, online_slot_wait_max_ns;
	/* what is to be seen */
	bool inverted; /* online work gets less than it could while lesser work has room */
	unsigned __int128 progress; /* of all requests, in the unit of left */
};

/* The queues are the caller's to describe: program, process, online. -ENOMEM. */
int sim_machine_init(struct sim_machine *m, enum sim_mode mode, const struct model_chip *chip,
		     size_t n_queues);
void sim_machine_done(struct sim_machine *m);

/* Lets time pass; not beyond sim_machine_next_ns. Before each change. */
void sim_machine_advance(struct sim_machine *m, uint64_t now_ns);
/* A request for a queue that has none. */
void sim_machine_submit(struct sim_machine *m, struct sim_queue *q);
void sim_machine_set_place(struct sim_machine *m, struct sim_queue *q, enum sim_place place);
void sim_machine_stand_still(struct sim_machine *m, uint64_t until_ns);
/* The request that is done on a queue is taken off; false: it is not done. */
bool sim_machine_finish(struct sim_machine *m, struct sim_queue *q);
/* The firmware's turn is over: the next queues, which costs time. */
void sim_machine_turn(struct sim_machine *m);
/* After changes: who runs how fast from now on. */
void sim_machine_update(struct sim_machine *m);
/* When something happens by itself: a request is done or a turn over. UINT64_MAX: nothing. */
uint64_t sim_machine_next_ns(const struct sim_machine *m);

/* What there is to save of a queue now. */
uint64_t sim_queue_state_bytes(const struct sim_queue *q);
/* On the GPU with something to do, whether or not it gets on. */
bool sim_queue_runs(const struct sim_queue *q);
uint64_t sim_move_ns(uint64_t bytes, uint64_t bytes_per_s);

/* slots.c */
void sim_slots_update(struct sim_machine *m); /* part of sim_machine_update */
void sim_slots_end(struct sim_machine *m); /* waits that are not over count up to now */

/* turns.c: whose turn it is; part of sim_machine_update. */
void sim_turns_update(struct sim_machine *m);

/* share.c: sets room and speed of all queues, and inverted. */
void sim_share(struct sim_machine *m);

#endif
