/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "lib/internal.h"

#define LARGEST 4096 /* no struct of ours will ever be larger: memory nobody has set */

static size_t size_of(const void *entry)
{
	size_t size;

	memcpy(&size, entry, sizeof(size));
	return size;
}

static bool size_makes_sense(size_t size, size_t first)
{
	return size >= first && size <= LARGEST;
}

static int fail_size(struct gpreempt_error *e)
{
	return error_note(e, -EINVAL, GPREEMPT_ERROR_USAGE,
			  "set .size to sizeof of the struct; of an array, of the first entry",
			  "a struct says a size it cannot have");
}

/* ---- results ---- */

int out_array_init(struct gpreempt_error *e, struct out_array *a, void *ret, size_t max,
		   size_t first)
{
	*a = (struct out_array){ .base = ret, .max = max };
	if (max == 0)
		return 0;
	a->stride = size_of(ret);
	return !size_makes_sense(a->stride, first) || a->stride % sizeof(size_t) ? fail_size(e) : 0;
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

int out_list(struct gpreempt_ctx *ctx, out_fill_fn fill, void *ret, size_t max, size_t first)
{
	struct out_array out;
	int r = out_array_init(&ctx->last, &out, ret, max, first);

	if (r >= 0)
		r = fill(ctx, &out);
	return r < 0 ? r : (int)out.n;
}

int out_check(struct gpreempt_error *e, const void *ret, size_t first)
{
	return ret && !size_makes_sense(size_of(ret), first) ? fail_size(e) : 0;
}

int out_struct(void *ret, const void *entry)
{
	if (ret)
		copy_sized(ret, size_of(ret), entry);
	return 0;
}

/* ---- options ---- */

static bool is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static int take(struct gpreempt_error *e, void *defaults, const char *given, size_t size)
{
	size_t known = size_of(defaults);

	if (size > known && !is_zero(given + known, size - known))
		return error_note(e, -EINVAL, GPREEMPT_ERROR_USAGE,
				  "the program is for a later libgpreempt: install that",
				  "a struct has fields set that this library does not know");
	memcpy(defaults, given, MIN(known, size));
	memcpy(defaults, &known, sizeof(known));
	return 0;
}

int in_struct(struct gpreempt_error *e, void *defaults, const void *given, size_t first)
{
	if (!given)
		return 0;
	if (!size_makes_sense(size_of(given), first))
		return fail_size(e);
	return take(e, defaults, given, size_of(given));
}

int in_entry(struct gpreempt_error *e, void *defaults, const void *array, size_t i, size_t first)
{
	size_t stride = size_of(array);

	if (!size_makes_sense(stride, first) || stride % sizeof(size_t))
		return fail_size(e);
	return take(e, defaults, (const char *)array + i * stride, stride);
}
