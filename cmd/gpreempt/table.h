/* SPDX-License-Identifier: MIT */
/* Aligned tables for people. */
#ifndef GPREEMPT_CMD_TABLE_H
#define GPREEMPT_CMD_TABLE_H

#include <libsmartcols.h>
#include <stdbool.h>

#include "util/macros.h"

struct column {
	const char *name;
	bool right;
};

/* NULL when memory is short; all below accept that and print nothing. */
struct libscols_table *table_new(const struct column *columns, size_t n);
void table_row(struct libscols_table *t); /* a new one; cells go to the last */
void table_cell(struct libscols_table *t, size_t column, const char *fmt, ...) _printf_(3, 4);
void table_print(struct libscols_table *t); /* and frees it */

#endif
