/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "sim/machine.h"
#include "util/macros.h"

static uint64_t mul_sat(uint64_t a, uint64_t b, uint64_t max)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return product > max ? max : (uint64_t)product;
}

void sim_program_init(struct sim_program *p, const struct sim_model *model,
		      uint64_t kernel_permille, uint64_t save_bytes)
{
	uint64_t scale = kernel_permille ? kernel_permille : 1000;
	uint64_t kernel_ns = mul_sat(model->kernel_ns, scale, SIM_REQUEST_MAX_NS * 1000) / 1000;
	uint64_t busy_ns = mul_sat(kernel_ns, model->kernels, SIM_REQUEST_MAX_NS);
	uint64_t gaps = model->kernels > 1 ? model->kernels - 1 : 0;
	uint64_t gaps_ns = mul_sat(model->gap_ns, gaps, SIM_REQUEST_MAX_NS);
	uint64_t permille = MAX(MIN(model->occupancy_permille, 1000u), 1u);
	uint64_t state = model->state_permille ? MIN(model->state_permille, 1000u) : permille;
	uint64_t workgroup_ns = mul_sat(model->workgroup_ns, scale, SIM_REQUEST_MAX_NS) / 1000;

	*p = (struct sim_program){
		.alone_ns = MAX(busy_ns + gaps_ns, 1u),
		.peak = SIM_ROOM * permille / 1000,
		.workgroup_ns = MAX(MIN(workgroup_ns, kernel_ns), 1u),
		.starts = model->gap_ns ? model->kernels : 1,
		.kernels = model->kernels,
		.state_bytes = (unsigned __int128)save_bytes * state / 1000,
	};
	p->room = MAX((unsigned __int128)p->peak * busy_ns / p->alone_ns, 1u);
}

int sim_machine_init(struct sim_machine *m, enum sim_mode mode, const struct model_chip *chip,
		     size_t n_queues)
{
	_cleanup_free_ struct sim_queue *queues = calloc(n_queues + 1, sizeof(*queues));
	_cleanup_free_ struct sim_queue **on = calloc(n_queues + 1, sizeof(struct sim_queue *));
	_cleanup_free_ struct sim_queue **scratch =
		calloc(n_queues + 1, sizeof(struct sim_queue *));

	if (!queues || !on || !scratch)
		return -ENOMEM;
	*m = (struct sim_machine){
		.mode = mode,
		.chip = chip,
		.queues = steal_ptr(&queues),
		.on = steal_ptr(&on),
		.scratch = steal_ptr(&scratch),
		.n = n_queues,
		.turn = UINT32_MAX,
		.slots_stale = true,
	};
	return 0;
}

void sim_machine_done(struct sim_machine *m)
{
	free(m->queues);
	free(m->on);
	free(m->scratch);
	*m = (struct sim_machine){ 0 };
}

uint64_t sim_move_ns(uint64_t bytes, uint64_t bytes_per_s)
{
	return ((unsigned __int128)bytes * NSEC_PER_SEC + bytes_per_s - 1) / bytes_per_s;
}

bool sim_queue_runs(const struct sim_queue *q)
{
	return q->has_work && q->place == SIM_ON && q->has_slot;
}

uint64_t sim_queue_state_bytes(const struct sim_queue *q)
{
	return (unsigned __int128)q->program->state_bytes * q->room / q->program->peak;
}

/* ---- time ---- */

void sim_machine_advance(struct sim_machine *m, uint64_t now_ns)
{
	uint64_t ns = now_ns - m->now_ns;

	if (!ns)
		return;
	for (size_t i = 0; i < m->n_on; i++) {
		struct sim_queue *q = m->on[i];

		if (q->speed) {
			unsigned __int128 done = (unsigned __int128)q->speed * ns;
			uint64_t step = done < q->left ? (uint64_t)done : q->left;

			q->left -= step;
			m->progress += step;
		}
	}
	m->slot_used_ns += m->in_use * ns;
	m->now_ns = now_ns;
}

/* Somebody with work always gets on after now, or has nothing left. */
static uint64_t done_ns(const struct sim_machine *m, const struct sim_queue *q)
{
	return q->speed ? m->now_ns + (q->left + q->speed - 1) / q->speed : UINT64_MAX;
}

uint64_t sim_machine_next_ns(const struct sim_machine *m)
{
	uint64_t next = m->crowded ? m->turn_ends_ns : UINT64_MAX;

	if (m->now_ns < m->still_until_ns)
		return MIN(next, m->still_until_ns);
	if (m->contested)
		next = MIN(next, m->slice_ends_ns);
	for (size_t i = 0; i < m->n_on; i++) {
		if (m->on[i]->has_work)
			next = MIN(next, done_ns(m, m->on[i]));
	}
	return next;
}

void sim_machine_update(struct sim_machine *m)
{
	sim_slots_update(m);
	if (m->change_ns)
		sim_turns_update(m);
	sim_share(m);
}

/* ---- changes ---- */

void sim_machine_submit(struct sim_machine *m, struct sim_queue *q)
{
	q->has_work = true;
	q->order = m->next_order++;
	q->left = q->program->alone_ns * SIM_SPEED;
	q->no_slot_since_ns = m->now_ns;
	m->in_use += q->has_slot;
	m->online_out += q->online && !q->has_slot;
}

bool sim_machine_finish(struct sim_machine *m, struct sim_queue *q)
{
	if (!q->has_work || q->left)
		return false;
	q->has_work = false;
	q->speed = 0;
	q->room = 0;
	q->done++;
	m->in_use -= q->has_slot;
	if (m->holder == q)
		m->holder = NULL; /* its next request, be it sent at once, is another one */
	return true;
}

void sim_machine_set_place(struct sim_machine *m, struct sim_queue *q, enum sim_place place)
{
	q->place = place;
	q->speed = 0;
	if (place == SIM_OFF)
		q->room = 0;
	m->slots_stale = true;
}

void sim_machine_stand_still(struct sim_machine *m, uint64_t until_ns)
{
	m->still_until_ns = MAX(m->still_until_ns, until_ns);
}
