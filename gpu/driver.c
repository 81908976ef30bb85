/* SPDX-License-Identifier: MIT */
#include "gpu/driver.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "util/macros.h"

#define for_each_driver(d) for (const struct gpu_driver *const *d = gpu_drivers; *d; d++)

bool gpu_driver_is(const struct gpu_driver *d, const char *name, const char **ret_argument)
{
	size_t len = strlen(d->name);

	if (strncmp(name, d->name, len) || (name[len] && name[len] != ':') ||
	    (name[len] && !d->argument[0]))
		return false;
	*ret_argument = name[len] ? name + len + 1 : NULL;
	return true;
}

const struct gpu_driver *gpu_driver_named(const char *name, const char **ret_argument)
{
	for_each_driver(d)
	{
		if (gpu_driver_is(*d, name, ret_argument))
			return *d;
	}
	return NULL;
}

bool gpu_driver_has_level(const struct gpu_driver *d, const char *level)
{
	size_t n;

	for (const char *at = d->levels; *at; at += n + strspn(at + n, " ")) {
		n = strcspn(at, " ");
		if (n == strlen(level) && !strncasecmp(at, level, n))
			return true;
	}
	return false;
}

static bool is_looked_for(const struct gpu_driver *d, const char *level)
{
	return d->module && (!level || gpu_driver_has_level(d, level));
}

static void _printf_(3, 4) append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

int gpu_driver_check_level(const struct gpu_driver *one, const char *level, struct gpu_why *ret_why)
{
	char levels[160] = "";

	for_each_driver(d)
	{
		if (one ? *d != one : !(*d)->module)
			continue;
		if (gpu_driver_has_level(*d, level))
			return 0;
		append(levels, sizeof(levels), "%s%s driver has %s", levels[0] ? ", " : "",
		       (*d)->whose, (*d)->levels);
	}
	gpu_why_set(ret_why, GPU_WHY_USAGE, NULL, "no level '%s' for a daemon; %s", level, levels);
	return -EINVAL;
}

static int fail_absent(const char *level, struct gpu_why *ret_why)
{
	char whose[160] = "", modules[64] = "";
	size_t n = 0;

	for_each_driver(d)
	{
		if (!is_looked_for(*d, level))
			continue;
		n++;
		append(whose, sizeof(whose), "%s%s (no /dev/%s)", whose[0] ? " nor " : "neither ",
		       (*d)->whose, (*d)->node);
		append(modules, sizeof(modules), "%s%s", modules[0] ? " or " : "", (*d)->module);
	}
	if (n == 1)
		return -ENODEV; /* it said so itself */
	gpu_why_set(ret_why, GPU_WHY_ABSENT, NULL, "no GPU driver on this machine: %s", whose);
	snprintf(ret_why->hint, sizeof(ret_why->hint),
		 "load %s, or try without a GPU: --device model", modules);
	return -ENODEV;
}

int gpu_driver_open_any(const char *level, const struct gpu_driver **ret, void **ret_data,
			struct gpu_why *ret_why)
{
	for_each_driver(d)
	{
		int r = is_looked_for(*d, level) ? (*d)->open(NULL, ret_data, ret_why) : -ENODEV;

		if (r == -ENODEV)
			continue;
		*ret = *d;
		return r;
	}
	return fail_absent(level, ret_why);
}

void gpu_driver_list(char *buf, size_t size)
{
	buf[0] = 0;
	for_each_driver(d)
		append(buf, size, "%s%s%s", buf[0] ? ", " : "", (*d)->name, (*d)->argument);
}
