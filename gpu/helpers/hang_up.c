/* SPDX-License-Identifier: MIT */
/*
 * A packet may carry files. Whoever drops the packet drops them, and closes those that nobody else
 * has any more. Closing a TCP socket that lingers waits for its peer (inet_release of Linux 6.12),
 * closing a file of FUSE may wait for its server. Before Linux 6.9 closing any AF_UNIX socket is
 * enough: it collects the garbage of all of them, with files of strangers (unix_release_sock).
 *
 * From Linux 6.16 on nobody can send us a file, and a connection is just closed. Before, this
 * process closes none: connections that ended are dropped by a child (gpu/helpers/drop.h).
 */
#include "gpu/helpers/hang_up.h"

#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, asm-generic/socket.h */
#endif

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

/* Whoever connected; of a socket that nobody may be asked about, nobody. */
static uid_t user_of(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer.uid;
}

void hang_up(struct drops *ended, int fd)
{
	read_rest(fd);
	if (!may_have_files(fd)) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR); /* the other side need not wait for the rest */
	drop_later(ended, fd, user_of(fd));
}
