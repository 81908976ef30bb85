/* SPDX-License-Identifier: MIT */
/* Taking processes off a GPU and letting them back. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define MANY 8

static size_t disables(struct rig *r)
{
	return fake_rm_count(r->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS);
}

/* The nth call of DISABLE_CHANNELS since the calls were forgotten. */
static const struct fake_call *nth_disable(struct rig *r, size_t nth)
{
	size_t n;
	const struct fake_call *calls = fake_rm_calls(r->fake, &n);

	for (size_t i = 0; i < n; i++)
		if (calls[i].cmd == NVRM_CTRL_DISABLE_CHANNELS && nth-- == 0)
			return &calls[i];
	fail_msg("there were fewer calls");
	return NULL;
}

static int hold(struct rig *r, struct nvrm_process *p)
{
	return nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure);
}

static int let_go(struct rig *r, struct nvrm_process *p)
{
	return nvrm_let_go(&p, 1, FAKE_GPU, &r->failure);
}

static void expect_held(struct rig *r, pid_t pid, size_t channels)
{
	assert_int_equal(fake_rm_disabled(r->fake, pid), channels);
	assert_int_equal(fake_rm_highest(r->fake, pid), 1);
}

/* ---- one process ---- */

static void all_groups_go_and_come_back(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 0);
	assert_int_equal(hold(r, p), 0);
	expect_held(r, JOB, 20);
	assert_true(fake_rm_group_off(r->fake, client, COMPUTE_GROUP));
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 4);
	assert_int_equal(nvrm_groups_off(p, NVRM_ALL_GPUS), 4);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU_2), 0);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 0);
	nvrm_process_close(p);
}

static void compute_goes_first_and_that_is_when_it_is_off(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint64_t before, off = 0, after;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	fake_rm_forget_calls(r->fake);
	before = r->n->transport->now_ns(r->n->data);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, &off, &r->failure), 0);
	after = r->n->transport->now_ns(r->n->data);
	assert_int_equal(disables(r), 2);
	assert_int_equal(nth_disable(r, 0)->n, 8);
	assert_int_equal(nth_disable(r, 1)->n, 12);
	assert_true(off >= before + 300 * NSEC_PER_USEC);
	assert_true(off + 300 * NSEC_PER_USEC <= after);
	nvrm_process_close(p);
}

static void a_second_hold_is_none(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(hold(r, p), 0);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(hold(r, p), 0);
	assert_int_equal(nvrm_hold(&p, 1, NVRM_ALL_GPUS, NULL, &r->failure), 0);
	assert_int_equal(disables(r), 0);
	expect_held(r, JOB, 20);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(disables(r), 0);
	nvrm_process_close(p);
}

static void more_channels_than_a_call_can_name_take_several(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint32_t client;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	client = fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(r->fake, client, FAKE_GPU, 32);
	p = rig_open(r, JOB);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(hold(r, p), 0);
	expect_held(r, JOB, 128);
	assert_int_equal(disables(r), 3);
	assert_int_equal(nth_disable(r, 0)->n, 32);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	assert_int_equal(disables(r), 5);
	nvrm_process_close(p);
}

static void only_the_gpu_that_is_named_is_left(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint32_t client, second;

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H200");
	client = fake_rm_job(r->fake, JOB);
	second = fake_rm_context(r->fake, client, FAKE_GPU_2, 8);
	p = rig_open(r, JOB);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU_2, NULL, &r->failure), 0);
	expect_held(r, JOB, 20);
	assert_false(fake_rm_group_off(r->fake, client, COMPUTE_GROUP));
	assert_true(fake_rm_group_off(r->fake, client, second));
	assert_int_equal(nvrm_hold(&p, 1, NVRM_ALL_GPUS, NULL, &r->failure), 0);
	expect_held(r, JOB, 40);
	assert_int_equal(nvrm_let_go(&p, 1, FAKE_GPU_2, &r->failure), 0);
	expect_held(r, JOB, 20);
	assert_true(fake_rm_group_off(r->fake, client, COMPUTE_GROUP));
	assert_int_equal(nvrm_let_go(&p, 1, NVRM_ALL_GPUS, &r->failure), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	nvrm_process_close(p);
}

static void a_context_that_comes_during_a_hold_is_added_by_the_next(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(hold(r, p), 0);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 4);
	assert_int_equal(hold(r, p), 0);
	expect_held(r, JOB, 40);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	nvrm_process_close(p);
}

static void a_context_that_goes_during_a_hold_takes_its_hold_with_it(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	assert_int_equal(hold(r, p), 0);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	expect_held(r, JOB, 20);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	nvrm_process_close(p);
}

static void closing_lets_go(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(hold(r, p), 0);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
}

static void who_ends_while_held_keeps_no_memory(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(hold(r, p), 0);
	fake_rm_exit(r->fake, JOB);
	fake_rm_forget_calls(r->fake);
	nvrm_let_go(&p, 1, FAKE_GPU, &r->failure);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	assert_int_equal(disables(r), 0);
	nvrm_process_close(p);
}

/* ---- numbers that become a stranger's ---- */

static void the_number_of_a_job_that_ended_is_never_named_again(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	fake_rm_recycle_numbers(r->fake);
	assert_int_equal(hold(r, p), 0);
	fake_rm_exit(r->fake, JOB);
	assert_int_not_equal(fake_rm_job(r->fake, 200), client); /* pinned by the descriptor */
	nvrm_process_refresh(p, &r->failure);
	assert_int_equal(fake_rm_job(r->fake, OTHER), client);
	hold(r, p);
	let_go(r, p);
	nvrm_process_refresh(p, &r->failure);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	nvrm_process_close(p);
}

/*
 * The descriptor does not keep a client that its own process frees. Who is named in a call through
 * another's client the driver does not ask.
 */
static void the_number_of_a_client_that_was_freed_is_never_named_again(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *procs[2];
	uint32_t client;

	fake_rm_job(r->fake, 100);
	client = fake_rm_job(r->fake, JOB);
	procs[0] = rig_open(r, 100);
	procs[1] = rig_open(r, JOB);
	fake_rm_recycle_numbers(r->fake);
	fake_rm_free_client(r->fake, client);
	assert_int_equal(fake_rm_job(r->fake, OTHER), client);
	nvrm_hold(procs, 2, FAKE_GPU, NULL, &r->failure);
	assert_int_equal(fake_rm_disabled(r->fake, OTHER), 0);
	expect_held(r, 100, 20);
	nvrm_slice(procs[1], FAKE_GPU, NVRM_SHORT_SLICE_US, &r->failure);
	assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	nvrm_let_go(procs, 2, FAKE_GPU, &r->failure);
	nvrm_process_refresh(procs[1], &r->failure);
	assert_int_equal(procs[1]->n_groups, 0);
	nvrm_process_close(procs[0]);
	nvrm_process_close(procs[1]);
}

static void a_client_freed_while_held_is_not_named_to_let_it_go(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	fake_rm_recycle_numbers(r->fake);
	assert_int_equal(hold(r, p), 0);
	fake_rm_free_client(r->fake, client);
	assert_int_equal(fake_rm_job(r->fake, OTHER), client);
	fake_rm_leave_disabled(r->fake, client, COMPUTE_GROUP, 1); /* somebody else's hold */
	let_go(r, p);
	nvrm_process_close(p);
	assert_int_equal(fake_rm_disabled(r->fake, OTHER), 8);
	fake_rm_exit(r->fake, OTHER);
}

/* ---- several processes ---- */

static void open_many(struct rig *r, struct nvrm_process **procs)
{
	for (pid_t i = 0; i < MANY; i++) {
		fake_rm_job(r->fake, JOB + i);
		procs[i] = rig_open(r, JOB + i);
	}
	fake_rm_forget_calls(r->fake);
}

static void close_many(struct nvrm_process **procs)
{
	for (size_t i = 0; i < MANY; i++)
		nvrm_process_close(procs[i]);
}

static void many_processes_go_with_as_few_calls_as_there_can_be(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *procs[MANY];

	open_many(r, procs);
	assert_int_equal(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure), 0);
	expect_held(r, -1, 20 * MANY);
	assert_int_equal(disables(r), 3); /* 64 channels that compute, 96 that copy */
	assert_int_equal(nth_disable(r, 0)->n, 64);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(nvrm_let_go(procs, MANY, FAKE_GPU, &r->failure), 0);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	assert_int_equal(disables(r), 3);
	close_many(procs);
}

static void who_has_ended_is_left_out_of_a_batch(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *procs[MANY];

	open_many(r, procs);
	fake_rm_exit(r->fake, JOB);
	fake_rm_exit(r->fake, JOB + 5);
	assert_int_equal(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure), 0);
	expect_held(r, -1, 20 * (MANY - 2));
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	assert_int_equal(nvrm_let_go(procs, MANY, FAKE_GPU, &r->failure), 0);
	close_many(procs);
}

static void those_that_are_off_already_are_not_counted_twice_in_a_batch(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *procs[MANY];

	open_many(r, procs);
	assert_int_equal(nvrm_hold(procs + 2, 3, FAKE_GPU, NULL, &r->failure), 0);
	assert_int_equal(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure), 0);
	expect_held(r, -1, 20 * MANY);
	close_many(procs);
}

static void of_a_call_that_fails_nobody_stays_off(void **state)
{
	struct rig *r = *state;

	for (pid_t bad = 0; bad < MANY; bad++) {
		struct nvrm_process *procs[MANY];
		uint32_t client;

		open_many(r, procs);
		client = procs[bad]->clients[0].handle;
		fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
		fake_rm_context(r->fake, client, FAKE_GPU, 8);
		assert_true(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure) < 0);
		assert_int_not_equal(r->failure.why, NVRM_WHY_NONE);
		assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
		assert_int_equal(nvrm_process_refresh(procs[bad], &r->failure), 1);
		assert_int_equal(nvrm_groups_off(procs[bad], FAKE_GPU), 0);
		assert_int_equal(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure), 0);
		expect_held(r, -1, 20 * MANY);
		assert_int_equal(nvrm_let_go(procs, MANY, FAKE_GPU, &r->failure), 0);
		assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
		close_many(procs);
		for (pid_t i = 0; i < MANY; i++)
			fake_rm_exit(r->fake, JOB + i);
		fake_rm_mend(r->fake);
	}
}

/* ---- the driver's trouble ---- */

static void a_gpu_that_does_not_let_go_is_told_and_not_tried_again(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *procs[MANY];
	size_t off = 0;

	open_many(r, procs);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .status = NVRM_TIMEOUT,
						     .applied = true });
	assert_int_equal(nvrm_hold(procs, MANY, FAKE_GPU, NULL, &r->failure), -ETIMEDOUT);
	assert_int_equal(r->failure.why, NVRM_WHY_TIMEOUT);
	assert_int_equal(r->failure.gpu, FAKE_GPU);
	assert_int_equal(r->failure.status, NVRM_TIMEOUT);
	assert_int_equal(fake_rm_disabled(r->fake, -1), 0);
	for (size_t i = 0; i < MANY; i++)
		off += nvrm_groups_off(procs[i], FAKE_GPU);
	assert_int_equal(off, 0);
	close_many(procs);
}

static void what_cannot_be_let_go_is_let_go_the_next_time(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_int_equal(hold(r, p), 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .times = UINT_MAX / 2,
						     .status = NVRM_INVALID_STATE });
	assert_true(let_go(r, p) < 0);
	assert_int_equal(r->failure.status, NVRM_INVALID_STATE);
	assert_true(nvrm_groups_off(p, FAKE_GPU) > 0);
	fake_rm_mend(r->fake);
	assert_int_equal(let_go(r, p), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	nvrm_process_close(p);
}

static void what_is_not_asked_for_is_not_told(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint64_t off = 7;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						     .times = UINT_MAX / 2,
						     .error = EIO });
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, &off, NULL), -EIO);
	assert_int_equal(off, 7);
	fake_rm_mend(r->fake);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, NULL), 0);
	assert_int_equal(nvrm_let_go(&p, 1, FAKE_GPU, NULL), 0);
	assert_int_equal(nvrm_hold(NULL, 0, FAKE_GPU, NULL, NULL), 0);
	assert_int_equal(nvrm_let_go(NULL, 0, FAKE_GPU, NULL), 0);
	nvrm_process_close(p);
}

/* ---- trouble, everywhere ---- */

static void three_jobs(struct rig *r)
{
	fake_rm_job(r->fake, OTHER);
	fake_rm_job(r->fake, JOB);
	fake_rm_job(r->fake, JOB + 5);
}

static void hold_all_and_let_them_go(struct rig *r)
{
	struct nvrm_process *procs[3];
	size_t n = 0;

	n += nvrm_process_open(r->n, OTHER, &procs[n], &r->failure) == 0;
	n += nvrm_process_open(r->n, JOB, &procs[n], &r->failure) == 0;
	n += nvrm_process_open(r->n, JOB + 5, &procs[n], &r->failure) == 0;
	for (size_t i = 0; i < n; i++)
		nvrm_slice(procs[i], FAKE_GPU, NVRM_SHORT_SLICE_US, &r->failure);
	nvrm_hold(procs, n, FAKE_GPU, NULL, &r->failure);
	assert_true(fake_rm_highest(r->fake, -1) <= 1);
	for (size_t i = 0; i < n; i++)
		nvrm_process_refresh(procs[i], &r->failure);
	nvrm_let_go(procs, n, FAKE_GPU, &r->failure);
	nvrm_hold(procs, n, FAKE_GPU, NULL, &r->failure);
	assert_true(fake_rm_highest(r->fake, -1) <= 1);
	for (size_t i = 0; i < n; i++)
		nvrm_process_close(procs[i]);
}

static void all_run_as_before(struct rig *r)
{
	for (uint32_t client = NVRM_FIRST_CLIENT; client < NVRM_FIRST_CLIENT + 3; client++) {
		struct nvrm_objects objects = { 0 };

		if (client == NVRM_FIRST_CLIENT + 1)
			continue; /* may have ended */
		fake_rm_table(r->fake, client, &objects);
		nvrm_objects_done(&objects);
		assert_int_equal(fake_rm_slice(r->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	}
}

static const struct rig_scene holding = { three_jobs, hold_all_and_let_them_go, all_run_as_before };

static void a_job_that_ends_between_any_two_calls_leaves_nothing(void **state)
{
	rig_try_all(&holding, &(struct fake_fault){ .exits = JOB });
}

static void any_call_may_fail_once(void **state)
{
	rig_try_all(&holding, &(struct fake_fault){ .error = EIO });
	rig_try_all(&holding,
		    &(struct fake_fault){ .op = FAKE_IOCTL, .error = EINVAL, .applied = true });
}

static void any_call_may_be_refused_once(void **state)
{
	static const int statuses[] = { NVRM_GPU_IS_LOST, NVRM_INVALID_STATE, NVRM_TIMEOUT };

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		rig_try_all(&holding,
			    &(struct fake_fault){ .op = FAKE_IOCTL, .status = statuses[i] });
		rig_try_all(&holding, &(struct fake_fault){ .op = FAKE_IOCTL,
							    .status = statuses[i],
							    .applied = true });
	}
}

static void a_driver_that_stops_telling_is_still_told_to_let_go(void **state)
{
	static const uint32_t questions[] = { NVRM_CTRL_GET_HANDLE_INFO, FAKE_CMD_SHARE,
					      NVRM_CTRL_GET_GPU_ID, NVRM_CTRL_GET_GROUP_INFO };

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		struct fake_fault fault = { .cmd = questions[i], .times = UINT_MAX / 2 };

		fault.error = EIO;
		rig_try_all(&holding, &fault);
		fault.error = 0;
		fault.status = NVRM_GPU_IS_LOST;
		rig_try_all(&holding, &fault);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(all_groups_go_and_come_back),
		CASE(compute_goes_first_and_that_is_when_it_is_off),
		CASE(a_second_hold_is_none),
		CASE(more_channels_than_a_call_can_name_take_several),
		CASE(only_the_gpu_that_is_named_is_left),
		CASE(a_context_that_comes_during_a_hold_is_added_by_the_next),
		CASE(a_context_that_goes_during_a_hold_takes_its_hold_with_it),
		CASE(closing_lets_go),
		CASE(who_ends_while_held_keeps_no_memory),
		CASE(the_number_of_a_job_that_ended_is_never_named_again),
		CASE(the_number_of_a_client_that_was_freed_is_never_named_again),
		CASE(a_client_freed_while_held_is_not_named_to_let_it_go),
		CASE(many_processes_go_with_as_few_calls_as_there_can_be),
		CASE(who_has_ended_is_left_out_of_a_batch),
		CASE(those_that_are_off_already_are_not_counted_twice_in_a_batch),
		CASE(of_a_call_that_fails_nobody_stays_off),
		CASE(a_gpu_that_does_not_let_go_is_told_and_not_tried_again),
		CASE(what_cannot_be_let_go_is_let_go_the_next_time),
		CASE(what_is_not_asked_for_is_not_told),
		CASE(a_job_that_ends_between_any_two_calls_leaves_nothing),
		CASE(any_call_may_fail_once),
		CASE(any_call_may_be_refused_once),
		CASE(a_driver_that_stops_telling_is_still_told_to_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
