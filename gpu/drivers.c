/* SPDX-License-Identifier: MIT */
/* A new vendor is a folder below this one, and a line here. */
#include "gpu/kfd/driver.h"
#include "gpu/nvrm/driver.h"
#include "gpu/soft/driver.h"

const struct gpu_driver *const gpu_drivers[] = {
	&gkfd_driver,
	&nvrm_driver,
	&soft_driver,
	NULL,
};
