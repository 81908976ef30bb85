/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/sim.h"
#include "util/macros.h"

#define US NSEC_PER_USEC

static struct sim_job jobs[] = {
	{ .name = "vgg", .copies = 1, .queues = 1, .online = true },
	{ .name = "train", .copies = 2, .queues = 2 },
	{ .name = "gang", .copies = 1, .gpu = 1, .gang = true },
};

static const struct sim_scenario scenario = {
	.name = "example",
	.chip = "mi100",
	.gpus = 2,
	.duration_ns = 1000 * US,
	.jobs = jobs,
	.n_jobs = ARRAY_SIZE(jobs),
};

struct fixture {
	char path[64];
	struct sim_trace *trace;
	char *text;
};

static int set_up(void **state)
{
	static struct fixture f;
	int fd;

	f = (struct fixture){ .path = "test_sim_trace_XXXXXX" };
	fd = mkstemp(f.path);
	assert_true(fd >= 0);
	close(fd);
	f.trace = sim_trace_open(f.path, &scenario);
	assert_non_null(f.trace);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->text);
	return unlink(f->path);
}

static const char *close_and_read(struct fixture *f)
{
	_cleanup_fclose_ FILE *file = NULL;
	size_t size = 0;

	assert_int_equal(sim_trace_close(f->trace), 0);
	file = fopen(f->path, "re");
	assert_non_null(file);
	assert_true(getdelim(&f->text, &size, '\0', file) > 0);
	return f->text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		text++;
		n++;
	}
	return n;
}

static void assert_has(const char *text, const char *what)
{
	if (count(text, what) != 1)
		fail_msg("%zu times, not once, has it %s: %s", count(text, what), what, text);
}

static void times_are_microseconds_with_our_nanoseconds(void **state)
{
	struct fixture *f = *state;

	sim_trace_work(f->trace, 0, 0, 12345, 1000000, 7);
	assert_has(close_and_read(f), "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":12.345,"
				      "\"dur\":987.655,\"cat\":\"work\",\"name\":\"request 7\"}");
}

static void a_preemption_says_who_was_held_and_for_whom(void **state)
{
	struct fixture *f = *state;
	const char *text;

	sim_trace_preemption(f->trace, 1, 2, 0, 1 * US, 2 * US);
	sim_trace_preemption(f->trace, 0, 1, UINT32_MAX, 3 * US, 4 * US);
	text = close_and_read(f);
	assert_has(text, "{\"victim\":\"train/1\",\"because\":\"vgg\"}");
	assert_has(text, "{\"victim\":\"train/0\",\"because\":\"nobody\"}");
}

static void a_request_flows_from_submission_to_start(void **state)
{
	struct fixture *f = *state;
	const char *text;

	sim_trace_request(f->trace, 0, 0, 3, 10 * US, 15 * US, 20 * US);
	text = close_and_read(f);
	assert_has(text, "\"tid\":2,\"ts\":10.000,\"dur\":10.000,\"cat\":\"request\","
			 "\"name\":\"request 3\"}");
	assert_has(text, "\"tid\":2,\"ts\":10.000,\"dur\":5.000,\"cat\":\"request\","
			 "\"name\":\"waits\"}");
	assert_has(text, "{\"ph\":\"s\",\"pid\":1,\"tid\":2,\"ts\":10.000,\"cat\":\"request\","
			 "\"name\":\"starts\",\"id\":1}");
	assert_has(text, "{\"ph\":\"f\",\"pid\":1,\"tid\":1,\"ts\":15.000,\"cat\":\"request\","
			 "\"name\":\"starts\",\"id\":1,\"bp\":\"e\"}");
}

static void requests_at_a_time_have_rows_of_their_own(void **state)
{
	struct fixture *f = *state;
	const char *text;

	sim_trace_request(f->trace, 0, 1, 1, 10 * US, 10 * US, 20 * US);
	sim_trace_request(f->trace, 0, 1, 2, 30 * US, 30 * US, 40 * US);
	sim_trace_request(f->trace, 0, 1, 0, 5 * US, 5 * US, 50 * US);
	text = close_and_read(f);
	assert_has(text, "\"tid\":4,\"ts\":10.000,\"dur\":10.000");
	assert_has(text, "\"tid\":4,\"ts\":30.000,\"dur\":10.000");
	assert_has(text, "\"tid\":5,\"ts\":5.000,\"dur\":45.000");
}

static void a_request_of_no_length_has_no_flow(void **state)
{
	struct fixture *f = *state;
	const char *text;

	sim_trace_request(f->trace, 0, 0, 0, 5 * US, UINT64_MAX, 5 * US);
	text = close_and_read(f);
	assert_has(text, "\"ts\":5.000,\"dur\":0.000");
	assert_int_equal(count(text, "\"id\":"), 0);
}

static void a_gang_has_a_row_on_each_gpu(void **state)
{
	struct fixture *f = *state;
	const char *text;

	sim_trace_work(f->trace, 1, 3, 1 * US, 2 * US, 0);
	sim_trace_work(f->trace, 0, 3, 3 * US, 4 * US, 0);
	text = close_and_read(f);
	assert_has(text, "\"pid\":2,\"tid\":9,\"ts\":1.000");
	assert_has(text, "\"pid\":1,\"tid\":11,\"ts\":3.000");
	assert_has(text, "\"pid\":2,\"tid\":9,\"name\":\"thread_name\","
			 "\"args\":{\"name\":\"gang\",\"class\":\"offline\"}}");
	assert_has(text, "\"pid\":1,\"tid\":11,\"name\":\"thread_name\","
			 "\"args\":{\"name\":\"gang\",\"class\":\"offline\"}}");
}

static void slots_are_a_counter_of_the_gpu(void **state)
{
	struct fixture *f = *state;
	const struct sim_slots slots = { .online = 1, .offline = 2, .idle = 3, .free = 18 };

	sim_trace_slots(f->trace, 1, 1500, &slots);
	assert_has(close_and_read(f),
		   "{\"ph\":\"C\",\"pid\":2,\"tid\":0,\"ts\":1.500,\"name\":\"HQD slots\","
		   "\"args\":{\"online\":1,\"offline\":2,\"idle\":3,\"free\":18}}");
}

static void odd_names_do_not_break_the_file(void **state)
{
	struct sim_job odd = { .name = "a\"b\\c\n\xc3\xa9", .copies = 1 };
	const struct sim_scenario s = { .name = "odd", .gpus = 1, .jobs = &odd, .n_jobs = 1 };
	struct fixture *f = *state;

	assert_int_equal(sim_trace_close(f->trace), 0);
	f->trace = sim_trace_open(f->path, &s);
	assert_non_null(f->trace);
	assert_has(close_and_read(f), "{\"name\":\"a\\\"b\\\\c???\",");
}

static void the_first_write_that_fails_is_told_at_the_end(void **state)
{
	struct sim_trace *t = sim_trace_open("/dev/full", &scenario);

	assert_non_null(t);
	for (uint64_t i = 0; i < 10000; i++)
		sim_trace_work(t, 0, 0, i, i + 1, 0);
	assert_int_equal(sim_trace_close(t), -ENOSPC);
	t = sim_trace_open("/dev/full", &scenario);
	assert_non_null(t);
	assert_int_equal(sim_trace_close(t), -ENOSPC);
}

static void a_file_that_cannot_be_made_is_an_error(void **state)
{
	assert_null(sim_trace_open("no/such/folder/trace", &scenario));
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(times_are_microseconds_with_our_nanoseconds, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_preemption_says_who_was_held_and_for_whom, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_request_flows_from_submission_to_start, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(requests_at_a_time_have_rows_of_their_own, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_request_of_no_length_has_no_flow, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_gang_has_a_row_on_each_gpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(slots_are_a_counter_of_the_gpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(odd_names_do_not_break_the_file, set_up, tear_down),
		cmocka_unit_test(the_first_write_that_fails_is_told_at_the_end),
		cmocka_unit_test(a_file_that_cannot_be_made_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
