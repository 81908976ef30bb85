/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_UTIL_ARRAY_H
#define GPREEMPT_UTIL_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Makes room for at least @n elements of @size bytes in the array that @array points to, which has
 * room for *room; doubles it, so that one at a time costs little. -ENOMEM: all is as it was.
 */
static inline int array_reserve(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *grown;

	if (n <= *room)
		return 0;
	more = more < n ? n : more;
	grown = reallocarray(*(void **)array, more, size);
	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	*room = more;
	return 0;
}

/* For qsort(3) and bsearch(3). */
static inline int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static inline int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#endif
