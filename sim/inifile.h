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
#ifndef GPREEMPT_SIM_INIFILE_H
#define GPREEMPT_SIM_INIFILE_H

#include <stddef.h>

#include "sim/scenario.h"
#include "util/macros.h"

struct sim_ini;

/*
 * Both return 0, or a negative number after sim_ini_wrong(). Texts they are handed live as long as
 * the call; pointers into them tell where in the line a mistake is. The last section is NULL: there
 * is no more.
 */
struct sim_ini_ops {
	int (*section)(void *user, struct sim_ini *ini, const char *name);
	int (*pair)(void *user, struct sim_ini *ini, const char *key, const char *value);
};

/* -EINVAL: see @mistake. @text may hold anything. */
int sim_ini_parse(const char *file, const char *text, size_t len, const struct sim_ini_ops *ops,
		  void *user, struct sim_mistake *mistake);

/* Notes a mistake at @at, which points into a text of this call. The first counts. -EINVAL. */
int sim_ini_wrong(struct sim_ini *ini, const char *at, const char *fmt, ...) _printf_(3, 4);
/* The same of a value that was looked at elsewhere: @m has no place yet. */
int sim_ini_blame(struct sim_ini *ini, const char *at, const struct sim_mistake *m);
/* The same on an earlier line, such as the one that began a section. */
int sim_ini_wrong_line(struct sim_ini *ini, unsigned int line, const char *fmt, ...) _printf_(3, 4);
unsigned int sim_ini_line(const struct sim_ini *ini);

#endif
