/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_UTIL_RESIDENT_H
#define GPREEMPT_UTIL_RESIDENT_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

/*
 * What this process has touched stays in memory: from a disk it would come too late when somebody
 * waits. A thread's stack does not stay as a whole. Where there is a limit of locked memory, later
 * allocations would fail by it, so it goes first.
 */
static inline int stay_in_memory(void)
{
	const struct rlimit none = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 ||
	    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		return -errno;
	return 0;
}

#endif
