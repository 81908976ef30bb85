/* SPDX-License-Identifier: MIT */
/* Which objects a client has: the driver has no list of them either. */
#include <errno.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

#define MOST_HANDLES 65536u /* of a client */
#define MISSES_AT_END 1024u /* handles in a row that are nothing: there are no more */
#define MISSES_FURTHER 64u
#define SWEPT 16u /* of the known ones, each time */

/* One that is nothing is left out. A status or -errno; NVRM_OBJECT_NOT_FOUND: it is nothing. */
static int ask(struct nvrm *n, int fd, uint32_t client, uint32_t handle, struct nvrm_objects *o)
{
	struct nvrm_object object = { .handle = handle };
	int r = nvrm_get_object(n, fd, client, handle, &object.class, &object.parent);

	return r == NVRM_OK ? nvrm_objects_add(o, &object) : r;
}

int nvrm_list_objects(struct nvrm *n, int fd, struct nvrm_listing *l, unsigned int *left)
{
	while (l->n_asked < MOST_HANDLES && l->missed < MISSES_AT_END) {
		int r;

		if (*left == 0)
			return -EINPROGRESS;
		(*left)--;
		r = ask(n, fd, l->client, NVRM_FIRST_OBJECT + l->n_asked++, &l->objects);
		if (r != NVRM_OK && r != NVRM_OBJECT_NOT_FOUND)
			return r;
		l->missed = r == NVRM_OK ? 0 : l->missed + 1;
	}
	return NVRM_OK;
}

void nvrm_listing_done(struct nvrm_listing *l)
{
	nvrm_objects_done(&l->objects);
	*l = (struct nvrm_listing){ 0 };
}

/*
 * Asks for a few of the handles between known ones again: numbers may be used a second time. To
 * ask for all of them takes milliseconds, for which everybody else would wait.
 */
static int sweep(struct nvrm *n, struct nvrm_client *c)
{
	struct nvrm_objects *o = &c->objects;

	for (uint32_t i = 0; i < SWEPT && o->n > 0; i++) {
		struct nvrm_object nothing = { 0 };
		int r;

		if (c->swept < NVRM_FIRST_OBJECT || c->swept > o->all[o->n - 1].handle)
			c->swept = NVRM_FIRST_OBJECT;
		nothing.handle = c->swept++;
		r = ask(n, c->fd, c->handle, nothing.handle, o);
		if (r == NVRM_OBJECT_NOT_FOUND && !nvrm_objects_find(o, nothing.handle))
			continue;
		if (r == NVRM_OBJECT_NOT_FOUND)
			r = nvrm_objects_add(o, &nothing); /* of no class */
		if (r != NVRM_OK)
			return r;
	}
	return NVRM_OK;
}

/* What was found is known when it is called again: it goes on behind that. */
int nvrm_list_further(struct nvrm *n, struct nvrm_client *c, unsigned int *left)
{
	const struct nvrm_objects *o = &c->objects;
	uint32_t handle = o->n ? o->all[o->n - 1].handle + 1 : NVRM_FIRST_OBJECT, missed = 0;
	int r = sweep(n, c);

	while (r == NVRM_OK && handle < NVRM_FIRST_OBJECT + MOST_HANDLES &&
	       missed < MISSES_FURTHER) {
		if (*left == 0)
			return -EINPROGRESS;
		(*left)--;
		r = ask(n, c->fd, c->handle, handle++, &c->objects);
		missed = r == NVRM_OK ? 0 : missed + 1;
		if (r == NVRM_OBJECT_NOT_FOUND)
			r = NVRM_OK;
	}
	return r;
}
