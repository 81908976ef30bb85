/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

/* The first hint that is not over. */
static uint32_t current(const struct engine *e, const struct engine_job *j)
{
	uint32_t i = 0;

	while (i < j->hints && gpol_after(j->hint_ns[i], e->config.hint_ns) <= e->now_ns)
		i++;
	return i;
}

static void drop(struct engine_job *j, uint32_t n)
{
	for (uint32_t i = n; i < j->hints; i++)
		j->hint_ns[i - n] = j->hint_ns[i];
	j->hints -= n;
}

int engine_hint(struct engine *e, uint64_t now_ns, uint32_t job, uint64_t at_ns)
{
	struct engine_job *j = engine_find_job(e, job);
	uint32_t i;

	if (!j)
		return -ENOENT;
	if (!is_online(j))
		return -EPERM;
	e->now_ns = gpol_max(e->now_ns, now_ns);
	at_ns = gpol_max(at_ns, e->now_ns);
	drop(j, current(e, j));
	/* Of too many the last is lost: its work is seen when it comes. */
	if (j->hints == HINTS && at_ns >= j->hint_ns[HINTS - 1])
		return 0;
	if (j->hints < HINTS)
		j->hints++;
	for (i = j->hints - 1; i && j->hint_ns[i - 1] > at_ns; i--)
		j->hint_ns[i] = j->hint_ns[i - 1];
	j->hint_ns[i] = at_ns;
	gpu_of(e, j)->stale = true;
	return 0;
}

void engine_drop_hints(struct engine *e, struct engine_job *j)
{
	uint32_t come = 0;

	while (come < j->hints && j->hint_ns[come] <= e->now_ns)
		come++;
	drop(j, come);
}

/* A suspend that begins now is done when the work comes. */
static uint64_t begins(const struct engine *e, const struct engine_job *j, uint32_t hint)
{
	return before(j->hint_ns[hint], gpu_of(e, j)->learnt.suspend_ns);
}

bool engine_announced(const struct engine *e, const struct engine_job *j)
{
	uint32_t i = current(e, j);

	return i < j->hints && (begins(e, j, i) <= e->now_ns || j->hint_ns[i] <= j->announced_ns);
}

void engine_note_announced(const struct engine *e, struct engine_job *j)
{
	if (engine_announced(e, j))
		j->announced_ns = gpol_max(j->announced_ns, j->hint_ns[current(e, j)]);
}

bool engine_needs_room(const struct engine *e, const struct engine_job *j)
{
	return is_online(j) && (j->has_work || engine_announced(e, j));
}

uint64_t engine_announcement_changes(const struct engine *e, const struct engine_job *j)
{
	uint32_t i = current(e, j);

	if (i == j->hints)
		return GPOL_NEVER;
	if (!engine_announced(e, j))
		return begins(e, j, i);
	return gpol_after(j->hint_ns[i], e->config.hint_ns);
}
