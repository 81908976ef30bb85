/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "wire/wire.h"

/* What is taken is within its struct, and is what was sent. */
static void check_request(const uint8_t *bytes, size_t len)
{
	union wire_any_request r;
	const char *why = NULL;
	int error = wire_check_request(bytes, len, &r, &why);
	size_t known;

	if (error) {
		PROMISE(error == -EBADMSG || error == -EPROTO || error == -EOPNOTSUPP ||
			error == -E2BIG);
		PROMISE(why && why[0]);
		return;
	}
	known = wire_request_bytes(r.h.type);
	PROMISE(wire_type_name(r.h.type) && known && len <= WIRE_REQUEST_MAX);
	PROMISE(memcmp(&r, bytes, MIN(len, known)) == 0);
	for (size_t i = len; i < known; i++)
		PROMISE(((char *)&r)[i] == 0);
	for (size_t i = known; i < len; i++)
		PROMISE(bytes[i] == 0);
	if (r.h.type == WIRE_CLASS)
		PROMISE(strlen(r.job_class.pattern) < sizeof(r.job_class.pattern) &&
			wire_class_name(r.job_class.job_class));
}

/* Every text ends, and what is sent on is what came, as far as it is known here. */
static void check_entry(const struct wire_record *r, const void *entry)
{
	static uint8_t made[WIRE_ANSWER_MAX], again[WIRE_ANSWER_MAX];

	for (size_t i = 0; i < r->n; i++)
		if (r->fields[i].form == WIRE_FORM_TEXT)
			PROMISE(strlen((const char *)entry + r->fields[i].offset) <
				r->fields[i].size);
	wire_put(r, entry, made);
	PROMISE(wire_get(r, made, wire_entry_bytes(r), again) == (int)wire_entry_bytes(r));
	PROMISE(memcmp(entry, again, r->size) == 0);
}

static void check_answer(const uint8_t *bytes, size_t len)
{
	static union wire_packet p;
	union {
		struct gpreempt_daemon_status status;
		struct gpreempt_daemon_job job;
		struct gpreempt_daemon_gpu gpu;
		struct gpreempt_event event;
		struct gpreempt_policy policy;
	} entry;
	const char *why = NULL;
	uint32_t n = 0;
	size_t at = 0;
	int error;

	memcpy(&p, bytes, MIN(len, sizeof(p)));
	error = wire_check_answer(&p, len, &why);
	if (error) {
		PROMISE((error == -EBADMSG || error == -EPROTO) && why && why[0]);
		return;
	}
	PROMISE(wire_type_name(p.h.type) && p.h.bytes == len);
	if (p.h.type == WIRE_METRICS)
		PROMISE(p.list.n <= len - sizeof(p.list));
	if (!wire_record_of(p.h.type))
		return;
	while (wire_list_next(&p, &at, &entry)) {
		check_entry(wire_record_of(p.h.type), &entry);
		n++;
	}
	PROMISE(n == p.list.n && at == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	check_request(bytes, len);
	check_answer(bytes, len);
	return 0;
}
