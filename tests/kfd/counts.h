/* SPDX-License-Identifier: MIT */
/* What this process has now: to see that all of it is given back. */
#ifndef GPREEMPT_TESTS_KFD_COUNTS_H
#define GPREEMPT_TESTS_KFD_COUNTS_H

#include <stddef.h>

size_t count_threads(void);
size_t count_fds(void);

#endif
