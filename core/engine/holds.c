/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Holds: when they end whatever anybody wants, and what becomes of the actions that make and end
 * them.
 */
#include "core/engine/internal.h"

/* ---- rules ---- */

/* A resume takes its time, so it is asked for early; not by more than a quarter of the bound. */
static uint64_t early(const struct engine *e, const struct engine_job *j, uint64_t bound_ns)
{
	return gpol_min(j->gpu->learnt.resume_ns, bound_ns / 4);
}

static uint64_t hold_ends(const struct engine *e, const struct engine_job *j)
{
	uint64_t bound_ns = wait_bound(e, j), wait_ends_ns;
	uint64_t end_ns = before(j->deadline_ns, early(e, j, j->deadline_ns - j->held_since_ns));

	if (!j->has_work)
		return end_ns;
	wait_ends_ns = gpol_after(j->wait_since_ns, bound_ns - early(e, j, bound_ns));
	return gpol_min(end_ns, wait_ends_ns);
}

bool engine_overdue(struct engine *e, const struct engine_job *j)
{
	if (!is_held(j))
		return false;
	wake_at(e, hold_ends(e, j));
	return hold_ends(e, j) <= e->now_ns;
}

/* It waits past its bound though it is on, for too short a time: a hold would end as it begins. */
static bool is_owed(struct engine *e, const struct engine_job *j)
{
	uint64_t bound_ns = wait_bound(e, j), least_ns = e->config.min_run_ns;
	uint64_t ran_ns = j->ran_ns - j->wait_ran_ns + gpol_elapsed(e->now_ns, j->accounted_ns);

	if (j->place != PLACE_ON || !j->unserved || ran_ns >= least_ns ||
	    gpol_after(j->wait_since_ns, bound_ns - early(e, j, bound_ns)) > e->now_ns)
		return false;
	wake_at(e, gpol_after(e->now_ns, least_ns - ran_ns));
	return true;
}

bool engine_spared(struct engine *e, const struct engine_job *j, const struct engine_job *urgent)
{
	uint64_t end_ns = j->spared_until_ns;

	if (is_owed(e, j))
		return true;
	if (end_ns <= e->now_ns || is_held(j))
		return false;
	/* Online work waits no longer than its own bound, but a turn is no shorter than a run. */
	if (urgent && is_online(urgent) && urgent->has_work) {
		uint64_t since_ns = gpol_max(urgent->work_since_ns, j->let_go_ns);
		uint64_t least_ns = gpol_after(j->let_go_ns, e->config.min_run_ns);

		end_ns = gpol_min(end_ns,
				  gpol_max(gpol_after(since_ns, wait_bound(e, urgent)), least_ns));
	}
	wake_at(e, end_ns);
	return end_ns > e->now_ns;
}

bool engine_too_soon(struct engine *e, const struct engine_job *j)
{
	uint64_t end_ns = gpol_after(j->let_go_ns, e->config.min_run_ns);

	if (!j->let_go_ns || end_ns <= e->now_ns)
		return false;
	wake_at(e, end_ns);
	return true;
}

/* ---- acting ---- */

static uint64_t new_ticket(struct engine *e, const struct engine_job *j)
{
	if (++e->tickets == 0)
		e->tickets = 1;
	return (uint64_t)e->tickets << 32 | j->id;
}

static void write_action(struct engine *e, struct engine_job *j, enum engine_verb verb,
			 uint64_t ticket, struct engine_action *ret)
{
	*ret = (struct engine_action){
		.ticket = ticket,
		.deadline_ns = verb == ENGINE_SUSPEND ? j->deadline_ns : 0,
		.gpu = j->gpu->id,
		.job = j->id,
		.queue = ENGINE_ALL_QUEUES,
		.because = verb == ENGINE_SUSPEND ? j->room_for : GPOL_NOBODY,
		.verb = (uint8_t)verb,
	};
	engine_pay(e, j->gpu, verb);
}

static void credit(struct engine *e, const struct engine_job *victim)
{
	struct engine_job *urgent = engine_find_job(e, victim->room_for);

	if (!urgent)
		return;
	urgent->made_room++;
	/* Once a burst: who is held later for the same one was not in its way when it came. */
	if (!is_online(urgent) || !urgent->has_work ||
	    (urgent->detections && urgent->detected_ns == urgent->work_since_ns))
		return;
	/* It was seen, and let wait. */
	if (urgent->met.asked && urgent->met.way != WAY_AT_ONCE)
		return;
	urgent->detections++;
	urgent->detected_ns = urgent->work_since_ns;
	urgent->detect_ns = gpol_elapsed(e->now_ns, urgent->work_since_ns);
}

void engine_suspend(struct engine *e, struct engine_job *j, uint64_t deadline_ns,
		    struct engine_action *ret)
{
	j->suspend_ticket = new_ticket(e, j);
	j->held_since_ns = j->gpu->suspended_ns = e->now_ns;
	j->deadline_ns = deadline_ns;
	j->preempted++;
	engine_move_job(e, j, j->has_work, PLACE_LEAVING);
	wake_at(e, hold_ends(e, j));
	credit(e, j);
	write_action(e, j, ENGINE_SUSPEND, j->suspend_ticket, ret);
}

void engine_resume(struct engine *e, struct engine_job *j, struct engine_action *ret)
{
	j->resume_ticket = new_ticket(e, j);
	j->let_go_ns = e->now_ns;
	j->spared_until_ns = gpol_after(e->now_ns, j->spared_ns);
	j->parked = false;
	engine_spoil_bursts(e, j->gpu);
	engine_move_job(e, j, j->has_work, PLACE_RETURNING);
	write_action(e, j, ENGINE_RESUME, j->resume_ticket, ret);
}

/* ---- reports ---- */

/*
 * What failed may have been done in part, so a failed suspend counts as a hold until a resume is
 * reported: letting go what was not held does no harm.
 */
static void suspend_ended(struct engine *e, struct engine_job *j, int result, uint64_t took_ns)
{
	j->suspend_ticket = 0;
	if (result >= 0)
		engine_learn(&j->gpu->learnt.suspend_ns, took_ns);
	else if (result != -ESRCH)
		engine_trip(e, j->gpu);
	if (j->place == PLACE_LEAVING)
		engine_move_job(e, j, j->has_work, result == -ESRCH ? PLACE_ON : PLACE_OFF);
}

static void resume_ended(struct engine *e, struct engine_job *j, int result, uint64_t took_ns)
{
	j->resume_ticket = 0;
	j->resume_failed = result < 0 && result != -ESRCH;
	if (j->resume_failed) {
		engine_trip(e, j->gpu);
		engine_move_job(e, j, j->has_work, PLACE_OFF);
		return;
	}
	if (result >= 0)
		engine_learn(&j->gpu->learnt.resume_ns, took_ns);
	/* A suspend nobody heard of again was before it, and is over with. */
	j->suspend_ticket = 0;
	j->let_go_ns = j->gpu->returned_ns = e->now_ns;
	j->spared_until_ns = gpol_after(e->now_ns, j->spared_ns);
	engine_move_job(e, j, j->has_work, PLACE_ON);
}

int engine_report(struct engine *e, uint64_t now_ns, uint64_t ticket, int result, uint64_t took_ns)
{
	struct engine_job *j = engine_find_job(e, (uint32_t)ticket);

	if (!j || !ticket || (ticket != j->suspend_ticket && ticket != j->resume_ticket))
		return -ENOENT;
	e->now_ns = gpol_max(e->now_ns, now_ns);
	if (result == -ESRCH) {
		j->gone = true;
		e->cadence_ns = 0;
	}
	if (ticket == j->suspend_ticket)
		suspend_ended(e, j, result, took_ns);
	else
		resume_ended(e, j, result, took_ns);
	return 0;
}
