/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

#define MOST_DESCRIPTORS 64u

static pid_t parent_of(struct nvrm *n, pid_t pid)
{
	struct nvrm_ident ident;

	return nvrm_identify(n, pid, &ident) < 0 ? 0 : ident.parent;
}

/*
 * Who only borrows descriptors, as we do, has no GPU open; the caller may, and may have borrowed
 * those of its own children.
 */
static int list_ancestors(struct nvrm *n, pid_t pid, struct nvrm_ancestors *a, unsigned int *left)
{
	if (!a->at)
		a->at = parent_of(n, pid);
	for (; a->at > 1 && a->passed < NVRM_ANCESTORS; a->passed++) {
		uint32_t fd;
		int r = a->at == getpid() ? 0 :
					    nvrm_find_gpu_fd(n->transport->files, n->data, a->at,
							     &a->position, left, &fd);

		if (r == -EINPROGRESS)
			return r;
		if (r > 0)
			a->pids[a->n++] = a->at;
		a->position = 0;
		a->at = parent_of(n, a->at);
	}
	a->listed = true;
	return 0;
}

static bool has_client(struct nvrm *n, pid_t pid, uint32_t client, unsigned int *left)
{
	_cleanup_close_ int pidfd = n->transport->pidfd(n->data, pid);
	bool found = false;

	for (unsigned int nth = 0; pidfd >= 0 && !found && nth < MOST_DESCRIPTORS; nth++) {
		int fd = n->transport->borrow(n->data, pidfd, pid, nth, NULL);

		*left -= *left > 0;
		if (fd == -EAGAIN)
			continue;
		if (fd < 0)
			break;
		found = nvrm_whose(n, fd, client) == NVRM_THIS;
		n->transport->close_fd(n->data, fd);
	}
	return found;
}

int nvrm_client_is_inherited(struct nvrm *n, pid_t pid, uint32_t client, struct nvrm_ancestors *a,
			     unsigned int *left)
{
	bool found = false;

	if (!a->listed && list_ancestors(n, pid, a, left) == -EINPROGRESS)
		return -EINPROGRESS;
	for (; a->asked < a->n && !found; a->asked++) {
		if (*left == 0)
			return -EINPROGRESS;
		found = has_client(n, a->pids[a->asked], client, left);
	}
	a->asked = 0;
	return found;
}
