/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_UTIL_SLICE_H
#define GPREEMPT_UTIL_SLICE_H

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * From Linux 6.12 on a thread with short slices of processor time gets the processor as soon as it
 * has something to do, from others with longer ones; its share stays the same. For threads that do
 * little and are waited for. Older kernels ignore it, and children inherit it.
 */
static inline void ask_for_slices(uint64_t ns)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .runtime = ns };
	int policy = sched_getscheduler(0);

	if (policy != SCHED_OTHER)
		return;
	attr.nice = getpriority(PRIO_PROCESS, 0);
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

#endif
