/* SPDX-License-Identifier: MIT */
#include "sim/machine.h"
#include "util/macros.h"

/* Weights times room stay below 2^64. */
#define MAX_WEIGHT (1ull << 40)

static uint64_t weight(const struct sim_queue *q)
{
	return MIN(q->program->workgroup_ns, MAX_WEIGHT);
}

/*
 * Deals @room to @qs. Each has what it wants in ->room and gets that or less. What is left over.
 * In each round those go who want no more than their share, which makes the shares of the others
 * larger; when nobody goes, the shares are final.
 */
static uint64_t deal(struct sim_queue **qs, size_t n, uint64_t room)
{
	size_t before;

	do {
		unsigned __int128 weights = 0;
		uint64_t given = 0;
		size_t kept = 0;

		before = n;
		for (size_t i = 0; i < n; i++)
			weights += weight(qs[i]);
		for (size_t i = 0; i < n; i++) {
			if (qs[i]->room * weights <= (unsigned __int128)room * weight(qs[i]))
				given += qs[i]->room;
			else
				qs[kept++] = qs[i];
		}
		room -= given;
		n = kept;
		for (size_t i = 0; n == before && i < n; i++) {
			qs[i]->room = (unsigned __int128)room * weight(qs[i]) / weights;
			given += qs[i]->room;
		}
		if (n == before)
			room -= given;
	} while (n && n < before);
	return room;
}

/* The room of those that stand still with it is not dealt. */
static uint64_t free_room(const struct sim_machine *m)
{
	uint64_t room = SIM_ROOM;

	for (size_t i = 0; i < m->n_on; i++) {
		const struct sim_queue *q = m->on[i];

		if (q->place == SIM_LEAVING)
			room -= MIN(room, q->room);
	}
	return room;
}

static size_t gather(struct sim_machine *m, bool online, bool offline)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_on; i++) {
		struct sim_queue *q = m->on[i];

		if (!sim_queue_runs(q) || !(q->online ? online : offline))
			continue;
		q->room = q->program->room;
		m->scratch[n++] = q;
	}
	return n;
}

static void share_fairly(struct sim_machine *m)
{
	deal(m->scratch, gather(m, true, true), free_room(m));
}

/* What lesser work an online kernel finds on the GPU when it starts. */
struct lesser {
	uint64_t room; /* resident */
	uint64_t workgroup_ns; /* how long one takes, by room */
};

static struct lesser lesser_work(const struct sim_machine *m)
{
	unsigned __int128 weighted = 0;
	uint64_t room = 0;

	for (size_t i = 0; i < m->n_on; i++) {
		const struct sim_queue *q = m->on[i];

		if (q->online || !sim_queue_runs(q))
			continue;
		room += q->program->peak;
		weighted += (unsigned __int128)q->program->peak * q->program->workgroup_ns;
	}
	return (struct lesser){
		.room = MIN(room, SIM_ROOM),
		.workgroup_ns = room ? weighted / room : 0,
	};
}

/*
 * How long a kernel waits for the last of the room it lacks. The lesser workgroups started at any
 * time, so room comes free evenly, all of it within the length of one of them.
 */
static uint64_t start_wait_ns(const struct sim_queue *q, const struct lesser *lesser)
{
	uint64_t free = SIM_ROOM - lesser->room;
	uint64_t lacks = q->program->peak > free ? q->program->peak - free : 0;

	if (!lacks)
		return 0;
	return (unsigned __int128)lesser->workgroup_ns * lacks / lesser->room;
}

/*
 * Online kernels are dealt room first. But between two of them the others have filled the GPU, and
 * nobody is displaced: each start waits.
 */
static void share_by_priority(struct sim_machine *m)
{
	struct lesser lesser = lesser_work(m);
	uint64_t room = free_room(m);
	size_t n = gather(m, true, false);

	for (size_t i = 0; i < n; i++) {
		struct sim_queue *q = m->scratch[i];
		const struct sim_program *p = q->program;
		unsigned __int128 waits = (unsigned __int128)start_wait_ns(q, &lesser) * p->starts;

		q->room = (unsigned __int128)p->room * p->alone_ns / (p->alone_ns + waits);
		q->room = MAX(q->room, 1u);
	}
	room = deal(m->scratch, n, room);
	deal(m->scratch, gather(m, false, true), room);
}

static bool goes_before(const struct sim_queue *a, const struct sim_queue *b)
{
	if (a->online != b->online)
		return a->online;
	return a->order < b->order;
}

static struct sim_queue *first_in_line(struct sim_machine *m)
{
	struct sim_queue *best = NULL;

	for (size_t i = 0; i < m->n_on; i++) {
		struct sim_queue *q = m->on[i];

		if (sim_queue_runs(q) && (!best || goes_before(q, best)))
			best = q;
	}
	return best;
}

static void share_in_sequence(struct sim_machine *m)
{
	if (!m->holder || !m->holder->has_work)
		m->holder = first_in_line(m);
	if (m->holder && sim_queue_runs(m->holder))
		m->holder->room = m->holder->program->room;
}

/* All of the process whose turn it is. */
static void share_in_turns(struct sim_machine *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_on; i++) {
		struct sim_queue *q = m->on[i];

		if (q->process != m->turn || !sim_queue_runs(q))
			continue;
		q->room = q->program->room;
		m->scratch[n++] = q;
	}
	deal(m->scratch, n, SIM_ROOM);
}

static void set_speeds(struct sim_machine *m)
{
	bool still = m->now_ns < m->still_until_ns;

	for (size_t i = 0; i < m->n_on; i++) {
		struct sim_queue *q = m->on[i];
		bool moves = q->place == SIM_ON && !still;

		q->speed = moves ? q->room * SIM_SPEED / q->program->room : 0;
	}
}

static bool is_inverted(const struct sim_machine *m)
{
	bool slowed = m->online_out, lesser = false;

	for (size_t i = 0; i < m->n_on; i++) {
		const struct sim_queue *q = m->on[i];

		if (q->online)
			slowed |= q->has_work && q->speed < SIM_SPEED;
		else
			lesser |= q->room;
	}
	return slowed && lesser;
}

static void deal_anew(struct sim_machine *m)
{
	for (size_t i = 0; i < m->n_on; i++) {
		if (m->on[i]->place != SIM_LEAVING)
			m->on[i]->room = 0;
	}
	if (m->mode == SIM_STREAM_PRIORITY)
		share_by_priority(m);
	else if (m->mode == SIM_SEQUENTIAL)
		share_in_sequence(m);
	else if (m->change_ns)
		share_in_turns(m);
	else
		share_fairly(m);
}

void sim_share(struct sim_machine *m)
{
	/* While everybody stands still each has what it had. */
	if (m->now_ns >= m->still_until_ns)
		deal_anew(m);
	set_speeds(m);
	m->inverted = is_inverted(m);
}
