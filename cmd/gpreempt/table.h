/* SPDX-License-Identifier: MIT */
/* Records as aligned tables for people, and as JSON for programs. */
#ifndef GPREEMPT_CMD_TABLE_H
#define GPREEMPT_CMD_TABLE_H

#include <libsmartcols.h>
#include <stdbool.h>

#include "cmd/gpreempt/cli.h"

struct column {
	const char *name;
	bool right;
	const char *field; /* for whoever fills it */
};

/* NULL when memory is short; all below accept that and print nothing. */
struct libscols_table *table_new(const struct column *columns, size_t n);
void table_row(struct libscols_table *t); /* a new one; cells go to the last */
void table_cell(struct libscols_table *t, size_t column, const char *fmt, ...) _printf_(3, 4);
void table_print(struct libscols_table *t); /* and frees it */

/* A member of a record. */
enum field_kind {
	FIELD_NUMBER, /* of 4 or 8 bytes */
	FIELD_HEX, /* the same; in JSON a number */
	FIELD_BYTES, /* the same; "1.5 MiB" */
	FIELD_US, /* the same, microseconds; "1.5 ms" */
	FIELD_NS, /* the same; in JSON microseconds */
	FIELD_FIGURES, /* what word() says, to the right */
	FIELD_FLAG, /* bool; in tables "yes" or "no" */
	FIELD_TEXT, /* char [] */
	FIELD_WORD, /* what word() says; NULL: it is not known */
};

struct field {
	const char *key; /* in JSON; NULL: it is not there */
	const char *column; /* its heading; NULL: it has none */
	enum field_kind kind;
	size_t offset, size;
	uint64_t needs; /* bits of the record's valid, without which it is not known */
	const char *(*word)(const void *record, char buf[UNIT_TEXT_SIZE]);
};

/* "offset, size" of a member. */
#define FIELD(type, member) offsetof(type, member), sizeof(((type *)0)->member)

/*
 * Records begin with size and valid where a field needs that. What is not known is left out, and so
 * is text that is empty, where nothing says whether it is known.
 */
struct json_object *json_of_fields(const struct field *fields, size_t n, const void *record);
/* A list of @n_records of @size bytes. */
struct json_object *json_of_records(const struct field *fields, size_t n, const void *records,
				    size_t n_records, size_t size);
/*
 * The same as a table, where what is not known is a dash. @columns: headings of those that are
 * wanted, ended by NULL; NULL: all, in their order.
 */
void print_records(const struct field *fields, size_t n, const char *const *columns,
		   const void *records, size_t n_records, size_t size);

#endif
