/* SPDX-License-Identifier: MIT */
/* Acting through the backend, on a resource manager that is played. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/nvrm/process.h"
#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define COMPUTE_GROUP 0x5c000015u /* of the first context */

static void it_says_what_it_can(void **state)
{
	struct bed *bed = *state;
	const struct gpu_caps *caps = &bed->b->caps;

	assert_string_equal(caps->name, "nvrm");
	assert_string_equal(caps->level, "N2");
	assert_int_equal(caps->unit, GPU_UNIT_CONTEXT);
	assert_true(caps->outlives_owner && caps->slices);
	assert_false(caps->modelled || caps->counts_progress || caps->disturbs_all);
}

static void a_gpu_in_instances_is_not_listed(void **state)
{
	struct bed *bed = *state;
	struct gpu_node nodes[4];

	fake_rm_add_gpu(bed->fake, FAKE_GPU_2, "NVIDIA H100");
	assert_int_equal(bed_ops(bed)->nodes(bed->b, nodes, 1), 2);
	assert_int_equal(nodes[0].gpu, FAKE_GPU);
	assert_string_equal(nodes[0].name, "NVIDIA H200");
	fake_rm_set_mig(bed->fake, FAKE_GPU);
	assert_int_equal(bed_ops(bed)->nodes(bed->b, nodes, ARRAY_SIZE(nodes)), 1);
	assert_int_equal(nodes[0].gpu, FAKE_GPU_2);
}

static void processes_and_their_files_are_found(void **state)
{
	struct bed *bed = *state;
	struct proc_files files;
	pid_t pids[4];

	fake_rm_job(bed->fake, OTHER);
	fake_rm_spawn(bed->fake, 99, 0, "shell");
	assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 2);
	assert_int_equal(pids[0], JOB);
	assert_int_equal(pids[1], OTHER);
	assert_int_equal(bed_ops(bed)->ask(bed->b, 99, PROC_BIT(PROC_STAT)), 0);
	assert_true(bed_ops(bed)->answer(bed->b, &files));
	assert_int_equal(strncmp(files.text[PROC_STAT], "99 (shell)", 10), 0);
	proc_files_done(&files);
}

/* ---- together ---- */

#define MANY 4
#define FIRST_OF_MANY 5000

struct crowd {
	struct gpu_target *first, *many[MANY];
};

static struct crowd gather(struct bed *bed)
{
	struct crowd c = { .first = bed_attach(bed, JOB) };

	for (int i = 0; i < MANY; i++) {
		fake_rm_job(bed->fake, FIRST_OF_MANY + i);
		c.many[i] = bed_attach(bed, FIRST_OF_MANY + i);
	}
	return c;
}

/* The worker waits in the driver, for the job. */
static void keep_busy(struct bed *bed, struct crowd *c)
{
	fake_rm_block(bed->fake, NVRM_CTRL_DISABLE_CHANNELS);
	bed_ops(bed)->suspend(c->first, &(struct gpu_hold){ 0 }, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	fake_rm_forget_calls(bed->fake);
}

static void carry_on(struct bed *bed)
{
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
}

static void those_who_are_to_leave_at_a_time_leave_with_one_call(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);

	keep_busy(bed, &c);
	for (int i = 0; i < MANY; i++)
		bed_ops(bed)->suspend(c.many[i], &(struct gpu_hold){ 0 }, 0);
	carry_on(bed);
	for (int i = 0; i < MANY; i++)
		bed_expect(bed, GPU_SUSPEND, 0, HELD);
	/* 8 channels each that compute: 64 go into a call. */
	assert_true(bed_disables(bed) <= 2);
	assert_int_equal(fake_rm_disabled(bed->fake, -1), (MANY + 1) * HELD_CHANNELS);
}

static void those_who_come_back_at_a_time_come_back_together(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);

	for (int i = 0; i < MANY; i++) {
		bed_ops(bed)->suspend(c.many[i], &(struct gpu_hold){ 0 }, 0);
		bed_expect(bed, GPU_SUSPEND, 0, HELD);
	}
	keep_busy(bed, &c);
	for (int i = 0; i < MANY; i++)
		bed_ops(bed)->resume(c.many[i], NULL, 0, 0);
	carry_on(bed);
	for (int i = 0; i < MANY; i++)
		bed_expect(bed, GPU_RESUME, 0, HELD);
	assert_true(bed_disables(bed) <= 2);
	assert_int_equal(fake_rm_disabled(bed->fake, -1), HELD_CHANNELS);
}

static void who_waits_for_the_gpu_comes_first_but_not_before_its_own(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);

	keep_busy(bed, &c);
	bed_ops(bed)->slice(c.many[0], GPU_SLICE_SHORT, 1);
	bed_ops(bed)->suspend(c.many[0], &(struct gpu_hold){ 0 }, 2);
	bed_ops(bed)->resume(c.many[1], NULL, 0, 3);
	bed_ops(bed)->suspend(c.many[2], &(struct gpu_hold){ 0 }, 4);
	carry_on(bed);
	assert_int_equal(bed_next(bed).cookie, 4);
	assert_int_equal(bed_next(bed).cookie, 3);
	assert_int_equal(bed_next(bed).cookie, 1);
	assert_int_equal(bed_next(bed).cookie, 2);
}

static void one_who_cannot_be_held_spoils_it_for_nobody_else(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);
	struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.after = 2, /* both calls for whom the worker is busy with */
		.times = 1,
		.status = NVRM_INVALID_STATE,
	};

	keep_busy(bed, &c);
	for (int i = 0; i < MANY; i++)
		bed_ops(bed)->suspend(c.many[i], &(struct gpu_hold){ 0 }, 0);
	fake_rm_fault(bed->fake, &fault);
	carry_on(bed);
	for (int i = 0; i < MANY; i++)
		bed_expect(bed, GPU_SUSPEND, 0, HELD);
	assert_int_equal(fake_rm_disabled(bed->fake, -1), (MANY + 1) * HELD_CHANNELS);
	assert_int_equal(fake_rm_highest(bed->fake, -1), 1);
}

/* Of four calls, two for each GPU. */
static void a_batch_refused_once_is_held_on_every_gpu_all_the_same(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t[2];

	fake_rm_add_gpu(bed->fake, FAKE_GPU_2, "NVIDIA H200");
	for (pid_t i = 0; i < 2; i++) {
		fake_rm_context(bed->fake, fake_rm_job(bed->fake, FIRST_OF_MANY + i), FAKE_GPU_2,
				FAKE_CONNECTIONS);
		t[i] = bed_attach(bed, FIRST_OF_MANY + i);
	}
	for (unsigned int after = 0; after < 4; after++) {
		fake_rm_fault(bed->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
							       .after = after % 2,
							       .applied = after / 2,
							       .status = NVRM_INVALID_STATE });
		for (int i = 0; i < 2; i++)
			bed_ops(bed)->suspend(t[i], &(struct gpu_hold){ 0 }, 0);
		for (int i = 0; i < 2; i++)
			bed_expect(bed, GPU_SUSPEND, 0, 2 * HELD);
		fake_rm_mend(bed->fake);
		assert_int_equal(fake_rm_disabled(bed->fake, -1), 4 * HELD_CHANNELS);
		assert_int_equal(fake_rm_highest(bed->fake, -1), 1);
		for (int i = 0; i < 2; i++)
			bed_ops(bed)->resume(t[i], NULL, 0, 0);
		for (int i = 0; i < 2; i++)
			bed_expect(bed, GPU_RESUME, 0, 2 * HELD);
		assert_int_equal(fake_rm_disabled(bed->fake, -1), 0);
	}
}

static void one_whose_groups_are_gone_is_no_trouble(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);
	uint32_t client = fake_rm_job(bed->fake, OTHER);
	struct gpu_target *gone = bed_attach(bed, OTHER);

	keep_busy(bed, &c);
	fake_rm_drop_context(bed->fake, client, COMPUTE_GROUP);
	bed_ops(bed)->suspend(c.many[0], &(struct gpu_hold){ 0 }, 0);
	bed_ops(bed)->suspend(gone, &(struct gpu_hold){ 0 }, 0);
	bed_ops(bed)->suspend(c.many[1], &(struct gpu_hold){ 0 }, 0);
	carry_on(bed);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_expect(bed, GPU_SUSPEND, 0, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	assert_int_equal(fake_rm_disabled(bed->fake, -1), 3 * HELD_CHANNELS);
	assert_int_equal(fake_rm_highest(bed->fake, -1), 1);
}

/* ---- ends of holds ---- */

/* What the driver refuses to end is not given up. */
static bool nothing_is_borrowed(struct bed *bed, size_t descriptors)
{
	return fake_rm_descriptors(bed->fake) == descriptors;
}

static void an_end_that_fails_is_tried_again(void **state)
{
	struct bed *bed = *state;
	struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.after = 1,
		.times = 2,
		.status = NVRM_INVALID_STATE,
	};
	struct gpu_target *t = bed_attach(bed, JOB);

	fake_rm_fault(bed->fake, &fault);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ .longest_ns = 10 * NSEC_PER_MSEC }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_await(bed, bed_job_off, 0);
	assert_int_equal(bed_disables(bed), 4);
}

static bool all_run(struct bed *bed, size_t unused)
{
	return fake_rm_disabled(bed->fake, -1) == 0;
}

static void of_ends_refused_together_each_is_asked_for_at_once(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);
	const struct gpu_hold hold = { .longest_ns = NSEC_PER_SEC };

	for (int i = 0; i < MANY; i++)
		bed_ops(bed)->suspend(c.many[i], &hold, 0);
	for (int i = 0; i < MANY; i++)
		bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_block(bed->fake, FAKE_CMD_SHARE); /* whose clients they are is asked before */
	fake_rm_wait_blocked(bed->fake);
	poll(NULL, 0, 1000); /* until the time of all is over */
	fake_rm_forget_calls(bed->fake);
	fake_rm_fault(bed->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						       .status = NVRM_INVALID_STATE });
	fake_rm_unblock(bed->fake);
	bed_await(bed, all_run, 0);
	assert_int_equal(bed_disables(bed), 1 + MANY);
}

static void release_refused(struct bed *bed, uint32_t cmd)
{
	const struct fake_fault fault = {
		.op = FAKE_IOCTL, .cmd = cmd, .times = 5, .status = NVRM_INVALID_STATE
	};
	struct gpu_target *t = bed_attach(bed, JOB);

	bed_ops(bed)->slice(t, GPU_SLICE_SHORT, 0);
	bed_expect(bed, GPU_SLICE, 0, 0);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_fault(bed->fake, &fault);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
}

/* Nobody else would, as long as we live. */
static void a_release_that_the_driver_refuses_is_tried_again(void **state)
{
	struct bed *bed = *state;

	release_refused(bed, NVRM_CTRL_DISABLE_CHANNELS);
	bed_await(bed, bed_job_off, 0);
}

static bool job_has_its_slice(struct bed *bed, size_t group)
{
	uint32_t client = NVRM_FIRST_CLIENT;

	return fake_rm_slice(bed->fake, client, (uint32_t)group) == NVRM_CUDA_SLICE_US;
}

static void a_slice_that_the_driver_would_not_give_back_is_given_back_later(void **state)
{
	struct bed *bed = *state;

	release_refused(bed, NVRM_CTRL_SET_TIMESLICE);
	bed_await(bed, job_has_its_slice, 0x5c000015u);
}

static void who_ends_with_something_not_undone_leaves_nothing(void **state)
{
	struct bed *bed = *state;

	release_refused(bed, NVRM_CTRL_DISABLE_CHANNELS);
	fake_rm_exit(bed->fake, JOB);
	bed_await(bed, nothing_is_borrowed, 0);
}

/* ---- contexts ---- */

static uint32_t late_context;

static bool late_context_follows(struct bed *bed, size_t client)
{
	return fake_rm_disabled(bed->fake, OTHER) == 2 * HELD_CHANNELS &&
	       fake_rm_slice(bed->fake, (uint32_t)client, late_context) == NVRM_SHORT_SLICE_US;
}

static void a_context_that_comes_while_its_process_is_held_is_held(void **state)
{
	struct bed *bed = *state;
	uint32_t client = fake_rm_job(bed->fake, OTHER), group;
	struct gpu_target *t = bed_attach(bed, OTHER);

	bed_ops(bed)->slice(t, GPU_SLICE_SHORT, 0);
	bed_expect(bed, GPU_SLICE, 0, 0);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	group = fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	late_context = group;
	bed_await(bed, late_context_follows, client);
	assert_int_equal(fake_rm_highest(bed->fake, OTHER), 1);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, 2 * HELD);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	assert_int_equal(fake_rm_slice(bed->fake, client, group), NVRM_CUDA_SLICE_US);
}

struct on_two { /* a process on both GPUs */
	uint32_t client, here[GROUPS], there[GROUPS]; /* groups of FAKE_GPU, of FAKE_GPU_2 */
	struct gpu_target *t;
};

static struct on_two put_on_two(struct bed *bed)
{
	struct on_two p = { .client = 0 };
	const struct gpu_queue *queues;
	size_t n, n_here = 0, n_there = 0;
	struct gpu_watch *w;

	fake_rm_add_gpu(bed->fake, FAKE_GPU_2, "NVIDIA H200");
	p.client = fake_rm_job(bed->fake, OTHER);
	fake_rm_context(bed->fake, p.client, FAKE_GPU_2, FAKE_CONNECTIONS);
	assert_int_equal(bed_ops(bed)->watch(bed->b, OTHER, &w), 0);
	p.t = bed_attach(bed, OTHER);
	bed_await_refresh(bed, w, 1);
	queues = bed_ops(bed)->queues(w, &n);
	assert_int_equal(n, 2 * GROUPS);
	for (size_t i = 0; i < n; i++) {
		if (queues[i].gpu == FAKE_GPU && n_here < GROUPS)
			p.here[n_here++] = queues[i].queue;
		else if (n_there < GROUPS)
			p.there[n_there++] = queues[i].queue;
	}
	assert_int_equal(n_here, GROUPS);
	assert_int_equal(n_there, GROUPS);
	bed_ops(bed)->unwatch(w);
	return p;
}

static void ids_of_one_gpu_leave_the_other_alone(void **state)
{
	struct bed *bed = *state;
	struct on_two p = put_on_two(bed);

	bed_ops(bed)->suspend(p.t, &(struct gpu_hold){ p.there, GROUPS }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	assert_false(fake_rm_group_off(bed->fake, p.client, COMPUTE_GROUP));
	bed_ops(bed)->suspend(p.t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_ops(bed)->resume(p.t, p.there, 1, 0); /* the unit is the process on a GPU */
	bed_expect(bed, GPU_RESUME, 0, HELD);
	assert_true(fake_rm_group_off(bed->fake, p.client, COMPUTE_GROUP));
	/* It goes on being held. */
	fake_rm_context(bed->fake, p.client, FAKE_GPU, FAKE_CONNECTIONS);
	bed_await(bed, bed_other_off, 2 * HELD_CHANNELS);
	bed_ops(bed)->resume(p.t, p.here, 1, 0);
	bed_expect(bed, GPU_RESUME, 0, 2 * HELD);
}

/* The hold ends on one GPU, and on the other the driver would not have it so. */
static struct on_two owe_one_end(struct bed *bed)
{
	struct on_two p = put_on_two(bed);

	fake_rm_fault(bed->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_DISABLE_CHANNELS,
						       .after = 3,
						       .status = NVRM_INVALID_STATE });
	bed_ops(bed)->suspend(p.t, &(struct gpu_hold){ .longest_ns = 10 * NSEC_PER_MSEC }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, 2 * HELD);
	bed_await(bed, bed_other_off, HELD_CHANNELS);
	return p;
}

static void an_end_owed_on_one_gpu_outlasts_a_resume_on_the_other(void **state)
{
	struct bed *bed = *state;
	struct on_two p = owe_one_end(bed);
	bool here = fake_rm_group_off(bed->fake, p.client, COMPUTE_GROUP);

	bed_ops(bed)->resume(p.t, here ? p.there : p.here, 1, 0);
	bed_expect(bed, GPU_RESUME, 0, 0);
	bed_await(bed, bed_other_off, 0);
}

static void an_end_owed_on_one_gpu_does_not_wait_for_a_hold_on_the_other(void **state)
{
	struct bed *bed = *state;
	struct on_two p = owe_one_end(bed);
	bool here = fake_rm_group_off(bed->fake, p.client, COMPUTE_GROUP);
	const struct gpu_hold hold = { .ids = here ? p.there : p.here, .n = GROUPS };

	bed_ops(bed)->suspend(p.t, &hold, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_await(bed, bed_other_off, 0);
}

/* ---- what goes wrong ---- */

static void a_target_that_ends_is_told_of_once_and_its_memory_is_free(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);
	struct gpu_watch *w;
	struct gpu_done done;

	assert_int_equal(bed_ops(bed)->watch(bed->b, JOB, &w), 0);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_exit(bed->fake, JOB);
	done = bed_next(bed);
	assert_int_equal(done.verb, GPU_ENDED);
	assert_int_equal(done.result, -ESRCH);
	assert_false(done.gpu_failed);
	assert_int_equal(fake_rm_pinned(bed->fake), 0);
	assert_int_equal(fake_rm_descriptors(bed->fake), 0);
	bed_await_refresh(bed, w, -ESRCH);
	bed_ops(bed)->resume(t, NULL, 0, 5);
	bed_expect(bed, GPU_RESUME, -ESRCH, 0);
	bed_ops(bed)->release(t, 6);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	assert_true(bed_is_quiet(bed));
	bed_ops(bed)->unwatch(w);
	/* Another one of this number is another one. */
	fake_rm_job(bed->fake, JOB);
	(void)bed_attach(bed, JOB);
}

static void a_target_that_ends_in_the_drivers_call_is_told_of(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);
	struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.status = NVRM_OK,
		.exits = JOB,
	};

	fake_rm_fault(bed->fake, &fault);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, -ESRCH, 0);
	assert_int_equal(bed_next(bed).verb, GPU_ENDED);
	assert_int_equal(fake_rm_pinned(bed->fake), 0);
}

static void a_gpu_that_does_not_let_go_is_named(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);
	struct fake_fault fault = {
		.op = FAKE_IOCTL,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.times = 1,
		.status = NVRM_TIMEOUT,
		.applied = true,
	};
	struct gpu_done done;

	fake_rm_fault(bed->fake, &fault);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	done = bed_next(bed);
	assert_int_equal(done.verb, GPU_SUSPEND);
	assert_true(done.result < 0);
	assert_true(done.gpu_failed);
	assert_int_equal(done.gpu, FAKE_GPU);
	assert_int_equal(fake_rm_disabled(bed->fake, JOB), 0);
}

static void who_shares_a_group_is_refused(void **state)
{
	struct bed *bed = *state;
	uint32_t client = fake_rm_job(bed->fake, OTHER), server;
	struct gpu_target *t;

	fake_rm_spawn(bed->fake, 4000, 0, "nvidia-cuda-mps-server");
	server = fake_rm_client(bed->fake, 4000,
				fake_rm_open_file(bed->fake, 4000, "/dev/nvidiactl"));
	fake_rm_context(bed->fake, server, FAKE_GPU, FAKE_CONNECTIONS);
	fake_rm_share_group(bed->fake, client, COMPUTE_GROUP, server, COMPUTE_GROUP);
	bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ OTHER }, 1, &t);
	bed_expect(bed, GPU_ATTACH, -EOPNOTSUPP, 0);
}

/* ---- the end ---- */

static void closing_lets_everybody_go(void **state)
{
	struct bed *bed = *state;
	struct crowd c = gather(bed);
	struct gpu_watch *w;

	assert_int_equal(bed_ops(bed)->watch(bed->b, JOB, &w), 0);
	for (int i = 0; i < MANY; i++) {
		bed_ops(bed)->suspend(c.many[i], &(struct gpu_hold){ 0 }, 0);
		bed_ops(bed)->slice(c.many[i], GPU_SLICE_SHORT, 0);
	}
	bed_ops(bed)->release(c.many[0], 0);
}

static void try_to_open(struct bed *bed, const char *version, int error, const char *word)
{
	struct gpu_why why = { 0 };
	struct nvrm_backend_options options = { .untested = true, .why = &why };
	struct gpu_backend *b;

	fake_rm_set_version(bed->fake, version);
	assert_int_equal(nvrm_backend_open(fake_rm_nvrm(bed->fake), &options, &b), error);
	assert_non_null(strstr(why.message, word));
}

static void a_driver_nobody_tried_is_refused_with_a_reason(void **state)
{
	try_to_open(*state, NULL, -ENODEV, "NVIDIA");
	try_to_open(*state, "nonsense\n", -EOPNOTSUPP, "driver");
	try_to_open(*state,
		    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  999.11.04  "
		    "Release Build  (x)  Mon Jan 1\n",
		    -EOPNOTSUPP, "driver");
}

#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
#define G(f) cmocka_unit_test_setup_teardown(f, bed_setup_guarded, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_says_what_it_can),
		T(a_gpu_in_instances_is_not_listed),
		T(processes_and_their_files_are_found),
		T(those_who_are_to_leave_at_a_time_leave_with_one_call),
		G(those_who_come_back_at_a_time_come_back_together),
		T(who_waits_for_the_gpu_comes_first_but_not_before_its_own),
		T(one_who_cannot_be_held_spoils_it_for_nobody_else),
		T(a_batch_refused_once_is_held_on_every_gpu_all_the_same),
		T(one_whose_groups_are_gone_is_no_trouble),
		T(an_end_that_fails_is_tried_again),
		T(of_ends_refused_together_each_is_asked_for_at_once),
		T(a_release_that_the_driver_refuses_is_tried_again),
		T(a_slice_that_the_driver_would_not_give_back_is_given_back_later),
		T(who_ends_with_something_not_undone_leaves_nothing),
		G(a_context_that_comes_while_its_process_is_held_is_held),
		T(ids_of_one_gpu_leave_the_other_alone),
		T(an_end_owed_on_one_gpu_outlasts_a_resume_on_the_other),
		T(an_end_owed_on_one_gpu_does_not_wait_for_a_hold_on_the_other),
		G(a_target_that_ends_is_told_of_once_and_its_memory_is_free),
		T(a_target_that_ends_in_the_drivers_call_is_told_of),
		T(a_gpu_that_does_not_let_go_is_named),
		T(who_shares_a_group_is_refused),
		G(closing_lets_everybody_go),
		T(a_driver_nobody_tried_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
