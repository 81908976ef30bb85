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

static union wire_any_request taken;

static int judge(const void *packet, size_t len)
{
	const char *why = NULL;
	int error = wire_check_request(packet, len, &taken, &why);

	if (error == 0)
		assert_null(why);
	else
		assert_non_null(why);
	return error;
}

#define assert_taken(packet) assert_int_equal(judge(&(packet), sizeof(packet)), 0)
#define assert_bad(packet) assert_int_equal(judge(&(packet), sizeof(packet)), -EBADMSG)

/* As if a field were added, or had not been there yet. */
static void requests_of_other_versions_are_understood(void **state)
{
	for (uint32_t type = 0; type < 80; type++) {
		union {
			union wire_any_request r;
			char bytes[WIRE_REQUEST_MAX + 1];
		} u = { 0 };
		size_t bytes = wire_request_bytes(type);

		if (!bytes)
			continue;
		if (type == WIRE_CLASS) {
			u.r.job_class.selector = WIRE_BY_PID;
			u.r.job_class.pid = 1;
		}
		for (size_t len = sizeof(u.r.h) + 8; len <= WIRE_REQUEST_MAX; len++) {
			u.r.h = wire_header(type, len, 7);
			assert_int_equal(judge(&u, len), 0);
			assert_memory_equal(&taken, &u, MIN(len, bytes));
		}
		u.r.h = wire_header(type, sizeof(u), 7);
		assert_int_equal(judge(&u, sizeof(u)), -EBADMSG);
		u.r.h = wire_header(type, sizeof(u.r.h) - 1, 7);
		assert_int_equal(judge(&u, sizeof(u.r.h) - 1), -EBADMSG);
		u.r.h = wire_header(type, bytes + 2, 7);
		assert_int_equal(judge(&u, bytes + 1), -EBADMSG);
		u.bytes[bytes + 1] = 1;
		assert_int_equal(judge(&u, bytes + 2), -E2BIG);
	}
}

/* Two versions of a class request, byte by byte: without a target, and with a field more. */
static void what_is_missing_is_zero_and_what_is_added_refused(void **state)
{
	static const unsigned char older[] = {
		'G', 'M',	  'P', 'T', 4,
		4,   WIRE_CLASS,  0,   40,  0,
		0,   0,		  7,   0,   0,
		0,   WIRE_BY_PID, 0,   0,   0,
		9,   0,		  0,   0,   GPREEMPT_CLASS_OFFLINE,
		0,   0,		  0,   5,   0,
		0,   0,		  0,   0,   0,
		0,   0,		  0,   0,   0,
	};
	unsigned char later[sizeof(struct wire_class) + 4] = { 0 };
	struct wire_header h = wire_header(WIRE_CLASS, sizeof(later), 7);

	assert_taken(older);
	assert_int_equal(taken.job_class.pid, 9);
	assert_int_equal(taken.job_class.priority, 5);
	assert_int_equal(taken.job_class.target_us, 0);
	memcpy(later, older, sizeof(older));
	h.version++;
	memcpy(later, &h, sizeof(h));
	assert_taken(later);
	later[sizeof(later) - 1] = 1;
	assert_int_equal(judge(later, sizeof(later)), -E2BIG);
}

static void types_nobody_asks_with_are_no_requests(void **state)
{
	static const uint16_t types[] = { 0, WIRE_TRIP + 1, WIRE_EVENT, WIRE_ERROR, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct wire_request r = MAKE(types[i], wire_request);

		assert_int_equal(judge(&r, sizeof(r)), -EOPNOTSUPP);
	}
}

static void versions_that_are_not_spoken_are_told_from_garbage(void **state)
{
	struct wire_request r = MAKE(WIRE_STATUS, wire_request);

	r.h.version = WIRE_VERSION + 1; /* which ours understands */
	assert_taken(r);
	r.h.since = WIRE_VERSION + 1;
	assert_int_equal(judge(&r, sizeof(r)), -EPROTO);
	r.h.version = 3; /* which had no since */
	r.h.since = 0;
	assert_int_equal(judge(&r, sizeof(r)), -EPROTO);
	r = MAKE(WIRE_STATUS, wire_request);
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
				      .job_class = GPREEMPT_CLASS_ONLINE, .priority = 255,
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
	h.pad = 0;
	h.wait_ns = 1; /* of a page only */
	assert_bad(h);
	h.h.type = WIRE_HINT_PAGE;
	assert_taken(h);
	assert_int_equal(taken.hint.wait_ns, 1);
	h.h.bytes = offsetof(struct wire_hint, wait_ns); /* as older clients ask */
	assert_int_equal(judge(&h, h.h.bytes), 0);
	assert_int_equal(taken.hint.wait_ns, 0);
}

/* ---- answers ---- */

static int judge_answer(const union wire_packet *p)
{
	const char *why;

	return wire_check_answer(p, p->h.bytes, &why);
}

static const struct gpreempt_daemon_job a_job = {
	.size = sizeof(a_job),
	.pid = 9,
	.held = true,
	.comm = "python3",
	.preempted = 7,
	.share_permille = 900,
	.history = { 1, 2, 3 },
	.why = "no reason",
};

static void a_record_comes_back_as_it_was(void **state)
{
	struct gpreempt_daemon_job job;
	union wire_packet p;
	size_t at = 0;

	wire_list_begin(&p, WIRE_JOBS, 7);
	while (wire_list_add(&p, &a_job))
		;
	assert_int_equal(p.list.n, wire_list_room(WIRE_JOBS));
	assert_in_range(p.list.n, 16, 32);
	assert_int_equal(judge_answer(&p), 0);
	for (uint32_t i = 0; i < p.list.n; i++) {
		assert_true(wire_list_next(&p, &at, &job));
		assert_int_equal(job.size, sizeof(job));
		assert_true(job.pid == 9 && job.held && job.preempted == 7);
		assert_int_equal(job.share_permille, 900);
		assert_string_equal(job.why, "no reason");
		assert_memory_equal(job.history, a_job.history, sizeof(job.history));
	}
	assert_false(wire_list_next(&p, &at, &job));
}

static void lists_are_as_long_as_they_say(void **state)
{
	union wire_packet p;

	wire_list_one(&p, WIRE_JOBS, 7, &a_job);
	assert_int_equal(judge_answer(&p), 0);
	p.h.bytes--;
	assert_int_equal(judge_answer(&p), -EBADMSG);
	p.h.bytes++;
	p.list.n = 0; /* and yet something follows */
	assert_int_equal(judge_answer(&p), -EBADMSG);
	p.list.n = UINT32_MAX;
	assert_int_equal(judge_answer(&p), -EBADMSG);
	wire_list_begin(&p, WIRE_METRICS, 7);
	p.list.n = 1;
	assert_int_equal(judge_answer(&p), -EBADMSG);
	wire_list_begin(&p, WIRE_POLICY, 7);
	assert_int_equal(judge_answer(&p), -EBADMSG); /* there is always one */
}

/* The same entry, as wide as each version could have it. */
static void an_entry_ends_where_a_field_does(void **state)
{
	const uint32_t all = (uint32_t)wire_job_record.width;
	struct gpreempt_daemon_job job;
	char bytes[1024] = { 0 };
	uint32_t ends = 0, why_at = 0;

	for (const struct wire_field *f = wire_job_record.fields; strcmp(f->name, "why"); f++)
		why_at += f->size;
	wire_put(&wire_job_record, &a_job, bytes);
	for (uint32_t width = 0; width <= all + 8; width++) {
		int r;

		memcpy(bytes, &width, sizeof(width));
		r = wire_get(&wire_job_record, bytes, sizeof(width) + width, &job);
		if (r == -EBADMSG)
			continue;
		assert_int_equal(r, sizeof(width) + width);
		assert_int_equal(job.pid, width ? 9 : 0);
		assert_string_equal(job.why, width > why_at ? "no reason" : "");
		ends += width <= all;
		assert_int_equal(wire_get(&wire_job_record, bytes, sizeof(width) + width - 1, &job),
				 -EBADMSG);
	}
	assert_int_equal(ends, wire_job_record.n + 1);
}

static void values_that_nobody_means_are_refused(void **state)
{
	struct gpreempt_daemon_job job = a_job;
	union wire_packet p;

	memset(job.comm, 'x', sizeof(job.comm));
	wire_list_one(&p, WIRE_JOBS, 7, &job);
	assert_int_equal(judge_answer(&p), -EBADMSG);
	job = a_job;
	job.comm[15] = 'x'; /* behind its end */
	wire_list_one(&p, WIRE_JOBS, 7, &job);
	assert_int_equal(judge_answer(&p), -EBADMSG);
	job = a_job;
	job.share_permille = 1001;
	wire_list_one(&p, WIRE_JOBS, 7, &job);
	assert_int_equal(judge_answer(&p), -EBADMSG);
	job = a_job;
	memset(&job.blind, 2, 1);
	wire_list_one(&p, WIRE_JOBS, 7, &job);
	assert_int_equal(judge_answer(&p), -EBADMSG);
}

static void what_is_not_for_everybody_is_cleared(void **state)
{
	struct gpreempt_daemon_job job = a_job, seen = { .size = sizeof(seen), .pid = 9 };

	memcpy(seen.comm, a_job.comm, sizeof(seen.comm));
	wire_hide(&wire_job_record, &job);
	for (size_t i = 0; i < wire_job_record.n; i++) {
		const struct wire_field *f = &wire_job_record.fields[i];

		assert_memory_equal((char *)&job + f->offset, (char *)&seen + f->offset, f->size);
	}
}

static void errors_say_why_and_are_cut_at_characters(void **state)
{
	union wire_packet a;
	char field[6];

	wire_error_set(&a.error, 9, EPERM, GPREEMPT_ERROR_REFUSED, NULL, "no %s", "way");
	assert_int_equal(judge_answer(&a), 0);
	assert_string_equal(a.error.message, "no way");
	assert_int_equal(a.error.h.seq, 9);
	wire_error_set(&a.error, 9, EPERM, GPREEMPT_ERROR_REFUSED, "hint", "%0500d", 1);
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
	assert_null(wire_class_name(GPREEMPT_CLASS_OFFLINE + 1));
	assert_null(wire_event_kind(0));
	assert_null(wire_event_kind(GPREEMPT_EVENT_SEES + 1));
	for (uint32_t i = 1; i <= GPREEMPT_EVENT_SEES; i++)
		assert_true(wire_event_kind(i)->name && wire_event_kind(i)->audience);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_other_versions_are_understood),
		cmocka_unit_test(what_is_missing_is_zero_and_what_is_added_refused),
		cmocka_unit_test(types_nobody_asks_with_are_no_requests),
		cmocka_unit_test(versions_that_are_not_spoken_are_told_from_garbage),
		cmocka_unit_test(a_number_where_none_belongs_is_refused),
		cmocka_unit_test(text_ends_within_its_field_and_zeroes_follow),
		cmocka_unit_test(a_class_request_names_a_pid_or_a_pattern),
		cmocka_unit_test(a_class_request_keeps_to_its_ranges),
		cmocka_unit_test(a_hint_is_of_a_pid_or_of_the_asker),
		cmocka_unit_test(a_record_comes_back_as_it_was),
		cmocka_unit_test(lists_are_as_long_as_they_say),
		cmocka_unit_test(an_entry_ends_where_a_field_does),
		cmocka_unit_test(values_that_nobody_means_are_refused),
		cmocka_unit_test(what_is_not_for_everybody_is_cleared),
		cmocka_unit_test(errors_say_why_and_are_cut_at_characters),
		cmocka_unit_test(names_go_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
