/* SPDX-License-Identifier: MIT */
/*
 * Packets of the control socket (abi/wire.h): checking what arrives, making what leaves, and the
 * names people know its numbers by. No input or output here.
 */
#ifndef GPREEMPT_WIRE_WIRE_H
#define GPREEMPT_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/wire.h"
#include "util/macros.h"

/* Room for any request, and aligned for it. */
union wire_any_request {
	struct wire_header h;
	struct wire_request request;
	struct wire_policy policy;
	struct wire_class job_class;
	struct wire_hint hint;
};

/* Room for any answer. */
union wire_any_answer {
	struct wire_header h;
	struct wire_answer answer;
	struct wire_error error;
	struct wire_status status;
	struct wire_gpus gpus;
	struct wire_jobs jobs;
	struct wire_policy policy;
	struct wire_event event;
	struct wire_text text;
};

/* What wire_error.kind says; as enum gpreempt_error_kind. */
enum wire_error_kind {
	WIRE_ERROR_FAILED = 1,
	WIRE_ERROR_USAGE,
	WIRE_ERROR_ABSENT,
	WIRE_ERROR_REFUSED,
};

/* How long a request of this type is; 0: there is none of this type. */
size_t wire_request_bytes(uint32_t type);

/*
 * Whether @len bytes at @buf are one request as abi/wire.h has them: of our version, of a known
 * type and its size, with text that ends within its field and zeroes after it, numbers within
 * their ranges and unused bytes zero. Then *ret is it. -EBADMSG, -EPROTO (another version) or
 * -EOPNOTSUPP (a type nobody knows); *ret_why then says it for people, and is never freed.
 */
int wire_check_request(const void *buf, size_t len, union wire_any_request *ret,
		       const char **ret_why);

/*
 * The same for what a daemon sends: answers, errors and events. @len may be less than the struct
 * for those that carry a list: the entries there are, and no more.
 */
int wire_check_answer(const void *buf, size_t len, union wire_any_answer *ret,
		      const char **ret_why);

struct wire_header wire_header(uint32_t type, size_t bytes, uint32_t seq);
/* How much of an answer with a list is sent. */
size_t wire_gpus_bytes(uint32_t n);
size_t wire_jobs_bytes(uint32_t n);
size_t wire_text_bytes(uint32_t n);

/* @error: errno, positive. @hint may be NULL. */
void wire_error_set(struct wire_error *e, uint32_t seq, int error, enum wire_error_kind kind,
		    const char *hint, const char *fmt, ...) _printf_(6, 7);
/* What an errno is to whoever asked. */
enum wire_error_kind wire_error_kind_of(int error);

/* Fills a text field: cut where a character begins, zeroes to its end. */
void wire_text_set(char *field, size_t size, const char *text);

/* Names for people and scripts: "online", "job-came". NULL: no such number. */
const char *wire_class_name(uint32_t job_class);
const char *wire_event_name(uint32_t kind);
const char *wire_type_name(uint32_t type);
/* -EINVAL: no such name. */
int wire_class_parse(const char *name, uint32_t *ret);

#endif
