/* SPDX-License-Identifier: MIT */
/* What the log says of what happens. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "cmd/gpreemptd/events.h"

struct rig {
	struct events *events;
	int stderr_fd, log_fd;
	uint32_t told; /* events that subscribers got */
	char log[8192];
};

static void count(void *user, const struct gpreempt_event *event)
{
	((struct rig *)user)->told++;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (!r || events_new(&r->events) < 0)
		return -1;
	events_set_sink(r->events, count, r);
	r->stderr_fd = dup(STDERR_FILENO);
	r->log_fd = memfd_create("log", MFD_CLOEXEC);
	dup2(r->log_fd, STDERR_FILENO);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	dup2(r->stderr_fd, STDERR_FILENO);
	close(r->stderr_fd);
	close(r->log_fd);
	events_free(r->events);
	log_set_level(LOG_LEVEL_INFO);
	free(r);
	return 0;
}

/* Everything written so far. */
static const char *log_of(struct rig *r)
{
	ssize_t n = pread(r->log_fd, r->log, sizeof(r->log) - 1, 0);

	assert_true(n >= 0);
	r->log[n] = '\0';
	return r->log;
}

static void tell(struct rig *r, uint32_t kind, uint64_t duration_ns)
{
	const struct gpreempt_event e = { .kind = kind, .pid = 7, .duration_ns = duration_ns };

	events_tell(r->events, &e, "something");
}

static void holds_are_one_line_however_many(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 1000; i++) {
		tell(r, GPREEMPT_EVENT_HELD, 0);
		tell(r, GPREEMPT_EVENT_LET_GO, (i == 500 ? 40 : 3) * NSEC_PER_MSEC);
	}
	tell(r, GPREEMPT_EVENT_HELD, 0);
	assert_int_equal(r->told, 2001);
	assert_string_equal(log_of(r), "");
	events_summarise(r->events);
	assert_string_equal(log_of(r), "gpreemptd: in 0 s 1001 jobs were taken off a GPU and 1000 "
				       "put back, after 3037 ms in all and 40 ms at most\n");
}

static void where_nothing_happened_nothing_is_said(void **state)
{
	struct rig *r = *state;

	events_summarise(r->events);
	assert_string_equal(log_of(r), "");
	tell(r, GPREEMPT_EVENT_HELD, 0);
	events_summarise(r->events);
	assert_non_null(strstr(log_of(r), " 1 jobs "));
	events_summarise(r->events);
	assert_ptr_equal(strchr(log_of(r), '\n'), r->log + strlen(r->log) - 1); /* one line */
}

static void jobs_that_come_and_go_do_not_fill_the_log(void **state)
{
	struct rig *r = *state;
	size_t lines = 0;

	for (int i = 0; i < 100000; i++)
		tell(r, i % 2 ? GPREEMPT_EVENT_JOB_WENT : GPREEMPT_EVENT_JOB_CAME, 0);
	assert_int_equal(r->told, 100000);
	events_summarise(r->events);
	for (const char *at = log_of(r); (at = strchr(at, '\n')); at++)
		lines++;
	assert_in_range(lines, 10, 1000);
	assert_non_null(strstr(r->log, " 99800 more lines about jobs are left out\n"));
	tell(r, GPREEMPT_EVENT_JOB_CAME, 0);
	assert_non_null(strstr(log_of(r), "left out\ngpreemptd: something\n"));
}

static void lines_less_important_than_the_level_are_passed_over(void **state)
{
	static const enum log_level levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING,
						 LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		log_set_level(levels[i]);
		for (size_t n = 0; n < ARRAY_SIZE(levels); n++)
			log_line(levels[n], "%zu", n);
	}
	assert_string_equal(log_of(r), "gpreemptd: 0\n"
				       "gpreemptd: 0\ngpreemptd: 1\n"
				       "gpreemptd: 0\ngpreemptd: 1\ngpreemptd: 2\n"
				       "gpreemptd: 0\ngpreemptd: 1\ngpreemptd: 2\ngpreemptd: 3\n");
}

static void at_debug_each_hold_is_told_when_it_begins_and_ends(void **state)
{
	struct rig *r = *state;

	log_set_level(LOG_LEVEL_DEBUG);
	tell(r, GPREEMPT_EVENT_HELD, 0);
	tell(r, GPREEMPT_EVENT_LET_GO, 5 * NSEC_PER_USEC);
	assert_non_null(strstr(log_of(r), "held pid=7 "));
	assert_non_null(strstr(r->log, "let-go pid=7 uid=0 gpu=0 comm=\"\" for=0 held_us=5: "));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(holds_are_one_line_however_many),
		TEST(where_nothing_happened_nothing_is_said),
		TEST(jobs_that_come_and_go_do_not_fill_the_log),
		TEST(lines_less_important_than_the_level_are_passed_over),
		TEST(at_debug_each_hold_is_told_when_it_begins_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
