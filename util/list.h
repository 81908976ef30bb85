/* SPDX-License-Identifier: MIT */
/* Lists of the library, whose length nobody knows before they are read. */
#ifndef GPREEMPT_UTIL_LIST_H
#define GPREEMPT_UTIL_LIST_H

#include <errno.h>

#include "util/macros.h"

/* Fills @list, of @room entries, and returns how many there are, also where they do not fit. */
typedef int (*list_get_fn)(void *of, void *list, size_t room);

/*
 * Reads until all fit: more may come between counting and reading. Entries have @size bytes and say
 * so first, as all of the library's do; there is at least one to look at. *ret is the caller's to
 * free. How many; -ENOMEM, or what @get returned.
 */
static inline int list_read(list_get_fn get, void *of, size_t size, void *ret)
{
	for (int n = 64, room;; ) {
		_cleanup_free_ void *list = calloc((size_t)n, size);

		room = n;
		if (!list)
			return -ENOMEM;
		*(size_t *)list = size;
		n = get(of, list, (size_t)room);
		if (n > room)
			continue;
		if (n >= 0)
			*(void **)ret = steal_ptr(&list);
		return n;
	}
}

#endif
