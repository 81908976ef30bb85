/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/guard_message.h"
#include "gpu/guard_undo.h"

#define AGAIN_NS 10000000l /* the holder's threads let go of the target one after the other */

BARE static void drop(struct guard_lent *lent)
{
	if (lent->fd >= 0)
		syscall(SYS_close, lent->fd);
	if (lent->pidfd >= 0)
		syscall(SYS_close, lent->pidfd);
	lent->fd = lent->pidfd = -1;
}

BARE void guard_hear(int life_fd, struct guard_lent *lent)
{
	struct guard_message message = { .slot = -1 };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	union guard_control control = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const int *fds = (const int *)(const void *)CMSG_DATA(&control.header);

	if (syscall(SYS_recvmsg, life_fd, &header, 0) != sizeof(message))
		return;
	if (message.slot < 0 || message.slot >= GUARD_SLOTS)
		return;
	drop(&lent[message.slot]);
	if (header.msg_controllen >= CMSG_LEN(GUARD_MESSAGE_FDS * sizeof(int)))
		lent[message.slot] = (struct guard_lent){ .fd = fds[0], .pidfd = fds[1] };
	if (header.msg_flags & MSG_CTRUNC)
		message.slot = -EMFILE; /* the call fails; what did arrive is never used */
	syscall(SYS_sendto, life_fd, &message, sizeof(message), MSG_NOSIGNAL, NULL, 0);
}

BARE static bool is_there(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	struct timespec now = { 0 };

	return syscall(SYS_ppoll, &end, 1, &now, NULL, 0) == 0;
}

BARE static void wait_a_little(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	struct timespec again = { .tv_nsec = AGAIN_NS };

	syscall(SYS_ppoll, &end, 1, &again, NULL, 0);
}

/*
 * A pid names the process only as long as that has not ended: seen there after the seizure, it
 * is the one that was seized.
 */
BARE static void undo(struct guard_undo *undo, pid_t target, const struct guard_lent *lent)
{
	while (is_there(lent->pidfd)) {
		if (syscall(SYS_ptrace, PTRACE_SEIZE, target, 0, 0) < 0) {
			wait_a_little(lent->pidfd);
			continue;
		}
		if (is_there(lent->pidfd))
			syscall(SYS_ioctl, lent->fd, undo->request, undo->arg);
		break;
	}
	for (;;)
		syscall(SYS_exit_group, 0);
}

BARE void guard_undo_all(struct guard_page *page, const struct guard_lent *lent)
{
	long child;

	for (int i = 0; i < GUARD_SLOTS; i++) {
		if (!__atomic_load_n(&page->undo[i].due, __ATOMIC_ACQUIRE) || lent[i].fd < 0)
			continue;
		while ((child = syscall(SYS_clone, 0, 0, 0, 0, 0)) < 0)
			wait_a_little(lent[i].pidfd); /* too many processes just now */
		if (child == 0)
			undo(&page->undo[i], page->slots[i].target, &lent[i]);
	}
}
