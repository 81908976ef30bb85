/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Error numbers for code that is built both in user space and in the kernel. */
#ifndef GPREEMPT_ABI_ERRNO_H
#define GPREEMPT_ABI_ERRNO_H

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#endif
