/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"

#define PRIORITY_MAX 255u

/* What is said with a type: in requests, and in the answers to them. */
static const struct type {
	const char *name;
	size_t bytes; /* of a request; 0: it is none */
	const struct wire_record *record; /* NULL: answers are no lists of records */
	uint64_t from_max; /* of a wire_request */
	const char *beyond; /* what is wrong with a larger one; NULL: it should be zero */
} types[] = {
	[WIRE_STATUS] = { "status", sizeof(struct wire_request), &wire_status_record },
	[WIRE_GPUS] = { "gpus", sizeof(struct wire_request), &wire_gpu_record, UINT64_MAX },
	[WIRE_JOBS] = { "jobs", sizeof(struct wire_request), &wire_job_record, UINT64_MAX },
	[WIRE_POLICY] = { "policy", sizeof(struct wire_policy), &wire_policy_record },
	[WIRE_CLASS] = { "class", sizeof(struct wire_class) },
	[WIRE_HINT] = { "hint", sizeof(struct wire_hint) },
	[WIRE_HINT_PAGE] = { "hint-page", sizeof(struct wire_hint) },
	[WIRE_SUBSCRIBE] = { "subscribe", sizeof(struct wire_request) },
	[WIRE_METRICS] = { "metrics", sizeof(struct wire_request), NULL, UINT64_MAX },
	[WIRE_PAUSE] = { "pause", sizeof(struct wire_request) },
	[WIRE_CONTINUE] = { "continue", sizeof(struct wire_request) },
	[WIRE_REARM] = { "rearm", sizeof(struct wire_request), NULL, UINT32_MAX, "no such GPU" },
	[WIRE_RELEASE] = { "release", sizeof(struct wire_request), NULL, INT32_MAX, "no such pid" },
	[WIRE_RELOAD] = { "reload", sizeof(struct wire_request) },
	[WIRE_TRIP] = { "trip", sizeof(struct wire_request), NULL, UINT32_MAX, "no such GPU" },
	[WIRE_EVENT] = { "event", 0, &wire_event_record },
	[WIRE_ERROR] = { "error" },
};

static const struct type *type_of(uint32_t type)
{
	static const struct type none;

	return type < ARRAY_SIZE(types) ? &types[type] : &none;
}

size_t wire_request_bytes(uint32_t type)
{
	return type_of(type)->bytes;
}

const struct wire_record *wire_record_of(uint32_t type)
{
	return type_of(type)->record;
}

const char *wire_type_name(uint32_t type)
{
	return type_of(type)->name;
}

#define IS_TEXT(field) wire_is_text(field, sizeof(field))

/* Refusals are the same in all versions. */
static const char *check_version(const struct wire_header *h)
{
	if (h->type == WIRE_ERROR)
		return NULL;
	if (h->version < WIRE_VERSION_MIN)
		return "an older version of the protocol is spoken than is understood here";
	if (h->since > WIRE_VERSION)
		return "a later version of the protocol is spoken than is understood here";
	return NULL;
}

static int check_header(const struct wire_header *h, size_t len, const char **ret_why)
{
	if (h->magic != WIRE_MAGIC) {
		*ret_why = "this is not gpreempt's protocol";
		return -EBADMSG;
	}
	*ret_why = check_version(h);
	if (*ret_why)
		return -EPROTO;
	if (h->bytes == len)
		return 0;
	*ret_why = "the packet is not as long as it says";
	return -EBADMSG;
}

static const char *check_class(const struct wire_class *c)
{
	if (!IS_TEXT(c->pattern))
		return "a pattern that does not end";
	if (c->pad)
		return "bytes that mean nothing are not zero";
	if (c->selector < WIRE_BY_PID || c->selector > WIRE_BY_CONTAINER)
		return "no such selector";
	if (c->selector == WIRE_BY_PID ? c->pid <= 0 || c->pattern[0] : c->pid || !c->pattern[0])
		return "a pid or a pattern, and not both";
	if (!wire_class_name(c->job_class))
		return "no such class";
	if (c->priority > PRIORITY_MAX && c->priority != WIRE_KEEP)
		return "priorities are 0 to 255";
	if (c->flags & ~(WIRE_CLASS_CRITICAL | WIRE_CLASS_LAZY | WIRE_CLASS_WITHDRAW))
		return "a flag nobody knows";
	if (c->flags & WIRE_CLASS_WITHDRAW &&
	    (c->flags != WIRE_CLASS_WITHDRAW || c->job_class || c->priority || c->target_us))
		return "what is withdrawn has no class";
	if (c->target_us > UINT64_MAX / NSEC_PER_USEC)
		return "a target beyond all time";
	return NULL;
}

static const char *check_hint(const struct wire_hint *h)
{
	if (h->pid < 0)
		return "pids are positive";
	if (h->pad || (h->wait_ns && h->h.type != WIRE_HINT_PAGE))
		return "bytes that mean nothing are not zero";
	return NULL;
}

static const char *check_from(const struct wire_request *r)
{
	const struct type *type = type_of(r->h.type);

	if (r->from <= type->from_max)
		return NULL;
	return type->beyond ? type->beyond : "bytes that mean nothing are not zero";
}

static const char *check_body(const union wire_any_request *r)
{
	switch (r->h.type) {
	case WIRE_POLICY:
		return IS_TEXT(r->policy.name) ? NULL : "a name that does not end";
	case WIRE_CLASS:
		return check_class(&r->job_class);
	case WIRE_HINT:
	case WIRE_HINT_PAGE:
		return check_hint(&r->hint);
	default:
		return check_from(&r->request);
	}
}

static bool is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* What an older client does not send is zero; what a later one adds must be. */
static int take_body(const char *buf, size_t len, union wire_any_request *r, const char **ret_why)
{
	size_t known = wire_request_bytes(r->h.type);

	if (!known) {
		*ret_why = "no such request";
		return -EOPNOTSUPP;
	}
	if (len > known && !is_zero(buf + known, len - known)) {
		*ret_why = "a newer client asks for something this daemon does not know";
		return -E2BIG;
	}
	memcpy(r, buf, MIN(len, known));
	*ret_why = check_body(r);
	return *ret_why ? -EBADMSG : 0;
}

int wire_check_request(const void *buf, size_t len, union wire_any_request *ret,
		       const char **ret_why)
{
	union wire_any_request r = { 0 };
	const char *why = "no request is of this length";
	int error = -EBADMSG;

	if (len >= sizeof(r.h) && len <= WIRE_REQUEST_MAX) {
		memcpy(&r.h, buf, sizeof(r.h));
		error = check_header(&r.h, len, &why);
		if (error == 0)
			error = take_body(buf, len, &r, &why);
	}
	if (error < 0)
		*ret_why = why;
	else
		*ret = r;
	return error;
}

/* ---- answers ---- */

/* Room for any record. */
union any_record {
	struct gpreempt_daemon_status status;
	struct gpreempt_daemon_gpu gpu;
	struct gpreempt_daemon_job job;
	struct gpreempt_policy policy;
	struct gpreempt_event event;
};

static bool entries_are_sane(const union wire_packet *p, const struct wire_record *record)
{
	size_t at = sizeof(p->list);
	bool one = p->h.type != WIRE_GPUS && p->h.type != WIRE_JOBS;
	union any_record entry;

	if (one && p->list.n != 1)
		return false;
	for (uint32_t i = 0; i < p->list.n; i++) {
		int r = wire_get(record, p->bytes + at, p->h.bytes - at, &entry);

		if (r < 0)
			return false;
		at += (size_t)r;
	}
	return at == p->h.bytes;
}

static bool list_is_sane(const union wire_packet *p)
{
	const struct wire_record *record = wire_record_of(p->h.type);

	if (p->h.bytes < sizeof(p->list))
		return false;
	return record ? entries_are_sane(p, record) : p->list.n <= p->h.bytes - sizeof(p->list);
}

/* Its kind may be one of a later version. */
static bool error_is_sane(const struct wire_error *e)
{
	return e->h.bytes >= sizeof(*e) && IS_TEXT(e->message) && IS_TEXT(e->hint) &&
	       e->error > 0 && e->error < 4096;
}

static bool answer_is_sane(const union wire_packet *p)
{
	if (wire_record_of(p->h.type) || p->h.type == WIRE_METRICS || p->h.type == WIRE_TRIP)
		return list_is_sane(p);
	if (p->h.type == WIRE_ERROR)
		return error_is_sane(&p->error);
	return wire_request_bytes(p->h.type) && p->h.bytes >= sizeof(p->answer);
}

int wire_check_answer(const union wire_packet *p, size_t len, const char **ret_why)
{
	int r;

	*ret_why = "no answer is of this length";
	if (len < sizeof(p->h) || len > sizeof(*p))
		return -EBADMSG;
	r = check_header(&p->h, len, ret_why);
	if (r < 0 || answer_is_sane(p))
		return r;
	*ret_why = "an answer that makes no sense";
	return -EBADMSG;
}

void wire_list_begin(union wire_packet *p, uint32_t type, uint32_t seq)
{
	p->list = (struct wire_list){ .h = wire_header(type, sizeof(p->list), seq) };
}

void wire_list_text(union wire_packet *p, const char *text, size_t len)
{
	p->list.n = (uint32_t)MIN(len, WIRE_TEXT_MAX);
	if (p->list.n)
		memcpy(p->bytes + p->h.bytes, text, p->list.n);
	p->h.bytes += p->list.n;
}

bool wire_list_add(union wire_packet *p, const void *entry)
{
	const struct wire_record *record = wire_record_of(p->h.type);
	size_t bytes = wire_entry_bytes(record);

	if (bytes > sizeof(*p) - p->h.bytes)
		return false;
	wire_put(record, entry, p->bytes + p->h.bytes);
	p->h.bytes += (uint32_t)bytes;
	p->list.n++;
	return true;
}

size_t wire_list_room(uint32_t type)
{
	return WIRE_TEXT_MAX / wire_entry_bytes(wire_record_of(type));
}

void wire_list_one(union wire_packet *p, uint32_t type, uint32_t seq, const void *entry)
{
	wire_list_begin(p, type, seq);
	wire_list_add(p, entry);
	p->list.total = p->list.n;
}

bool wire_list_next(const union wire_packet *p, size_t *at, void *ret)
{
	size_t from = *at ? *at : sizeof(p->list);
	int r = from < p->h.bytes ? wire_get(wire_record_of(p->h.type), p->bytes + from,
					     p->h.bytes - from, ret) :
				    0;

	*at = from + (size_t)MAX(r, 0);
	return r > 0;
}

struct wire_header wire_header(uint32_t type, size_t bytes, uint32_t seq)
{
	return (struct wire_header){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.since = WIRE_VERSION_MIN,
		.type = (uint16_t)type,
		.bytes = (uint32_t)bytes,
		.seq = seq,
	};
}

/* Bytes of @text that fit @max without cutting a character of UTF-8 in two. */
static size_t whole_characters(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);

	if (len <= max)
		return len;
	len = max;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

void wire_text_set(char *field, size_t size, const char *text)
{
	size_t len = whole_characters(text, size - 1);

	memmove(field, text, len);
	memset(field + len, 0, size - len);
}

void wire_error_set(struct wire_error *e, uint32_t seq, int error, enum gpreempt_error_kind kind,
		    const char *hint, const char *fmt, ...)
{
	char message[2 * sizeof(e->message)];
	va_list ap;

	*e = (struct wire_error){
		.h = wire_header(WIRE_ERROR, sizeof(*e), seq),
		.error = error,
		.kind = kind,
	};
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	wire_text_set(e->message, sizeof(e->message), message);
	wire_text_set(e->hint, sizeof(e->hint), hint ? hint : "");
}

enum gpreempt_error_kind wire_error_kind_of(int error)
{
	switch (error) {
	case EINVAL:
	case EBADMSG:
	case EPROTO:
	case EMSGSIZE:
	case E2BIG:
		return GPREEMPT_ERROR_USAGE;
	case ESRCH:
	case ENOENT:
	case ENODEV:
		return GPREEMPT_ERROR_ABSENT;
	case EPERM:
	case EACCES:
	case EBUSY:
	case EOPNOTSUPP:
		return GPREEMPT_ERROR_REFUSED;
	default:
		return GPREEMPT_ERROR_FAILED;
	}
}
