/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/drop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "util/bare.h"
#include "util/macros.h"

#define DROPPED_AT_ONCE 16
#define SIG_DROP SIGUSR1 /* to a child: nobody but it has them any more */

static void reap(struct drops *d)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < d->n_children; i++)
		if (waitpid(d->children[i], NULL, WNOHANG | __WALL) == 0)
			d->children[left++] = d->children[i];
	d->n_children = left;
}

BARE static bool is_to_drop(const struct drops *d, int fd)
{
	for (uint32_t i = 0; i < d->n_fds; i++)
		if (d->fds[i] == fd)
			return true;
	return false;
}

/*
 * The child, with all signals blocked. It may wait for ever as it ends, with whatever it has open:
 * so that is nothing but what it is to drop.
 */
BARE _Noreturn static void drop_and_die(const struct drops *d, pid_t parent)
{
	uint64_t signals = 1ull << (SIG_DROP - 1);
	int last = -1;

	for (uint32_t i = 0; i < d->n_fds; i++)
		last = MAX(last, d->fds[i]);
	for (int fd = 0; fd < last; fd++)
		if (!is_to_drop(d, fd))
			bare_call(SYS_close, fd);
	bare_close_from(last + 1);
	bare_call(SYS_prctl, PR_SET_PDEATHSIG, SIG_DROP);
	while (bare_call(SYS_getppid) == parent &&
	       bare_call(SYS_rt_sigtimedwait, &signals, NULL, NULL, sizeof(signals)) != SIG_DROP)
		;
	for (;;)
		bare_call(SYS_exit_group, 0);
}

/* As guard_start() makes its process: without SIGCHLD and fork handlers. */
static pid_t make_child(const struct drops *d)
{
	pid_t parent = getpid(), pid;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		drop_and_die(d, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

bool drop_now(struct drops *d)
{
	pid_t child;

	reap(d);
	if (!d->n_fds)
		return true;
	if (d->n_children == DROP_CHILDREN)
		return false;
	child = make_child(d);
	if (child < 0)
		return false;
	/* It has a copy of each, so none of these is the last. */
	while (d->n_fds)
		close(d->fds[--d->n_fds]);
	kill(child, SIG_DROP);
	d->children[d->n_children++] = child;
	return true;
}

void drop_later(struct drops *d, int fd)
{
	int *fds = reallocarray(d->fds, d->n_fds + 1, sizeof(*fds));

	if (!fds)
		return; /* it stays open */
	d->fds = fds;
	fds[d->n_fds++] = fd;
	if (d->n_fds >= DROPPED_AT_ONCE)
		drop_now(d);
}
