/* SPDX-License-Identifier: MIT */
#include "gpu/why.h"

#include <stdarg.h>
#include <stdio.h>

void gpu_why_set(struct gpu_why *ret, enum gpu_why_kind kind, const char *hint, const char *fmt,
		 ...)
{
	va_list ap;

	ret->kind = kind;
	va_start(ap, fmt);
	vsnprintf(ret->message, sizeof(ret->message), fmt, ap);
	va_end(ap);
	snprintf(ret->hint, sizeof(ret->hint), "%s", hint ? hint : "");
}
