/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver as one of those of gpu/driver.h. */
#ifndef GPREEMPT_GPU_NVRM_DRIVER_H
#define GPREEMPT_GPU_NVRM_DRIVER_H

#include "gpu/driver.h"

extern const struct gpu_driver nvrm_driver; /* its data is a struct nvrm */

#endif
