/* SPDX-License-Identifier: MIT */
/*
 * Hardware queue slots and address spaces. Where all mapped queues fit, all have a slot. Else the
 * firmware goes round the run list: as many as fit for a quantum, with or without work, then those
 * that come after them; as gpu/model/hw_slots.c has it.
 */
#include "sim/machine.h"
#include "util/macros.h"

static bool mapped(const struct sim_queue *q)
{
	return q->place != SIM_OFF;
}

static void note_slot_wait(struct sim_machine *m, const struct sim_queue *q)
{
	if (q->online && q->has_work && !q->has_slot)
		m->online_slot_wait_max_ns =
			MAX(m->online_slot_wait_max_ns, m->now_ns - q->no_slot_since_ns);
}

/* Of those who are being held or let go the backend takes care. */
static void move_state(struct sim_machine *m, struct sim_queue *q, bool in)
{
	if (q->place != SIM_ON)
		return;
	if (in) {
		m->moved_in += q->saved_bytes;
		q->saved_bytes = 0;
	} else {
		q->saved_bytes = sim_queue_state_bytes(q);
		m->moved_out += q->saved_bytes;
	}
}

static void set_slot(struct sim_machine *m, struct sim_queue *q, bool has)
{
	if (q->has_slot == has)
		return;
	note_slot_wait(m, q);
	q->has_slot = has;
	q->no_slot_since_ns = m->now_ns;
	move_state(m, q, has);
	q->speed = 0;
	q->room = has ? q->room : 0;
	if (!q->has_work)
		return;
	m->in_use += has ? 1 : -1;
	if (q->online)
		m->online_out += has ? -1 : 1;
}

static void list_slots(struct sim_machine *m)
{
	m->n_on = 0;
	for (size_t i = 0; i < m->n; i++) {
		if (m->queues[i].has_slot)
			m->on[m->n_on++] = &m->queues[i];
	}
}

static bool all_fit(const struct sim_machine *m)
{
	size_t queues = 0, processes = 0;
	uint32_t last = UINT32_MAX;

	for (size_t i = 0; i < m->n; i++) {
		if (!mapped(&m->queues[i]))
			continue;
		queues++;
		processes += m->queues[i].process != last;
		last = m->queues[i].process;
	}
	return m->change_ns || (queues <= m->chip->n_cp_queues && processes <= m->chip->n_vmid);
}

/* Marks who fits from m->first on; where the next turn begins. */
static size_t fill_slots(struct sim_machine *m)
{
	size_t queues = 0, processes = 0, at = m->first % m->n, next = at;
	uint32_t last = UINT32_MAX;
	bool full = false;

	for (size_t n = 0; n < m->n; n++, at = at + 1 < m->n ? at + 1 : 0) {
		struct sim_queue *q = &m->queues[at];
		bool other = q->process != last;

		if (mapped(q) && !full) {
			full = queues == m->chip->n_cp_queues ||
			       (other && processes == m->chip->n_vmid);
			if (full)
				next = at;
		}
		set_slot(m, q, mapped(q) && !full);
		if (q->has_slot) {
			queues++;
			processes += other;
			last = q->process;
		}
	}
	return next;
}

void sim_slots_update(struct sim_machine *m)
{
	bool was_crowded = m->crowded;

	if (!m->slots_stale)
		return;
	m->slots_stale = false;
	m->crowded = !all_fit(m);
	if (m->crowded && !was_crowded)
		m->turn_ends_ns = m->now_ns + m->chip->costs.quantum_ns;
	if (m->crowded)
		fill_slots(m);
	for (size_t i = 0; !m->crowded && i < m->n; i++)
		set_slot(m, &m->queues[i], mapped(&m->queues[i]));
	list_slots(m);
}

void sim_machine_turn(struct sim_machine *m)
{
	const struct model_costs *costs = &m->chip->costs;
	uint64_t ns = costs->map_ns;

	if (!m->crowded || m->now_ns < m->turn_ends_ns)
		return;
	m->first = fill_slots(m);
	m->moved_out = m->moved_in = 0;
	fill_slots(m);
	list_slots(m);
	ns += sim_move_ns(m->moved_out, m->chip->hbm_bytes_per_s);
	ns += sim_move_ns(m->moved_in, m->chip->hbm_bytes_per_s);
	if (m->moved_out)
		ns += costs->trap_ns;
	sim_machine_stand_still(m, m->now_ns + ns);
	m->turn_ends_ns = m->still_until_ns + costs->quantum_ns;
}

void sim_slots_end(struct sim_machine *m)
{
	for (size_t i = 0; i < m->n; i++)
		note_slot_wait(m, &m->queues[i]);
}
