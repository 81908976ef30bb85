/* SPDX-License-Identifier: MIT */
/* Why something could not be done, for people: what happened, and what to do about it. */
#ifndef GPREEMPT_GPU_WHY_H
#define GPREEMPT_GPU_WHY_H

#include "util/macros.h"

enum gpu_why_kind { /* as enum gpreempt_error_kind, but for its first */
	GPU_WHY_FAILED = 1,
	GPU_WHY_USAGE, /* the caller asked for what cannot be */
	GPU_WHY_ABSENT, /* no such device, process or queue */
	GPU_WHY_REFUSED, /* no right, or not possible here */
};

struct gpu_why {
	enum gpu_why_kind kind;
	char message[256]; /* one line */
	char hint[256]; /* may be empty */
};

/* @hint may be NULL. */
void gpu_why_set(struct gpu_why *ret, enum gpu_why_kind kind, const char *hint, const char *fmt,
		 ...) _printf_(4, 5);
/*
 * The same by an -errno, which is returned. @what: the line, if it says it all, or NULL: errno's
 * own. @ret may be NULL.
 */
int gpu_why_fail(struct gpu_why *ret, int error, const char *what);

#endif
