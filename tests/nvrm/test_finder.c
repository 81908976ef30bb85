/* SPDX-License-Identifier: MIT */
/* Which processes have a GPU open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/nvrm/machine.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define IDLERS 30

struct fixture {
	struct rig *r;
	struct nvrm_finder *finder;
	pid_t pids[8];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	rig_setup((void **)&f->r);
	assert_int_equal(nvrm_finder_new(f->r->n, &f->finder), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct fixture *f = *state;

	nvrm_finder_free(f->finder);
	return rig_teardown((void **)&f->r);
}

static int list(struct fixture *f)
{
	int r = nvrm_finder_look(f->finder);

	return r < 0 ? r : nvrm_finder_list(f->finder, f->pids, ARRAY_SIZE(f->pids));
}

static void spawn_idlers(struct fixture *f)
{
	for (pid_t pid = 100; pid < 100 + IDLERS; pid++) {
		fake_rm_spawn(f->r->fake, pid, 0, "idler");
		fake_rm_open_file(f->r->fake, pid, "socket:[1]");
	}
}

static void who_has_a_gpu_open_is_found_in_order(void **state)
{
	struct fixture *f = *state;

	spawn_idlers(f);
	assert_int_equal(list(f), 0);
	fake_rm_job(f->r->fake, OTHER);
	fake_rm_job(f->r->fake, JOB);
	assert_int_equal(list(f), 2);
	assert_int_equal(f->pids[0], JOB);
	assert_int_equal(f->pids[1], OTHER);
}

static void all_are_counted_and_no_more_than_asked_for_written(void **state)
{
	struct fixture *f = *state;

	fake_rm_job(f->r->fake, JOB);
	fake_rm_job(f->r->fake, OTHER);
	assert_int_equal(list(f), 2);
	f->pids[1] = 7;
	assert_int_equal(nvrm_finder_list(f->finder, f->pids, 1), 2);
	assert_int_equal(f->pids[0], JOB);
	assert_int_equal(f->pids[1], 7);
}

/* nvidia-smi and the like have the control device open, and libraries the one for memory. */
static void the_control_device_alone_is_no_gpu(void **state)
{
	struct fixture *f = *state;

	fake_rm_spawn(f->r->fake, JOB, 0, "smi");
	fake_rm_open_file(f->r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(f->r->fake, JOB, "/dev/nvidia-uvm");
	fake_rm_open_file(f->r->fake, JOB, "/dev/nvidia0x");
	assert_int_equal(list(f), 0);
}

static void who_has_ended_is_forgotten_at_once(void **state)
{
	struct fixture *f = *state;

	fake_rm_job(f->r->fake, JOB);
	fake_rm_job(f->r->fake, OTHER);
	assert_int_equal(list(f), 2);
	fake_rm_exit(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	assert_int_equal(f->pids[0], OTHER);
}

static void a_pid_given_to_another_process_is_looked_at_anew(void **state)
{
	struct fixture *f = *state;

	fake_rm_job(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	fake_rm_exit(f->r->fake, JOB);
	fake_rm_spawn(f->r->fake, JOB, 0, "sh");
	assert_int_equal(list(f), 0);
}

static void a_gpu_opened_later_is_seen_soon_enough(void **state)
{
	struct fixture *f = *state;
	unsigned int lists = 0;

	fake_rm_spawn(f->r->fake, JOB, 0, "python3");
	for (int i = 0; i < 8; i++) {
		assert_int_equal(list(f), 0);
		fake_rm_advance(f->r->fake, 100 * NSEC_PER_MSEC);
	}
	fake_rm_open_file(f->r->fake, JOB, "/dev/nvidia0");
	while (list(f) == 0) {
		fake_rm_advance(f->r->fake, 100 * NSEC_PER_MSEC);
		assert_true(++lists < 20);
	}
	assert_int_equal(f->pids[0], JOB);
}

static void a_gpu_closed_again_is_noticed(void **state)
{
	struct fixture *f = *state;
	int number;

	fake_rm_spawn(f->r->fake, JOB, 0, "job");
	number = fake_rm_open_file(f->r->fake, JOB, "/dev/nvidia0");
	assert_int_equal(list(f), 1);
	fake_rm_close_file(f->r->fake, JOB, number);
	fake_rm_advance(f->r->fake, 60 * NSEC_PER_SEC);
	assert_int_equal(list(f), 0);
}

static void asking_often_is_cheap(void **state)
{
	struct fixture *f = *state;
	size_t first;

	spawn_idlers(f);
	fake_rm_job(f->r->fake, JOB);
	list(f);
	first = fake_rm_count(f->r->fake, FAKE_ANY, 0);
	for (int i = 0; i < 600; i++) {
		fake_rm_advance(f->r->fake, 100 * NSEC_PER_MSEC);
		list(f);
	}
	fake_rm_forget_calls(f->r->fake);
	for (int i = 0; i < 100; i++) {
		fake_rm_advance(f->r->fake, 100 * NSEC_PER_MSEC);
		assert_int_equal(list(f), 1);
	}
	assert_true(fake_rm_count(f->r->fake, FAKE_ANY, 0) < 100 * first / 10);
}

static void whose_files_may_not_be_seen_is_no_error(void **state)
{
	struct fixture *f = *state;

	fake_rm_job(f->r->fake, JOB);
	fake_rm_spawn(f->r->fake, OTHER, 1000, "mine");
	fake_rm_open_file(f->r->fake, OTHER, "/dev/nvidia0");
	fake_rm_set_caller(f->r->fake, 1000);
	assert_int_equal(list(f), 1);
	assert_int_equal(f->pids[0], OTHER);
}

static void a_list_that_cannot_be_had_is_an_error_and_forgets_nobody(void **state)
{
	struct fixture *f = *state;

	fake_rm_job(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	fake_rm_fault(f->r->fake, &(struct fake_fault){ .op = FAKE_LIST, .error = EMFILE });
	assert_int_equal(list(f), -EMFILE);
	assert_int_equal(list(f), 1);
}

/* ---- trouble ---- */

static void a_job_and_an_idler(struct rig *r)
{
	fake_rm_job(r->fake, JOB);
	fake_rm_spawn(r->fake, OTHER, 0, "idler");
}

static void list_thrice(struct rig *r)
{
	struct nvrm_finder *finder = NULL;
	pid_t pids[4];

	assert_int_equal(nvrm_finder_new(r->n, &finder), 0);
	for (int i = 0; i < 3; i++) {
		nvrm_finder_look(finder);
		nvrm_finder_list(finder, pids, ARRAY_SIZE(pids));
	}
	nvrm_finder_free(finder);
}

static void whatever_fails_and_whoever_ends_meanwhile_nothing_is_kept(void **state)
{
	const struct rig_scene scene = { a_job_and_an_idler, list_thrice, NULL };

	rig_try_all(&scene, &(struct fake_fault){ .error = EIO });
	rig_try_all(&scene, &(struct fake_fault){ .exits = JOB });
	nvrm_finder_free(NULL);
}

/* ---- answers that come later ---- */

static void answer_later(struct fixture *f)
{
	nvrm_finder_free(f->finder);
	nvrm_free(f->r->n);
	fake_rm_answer_later(f->r->fake);
	f->r->n = fake_rm_nvrm(f->r->fake);
	assert_int_equal(nvrm_finder_new(f->r->n, &f->finder), 0);
}

static void who_answers_is_found_and_who_does_not_delays_nobody(void **state)
{
	struct fixture *f = *state;

	answer_later(f);
	spawn_idlers(f);
	fake_rm_silence(f->r->fake, 100);
	fake_rm_job(f->r->fake, JOB);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(list(f), 1);
		assert_int_equal(f->pids[0], JOB);
		assert_int_equal(fake_rm_unanswered(f->r->fake), 1);
		fake_rm_advance(f->r->fake, NSEC_PER_SEC);
	}
	assert_int_equal(nvrm_finder_unseen(f->finder), 0);
}

static void who_was_found_stays_so_though_nobody_answers_and_that_is_told(void **state)
{
	struct fixture *f = *state;

	answer_later(f);
	fake_rm_job(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	fake_rm_silence(f->r->fake, JOB);
	fake_rm_give_up(f->r->fake);
	for (int i = 0; i < 3; i++) {
		fake_rm_advance(f->r->fake, NSEC_PER_SEC);
		assert_int_equal(list(f), 1);
		assert_int_equal(nvrm_finder_unseen(f->finder), 1);
	}
	fake_rm_silence(f->r->fake, 0);
	fake_rm_advance(f->r->fake, 60 * NSEC_PER_SEC);
	assert_int_equal(list(f), 1);
	assert_int_equal(nvrm_finder_unseen(f->finder), 0);
	fake_rm_silence(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	fake_rm_exit(f->r->fake, JOB);
	assert_int_equal(list(f), 0);
	assert_int_equal(nvrm_finder_unseen(f->finder), 0);
}

static void who_became_another_users_is_read_in_that_ones_name(void **state)
{
	struct fixture *f = *state;

	answer_later(f);
	fake_rm_job(f->r->fake, JOB);
	assert_int_equal(list(f), 1);
	fake_rm_set_owner(f->r->fake, JOB, 1001);
	fake_rm_silence(f->r->fake, JOB);
	fake_rm_give_up(f->r->fake);
	fake_rm_advance(f->r->fake, NSEC_PER_SEC);
	assert_int_equal(list(f), 1);
	assert_int_equal(fake_rm_given_up(f->r->fake).user, 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(who_has_a_gpu_open_is_found_in_order),
		CASE(all_are_counted_and_no_more_than_asked_for_written),
		CASE(the_control_device_alone_is_no_gpu),
		CASE(who_has_ended_is_forgotten_at_once),
		CASE(a_pid_given_to_another_process_is_looked_at_anew),
		CASE(a_gpu_opened_later_is_seen_soon_enough),
		CASE(a_gpu_closed_again_is_noticed),
		CASE(asking_often_is_cheap),
		CASE(whose_files_may_not_be_seen_is_no_error),
		CASE(a_list_that_cannot_be_had_is_an_error_and_forgets_nobody),
		CASE(whatever_fails_and_whoever_ends_meanwhile_nothing_is_kept),
		CASE(who_answers_is_found_and_who_does_not_delays_nobody),
		CASE(who_was_found_stays_so_though_nobody_answers_and_that_is_told),
		CASE(who_became_another_users_is_read_in_that_ones_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
