/* SPDX-License-Identifier: MIT */
/* Lines that grow to the right and never beyond their width. */
#ifndef GPREEMPT_CMD_TOP_LINES_H
#define GPREEMPT_CMD_TOP_LINES_H

#include "cmd/gpreempt-top/view.h"
#include "util/macros.h"
#include "util/text.h"

struct lines {
	struct view_line *lines;
	size_t n, room;
	unsigned int width;
	unsigned int columns; /* of the last line */
	size_t bytes;
	bool failed; /* memory was short; everything else does nothing then */
};

void line_begin(struct lines *l, enum view_look look);
/* What is not plain ASCII becomes '?': every byte is a column, and none moves the cursor. */
void line_add(struct lines *l, const char *fmt, ...) _printf_(2, 3);
/* Begins one with this. */
void line_say(struct lines *l, enum view_look look, const char *fmt, ...) _printf_(3, 4);
/* Exactly @width columns: cut, or filled with blanks on the left (@right) or right. */
void line_cell(struct lines *l, const char *text, unsigned int width, bool right);
/* One column: of @levels marks, from none to all of it. */
void line_bar(struct lines *l, unsigned int value, unsigned int whole, bool utf8);
void line_fill(struct lines *l); /* blanks to the end, for lines with a background */
void lines_done(struct lines *l);

/* "1.25 ms": at most 7 columns. */
const char *short_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE]);

#endif
