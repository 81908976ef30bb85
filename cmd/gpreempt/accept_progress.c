/* SPDX-License-Identifier: MIT */
/* Whether a job really stops and goes on, told by the read pointers of its queues. */
#include <errno.h>

#include "cmd/gpreempt/accept.h"

#define STEP_NS (5 * NSEC_PER_MSEC)
#define SEEN_NS NSEC_PER_SEC /* a job that does nothing for so long shows nothing */
#define HELD_MIN_NS (100 * NSEC_PER_MSEC)
#define HELD_MAX_NS (2 * NSEC_PER_SEC)
#define AGAIN_NS (2 * NSEC_PER_SEC)
#define ONLINE_NS (500 * NSEC_PER_MSEC)

struct look {
	size_t n;
	struct {
		uint32_t id;
		bool aql;
		uint64_t read_index;
	} at[];
};

int look_take(struct gpreempt_process *p, struct look **ret)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	_cleanup_free_ struct look *l = NULL;
	int n = list_read(accept_get_queues, p, sizeof(*queues), &queues);

	if (n < 0)
		return n;
	l = calloc(1, sizeof(*l) + (size_t)n * sizeof(l->at[0]));
	if (!l)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (!(queues[i].valid & GPREEMPT_QUEUE_INDICES))
			continue;
		l->at[l->n].id = queues[i].queue_id;
		l->at[l->n].aql = queues[i].type == GPREEMPT_QUEUE_COMPUTE_AQL;
		l->at[l->n++].read_index = queues[i].read_index;
	}
	*ret = steal_ptr(&l);
	return 0;
}

size_t look_known(const struct look *l)
{
	return l->n;
}

size_t look_moved(const struct look *before, const struct look *after)
{
	size_t moved = 0;

	for (size_t i = 0; i < before->n; i++)
		for (size_t j = 0; j < after->n; j++)
			if (before->at[i].id == after->at[j].id)
				moved += before->at[i].read_index != after->at[j].read_index;
	return moved;
}

uint64_t look_packets(const struct look *before, const struct look *after)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < before->n; i++)
		for (size_t j = 0; j < after->n; j++)
			if (before->at[i].id == after->at[j].id && before->at[i].aql)
				sum += after->at[j].read_index - before->at[i].read_index;
	return sum;
}

int look_wait(struct accept *a, const struct look *since, uint64_t limit_ns, uint64_t *ret_ns)
{
	uint64_t began = gpreempt_now_ns(a->cli->ctx);

	for (;;) {
		_cleanup_free_ struct look *now = NULL;
		uint64_t passed;
		int r = look_take(a->process, &now);

		if (r < 0)
			return r;
		passed = gpreempt_now_ns(a->cli->ctx) - began;
		if (look_moved(since, now)) {
			*ret_ns = passed;
			return 0;
		}
		if (passed >= limit_ns)
			return -ETIME;
		r = accept_wait(a, STEP_NS);
		if (r < 0)
			return r;
	}
}

int look_working(struct accept *a, struct outcome *o, uint64_t *ret_ns)
{
	_cleanup_free_ struct look *l = NULL;
	int r = look_take(a->process, &l);

	if (r >= 0 && look_known(l) == 0) {
		outcome_skip(o, "no read pointer of the process can be read");
		return -ECANCELED;
	}
	if (r >= 0)
		r = look_wait(a, l, SEEN_NS, ret_ns);
	if (r >= 0)
		return 0;
	if (r == -ETIME)
		outcome_skip(o, "the process took no packet for a second: nothing can be seen");
	else
		outcome_error(a, o, r);
	return -ECANCELED;
}

/* What two looks at a held process show. Nothing is held afterwards. */
static int look_held(struct accept *a, uint64_t ns, struct look **ret_first, struct look **ret_last)
{
	int r = gpreempt_suspend_queues(a->process, NULL, 0, NULL, NULL), resumed;

	if (r < 0)
		return r;
	r = look_take(a->process, ret_first);
	if (r >= 0)
		r = accept_wait(a, ns);
	if (r >= 0)
		r = look_take(a->process, ret_last);
	resumed = gpreempt_resume_queues(a->process, NULL);
	return r < 0 ? r : resumed;
}

void check_stops(struct accept *a, struct outcome *o)
{
	_cleanup_free_ struct look *first = NULL, *last = NULL;
	char was[UNIT_TEXT_SIZE], held[UNIT_TEXT_SIZE];
	uint64_t seen_ns = 0, held_ns;
	size_t moved;
	int r;

	if (look_working(a, o, &seen_ns) < 0)
		return;
	/* Several times what it took to be seen working, or standing still would prove nothing. */
	held_ns = MIN(MAX(4 * seen_ns, HELD_MIN_NS), HELD_MAX_NS);
	r = look_held(a, held_ns, &first, &last);
	if (r < 0) {
		outcome_error(a, o, r);
		return;
	}
	moved = look_moved(first, last);
	text_duration(seen_ns, was);
	text_duration(held_ns, held);
	if (moved)
		outcome_fail_figure(o, (double)moved, "of %zu queues went on while held for %s",
				    look_known(first), held);
	else
		outcome_pass(o, 0, "none of %zu queues went on in %s; before, one did within %s",
			     look_known(first), held, was);
}

void check_continues(struct accept *a, struct outcome *o)
{
	_cleanup_free_ struct look *first = NULL, *last = NULL;
	uint64_t ns = 0;
	int r;

	if (look_working(a, o, &ns) < 0)
		return;
	r = look_held(a, HELD_MIN_NS, &first, &last);
	if (r >= 0)
		r = look_wait(a, last, AGAIN_NS, &ns);
	if (r == -ETIME)
		outcome_fail(o, "no queue went on within 2 s of the resumption");
	else if (r < 0)
		outcome_error(a, o, r);
	else
		outcome_pass(o, (double)ns / NSEC_PER_MSEC, "until the first queue went on");
}

/* ---- the neighbour ---- */

/* Packets of the neighbour in a while, with the target being suspended and resumed or not. */
static int count_packets(struct accept *a, struct gpreempt_process *online, struct rounds *rounds,
			 double *ret_per_s)
{
	_cleanup_free_ struct look *before = NULL, *after = NULL;
	uint64_t began = gpreempt_now_ns(a->cli->ctx), passed = 0;
	int r = look_take(online, &before);

	while (r >= 0 && passed < ONLINE_NS) {
		r = rounds ? rounds_add(a, rounds, &(struct setting){ .grace_kclk = 1 }) :
			     accept_wait(a, ONLINE_NS);
		passed = gpreempt_now_ns(a->cli->ctx) - began;
	}
	if (r >= 0)
		r = look_take(online, &after);
	if (r >= 0)
		*ret_per_s = (double)look_packets(before, after) * NSEC_PER_SEC / (double)passed;
	return r;
}

static bool shares_a_gpu(struct accept *a, struct gpreempt_process *online)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	int n = list_read(accept_get_queues, online, sizeof(*queues), &queues);

	for (int i = 0; i < n; i++)
		for (size_t j = 0; j < a->n_queues; j++)
			if (queues[i].gpu_id == a->queues[j].gpu_id)
				return true;
	return false;
}

static void compare_online(struct accept *a, struct outcome *o, struct gpreempt_process *online)
{
	struct rounds rounds = { 0 };
	double calm = 0, cycled = 0;
	int r;

	if (!shares_a_gpu(a, online)) {
		outcome_skip(o, "processes %d and %d have no GPU in common", (int)a->pid,
			     (int)a->online_pid);
		return;
	}
	r = count_packets(a, online, NULL, &calm);
	if (r >= 0 && calm > 0)
		r = count_packets(a, online, &rounds, &cycled);
	if (r < 0)
		outcome_error(a, o, r);
	else if (calm <= 0)
		outcome_skip(o, "process %d took no AQL packet in half a second",
			     (int)a->online_pid);
	else
		outcome_pass(o, 100 * (1 - cycled / calm),
			     "%.0f packets/s, and %.0f while process %d was suspended and resumed "
			     "without pause; below 0: it gained from the other's absence",
			     calm, cycled, (int)a->pid);
}

void check_online(struct accept *a, struct outcome *o)
{
	if (a->online)
		compare_online(a, o, a->online);
	else
		outcome_skip(o, "needs a second process on the GPU: --online PID");
}
