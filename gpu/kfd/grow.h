/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_GPU_KFD_GROW_H
#define GPREEMPT_GPU_KFD_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more element behind the @n there are; the array to use, NULL: ENOMEM. */
static inline void *gkfd_grow(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *grown;

	if (n < *room)
		return array;
	grown = reallocarray(array, more, size);
	if (grown)
		*room = more;
	return grown;
}

#endif
