/* SPDX-License-Identifier: MIT */
/* What can be asked of the daemon, and what it tells by itself. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/daemon_internal.h"
#include "lib/internal.h"

/* ---- classes ---- */

#define CONTAINER_MIN 12 /* digits; fewer may be a pid */
#define CONTAINER_MAX 64

static bool consists_of(const char *text, const char *characters)
{
	return text[0] && text[strspn(text, characters)] == '\0';
}

static int take_pattern(struct wire_class *w, enum wire_selector by, const char *pattern)
{
	size_t n = strlen(pattern);

	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(w->pattern))
		return -ENAMETOOLONG;
	w->selector = by;
	memcpy(w->pattern, pattern, n);
	return 0;
}

static int take_selector(struct wire_class *w, const char *text)
{
	unsigned long long pid = 0;

	if (strncmp(text, "cgroup:", strlen("cgroup:")) == 0)
		return take_pattern(w, WIRE_BY_CGROUP, text + strlen("cgroup:"));
	if (strncmp(text, "name:", strlen("name:")) == 0)
		return take_pattern(w, WIRE_BY_NAME, text + strlen("name:"));
	if (strlen(text) >= CONTAINER_MIN && strlen(text) <= CONTAINER_MAX &&
	    consists_of(text, "0123456789abcdef"))
		return take_pattern(w, WIRE_BY_CONTAINER, text);
	if (strlen(text) < CONTAINER_MIN && consists_of(text, "0123456789"))
		pid = strtoull(text, NULL, 10);
	if (pid == 0 || pid > INT_MAX)
		return -EINVAL;
	w->selector = WIRE_BY_PID;
	w->pid = (int32_t)pid;
	return 0;
}

static int select_jobs(struct gpreempt_error *e, struct wire_class *w, const char *text)
{
	int r = take_selector(w, text);

	if (r == -ENAMETOOLONG)
		return error_note(e, r, GPREEMPT_ERROR_USAGE, "use a glob: cgroup:/kubepods*",
				  "the selector is too long");
	if (r < 0)
		return error_note(
			e, r, GPREEMPT_ERROR_USAGE,
			"a pid, cgroup:PATH, name:GLOB, or 12 or more digits of a container",
			"'%.64s' selects nothing", text);
	return 0;
}

EXPORT int gpreempt_check_selector(const char *selector, struct gpreempt_error *ret_error)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct wire_class w = { 0 };
	int r = select_jobs(&e, &w, selector);

	if (r < 0)
		error_tell(&e, ret_error);
	return r;
}

static void fill_class(struct wire_class *w, const struct gpreempt_class_request *q)
{
	if (q->withdraw) {
		w->flags = WIRE_CLASS_WITHDRAW;
		return;
	}
	w->job_class = wire_class_name(q->job_class) ? q->job_class : GPREEMPT_CLASS_UNKNOWN;
	w->priority = q->priority < 0 ? WIRE_KEEP : (uint32_t)q->priority;
	w->flags = (q->critical ? WIRE_CLASS_CRITICAL : 0) | (q->lazy ? WIRE_CLASS_LAZY : 0);
	w->target_us = q->target_us;
}

EXPORT int gpreempt_daemon_set_class(struct gpreempt_daemon *d, const char *selector,
				     const struct gpreempt_class_request *request)
{
	struct gpreempt_class_request q = { .size = sizeof(q), .priority = -1 };
	struct wire_class w = { 0 };
	union wire_packet answer;
	int r;

	r = in_struct(&d->last, &q, request, UP_TO(struct gpreempt_class_request, withdraw));
	if (r < 0)
		return r;
	if (q.priority < -1 || q.priority > 255)
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "0 to 255",
				   "%d is not a priority", q.priority);
	fill_class(&w, &q);
	r = select_jobs(&d->last, &w, selector);
	if (r < 0)
		return r;
	r = daemon_ask(d, WIRE_CLASS, &w, sizeof(w), &answer, NULL);
	return r < 0 ? r : (int)MIN(answer.answer.count, (uint64_t)INT_MAX);
}

/* ---- plain requests ---- */

EXPORT int gpreempt_daemon_hint(struct gpreempt_daemon *d, pid_t pid, uint64_t ahead_ns,
				uint64_t for_ns)
{
	struct wire_hint request = { .pid = pid, .ahead_ns = ahead_ns, .for_ns = for_ns };
	union wire_packet answer;
	int r = daemon_ask(d, WIRE_HINT, &request, sizeof(request), &answer, NULL);

	return r < 0 ? r : 0;
}

static int ask_plain(struct gpreempt_daemon *d, enum wire_type type, uint64_t from)
{
	int r = daemon_ask_count(d, type, from);

	return r < 0 ? r : 0;
}

EXPORT int gpreempt_daemon_pause(struct gpreempt_daemon *d)
{
	return ask_plain(d, WIRE_PAUSE, 0);
}

EXPORT int gpreempt_daemon_continue(struct gpreempt_daemon *d)
{
	return ask_plain(d, WIRE_CONTINUE, 0);
}

EXPORT int gpreempt_daemon_rearm(struct gpreempt_daemon *d, uint32_t gpu_id)
{
	return ask_plain(d, WIRE_REARM, gpu_id);
}

EXPORT int gpreempt_daemon_release(struct gpreempt_daemon *d, pid_t pid)
{
	if (pid < 0)
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "0 means all",
				   "%d is not a pid", (int)pid);
	return daemon_ask_count(d, WIRE_RELEASE, (uint64_t)pid);
}

EXPORT int gpreempt_daemon_reload(struct gpreempt_daemon *d)
{
	return ask_plain(d, WIRE_RELOAD, 0);
}

/* ---- events ---- */

EXPORT const char *gpreempt_event_name(enum gpreempt_event_kind kind)
{
	const struct wire_event_kind *known = wire_event_kind(kind);

	return known ? known->name : "event";
}

EXPORT int gpreempt_daemon_subscribe(struct gpreempt_daemon *d)
{
	int r = ask_plain(d, WIRE_SUBSCRIBE, 0);

	if (r >= 0)
		d->subscribed = true;
	return r;
}

EXPORT int gpreempt_daemon_next_event(struct gpreempt_daemon *d, struct gpreempt_event *ret)
{
	struct gpreempt_event event;
	union wire_packet p;
	size_t at = 0;
	int r;

	if (!d->subscribed)
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "subscribe first",
				   "this connection is not for events");
	r = out_check(&d->last, ret,
		      UP_TO(struct gpreempt_event, text)); /* else it would be lost */
	if (r < 0)
		return r;
	do {
		r = daemon_receive(d, &p);
		if (r <= 0)
			return r;
	} while (p.h.type != WIRE_EVENT); /* an answer that came too late */
	wire_list_next(&p, &at, &event);
	out_struct(ret, &event);
	return 1;
}
