/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"

#define PRIORITY_MAX 255u

size_t wire_request_bytes(uint32_t type)
{
	switch (type) {
	case WIRE_STATUS:
	case WIRE_GPUS:
	case WIRE_JOBS:
	case WIRE_SUBSCRIBE:
	case WIRE_METRICS:
	case WIRE_PAUSE:
	case WIRE_CONTINUE:
	case WIRE_REARM:
	case WIRE_RELEASE:
	case WIRE_RELOAD:
		return sizeof(struct wire_request);
	case WIRE_POLICY:
		return sizeof(struct wire_policy);
	case WIRE_CLASS:
		return sizeof(struct wire_class);
	case WIRE_HINT:
	case WIRE_HINT_PAGE:
		return sizeof(struct wire_hint);
	default:
		return 0;
	}
}

size_t wire_gpus_bytes(uint32_t n)
{
	return offsetof(struct wire_gpus, gpus) + n * sizeof(struct wire_gpu);
}

size_t wire_jobs_bytes(uint32_t n)
{
	return offsetof(struct wire_jobs, jobs) + n * sizeof(struct wire_job);
}

size_t wire_text_bytes(uint32_t n)
{
	return offsetof(struct wire_text, text) + n;
}

/* Text that ends within its field, and nothing behind its end. */
static bool is_text(const char *field, size_t size)
{
	size_t len = strnlen(field, size);

	if (len == size)
		return false;
	for (size_t i = len; i < size; i++)
		if (field[i])
			return false;
	return true;
}

#define IS_TEXT(field) is_text(field, sizeof(field))

static const char *check_header(const struct wire_header *h, size_t len, int *ret_error)
{
	*ret_error = -EBADMSG;
	if (h->magic != WIRE_MAGIC)
		return "this is not gpreempt's protocol";
	if (h->version != WIRE_VERSION) {
		*ret_error = -EPROTO;
		return "another version of the protocol is spoken here";
	}
	if (h->bytes != len)
		return "the packet is not as long as it says";
	return NULL;
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
	if (c->job_class > WIRE_CLASS_ONLINE)
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

static const char *check_policy(const struct wire_policy *p)
{
	if (!IS_TEXT(p->name))
		return "a name that does not end";
	for (size_t i = 0; i < sizeof(p->names); i++)
		if (p->names[i])
			return "bytes that mean nothing are not zero";
	return NULL;
}

static const char *check_hint(const struct wire_hint *h)
{
	if (h->pid < 0)
		return "pids are positive";
	if (h->pad)
		return "bytes that mean nothing are not zero";
	return NULL;
}

static const char *check_from(const struct wire_request *r)
{
	switch (r->h.type) {
	case WIRE_GPUS:
	case WIRE_JOBS:
	case WIRE_METRICS:
		return NULL;
	case WIRE_REARM:
		return r->from > UINT32_MAX ? "no such GPU" : NULL;
	case WIRE_RELEASE:
		return r->from > INT32_MAX ? "no such pid" : NULL;
	default:
		return r->from ? "bytes that mean nothing are not zero" : NULL;
	}
}

static const char *check_body(const union wire_any_request *r)
{
	switch (r->h.type) {
	case WIRE_POLICY:
		return check_policy(&r->policy);
	case WIRE_CLASS:
		return check_class(&r->job_class);
	case WIRE_HINT:
	case WIRE_HINT_PAGE:
		return check_hint(&r->hint);
	default:
		return check_from(&r->request);
	}
}

int wire_check_request(const void *buf, size_t len, union wire_any_request *ret,
		       const char **ret_why)
{
	union wire_any_request r = { 0 };
	const char *why;
	int error;

	if (len < sizeof(r.h) || len > sizeof(r)) {
		*ret_why = "no request is of this length";
		return -EBADMSG;
	}
	memcpy(&r, buf, len);
	why = check_header(&r.h, len, &error);
	if (!why && !wire_request_bytes(r.h.type)) {
		why = "no such request";
		error = -EOPNOTSUPP;
	}
	if (!why && wire_request_bytes(r.h.type) != len)
		why = "no request of this kind is of this length";
	if (!why)
		why = check_body(&r);
	if (why) {
		*ret_why = why;
		return error;
	}
	*ret = r;
	return 0;
}

/* Of lists: how long a packet with @n entries is; 0: too many. */
static size_t list_bytes(const union wire_any_answer *a)
{
	switch (a->h.type) {
	case WIRE_GPUS:
		return a->gpus.n <= WIRE_GPUS_MAX ? wire_gpus_bytes(a->gpus.n) : 0;
	case WIRE_JOBS:
		return a->jobs.n <= WIRE_JOBS_MAX ? wire_jobs_bytes(a->jobs.n) : 0;
	default:
		return a->text.n <= WIRE_TEXT_MAX ? wire_text_bytes(a->text.n) : 0;
	}
}

static size_t answer_bytes(const union wire_any_answer *a)
{
	switch (a->h.type) {
	case WIRE_STATUS:
		return sizeof(struct wire_status);
	case WIRE_GPUS:
	case WIRE_JOBS:
	case WIRE_METRICS:
		return list_bytes(a);
	case WIRE_POLICY:
		return sizeof(struct wire_policy);
	case WIRE_EVENT:
		return sizeof(struct wire_event);
	case WIRE_ERROR:
		return sizeof(struct wire_error);
	default:
		return wire_request_bytes(a->h.type) ? sizeof(struct wire_answer) : 0;
	}
}

static bool job_is_sane(const struct wire_job *j)
{
	return IS_TEXT(j->comm) && IS_TEXT(j->source) && IS_TEXT(j->container) && IS_TEXT(j->why) &&
	       j->job_class <= WIRE_CLASS_ONLINE && j->priority <= PRIORITY_MAX;
}

static bool gpus_are_sane(const struct wire_gpus *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (!IS_TEXT(g->gpus[i].name) || !IS_TEXT(g->gpus[i].tripped_by))
			return false;
	return true;
}

static bool jobs_are_sane(const struct wire_jobs *j)
{
	for (uint32_t i = 0; i < j->n; i++)
		if (!job_is_sane(&j->jobs[i]))
			return false;
	return true;
}

static bool answer_is_sane(const union wire_any_answer *a)
{
	switch (a->h.type) {
	case WIRE_STATUS:
		return IS_TEXT(a->status.policy) && IS_TEXT(a->status.backend) &&
		       IS_TEXT(a->status.level) && IS_TEXT(a->status.version) &&
		       IS_TEXT(a->status.config) && IS_TEXT(a->status.blind);
	case WIRE_GPUS:
		return gpus_are_sane(&a->gpus);
	case WIRE_JOBS:
		return jobs_are_sane(&a->jobs);
	case WIRE_POLICY:
		return IS_TEXT(a->policy.name) && IS_TEXT(a->policy.names);
	case WIRE_EVENT:
		return IS_TEXT(a->event.comm) && IS_TEXT(a->event.text) &&
		       wire_event_name(a->event.kind) && a->event.job_class <= WIRE_CLASS_ONLINE;
	case WIRE_ERROR:
		return IS_TEXT(a->error.message) && IS_TEXT(a->error.hint) && a->error.error > 0 &&
		       a->error.kind >= WIRE_ERROR_FAILED && a->error.kind <= WIRE_ERROR_REFUSED;
	default:
		return true;
	}
}

int wire_check_answer(const void *buf, size_t len, union wire_any_answer *ret, const char **ret_why)
{
	union wire_any_answer a = { 0 };
	const char *why;
	int error;

	if (len < sizeof(a.h) || len > sizeof(a)) {
		*ret_why = "no answer is of this length";
		return -EBADMSG;
	}
	memcpy(&a, buf, len);
	why = check_header(&a.h, len, &error);
	if (!why && answer_bytes(&a) != len)
		why = "no answer of this kind is of this length";
	if (!why && !answer_is_sane(&a))
		why = "an answer that makes no sense";
	if (why) {
		*ret_why = why;
		return error;
	}
	*ret = a;
	return 0;
}

struct wire_header wire_header(uint32_t type, size_t bytes, uint32_t seq)
{
	return (struct wire_header){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
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

void wire_error_set(struct wire_error *e, uint32_t seq, int error, enum wire_error_kind kind,
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

enum wire_error_kind wire_error_kind_of(int error)
{
	switch (error) {
	case EINVAL:
	case EBADMSG:
	case EPROTO:
	case EMSGSIZE:
		return WIRE_ERROR_USAGE;
	case ESRCH:
	case ENOENT:
	case ENODEV:
		return WIRE_ERROR_ABSENT;
	case EPERM:
	case EACCES:
	case EBUSY:
	case EOPNOTSUPP:
		return WIRE_ERROR_REFUSED;
	default:
		return WIRE_ERROR_FAILED;
	}
}
