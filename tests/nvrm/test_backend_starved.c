/* SPDX-License-Identifier: MIT */
/* What hostile processes cost the backend, and whom they make wait: counted, not timed. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/nvrm/process.h"
#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define HOSTILE 3000
#define HOSTILE_UID 1001

/* ---- the owner's thread ---- */

#define LOOKERS 4
#define SOCKETS 40000u
#define FIRST_LOOKS 8
#define FIRST_CALLS 2300u /* of one look for processes, at the beginning */
#define MOST_CALLS 600u /* and later */

static void open_160_000_descriptors(struct bed *bed)
{
	for (pid_t pid = HOSTILE; pid < HOSTILE + LOOKERS; pid++) {
		fake_rm_spawn(bed->fake, pid, HOSTILE_UID, "hostile");
		fake_rm_open_sockets(bed->fake, pid, SOCKETS);
	}
}

static void a_look_for_processes_costs_the_same_whatever_is_open(void **state)
{
	struct bed *bed = *state;
	pid_t pids[4];
	size_t all = 0;

	open_160_000_descriptors(bed);
	fake_rm_job(bed->fake, OTHER);
	for (int i = 0; i < 400; i++) {
		size_t calls;

		fake_rm_forget_calls(bed->fake);
		assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 2);
		assert_int_equal(pids[0], JOB);
		assert_int_equal(pids[1], OTHER);
		calls = fake_rm_count(bed->fake, FAKE_ANY, 0);
		assert_in_range(calls, 1, i < FIRST_LOOKS ? FIRST_CALLS : MOST_CALLS);
		all += calls;
	}
	assert_true(all > LOOKERS * SOCKETS); /* they were read all the same */
}

static void who_comes_while_they_are_read_is_found_at_once(void **state)
{
	struct bed *bed = *state;
	pid_t pids[4];

	open_160_000_descriptors(bed);
	assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 1);
	fake_rm_job(bed->fake, OTHER);
	assert_int_equal(bed_ops(bed)->processes(bed->b, pids, ARRAY_SIZE(pids)), 2);
	assert_int_equal(pids[1], OTHER);
}

/* ---- the worker ---- */

#define DESCRIPTORS 1024
#define NUMBERS 65536u /* that are asked for by each of them */
/* A step, and what is asked about whom the order is for. */
#define MOST_WAITED (2 * NVRM_STEP_ASKS + 100)

/* Through none of its descriptors anything was made. */
static void start_hostile(struct bed *bed, pid_t pid)
{
	fake_rm_spawn(bed->fake, pid, HOSTILE_UID, "hostile");
	fake_rm_open_file(bed->fake, pid, "/dev/nvidia0");
	for (int i = 0; i < DESCRIPTORS; i++)
		fake_rm_open_file(bed->fake, pid, "/dev/nvidiactl");
}

static struct gpu_watch *watch(struct bed *bed, pid_t pid)
{
	struct gpu_watch *w;

	assert_int_equal(bed_ops(bed)->watch(bed->b, pid, &w), 0);
	return w;
}

static bool has_asked(struct bed *bed, size_t times)
{
	return fake_rm_count(bed->fake, FAKE_IOCTL, FAKE_CMD_SHARE) >= times;
}

/* The worker stands in the middle of a search that would take 67 million questions. */
static void stop_in_search(struct bed *bed)
{
	fake_rm_pass_clients(bed->fake, NUMBERS + 1);
	start_hostile(bed, HOSTILE);
	fake_rm_forget_calls(bed->fake);
	watch(bed, HOSTILE);
	bed_await(bed, has_asked, 3 * NVRM_STEP_ASKS);
	fake_rm_block(bed->fake, FAKE_CMD_SHARE);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	fake_rm_forget_calls(bed->fake);
}

/* Before the search has come much further: nobody waits for tests that fail. */
static void await_soon(struct bed *bed, bool (*is_so)(struct bed *bed, size_t what), size_t what)
{
	struct pollfd nothing = { .fd = -1 };

	while (!is_so(bed, what)) {
		assert_false(has_asked(bed, 100 * NVRM_STEP_ASKS));
		poll(&nothing, 1, 1);
	}
}

static bool has_news(struct bed *bed, size_t unused)
{
	return !bed_is_quiet(bed);
}

static bool is_shown(struct bed *bed, size_t w)
{
	return bed_ops(bed)->refresh((struct gpu_watch *)w) == 1;
}

static void expect_soon(struct bed *bed, enum gpu_verb verb, uint32_t queues)
{
	await_soon(bed, has_news, 0);
	bed_expect(bed, verb, 0, queues);
	assert_in_range(fake_rm_count_before(bed->fake, NVRM_CTRL_DISABLE_CHANNELS), 0,
			MOST_WAITED);
}

static void hold(struct bed *bed, struct gpu_target *t)
{
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
}

static void a_search_keeps_nobody_from_running_again(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);

	hold(bed, t);
	stop_in_search(bed);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	expect_soon(bed, GPU_RESUME, HELD);
}

static void a_search_keeps_nobody_from_being_released(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);

	hold(bed, t);
	stop_in_search(bed);
	bed_ops(bed)->release(t, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	expect_soon(bed, GPU_RELEASE, 0);
}

static void a_search_does_not_make_a_hold_longer(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);
	uint64_t longest_ns = 20 * NSEC_PER_MSEC, end_ns;

	stop_in_search(bed);
	do { /* until the worker is in the search again before the hold is over */
		longest_ns *= 2;
		end_ns = bed_ops(bed)->now_ns(bed->b) + longest_ns;
		bed_ops(bed)->suspend(t, &(struct gpu_hold){ .longest_ns = longest_ns }, 0);
		bed_ops(bed)->submit(bed->b);
		fake_rm_unblock(bed->fake);
		await_soon(bed, has_news, 0);
		assert_int_equal(bed_next(bed).verb, GPU_SUSPEND);
		fake_rm_block(bed->fake, FAKE_CMD_SHARE);
		bed_ops(bed)->submit(bed->b);
		fake_rm_wait_blocked(bed->fake);
	} while (bed_job_off(bed, 0));
	bed_await(bed, bed_time_is, end_ns);
	fake_rm_forget_calls(bed->fake);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	await_soon(bed, bed_job_off, 0);
	assert_in_range(fake_rm_count_before(bed->fake, NVRM_CTRL_DISABLE_CHANNELS), 0,
			MOST_WAITED);
}

/* Nor does one that somebody waits for. */
static void an_attach_that_takes_long_keeps_nobody_held(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB), *hostile;

	hold(bed, t);
	stop_in_search(bed);
	bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ HOSTILE }, 1, &hostile);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	expect_soon(bed, GPU_RESUME, HELD);
	bed_expect(bed, GPU_ATTACH, -EAGAIN, 0);
	bed_ops(bed)->release(hostile, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
}

#define HOSTILES 3

static void start_crowd(struct bed *bed)
{
	stop_in_search(bed);
	for (pid_t pid = HOSTILE + 1; pid < HOSTILE + HOSTILES; pid++) {
		start_hostile(bed, pid);
		watch(bed, pid);
	}
}

/* Each step of his own after one of the hostile user's, however many processes that one has. */
static void users_take_turns_with_their_searches(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w;
	size_t alone;

	fake_rm_forget_calls(bed->fake);
	w = watch(bed, JOB);
	bed_await_refresh(bed, w, 1);
	alone = fake_rm_count(bed->fake, FAKE_IOCTL, 0);
	bed_ops(bed)->unwatch(w);
	start_crowd(bed);
	fake_rm_job(bed->fake, OTHER);
	w = watch(bed, OTHER);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	await_soon(bed, is_shown, (size_t)w);
	assert_true(fake_rm_count_before(bed->fake, NVRM_CTRL_GET_GROUP_INFO) <
		    2 * alone + 4 * NVRM_STEP_ASKS);
}

static void a_users_own_processes_take_turns_too(void **state)
{
	struct bed *bed = *state;
	struct gpu_watch *w;
	uint32_t client;

	start_crowd(bed);
	fake_rm_spawn(bed->fake, OTHER, HOSTILE_UID, "job");
	client = fake_rm_client(bed->fake, OTHER,
				fake_rm_open_file(bed->fake, OTHER, "/dev/nvidiactl"));
	fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	w = watch(bed, OTHER);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	await_soon(bed, is_shown, (size_t)w);
	assert_true(fake_rm_count_before(bed->fake, NVRM_CTRL_GET_GROUP_INFO) <
		    10 * (HOSTILES + 1) * NVRM_STEP_ASKS);
}

static bool nothing_is_borrowed(struct bed *bed, size_t descriptors)
{
	return fake_rm_descriptors(bed->fake) == descriptors;
}

static void who_ends_while_it_is_searched_leaves_nothing(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *hostile;

	stop_in_search(bed);
	bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ HOSTILE }, 1, &hostile);
	fake_rm_exit(bed->fake, HOSTILE);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	bed_expect(bed, GPU_ATTACH, -ESRCH, 0);
	bed_await(bed, nothing_is_borrowed, 0);
}

/* The worker stands still. */
static size_t calls_before_hold(struct bed *bed, int nth)
{
	const struct fake_call *calls;
	size_t n, i = 0;

	calls = fake_rm_calls(bed->fake, &n);
	for (; i < n && nth > 0; i++)
		nth -= calls[i].cmd == NVRM_CTRL_DISABLE_CHANNELS && calls[i].disable &&
		       calls[i].result == NVRM_OK;
	return nth == 0 ? i : SIZE_MAX;
}

/* It makes the driver refuse the call that is to hold it, and has much to be looked at then. */
static void who_cannot_be_held_at_once_is_looked_into_later(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB), *other;
	uint32_t client = fake_rm_job(bed->fake, OTHER), group;

	group = fake_rm_context(bed->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	other = bed_attach(bed, OTHER);
	fake_rm_memory(bed->fake, client, 60000);
	fake_rm_block(bed->fake, NVRM_CTRL_DISABLE_CHANNELS);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	fake_rm_drop_context(bed->fake, client, group);
	bed_ops(bed)->suspend(other, &(struct gpu_hold){ 0 }, 0);
	fake_rm_forget_calls(bed->fake);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_block(bed->fake, NVRM_CTRL_GET_HANDLE_INFO);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	assert_in_range(calls_before_hold(bed, 2), 1, 1000);
	assert_int_equal(fake_rm_disabled(bed->fake, OTHER), HELD_CHANNELS);
}

/* A worker that is in a search comes out of it when there is nobody to be searched. */
static int teardown(void **state)
{
	struct bed *bed = *state;

	for (pid_t pid = HOSTILE; pid < HOSTILE + HOSTILES; pid++) {
		struct proc_files files;

		bed_ops(bed)->ask(bed->b, pid, PROC_BIT(PROC_STAT));
		if (bed_ops(bed)->answer(bed->b, &files) && files.result == 0)
			fake_rm_exit(bed->fake, pid);
		proc_files_done(&files);
	}
	return bed_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, bed_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_look_for_processes_costs_the_same_whatever_is_open),
		T(who_comes_while_they_are_read_is_found_at_once),
		T(a_search_keeps_nobody_from_running_again),
		T(a_search_keeps_nobody_from_being_released),
		T(a_search_does_not_make_a_hold_longer),
		T(an_attach_that_takes_long_keeps_nobody_held),
		T(users_take_turns_with_their_searches),
		T(a_users_own_processes_take_turns_too),
		T(who_ends_while_it_is_searched_leaves_nothing),
		T(who_cannot_be_held_at_once_is_looked_into_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
