/* SPDX-License-Identifier: MIT */
/* The screen as lines of text: a function of what is known, the size and what was typed. */
#ifndef GPREEMPT_CMD_TOP_VIEW_H
#define GPREEMPT_CMD_TOP_VIEW_H

#include "cmd/gpreempt/snapshot.h"

#define VIEW_COLUMNS_MAX 256

enum view_look {
	VIEW_PLAIN,
	VIEW_TITLE,
	VIEW_HEADING, /* of columns */
	VIEW_GPU,
	VIEW_ONLINE,
	VIEW_HELD,
	VIEW_DIM,
	VIEW_ALARM,
	VIEW_KEYS,
};

struct view_line {
	enum view_look look;
	char text[3 * VIEW_COLUMNS_MAX + 1]; /* UTF-8, at most 3 bytes a column */
};

enum view_sort { SORT_CLASS, SORT_SHARE, SORT_WAIT, SORT_PREEMPTED, SORT_PID, SORT_COUNT };

struct view_options {
	unsigned int width;
	unsigned int height; /* 0: as many lines as it takes, and none for the keys */
	bool utf8;
	bool help;
	enum view_sort sort;
	size_t scroll; /* lines of the list above the screen; cut to what there are */
};

struct view {
	struct view_line *lines;
	size_t n;
	size_t scroll; /* as it was cut */
	size_t page; /* lines of the list on the screen */
};

int view_make(const struct snapshot *s, const struct view_options *options, struct view *ret);
void view_done(struct view *v);

#endif
