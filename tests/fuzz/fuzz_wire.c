/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "wire/wire.h"
#include "tests/fuzz/fuzz.h"

/* The same packet, made anew of what it says. */
static union wire_any_request remade(const union wire_any_request *r)
{
	union wire_any_request made = { 0 };

	switch (r->h.type) {
	case WIRE_POLICY:
		wire_text_set(made.policy.name, sizeof(made.policy.name), r->policy.name);
		break;
	case WIRE_CLASS:
		made.job_class.selector = r->job_class.selector;
		made.job_class.pid = r->job_class.pid;
		made.job_class.job_class = r->job_class.job_class;
		made.job_class.priority = r->job_class.priority;
		made.job_class.flags = r->job_class.flags;
		made.job_class.target_us = r->job_class.target_us;
		wire_text_set(made.job_class.pattern, sizeof(made.job_class.pattern),
			      r->job_class.pattern);
		break;
	case WIRE_HINT:
	case WIRE_HINT_PAGE:
		made.hint.pid = r->hint.pid;
		made.hint.ahead_ns = r->hint.ahead_ns;
		made.hint.for_ns = r->hint.for_ns;
		break;
	default:
		made.request.from = r->request.from;
	}
	made.h = wire_header(r->h.type, wire_request_bytes(r->h.type), r->h.seq);
	return made;
}

static void check_request(const uint8_t *bytes, size_t len)
{
	union wire_any_request r, made;
	const char *why = NULL;
	int error = wire_check_request(bytes, len, &r, &why);

	if (error) {
		PROMISE(error == -EBADMSG || error == -EPROTO || error == -EOPNOTSUPP);
		PROMISE(why && why[0]);
		return;
	}
	PROMISE(wire_type_name(r.h.type) && len == wire_request_bytes(r.h.type));
	made = remade(&r);
	PROMISE(memcmp(&made, &r, sizeof(r)) == 0 && memcmp(&made, bytes, len) == 0);
}

/* What a client prints must end, and be numbers it has names for. */
static void check_answer(const uint8_t *bytes, size_t len)
{
	static union wire_any_answer a;
	const char *why = NULL;
	int error = wire_check_answer(bytes, len, &a, &why);

	if (error) {
		PROMISE((error == -EBADMSG || error == -EPROTO) && why && why[0]);
		return;
	}
	PROMISE(memcmp(&a, bytes, len) == 0 && a.h.bytes == len);
	PROMISE(wire_type_name(a.h.type));
	if (a.h.type == WIRE_JOBS)
		for (uint32_t i = 0; i < a.jobs.n; i++)
			PROMISE(wire_class_name(a.jobs.jobs[i].job_class) &&
				strlen(a.jobs.jobs[i].why) < sizeof(a.jobs.jobs[i].why));
	if (a.h.type == WIRE_EVENT)
		PROMISE(wire_event_name(a.event.kind) && wire_class_name(a.event.job_class));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	check_request(bytes, len);
	check_answer(bytes, len);
	return 0;
}
