/* SPDX-License-Identifier: MIT */
/* Who is there and what they do; attaches to nobody. */
#include <poll.h>

#include "tests/backend/cases.h"

#define NOBODY 4194000
#define MANY 64
#define PATIENCE_MS 20000

static void it_says_what_it_can(void **state)
{
	struct ground *g = *state;
	const struct gpu_caps *caps = &g->b->caps;

	assert_true(caps->name && caps->name[0]);
	assert_true(caps->level && caps->level[0]);
	assert_int_equal(caps->slices, ground_ops(g)->slice != NULL);
	assert_true(ground_ops(g)->native || !caps->schedules);
	assert_true(ground_ops(g)->now_ns(g->b) <= ground_ops(g)->now_ns(g->b));
}

static void gpus_and_processes_are_listed(void **state)
{
	struct ground *g = *state;
	struct gpu_node nodes[GPU_NODES_MAX];
	pid_t pids[MANY];
	int n, found = 0;

	n = ground_ops(g)->nodes(g->b, nodes, GPU_NODES_MAX);
	assert_in_range(n, 1, GPU_NODES_MAX);
	assert_int_equal(ground_ops(g)->nodes(g->b, nodes, 1), n);
	assert_int_equal(nodes[0].gpu, g->gpu);
	assert_true(nodes[0].name[0]);
	n = ground_ops(g)->processes(g->b, pids, MANY);
	assert_in_range(n, GROUND_JOBS, MANY);
	for (int i = 0; i < n; i++) {
		assert_true(i == 0 || pids[i - 1] < pids[i]);
		found += pids[i] == g->pid[GROUND_A] || pids[i] == g->pid[GROUND_B];
	}
	assert_int_equal(found, GROUND_JOBS);
	assert_int_equal(ground_ops(g)->processes(g->b, pids, 1), n);
}

static void who_is_held_stays_listed(void **state)
{
	struct ground *g = *state;
	int n = ground_ops(g)->processes(g->b, NULL, 0);

	ground_hold(g, ground_attach(g, GROUND_A), GROUND_A);
	assert_int_equal(ground_ops(g)->processes(g->b, NULL, 0), n);
}

static void processes_have_owners(void **state)
{
	struct ground *g = *state;
	uid_t owner;

	assert_int_equal(ground_ops(g)->owner(g->b, g->pid[GROUND_A], &owner), 0);
	assert_int_equal(ground_ops(g)->owner(g->b, NOBODY, &owner), -ESRCH);
}

static struct proc_files answer(struct ground *g)
{
	struct pollfd p = { .fd = ground_ops(g)->fd(g->b), .events = POLLIN };
	struct proc_files files;
	struct gpu_done done;

	while (!ground_ops(g)->answer(g->b, &files)) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_int_equal(ground_ops(g)->take(g->b, &done), 0);
	}
	return files;
}

static void a_process_is_asked_about_once_at_a_time(void **state)
{
	struct ground *g = *state;
	pid_t pid = g->pid[GROUND_A];
	struct proc_files files;
	struct proc_stat stat;

	assert_int_equal(ground_ops(g)->ask(g->b, pid, PROC_BIT(PROC_STAT)), 0);
	assert_int_equal(ground_ops(g)->ask(g->b, pid, PROC_BIT(PROC_STAT)), -EALREADY);
	files = answer(g);
	assert_int_equal(files.pid, pid);
	assert_int_equal(files.result, 0);
	assert_int_equal(proc_stat_parse(files.text[PROC_STAT], files.len[PROC_STAT], &stat), 0);
	assert_int_equal(stat.pid, pid);
	assert_null(files.text[PROC_CMDLINE]); /* which was not asked for */
	proc_files_done(&files);
	assert_false(ground_ops(g)->answer(g->b, &files));
	assert_int_equal(ground_ops(g)->ask(g->b, NOBODY, PROC_BIT(PROC_STAT)), 0);
	files = answer(g);
	assert_int_equal(files.pid, NOBODY);
	assert_int_equal(files.result, -ESRCH);
	proc_files_done(&files);
}

static void queues_are_listed_and_new_ones_are_noticed(void **state)
{
	struct ground *g = *state;
	struct gpu_watch *w = ground_watch(g, GROUND_A);
	const struct gpu_queue *queues;
	uint32_t first;
	size_t n, more;

	queues = ground_ops(g)->queues(w, &n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(queues[i].gpu, g->gpu);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(queues[i].queue, queues[j].queue);
	}
	first = queues[0].queue;
	assert_int_equal(ground_ops(g)->refresh(w), 0);
	g->ops->grow(g, GROUND_A);
	ground_await_refresh(g, w, 1);
	queues = ground_ops(g)->queues(w, &more);
	assert_true(more > n);
	for (n = 0; n < more && queues[n].queue != first; n++)
		;
	assert_true(n < more); /* it has the number it had */
	g->ops->end(g, GROUND_A);
	ground_await_refresh(g, w, -ESRCH);
	ground_ops(g)->unwatch(w);
	ground_ops(g)->unwatch(NULL);
}

static int look(struct ground *g, struct gpu_watch *w, const struct gpu_sample **ret)
{
	struct pollfd p = { .fd = ground_ops(g)->fd(g->b), .events = POLLIN };
	struct gpu_done done;
	int r;

	ground_ops(g)->look(g->b, &w, 1);
	while ((r = ground_ops(g)->looked(w, ret)) == -EAGAIN) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_int_equal(ground_ops(g)->take(g->b, &done), 0);
	}
	return r;
}

static bool any_unseen(const struct gpu_sample *samples, int n)
{
	for (int i = 0; i < n; i++)
		if (samples[i].state == GPU_UNSEEN)
			return true;
	return false;
}

static void a_look_is_told_once_and_sees_work(void **state)
{
	struct ground *g = *state;
	struct gpu_watch *w = ground_watch(g, GROUND_A);
	const struct gpu_sample *samples;
	struct gpu_done done;
	size_t n;
	int r;

	if (!g->b->caps.counts_progress) { /* there is nothing to see */
		assert_int_equal(look(g, w, &samples), 0);
		ground_ops(g)->unwatch(w);
		return;
	}
	assert_int_equal(ground_ops(g)->looked(w, &samples), -ECANCELED); /* nobody has looked */
	r = look(g, w, &samples);
	for (int i = 0; i < 1000 && any_unseen(samples, r); i++) {
		g->ops->pass(g, NSEC_PER_MSEC); /* its pointers are found in time, and told */
		assert_int_equal(ground_ops(g)->take(g->b, &done), 0);
		ground_ops(g)->refresh(w);
		r = look(g, w, &samples);
	}
	ground_ops(g)->queues(w, &n);
	assert_int_equal(r, n);
	for (int i = 0; i < r; i++) {
		assert_int_equal(samples[i].gpu, g->gpu);
		assert_int_equal(samples[i].state, GPU_BUSY);
		assert_true(samples[i].write >= samples[i].read);
	}
	assert_int_equal(ground_ops(g)->looked(w, &samples), -ECANCELED);
	ground_ops(g)->unwatch(w);
}

static void who_cannot_be_looked_at_any_more_is_told_of(void **state)
{
	struct ground *g = *state;
	struct gpu_watch *w = ground_watch(g, GROUND_A);
	const struct gpu_sample *samples;

	g->ops->end(g, GROUND_A);
	ground_await_refresh(g, w, -ESRCH);
	assert_true(look(g, w, &samples) <= 0); /* nothing of it is seen */
	ground_ops(g)->unwatch(w);
}

const struct CMUnitTest cases_look[] = {
	CASE(it_says_what_it_can),
	CASE(gpus_and_processes_are_listed),
	CASE(who_is_held_stays_listed),
	CASE(processes_have_owners),
	CASE(a_process_is_asked_about_once_at_a_time),
	CASE(queues_are_listed_and_new_ones_are_noticed),
	CASE(a_look_is_told_once_and_sees_work),
	CASE(who_cannot_be_looked_at_any_more_is_told_of),
};
const size_t n_cases_look = ARRAY_SIZE(cases_look);
