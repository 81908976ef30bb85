/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/table.h"

#include <stdarg.h>

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
