/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "lib/internal.h"

static size_t size_of(const void *entry)
{
	size_t size;

	memcpy(&size, entry, sizeof(size));
	return size;
}

int out_array_begin(struct out_array *a, void *ret, size_t max)
{
	*a = (struct out_array){ .base = ret, .max = max };
	if (max == 0)
		return 0;
	a->stride = size_of(ret);
	return a->stride < sizeof(size_t) || a->stride % sizeof(size_t) ? -EINVAL : 0;
}

int out_array_init(struct gpreempt_ctx *ctx, struct out_array *a, void *ret, size_t max)
{
	if (out_array_begin(a, ret, max) < 0)
		return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE,
				"set .size of the first entry to sizeof of the struct",
				"the array has entries of %zu bytes", a->stride);
	return 0;
}

static void copy_sized(void *ret, size_t room, const void *entry)
{
	size_t n = MIN(room, size_of(entry));

	memset(ret, 0, room);
	memcpy(ret, entry, n);
	memcpy(ret, &room, sizeof(room));
}

void out_array_add(struct out_array *a, const void *entry)
{
	if (a->n < a->max)
		copy_sized(a->base + a->n * a->stride, a->stride, entry);
	a->n++;
}

void out_struct(void *ret, const void *entry)
{
	size_t room = size_of(ret);

	if (room >= sizeof(room))
		copy_sized(ret, room, entry);
}

void in_struct(void *defaults, const void *given)
{
	size_t full = size_of(defaults);

	if (!given)
		return;
	memcpy(defaults, given, MIN(full, size_of(given)));
	memcpy(defaults, &full, sizeof(full));
}
