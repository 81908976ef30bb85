/* SPDX-License-Identifier: MIT */
/* Watchpoints on processes that do what they like, armed by real readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpu/watchpoints/alerts.h"
#include "tests/watchpoints/actor.h"
#include "util/clock.h"
#include "util/macros.h"

#define LONG_MS 60000
#define LONG_NS (LONG_MS * NSEC_PER_MSEC)
#define MANY_THREADS 200
#define MANY_ROUNDS 10000

struct rig {
	struct alerts *all;
	struct actor actor, other; /* the other where a test starts it */
	struct alert alert, of_other;
};

static uint64_t word_at(uint32_t word)
{
	return (uintptr_t)&actor_words[word];
}

/* Lets the alerts run until it holds. */
#define AWAIT(all, condition) \
	do { \
		uint64_t until_ns = monotonic_ns() + LONG_NS; \
		while (!(condition)) { \
			struct pollfd wake = { .fd = alerts_readers_fd(all), .events = POLLIN }; \
			alerts_see(all); \
			assert_true(monotonic_ns() < until_ns); \
			poll(&wake, 1, 20); \
			alerts_run(all); \
		} \
	} while (0)

static void arm_words(struct rig *r, uint32_t first, uint32_t n)
{
	uint64_t addresses[POINTS_ADDRESSES] = { 0 };

	for (uint32_t i = 0; i < n; i++)
		addresses[i] = word_at(first + i);
	r->alert.error = 0;
	alert_arm(&r->alert, addresses, NULL, n);
	AWAIT(r->all, r->alert.state != ALERT_ARMING);
}

static void arm(struct rig *r)
{
	arm_words(r, 0, 1);
	assert_int_equal(r->alert.error, 0);
	assert_int_equal(r->alert.state, ALERT_ARMED);
}

/* That something was written, and where. */
static void assert_told(struct rig *r, uint32_t written)
{
	uint32_t which = 0;
	struct pollfd p = { .fd = alerts_fd(r->all), .events = POLLIN };

	if (!r->alert.is_hit)
		assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_ptr_equal(alerts_next(r->all, &which), &r->alert);
	assert_int_equal(which, written);
	assert_null(alerts_next(r->all, &which));
}

/* Signals are there before whoever wrote goes on. */
static void assert_not_told(struct rig *r)
{
	uint32_t which;

	assert_null(alerts_next(r->all, &which));
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_int_equal(alerts_new(&r->all), 0);
	actor_start(&r->actor);
	assert_int_equal(alert_begin(r->all, &r->alert, r->actor.pid), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	alert_end(&r->alert);
	actor_end(&r->actor);
	if (r->of_other.all)
		alert_end(&r->of_other);
	if (r->other.pid)
		actor_end(&r->other);
	alerts_free(r->all);
	free(r);
	while (waitpid(-1, NULL, __WALL) > 0) /* readers that were told to end */
		;
	return 0;
}

static pid_t reader_of_tests(void)
{
	char path[64], line[64];
	DIR *dir = opendir("/proc/self/task");
	FILE *f;
	int pid = 0;

	closedir(dir);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1) {
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "re");
		if (comm && fgets(line, sizeof(line), comm) &&
		    !strncmp(line, "gpreempt-reader", 15)) {
			fclose(comm);
			fclose(f);
			return pid;
		}
		if (comm)
			fclose(comm);
	}
	fclose(f);
	return 0;
}

static size_t files_of(pid_t pid)
{
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- cases ---- */

static void a_burst_is_told_once_and_costs_one_trap(void **state)
{
	struct rig *r = *state;

	arm(r);
	for (uint64_t n = 1; n <= 20; n++) {
		actor_write(&r->actor, 0, 0, 100);
		assert_told(r, 1);
		assert_int_equal(r->alert.state, ALERT_OFF);
		assert_int_equal(alerts_traps(r->all), n);
		actor_write(&r->actor, 0, 0, 100);
		assert_not_told(r);
		arm(r);
	}
}

static void each_address_is_told_of(void **state)
{
	struct rig *r = *state;

	arm_words(r, 0, POINTS_ADDRESSES);
	for (uint32_t i = 0; i < POINTS_ADDRESSES; i++) {
		actor_write(&r->actor, 0, i, 1);
		assert_told(r, 1u << i);
	}
	actor_write(&r->actor, 0, POINTS_ADDRESSES, 1); /* beside them */
	assert_not_told(r);
}

static void other_addresses_take_the_place_of_those_before(void **state)
{
	struct rig *r = *state;

	arm_words(r, 0, 2);
	arm_words(r, 1, 2);
	assert_int_equal(r->alert.state, ALERT_ARMED);
	actor_write(&r->actor, 0, 0, 1);
	assert_not_told(r);
	actor_write(&r->actor, 0, 2, 1);
	assert_told(r, 2);
}

static void what_was_written_before_it_was_armed_is_told(void **state)
{
	struct rig *r = *state;
	uint64_t address = word_at(0), expected = 0;

	actor_write(&r->actor, 0, 0, 1);
	alert_arm(&r->alert, &address, &expected, 1);
	AWAIT(r->all, r->alert.is_hit);
	assert_told(r, 1);
	alert_disarm(&r->alert);
	AWAIT(r->all, !r->alert.task.crew);
	expected = 1;
	alert_arm(&r->alert, &address, &expected, 1);
	AWAIT(r->all, r->alert.state == ALERT_ARMED);
	assert_not_told(r);
}

/* The reader has armed it, but nobody has heard yet which point it is that tells. */
static void what_is_told_before_it_is_said_to_be_armed_is_not_lost(void **state)
{
	struct rig *r = *state;
	uint64_t address = word_at(0), expected = 0;
	struct pollfd answered = { .fd = alerts_readers_fd(r->all), .events = POLLIN };

	arm_words(r, 1, 1); /* the reader is there */
	alert_disarm(&r->alert);
	AWAIT(r->all, !r->alert.task.crew);
	alert_arm(&r->alert, &address, &expected, 1);
	alerts_see(r->all);
	assert_int_equal(poll(&answered, 1, LONG_MS), 1);
	actor_write(&r->actor, 0, 0, 1);
	assert_not_told(r);
	AWAIT(r->all, r->alert.state != ALERT_ARMING);
	assert_told(r, 1);
	for (expected = 1; expected < 4; expected++) {
		alert_arm(&r->alert, &address, &expected, 1);
		AWAIT(r->all, r->alert.state != ALERT_ARMING);
		assert_not_told(r);
		actor_write(&r->actor, 0, 0, 1);
		assert_told(r, 1);
	}
}

/* As where there are more of them than may wait. */
static void signals_that_are_lost_while_it_is_armed_are_no_reason_to_be_deaf(void **state)
{
	struct rig *r = *state;
	uint64_t address = word_at(0);
	struct pollfd answered = { .fd = alerts_readers_fd(r->all), .events = POLLIN };

	arm_words(r, 1, 1);
	alert_disarm(&r->alert);
	AWAIT(r->all, !r->alert.task.crew);
	alert_arm(&r->alert, &address, NULL, 1);
	alerts_see(r->all);
	assert_int_equal(poll(&answered, 1, LONG_MS), 1);
	raise(SIGIO);
	assert_not_told(r);
	AWAIT(r->all, !r->alert.task.crew);
	arm(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

static void every_thread_is_watched(void **state)
{
	struct rig *r = *state;

	actor_set_threads(&r->actor, MANY_THREADS);
	arm_words(r, 0, POINTS_ADDRESSES);
	assert_int_equal(r->alert.state, ALERT_ARMED);
	for (uint32_t t = 0; t <= MANY_THREADS; t += 50) {
		actor_write(&r->actor, t, 1, 10);
		assert_told(r, 2);
	}
}

static void a_thread_is_watched_from_the_next_arming_on(void **state)
{
	struct rig *r = *state;

	arm(r);
	actor_set_threads(&r->actor, 3);
	actor_write(&r->actor, 3, 0, 1);
	assert_not_told(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
	arm(r);
	actor_write(&r->actor, 3, 0, 1);
	assert_told(r, 1);
}

static void threads_may_come_and_go_all_the_time(void **state)
{
	struct rig *r = *state;
	size_t files;

	arm(r);
	files = files_of(reader_of_tests());
	for (uint32_t n = 10; n > 0; n--) {
		actor_set_threads(&r->actor, 4);
		arm_words(r, n, 2);
		actor_set_threads(&r->actor, 0);
		actor_churn(&r->actor, 1, 300);
		arm_words(r, n, 1);
		arm_words(r, n, 3);
		actor_wait(&r->actor);
	}
	actor_write(&r->actor, 0, 1, 1);
	assert_told(r, 1);
	arm(r);
	assert_int_equal(files_of(reader_of_tests()), files);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

static void a_process_that_executes_another_program_does_no_harm(void **state)
{
	struct rig *r = *state;

	actor_set_threads(&r->actor, 4);
	arm_words(r, 0, 4);
	actor_exec(&r->actor);
	for (int i = 0; i < 3; i++)
		arm_words(r, 0, 4);
	assert_not_told(r);
}

static void a_child_of_it_is_not_watched(void **state)
{
	struct rig *r = *state;
	pid_t child;

	arm(r);
	child = actor_fork(&r->actor);
	assert_true(child > 0);
	assert_not_told(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
	kill(child, SIGKILL);
}

static void a_process_that_is_gone_is_said_to_be(void **state)
{
	struct rig *r = *state;

	arm(r);
	kill(r->actor.pid, SIGKILL);
	waitpid(r->actor.pid, NULL, 0);
	actor_start(&r->actor);
	assert_not_told(r);
	arm_words(r, 1, 1);
	assert_int_equal(r->alert.error, -ESRCH);
	assert_int_equal(r->alert.state, ALERT_OFF);
}

/* ---- registers ---- */

/* As a debugger does, but that it takes them by itself. */
static int take_register(pid_t pid, uint32_t word)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = word_at(word),
		.bp_len = 8,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void registers_that_a_debugger_has_are_said_to_be_taken(void **state)
{
	struct rig *r = *state;
	int fds[8], n = 0;

	while (n < 8 && (fds[n] = take_register(r->actor.pid, 100)) >= 0)
		n++;
	assert_true(n >= 1 && n < 8);
	arm_words(r, 0, 1);
	assert_int_equal(r->alert.error, -ENOSPC);
	assert_int_equal(r->alert.state, ALERT_OFF);
	assert_string_equal(alert_why(-ENOSPC),
			    "its debug registers are taken, by a debugger or by more than there "
			    "are");
	close(fds[--n]);
	arm(r); /* as soon as one is free */
	while (n)
		close(fds[--n]);
}

static void with_too_few_registers_it_is_not_armed_but_tells_what_it_sees(void **state)
{
	struct rig *r = *state;
	int fd = take_register(r->actor.pid, 100);

	assert_true(fd >= 0);
	arm_words(r, 0, POINTS_ADDRESSES);
	assert_int_equal(r->alert.error, -ENOSPC);
	assert_int_equal(r->alert.state, ALERT_OFF);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
	close(fd);
}

/* ---- readers ---- */

static void a_reader_that_is_killed_is_missed_at_once(void **state)
{
	struct rig *r = *state;
	pid_t reader;

	arm(r);
	reader = reader_of_tests();
	assert_true(reader > 0);
	kill(reader, SIGKILL);
	AWAIT(r->all, r->alert.state == ALERT_OFF);
	arm(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

/* What it had sent is of whom it watched, not of whom its successor watches. */
static void what_a_lost_reader_had_told_is_not_taken_for_anothers(void **state)
{
	struct rig *r = *state;
	const uint64_t address = word_at(0);
	uint32_t which;

	actor_start(&r->other);
	assert_int_equal(alert_begin(r->all, &r->of_other, r->other.pid), 0);
	arm(r);
	actor_write(&r->actor, 0, 0, 1);
	kill(reader_of_tests(), SIGKILL);
	AWAIT(r->all, r->alert.reader == 0);
	alert_arm(&r->of_other, &address, NULL, 1);
	AWAIT(r->all, r->of_other.state != ALERT_ARMING);
	assert_int_equal(r->of_other.state, ALERT_ARMED);
	assert_ptr_equal(alerts_next(r->all, &which), &r->alert);
	assert_null(alerts_next(r->all, &which));
	assert_int_equal(r->of_other.state, ALERT_ARMED);
	actor_write(&r->other, 0, 0, 1);
	assert_ptr_equal(alerts_next(r->all, &which), &r->of_other);
}

/* Whoever arms it waits for ever; nobody else does, and of the same user others are watched. */
static void a_process_that_keeps_the_lock_is_not_waited_for(void **state)
{
	struct rig *r = *state;
	const uint64_t address = word_at(0);
	uint64_t began_ns, longest_ns = 0;

	actor_start(&r->other);
	if (actor_keep_lock(&r->other) < 0) {
		print_message("# no userfaultfd here: nobody can keep that lock\n");
		return;
	}
	assert_int_equal(alert_begin(r->all, &r->of_other, r->other.pid), 0);
	arm(r);
	began_ns = monotonic_ns();
	alert_arm(&r->of_other, &address, NULL, 1);
	while (r->of_other.state == ALERT_ARMING) {
		struct pollfd p = { .fd = alerts_readers_fd(r->all), .events = POLLIN };
		uint64_t at_ns;

		poll(&p, 1, 20);
		at_ns = monotonic_ns();
		alerts_run(r->all);
		longest_ns = MAX(longest_ns, monotonic_ns() - at_ns);
		assert_true(at_ns - began_ns < LONG_NS);
	}
	assert_int_equal(r->of_other.error, -ETIMEDOUT);
	print_message("# abandoned after %llu ms, no call took longer than %llu us\n",
		      (monotonic_ns() - began_ns) / 1000000ull, longest_ns / 1000ull);
	arm(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

static void nothing_grows_with_the_rounds(void **state)
{
	struct rig *r = *state;
	size_t files = 0, rooms = 0;

	actor_set_threads(&r->actor, 4);
	for (uint32_t i = 0; i < MANY_ROUNDS; i++) {
		arm_words(r, i % 3, 2);
		actor_write(&r->actor, i % 5, i % 3, 1);
		assert_told(r, 1);
		if (i == 100) {
			files = files_of(reader_of_tests());
			rooms = r->alert.told_room;
		}
	}
	assert_int_equal(files_of(reader_of_tests()), files);
	assert_int_equal(r->alert.told_room, rooms);
	assert_int_equal(alerts_traps(r->all), MANY_ROUNDS);
}

/* A class that is taken away, and a pause: what is not armed costs the process nothing. */
static void what_is_disarmed_traps_no_more(void **state)
{
	struct rig *r = *state;

	arm(r);
	alert_disarm(&r->alert);
	AWAIT(r->all, !r->alert.task.crew);
	actor_write(&r->actor, 0, 0, 1);
	assert_not_told(r);
	assert_int_equal(alerts_traps(r->all), 0);
	arm(r);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

static void others_are_watched_by_the_same_reader(void **state)
{
	struct rig *r = *state;
	const uint64_t address = word_at(0);
	struct pollfd p = { .fd = alerts_fd(r->all), .events = POLLIN };
	uint32_t written;

	actor_start(&r->other);
	assert_int_equal(alert_begin(r->all, &r->of_other, r->other.pid), 0);
	arm(r);
	alert_arm(&r->of_other, &address, NULL, 1);
	AWAIT(r->all, r->of_other.state == ALERT_ARMED);
	actor_write(&r->other, 0, 0, 1);
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_ptr_equal(alerts_next(r->all, &written), &r->of_other);
	assert_not_told(r);
	assert_int_equal(r->alert.state, ALERT_ARMED);
	actor_write(&r->actor, 0, 0, 1);
	assert_told(r, 1);
}

/* When all end at once the reader is told of one after the other; they begin again meanwhile. */
static void registers_are_free_when_watching_has_ended(void **state)
{
	struct rig *r = *state;
	uint64_t addresses[POINTS_ADDRESSES];

	for (uint32_t i = 0; i < POINTS_ADDRESSES; i++)
		addresses[i] = word_at(i);
	actor_start(&r->other);
	assert_int_equal(alert_begin(r->all, &r->of_other, r->other.pid), 0);
	arm_words(r, 0, POINTS_ADDRESSES);
	alert_arm(&r->of_other, addresses, NULL, POINTS_ADDRESSES);
	AWAIT(r->all, r->of_other.state == ALERT_ARMED);
	alert_end(&r->alert);
	alert_end(&r->of_other);

	assert_int_equal(alert_begin(r->all, &r->of_other, r->other.pid), 0);
	assert_int_equal(alert_begin(r->all, &r->alert, r->actor.pid), 0);
	alert_arm(&r->of_other, addresses, NULL, POINTS_ADDRESSES);
	AWAIT(r->all, r->of_other.state != ALERT_ARMING);
	assert_int_equal(r->of_other.error, 0);
	arm_words(r, 0, POINTS_ADDRESSES);
	assert_int_equal(r->alert.error, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_burst_is_told_once_and_costs_one_trap),
		CASE(each_address_is_told_of),
		CASE(other_addresses_take_the_place_of_those_before),
		CASE(what_was_written_before_it_was_armed_is_told),
		CASE(what_is_told_before_it_is_said_to_be_armed_is_not_lost),
		CASE(signals_that_are_lost_while_it_is_armed_are_no_reason_to_be_deaf),
		CASE(every_thread_is_watched),
		CASE(a_thread_is_watched_from_the_next_arming_on),
		CASE(threads_may_come_and_go_all_the_time),
		CASE(a_process_that_executes_another_program_does_no_harm),
		CASE(a_child_of_it_is_not_watched),
		CASE(a_process_that_is_gone_is_said_to_be),
		CASE(registers_that_a_debugger_has_are_said_to_be_taken),
		CASE(with_too_few_registers_it_is_not_armed_but_tells_what_it_sees),
		CASE(a_reader_that_is_killed_is_missed_at_once),
		CASE(what_a_lost_reader_had_told_is_not_taken_for_anothers),
		CASE(a_process_that_keeps_the_lock_is_not_waited_for),
		CASE(nothing_grows_with_the_rounds),
		CASE(what_is_disarmed_traps_no_more),
		CASE(others_are_watched_by_the_same_reader),
		CASE(registers_are_free_when_watching_has_ended),
	};
	int r = points_try();

	if (r < 0) {
		printf("1..0 # SKIP no watchpoints here: %s\n", strerror(-r));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
