/* SPDX-License-Identifier: MIT */
/* Finding who has a GPU open among any number of processes and descriptors: counted, not timed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/nvrm/machine.h"
#include "util/macros.h"

#define CROWDS 8
#define NO_GPU UINT32_MAX
#define HOSTILE 1001
#define OTHER 1002

/* Processes with consecutive pids that are all alike. */
struct crowd {
	uint32_t first, n;
	uid_t uid;
	uint32_t fds;
	uint32_t gpu_fd;
};

struct world {
	struct crowd crowds[CROWDS];
	size_t n_crowds;
	int list_error; /* of directories of descriptors */
	size_t lists, links, owners; /* calls */
	uint64_t now_ns;
	struct nvrm n;
	struct nvrm_finder *finder;
};

static const struct nvrm_finder_budget budget = { .processes = 16384, .descriptors = 2048 };

static struct crowd *crowd_of(struct world *w, uint32_t pid)
{
	for (size_t i = 0; i < w->n_crowds; i++)
		if (pid - w->crowds[i].first < w->crowds[i].n)
			return &w->crowds[i];
	return NULL;
}

static int list_processes(struct world *w, uint64_t *position, uint32_t *ret, size_t max)
{
	uint64_t at = *position;
	size_t n = 0;

	for (size_t i = 0; i < w->n_crowds; i++) {
		const struct crowd *c = &w->crowds[i];

		for (; at < c->n && n < max; at++, (*position)++)
			ret[n++] = c->first + (uint32_t)at;
		if (at < c->n)
			return (int)n;
		at -= c->n;
	}
	*position = NVRM_LIST_END;
	return (int)n;
}

static int list(void *data, const char *path, uint64_t *position, uint32_t *ret, size_t max)
{
	struct world *w = data;
	const struct crowd *c;
	size_t n = 0;

	w->lists++;
	if (!*path)
		return list_processes(w, position, ret, max);
	c = crowd_of(w, (uint32_t)strtoul(path, NULL, 10));
	if (!c || w->list_error)
		return c ? -w->list_error : -ENOENT;
	while (n < max && *position < c->fds)
		ret[n++] = (uint32_t)(*position)++;
	if (*position == c->fds)
		*position = NVRM_LIST_END;
	return (int)n;
}

static int read_link(void *data, const char *path, char *ret, size_t size)
{
	struct world *w = data;
	char *end;
	const struct crowd *c = crowd_of(w, (uint32_t)strtoul(path, &end, 10));
	uint32_t fd = (uint32_t)strtoul(end + strlen("/fd/"), NULL, 10);

	w->links++;
	if (!c || fd >= c->fds)
		return -ENOENT;
	return snprintf(ret, size, "%s", fd == c->gpu_fd ? "/dev/nvidia0" : "socket:[1]");
}

static int owner(void *data, pid_t pid, uid_t *ret)
{
	struct world *w = data;
	const struct crowd *c = crowd_of(w, (uint32_t)pid);

	w->owners++;
	if (!c)
		return -ENOENT;
	*ret = c->uid;
	return 0;
}

static uint64_t now_ns(void *data)
{
	const struct world *w = data;

	return w->now_ns;
}

static const struct nvrm_transport transport = {
	.list_numbers = list,
	.read_link = read_link,
	.owner = owner,
	.now_ns = now_ns,
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->now_ns = NSEC_PER_SEC;
	w->n = (struct nvrm){ .transport = &transport, .data = w };
	assert_int_equal(nvrm_finder_new(&w->n, &w->finder), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	nvrm_finder_free(w->finder);
	nvrm_finder_free(NULL);
	free(w);
	return 0;
}

static struct crowd *add(struct world *w, struct crowd crowd)
{
	assert_true(w->n_crowds < CROWDS);
	w->crowds[w->n_crowds] = crowd;
	return &w->crowds[w->n_crowds++];
}

/* Also judges what it cost. */
static int step(struct world *w)
{
	int r;

	w->lists = w->links = w->owners = 0;
	w->now_ns += NSEC_PER_MSEC;
	r = nvrm_finder_step(w->finder, &budget);
	assert_true(w->links <= budget.descriptors);
	assert_true(w->lists <= budget.processes / 1024 + 1 + budget.descriptors);
	assert_true(w->owners <= budget.processes + budget.descriptors);
	return r;
}

static bool is_found(struct world *w, pid_t pid)
{
	pid_t pids[4096];
	int n = nvrm_finder_list(w->finder, pids, ARRAY_SIZE(pids));

	assert_in_range(n, 0, ARRAY_SIZE(pids));
	for (int i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* ---- what a step costs ---- */

static void a_step_costs_its_budget_however_many_descriptors_there_are(void **state)
{
	struct world *w = *state;
	size_t links = 0;
	int steps = 1;

	add(w, (struct crowd){ 10, 4, HOSTILE, 40000, NO_GPU });
	while (step(w) == 1) {
		links += w->links;
		assert_true(++steps < 100);
	}
	links += w->links;
	assert_int_equal(links, 160000);
	assert_in_range(steps, 160000 / budget.descriptors, 2 * 160000 / budget.descriptors);
}

static void what_is_not_due_is_not_read_again(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 4, HOSTILE, 40000, NO_GPU });
	while (step(w) == 1)
		;
	assert_int_equal(step(w), 0);
	assert_int_equal(w->links + w->owners, 0);
	assert_int_equal(w->lists, 1);
}

static void a_gpu_behind_100_000_descriptors_is_found_in_the_end(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 1, HOSTILE, 100001, 100000 });
	while (step(w) == 1)
		;
	assert_true(is_found(w, 10));
	step(w);
	assert_int_equal(w->links, 1);
}

static void more_processes_than_a_step_lists_are_gone_on_with(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 40000, HOSTILE, 0, NO_GPU });
	add(w, (struct crowd){ 300000, 1, OTHER, 8, 7 });
	assert_int_equal(step(w), 1);
	assert_false(is_found(w, 300000));
	step(w);
	step(w);
	assert_true(is_found(w, 300000));
	w->n_crowds--;
	for (int i = 0; i < 3; i++)
		step(w);
	assert_false(is_found(w, 300000));
}

/* ---- whom it makes wait ---- */

static void who_has_100_000_descriptors_waits_for_them_himself(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 2, HOSTILE, 100000, NO_GPU });
	step(w);
	step(w);
	add(w, (struct crowd){ 5000, 1, OTHER, 60, 50 });
	step(w);
	assert_true(is_found(w, 5000));
}

static void who_has_10_000_processes_waits_for_them_himself(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 10000, HOSTILE, 64, NO_GPU });
	step(w);
	step(w);
	add(w, (struct crowd){ 50000, 1, OTHER, 60, 50 });
	step(w);
	assert_true(is_found(w, 50000));
}

static void they_wait_no_longer_when_all_come_at_a_time(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 10000, HOSTILE, 64, NO_GPU });
	add(w, (struct crowd){ 50000, 1, OTHER, 60, 50 });
	step(w);
	assert_true(is_found(w, 50000));
}

/* One round of his own: as if nobody else were there but for taking turns. */
static void a_user_is_found_within_a_round_of_his_own(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 10000, HOSTILE, 64, NO_GPU });
	add(w, (struct crowd){ 50000, 40, OTHER, 64, NO_GPU });
	add(w, (struct crowd){ 60000, 1, OTHER, 64, 63 });
	step(w); /* 31 chunks of descriptors, of which each of the two has half */
	step(w);
	assert_false(is_found(w, 60000));
	step(w);
	assert_true(is_found(w, 60000));
}

static void long_lists_wait_for_the_short_ones_of_the_same_user(void **state)
{
	struct world *w = *state;

	add(w, (struct crowd){ 10, 2, OTHER, 100000, NO_GPU });
	step(w);
	add(w, (struct crowd){ 5000, 1, OTHER, 60, 50 });
	step(w);
	assert_true(is_found(w, 5000));
}

static void who_becomes_another_users_takes_that_ones_turns(void **state)
{
	struct world *w = *state;
	struct crowd *c;

	c = add(w, (struct crowd){ 10, 1, 0, 8, NO_GPU });
	add(w, (struct crowd){ 20, 3, 0, 8, 7 });
	step(w);
	c->uid = OTHER;
	c->gpu_fd = 7;
	w->now_ns += NSEC_PER_SEC;
	step(w);
	assert_true(is_found(w, 10));
	w->crowds[0] = (struct crowd){ 0 };
	step(w);
	assert_false(is_found(w, 10));
	assert_true(is_found(w, 20));
}

/* ---- what is known ---- */

static void who_is_known_stays_so_while_others_are_read(void **state)
{
	struct world *w = *state;
	struct crowd *c = add(w, (struct crowd){ 5000, 1, OTHER, 60, 50 });

	step(w);
	add(w, (struct crowd){ 10, 4, HOSTILE, 40000, NO_GPU });
	for (int i = 0; i < 20; i++) {
		assert_int_equal(step(w), 1);
		assert_true(is_found(w, 5000));
	}
	c->gpu_fd = 3; /* opened again before it was closed */
	assert_int_equal(step(w), 1);
	assert_true(is_found(w, 5000));
	c->gpu_fd = NO_GPU;
	assert_int_equal(step(w), 1);
	assert_false(is_found(w, 5000));
}

/* Unknown is not none. */
static void whose_descriptors_we_are_short_of_means_to_list_is_kept(void **state)
{
	struct world *w = *state;
	struct crowd *c = add(w, (struct crowd){ 5000, 1, OTHER, 60, 50 });

	step(w);
	c->gpu_fd = 4;
	w->list_error = EMFILE;
	step(w);
	assert_true(is_found(w, 5000));
	w->list_error = EACCES;
	step(w);
	assert_false(is_found(w, 5000));
}

static void nobody_takes_the_places_of_others_in_a_short_list(void **state)
{
	struct world *w = *state;
	pid_t pids[64];
	size_t of_hostile = 0;

	add(w, (struct crowd){ 10, 1000, HOSTILE, 8, 7 });
	add(w, (struct crowd){ 5000, 40, OTHER, 8, 7 });
	add(w, (struct crowd){ 6000, 3, 0, 8, 7 });
	while (step(w) == 1)
		;
	assert_int_equal(nvrm_finder_list(w->finder, pids, ARRAY_SIZE(pids)), 1043);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(pids); i++) {
		assert_true(i == 0 || pids[i] > pids[i - 1]);
		of_hostile += pids[i] < 5000;
	}
	assert_int_equal(of_hostile, 30);
	assert_int_equal(pids[62], 6002);
	assert_int_equal(nvrm_finder_list(w->finder, NULL, 0), 1043);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(a_step_costs_its_budget_however_many_descriptors_there_are),
		CASE(what_is_not_due_is_not_read_again),
		CASE(a_gpu_behind_100_000_descriptors_is_found_in_the_end),
		CASE(more_processes_than_a_step_lists_are_gone_on_with),
		CASE(who_has_100_000_descriptors_waits_for_them_himself),
		CASE(who_has_10_000_processes_waits_for_them_himself),
		CASE(they_wait_no_longer_when_all_come_at_a_time),
		CASE(a_user_is_found_within_a_round_of_his_own),
		CASE(long_lists_wait_for_the_short_ones_of_the_same_user),
		CASE(who_becomes_another_users_takes_that_ones_turns),
		CASE(who_is_known_stays_so_while_others_are_read),
		CASE(whose_descriptors_we_are_short_of_means_to_list_is_kept),
		CASE(nobody_takes_the_places_of_others_in_a_short_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
