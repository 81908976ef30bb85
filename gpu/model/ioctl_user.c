/* SPDX-License-Identifier: MIT */
/* A caller's pointer may be wrong: the kernel copies for us and says so instead of crashing. */
#include <errno.h>
#include <sys/uio.h>

#include "gpu/model/driver.h"

#define TASK_SIZE_MAX ((1ull << 47) - PAGE_BYTES) /* x86-64, four page table levels */

static int copy_result(ssize_t done, size_t n)
{
	return done == (ssize_t)n ? 0 : -EFAULT;
}

int model_copy_from_user(void *to, uint64_t from, size_t n)
{
	struct iovec local = { .iov_base = to, .iov_len = n };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = n };

	return n ? copy_result(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), n) : 0;
}

int model_copy_to_user(uint64_t to, const void *from, size_t n)
{
	struct iovec local = { .iov_base = (void *)(uintptr_t)from, .iov_len = n };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)to, .iov_len = n };

	return n ? copy_result(process_vm_writev(getpid(), &local, 1, &remote, 1, 0), n) : 0;
}

bool model_access_ok(uint64_t addr)
{
	return addr <= TASK_SIZE_MAX;
}
