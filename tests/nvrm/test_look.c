/* SPDX-License-Identifier: MIT */
/* Looking into a process a step at a time, with anything between two steps. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

/* What a step asks besides what is counted, and the second question about each object. */
#define BESIDES 400u

struct steps {
	unsigned int n;
	size_t most; /* calls of one of them */
};

static struct nvrm_process *begin(struct rig *r, pid_t pid)
{
	struct nvrm_process *p;

	assert_int_equal(nvrm_process_begin(r->n, pid, &p, &r->failure), 0);
	return p;
}

static int step(struct rig *r, struct nvrm_process *p, unsigned int asks)
{
	return nvrm_process_look(p, &asks, &r->failure);
}

/* To the end of a look. */
static int look(struct rig *r, struct nvrm_process *p, unsigned int asks, struct steps *ret)
{
	int result;

	*ret = (struct steps){ 0 };
	do {
		size_t calls;

		fake_rm_forget_calls(r->fake);
		result = step(r, p, asks);
		calls = fake_rm_count(r->fake, FAKE_ANY, 0);
		ret->most = MAX(ret->most, calls);
		ret->n++;
		if (nvrm_process_waits(p))
			r->n->transport->hear(r->n->data);
	} while (result == -EINPROGRESS);
	return result;
}

static void steps_find_what_one_look_finds(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p, *q;
	struct steps steps;

	fake_rm_job(r->fake, JOB);
	p = begin(r, JOB);
	assert_int_equal(look(r, p, 16, &steps), 1);
	assert_true(steps.n > 50);
	q = rig_open(r, JOB);
	assert_int_equal(p->n_clients, q->n_clients);
	assert_int_equal(p->n_groups, q->n_groups);
	for (size_t i = 0; i < p->n_groups; i++) {
		assert_int_equal(p->groups[i].handle, q->groups[i].handle);
		assert_int_equal(p->groups[i].n_channels, q->groups[i].n_channels);
		assert_int_equal(p->groups[i].compute, q->groups[i].compute);
		assert_true(p->groups[i].checked);
	}
	nvrm_process_close(q);
	nvrm_process_close(p);
}

static void answer_later(struct rig *r)
{
	fake_rm_answer_later(r->fake);
	nvrm_free(r->n);
	r->n = fake_rm_nvrm(r->fake);
}

static void a_look_waits_for_its_answers(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	struct steps steps;

	answer_later(r);
	fake_rm_job(r->fake, JOB);
	p = begin(r, JOB);
	assert_false(nvrm_process_waits(p));
	for (int i = 0; i < 3; i++) { /* until it is heard nothing is asked again */
		assert_int_equal(step(r, p, NVRM_STEP_ASKS), -EINPROGRESS);
		assert_true(nvrm_process_waits(p));
		assert_int_equal(fake_rm_unanswered(r->fake), 1);
		assert_int_equal(fake_rm_count(r->fake, FAKE_BORROW, 0), 0);
	}
	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), 1);
	assert_false(nvrm_process_waits(p));
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

static void whoever_waits_for_a_process_hears_it(void **state)
{
	struct rig *r = *state;

	answer_later(r);
	fake_rm_job(r->fake, JOB);
	nvrm_process_close(rig_open(r, JOB));
}

static void a_job_takes_few_steps(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	struct steps steps;
	size_t calls;

	fake_rm_job(r->fake, JOB);
	fake_rm_forget_calls(r->fake);
	nvrm_process_close(rig_open(r, JOB));
	calls = fake_rm_count(r->fake, FAKE_IOCTL, 0);
	p = begin(r, JOB);
	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), 1);
	assert_in_range(steps.n, 2, 2 + calls / NVRM_STEP_ASKS);
	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), 0);
	assert_int_equal(steps.n, 1);
	nvrm_process_close(p);
}

/* ---- what a hostile process has to be looked at ---- */

static void check_steps(struct rig *r, int result)
{
	struct nvrm_process *p = begin(r, JOB);
	struct steps steps;

	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), result);
	assert_in_range(steps.most, 1, 2 * NVRM_STEP_ASKS + BESIDES);
	nvrm_process_close(p);
}

static void clients_far_away_are_searched_in_steps(void **state)
{
	struct rig *r = *state;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "hostile");
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_context(r->fake, fake_rm_client(r->fake, JOB, number), FAKE_GPU, 8);
	for (int i = 0; i < 20; i++)
		fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_pass_clients(r->fake, 60000);
	check_steps(r, 1);
}

static void clients_without_channels_are_listed_in_steps(void **state)
{
	struct rig *r = *state;

	fake_rm_job(r->fake, JOB);
	for (int i = 0; i < 100; i++)
		fake_rm_memory(r->fake, fake_rm_client(r->fake, JOB, 3), 100);
	check_steps(r, 1);
}

static void objects_without_number_are_listed_in_steps(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;
	struct steps steps;

	fake_rm_memory(r->fake, client, 30000);
	check_steps(r, 1);
	p = rig_open(r, JOB);
	fake_rm_memory(r->fake, client, 30000);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), 1);
	assert_in_range(steps.most, 1, 2 * NVRM_STEP_ASKS + BESIDES);
	assert_int_equal(p->n_groups, 8);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP); /* all are listed again */
	assert_int_equal(look(r, p, NVRM_STEP_ASKS, &steps), 1);
	assert_in_range(steps.most, 1, 2 * NVRM_STEP_ASKS + BESIDES);
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

static void ancestors_descriptors_are_read_in_steps(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, OTHER, 0, "parent");
	fake_rm_open_sockets(r->fake, OTHER, 100000);
	fake_rm_fork(r->fake, OTHER, JOB);
	fake_rm_context(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
		FAKE_GPU, 8);
	check_steps(r, 1);
}

/* Those of an ancestor that has as many clients as it likes. */
static void ancestors_copies_are_asked_in_steps(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	size_t most = 0;
	int result;

	fake_rm_job(r->fake, OTHER);
	for (int i = 0; i < 60; i++)
		fake_rm_open_file(r->fake, OTHER, "/dev/nvidiactl");
	fake_rm_fork(r->fake, OTHER, JOB);
	fake_rm_context(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
		FAKE_GPU, 8);
	p = begin(r, JOB);
	do {
		fake_rm_forget_calls(r->fake);
		result = step(r, p, 8);
		most = MAX(most, fake_rm_count(r->fake, FAKE_IOCTL, FAKE_CMD_SHARE));
	} while (result == -EINPROGRESS);
	assert_int_equal(result, 1);
	assert_in_range(most, 1, 2 * 8);
	nvrm_process_close(p);
}

/*
 * By a reader of the job's user that reads nothing else: they may be another's, who makes it hang,
 * or root's, whose readers everybody would have to wait for.
 */
static void ancestors_are_asked_by_a_reader_apart(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	int result;

	answer_later(r);
	fake_rm_job(r->fake, OTHER);
	fake_rm_fork(r->fake, OTHER, JOB);
	fake_rm_set_owner(r->fake, JOB, 1001);
	fake_rm_context(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
		FAKE_GPU, 8);
	fake_rm_silence(r->fake, OTHER);
	fake_rm_give_up(r->fake);
	p = begin(r, JOB);
	result = nvrm_process_refresh(p, &r->failure);
	assert_int_equal(result, -ETIMEDOUT);
	assert_int_equal(fake_rm_given_up(r->fake).user, 1001);
	assert_true(fake_rm_given_up(r->fake).apart);
	nvrm_process_close(p);
}

static void its_own_descriptors_are_read_in_steps(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 0, "hostile");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_sockets(r->fake, JOB, 100000);
	check_steps(r, -ENOENT);
}

/* ---- between two steps ---- */

#define SOME 100u /* asks of a step that come to no end */

static void who_frees_its_client_between_two_steps_has_none(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = begin(r, JOB);

	assert_int_equal(step(r, p, SOME), -EINPROGRESS);
	fake_rm_free_client(r->fake, client);
	assert_int_equal(step(r, p, UINT_MAX), -EOPNOTSUPP);
	nvrm_process_close(p);
	/* and no line in the log, which the end of the test looks for */
}

static void a_client_freed_while_it_is_listed_again_is_forgotten(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	assert_int_equal(step(r, p, SOME), -EINPROGRESS);
	fake_rm_free_client(r->fake, client);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0); /* drops it, too */
	assert_int_equal(step(r, p, UINT_MAX), 1);
	assert_int_equal(p->n_groups, 0);
	nvrm_process_close(p);
}

static void who_ends_between_two_steps_leaves_nothing(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = begin(r, JOB);
	assert_int_equal(step(r, p, SOME), -EINPROGRESS);
	assert_int_equal(fake_rm_descriptors(r->fake), 1);
	fake_rm_exit(r->fake, JOB);
	assert_int_equal(step(r, p, UINT_MAX), -ESRCH);
	assert_int_equal(r->failure.why, NVRM_WHY_EXITED);
	assert_int_equal(fake_rm_descriptors(r->fake), 0);
	nvrm_process_close(p);
}

static void who_is_closed_between_two_steps_leaves_nothing(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = begin(r, JOB);
	assert_int_equal(step(r, p, SOME), -EINPROGRESS);
	nvrm_process_close(p);
	rig_nothing_left(r);
}

/* As long as nobody knows whose the new context is, it is left alone; then it may be held. */
static void a_context_is_not_held_before_it_is_known_to_be_nobody_elses(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), group;
	struct nvrm_process *p = rig_open(r, JOB);
	unsigned int asks = NVRM_STEP_ASKS;
	int result;

	for (pid_t pid = 100; pid < 140; pid++)
		fake_rm_spawn(r->fake, pid, 0, "idler");
	group = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	while (p->n_groups == 4) {
		asks = p->look ? 1 : 200; /* it stops among the other processes */
		assert_int_equal(nvrm_process_look(p, &asks, &r->failure), -EINPROGRESS);
	}
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_SHORT_SLICE_US, &r->failure), 0);
	assert_true(fake_rm_group_off(r->fake, client, COMPUTE_GROUP));
	assert_false(fake_rm_group_off(r->fake, client, group));
	assert_int_equal(fake_rm_slice(r->fake, client, group), NVRM_CUDA_SLICE_US);
	do {
		result = step(r, p, NVRM_STEP_ASKS);
	} while (result == -EINPROGRESS);
	assert_int_equal(result, 1);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	assert_true(fake_rm_group_off(r->fake, client, group));
	assert_int_equal(fake_rm_highest(r->fake, JOB), 1);
	nvrm_process_close(p);
}

/* ---- what has gone ---- */

static void what_has_gone_is_forgotten_at_once(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), second;
	struct nvrm_process *p;

	second = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	fake_rm_forget_calls(r->fake);
	nvrm_process_prune(p);
	assert_in_range(fake_rm_count(r->fake, FAKE_ANY, 0), 1, 150);
	assert_int_equal(p->n_groups, 4);
	assert_int_equal(p->groups[0].handle, second);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 4);
	assert_int_equal(nvrm_let_go(&p, 1, FAKE_GPU, &r->failure), 0);
	nvrm_process_close(p);
}

static void what_may_be_there_is_not_forgotten(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_IOCTL,
						     .cmd = NVRM_CTRL_GET_HANDLE_INFO,
						     .times = 100,
						     .error = EIO });
	nvrm_process_prune(p);
	fake_rm_mend(r->fake);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 4);
	nvrm_process_close(p);
}

static void another_in_the_place_of_what_has_gone_is_not_taken_for_it(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	fake_rm_reuse(r->fake, client, COMPUTE_GROUP);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	nvrm_process_prune(p);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 0);
	nvrm_process_close(p);
}

/* ---- trouble, everywhere ---- */

static void a_job_among_others(struct rig *r)
{
	fake_rm_job(r->fake, OTHER);
	fake_rm_fork(r->fake, OTHER, JOB);
	fake_rm_context(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
		FAKE_GPU, 8);
}

static void look_in_steps(struct rig *r)
{
	struct nvrm_process *p;
	int result;

	if (nvrm_process_begin(r->n, JOB, &p, &r->failure) < 0)
		return;
	for (int looks = 0; looks < 2; looks++) {
		do {
			result = step(r, p, NVRM_STEP_ASKS);
			if (nvrm_process_waits(p))
				r->n->transport->hear(r->n->data);
			if (p->opened) {
				nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure);
				nvrm_let_go(&p, 1, FAKE_GPU, &r->failure);
			}
		} while (result == -EINPROGRESS);
		if (result < 0)
			break;
		fake_rm_advance(r->fake, 60 * NSEC_PER_SEC);
	}
	nvrm_process_close(p);
}

static const struct rig_scene stepping = { a_job_among_others, look_in_steps, NULL };

static void a_job_that_is_answered_later(struct rig *r)
{
	answer_later(r);
	a_job_among_others(r);
}

static const struct rig_scene asking = { a_job_that_is_answered_later, look_in_steps, NULL };

static void whoever_ends_at_whatever_call_leaves_nothing(void **state)
{
	rig_try_all(&stepping, &(struct fake_fault){ .exits = JOB });
	rig_try_all(&asking, &(struct fake_fault){ .exits = JOB });
}

static void any_call_may_fail_in_any_step(void **state)
{
	rig_try_all(&stepping, &(struct fake_fault){ .error = EIO });
	rig_try_all(&asking, &(struct fake_fault){ .error = EIO });
	rig_try_all(&stepping,
		    &(struct fake_fault){ .op = FAKE_IOCTL, .status = NVRM_INVALID_CLIENT });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(steps_find_what_one_look_finds),
		CASE(a_look_waits_for_its_answers),
		CASE(whoever_waits_for_a_process_hears_it),
		CASE(a_job_takes_few_steps),
		CASE(clients_far_away_are_searched_in_steps),
		CASE(clients_without_channels_are_listed_in_steps),
		CASE(objects_without_number_are_listed_in_steps),
		CASE(ancestors_descriptors_are_read_in_steps),
		CASE(ancestors_copies_are_asked_in_steps),
		CASE(ancestors_are_asked_by_a_reader_apart),
		CASE(its_own_descriptors_are_read_in_steps),
		CASE(who_frees_its_client_between_two_steps_has_none),
		CASE(a_client_freed_while_it_is_listed_again_is_forgotten),
		CASE(who_ends_between_two_steps_leaves_nothing),
		CASE(who_is_closed_between_two_steps_leaves_nothing),
		CASE(a_context_is_not_held_before_it_is_known_to_be_nobody_elses),
		CASE(what_has_gone_is_forgotten_at_once),
		CASE(what_may_be_there_is_not_forgotten),
		CASE(another_in_the_place_of_what_has_gone_is_not_taken_for_it),
		CASE(whoever_ends_at_whatever_call_leaves_nothing),
		CASE(any_call_may_fail_in_any_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
