/* SPDX-License-Identifier: MIT */
/* What the files of KFD's debugfs have in common: headings and rows of hexadecimal words. */
#ifndef GPREEMPT_GPU_KFD_DUMP_H
#define GPREEMPT_GPU_KFD_DUMP_H

#include "gpu/kfd/text.h"

#define GKFD_DUMP_ROW_WORDS 8

/* Takes the indentation of a line that begins with a capital: rows have small hex digits. */
bool gkfd_dump_heading(struct gkfd_text *line);

/*
 * "    00000020: 01234567 ...": where the row begins, and how many words it has; 0: no row. Of
 * words that nobody wants (NULL) only the number is looked at.
 */
size_t gkfd_dump_row(struct gkfd_text line, uint32_t *ret_start,
		     uint32_t ret_words[GKFD_DUMP_ROW_WORDS]);

/*
 * Feeds the lines of @text to @take until it fails, and NULL after the last. A last line
 * without a newline was cut off: -EBADMSG. *ret_line is the line at fault then.
 */
int gkfd_dump_lines(const char *text, size_t len,
		    int (*take)(void *data, const struct gkfd_text *line), void *data,
		    uint32_t *ret_line);

#endif
