/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "wire/wire.h"

#define MAKE(type_, struct_, ...) \
	(struct struct_) \
	{ \
		.h = wire_header(type_, sizeof(struct struct_), 7), ##__VA_ARGS__ \
	}

static int judge(const void *packet, size_t len)
{
	union wire_any_request r;
	const char *why = NULL;
	int error = wire_check_request(packet, len, &r, &why);

	if (error == 0) {
		assert_memory_equal(&r, packet, len);
		assert_null(why);
	} else {
		assert_non_null(why);
	}
	return error;
}

#define assert_taken(packet) assert_int_equal(judge(&(packet), sizeof(packet)), 0)
#define assert_bad(packet) assert_int_equal(judge(&(packet), sizeof(packet)), -EBADMSG)

static void every_request_is_taken_at_its_size_and_at_no_other(void **state)
{
	for (uint32_t type = 0; type < 80; type++) {
		union wire_any_request r = { 0 };
		size_t bytes = wire_request_bytes(type);

		if (!bytes)
			continue;
		if (type == WIRE_CLASS) {
			r.job_class.selector = WIRE_BY_PID;
			r.job_class.pid = 1;
		}
		for (size_t len = 0; len <= sizeof(r); len++) {
			r.h = wire_header(type, len, 7);
			assert_int_equal(judge(&r, len), len == bytes ? 0 : -EBADMSG);
		}
		r.h = wire_header(type, bytes + 1, 7);
		assert_int_equal(judge(&r, bytes), -EBADMSG);
	}
}

static void types_nobody_asks_with_are_no_requests(void **state)
{
	static const uint16_t types[] = { 0, WIRE_RELOAD + 1, WIRE_EVENT, WIRE_ERROR, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct wire_request r = MAKE(types[i], wire_request);

		assert_int_equal(judge(&r, sizeof(r)), -EOPNOTSUPP);
	}
}

static void another_version_is_told_from_garbage(void **state)
{
	struct wire_request r = MAKE(WIRE_STATUS, wire_request);

	r.h.version++;
	assert_int_equal(judge(&r, sizeof(r)), -EPROTO);
	r.h.version--;
	r.h.magic ^= 1;
	assert_bad(r);
}

static void a_number_where_none_belongs_is_refused(void **state)
{
	struct wire_request status = MAKE(WIRE_STATUS, wire_request, .from = 1);
	struct wire_request jobs = MAKE(WIRE_JOBS, wire_request, .from = UINT64_MAX);
	struct wire_request rearm = MAKE(WIRE_REARM, wire_request, .from = UINT32_MAX);
	struct wire_request release = MAKE(WIRE_RELEASE, wire_request, .from = INT32_MAX);

	assert_bad(status);
	assert_taken(jobs);
	assert_taken(rearm);
	rearm.from++;
	assert_bad(rearm);
	assert_taken(release);
	release.from++;
	assert_bad(release);
}

static void text_ends_within_its_field_and_zeroes_follow(void **state)
{
	struct wire_policy p = MAKE(WIRE_POLICY, wire_policy);

	memset(p.name, 'x', sizeof(p.name) - 1);
	assert_taken(p);
	p.name[sizeof(p.name) - 1] = 'x';
	assert_bad(p);
	memset(p.name, 0, sizeof(p.name));
	p.name[3] = 'x'; /* behind an end at 0 */
	assert_bad(p);
	p.name[3] = 0;
	p.names[sizeof(p.names) - 1] = 1;
	assert_bad(p);
}

static void a_class_request_names_a_pid_or_a_pattern(void **state)
{
	struct wire_class c = MAKE(WIRE_CLASS, wire_class, .selector = WIRE_BY_PID, .pid = 1);

	assert_taken(c);
	c.pid = 0;
	assert_bad(c);
	c.pid = -1;
	assert_bad(c);
	c.pid = 1;
	c.pattern[0] = 'x';
	assert_bad(c);
	c.selector = WIRE_BY_CGROUP;
	assert_bad(c);
	c.pid = 0;
	assert_taken(c);
	c.pattern[0] = 0;
	assert_bad(c);
	memset(c.pattern, 'x', sizeof(c.pattern));
	assert_bad(c);
}

static void a_class_request_keeps_to_its_ranges(void **state)
{
	struct wire_class good = MAKE(WIRE_CLASS, wire_class, .selector = WIRE_BY_PID, .pid = 1,
				      .job_class = WIRE_CLASS_ONLINE, .priority = 255,
				      .flags = WIRE_CLASS_CRITICAL | WIRE_CLASS_LAZY,
				      .target_us = UINT64_MAX / NSEC_PER_USEC);
	struct wire_class c = good;

	assert_taken(c);
	c.priority = WIRE_KEEP;
	assert_taken(c);
	c.priority = 256;
	assert_bad(c);
	c = good;
	c.job_class = 3;
	assert_bad(c);
	c = good;
	c.flags |= 8;
	assert_bad(c);
	c = good;
	c.flags |= WIRE_CLASS_WITHDRAW;
	assert_bad(c);
	c.flags = WIRE_CLASS_WITHDRAW;
	assert_bad(c);
	c.job_class = c.priority = 0;
	c.target_us = 0;
	assert_taken(c);
	c = good;
	c.target_us++;
	assert_bad(c);
	c = good;
	c.pad = 1;
	assert_bad(c);
	c = good;
	c.selector = 0;
	assert_bad(c);
	c.selector = WIRE_BY_CONTAINER + 1;
	c.pid = 0;
	c.pattern[0] = 'x';
	assert_bad(c);
}

static void a_hint_is_of_a_pid_or_of_the_asker(void **state)
{
	struct wire_hint h = MAKE(WIRE_HINT, wire_hint, .ahead_ns = UINT64_MAX,
				  .for_ns = UINT64_MAX);

	assert_taken(h);
	h.pid = -1;
	assert_bad(h);
	h.pid = 1;
	h.pad = 1;
	assert_bad(h);
}

static int judge_answer(const union wire_any_answer *a)
{
	static union wire_any_answer ret;
	const char *why;

	return wire_check_answer(a, a->h.bytes, &ret, &why);
}

static void lists_are_as_long_as_they_say(void **state)
{
	static union wire_any_answer a;

	a.jobs.n = a.jobs.total = 2;
	a.h = wire_header(WIRE_JOBS, wire_jobs_bytes(2), 7);
	assert_int_equal(judge_answer(&a), 0);
	a.h.bytes--;
	assert_int_equal(judge_answer(&a), -EBADMSG);
	a.jobs.n = WIRE_JOBS_MAX + 1;
	a.h.bytes = (uint32_t)sizeof(a.jobs);
	assert_int_equal(judge_answer(&a), -EBADMSG);
	a.jobs.n = UINT32_MAX;
	assert_int_equal(judge_answer(&a), -EBADMSG);
	memset(&a, 0, sizeof(a));
	a.jobs.n = 1;
	a.h = wire_header(WIRE_JOBS, wire_jobs_bytes(1), 7);
	memset(a.jobs.jobs[0].comm, 'x', sizeof(a.jobs.jobs[0].comm));
	assert_int_equal(judge_answer(&a), -EBADMSG);
}

static void errors_say_why_and_are_cut_at_characters(void **state)
{
	union wire_any_answer a = { 0 };
	char field[6];

	wire_error_set(&a.error, 9, EPERM, WIRE_ERROR_REFUSED, NULL, "no %s", "way");
	assert_int_equal(judge_answer(&a), 0);
	assert_string_equal(a.error.message, "no way");
	assert_int_equal(a.error.h.seq, 9);
	wire_error_set(&a.error, 9, EPERM, WIRE_ERROR_REFUSED, "hint", "%0500d", 1);
	assert_int_equal(judge_answer(&a), 0);
	assert_int_equal(strlen(a.error.message), sizeof(a.error.message) - 1);
	wire_text_set(field, sizeof(field), "abcd\xc3\xa4");
	assert_string_equal(field, "abcd");
	wire_text_set(field, sizeof(field), "abc\xc3\xa4");
	assert_string_equal(field, "abc\xc3\xa4");
}

static void names_go_both_ways(void **state)
{
	uint32_t job_class;

	for (uint32_t i = 0; wire_class_name(i); i++) {
		assert_int_equal(wire_class_parse(wire_class_name(i), &job_class), 0);
		assert_int_equal(job_class, i);
	}
	assert_int_equal(wire_class_parse("", &job_class), -EINVAL);
	assert_null(wire_class_name(WIRE_CLASS_ONLINE + 1));
	assert_null(wire_event_name(0));
	assert_null(wire_event_name(WIRE_EVENT_KINDS));
	for (uint32_t i = WIRE_JOB_CAME; i < WIRE_EVENT_KINDS; i++)
		assert_non_null(wire_event_name(i));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_is_taken_at_its_size_and_at_no_other),
		cmocka_unit_test(types_nobody_asks_with_are_no_requests),
		cmocka_unit_test(another_version_is_told_from_garbage),
		cmocka_unit_test(a_number_where_none_belongs_is_refused),
		cmocka_unit_test(text_ends_within_its_field_and_zeroes_follow),
		cmocka_unit_test(a_class_request_names_a_pid_or_a_pattern),
		cmocka_unit_test(a_class_request_keeps_to_its_ranges),
		cmocka_unit_test(a_hint_is_of_a_pid_or_of_the_asker),
		cmocka_unit_test(lists_are_as_long_as_they_say),
		cmocka_unit_test(errors_say_why_and_are_cut_at_characters),
		cmocka_unit_test(names_go_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
