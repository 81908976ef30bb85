/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/eventfd.h>

#include "gpu/mailbox.h"
#include "util/macros.h"

int mailbox_init(struct mailbox *m)
{
	STAILQ_INIT(&m->mails);
	pthread_mutex_init(&m->lock, NULL);
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return m->fd < 0 ? -errno : 0;
}

void mailbox_destroy(struct mailbox *m)
{
	closep(&m->fd);
	pthread_mutex_destroy(&m->lock);
}

void mailbox_put(struct mailbox *m, struct mail *mail)
{
	pthread_mutex_lock(&m->lock);
	STAILQ_INSERT_TAIL(&m->mails, mail, link);
	eventfd_write(m->fd, 1);
	pthread_mutex_unlock(&m->lock);
}

struct mail *mailbox_take(struct mailbox *m)
{
	struct mail *mail;
	eventfd_t count;

	pthread_mutex_lock(&m->lock);
	mail = STAILQ_FIRST(&m->mails);
	if (mail)
		STAILQ_REMOVE_HEAD(&m->mails, link);
	if (mail && STAILQ_EMPTY(&m->mails))
		eventfd_read(m->fd, &count);
	pthread_mutex_unlock(&m->lock);
	return mail;
}
