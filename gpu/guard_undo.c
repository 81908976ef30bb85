/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <time.h>

#include "gpu/guard_watch.h"
#include "util/bare.h"

#define AGAIN_NS 10000000l /* the holder's threads let go of the target one after the other */

BARE static void drop(struct guard_lent *lent)
{
	if (lent->fd >= 0)
		bare_call(SYS_close, lent->fd);
	if (lent->pidfd >= 0)
		bare_call(SYS_close, lent->pidfd);
	lent->fd = lent->pidfd = -1;
}

BARE void guard_hear(int life_fd, struct guard_lent *lent)
{
	struct guard_message message = { .slot = GUARD_SLOTS };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(GUARD_MESSAGE_FDS * sizeof(int))];
	} control = { 0 };
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const int *fds = (const int *)(const void *)CMSG_DATA(&control.header);

	if (bare_call(SYS_recvmsg, life_fd, &header, 0) != sizeof(message))
		return;
	if (message.slot != GUARD_ARMED && (message.slot < 0 || message.slot >= GUARD_SLOTS))
		return;
	if (message.slot == GUARD_ARMED) {
		/* it is enough that we have been awake */
	} else if (header.msg_flags & MSG_CTRUNC) {
		message.slot = -EMFILE; /* the call fails; what there was before is kept */
		if (header.msg_controllen >= CMSG_LEN(sizeof(int)))
			bare_call(SYS_close, fds[0]);
	} else {
		drop(&lent[message.slot]);
		if (header.msg_controllen >= CMSG_LEN(GUARD_MESSAGE_FDS * sizeof(int)))
			lent[message.slot] = (struct guard_lent){ .fd = fds[0], .pidfd = fds[1] };
	}
	bare_call(SYS_sendto, life_fd, &message, sizeof(message), MSG_NOSIGNAL, NULL, 0);
}

BARE static bool ends_within(int pidfd, long ns)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	struct timespec wait = { .tv_nsec = ns };

	return bare_call(SYS_ppoll, &end, 1, &wait, NULL, 0) != 0;
}

BARE static bool is_due(const struct guard_call *c)
{
	return __atomic_load_n(&c->due, __ATOMIC_ACQUIRE);
}

BARE static bool any_due(const struct guard_undo *undo)
{
	for (uint32_t i = 0; i < undo->n_calls && i < GUARD_CALLS; i++)
		if (is_due(&undo->calls[i]))
			return true;
	return false;
}

union arg {
	uint64_t words[GUARD_UNDO_ARG_MAX / sizeof(uint64_t)];
	uint8_t bytes[GUARD_UNDO_ARG_MAX];
};

BARE static void make_arg(const struct guard_undo *undo, const struct guard_call *c, union arg *ret)
{
	uint64_t address = (uintptr_t)(undo->data + c->data_at);

	for (uint32_t i = 0; i < GUARD_UNDO_ARG_MAX; i++)
		ret->bytes[i] = c->arg[i];
	if (c->pointer_at == GUARD_NO_POINTER)
		return;
	for (uint32_t i = 0; i < sizeof(address); i++)
		ret->bytes[c->pointer_at + i] = ((const uint8_t *)&address)[i];
}

BARE static bool asks_again(long r)
{
	return r == -EINTR || r == -EAGAIN;
}

BARE static void make_calls(const struct guard_undo *undo, const struct guard_lent *lent)
{
	union arg arg;

	for (uint32_t i = 0; i < undo->n_calls && i < GUARD_CALLS; i++) {
		const struct guard_call *c = &undo->calls[i];

		while (is_due(c) && !ends_within(lent->pidfd, 0)) {
			make_arg(undo, c, &arg);
			if (!asks_again(bare_call(SYS_ioctl, lent->fd, c->request, &arg)))
				break;
			ends_within(lent->pidfd, AGAIN_NS);
		}
	}
}

/*
 * A pid names the process only as long as that has not ended: seen there after the seizure, it
 * is the one that was seized.
 */
BARE static bool seize(pid_t target, const struct guard_lent *lent)
{
	while (!ends_within(lent->pidfd, 0)) {
		if (bare_call(SYS_ptrace, PTRACE_SEIZE, target, 0, 0) >= 0)
			return !ends_within(lent->pidfd, 0);
		ends_within(lent->pidfd, AGAIN_NS);
	}
	return false;
}

/* A copy of a descriptor keeps what it is of: a target that ends waits for none but its own. */
BARE static void drop_others(struct guard_lent *lent, int slot)
{
	for (int i = 0; i < GUARD_SLOTS; i++)
		if (i != slot)
			drop(&lent[i]);
}

BARE void guard_undo_all(struct guard_page *page, struct guard_lent *lent)
{
	for (int i = 0; i < GUARD_SLOTS; i++) {
		const struct guard_undo *undo = &page->undo[i][page->slots[i].undo & 1];
		long child;

		if (lent[i].fd < 0 || !any_due(undo))
			continue;
		while ((child = bare_call(SYS_clone, 0, 0, 0, 0, 0)) < 0)
			ends_within(lent[i].pidfd, AGAIN_NS); /* too many processes just now */
		if (child > 0)
			continue;
		drop_others(lent, i);
		if (!undo->traced || seize(page->slots[i].target, &lent[i]))
			make_calls(undo, &lent[i]);
		for (;;)
			bare_call(SYS_exit_group, 0);
	}
}
