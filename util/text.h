/* SPDX-License-Identifier: MIT */
/* Text from outside (names of processes, arguments) may be anything; what we print may not. */
#ifndef GPREEMPT_UTIL_TEXT_H
#define GPREEMPT_UTIL_TEXT_H

#include <stddef.h>

/* One line of valid UTF-8 that moves no cursor: what is not is replaced, in place. */
void text_clean(char *text);

/* The first line of *text, clean and to be freed; *text is what follows it. NULL: there is none. */
char *text_next_line(const char **text);

/* The first @len bytes as a string to be freed, or NULL; what follows them is not looked at. */
char *text_copy(const char *text, size_t len);

#endif
