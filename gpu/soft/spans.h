/* SPDX-License-Identifier: MIT */
/* The memory that an ioctl of the driver, or of its extension, is about. */
#ifndef GPREEMPT_GPU_SOFT_SPANS_H
#define GPREEMPT_GPU_SOFT_SPANS_H

#include <stddef.h>

#include "gpu/soft/wire.h"

/*
 * First the argument, then what it points to; how many. -ENOTTY: no call that is known here;
 * -E2BIG.
 */
int soft_spans(unsigned long request, const void *arg, struct device_span ret[DEVICE_IOCTL_SPANS]);

#endif
