/* SPDX-License-Identifier: MIT */
#include "gpu/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "util/advice.h"

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

static enum gpu_why_kind kind_of(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
	case -EOPNOTSUPP:
		return GPU_WHY_REFUSED;
	case -ENODEV:
		return GPU_WHY_ABSENT;
	default:
		return GPU_WHY_FAILED;
	}
}

int gpu_why_fail(struct gpu_why *ret, int error, const char *what)
{
	bool no_right = error == -EPERM || error == -EACCES;

	if (ret)
		gpu_why_set(ret, kind_of(error), no_right ? "try sudo" : advice_for(error, NULL),
			    "%s", what ? what : strerror(-error));
	return error;
}
