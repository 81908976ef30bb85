/* SPDX-License-Identifier: MIT */
/*
 * A stream into memory. Not open_memstream(): that clears and copies what it grows by, and cuts the
 * text to size at the end. glibc keeps small cuttings at hand for the thread, seven of each size,
 * and joins none of them to what is free beside it. So where a long text of varying length is
 * written again and again, a cutting keeps each from the place of the one before, and the heap
 * grows by a text at a time until it has hundreds of such gaps.
 */
#ifndef GPREEMPT_UTIL_STREAM_H
#define GPREEMPT_UTIL_STREAM_H

#include <stdio.h>

struct stream {
	FILE *out;
	char *text;
	size_t len, room;
};

int stream_open(struct stream *ret); /* -ENOMEM */
/*
 * Ends it. *ret_text is the caller's to free, and ended by a NUL that *ret_len does not count.
 * -ENOMEM: not everything found room, and nothing is left.
 */
int stream_close(struct stream *s, char **ret_text, size_t *ret_len);

#endif
