/* SPDX-License-Identifier: MIT */
/*
 * New processes at once: a scout hears of the device being opened, and, as containers may have a
 * node of their own for it, sees whether others than before use it.
 */
#include <errno.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

/* Who has opened it is listed by then. */
static bool was_opened(int fd)
{
	char buf[4096];

	return fd >= 0 && read(fd, buf, sizeof(buf)) > 0;
}

static bool is_another(struct backend *b)
{
	uint64_t before = b->stamp;

	return b->k->transport->stamp && b->k->transport->stamp(b->k->data, &b->stamp) >= 0 &&
	       b->stamp != before;
}

static bool look(void *user, bool heard, uint64_t *ret_wait_ns)
{
	struct backend *b = user;
	bool opened = heard && was_opened(b->opens), another = is_another(b);

	*ret_wait_ns = b->k->transport->stamp ? SCOUT_CALM_NS : SCOUT_NEVER;
	return opened || another;
}

static int begin(struct backend *b)
{
	const struct gkfd_transport *t = b->k->transport;
	struct scout_options options = { .fd = -1, .answers_fd = -1, .look = look, .user = b };
	int r;

	b->opens = t->opens ? t->opens(b->k->data) : -ENOSYS;
	options.fd = MAX(b->opens, -1);
	r = t->stamp ? t->stamp(b->k->data, &b->stamp) : -ENOSYS;
	if (options.fd < 0 && r < 0)
		return b->opens;
	r = scout_start(&options, &b->scout);
	return r < 0 ? r : acting_poll(&b->base, PART_SCOUT, scout_fd(b->scout));
}

void follow_begin(struct backend *b)
{
	b->deaf = begin(b);
	if (b->deaf < 0)
		follow_end(b);
}

void follow_end(struct backend *b)
{
	scout_end(steal_ptr(&b->scout));
	closep(&b->opens);
	b->opens = -1;
}

int follow_came(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;

	if (!b->scout)
		return b->deaf;
	b->came |= scout_told(b->scout);
	return b->came;
}

void follow_listed(struct backend *b)
{
	b->came = false;
}
