/* SPDX-License-Identifier: MIT */
/* The table of checks, and those that are about time. */
#include <errno.h>
#include <string.h>

#include "cmd/gpreempt/accept.h"

/* One queue against all of them: more than this is not "the same", on any machine. */
#define SAME_FACTOR 2.0
/* Below this the amounts saved are too much alike to tell what a byte costs. */
#define STATE_FACTOR 1.5
#define ATTACH_ROUNDS 3

static const struct setting everything = { .grace_kclk = GPREEMPT_GRACE_MIN };

static const struct gpreempt_gpu *gpu_of(const struct accept *a, uint32_t gpu_id)
{
	for (size_t i = 0; i < a->n_gpus; i++)
		if (a->gpus[i].gpu_id == gpu_id)
			return &a->gpus[i];
	return NULL;
}

static bool is_compute(const struct gpreempt_queue *q)
{
	return q->type == GPREEMPT_QUEUE_COMPUTE_AQL || q->type == GPREEMPT_QUEUE_COMPUTE_PM4;
}

/* ---- cycles ---- */

static void check_suspend(struct accept *a, struct outcome *o)
{
	struct progress progress;
	struct summary s;
	int r;

	r = rounds_init(&a->all, a->wanted);
	progress_begin(&progress);
	for (uint64_t i = 0; i < a->wanted && r >= 0; i++) {
		progress_show(&progress, "round %llu of %llu", (unsigned long long)i + 1,
			      (unsigned long long)a->wanted);
		r = rounds_add(a, &a->all, &everything);
		if (i == 0 && r >= 0)
			a->first_ns = a->all.suspend.ns[0];
	}
	progress_end(&progress);
	if (r < 0) {
		outcome_error(a, o, r);
		return;
	}
	s = figures_sum_up(&a->all.suspend);
	outcome_pass(o, (double)s.p50 / 1000,
		     "median of %zu; min %.1f, p99 %.1f, max %.1f us; %zu queues", a->all.suspend.n,
		     (double)s.min / 1000, (double)s.p99 / 1000, (double)s.max / 1000, a->n_queues);
}

static void check_resume(struct accept *a, struct outcome *o)
{
	struct summary s = figures_sum_up(&a->all.resume);

	if (a->all.resume.n == 0) {
		outcome_skip(o, "nothing could be suspended");
		return;
	}
	outcome_pass(o, (double)s.p50 / 1000, "median of %zu; min %.1f, p99 %.1f, max %.1f us",
		     a->all.resume.n, (double)s.min / 1000, (double)s.p99 / 1000,
		     (double)s.max / 1000);
}

static void check_first(struct accept *a, struct outcome *o)
{
	double median = median_us(&a->all.suspend), first = (double)a->first_ns / 1000;

	if (a->all.suspend.n < 2)
		outcome_skip(o, "needs two rounds: -n 2 or more");
	else if (median <= 0)
		outcome_skip(o, "the median is 0");
	else
		outcome_pass(o, first / median,
			     "the first took %.1f us, the median is %.1f us; of a job that was "
			     "never suspended before, this shows a move of its save area",
			     first, median);
}

/* The compute queues on the GPU of the first one; how many. */
static size_t queues_of_a_gpu(const struct accept *a, uint32_t *ret, size_t max, uint32_t *ret_gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_queues && n < max; i++) {
		if (!is_compute(&a->queues[i]))
			continue;
		if (n == 0)
			*ret_gpu = a->queues[i].gpu_id;
		if (a->queues[i].gpu_id == *ret_gpu)
			ret[n++] = a->queues[i].queue_id;
	}
	return n;
}

/* The driver is real and its GPU is not: what happens counts, how long it takes does not. */
static bool emulated(const struct accept *a)
{
	return a->not_hardware && !gpreempt_is_modelled(a->cli->ctx);
}

static void compare_counts(struct accept *a, struct outcome *o, const uint32_t *ids, size_t n)
{
	const struct setting settings[2] = { { ids, 1, GPREEMPT_GRACE_MIN },
					     { ids, n, GPREEMPT_GRACE_MIN } };
	struct rounds rounds[2] = { { { 0 } } };
	int r = rounds_compare(a, rounds, settings);
	double one = median_us(&rounds[0].suspend), many = median_us(&rounds[1].suspend);

	if (r < 0)
		outcome_error(a, o, r);
	else if (one <= 0)
		outcome_skip(o, "the time of one queue is 0");
	else if (many / one > SAME_FACTOR && emulated(a))
		outcome_skip(o, "%.1f times as long, but a software GPU's times refute nothing",
			     many / one);
	else if (many / one > SAME_FACTOR)
		outcome_fail_figure(o, many / one, "1 queue takes %.1f us, %zu take %.1f us", one,
				    n, many);
	else
		outcome_pass(o, many / one, "1 queue takes %.1f us, %zu take %.1f us", one, n,
			     many);
	rounds_done(&rounds[0]);
	rounds_done(&rounds[1]);
}

static void check_queues(struct accept *a, struct outcome *o)
{
	const struct gpreempt_gpu *gpu;
	uint32_t ids[1024], gpu_id = 0;
	size_t n = queues_of_a_gpu(a, ids, ARRAY_SIZE(ids), &gpu_id);

	gpu = gpu_of(a, gpu_id);
	if (n < 2)
		outcome_skip(o, "needs a process with two compute queues on a GPU");
	else if (gpu && strcmp(gpu->scheduler, "mes") == 0)
		outcome_skip(o, "said of runlist firmware (hws); this GPU has mes");
	else
		compare_counts(a, o, ids, n);
}

static void check_grace(struct accept *a, struct outcome *o)
{
	const struct setting settings[2] = { { .grace_kclk = GPREEMPT_GRACE_MIN },
					     { .grace_kclk = GPREEMPT_GRACE_MAX } };
	struct rounds rounds[2] = { { { 0 } } };
	int r = rounds_compare(a, rounds, settings);
	double shortest = median_us(&rounds[0].suspend), longest = median_us(&rounds[1].suspend);

	if (r < 0)
		outcome_error(a, o, r);
	else
		outcome_pass(o, longest - shortest,
			     "1,000 clocks: %.1f us; 255,000 clocks: %.1f us (medians of %zu)",
			     shortest, longest, rounds[0].suspend.n);
	rounds_done(&rounds[0]);
	rounds_done(&rounds[1]);
}

/* ---- what is saved ---- */

static int compare_saves(const void *x, const void *y)
{
	const struct save *a = x, *b = y;

	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* The largest save area of a queue; 0: none is known. */
static uint64_t save_area(const struct accept *a)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < a->n_queues; i++)
		if (a->queues[i].valid & GPREEMPT_QUEUE_CWSR_BYTES)
			largest = MAX(largest, a->queues[i].cwsr_bytes);
	return largest;
}

static void check_saved(struct accept *a, struct outcome *o)
{
	uint64_t area = save_area(a), most, median;
	const struct save *last;

	if (a->all.n_saves == 0) {
		outcome_skip(o, "the save areas cannot be read");
		return;
	}
	qsort(a->all.saves, a->all.n_saves, sizeof(*a->all.saves), compare_saves);
	last = &a->all.saves[a->all.n_saves - 1];
	most = last->bytes;
	median = a->all.saves[a->all.n_saves / 2].bytes;
	if (most == 0)
		outcome_skip(o, "nothing was running at any suspension: the times above are those "
				"of idle queues");
	else if (area && most > area * last->queues)
		outcome_fail_figure(o, (double)most, "more than %u save areas of %llu bytes",
				    last->queues, (unsigned long long)area);
	else
		outcome_pass(o, (double)median,
			     "median; least %llu, most %llu, of %u save areas of %llu bytes",
			     (unsigned long long)a->all.saves[0].bytes, (unsigned long long)most,
			     last->queues, (unsigned long long)area);
}

/* Averages of the third of the rounds that saved least, and of that which saved most. */
static struct save third(const struct rounds *r, bool most)
{
	size_t n = r->n_saves / 3;
	const struct save *s = most ? &r->saves[r->n_saves - n] : r->saves;
	struct save sum = { 0 };

	for (size_t i = 0; i < n; i++) {
		sum.bytes += s[i].bytes / n;
		sum.suspend_ns += s[i].suspend_ns / n;
	}
	return sum;
}

static void check_save_cost(struct accept *a, struct outcome *o)
{
	struct save least, most;
	double mib;

	if (a->all.n_saves < 6) {
		outcome_skip(o, "needs six rounds with readable save areas");
		return;
	}
	qsort(a->all.saves, a->all.n_saves, sizeof(*a->all.saves), compare_saves);
	least = third(&a->all, false);
	most = third(&a->all, true);
	if ((double)most.bytes < STATE_FACTOR * (double)least.bytes || most.bytes == 0) {
		outcome_skip(o,
			     "every suspension saved about as much (%llu to %llu bytes): a job "
			     "that is busy by turns would tell",
			     (unsigned long long)least.bytes, (unsigned long long)most.bytes);
		return;
	}
	if (most.suspend_ns <= least.suspend_ns) {
		outcome_skip(o, "other things weigh more: %.1f us with %llu bytes, %.1f with %llu",
			     (double)least.suspend_ns / 1000, (unsigned long long)least.bytes,
			     (double)most.suspend_ns / 1000, (unsigned long long)most.bytes);
		return;
	}
	mib = (double)(most.bytes - least.bytes) / (1 << 20);
	outcome_pass(o, (double)(most.suspend_ns - least.suspend_ns) / 1000 / mib,
		     "from %.1f us with %llu bytes to %.1f us with %llu",
		     (double)least.suspend_ns / 1000, (unsigned long long)least.bytes,
		     (double)most.suspend_ns / 1000, (unsigned long long)most.bytes);
}

static void check_placement(struct accept *a, struct outcome *o)
{
	const struct gpreempt_queue *q = NULL;
	char file[160];

	for (size_t i = 0; i < a->n_queues && !q; i++)
		if (is_compute(&a->queues[i]) && (a->queues[i].valid & GPREEMPT_QUEUE_CWSR_BASE))
			q = &a->queues[i];
	if (gpreempt_is_modelled(a->cli->ctx))
		outcome_skip(o, "a model's processes have no memory map");
	else if (!q)
		outcome_skip(o, "the driver tells no save area");
	else if (host_mapping(a->pid, q->cwsr_base, file, sizeof(file)) < 0)
		outcome_skip(o, "the memory map of the process cannot be read");
	else
		outcome_pass(o, (double)q->cwsr_bytes, "for one queue, in %s%s",
			     file[0] ? "a mapping of " : "memory of no file (userptr or SVM)",
			     file);
}

/* ---- sessions ---- */

static int attach_rounds(struct accept *a, struct figures *attach, struct figures *detach)
{
	uint64_t began;
	int r = 0;

	for (int i = 0; i < ATTACH_ROUNDS && r >= 0; i++) {
		began = gpreempt_now_ns(a->cli->ctx);
		a->process = gpreempt_detach(a->process);
		figures_add(detach, gpreempt_now_ns(a->cli->ctx) - began);
		began = gpreempt_now_ns(a->cli->ctx);
		r = accept_attach(a, 0);
		figures_add(attach, gpreempt_now_ns(a->cli->ctx) - began);
		if (r >= 0)
			r = accept_wait(a, NSEC_PER_MSEC);
	}
	return r;
}

static void check_detach(struct accept *a, struct outcome *o)
{
	struct figures attach = { 0 }, detach = { 0 };
	int r = -ENOMEM;

	if (figures_init(&attach, ATTACH_ROUNDS) >= 0 && figures_init(&detach, ATTACH_ROUNDS) >= 0)
		r = attach_rounds(a, &attach, &detach);
	if (r < 0)
		outcome_error(a, o, r);
	else
		outcome_pass(
			o, median_us(&detach),
			"median of %d; attaching takes %.1f us; the machine has %zu GPU%s, each "
			"taken by level K2 through one cycle to attach and up to four to detach",
			ATTACH_ROUNDS, median_us(&attach), a->n_gpus, a->n_gpus == 1 ? "" : "s");
	figures_done(&attach);
	figures_done(&detach);
}

/* ---- crowds ---- */

static size_t neighbours(const struct accept *a, const struct gpreempt_process_info *infos,
			 size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		for (uint32_t g = 0; g < infos[i].n_gpus; g++)
			sum += infos[i].gpus[g] == a->queues[0].gpu_id;
	return sum;
}

static void check_crowd(struct accept *a, struct outcome *o)
{
	int n = gpreempt_list_processes(a->cli->ctx, NULL, 0), room = MAX(n, 1);
	_cleanup_free_ struct gpreempt_process_info *infos = calloc((size_t)room, sizeof(*infos));
	size_t crowd;

	if (n < 0 || !infos) {
		outcome_skip(o, "the processes of this machine cannot be listed");
		return;
	}
	infos[0].size = sizeof(infos[0]);
	n = gpreempt_list_processes(a->cli->ctx, infos, (size_t)room);
	crowd = neighbours(a, infos, (size_t)MAX(MIN(n, room), 0));
	if (crowd <= VMIDS)
		outcome_skip(o,
			     "GPU %u has queues of %zu process%s: run this again with more than %d",
			     a->queues[0].gpu_id, crowd, crowd == 1 ? "" : "es", VMIDS);
	else
		outcome_pass(o, (double)crowd,
			     "on GPU %u, which takes turns: all times above are of such a GPU",
			     a->queues[0].gpu_id);
}

static void check_static(struct accept *a, struct outcome *o)
{
	outcome_skip(o, "no driver maps any, with the kernel extension (level K3) neither");
}

static void check_timeout(struct accept *a, struct outcome *o)
{
	outcome_skip(o, "never done to a machine in use: it would reset the GPU, and end the work "
			"of everybody on it");
}

const struct check accept_checks[] = {
	{ "suspend", "all queues of a process leave the GPU in one call", "us", check_suspend },
	{ "resume", "all queues of a process return to it in one call", "us", check_resume },
	{ "first-suspend", "does the first suspension move the save area (SVM)?", "ratio",
	  check_first },
	{ "queues", "it costs one cycle of the GPU: all its queues take as long as one", "ratio",
	  check_queues },
	{ "saved", "what runs is saved whole, within the save area", "bytes", check_saved },
	{ "save-cost", "what does the size of the saved state cost?", "us/MiB", check_save_cost },
	{ "placement", "where does the save area lie?", "bytes", check_placement },
	{ "grace", "how much longer is a suspension that lets waves end?", "us", check_grace },
	{ "stops", "a suspended queue takes no packet", "queues", check_stops },
	{ "continues", "a resumed job goes on", "ms", check_continues },
	{ "online", "how much does a neighbour lose to the cycles?", "percent", check_online },
	{ "static-queue", "does a static queue stay on the GPU during a cycle?", "us",
	  check_static },
	{ "crowd", "it works with more processes than the GPU has VMIDs", "processes",
	  check_crowd },
	{ "detach", "what does ending a session cost?", "us", check_detach },
	{ "preemption-timeout", "a queue that will not yield costs a reset", "ms", check_timeout },
	{ "holder-killed", "a holder is killed: its job runs again within 2 s", "ms",
	  check_killed },
	{ NULL },
};
