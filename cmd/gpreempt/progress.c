/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "cmd/gpreempt/cli.h"
#include "util/clock.h"

/* Times are of the person waiting, not of the device. */
#define QUIET_NS NSEC_PER_SEC
#define REPEAT_NS (200 * NSEC_PER_MSEC)

void progress_begin(struct progress *p)
{
	*p = (struct progress){ .wanted = is_terminal(STDERR_FILENO), .began_ns = monotonic_ns() };
}

static void show(struct progress *p, const char *fmt, va_list ap)
{
	fflush(stdout);
	fputs("\r\033[K", stderr);
	vfprintf(stderr, fmt, ap);
	fflush(stderr);
	p->last_ns = monotonic_ns();
	p->shown = true;
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	uint64_t now = monotonic_ns();
	va_list ap;

	if (!p->wanted || now - p->began_ns < QUIET_NS || now - p->last_ns < REPEAT_NS)
		return;
	va_start(ap, fmt);
	show(p, fmt, ap);
	va_end(ap);
}

void progress_now(struct progress *p, const char *fmt, ...)
{
	va_list ap;

	if (!p->wanted)
		return;
	va_start(ap, fmt);
	show(p, fmt, ap);
	va_end(ap);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
