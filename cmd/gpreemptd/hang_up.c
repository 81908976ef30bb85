/* SPDX-License-Identifier: MIT */
/*
 * Ending a connection without waiting for anything its other side has prepared.
 *
 * A packet may carry files. Whoever drops the packet drops them, and if nobody else has them any
 * more closes them; to close a TCP socket that lingers waits for its peer, as long as its owner
 * likes (inet_release of Linux 6.12). It is not waited for by a thread that is ending.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "cmd/gpreemptd/control_internal.h"

bool packet_has_files(int fd)
{
	struct msghdr msg = { 0 };

	/* No room for them: the kernel says that there were some, and takes nothing. */
	return recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT) >= 0 && (msg.msg_flags & MSG_CTRUNC);
}

struct heir {
	sem_t ready, done;
};

static void *inherit(void *user)
{
	struct heir *heir = user;

	unshare(CLONE_FILES);
	sem_post(&heir->ready);
	while (sem_wait(&heir->done) < 0)
		;
	return NULL;
}

/* A thread gets a copy of what is open, and closes it as it ends. */
static void close_elsewhere(int fd)
{
	struct heir heir = { 0 };
	pthread_t thread;

	sem_init(&heir.ready, 0, 0);
	sem_init(&heir.done, 0, 0);
	if (pthread_create(&thread, NULL, inherit, &heir) != 0) {
		close(fd); /* maybe waiting, rather than out of descriptors soon */
		return;
	}
	while (sem_wait(&heir.ready) < 0)
		;
	close(fd);
	sem_post(&heir.done);
	pthread_join(thread, NULL);
}

/*
 * What it sent and we did not read would make the kernel tell it of a reset before it reads our
 * last answer (unix_release_sock of Linux 6.12).
 */
void hang_up(int fd)
{
	char dropped;

	shutdown(fd, SHUT_RD);
	do {
		if (packet_has_files(fd)) {
			close_elsewhere(fd);
			return;
		}
	} while (recv(fd, &dropped, sizeof(dropped), MSG_DONTWAIT) > 0);
	close(fd);
}
