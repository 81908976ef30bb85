/* SPDX-License-Identifier: MIT */
/* The way back from threads that work for a backend: what to take, and a descriptor that tells. */
#ifndef GPREEMPT_GPU_MAILBOX_H
#define GPREEMPT_GPU_MAILBOX_H

#include <pthread.h>
#include <stddef.h>
#include <sys/queue.h>

struct mail { /* a member of what is sent */
	STAILQ_ENTRY(mail) link;
};

struct mailbox {
	pthread_mutex_t lock;
	STAILQ_HEAD(, mail) mails;
	int fd; /* readable while there is something to take */
};

int mailbox_init(struct mailbox *m);
/* Also after a failed init. What was not taken stays the sender's. */
void mailbox_destroy(struct mailbox *m);
void mailbox_put(struct mailbox *m, struct mail *mail); /* from any thread */
struct mail *mailbox_take(struct mailbox *m); /* NULL: nothing */

#define mail_of(mail, type, member) ((type *)((char *)(mail) - offsetof(type, member)))

#endif
