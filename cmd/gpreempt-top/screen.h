/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_TOP_SCREEN_H
#define GPREEMPT_CMD_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

struct screen_options {
	const char *socket;
	uint64_t interval_ns;
	bool utf8;
	bool once; /* not on the screen, but as text */
};

/* Until somebody ends it. -ENOTTY: there is no terminal that could show it. */
int screen_run(const struct screen_options *options);

/* Columns of the terminal on stdout; 0: there is none. */
unsigned int terminal_width(void);

#endif
