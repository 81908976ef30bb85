/* SPDX-License-Identifier: MIT */
/* What is done to a process can be undone by the guard, at whatever moment we die. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/fake_guard.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

struct fixture {
	struct rig *r;
	struct guard *guard;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	rig_setup((void **)&f->r);
	f->guard = fake_guard_new(f->r->fake, f->r->n);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct fixture *f = *state;

	assert_int_equal(fake_guard_armed(f->guard), 0);
	fake_guard_free(f->guard);
	return rig_teardown((void **)&f->r);
}

static struct nvrm_process *open_guarded(struct fixture *f, pid_t pid)
{
	struct nvrm_process *p = rig_open(f->r, pid);

	assert_int_equal(nvrm_entrust_to(p, f->guard, &f->r->failure), 0);
	return p;
}

static int hold(struct fixture *f, struct nvrm_process *p)
{
	return nvrm_hold(&p, 1, NVRM_ALL_GPUS, NULL, &f->r->failure);
}

static void expect_own_slice(struct fixture *f, uint32_t client, uint32_t group)
{
	assert_int_equal(fake_rm_slice(f->r->fake, client, group), NVRM_CUDA_SLICE_US);
}

static void nothing_is_due_before_anything_is_done(void **state)
{
	struct fixture *f = *state;
	struct nvrm_process *p;

	fake_rm_job(f->r->fake, JOB);
	p = open_guarded(f, JOB);
	assert_int_equal(fake_guard_armed(f->guard), 1);
	assert_int_equal(f->guard->slots[0].target, JOB);
	assert_int_equal(f->guard->entrusted, 1);
	assert_int_equal(fake_guard_due(f->guard), 0);
	nvrm_process_close(p);
}

static void a_hold_and_a_slice_are_undone(void **state)
{
	struct fixture *f = *state;
	uint32_t client = fake_rm_job(f->r->fake, JOB);
	struct nvrm_process *p = open_guarded(f, JOB);

	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_SHORT_SLICE_US, &f->r->failure), 0);
	assert_int_equal(hold(f, p), 0);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 20);
	fake_guard_undo(f->guard);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 0);
	expect_own_slice(f, client, COMPUTE_GROUP);
	nvrm_process_close(p);
}

static void what_was_undone_is_no_longer_due(void **state)
{
	struct fixture *f = *state;
	struct nvrm_process *p;

	fake_rm_job(f->r->fake, JOB);
	p = open_guarded(f, JOB);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, NVRM_SHORT_SLICE_US, &f->r->failure), 0);
	assert_int_equal(hold(f, p), 0);
	assert_true(fake_guard_due(f->guard) >= 2);
	assert_int_equal(nvrm_let_go(&p, 1, FAKE_GPU, &f->r->failure), 0);
	assert_int_equal(fake_guard_due(f->guard), 1);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 0, &f->r->failure), 0);
	assert_int_equal(fake_guard_due(f->guard), 0);
	nvrm_process_close(p);
}

static void the_widest_context_there_is_can_be_entrusted(void **state)
{
	struct fixture *f = *state;
	struct nvrm_process *p;
	uint32_t client;

	fake_rm_add_gpu(f->r->fake, FAKE_GPU_2, "NVIDIA H200");
	fake_rm_spawn(f->r->fake, JOB, 0, "job");
	client = fake_rm_client(f->r->fake, JOB,
				fake_rm_open_file(f->r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(f->r->fake, client, FAKE_GPU, 32);
	fake_rm_context(f->r->fake, client, FAKE_GPU_2, 32);
	p = open_guarded(f, JOB);
	assert_int_equal(nvrm_slice(p, NVRM_ALL_GPUS, 1, &f->r->failure), 0);
	assert_int_equal(hold(f, p), 0);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 256);
	fake_guard_undo(f->guard);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 0);
	expect_own_slice(f, client, COMPUTE_GROUP);
	nvrm_process_close(p);
}

static void more_than_can_be_entrusted_is_refused(void **state)
{
	struct fixture *f = *state;
	uint32_t client = fake_rm_job(f->r->fake, JOB);
	struct nvrm_process *p;

	for (int i = 0; i < GUARD_CALLS + 1; i++)
		fake_rm_context(f->r->fake, client, FAKE_GPU, 8);
	p = rig_open(f->r, JOB);
	assert_int_equal(nvrm_entrust_to(p, f->guard, &f->r->failure), -ENOSPC);
	assert_int_equal(f->r->failure.why, NVRM_WHY_TOO_MANY);
	assert_int_equal(fake_guard_armed(f->guard), 0);
	nvrm_process_close(p);
}

static void a_context_that_comes_during_a_hold_is_entrusted_before_it_is_held(void **state)
{
	struct fixture *f = *state;
	uint32_t client = fake_rm_job(f->r->fake, JOB), second;
	struct nvrm_process *p = open_guarded(f, JOB);

	assert_int_equal(hold(f, p), 0);
	second = fake_rm_context(f->r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &f->r->failure), 1);
	assert_int_equal(f->guard->entrusted, 2);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &f->r->failure), 0);
	assert_int_equal(hold(f, p), 0);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 40);
	fake_guard_undo(f->guard);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 0);
	expect_own_slice(f, client, COMPUTE_GROUP);
	expect_own_slice(f, client, second);
	nvrm_process_close(p);
}

static void a_dead_guard_means_nobody_is_touched(void **state)
{
	struct fixture *f = *state;
	struct nvrm_process *p, *other;

	fake_rm_job(f->r->fake, JOB);
	fake_rm_job(f->r->fake, OTHER);
	p = open_guarded(f, JOB);
	other = rig_open(f->r, OTHER);
	f->guard->dead = true;
	assert_int_equal(hold(f, p), -EOWNERDEAD);
	assert_int_equal(f->r->failure.why, NVRM_WHY_GUARD_DIED);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &f->r->failure), -EOWNERDEAD);
	assert_int_equal(nvrm_entrust_to(other, f->guard, &f->r->failure), -EOWNERDEAD);
	assert_int_equal(fake_rm_count(f->r->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS), 0);
	assert_int_equal(fake_rm_count(f->r->fake, FAKE_IOCTL, NVRM_CTRL_SET_TIMESLICE), 0);
	nvrm_process_close(other);
	nvrm_process_close(p);
}

static void a_guard_that_dies_during_a_hold_does_not_keep_it(void **state)
{
	struct fixture *f = *state;
	uint32_t client = fake_rm_job(f->r->fake, JOB);
	struct nvrm_process *p = open_guarded(f, JOB);

	assert_int_equal(nvrm_slice(p, FAKE_GPU, 1, &f->r->failure), 0);
	assert_int_equal(hold(f, p), 0);
	f->guard->dead = true;
	assert_int_equal(nvrm_let_go(&p, 1, FAKE_GPU, &f->r->failure), 0);
	assert_int_equal(nvrm_slice(p, FAKE_GPU, 0, &f->r->failure), 0);
	assert_int_equal(fake_rm_disabled(f->r->fake, JOB), 0);
	expect_own_slice(f, client, COMPUTE_GROUP);
	nvrm_process_close(p);
}

static void the_end_of_a_process_takes_back_what_the_guard_has_of_it(void **state)
{
	struct fixture *f = *state;
	struct nvrm_process *p;

	fake_rm_job(f->r->fake, JOB);
	p = open_guarded(f, JOB);
	assert_int_equal(hold(f, p), 0);
	fake_rm_exit(f->r->fake, JOB);
	assert_int_equal(nvrm_process_refresh(p, &f->r->failure), -ESRCH);
	assert_int_equal(fake_guard_armed(f->guard), 0);
	assert_int_equal(fake_rm_pinned(f->r->fake), 0);
	nvrm_process_close(p);
}

/* ---- at any moment ---- */

/* Everything that can be done to two processes, with a context that comes in between. */
static void act(struct fixture *f, struct nvrm_process **procs)
{
	struct nvrm_failure *why = &f->r->failure;

	nvrm_slice(procs[0], FAKE_GPU, NVRM_SHORT_SLICE_US, why);
	nvrm_slice(procs[1], FAKE_GPU, NVRM_LONG_SLICE_US, why);
	nvrm_hold(procs, 2, FAKE_GPU, NULL, why);
	fake_rm_context(f->r->fake, NVRM_FIRST_CLIENT, FAKE_GPU, 8);
	nvrm_process_refresh(procs[0], why);
	nvrm_hold(procs, 2, FAKE_GPU, NULL, why);
	nvrm_let_go(procs, 1, FAKE_GPU, why);
	nvrm_slice(procs[0], FAKE_GPU, 0, why);
	nvrm_hold(procs, 1, FAKE_GPU, NULL, why);
	nvrm_let_go(procs, 2, FAKE_GPU, why);
}

/*
 * At the nth call we die: from then on nothing reaches the driver or the guard, whatever we still
 * believe. @applied: that call did reach it, and we died before the answer came. How many calls.
 */
static size_t die_at(unsigned int nth, bool applied)
{
	void *state = NULL;
	struct fixture *f;
	struct nvrm_process *procs[2];
	size_t n;

	setup(&state);
	f = state;
	fake_rm_job(f->r->fake, JOB);
	fake_rm_job(f->r->fake, OTHER);
	procs[0] = open_guarded(f, JOB);
	procs[1] = open_guarded(f, OTHER);
	fake_rm_forget_calls(f->r->fake);
	fake_rm_fault(f->r->fake, &(struct fake_fault){ .op = FAKE_IOCTL,
							.after = nth,
							.times = UINT_MAX / 2,
							.error = EIO });
	fake_rm_fault(f->r->fake, &(struct fake_fault){ .op = FAKE_IOCTL,
							.after = nth,
							.error = EIO,
							.applied = applied,
							.then = fake_guard_freeze,
							.arg = f->guard });
	act(f, procs);
	n = fake_rm_count(f->r->fake, FAKE_IOCTL, 0);
	fake_rm_mend(f->r->fake);
	fake_guard_undo(f->guard);
	assert_int_equal(fake_rm_disabled(f->r->fake, -1), 0);
	expect_own_slice(f, NVRM_FIRST_CLIENT, COMPUTE_GROUP);
	expect_own_slice(f, NVRM_FIRST_CLIENT + 1, COMPUTE_GROUP);
	fake_guard_thaw(f->guard);
	nvrm_process_close(procs[0]);
	nvrm_process_close(procs[1]);
	teardown(&state);
	return n;
}

static void at_whatever_call_we_die_the_guard_undoes_all(void **state)
{
	unsigned int nth = 0;

	while (die_at(nth, false) > nth && die_at(nth, true) > nth)
		nth++;
	assert_in_range(nth, 20, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(nothing_is_due_before_anything_is_done),
		CASE(a_hold_and_a_slice_are_undone),
		CASE(what_was_undone_is_no_longer_due),
		CASE(the_widest_context_there_is_can_be_entrusted),
		CASE(more_than_can_be_entrusted_is_refused),
		CASE(a_context_that_comes_during_a_hold_is_entrusted_before_it_is_held),
		CASE(a_dead_guard_means_nobody_is_touched),
		CASE(a_guard_that_dies_during_a_hold_does_not_keep_it),
		CASE(the_end_of_a_process_takes_back_what_the_guard_has_of_it),
		cmocka_unit_test(at_whatever_call_we_die_the_guard_undoes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
