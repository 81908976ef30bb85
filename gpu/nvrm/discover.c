/* SPDX-License-Identifier: MIT */
/*
 * Which clients with channels were made through a process's control descriptors. The driver has no
 * list of them: numbers are asked for one by one, where it is known to take them.
 */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

#define MOST_DESCRIPTORS 1024u
#define MOST_ASKS 65536u /* for the client of a descriptor */
/* After this one the driver begins anew; 580 resserv.h has 2^20 of them. */
#define LAST_CLIENT 0xc1dfffffu

static int fail_looking(struct nvrm_failure *f, int r, const char *step)
{
	return nvrm_fail(f, r, r == -ENOSPC ? NVRM_WHY_TOO_MANY : NVRM_WHY_SYSTEM, step);
}

/* 1, 0 or -errno */
static int has_groups(const struct nvrm_objects *o)
{
	struct nvrm_found_group *groups;
	int n = nvrm_objects_groups(o, &groups);

	if (n < 0)
		return n;
	nvrm_found_free(groups, (size_t)n);
	return n > 0;
}

static void begin_listing(struct nvrm_search *s, uint32_t client)
{
	if (s->listing.client == client)
		return;
	nvrm_listing_done(&s->listing);
	s->listing.client = client;
}

/* ---- a client that may be the process's ---- */

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
 * Whether the client has channels: then its objects are those of the listing. One that ends while
 * it is looked at has none.
 */
static int try_client(struct nvrm_process *p, struct nvrm_search *s, unsigned int *left)
{
	int r;

	begin_listing(s, s->number);
	s->lowest = MIN(s->lowest, s->number);
	r = nvrm_list_objects(p->n, s->fd, &s->listing, left);
	if (r != NVRM_OK)
		return r < 0 ? r : 0;
	s->objects += s->listing.objects.n;
	return has_groups(&s->listing.objects);
}

static void note_client(struct nvrm_search *s)
{
	struct nvrm_quest *q = &s->learnt;

	if (q->n_clients < NVRM_QUEST_CLIENTS)
		q->clients[q->n_clients++] = s->number;
	else
		s->missed = true;
}

/* What was made through a descriptor of an ancestor's is all that one's. */
static int try_number(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
		      unsigned int *left)
{
	int r = s->own ? 0 :
			 nvrm_client_is_inherited(p->n, q, p->pid, s->number, &s->ancestors, left);

	if (r < 0)
		return r;
	s->own = r == 0;
	if (s->own)
		return try_client(p, s, left);
	s->inherited = true;
	s->asks = MOST_ASKS;
	return 0;
}

/* ---- the numbers that are asked for ---- */

static void add_range(struct nvrm_search *s, uint32_t from, uint32_t to)
{
	s->ranges[s->n_ranges++] = (struct nvrm_range){ from, to };
}

/*
 * The newest first: a job is seldom older than everything else. A process that was looked at
 * before has no client that is older than its oldest one, and one in which none had channels has
 * them in those or in newer ones: clients get their numbers in order.
 */
static void plan(const struct nvrm_process *p, struct nvrm_search *s)
{
	uint32_t to = p->floor ? p->floor : NVRM_FIRST_CLIENT;
	const struct nvrm_quest *known = p->quest;

	s->n_ranges = s->range = 0;
	s->asks = 0;
	s->trying = false;
	if (known && known->newest && s->newest > known->newest) {
		for (size_t i = 0; i < known->n_clients; i++)
			add_range(s, known->clients[i], known->clients[i]);
		to = known->newest + 1;
	}
	if (s->newest < to) { /* the numbers have begun anew since */
		add_range(s, s->newest, NVRM_FIRST_CLIENT);
		add_range(s, LAST_CLIENT, to);
	} else {
		add_range(s, s->newest, to);
	}
	s->number = s->ranges[0].from;
}

/* False: there is none left to ask for. */
static bool find_number(struct nvrm_search *s)
{
	while (s->number < s->ranges[s->range].to) {
		if (++s->range == s->n_ranges)
			return false;
		s->number = s->ranges[s->range].from;
	}
	return s->asks < MOST_ASKS;
}

/* What was asked about it is not for whoever asks next. */
static int give_number_up(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q)
{
	if (s->trying) {
		nvrm_forget(p->n, q);
		nvrm_ancestors_done(p->n, &s->ancestors);
		s->ancestors.asked = 0;
	}
	return 0;
}

/*
 * 1: the number is that of a client with channels; 0: there is none. Whose a number is is asked
 * once more after a pause: a control on a client that has gone would leave a line in the log.
 */
static int search_client(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
			 unsigned int *left)
{
	while (s->trying || find_number(s)) {
		int r;

		if (*left == 0)
			return -EINPROGRESS;
		(*left)--;
		r = nvrm_whose(p->n, s->fd, s->number);
		if (!s->trying) {
			s->asks++;
			s->own = false;
			s->trying = r == NVRM_THIS;
			if (s->trying)
				note_client(s);
			nvrm_listing_done(&s->listing);
		}
		if (r == NVRM_THIS)
			r = try_number(p, s, q, left);
		else if (r >= 0)
			r = give_number_up(p, s, q);
		if (r != 0)
			return r;
		s->trying = false;
		s->number--;
	}
	return 0;
}

/* ---- descriptors ---- */

/* It may have been given another number since: it is known by the first it has now. */
static bool is_known(struct nvrm_process *p, const struct nvrm_search *s)
{
	for (size_t i = 0; i < p->n_clients; i++) {
		struct nvrm_client *c = &p->clients[i];

		if (nvrm_whose(p->n, s->fd, c->handle) != NVRM_THIS)
			continue;
		if (c->seen != p->looks)
			c->name = s->copies.all[s->copies.next - 1];
		c->seen = p->looks;
		return true;
	}
	return false;
}

static int fail_borrow(struct nvrm_failure *f, int r)
{
	if (r == -EPERM || r == -EACCES)
		return nvrm_fail(f, -EPERM, NVRM_WHY_NO_RIGHT, NULL);
	if (r == -ESRCH)
		return nvrm_fail(f, r, NVRM_WHY_EXITED, NULL);
	if (r == -ENODEV)
		return nvrm_fail(f, r, NVRM_WHY_NO_DRIVER, NULL);
	return nvrm_fail(f, r, NVRM_WHY_SYSTEM, "borrowing its descriptor");
}

static void give_back(struct nvrm_process *p, struct nvrm_search *s)
{
	if (s->fd >= 0)
		p->n->transport->drop_fd(p->n->data, steal_fd(&s->fd));
}

static int ask_newest(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_failure *f)
{
	int r = s->newest ? 0 : newest_client(p->n, &s->newest, f);

	if (r >= 0 && !s->twice)
		s->learnt.newest = s->newest;
	return r;
}

/* 1: there is another one whose client is to be searched for; 0: there is none. */
static int next_descriptor(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
			   unsigned int *left, struct nvrm_failure *f)
{
	while (s->descriptors < MOST_DESCRIPTORS) {
		int r;

		if (*left == 0)
			return -EINPROGRESS;
		r = nvrm_next_copy(p->n, q, p->pid, &s->copies, left, &s->fd);
		if (r == -EINPROGRESS)
			return r;
		s->missed |= s->copies.missed;
		if (r < 0)
			return fail_borrow(f, r);
		if (r == 0)
			return 0;
		if (nvrm_process_ended(p)) /* the pid may be another's */
			return fail_borrow(f, -ESRCH);
		*left -= MIN(*left, 1 + (unsigned int)p->n_clients);
		s->descriptors++;
		r = ask_newest(p, s, f);
		if (r < 0)
			return r;
		if (!is_known(p, s)) {
			plan(p, s);
			return 1;
		}
		give_back(p, s);
	}
	return 0;
}

/* The descriptor stays borrowed with the client, which the process has from now on. */
static int keep_client(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_failure *f)
{
	struct nvrm_client *c = &p->clients[p->n_clients];

	if (p->n_clients == NVRM_CLIENTS)
		return fail_looking(f, -ENOSPC, "looking for its clients");
	p->n_clients++;
	*c = (struct nvrm_client){
		.fd = steal_fd(&s->fd),
		.name = s->copies.all[s->copies.next - 1],
		.handle = s->number,
		.objects = s->listing.objects,
		.guard_slot = -1,
		.seen = p->looks,
		.looked = p->looks,
	};
	s->listing = (struct nvrm_listing){ 0 };
	return 0;
}

static int look_at_descriptors(struct nvrm_process *p, struct nvrm_search *s,
			       struct nvrm_question *q, unsigned int *left, struct nvrm_failure *f)
{
	for (;;) {
		int r = s->fd >= 0 ? 1 : next_descriptor(p, s, q, left, f);

		if (r <= 0)
			return r;
		r = search_client(p, s, q, left);
		if (r == -EINPROGRESS)
			return r;
		if (r < 0)
			return fail_looking(f, r, "looking for its clients");
		r = r > 0 ? keep_client(p, s, f) : 0;
		if (r < 0)
			return r;
		give_back(p, s);
	}
}

/* 1, 0 or -EINPROGRESS; -errno */
static int has_gpu_open(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
			unsigned int *left, struct nvrm_failure *f)
{
	int r;

	if (s->gpu_open != -EINPROGRESS)
		return s->gpu_open;
	r = nvrm_ask_gpu(p->n, q, p->pid, &s->position, left, NULL);
	if (r < 0 && r != -EINPROGRESS)
		return fail_looking(f, r, "looking at its descriptors");
	s->gpu_open = r;
	return r;
}

/* Descriptors, but nothing was made through them that could be found. */
static bool found_nothing(const struct nvrm_process *p, const struct nvrm_search *s)
{
	return p->n_clients == 0 && s->descriptors && !s->objects && !s->inherited;
}

/* Also where the numbers began anew after the process had got its own. */
static int look_round(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
		      unsigned int *left, struct nvrm_failure *f)
{
	int r = look_at_descriptors(p, s, q, left, f);

	if (r < 0 || s->twice || !found_nothing(p, s) || p->floor)
		return r;
	if ((p->quest && p->quest->newest) || s->newest - NVRM_FIRST_CLIENT >= MOST_ASKS)
		return 0;
	r = has_gpu_open(p, s, q, left, f);
	if (r <= 0)
		return r;
	s->newest = LAST_CLIENT;
	nvrm_copies_done(p->n, &s->copies);
	s->descriptors = 0;
	s->twice = true;
	return look_at_descriptors(p, s, q, left, f);
}

/* ---- clients that are known ---- */

/* 1, 0 or -errno. A control on a client that is not there would leave a line in the log. */
static int still_has_groups(struct nvrm *n, struct nvrm_client *c, struct nvrm_search *s,
			    unsigned int *left)
{
	int r = nvrm_client_is_there(n, c);

	if (r <= 0 || !s->anew)
		return r <= 0 ? r : has_groups(&c->objects);
	begin_listing(s, c->handle);
	r = nvrm_list_objects(n, c->fd, &s->listing, left);
	if (r == -EINPROGRESS)
		return r;
	if (r == NVRM_OK) {
		nvrm_objects_done(&c->objects);
		c->objects = s->listing.objects;
		s->listing = (struct nvrm_listing){ 0 };
	}
	nvrm_listing_done(&s->listing);
	return r == NVRM_OK ? has_groups(&c->objects) : nvrm_status_errno(r);
}

/* Those that lost their channels go: their descriptor may have a newer client. */
static int look_at_known(struct nvrm_process *p, struct nvrm_search *s, unsigned int *left,
			 struct nvrm_failure *f)
{
	for (size_t i = p->n_clients; i-- > 0;) {
		int r;

		if (p->clients[i].looked == p->looks)
			continue;
		r = still_has_groups(p->n, &p->clients[i], s, left);
		if (r == -EINPROGRESS)
			return r;
		if (r < 0)
			return fail_looking(f, r, "listing its objects");
		p->clients[i].looked = p->looks;
		if (r == 0)
			nvrm_client_drop(p, i);
	}
	return 0;
}

/*
 * What the process has closed lives through our copy alone. A descriptor may also have been passed
 * over because others were closed meanwhile: it is found again, and must not be left held.
 */
static void give_back_unseen(struct nvrm_process *p)
{
	bool all = true;

	for (size_t i = 0; i < p->n_clients; i++)
		all &= p->clients[i].seen == p->looks;
	if (!all)
		nvrm_undo_all(p);
	for (size_t i = p->n_clients; i-- > 0;) {
		if (p->clients[i].seen != p->looks)
			nvrm_client_drop(p, i);
	}
}

/* ---- all of it ---- */

void nvrm_search_init(struct nvrm_process *p, struct nvrm_search *s, bool anew)
{
	*s = (struct nvrm_search){
		.anew = anew, .fd = -1, .lowest = UINT32_MAX, .gpu_open = -EINPROGRESS
	};
	p->looks++;
}

void nvrm_search_done(struct nvrm_process *p, struct nvrm_search *s)
{
	give_back(p, s);
	nvrm_copies_done(p->n, &s->copies);
	nvrm_ancestors_done(p->n, &s->ancestors);
	nvrm_listing_done(&s->listing);
}

static void learn(struct nvrm_process *p, struct nvrm_search *s)
{
	if (s->missed || p->n_clients > 0) /* a search ends with the first that has channels */
		s->learnt.newest = 0;
	if (p->quest)
		*p->quest = s->learnt;
	p->found_ns = nvrm_now_ns(p->n);
	if (s->lowest != UINT32_MAX && (!p->floor || s->lowest < p->floor))
		p->floor = s->lowest;
}

int nvrm_discover(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
		  unsigned int *left, struct nvrm_failure *ret_failure)
{
	int r = look_at_known(p, s, left, ret_failure);

	if (r >= 0)
		r = look_round(p, s, q, left, ret_failure);
	if (r >= 0 && found_nothing(p, s))
		r = has_gpu_open(p, s, q, left, ret_failure);
	if (r < 0)
		return r;
	learn(p, s);
	give_back_unseen(p);
	if (p->n_clients > 0)
		return 0;
	if (r > 0)
		return nvrm_fail(ret_failure, -EOPNOTSUPP, NVRM_WHY_NOT_FOUND, NULL);
	return nvrm_fail(ret_failure, -ENOENT, NVRM_WHY_NO_CONTEXT, NULL);
}

static bool is_closed(const struct nvrm_client *c, const struct nvrm_words *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->copies[i].number == c->name.number)
			return strncmp(w->copies[i].link, c->name.link, BORROW_LINK) != 0;
	return false; /* it came after the question */
}

/*
 * What it has closed lives, with all its memory, through our copy. Another file of the driver's may
 * have its number by now: that is left to the next search.
 */
int nvrm_has_closed(struct nvrm_process *p, struct nvrm_question *q)
{
	int r;

	if (p->n_clients == 0 && q->state == NVRM_UNASKED)
		return 0;
	if (q->state == NVRM_UNASKED) {
		nvrm_question_about(p->n, q, p->pid,
				    &(struct nvrm_words){ .what = NVRM_ASK_LINKS });
		for (size_t i = 0; i < p->n_clients; i++)
			q->words.copies[q->words.n++] = p->clients[i].name;
	}
	r = nvrm_ask(p->n, q);
	for (size_t i = 0; r == 0 && i < p->n_clients; i++)
		r = is_closed(&p->clients[i], &q->words);
	return r;
}

int nvrm_look_further(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *ret_failure)
{
	for (size_t i = 0; i < p->n_clients; i++) {
		if (nvrm_whose(p->n, p->clients[i].fd, p->clients[i].handle) != NVRM_THIS)
			return -ESTALE;
	}
	for (size_t i = 0; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];

		if (!nvrm_group_is_there(p->n, g))
			return -ESTALE;
	}
	for (size_t i = 0; i < p->n_clients; i++) {
		int r = nvrm_list_further(p->n, &p->clients[i], left);

		if (r == -EINPROGRESS)
			return r;
		if (r < 0)
			return nvrm_fail(ret_failure, r, NVRM_WHY_SYSTEM, "listing its objects");
		if (r != NVRM_OK)
			return -ESTALE;
	}
	return 0;
}
