/* SPDX-License-Identifier: MIT */
/* The INI files that are part of the program; written at build time by embed.py. */
#ifndef GPREEMPT_SIM_BUILTIN_H
#define GPREEMPT_SIM_BUILTIN_H

#include <stddef.h>

struct sim_builtin {
	const char *name; /* of a scenario; or with ".ini", of a table */
	const char *title; /* of a scenario, else NULL */
	const char *text;
	size_t len;
};

extern const struct sim_builtin sim_builtins[]; /* ends with a NULL name */

#endif
