/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct libscols_table *table_new(const struct column *columns, size_t n)
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	/* The terminal folds what is too wide: cut-off figures help nobody. */
	scols_table_set_termforce(t, SCOLS_TERMFORCE_NEVER);
	for (size_t i = 0; i < n; i++)
		scols_table_new_column(t, columns[i].name, 0,
				       columns[i].right ? SCOLS_FL_RIGHT : 0);
	return t;
}

void table_row(struct libscols_table *t)
{
	if (t)
		scols_table_new_line(t, NULL);
}

void table_cell(struct libscols_table *t, size_t column, const char *fmt, ...)
{
	struct libscols_line *line;
	char *text = NULL;
	va_list ap;
	int n;

	if (!t)
		return;
	line = scols_table_get_line(t, scols_table_get_nlines(t) - 1);
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0 || !line || scols_line_refer_data(line, column, text) != 0)
		free(n < 0 ? NULL : text);
}

void table_print(struct libscols_table *t)
{
	if (!t)
		return;
	scols_print_table(t);
	scols_unref_table(t);
}

/* ---- records ---- */

struct record {
	size_t size;
	uint64_t valid;
};

static bool is_known(const struct field *f, const struct record *r)
{
	return (r->valid & f->needs) == f->needs;
}

static const void *member(const struct field *f, const void *record)
{
	return (const char *)record + f->offset;
}

static uint64_t number(const struct field *f, const void *record)
{
	const void *at = member(f, record);

	return f->size == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

void json_add_fields(struct json_object *o, const struct field *fields, size_t n,
		     const void *record)
{
	char buf[UNIT_TEXT_SIZE];

	for (const struct field *f = fields; f < fields + n; f++) {
		bool empty = f->kind == FIELD_TEXT && !*(const char *)member(f, record);

		if (!f->key || empty || !is_known(f, record))
			continue;
		if (f->kind == FIELD_FLAG)
			json_add(o, f->key,
				 json_object_new_boolean(*(const bool *)member(f, record)));
		else if (f->kind == FIELD_TEXT)
			json_add_string(o, f->key, member(f, record));
		else if (f->kind == FIELD_WORD)
			json_add_string(o, f->key, f->word(record, buf));
		else if (f->kind == FIELD_NS)
			json_add(o, f->key, json_us(number(f, record)));
		else
			json_add_uint(o, f->key, number(f, record));
	}
}

static const char *field_text(const struct field *f, const void *record, char buf[UNIT_TEXT_SIZE])
{
	switch (f->kind) {
	case FIELD_BYTES:
		return text_bytes(number(f, record), buf);
	case FIELD_US:
		return text_duration(number(f, record) * NSEC_PER_USEC, buf);
	case FIELD_NS:
		return text_duration(number(f, record), buf);
	case FIELD_FLAG:
		return *(const bool *)member(f, record) ? "yes" : "no";
	case FIELD_TEXT:
		return member(f, record);
	case FIELD_FIGURES:
	case FIELD_WORD:
		return f->word(record, buf);
	default:
		snprintf(buf, UNIT_TEXT_SIZE, f->kind == FIELD_HEX ? "0x%" PRIx64 : "%" PRIu64,
			 number(f, record));
		return buf;
	}
}

struct libscols_table *table_of_fields(const struct field *fields, size_t n)
{
	struct libscols_table *t = table_new(NULL, 0);

	for (const struct field *f = fields; t && f < fields + n; f++)
		if (f->column)
			scols_table_new_column(t, f->column, 0,
					       f->kind < FIELD_FLAG ? SCOLS_FL_RIGHT : 0);
	return t;
}

void table_add_fields(struct libscols_table *t, const struct field *fields, size_t n,
		      const void *record)
{
	char buf[UNIT_TEXT_SIZE];
	size_t column = 0;

	table_row(t);
	for (const struct field *f = fields; f < fields + n; f++)
		if (f->column)
			table_cell(t, column++, "%s",
				   is_known(f, record) ? field_text(f, record, buf) : "-");
}
