/* SPDX-License-Identifier: MIT */
/*
 * The library's side of the control socket, against a peer that has written its answers before it
 * is asked: right ones, and whatever a daemon of another version, a broken one or none at all
 * could say.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/daemon_internal.h"

#define PATIENCE_NS (20 * NSEC_PER_MSEC)

struct pair {
	struct gpreempt_daemon *d;
	int peer;
};

static int make_pair(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int fds[2];

	if (!p || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	p->d = calloc(1, sizeof(*p->d));
	if (!p->d)
		return -1;
	p->d->fd = fds[0];
	p->d->last.size = sizeof(p->d->last);
	p->peer = fds[1];
	gpreempt_daemon_set_timeout(p->d, PATIENCE_NS);
	*state = p;
	return 0;
}

static int drop_pair(void **state)
{
	struct pair *p = *state;

	gpreempt_daemon_close(p->d);
	if (p->peer >= 0)
		close(p->peer);
	free(p);
	return 0;
}

static void say(struct pair *p, const void *packet, size_t bytes)
{
	assert_int_equal(send(p->peer, packet, bytes, 0), bytes);
}

static void say_count(struct pair *p, uint32_t type, uint32_t seq, uint64_t count)
{
	struct wire_answer a = { .h = wire_header(type, sizeof(a), seq), .count = count };

	say(p, &a, sizeof(a));
}

/* The next request the library has sent; a second is seen as one too. */
static void heard(struct pair *p, uint32_t type, void *ret, size_t bytes)
{
	struct wire_header *h = ret;

	assert_int_equal(recv(p->peer, ret, bytes, MSG_DONTWAIT | MSG_TRUNC), bytes);
	assert_int_equal(h->magic, WIRE_MAGIC);
	assert_int_equal(h->version, WIRE_VERSION);
	assert_int_equal(h->since, WIRE_VERSION_MIN);
	assert_int_equal(h->type, type);
	assert_int_equal(h->bytes, bytes);
}

static void heard_nothing(struct pair *p)
{
	char byte;

	assert_int_equal(recv(p->peer, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static struct gpreempt_error error_of(const struct pair *p)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_daemon_get_error(p->d, &e);
	return e;
}

/* ---- right answers ---- */

static void say_one(struct pair *p, uint32_t type, uint32_t seq, const void *record)
{
	union wire_packet a;

	wire_list_one(&a, type, seq, record);
	say(p, &a, a.h.bytes);
}

static void a_status_is_the_daemons(void **state)
{
	const struct gpreempt_daemon_status sent = {
		.paused = true,
		.guarded = true,
		.pid = 77,
		.held = 3,
		.detection = { 5, 10, 20, 30 },
		.policy = "wait",
		.version = "9.9.9",
		.blind = "the last field",
	};
	struct gpreempt_daemon_status s = { .size = sizeof(s) };
	struct wire_request request;

	say_one(*state, WIRE_STATUS, 1, &sent);
	assert_int_equal(gpreempt_daemon_get_status(((struct pair *)*state)->d, &s), 0);
	heard(*state, WIRE_STATUS, &request, sizeof(request));
	assert_int_equal(s.size, sizeof(s));
	assert_true(s.paused && s.guarded && !s.modelled && !s.privileged);
	assert_int_equal(s.pid, 77);
	assert_int_equal(s.held, 3);
	assert_int_equal(s.detection.p99_ns, 20);
	assert_string_equal(s.policy, "wait");
	assert_string_equal(s.blind, "the last field");
}

static void say_jobs(struct pair *p, uint32_t seq, uint32_t first, uint32_t n, uint32_t total)
{
	struct gpreempt_daemon_job job = { .job_class = GPREEMPT_CLASS_OFFLINE, .preempted = 5 };
	union wire_packet a;

	wire_list_begin(&a, WIRE_JOBS, seq);
	for (uint32_t i = 0; i < n; i++) {
		job.pid = (int32_t)(first + i);
		job.detailed = i % 2;
		assert_true(wire_list_add(&a, &job));
	}
	a.list.total = total;
	a.list.next = 10 * (uint64_t)(first + n - 1);
	say(p, &a, a.h.bytes);
}

static void a_list_comes_in_pages_and_each_says_where_the_next_begins(void **state)
{
	struct gpreempt_daemon_job jobs[64] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;
	struct wire_request request;

	say_jobs(p, 1, 1, 16, 20);
	say_jobs(p, 2, 17, 4, 20);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), 20);
	heard(p, WIRE_JOBS, &request, sizeof(request));
	assert_int_equal(request.from, 0);
	heard(p, WIRE_JOBS, &request, sizeof(request));
	assert_int_equal(request.from, 160);
	heard_nothing(p);
	assert_int_equal(jobs[19].pid, 20);
	assert_int_equal(jobs[19].size, sizeof(jobs[0]));
	assert_int_equal(jobs[1].job_class, GPREEMPT_CLASS_OFFLINE);
	assert_true(jobs[1].detailed);
	assert_int_equal(jobs[1].preempted, 5);
	/* What is not for the caller to see is not shown though it was sent. */
	assert_false(jobs[2].detailed);
	assert_int_equal(jobs[2].preempted, 0);
}

static void what_does_not_fit_is_counted_and_not_asked_for(void **state)
{
	struct gpreempt_daemon_job jobs[2] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;
	struct wire_request request;

	say_jobs(p, 1, 1, 16, 300);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 2), 300);
	say_jobs(p, 2, 1, 16, 300);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, NULL, 0), 300);
	heard(p, WIRE_JOBS, &request, sizeof(request));
	heard(p, WIRE_JOBS, &request, sizeof(request));
	heard_nothing(p);
}

static void say_text_of(struct pair *p, uint32_t type, uint32_t seq, const char *text, uint32_t n,
			uint32_t total)
{
	union wire_packet a;

	wire_list_begin(&a, type, seq);
	wire_list_text(&a, text, n);
	a.list.total = total;
	say(p, &a, a.h.bytes);
}

static void say_text(struct pair *p, uint32_t seq, const char *text, uint32_t n, uint32_t total)
{
	say_text_of(p, WIRE_METRICS, seq, text, n, total);
}

static void what_happened_at_a_trip_is_one_text(void **state)
{
	struct pair *p = *state;
	_cleanup_free_ char *text = NULL;
	struct wire_request request;

	say_text_of(p, WIRE_TRIP, 1, "asked: x\n", 9, 9);
	assert_int_equal(gpreempt_daemon_get_trip(p->d, 51110, &text), 0);
	assert_string_equal(text, "asked: x\n");
	heard(p, WIRE_TRIP, &request, sizeof(request));
	assert_int_equal(request.from, 51110);
}

static void a_text_is_put_together_and_begun_again_when_it_changed(void **state)
{
	struct pair *p = *state;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	say_text(p, 1, "abc", 3, 6);
	say_text(p, 2, "defg", 4, 7); /* another one by now */
	say_text(p, 3, "abc", 3, 7);
	say_text(p, 4, "defg", 4, 7);
	assert_int_equal(gpreempt_daemon_get_metrics(p->d, &text, &len), 0);
	assert_string_equal(text, "abcdefg");
	assert_int_equal(len, 7);
}

static void an_empty_text_is_a_text(void **state)
{
	struct pair *p = *state;
	_cleanup_free_ char *text = NULL;
	size_t len = 1;

	say_text(p, 1, "", 0, 0);
	assert_int_equal(gpreempt_daemon_get_metrics(p->d, &text, &len), 0);
	assert_string_equal(text, "");
	assert_int_equal(len, 0);
}

static void a_refusal_is_the_daemons_own_words(void **state)
{
	struct pair *p = *state;
	struct wire_error e = {
		.h = wire_header(WIRE_ERROR, sizeof(e), 1),
		.error = EPERM,
		.kind = GPREEMPT_ERROR_REFUSED,
		.message = "you may not",
		.hint = "ask root",
	};

	say(p, &e, sizeof(e));
	assert_int_equal(gpreempt_daemon_rearm(p->d, 4), -EPERM);
	assert_int_equal(error_of(p).kind, GPREEMPT_ERROR_REFUSED);
	assert_string_equal(error_of(p).message, "you may not");
	assert_string_equal(error_of(p).hint, "ask root");
}

/* ---- what is asked ---- */

static void selectors_become_what_the_daemon_matches(void **state)
{
	static const struct {
		const char *text;
		uint32_t selector;
		int32_t pid;
		const char *pattern;
	} cases[] = {
		{ "4711", WIRE_BY_PID, 4711, "" },
		{ "cgroup:/kubepods*", WIRE_BY_CGROUP, 0, "/kubepods*" },
		{ "name:train*", WIRE_BY_NAME, 0, "train*" },
		{ "0123456789ab", WIRE_BY_CONTAINER, 0, "0123456789ab" },
		{ "999999999999", WIRE_BY_CONTAINER, 0, "999999999999" },
	};
	struct gpreempt_class_request request = {
		.size = sizeof(request),
		.job_class = GPREEMPT_CLASS_ONLINE,
		.priority = 7,
		.critical = true,
		.target_us = 900,
	};
	struct pair *p = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_class w;

		say_count(p, WIRE_CLASS, i + 1, 2);
		assert_int_equal(gpreempt_daemon_set_class(p->d, cases[i].text, &request), 2);
		heard(p, WIRE_CLASS, &w, sizeof(w));
		assert_int_equal(w.selector, cases[i].selector);
		assert_int_equal(w.pid, cases[i].pid);
		assert_string_equal(w.pattern, cases[i].pattern);
		assert_int_equal(w.job_class, GPREEMPT_CLASS_ONLINE);
		assert_int_equal(w.priority, 7);
		assert_int_equal(w.flags, WIRE_CLASS_CRITICAL);
		assert_int_equal(w.target_us, 900);
	}
}

static void what_is_withdrawn_says_nothing_else(void **state)
{
	struct gpreempt_class_request request = {
		.size = sizeof(request),
		.job_class = GPREEMPT_CLASS_ONLINE,
		.priority = 7,
		.critical = true,
		.target_us = 900,
		.withdraw = true,
	};
	struct pair *p = *state;
	struct wire_class w;

	say_count(p, WIRE_CLASS, 1, 3);
	assert_int_equal(gpreempt_daemon_set_class(p->d, "cgroup:/a", &request), 3);
	heard(p, WIRE_CLASS, &w, sizeof(w));
	assert_int_equal(w.flags, WIRE_CLASS_WITHDRAW);
	assert_int_equal(w.job_class, GPREEMPT_CLASS_UNKNOWN);
	assert_int_equal(w.priority, 0);
	assert_int_equal(w.target_us, 0);
	assert_string_equal(w.pattern, "/a");
}

static void selectors_that_make_no_sense_are_not_sent(void **state)
{
	static const char *const nonsense[] = {
		"",	 "0",	 "-5",	      "abc",		   "99999999999",  "cgroup:",
		"name:", "12x4", "2147483648", "0123456789abcdefg", "0123456789AB", " 12",
	};
	struct gpreempt_error e = { .size = sizeof(e) };
	struct pair *p = *state;
	char longest[300] = "name:";

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		assert_int_equal(gpreempt_daemon_set_class(p->d, nonsense[i], NULL), -EINVAL);
		assert_int_equal(error_of(p).kind, GPREEMPT_ERROR_USAGE);
	}
	memset(longest + 5, 'x', sizeof(longest) - 6);
	assert_int_equal(gpreempt_daemon_set_class(p->d, longest, NULL), -ENAMETOOLONG);
	assert_int_equal(gpreempt_check_selector(longest, &e), -ENAMETOOLONG);
	assert_int_equal(e.kind, GPREEMPT_ERROR_USAGE);
	heard_nothing(p);
}

static void read_rights(char *ret, size_t size)
{
	FILE *f = fopen("/proc/thread-self/status", "re");
	char line[128];

	assert_non_null(f);
	ret[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Cap", 3) == 0)
			strncat(ret, line, size - strlen(ret) - 1);
	}
	fclose(f);
}

static void trying_a_watchpoint_takes_no_rights_away_for_good(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	char before[512], after[512];
	int r;

	read_rights(before, sizeof(before));
	r = gpreempt_check_watch(0, &e);
	read_rights(after, sizeof(after));
	assert_string_equal(before, after);
	assert_true(r == 0 || (r < 0 && e.kind == GPREEMPT_ERROR_REFUSED && e.message[0]));
	assert_int_equal(gpreempt_check_watch(0, NULL), r);
}

static void priorities_beyond_the_range_are_not_sent(void **state)
{
	struct gpreempt_class_request request = { .size = sizeof(request), .priority = 256 };
	struct pair *p = *state;

	assert_int_equal(gpreempt_daemon_set_class(p->d, "1", &request), -EINVAL);
	request.priority = -2;
	assert_int_equal(gpreempt_daemon_set_class(p->d, "1", &request), -EINVAL);
	heard_nothing(p);
}

static void names_of_policies_that_cannot_be_are_not_sent(void **state)
{
	struct pair *p = *state;

	assert_int_equal(gpreempt_daemon_set_policy(p->d, ""), -EINVAL);
	assert_int_equal(gpreempt_daemon_set_policy(p->d, "sixteen-letters!"), -EINVAL);
	heard_nothing(p);
}

/* ---- wrong answers ---- */

/* One status request against one packet: what becomes of it. */
static int ask_against(struct pair *p, const void *packet, size_t bytes)
{
	struct gpreempt_daemon_status s = { .size = sizeof(s), .pid = -7 };
	int r;

	say(p, packet, bytes);
	r = gpreempt_daemon_get_status(p->d, &s);
	assert_true(r < 0);
	assert_int_equal(s.pid, -7); /* untouched */
	assert_true(error_of(p).message[0] && error_of(p).hint[0]);
	return r;
}

static void nonsense_is_refused(void **state)
{
	const struct gpreempt_daemon_status status = { 0 };
	struct pair *p = *state;
	char noise[2 * WIRE_ANSWER_MAX];
	union wire_packet a;

	memset(noise, 0xa5, sizeof(noise));
	assert_int_equal(ask_against(p, noise, 5), -EPROTO);
	assert_int_equal(ask_against(p, noise, 100), -EPROTO);
	assert_int_equal(ask_against(p, noise, sizeof(noise)), -EPROTO);

	wire_list_one(&a, WIRE_STATUS, 4, &status);
	a.h.magic++;
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	wire_list_one(&a, WIRE_STATUS, 5, &status);
	a.h.bytes++;
	assert_int_equal(ask_against(p, &a, a.h.bytes - 1), -EPROTO);
	wire_list_one(&a, WIRE_STATUS, 6, &status);
	a.h.bytes -= 8;
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	wire_list_one(&a, WIRE_STATUS, 7, &status);
	a.h.type = WIRE_GPUS;
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	wire_list_begin(&a, WIRE_STATUS, 8); /* of none */
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	a.h = wire_header(WIRE_STATUS, sizeof(a.h), 9);
	assert_int_equal(ask_against(p, &a, sizeof(a.h)), -EPROTO);
}

/* ---- other versions ---- */

/* The bytes of a daemon whose status ends with the pid. */
static void a_status_of_an_older_daemon_is_zero_in_what_it_lacks(void **state)
{
	struct gpreempt_daemon_status s = { .size = sizeof(s), .steps = 9 };
	const uint32_t width = sizeof(s.pid), pid = 77;
	struct pair *p = *state;
	union wire_packet a;

	wire_list_begin(&a, WIRE_STATUS, 1);
	memcpy(a.bytes + sizeof(a.list), &width, sizeof(width));
	memcpy(a.bytes + sizeof(a.list) + sizeof(width), &pid, sizeof(pid));
	a.list.n = 1;
	a.h.bytes += sizeof(width) + sizeof(pid);
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_status(p->d, &s), 0);
	assert_int_equal(s.pid, 77);
	assert_int_equal(s.steps, 0);
}

static void what_a_later_daemon_adds_is_passed_over(void **state)
{
	const struct gpreempt_daemon_status sent = { .pid = 77, .blind = "the last field" };
	struct gpreempt_daemon_status s = { .size = sizeof(s) };
	struct pair *p = *state;
	union wire_packet a;
	uint32_t width;

	wire_list_one(&a, WIRE_STATUS, 1, &sent);
	memcpy(&width, a.bytes + sizeof(a.list), sizeof(width));
	memset(a.bytes + a.h.bytes, 0xff, 8);
	width += 8;
	a.h.bytes += 8;
	a.h.version++; /* and understood since ours */
	memcpy(a.bytes + sizeof(a.list), &width, sizeof(width));
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_status(p->d, &s), 0);
	assert_string_equal(s.blind, "the last field");
}

static void what_only_later_versions_understand_is_refused(void **state)
{
	const struct gpreempt_daemon_status status = { 0 };
	struct pair *p = *state;
	union wire_packet a;

	wire_list_one(&a, WIRE_STATUS, 1, &status);
	a.h.version = a.h.since = WIRE_VERSION + 1;
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	assert_string_equal(error_of(p).hint, "upgrade gpreempt and libgpreempt");
	wire_list_one(&a, WIRE_STATUS, 2, &status);
	a.h.version = a.h.since = WIRE_VERSION_MIN - 1;
	assert_int_equal(ask_against(p, &a, a.h.bytes), -EPROTO);
	assert_string_equal(error_of(p).hint, "upgrade gpreemptd");
}

static void daemons_of_all_versions_can_refuse_in_words(void **state)
{
	struct pair *p = *state;
	struct wire_error e;

	wire_error_set(&e, 1, EPROTO, GPREEMPT_ERROR_USAGE, "upgrade", "version 3 is spoken here");
	e.h.version = 3;
	e.h.since = 0;
	assert_int_equal(ask_against(p, &e, sizeof(e)), -EPROTO);
	assert_string_equal(error_of(p).message, "version 3 is spoken here");
}

static void a_refusal_that_refuses_nothing_is_nonsense(void **state)
{
	struct pair *p = *state;
	struct wire_error e = { .h = wire_header(WIRE_ERROR, sizeof(e), 1), .error = 0, .kind = 1 };

	assert_int_equal(ask_against(p, &e, sizeof(e)), -EPROTO);
	e.h.seq = 2;
	e.error = -EPERM;
	assert_int_equal(ask_against(p, &e, sizeof(e)), -EPROTO);
}

static void a_refusal_of_a_kind_that_is_not_known_is_a_failure_in_its_words(void **state)
{
	struct pair *p = *state;
	struct wire_error e;

	for (uint32_t seq = 1; seq <= 2; seq++) {
		wire_error_set(&e, seq, EPERM, seq == 1 ? GPREEMPT_ERROR_REFUSED + 1 : 0,
			       "by day", "not by night");
		assert_int_equal(ask_against(p, &e, sizeof(e)), -EPERM);
		assert_int_equal(error_of(p).kind, GPREEMPT_ERROR_FAILED);
		assert_string_equal(error_of(p).message, "not by night");
	}
}

static void a_refusal_without_an_end_is_nonsense(void **state)
{
	struct pair *p = *state;
	struct wire_error e = { .h = wire_header(WIRE_ERROR, sizeof(e), 1),
				.error = EPERM,
				.kind = 4 };

	memset(e.message, 'm', sizeof(e.message));
	assert_int_equal(ask_against(p, &e, sizeof(e)), -EPROTO);
}

static void a_list_longer_than_its_packet_is_refused(void **state)
{
	struct gpreempt_daemon_job jobs[64] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;
	const struct gpreempt_daemon_job job = { .pid = 1 };
	union wire_packet a;

	wire_list_one(&a, WIRE_JOBS, 1, &job);
	a.list.n = 2;
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), -EPROTO);
	wire_list_one(&a, WIRE_JOBS, 2, &job);
	a.h.bytes--;
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), -EPROTO);
	wire_list_one(&a, WIRE_JOBS, 3, &job);
	a.h.bytes = sizeof(a.h);
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), -EPROTO);
}

static void a_list_that_would_never_end_is_refused(void **state)
{
	struct gpreempt_daemon_job jobs[64] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;

	say_jobs(p, 1, 1, 16, 1000);
	say_jobs(p, 2, 1, 16, 1000); /* the same again */
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), -EPROTO);
}

static void a_list_that_promised_more_ends_when_nothing_comes(void **state)
{
	struct gpreempt_daemon_job jobs[64] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;

	say_jobs(p, 1, 1, 3, 5);
	say_jobs(p, 2, 0, 0, 5);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), 3);
}

static void gpus_beyond_their_packet_are_refused(void **state)
{
	struct gpreempt_daemon_gpu gpus[64] = { { .size = sizeof(gpus[0]) } };
	struct pair *p = *state;
	const struct gpreempt_daemon_gpu sent[] = { { .gpu_id = 4 },
						    { .gpu_id = 51110, .tripped = true } };
	union wire_packet a;

	wire_list_begin(&a, WIRE_GPUS, 1);
	wire_list_add(&a, &sent[0]);
	wire_list_add(&a, &sent[1]);
	a.list.total = a.list.next = 2;
	a.list.n = 3;
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_gpus(p->d, gpus, 64), -EPROTO);
	a.h.seq = 2;
	a.list.n = 2;
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_get_gpus(p->d, gpus, 64), 2);
	assert_true(gpus[1].tripped);
	assert_int_equal(gpus[1].gpu_id, 51110);
}

static void a_text_that_does_not_add_up_is_refused(void **state)
{
	struct pair *p = *state;
	char *text = NULL;
	size_t len;

	say_text(p, 1, "abcdef", 6, 3); /* more than there is */
	assert_int_equal(gpreempt_daemon_get_metrics(p->d, &text, &len), -EPROTO);
	say_text(p, 2, "abc", 3, 6);
	say_text(p, 3, "", 0, 6); /* and nothing more comes */
	assert_int_equal(gpreempt_daemon_get_metrics(p->d, &text, &len), -EPROTO);
	say_text(p, 4, "abc", 3, UINT32_MAX); /* would fill the memory */
	assert_int_equal(gpreempt_daemon_get_metrics(p->d, &text, &len), -EPROTO);
	assert_null(text);
}

/* ---- no answer ---- */

static void silence_ends(void **state)
{
	struct pair *p = *state;
	struct wire_request request;

	assert_int_equal(gpreempt_daemon_pause(p->d), -ETIMEDOUT);
	assert_int_equal(error_of(p).kind, GPREEMPT_ERROR_FAILED);
	heard(p, WIRE_PAUSE, &request, sizeof(request));
	/* The answer comes after all: it is not taken for that of the next request. */
	say_count(p, WIRE_RELEASE, 1, 99);
	say_count(p, WIRE_RELEASE, 2, 5);
	assert_int_equal(gpreempt_daemon_release(p->d, 1), 5);
}

static void events_do_not_pass_for_answers(void **state)
{
	struct pair *p = *state;
	const struct gpreempt_event e = { 0 };

	say_one(p, WIRE_EVENT, 1, &e);
	say_count(p, WIRE_RELEASE, 1, 5);
	assert_int_equal(gpreempt_daemon_release(p->d, 0), 5);
}

static void a_daemon_that_goes_is_told_from_one_that_hangs(void **state)
{
	struct gpreempt_daemon_job jobs[64] = { { .size = sizeof(jobs[0]) } };
	struct pair *p = *state;

	say_jobs(p, 1, 1, 16, 20); /* and in the middle of the list it ends */
	shutdown(p->peer, SHUT_WR);
	assert_int_equal(gpreempt_daemon_get_jobs(p->d, jobs, 64), -ECONNRESET);
	assert_int_equal(error_of(p).kind, GPREEMPT_ERROR_ABSENT);
	close(p->peer);
	p->peer = -1;
	assert_int_equal(gpreempt_daemon_continue(p->d), -ECONNRESET);
}

/* ---- events ---- */

static void events_come_one_by_one_and_never_make_anybody_wait(void **state)
{
	struct gpreempt_event got = { .size = sizeof(got) };
	struct gpreempt_daemon_status s = { .size = sizeof(s) };
	struct pair *p = *state;
	union wire_packet a;
	struct gpreempt_event e = {
		.kind = GPREEMPT_EVENT_LET_GO,
		.pid = 12,
		.duration_ns = 900,
		.text = "it runs again",
	};

	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), -EINVAL);
	say_count(p, WIRE_SUBSCRIBE, 1, 0);
	assert_int_equal(gpreempt_daemon_subscribe(p->d), 0);
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), 0);
	assert_int_equal(gpreempt_daemon_get_status(p->d, &s), -EBUSY);
	say_count(p, WIRE_PAUSE, 1, 0); /* of before; passed over */
	say_one(p, WIRE_EVENT, 0, &e);
	e.kind = 4000;
	say_one(p, WIRE_EVENT, 0, &e);
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), 1);
	assert_int_equal(got.kind, GPREEMPT_EVENT_LET_GO);
	assert_int_equal(got.pid, 12);
	assert_string_equal(got.text, "it runs again");
	assert_string_equal(gpreempt_event_name(got.kind), "let-go");
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), 1);
	assert_int_equal(got.kind, 4000);
	assert_string_equal(gpreempt_event_name(got.kind), "event");
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), 0);
	wire_list_one(&a, WIRE_EVENT, 0, &e);
	a.h.bytes -= 4;
	say(p, &a, a.h.bytes);
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), -EPROTO);
	shutdown(p->peer, SHUT_WR);
	assert_int_equal(gpreempt_daemon_next_event(p->d, &got), -ECONNRESET);
}

static void every_kind_has_a_name(void **state)
{
	for (int kind = 1; kind <= GPREEMPT_EVENT_SEES; kind++)
		assert_string_not_equal(gpreempt_event_name((enum gpreempt_event_kind)kind),
					"event");
	assert_string_equal(gpreempt_event_name((enum gpreempt_event_kind)-1), "event");
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, make_pair, drop_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(a_status_is_the_daemons),
		PAIR_TEST(a_list_comes_in_pages_and_each_says_where_the_next_begins),
		PAIR_TEST(what_does_not_fit_is_counted_and_not_asked_for),
		PAIR_TEST(a_text_is_put_together_and_begun_again_when_it_changed),
		PAIR_TEST(what_happened_at_a_trip_is_one_text),
		PAIR_TEST(an_empty_text_is_a_text),
		PAIR_TEST(a_refusal_is_the_daemons_own_words),
		PAIR_TEST(selectors_become_what_the_daemon_matches),
		PAIR_TEST(what_is_withdrawn_says_nothing_else),
		PAIR_TEST(selectors_that_make_no_sense_are_not_sent),
		PAIR_TEST(trying_a_watchpoint_takes_no_rights_away_for_good),
		PAIR_TEST(priorities_beyond_the_range_are_not_sent),
		PAIR_TEST(names_of_policies_that_cannot_be_are_not_sent),
		PAIR_TEST(nonsense_is_refused),
		PAIR_TEST(a_status_of_an_older_daemon_is_zero_in_what_it_lacks),
		PAIR_TEST(what_a_later_daemon_adds_is_passed_over),
		PAIR_TEST(what_only_later_versions_understand_is_refused),
		PAIR_TEST(daemons_of_all_versions_can_refuse_in_words),
		PAIR_TEST(a_refusal_that_refuses_nothing_is_nonsense),
		PAIR_TEST(a_refusal_of_a_kind_that_is_not_known_is_a_failure_in_its_words),
		PAIR_TEST(a_refusal_without_an_end_is_nonsense),
		PAIR_TEST(a_list_longer_than_its_packet_is_refused),
		PAIR_TEST(a_list_that_would_never_end_is_refused),
		PAIR_TEST(a_list_that_promised_more_ends_when_nothing_comes),
		PAIR_TEST(gpus_beyond_their_packet_are_refused),
		PAIR_TEST(a_text_that_does_not_add_up_is_refused),
		PAIR_TEST(silence_ends),
		PAIR_TEST(events_do_not_pass_for_answers),
		PAIR_TEST(a_daemon_that_goes_is_told_from_one_that_hangs),
		PAIR_TEST(events_come_one_by_one_and_never_make_anybody_wait),
		cmocka_unit_test(every_kind_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
