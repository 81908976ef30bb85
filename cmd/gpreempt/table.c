/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 16

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

struct json_object *json_of_fields(const struct field *fields, size_t n, const void *record)
{
	struct json_object *o = json_object_new_object();
	char buf[UNIT_TEXT_SIZE];

	for (const struct field *f = fields; f < fields + n; f++) {
		const void *at = member(f, record);
		const char *word = NULL;

		if (f->kind == FIELD_WORD)
			word = f->word(record, buf);
		else if (f->kind == FIELD_TEXT && (f->needs || *(const char *)at))
			word = at;
		if (!f->key || !is_known(f, record))
			continue;
		if (word)
			json_add_string(o, f->key, word);
		else if (f->kind == FIELD_FLAG)
			json_add(o, f->key, json_object_new_boolean(*(const bool *)at));
		else if (f->kind == FIELD_NS)
			json_add(o, f->key, json_us(number(f, record)));
		else if (f->kind < FIELD_FLAG)
			json_add_uint(o, f->key, number(f, record));
	}
	return o;
}

struct json_object *json_of_records(const struct field *fields, size_t n, const void *records,
				    size_t n_records, size_t size)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n_records; i++)
		json_object_array_add(list,
				      json_of_fields(fields, n, (const char *)records + i * size));
	return list;
}

static const char *field_text(const struct field *f, const void *record, char buf[UNIT_TEXT_SIZE])
{
	const char *word;

	if (!is_known(f, record))
		return "-";
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
		word = f->word(record, buf);
		return word ? word : "-";
	default:
		snprintf(buf, UNIT_TEXT_SIZE, f->kind == FIELD_HEX ? "0x%" PRIx64 : "%" PRIu64,
			 number(f, record));
		return buf;
	}
}

static size_t choose(const struct field *fields, size_t n, const char *const *columns,
		     const struct field **ret)
{
	size_t count = 0;

	for (const struct field *f = fields; !columns && f < fields + n; f++)
		if (f->column)
			ret[count++] = f;
	for (; columns && *columns; columns++)
		for (const struct field *f = fields; f < fields + n; f++)
			if (f->column && strcmp(f->column, *columns) == 0)
				ret[count++] = f;
	return count;
}

void print_records(const struct field *fields, size_t n, const char *const *columns,
		   const void *records, size_t n_records, size_t size)
{
	const struct field *shown[MAX_COLUMNS];
	size_t n_shown = choose(fields, n, columns, shown);
	struct libscols_table *t = table_new(NULL, 0);
	char buf[UNIT_TEXT_SIZE];

	for (size_t c = 0; t && c < n_shown; c++)
		scols_table_new_column(t, shown[c]->column, 0,
				       shown[c]->kind < FIELD_FLAG ? SCOLS_FL_RIGHT : 0);
	for (size_t i = 0; i < n_records; i++) {
		const void *record = (const char *)records + i * size;

		table_row(t);
		for (size_t c = 0; c < n_shown; c++)
			table_cell(t, c, "%s", field_text(shown[c], record, buf));
	}
	table_print(t);
}
