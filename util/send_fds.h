/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_UTIL_SEND_FDS_H
#define GPREEMPT_UTIL_SEND_FDS_H

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define SEND_FDS_MAX 16u

/* Sends @len bytes, with copies of @n descriptors along with them. 0, or -errno. */
static inline int send_fds(int socket, const void *data, size_t len, const int *fds, size_t n,
			   int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)data, len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t r;

	assert(n <= SEND_FDS_MAX);
	if (n > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(*fds));
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(*fds));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
	}
	do {
		r = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

#endif
