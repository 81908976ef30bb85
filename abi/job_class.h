/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a job is to whoever decides: the same numbers in policies, in the daemon, in packets, as
 * enum gpreempt_class of the library and as KFD_GPREEMPT_ONLINE, ... of the kernel extension.
 */
#ifndef GPREEMPT_ABI_JOB_CLASS_H
#define GPREEMPT_ABI_JOB_CLASS_H

enum job_class {
	JOB_UNMANAGED = 0, /* left alone */
	JOB_ONLINE = 1,
	JOB_OFFLINE = 2,
};

#endif
