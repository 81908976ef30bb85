/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "core/engine/internal.h"

/*
 * Of work whose length was said room is kept until its end, and not less: a resume on the way
 * disturbs it, on an H200 by as much as a change of contexts.
 */
static uint64_t end_of(const struct engine *e, uint64_t at_ns, uint64_t for_ns)
{
	return gpol_after(at_ns, for_ns ? for_ns : e->config.hint_ns);
}

/* The first hint that is not over. */
static uint32_t current(const struct engine *e, const struct engine_job *j)
{
	uint32_t i = 0;

	while (i < j->hints && j->hint[i].end_ns <= e->now_ns)
		i++;
	return i;
}

void engine_drop_hints(const struct engine *e, struct engine_job *j, bool come)
{
	uint32_t kept = 0;

	/* Long work may outlast what was announced for later. */
	for (uint32_t i = 0; i < j->hints; i++) {
		if ((come ? j->hint[i].at_ns : j->hint[i].end_ns) > e->now_ns)
			j->hint[kept++] = j->hint[i];
	}
	j->hints = kept;
}

int engine_hint(struct engine *e, uint64_t now_ns, uint32_t job, uint64_t at_ns, uint64_t for_ns)
{
	struct engine_job *j = engine_find_job(e, job);
	uint32_t i;

	if (!j)
		return -ENOENT;
	if (!is_online(j))
		return -EPERM;
	e->now_ns = gpol_max(e->now_ns, now_ns);
	at_ns = gpol_max(at_ns, e->now_ns);
	engine_drop_hints(e, j, false);
	/* Of too many the last is lost: its work is seen when it comes. */
	if (j->hints == HINTS && at_ns >= j->hint[HINTS - 1].at_ns)
		return 0;
	if (j->hints < HINTS)
		j->hints++;
	for (i = j->hints - 1; i && j->hint[i - 1].at_ns > at_ns; i--)
		j->hint[i] = j->hint[i - 1];
	j->hint[i] = (struct engine_hint){ at_ns, end_of(e, at_ns, for_ns) };
	j->gpu->stale = true;
	return 0;
}

/* A suspend that begins now is done when the work comes. */
static uint64_t begins(const struct engine *e, const struct engine_job *j, uint32_t hint)
{
	return before(j->hint[hint].at_ns, j->gpu->learnt.suspend_ns);
}

bool engine_announced(const struct engine *e, const struct engine_job *j)
{
	uint32_t i = current(e, j);

	return i < j->hints &&
	       (begins(e, j, i) <= e->now_ns || j->hint[i].at_ns <= j->announced_ns);
}

uint64_t engine_announced_for(const struct engine *e, const struct engine_job *j)
{
	return engine_announced(e, j) ? j->hint[current(e, j)].at_ns : GPOL_NEVER;
}

void engine_note_announced(const struct engine *e, struct engine_job *j)
{
	if (engine_announced(e, j))
		j->announced_ns = gpol_max(j->announced_ns, j->hint[current(e, j)].at_ns);
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
	return engine_announced(e, j) ? j->hint[i].end_ns : begins(e, j, i);
}
