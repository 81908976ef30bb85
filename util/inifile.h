/* SPDX-License-Identifier: MIT */
/*
 * INI text, read by libinih, with the place of every mistake.
 *
 *   [section]
 *   key = value ; comment
 *
 * Lines begin in the first column, except comments. Nothing but text and tabs, and no line beyond
 * what libinih takes.
 */
#ifndef GPREEMPT_UTIL_INIFILE_H
#define GPREEMPT_UTIL_INIFILE_H

#include <stddef.h>

#include "util/macros.h"

struct inifile;

/* Where and what is wrong with a file. */
struct inifile_mistake {
	char file[256];
	unsigned int line, column; /* from 1; 0: the file as a whole */
	char text[256];
	char names[256]; /* where a name is unknown: the valid ones; else empty */
};

/*
 * Both return 0, or a negative number after inifile_wrong(). Texts they are handed live as long as
 * the call; pointers into them tell where in the line a mistake is. The last section is NULL: there
 * is no more.
 */
struct inifile_ops {
	int (*section)(void *user, struct inifile *ini, const char *name);
	int (*pair)(void *user, struct inifile *ini, const char *key, const char *value);
};

/* -EINVAL: see @mistake. @text may hold anything. */
int inifile_parse(const char *file, const char *text, size_t len, const struct inifile_ops *ops,
		  void *user, struct inifile_mistake *mistake);

/* Notes a mistake at @at, which points into a text of this call. The first counts. -EINVAL. */
int inifile_wrong(struct inifile *ini, const char *at, const char *fmt, ...) _printf_(3, 4);
/* The same of a value that was looked at elsewhere: @m has no place yet. */
int inifile_blame(struct inifile *ini, const char *at, const struct inifile_mistake *m);
/* The same on an earlier line, such as the one that began a section. */
int inifile_wrong_line(struct inifile *ini, unsigned int line, const char *fmt, ...) _printf_(3, 4);
unsigned int inifile_line(const struct inifile *ini);

#endif
