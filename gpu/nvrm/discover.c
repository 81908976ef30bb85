/* SPDX-License-Identifier: MIT */
/*
 * Which clients with channels were made through a process's control descriptors, and what their
 * objects are. The driver has no list of either: numbers are asked for one by one, where libcuda
 * and the driver are known to take them.
 */
#include <errno.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define MOST_DESCRIPTORS 1024u
#define MOST_ASKS 65536u /* for the client of a descriptor */
#define MOST_HANDLES 65536u /* of a client */
#define MISSES_AT_END 1024u /* handles in a row that are nothing: there are no more */
#define MISSES_FURTHER 64u
#define SWEPT 16u /* of the known ones, each time */
/* After this one the driver begins anew; 580 resserv.h has 2^20 of them. */
#define LAST_CLIENT 0xc1dfffffu

/* ---- objects ---- */

/* Asks from @from on, until @misses in a row are nothing. A status or -errno. */
static int scan(struct nvrm *n, int fd, uint32_t client, uint32_t from, uint32_t misses,
		struct nvrm_objects *o, uint32_t *ret_end)
{
	uint32_t missed = 0, handle = from;

	for (; handle < NVRM_FIRST_OBJECT + MOST_HANDLES && missed < misses; handle++) {
		struct nvrm_object object = { .handle = handle };
		int r = nvrm_get_object(n, fd, client, handle, &object.class, &object.parent);

		if (r == NVRM_OBJECT_NOT_FOUND) {
			missed++;
			continue;
		}
		if (r == NVRM_OK)
			r = nvrm_objects_add(o, &object);
		if (r != 0)
			return r;
		missed = 0;
	}
	*ret_end = handle;
	return NVRM_OK;
}

static int scan_all(struct nvrm *n, struct nvrm_client *c)
{
	struct nvrm_objects fresh = { 0 };
	uint32_t end;
	int r = scan(n, c->fd, c->handle, NVRM_FIRST_OBJECT, MISSES_AT_END, &fresh, &end);

	if (r != NVRM_OK) {
		nvrm_objects_done(&fresh);
		return r;
	}
	nvrm_objects_done(&c->objects);
	c->objects = fresh;
	c->scanned = end;
	return NVRM_OK;
}

/*
 * Asks for a few of the handles between known ones again: numbers may be used a second time. To
 * ask for all of them takes milliseconds, for which everybody else would wait.
 */
static int sweep(struct nvrm *n, struct nvrm_client *c)
{
	const struct nvrm_objects *o = &c->objects;

	for (uint32_t i = 0; i < SWEPT && o->n > 0; i++) {
		struct nvrm_object object = { 0 };
		int r;

		if (c->swept < NVRM_FIRST_OBJECT || c->swept > o->all[o->n - 1].handle)
			c->swept = NVRM_FIRST_OBJECT;
		object.handle = c->swept++;
		r = nvrm_get_object(n, c->fd, c->handle, object.handle, &object.class,
				    &object.parent);
		if (r == NVRM_OBJECT_NOT_FOUND && !nvrm_objects_find(o, object.handle))
			continue;
		if (r == NVRM_OK || r == NVRM_OBJECT_NOT_FOUND) /* the latter is of no class */
			r = nvrm_objects_add(&c->objects, &object);
		if (r != 0)
			return r;
	}
	return NVRM_OK;
}

/* 1, 0 or -ENOMEM */
static int has_groups(const struct nvrm_objects *o)
{
	struct nvrm_found_group *groups;
	int n = nvrm_objects_groups(o, &groups);

	if (n < 0)
		return n;
	nvrm_found_free(groups, (size_t)n);
	return n > 0;
}

/* ---- clients ---- */

struct search {
	struct nvrm_process *p;
	uint32_t newest;
	uint32_t lowest; /* number of a client of the process */
	bool seen[NVRM_CLIENTS]; /* through a descriptor the process still has */
	size_t descriptors, objects; /* seen, also of clients without channels */
	bool inherited; /* one of its descriptors is an ancestor's */
	bool missed; /* descriptors, or clients that could not be noted: nothing was learnt */
	struct nvrm_quest learnt;
};

static int newest_client(struct nvrm *n, uint32_t *ret, struct nvrm_failure *f)
{
	int fd = n->transport->open(n->data), r;

	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV)
		return nvrm_fail(f, -ENODEV, NVRM_WHY_NO_DRIVER, NULL);
	if (fd < 0)
		return nvrm_fail(f, fd, NVRM_WHY_SYSTEM, "opening /dev/nvidiactl");
	r = nvrm_new_client(n, fd, ret);
	n->transport->close_fd(n->data, fd);
	return r == NVRM_OK ? 0 : nvrm_fail_status(f, r, "making a client", 0);
}

/*
 * Whether client @number, made through @fd, has channels: then it is in *c. One that ends while
 * it is looked at has none.
 */
static int try_client(struct search *s, int fd, uint32_t number, struct nvrm_client *c)
{
	int r;

	*c = (struct nvrm_client){ .fd = fd, .handle = number, .guard_slot = -1 };
	s->lowest = MIN(s->lowest, number);
	r = scan_all(s->p->n, c);
	if (r != NVRM_OK)
		return r < 0 ? r : 0;
	s->objects += c->objects.n;
	r = has_groups(&c->objects);
	if (r <= 0)
		nvrm_objects_done(&c->objects);
	return r;
}

static void note_client(struct search *s, uint32_t number)
{
	struct nvrm_quest *q = &s->learnt;

	if (q->n_clients < NVRM_QUEST_CLIENTS)
		q->clients[q->n_clients++] = number;
	else
		s->missed = true;
}

/* What was made through a descriptor of an ancestor's is all that one's. */
static int try_number(struct search *s, int fd, uint32_t number, uint32_t *asks,
		      struct nvrm_client *ret)
{
	note_client(s, number);
	if (!nvrm_client_is_inherited(s->p->n, s->p->pid, number))
		return try_client(s, fd, number, ret);
	s->inherited = true;
	*asks = MOST_ASKS;
	return 0;
}

/* Asks from @from downwards to @to. 1: found. */
static int search_down(struct search *s, int fd, uint32_t from, uint32_t to, uint32_t *asks,
		       struct nvrm_client *ret)
{
	for (uint32_t number = from; number >= to && *asks < MOST_ASKS; number--) {
		int r = nvrm_whose(s->p->n, fd, number);

		(*asks)++;
		if (r == NVRM_THIS)
			r = try_number(s, fd, number, asks, ret);
		else if (r >= 0)
			r = 0;
		if (r != 0)
			return r;
	}
	return 0;
}

/* Clients get their numbers in order. */
static int search_newer(struct search *s, int fd, struct nvrm_client *ret)
{
	const struct nvrm_quest *known = s->p->quest;
	uint32_t asks = 0;
	int r = 0;

	for (size_t i = 0; i < known->n_clients && r == 0; i++)
		r = search_down(s, fd, known->clients[i], known->clients[i], &asks, ret);
	return r ? r : search_down(s, fd, s->newest, known->newest + 1, &asks, ret);
}

/*
 * The newest first: a job is seldom older than everything else. A process that was looked at
 * before has no client that is older than its oldest one.
 */
static int search_client(struct search *s, int fd, struct nvrm_client *ret)
{
	uint32_t to = s->p->floor ? s->p->floor : NVRM_FIRST_CLIENT, asks = 0;
	const struct nvrm_quest *known = s->p->quest;
	int r;

	if (known && known->newest && s->newest > known->newest)
		return search_newer(s, fd, ret);
	if (s->newest >= to)
		return search_down(s, fd, s->newest, to, &asks, ret);
	/* The numbers have begun anew since. */
	r = search_down(s, fd, s->newest, NVRM_FIRST_CLIENT, &asks, ret);
	return r ? r : search_down(s, fd, LAST_CLIENT, to, &asks, ret);
}

static bool is_known(struct search *s, int fd)
{
	const struct nvrm_process *p = s->p;

	for (size_t i = 0; i < p->n_clients; i++) {
		if (nvrm_whose(p->n, fd, p->clients[i].handle) != NVRM_THIS)
			continue;
		s->seen[i] = true;
		return true;
	}
	return false;
}

/* Keeps @fd, or closes it. */
static int look_at_descriptor(struct search *s, int fd, struct nvrm_failure *f)
{
	struct nvrm_process *p = s->p;
	struct nvrm_client found;
	int r = is_known(s, fd) ? 0 : search_client(s, fd, &found);

	if (r > 0 && p->n_clients < NVRM_CLIENTS) {
		s->seen[p->n_clients] = true;
		p->clients[p->n_clients++] = found;
		return 0;
	}
	p->n->transport->close_fd(p->n->data, fd);
	if (r < 0)
		return nvrm_fail(f, r, NVRM_WHY_SYSTEM, "looking for its clients");
	if (r > 0) {
		nvrm_objects_done(&found.objects);
		return nvrm_fail(f, -ENOSPC, NVRM_WHY_TOO_MANY, "looking for its clients");
	}
	return 0;
}

static int fail_borrow(struct nvrm_failure *f, int r)
{
	if (r == -EPERM || r == -EACCES)
		return nvrm_fail(f, -EPERM, NVRM_WHY_NO_RIGHT, NULL);
	if (r == -ESRCH)
		return nvrm_fail(f, r, NVRM_WHY_EXITED, NULL);
	return nvrm_fail(f, r, NVRM_WHY_SYSTEM, "borrowing its descriptor");
}

static int look_at_descriptors(struct search *s, struct nvrm_failure *f)
{
	struct nvrm_process *p = s->p;

	for (unsigned int nth = 0; nth < MOST_DESCRIPTORS; nth++) {
		int fd = p->n->transport->borrow(p->n->data, p->pidfd, p->pid, nth), r;

		if (fd == -ENOENT)
			return 0;
		if (fd == -EAGAIN) { /* it opens and closes them as we look */
			s->missed = true;
			continue;
		}
		if (fd < 0)
			return fail_borrow(f, fd);
		s->descriptors++;
		r = look_at_descriptor(s, fd, f);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Also where the numbers began anew after the process had got its own. */
static int look_round(struct search *s, struct nvrm_failure *f)
{
	uint32_t newest = s->newest;
	int r = look_at_descriptors(s, f);

	if (r < 0 || s->p->n_clients > 0 || !s->descriptors || s->objects || s->p->floor)
		return r;
	if (s->inherited || (s->p->quest && s->p->quest->newest))
		return 0;
	if (newest - NVRM_FIRST_CLIENT >= MOST_ASKS)
		return 0;
	if (nvrm_has_gpu_open(s->p->n, s->p->pid) <= 0)
		return 0;
	s->newest = LAST_CLIENT;
	return look_at_descriptors(s, f);
}

/* 1, 0 or -errno. A control on a client that is not there would leave a line in the log. */
static int still_has_groups(struct nvrm *n, struct nvrm_client *c, bool anew)
{
	int r = nvrm_client_is_there(n, c);

	if (r <= 0)
		return r;
	r = anew ? scan_all(n, c) : 0;
	if (r != NVRM_OK)
		return nvrm_status_errno(r);
	return has_groups(&c->objects);
}

/* Those that lost their channels go: their descriptor may have a newer client. */
static int look_at_known(struct nvrm_process *p, bool anew, struct nvrm_failure *f)
{
	for (size_t i = p->n_clients; i-- > 0;) {
		int r = still_has_groups(p->n, &p->clients[i], anew);

		if (r < 0)
			return nvrm_fail(f, r, NVRM_WHY_SYSTEM, "listing its objects");
		if (r == 0)
			nvrm_client_drop(p, i);
	}
	return 0;
}

/*
 * What the process has closed lives through our copy alone. A descriptor may also have been passed
 * over because others were closed meanwhile: it is found again, and must not be left held.
 */
static void give_back_unseen(struct search *s)
{
	struct nvrm_process *p = s->p;
	uint32_t given_back[NVRM_CLIENTS];
	size_t n = 0;

	for (size_t i = 0; i < p->n_clients; i++) {
		if (!s->seen[i])
			given_back[n++] = p->clients[i].handle;
	}
	if (n > 0)
		nvrm_undo_all(p);
	for (size_t i = p->n_clients; i-- > 0;) {
		for (size_t k = 0; k < n; k++) {
			if (p->clients[i].handle != given_back[k])
				continue;
			nvrm_client_drop(p, i);
			break;
		}
	}
}

int nvrm_discover(struct nvrm_process *p, bool anew, struct nvrm_failure *ret_failure)
{
	struct search s = { .p = p, .lowest = UINT32_MAX };
	int r = look_at_known(p, anew, ret_failure);

	if (r >= 0)
		r = newest_client(p->n, &s.newest, ret_failure);
	s.learnt.newest = s.newest;
	if (r >= 0)
		r = look_round(&s, ret_failure);
	if (r < 0)
		return r;
	if (s.missed || p->n_clients > 0) /* a search ends with the first that has channels */
		s.learnt.newest = 0;
	if (p->quest)
		*p->quest = s.learnt;
	give_back_unseen(&s);
	p->found_ns = p->n->transport->now_ns(p->n->data);
	if (s.lowest != UINT32_MAX && (!p->floor || s.lowest < p->floor))
		p->floor = s.lowest;
	if (p->n_clients > 0)
		return 0;
	if (s.descriptors && !s.objects && !s.inherited && nvrm_has_gpu_open(p->n, p->pid) > 0)
		return nvrm_fail(ret_failure, -EOPNOTSUPP, NVRM_WHY_NOT_FOUND, NULL);
	return nvrm_fail(ret_failure, -ENOENT, NVRM_WHY_NO_CONTEXT, NULL);
}

int nvrm_look_further(struct nvrm_process *p, struct nvrm_failure *ret_failure)
{
	for (size_t i = 0; i < p->n_clients; i++) {
		if (nvrm_whose(p->n, p->clients[i].fd, p->clients[i].handle) != NVRM_THIS)
			return -ESTALE;
	}
	for (size_t i = 0; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];
		uint32_t class, parent;

		if (nvrm_get_object(p->n, g->fd, g->client, g->handle, &class, &parent) !=
			    NVRM_OK ||
		    class != NVRM_CLASS_CHANNEL_GROUP)
			return -ESTALE;
	}
	for (size_t i = 0; i < p->n_clients; i++) {
		struct nvrm_client *c = &p->clients[i];
		uint32_t from = c->objects.n ? c->objects.all[c->objects.n - 1].handle + 1 :
					       NVRM_FIRST_OBJECT;
		uint32_t end;
		int r = sweep(p->n, c);

		if (r == NVRM_OK)
			r = scan(p->n, c->fd, c->handle, from, MISSES_FURTHER, &c->objects, &end);
		if (r < 0)
			return nvrm_fail(ret_failure, r, NVRM_WHY_SYSTEM, "listing its objects");
		if (r != NVRM_OK)
			return -ESTALE;
		c->scanned = MAX(c->scanned, end);
	}
	return 0;
}
