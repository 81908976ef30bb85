/* SPDX-License-Identifier: MIT */
/* A software GPU that runs already, by AMD's interface, as a driver of gpu/driver.h. */
#ifndef GPREEMPT_GPU_SOFT_DRIVER_H
#define GPREEMPT_GPU_SOFT_DRIVER_H

#include "gpu/driver.h"

extern const struct gpu_driver soft_driver;

#endif
