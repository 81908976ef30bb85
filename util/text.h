/* SPDX-License-Identifier: MIT */
/* Text from outside (names of processes, arguments) may be anything; what we print may not. */
#ifndef GPREEMPT_UTIL_TEXT_H
#define GPREEMPT_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes the character of UTF-8 at @s has; 0: it is none. */
size_t text_utf8_bytes(const unsigned char *s);

/* One line of valid UTF-8 that moves no cursor: what is not is replaced, in place. */
void text_clean(char *text);

/* The first line of *text, clean and to be freed; *text is what follows it. NULL: there is none. */
char *text_next_line(const char **text);

/* ---- for people ---- */

/* "1.5 ms": three figures and a unit. */
#define UNIT_TEXT_SIZE 32
const char *text_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE]);
const char *text_bytes(uint64_t bytes, char buf[UNIT_TEXT_SIZE]);
/* "45 s", "3 min", "5 h 12 min", "12 days" */
const char *text_age(uint64_t seconds, char buf[UNIT_TEXT_SIZE]);
/* "23:59:59", here, of CLOCK_REALTIME */
const char *text_clock(uint64_t time_ns, char buf[UNIT_TEXT_SIZE]);

#endif
