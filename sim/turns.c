/* SPDX-License-Identifier: MIT */
/*
 * A GPU that one process has at a time. Each keeps it for a slice, counted anew when it is over and
 * nobody else has work, and leaves it when it has none itself; then those with work follow in the
 * order of the run list. A change of processes takes its time, in which nobody gets on.
 */
#include "sim/machine.h"
#include "util/macros.h"

static uint64_t slice_ns(const struct sim_queue *q)
{
	return MAX(q->slice_ns, NSEC_PER_USEC);
}

/* The first queue that runs of those of a process that is not @process, from @at on. */
static struct sim_queue *next_of_others(const struct sim_machine *m, uint32_t process, size_t at)
{
	for (size_t n = 0; n < m->n_on; n++) {
		struct sim_queue *q = m->on[(at + n) % m->n_on];

		if (q->process != process && sim_queue_runs(q))
			return q;
	}
	return NULL;
}

/* A queue of the process whose turn it is; *ret_after: the place of the first behind them. */
static struct sim_queue *find_holder(const struct sim_machine *m, size_t *ret_after)
{
	struct sim_queue *running = NULL;

	*ret_after = 0;
	for (size_t i = 0; i < m->n_on; i++) {
		if (m->on[i]->process != m->turn)
			continue;
		*ret_after = i + 1;
		if (sim_queue_runs(m->on[i]))
			running = m->on[i];
	}
	return running;
}

static void change_to(struct sim_machine *m, const struct sim_queue *next)
{
	m->turn = next->process;
	sim_machine_stand_still(m, m->now_ns + m->change_ns);
	m->slice_ends_ns = m->still_until_ns + slice_ns(next);
	m->contested = false; /* to be seen when it is on */
}

/* Slices went by in which nobody else had work. */
static void renew(struct sim_machine *m, const struct sim_queue *holder)
{
	uint64_t slice = slice_ns(holder);

	m->slice_ends_ns += ((m->now_ns - m->slice_ends_ns) / slice + 1) * slice;
}

void sim_turns_update(struct sim_machine *m)
{
	struct sim_queue *holder, *next;
	size_t after;

	if (m->now_ns < m->still_until_ns)
		return;
	holder = find_holder(m, &after);
	next = next_of_others(m, m->turn, after);
	if (next && (!holder || (m->contested && m->now_ns >= m->slice_ends_ns))) {
		change_to(m, next);
		return;
	}
	if (holder && m->now_ns >= m->slice_ends_ns)
		renew(m, holder);
	m->contested = holder && next;
}
