/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define MOST_ANCESTORS 32
#define MOST_DESCRIPTORS 64u

static pid_t parent_of(struct nvrm *n, pid_t pid)
{
	struct nvrm_ident ident;

	return nvrm_identify(n, pid, &ident) < 0 ? 0 : ident.parent;
}

static bool has_client(struct nvrm *n, pid_t pid, uint32_t client)
{
	_cleanup_close_ int pidfd = n->transport->pidfd(n->data, pid);
	bool found = false;

	for (unsigned int nth = 0; pidfd >= 0 && !found && nth < MOST_DESCRIPTORS; nth++) {
		int fd = n->transport->borrow(n->data, pidfd, pid, nth);

		if (fd == -EAGAIN)
			continue;
		if (fd < 0)
			break;
		found = nvrm_whose(n, fd, client) == NVRM_THIS;
		n->transport->close_fd(n->data, fd);
	}
	return found;
}

/*
 * Who only borrows descriptors, as we do, has no GPU open; the caller may, and may have borrowed
 * those of its own children.
 */
bool nvrm_client_is_inherited(struct nvrm *n, pid_t pid, uint32_t client)
{
	pid_t ancestor = parent_of(n, pid);

	for (int i = 0; i < MOST_ANCESTORS && ancestor > 1; i++) {
		if (ancestor != getpid() && nvrm_has_gpu_open(n, ancestor) > 0 &&
		    has_client(n, ancestor, client))
			return true;
		ancestor = parent_of(n, ancestor);
	}
	return false;
}
