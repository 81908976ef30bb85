/* SPDX-License-Identifier: MIT */
/* What can be asked of the daemon, what it knows, and what it tells by itself. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/daemon_internal.h"

/* ---- what it knows ---- */

/* Lists come in pages; nothing the daemon says about their length is believed. */
#define MOST_ENTRIES 65536u /* more than any daemon has: one that never ends is none */
#define MOST_TEXT (16u << 20)
#define TEXT_TRIES 8 /* the text changed between two pages */

/* Asks for one record. @first: how long it was in the first version. */
static int get_one(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes,
		   void *ret, size_t first)
{
	union {
		struct gpreempt_daemon_status status;
		struct gpreempt_policy policy;
	} record;
	union wire_packet answer;
	size_t at = 0;
	int r = out_check(&d->last, ret, first);

	if (r < 0)
		return r;
	r = daemon_ask(d, type, request, bytes, &answer, NULL);
	if (r < 0)
		return r;
	wire_list_next(&answer, &at, &record);
	return out_struct(ret, &record);
}

EXPORT int gpreempt_daemon_get_status(struct gpreempt_daemon *d, struct gpreempt_daemon_status *ret)
{
	struct wire_request request = { 0 };

	return get_one(d, WIRE_STATUS, &request, sizeof(request), ret,
		       UP_TO(struct gpreempt_daemon_status, kernel));
}

/* ---- lists ---- */

/* One that never moves on would never end. */
static bool moves_on(const struct wire_list *list, uint64_t from)
{
	return list->n == 0 || list->next > from;
}

static void add_entry(const struct wire_list *list, void *entry, struct out_array *out)
{
	const struct gpreempt_daemon_job *job = entry;

	if (list->h.type == WIRE_JOBS && !job->detailed)
		wire_hide(&wire_job_record, entry);
	out_array_add(out, entry);
}

static int read_page(struct gpreempt_daemon *d, enum wire_type type, uint64_t from,
		     struct out_array *out, struct wire_list *ret)
{
	struct wire_request request = { .from = from };
	union {
		struct gpreempt_daemon_gpu gpu;
		struct gpreempt_daemon_job job;
	} entry;
	union wire_packet p;
	size_t at = 0;
	int r = daemon_ask(d, type, &request, sizeof(request), &p, NULL);

	if (r < 0)
		return r;
	if (!moves_on(&p.list, from))
		return daemon_fail_nonsense(d);
	while (wire_list_next(&p, &at, &entry))
		add_entry(&p.list, &entry, out);
	*ret = p.list;
	return 0;
}

static int read_list(struct gpreempt_daemon *d, enum wire_type type, void *ret, size_t max,
		     size_t first)
{
	struct wire_list page = { 0 };
	struct out_array out;
	int r;

	r = out_array_init(&d->last, &out, ret, max, first);
	if (r < 0)
		return r;
	do {
		r = read_page(d, type, page.next, &out, &page);
		if (r < 0)
			return r;
		/* What does not fit is only counted, and the daemon has counted it. */
		if (out.n >= max && page.total > out.n)
			return (int)MIN(page.total, MOST_ENTRIES);
	} while (page.n > 0 && out.n < page.total && out.n < MOST_ENTRIES);
	return (int)out.n;
}

EXPORT int gpreempt_daemon_get_gpus(struct gpreempt_daemon *d, struct gpreempt_daemon_gpu *ret,
				    size_t max)
{
	return read_list(d, WIRE_GPUS, ret, max, UP_TO(struct gpreempt_daemon_gpu, tripped_by));
}

EXPORT int gpreempt_daemon_get_jobs(struct gpreempt_daemon *d, struct gpreempt_daemon_job *ret,
				    size_t max)
{
	return read_list(d, WIRE_JOBS, ret, max, UP_TO(struct gpreempt_daemon_job, why));
}

/* ---- text ---- */

static int fail_memory(struct gpreempt_daemon *d)
{
	return daemon_fail(d, -ENOMEM, GPREEMPT_ERROR_FAILED, "free some memory", "out of memory");
}

/* The next piece of the text at @at: how long it is; -EAGAIN: it is another text by now. */
static int read_piece(struct gpreempt_daemon *d, size_t at, char **text, size_t *total)
{
	struct wire_request request = { .from = at };
	union wire_packet p;
	int r = daemon_ask(d, WIRE_METRICS, &request, sizeof(request), &p, NULL);

	if (r < 0)
		return r;
	if (p.list.total > MOST_TEXT)
		return daemon_fail_nonsense(d);
	if (at == 0) {
		*text = calloc(1, (size_t)p.list.total + 1);
		*total = p.list.total;
	}
	if (!*text)
		return fail_memory(d);
	if (p.list.total != *total)
		return -EAGAIN;
	if (p.list.n > *total - at || (p.list.n == 0 && at < *total))
		return daemon_fail_nonsense(d);
	memcpy(*text + at, p.bytes + sizeof(p.list), p.list.n);
	return (int)p.list.n;
}

static int read_text(struct gpreempt_daemon *d, char **ret, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	size_t at = 0, total = 0;

	do {
		int r = read_piece(d, at, &text, &total);

		if (r < 0)
			return r;
		at += (size_t)r;
	} while (at < total);
	*ret = steal_ptr(&text);
	*ret_len = total;
	return 0;
}

EXPORT int gpreempt_daemon_get_metrics(struct gpreempt_daemon *d, char **ret, size_t *ret_len)
{
	for (int i = 0; i < TEXT_TRIES; i++) {
		int r = read_text(d, ret, ret_len);

		if (r != -EAGAIN)
			return r;
	}
	return daemon_fail(d, -EAGAIN, GPREEMPT_ERROR_FAILED, "try again",
			   "the metrics change faster than they can be read");
}

EXPORT int gpreempt_daemon_get_trip(struct gpreempt_daemon *d, uint32_t gpu_id, char **ret)
{
	struct wire_request request = { .from = gpu_id };
	union wire_packet p;
	char *text;
	int r = daemon_ask(d, WIRE_TRIP, &request, sizeof(request), &p, NULL);

	if (r < 0)
		return r;
	text = strndup((const char *)p.bytes + sizeof(p.list), p.list.n);
	if (!text)
		return fail_memory(d);
	*ret = text;
	return 0;
}

/* ---- policies ---- */

EXPORT int gpreempt_daemon_get_policy(struct gpreempt_daemon *d, struct gpreempt_policy *ret)
{
	struct wire_policy request = { 0 };

	return get_one(d, WIRE_POLICY, &request, sizeof(request), ret,
		       UP_TO(struct gpreempt_policy, names));
}

EXPORT int gpreempt_daemon_set_policy(struct gpreempt_daemon *d, const char *name)
{
	struct wire_policy request = { 0 };
	size_t n = strlen(name);

	if (n == 0 || n >= sizeof(request.name))
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "see them: gpreempt policy",
				   "there is no policy '%.32s'", name);
	memcpy(request.name, name, n);
	return get_one(d, WIRE_POLICY, &request, sizeof(request), NULL, 0);
}

/* For answers with a number, which is cut to an int. */
static int ask_count(struct gpreempt_daemon *d, enum wire_type type, void *request, size_t bytes)
{
	union wire_packet answer;
	int r = daemon_ask(d, type, request, bytes, &answer, NULL);

	return r < 0 ? r : (int)MIN(answer.answer.count, (uint64_t)INT_MAX);
}

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
	int r;

	r = in_struct(&d->last, &q, request, UP_TO(struct gpreempt_class_request, withdraw));
	if (r < 0)
		return r;
	if (q.priority < -1 || q.priority > 255)
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "0 to 255",
				   "%d is not a priority", q.priority);
	fill_class(&w, &q);
	r = select_jobs(&d->last, &w, selector);
	return r < 0 ? r : ask_count(d, WIRE_CLASS, &w, sizeof(w));
}

/* ---- plain requests ---- */

EXPORT int gpreempt_daemon_hint(struct gpreempt_daemon *d, pid_t pid, uint64_t ahead_ns,
				uint64_t for_ns)
{
	struct wire_hint request = { .pid = pid, .ahead_ns = ahead_ns, .for_ns = for_ns };

	return MIN(ask_count(d, WIRE_HINT, &request, sizeof(request)), 0);
}

static int ask_plain(struct gpreempt_daemon *d, enum wire_type type, uint64_t from)
{
	struct wire_request request = { .from = from };

	return MIN(ask_count(d, type, &request, sizeof(request)), 0);
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
	struct wire_request request = { .from = (uint64_t)pid };

	if (pid < 0)
		return daemon_fail(d, -EINVAL, GPREEMPT_ERROR_USAGE, "0 means all",
				   "%d is not a pid", (int)pid);
	return ask_count(d, WIRE_RELEASE, &request, sizeof(request));
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
