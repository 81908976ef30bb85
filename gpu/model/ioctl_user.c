/* SPDX-License-Identifier: MIT */
/*
 * A caller's pointer may be wrong. Of another process's memory only what it lent is there; for our
 * own the kernel copies, and says so instead of crashing.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "gpu/model/driver.h"

#define TASK_SIZE_MAX ((1ull << 47) - PAGE_BYTES) /* x86-64, four page table levels */

void model_lend(struct model *m, const struct model_lent *lent, size_t n)
{
	m->lent = lent;
	m->n_lent = n;
}

static void *find_lent(const struct model *m, uint64_t addr, size_t n)
{
	for (size_t i = 0; i < m->n_lent; i++) {
		const struct model_lent *l = &m->lent[i];

		if (addr >= l->addr && n <= l->len && addr - l->addr <= l->len - n)
			return (char *)l->bytes + (addr - l->addr);
	}
	return NULL;
}

/* Between our @mine and the caller's @addr. */
static int copy(const struct model *m, void *mine, uint64_t addr, size_t n, bool to_user)
{
	struct iovec local = { .iov_base = mine, .iov_len = n };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = n };
	void *lent = m->lent ? find_lent(m, addr, n) : NULL;
	ssize_t done = -1;

	if (!n)
		return 0;
	if (lent) {
		memcpy(to_user ? lent : mine, to_user ? mine : lent, n);
		return 0;
	}
	if (!m->lent)
		done = (to_user ? process_vm_writev : process_vm_readv)(getpid(), &local, 1,
									&remote, 1, 0);
	return done == (ssize_t)n ? 0 : -EFAULT;
}

int model_copy_from_user(const struct model *m, void *to, uint64_t from, size_t n)
{
	return copy(m, to, from, n, false);
}

int model_copy_to_user(const struct model *m, uint64_t to, const void *from, size_t n)
{
	return copy(m, (void *)from, to, n, true);
}

bool model_access_ok(uint64_t addr)
{
	return addr <= TASK_SIZE_MAX;
}
