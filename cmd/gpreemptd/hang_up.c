/* SPDX-License-Identifier: MIT */
/*
 * Ending a connection without waiting for anything its other side has prepared.
 *
 * A packet may carry files. Whoever drops the packet drops them, and closes those that nobody else
 * has any more. Closing a TCP socket that lingers waits for its peer (inet_release of Linux 6.12),
 * closing a file of FUSE may wait for its server. Before Linux 6.9 closing any AF_UNIX socket is
 * enough: it collects the garbage of all of them, with files of strangers (unix_release_sock).
 *
 * From Linux 6.16 on nobody can send us a file, and a connection is just closed. Before, this
 * process closes none: connections that ended are collected, and dropped by a child that has
 * nothing to do but to die.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cmd/gpreemptd/control_internal.h"
#include "util/bare.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, asm-generic/socket.h */
#endif

#define DROPPED_AT_ONCE 16
#define SIG_DROP SIGUSR1 /* to a child: nobody but it has them any more */
#define UNREAD_MAX 256 /* packets that are read for the sake of our last answer */

bool packet_has_files(int fd)
{
	struct msghdr msg = { 0 };

	/* No room for them: the kernel says that there were some, and takes nothing. */
	return recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT) >= 0 && (msg.msg_flags & MSG_CTRUNC);
}

void refuse_files(int fd)
{
	const int no = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

/* A connection has it from the listening socket, and so from its beginning. */
static bool may_have_files(int fd)
{
	socklen_t len = sizeof(int);
	int may = 1;

	return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &may, &len) < 0 || may;
}

static void reap(struct ended *ended)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < ended->n_children; i++)
		if (waitpid(ended->children[i], NULL, WNOHANG | __WALL) == 0)
			ended->children[left++] = ended->children[i];
	ended->n_children = left;
}

BARE static bool is_to_drop(const struct ended *ended, int fd)
{
	for (uint32_t i = 0; i < ended->n_fds; i++)
		if (ended->fds[i] == fd)
			return true;
	return false;
}

/*
 * The child, with all signals blocked. It may wait for ever as it ends, with whatever it has open:
 * so that is nothing but what it is to drop.
 */
BARE _Noreturn static void drop_all(const struct ended *ended, pid_t parent)
{
	uint64_t signals = 1ull << (SIG_DROP - 1);
	int last = -1;

	for (uint32_t i = 0; i < ended->n_fds; i++)
		last = MAX(last, ended->fds[i]);
	for (int fd = 0; fd < last; fd++)
		if (!is_to_drop(ended, fd))
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
static pid_t make_child(const struct ended *ended)
{
	pid_t parent = getpid(), pid;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		drop_all(ended, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

bool drop_ended(struct ended *ended)
{
	pid_t child;

	reap(ended);
	if (!ended->n_fds)
		return true;
	if (ended->n_children == ENDED_CHILDREN)
		return false;
	child = make_child(ended);
	if (child < 0)
		return false;
	/* It has a copy of each, so none of these is the last. */
	while (ended->n_fds)
		close(ended->fds[--ended->n_fds]);
	kill(child, SIG_DROP);
	ended->children[ended->n_children++] = child;
	return true;
}

void drop_later(struct ended *ended, int fd)
{
	int *fds = reallocarray(ended->fds, ended->n_fds + 1, sizeof(*fds));

	if (!fds)
		return; /* it stays open */
	ended->fds = fds;
	fds[ended->n_fds++] = fd;
	if (ended->n_fds >= DROPPED_AT_ONCE)
		drop_ended(ended);
}

/*
 * What it sent and we did not read would make the kernel tell it of a reset before it reads our
 * last answer (unix_release_sock of Linux 6.12).
 */
static void read_rest(int fd)
{
	char dropped;

	shutdown(fd, SHUT_RD);
	for (int i = 0; i < UNREAD_MAX && !packet_has_files(fd); i++)
		if (recv(fd, &dropped, sizeof(dropped), MSG_DONTWAIT) <= 0)
			return;
}

void hang_up(struct control *c, int fd)
{
	read_rest(fd);
	if (!may_have_files(fd)) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR); /* the other side need not wait for the rest */
	drop_later(&c->ended, fd);
}
