/* SPDX-License-Identifier: MIT */
/* Text from outside (names of processes, arguments) may be anything; what we print may not. */
#ifndef GPREEMPT_UTIL_TEXT_H
#define GPREEMPT_UTIL_TEXT_H

/* One line of valid UTF-8 that moves no cursor: what is not is replaced, in place. */
void text_clean(char *text);

#endif
