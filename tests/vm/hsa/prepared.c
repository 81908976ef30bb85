/* SPDX-License-Identifier: MIT */
/*
 * Linked with a program for an old HSA runtime this does what runtimes since ROCm 5.5 do and older
 * ones do not: it tells the driver, before hsa_init(), that the process may be debugged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "abi/kfd.h"

static void runtime(uint32_t mode)
{
	struct kfd_ioctl_runtime_enable_args a = { .mode_mask = mode };
	static int kfd = -1;

	if (kfd < 0)
		kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	while (ioctl(kfd, AMDKFD_IOC_RUNTIME_ENABLE, &a)) {
		if (errno == EINTR)
			continue;
		perror("RUNTIME_ENABLE");
		_Exit(1);
	}
}

static void disable(void)
{
	runtime(0);
}

static void __attribute__((constructor)) enable(void)
{
	runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK);
	atexit(disable);
}
