/* SPDX-License-Identifier: MIT */
/*
 * Packets of the control socket (abi/wire.h): checking what arrives, making what leaves, and the
 * names people know its numbers by. No input or output here.
 */
#ifndef GPREEMPT_WIRE_WIRE_H
#define GPREEMPT_WIRE_WIRE_H

#include "abi/wire.h"
#include "util/macros.h"
#include "wire/record.h"

/* Room for any request, and aligned for it. */
union wire_any_request {
	struct wire_header h;
	struct wire_request request;
	struct wire_policy policy;
	struct wire_class job_class;
	struct wire_hint hint;
};

/* Room for any answer. */
union wire_packet {
	struct wire_header h;
	struct wire_answer answer;
	struct wire_error error;
	struct wire_list list;
	unsigned char bytes[WIRE_ANSWER_MAX];
};

/* How long a request of this type is; 0: there is none of this type. */
size_t wire_request_bytes(uint32_t type);

/*
 * Whether @len bytes at @buf are one request as abi/wire.h has them: of a version that is spoken,
 * of a known type, with text that ends within its field and zeroes after it, numbers within their
 * ranges and unused bytes zero. Then *ret is it, with zeroes for what an older client does not
 * send. -EBADMSG, -EPROTO (a version that is not spoken), -EOPNOTSUPP (a type nobody knows) or
 * -E2BIG (it asks for more than is known); *ret_why then says it for people, and is never freed.
 */
int wire_check_request(const void *buf, size_t len, union wire_any_request *ret,
		       const char **ret_why);

/*
 * The same for what a daemon sends, in place: of a checked packet everything can be read. It may
 * have more than is known: that is passed over.
 */
int wire_check_answer(const union wire_packet *p, size_t len, const char **ret_why);

struct wire_header wire_header(uint32_t type, size_t bytes, uint32_t seq);

/* ---- lists of records ---- */

/* What the answers of this type, or events, are lists of; NULL: they are none. */
const struct wire_record *wire_record_of(uint32_t type);
void wire_list_begin(union wire_packet *p, uint32_t type, uint32_t seq);
/* Bytes of a text, as many as there is room for: list.n says how many that are. */
void wire_list_text(union wire_packet *p, const char *text, size_t len);
/* False: there is no room for it. */
bool wire_list_add(union wire_packet *p, const void *entry);
/* How many entries of this type a packet has room for. */
size_t wire_list_room(uint32_t type);
/* A list of one. */
void wire_list_one(union wire_packet *p, uint32_t type, uint32_t seq, const void *entry);
/* Reads a checked packet: from *at, which begins as 0, to *ret. False: there are no more. */
bool wire_list_next(const union wire_packet *p, size_t *at, void *ret);
/* Up to how many bytes of text one answer has. */
#define WIRE_TEXT_MAX (WIRE_ANSWER_MAX - sizeof(struct wire_list))

/* ---- refusals ---- */

/* @error: errno, positive. @hint may be NULL. */
void wire_error_set(struct wire_error *e, uint32_t seq, int error, enum gpreempt_error_kind kind,
		    const char *hint, const char *fmt, ...) _printf_(6, 7);
/* What an errno is to whoever asked. */
enum gpreempt_error_kind wire_error_kind_of(int error);

/* Fills a text field: cut where a character begins, zeroes to its end. */
void wire_text_set(char *field, size_t size, const char *text);

/* ---- names ---- */

enum wire_audience {
	WIRE_TO_OWNER = 1, /* of the process; where there is none, who may do everything */
	WIRE_TO_NEIGHBOURS, /* who sees that others' jobs are there */
	WIRE_TO_ALL,
};

struct wire_event_kind {
	const char *name;
	enum wire_audience audience;
	bool warns; /* its line in the log is a warning */
};

/* NULL: no such kind. */
const struct wire_event_kind *wire_event_kind(uint32_t kind);
/* Names for people and scripts: "online", "status". NULL: no such number. */
const char *wire_class_name(uint32_t job_class);
const char *wire_type_name(uint32_t type);
/* -EINVAL: no such name. */
int wire_class_parse(const char *name, uint32_t *ret);

#endif
