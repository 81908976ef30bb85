/* SPDX-License-Identifier: MIT */
/* AMD's driver as one of those of gpu/driver.h. */
#ifndef GPREEMPT_GPU_KFD_DRIVER_H
#define GPREEMPT_GPU_KFD_DRIVER_H

#include "gpu/driver.h"
#include "gpu/kfd/kfd.h"

extern const struct gpu_driver gkfd_driver;

/* What it and others by its interface have in common; their data is a struct gkfd. */
void gkfd_driver_close(void *data);
int gkfd_driver_act(void *data, const struct gpu_way *way, struct gpu_backend **ret,
		    struct gpu_why *ret_why);
int gkfd_driver_undo(void *data, const struct gpu_leftover *left);

#endif
