/* SPDX-License-Identifier: MIT */
/*
 * The records of gpreempt/daemon.h as tables of their fields, which the build makes of that header
 * (scripts/records.py). A record goes onto the wire as its length and then its fields in the order
 * of the struct, each as wide as in memory and with nothing between them. A reader takes the fields
 * it knows: what the sender does not have yet is zero, what it has more is passed over.
 */
#ifndef GPREEMPT_WIRE_RECORD_H
#define GPREEMPT_WIRE_RECORD_H

#include "gpreempt/daemon.h"

enum wire_form {
	WIRE_FORM_FLAG,
	WIRE_FORM_NUMBER, /* unsigned, of 4 or 8 bytes */
	WIRE_FORM_SIGNED, /* of 4 bytes */
	WIRE_FORM_NS,
	WIRE_FORM_US,
	WIRE_FORM_PERMILLE,
	WIRE_FORM_CLASS, /* enum gpreempt_class */
	WIRE_FORM_TEXT,
	WIRE_FORM_BYTES,
	WIRE_FORM_LATENCY, /* struct gpreempt_latency */
};

/* wire_field.flags; gpreempt/daemon.h says what they mean. */
#define WIRE_PUBLIC (1u << 0)
#define WIRE_SEEN (1u << 1)
#define WIRE_OPTIONAL (1u << 2)
#define WIRE_OPTIONAL_UNSEEN (1u << 3)

struct wire_field {
	const char *name;
	enum wire_form form;
	uint16_t offset, size; /* in memory; on the wire it is as wide */
	uint32_t flags;
	const char *key; /* in JSON; NULL: it is not there */
	const char *metric, *type; /* NULL: it is none */
	const char *label, *value; /* of the metric; NULL: none */
	const char *help;
};

struct wire_record {
	const struct wire_field *fields;
	size_t n;
	size_t size; /* in memory */
	size_t width; /* on the wire, without its length */
};

extern const struct wire_record wire_status_record, wire_gpu_record, wire_job_record;
extern const struct wire_record wire_event_record, wire_policy_record;

/* NULL: there is no such field. */
const struct wire_field *wire_field(const struct wire_record *r, const char *name);
/* The next of the names in *list, which have a blank between; NULL: there are no more. */
const struct wire_field *wire_pick(const struct wire_record *r, const char **list);

/* The value of a field that is a flag or a number; of a latency, how many were measured. */
uint64_t wire_value(const struct wire_field *f, const void *entry);
/* Text that ends within its field, and nothing behind its end. */
bool wire_is_text(const char *field, size_t size);
bool wire_is_zero(const struct wire_field *f, const void *entry);
/* Whether it is left out because the work of this job cannot be seen. */
bool wire_is_unseen(const struct wire_record *r, const struct wire_field *f, const void *entry);
/* Clears what is not for everybody to see. */
void wire_hide(const struct wire_record *r, void *entry);

/* Bytes of one entry with its length. */
size_t wire_entry_bytes(const struct wire_record *r);
/* Writes one to @to, where there is room for that many. */
void wire_put(const struct wire_record *r, const void *entry, void *to);
/*
 * Reads the entry at @from, of which there may be @room bytes: how many it takes, or -EBADMSG: it
 * is cut off, ends within a field, or has a value that no sender means.
 */
int wire_get(const struct wire_record *r, const void *from, size_t room, void *ret);

#endif
