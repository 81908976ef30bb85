/* SPDX-License-Identifier: MIT */
/*
 * Helper programs: small processes that do what a hostile process could turn against whoever does
 * it. A helper is started with a socket, and may be lost at any time without harm to its owner.
 *
 * A helper that hangs cannot be waited for, and not even killed before the kernel lets it: it is
 * abandoned, and buried when it has ended. Its end raises no SIGCHLD and is invisible to wait(2)
 * without __WALL.
 */
#ifndef GPREEMPT_GPU_HELPERS_HELPER_H
#define GPREEMPT_GPU_HELPERS_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu/helpers/drop.h"

/* What a helper finds at these descriptors; beyond them nothing is open but standard error. */
#define HELPER_SOCKET 3
#define HELPER_FILE 4 /* and those that follow */
#define HELPER_FILES 2

struct helper {
	pid_t pid; /* 0: none */
	int pidfd; /* readable when it has ended */
	int socket; /* SOCK_SEQPACKET, does not wait */
};
#define HELPER_NONE ((struct helper){ .pidfd = -1, .socket = -1 })

/*
 * Opens the program @name: in the folder $GPREEMPT_HELPERS, beside the program that runs, or where
 * it is installed. What is opened stays the same while packages are exchanged. -ENOENT; -EPERM: it
 * is there, but others than root and us could have put it there.
 */
int helper_open(const char *name);

/*
 * Starts it, in a session of its own. @argv: its name and arguments, ended by NULL. @files: what it
 * finds from HELPER_FILE on, -1: nothing there; NULL: nothing at all. @ends_with_us: the kernel
 * kills it when the calling thread ends.
 */
int helper_start(int program, const char *const *argv, const int files[HELPER_FILES],
		 bool ends_with_us, struct helper *ret);

/* Is it blocked, and not just waiting for a processor? Also true once it has ended. */
bool helper_is_blocked(const struct helper *h);

/*
 * Ends the conversation. What nobody has read may be the last copy of somebody's file, whose close
 * waits; and before Linux 6.9 closing any AF_UNIX socket collects the garbage of all, and closes
 * files of strangers (unix_release_sock). Then it is dropped with @sockets, as one of @user's, of
 * whose processes they spoke.
 */
void helper_hang_up(struct helper *h, struct drops *sockets, uid_t user);
bool helper_may_close(const char *release); /* the kernel's, as uname(2) has it */

/*
 * Kills it and hangs up. Call helper_bury() now and then until it returns true; who ends before
 * leaves it to the next owner of helpers in this process, who calls helper_bury_left().
 */
void helper_abandon(struct helper *h, struct drops *sockets, uid_t user);
bool helper_bury(struct helper *h); /* does not wait; true: it is gone, or there is none */
void helper_leave(struct helper *h);
void helper_bury_left(void);

#endif
