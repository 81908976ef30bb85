/* SPDX-License-Identifier: MIT */
/*
 * Places: mount namespaces, each with nodes of GPUs, its own or those that others have too. When a
 * node is opened, whoever did so is among the processes of its places that have no GPU open yet,
 * and is searched for: first among the likely ones, then among all.
 *
 * Tools that look at a GPU open its nodes as well, some every second. One that is seen to have done
 * so was it, and the others are not asked for its sake, or later. What is asked in vain is paid
 * for, so that nobody has thousands of processes asked by opening nodes again and again.
 */
#include <errno.h>
#include <stdlib.h>

#include "gpu/nvrm/finder_internal.h"
#include "gpu/nvrm/nodes.h"

/*
 * The kernel tells of an opening just before the process has the descriptor: it is given a moment,
 * and where nobody is found all is done once more.
 */
#define SETTLE_NS (2 * NSEC_PER_MSEC)
#define SEARCHES 2u
#define AGAIN_NS (30 * NSEC_PER_MSEC)
/* Nobody waits for one that does not answer. */
#define LIKELY_NS (15 * NSEC_PER_MSEC)
#define ALL_NS (60 * NSEC_PER_MSEC)
/* Between two of all that nobody waits for. */
#define OWED_NS NSEC_PER_SEC
/* An opening was by somebody who was met later. */
#define RECENT_NS (300 * NSEC_PER_MSEC)

/* Processes that may be asked in vain: at once, and in a second. One takes 4 us of a processor. */
#define CREDIT 40000u
#define CREDIT_PER_S 1000u
#define CREDIT_KEPT (CREDIT / 2) /* for who is not found among the likely ones */

/* Nodes are looked for again: soon in a young place, whose nodes may not be there yet. */
#define NODES_FIRST_NS (40 * NSEC_PER_MSEC)
#define NODES_LAST_NS (60 * NSEC_PER_SEC)
#define NODES_SOON_NS (100 * NSEC_PER_MSEC)
#define NODES_MOST 4096u /* that are watched; many places may have the same */

struct search { /* of the likely ones, or of all */
	bool under_way;
	uint64_t began, began_ns; /* the former as nvrm_finder.events counts */
};

struct place {
	LIST_ENTRY(place) link;
	uint64_t id;
	TAILQ_HEAD(, seen) members;
	size_t n_members;
	uint32_t nodes[NVRM_ASKED_PIDS]; /* as they are told of */
	uint32_t n_nodes;
	uint64_t met_ns, nodes_ns; /* when nodes are looked for next */
	uint64_t opened, opened_ns; /* when one was opened last; 0: never */
	uint64_t found; /* when somebody was who had opened one */
	struct nvrm_question question; /* about its nodes */
	bool asks;
	int blind; /* -errno: its nodes cannot be watched */

	unsigned int searches; /* of the likely ones, to be made */
	bool wanted; /* one of all, when there is credit for it, */
	bool owed; /* or to spare */
	struct search likely, all;
	uint64_t asked_ns; /* when the last of all was */
	size_t n_asked, paid;
};

/* ---- members ---- */

static bool is_among(const uint32_t *nodes, uint32_t n, uint32_t node)
{
	for (uint32_t i = 0; i < n; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

static bool has_node(const struct place *p, uint32_t node)
{
	return is_among(p->nodes, p->n_nodes, node);
}

static bool is_somewhere(const struct nvrm_finder *f, uint32_t node)
{
	const struct place *p;

	LIST_FOREACH(p, &f->places, link)
		if (has_node(p, node))
			return true;
	return false;
}

static void unwatch(struct nvrm_finder *f, const uint32_t *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_somewhere(f, nodes[i])) {
			f->n->transport->unwatch_node(f->n->data, nodes[i]);
			f->n_watched--;
		}
}

static void place_free(struct nvrm_finder *f, struct place *p)
{
	if (p->asks)
		nvrm_forget(f->n, &p->question);
	LIST_REMOVE(p, link);
	unwatch(f, p->nodes, p->n_nodes);
	free(p);
}

void finder_take_out(struct nvrm_finder *f, struct seen *x)
{
	struct place *p = steal_ptr(&x->place);

	if (!p)
		return;
	TAILQ_REMOVE(&p->members, x, of_place);
	p->n_asked -= x->question && x->question->words.what == NVRM_ASK_SINCE;
	if (--p->n_members > 0)
		return;
	if (p->asks)
		p->id = 0; /* nobody's; the answer has to be heard, for what is watched by then */
	else
		place_free(f, p);
}

static struct place *find_place(const struct nvrm_finder *f, uint64_t id)
{
	struct place *p;

	LIST_FOREACH(p, &f->places, link)
		if (p->id == id)
			break;
	return p;
}

/* The kernel gives the number of a place that is no more to another one. NULL: it is no more. */
static struct place *find_living(struct nvrm_finder *f, uint64_t id)
{
	struct place *p;

	while ((p = find_place(f, id)) && finder_is_gone(f, TAILQ_FIRST(&p->members)))
		finder_take_out(f, TAILQ_FIRST(&p->members)); /* with the last one it goes */
	return p;
}

static struct place *place_of(struct nvrm_finder *f, uint64_t id, uint64_t now_ns)
{
	struct place *p = find_living(f, id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = id;
	p->met_ns = now_ns;
	TAILQ_INIT(&p->members);
	LIST_INSERT_HEAD(&f->places, p, link);
	return p;
}

/* Whoever comes to a place where something was opened just now may have done so. */
void finder_put_into(struct nvrm_finder *f, struct seen *x, uint64_t id, uint64_t now_ns)
{
	struct place *p;

	if (x->place && x->place->id == id)
		return;
	x->suspect |= x->place != NULL;
	finder_take_out(f, x);
	p = place_of(f, id, now_ns);
	if (!p)
		return;
	x->place = p;
	TAILQ_INSERT_TAIL(&p->members, x, of_place);
	p->n_members++;
	x->suspect |= p->opened_ns && now_ns < p->opened_ns + RECENT_NS;
}

static bool lacks(const struct search *s, const struct seen *x)
{
	return s->under_way && x->searched < s->began;
}

enum suspicion finder_suspects(const struct seen *x)
{
	const struct place *p = x->place;

	if (x->suspect)
		return LIKELY_SUSPECT;
	if (!p)
		return NOT_SUSPECT;
	if (lacks(&p->likely, x) && (x->likely || !x->looked))
		return LIKELY_SUSPECT;
	return lacks(&p->all, x) ? SUSPECT : NOT_SUSPECT;
}

void finder_ask_suspect(struct nvrm_finder *f, struct seen *x)
{
	x->suspect = false;
	x->searched = f->events;
	if (x->place)
		x->place->n_asked++;
}

void finder_heard_suspect(struct nvrm_finder *f, struct seen *x, bool found)
{
	if (!x->place)
		return;
	x->place->n_asked--;
	if (found)
		x->place->found = ++f->events;
}

/* ---- nodes ---- */

static void begin_searches(struct nvrm_finder *f, struct place *p, uint64_t now_ns)
{
	p->searches = SEARCHES;
	p->opened = ++f->events;
	p->opened_ns = now_ns;
}

/* Young places are asked often, so that who makes nodes and opens one at once is seen. */
static void plan_nodes(struct place *p, uint64_t now_ns)
{
	uint64_t wait_ns = (now_ns - p->met_ns) / 8;

	wait_ns = MIN(MAX(wait_ns, NODES_FIRST_NS), NODES_LAST_NS);
	p->nodes_ns = now_ns + wait_ns;
}

/* Those of a question, each once: two names may be of one node. */
static void count_watched(struct nvrm_finder *f, const struct nvrm_words *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		f->n_watched += !is_somewhere(f, w->numbers[i]) &&
				!is_among(w->numbers, i, w->numbers[i]);
}

/* What was opened before it was watched is searched for, too. */
static void take_nodes(struct nvrm_finder *f, struct place *p, uint64_t now_ns)
{
	const struct nvrm_words *w = &p->question.words;
	uint32_t before[NVRM_ASKED_PIDS], n_before = p->n_nodes;
	bool others = false;

	memcpy(before, p->nodes, sizeof(before));
	for (uint32_t i = 0; i < w->n; i++)
		others |= !has_node(p, w->numbers[i]);
	count_watched(f, w);
	p->n_nodes = 0;
	for (uint32_t i = 0; i < w->n; i++)
		if (!has_node(p, w->numbers[i]))
			p->nodes[p->n_nodes++] = w->numbers[i];
	unwatch(f, before, n_before);
	if (others)
		begin_searches(f, p, now_ns);
}

/* Of another place than was asked about, or of one that is no more: nobody would unwatch them. */
static void leave_nodes(struct nvrm_finder *f, const struct nvrm_words *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (!is_somewhere(f, w->numbers[i]))
			f->n->transport->unwatch_node(f->n->data, w->numbers[i]);
}

static void go_on_asking(struct nvrm_finder *f, struct place *p, uint64_t now_ns)
{
	const struct nvrm_words *w = &p->question.words;
	int r = nvrm_ask(f->n, &p->question);

	if (r == -EINPROGRESS)
		return;
	p->asks = false;
	plan_nodes(p, now_ns);
	p->blind = r == -EACCES || r == -EPERM ? r : 0;
	if (r >= 0 && w->place == p->id) {
		p->blind = w->unwatched;
		take_nodes(f, p, now_ns);
	} else if (r >= 0) {
		leave_nodes(f, w);
	}
	if (p->n_members == 0)
		place_free(f, p);
}

/* Each time another member's: one may not let itself be read. */
static void ask_nodes(struct nvrm_finder *f, struct place *p, uint64_t now_ns)
{
	struct seen *x;

	p = find_living(f, p->id);
	if (!p)
		return;
	p->blind = !p->n_nodes && f->n_watched >= NODES_MOST ? -ENOSPC : 0;
	if (p->blind < 0) {
		plan_nodes(p, now_ns);
		return;
	}
	x = TAILQ_FIRST(&p->members);
	TAILQ_REMOVE(&p->members, x, of_place);
	TAILQ_INSERT_TAIL(&p->members, x, of_place);
	p->question = (struct nvrm_question){
		.asker = x->pid,
		.blamed = x->pid,
		.user = x->user->uid,
		.words = { .what = NVRM_ASK_NODES, .pid = x->pid },
	};
	p->asks = true;
	go_on_asking(f, p, now_ns);
}

static void lose_node(struct nvrm_finder *f, uint32_t node)
{
	struct place *p;

	f->n_watched -= is_somewhere(f, node);
	LIST_FOREACH(p, &f->places, link)
		for (uint32_t i = 0; i < p->n_nodes; i++)
			if (p->nodes[i] == node) {
				p->nodes[i] = p->nodes[--p->n_nodes];
				p->nodes_ns = 0;
			}
}

void finder_hear_nodes(struct nvrm_finder *f, uint64_t now_ns)
{
	uint32_t nodes[NVRM_ASKED_PIDS];
	struct place *p;
	int n;

	if (!f->follows)
		return;
	n = f->n->transport->opened(f->n->data, nodes, NVRM_ASKED_PIDS);
	for (int i = 0; i < n; i++) {
		if (nodes[i] != NODES_ANY && nodes[i] & NODES_GONE) {
			lose_node(f, nodes[i] & ~NODES_GONE);
			continue;
		}
		LIST_FOREACH(p, &f->places, link)
			if (has_node(p, nodes[i]) || (nodes[i] == NODES_ANY && p->n_nodes))
				begin_searches(f, p, now_ns);
	}
}

/* ---- searches ---- */

static bool pay(struct nvrm_finder *f, struct place *p, uint64_t keep)
{
	size_t cost = MIN(p->n_members, CREDIT_KEPT);

	if (f->credit < cost + keep)
		return false;
	f->credit -= cost;
	p->paid = cost;
	return true;
}

static uint64_t next_search(const struct place *p)
{
	return MAX(p->opened_ns + SETTLE_NS, p->likely.began_ns + AGAIN_NS);
}

static void begin(struct nvrm_finder *f, struct search *s, uint64_t now_ns)
{
	*s = (struct search){ .under_way = true, .began = ++f->events, .began_ns = now_ns };
}

/* Since one was opened last somebody was found who had done so; others may have, too. */
static bool is_explained(struct place *p)
{
	if (p->found < p->opened)
		return false;
	p->owed |= p->searches > 0 || p->wanted;
	p->searches = 0;
	p->wanted = false;
	return true;
}

static bool search_likely(struct nvrm_finder *f, struct place *p, uint64_t now_ns, bool nobody)
{
	struct search *s = &p->likely;

	if (s->under_way && ((nobody && f->n_urgent == 0) || now_ns >= s->began_ns + LIKELY_NS)) {
		s->under_way = false;
		p->wanted = true;
	}
	if (is_explained(p) || s->under_way || p->searches == 0 || now_ns < next_search(p))
		return false;
	p->searches--;
	begin(f, s, now_ns);
	return true;
}

static void end_all(struct nvrm_finder *f, struct place *p, uint64_t now_ns, bool nobody)
{
	struct search *s = &p->all;

	if (!nobody)
		p->asked_ns = now_ns;
	if ((!nobody || p->n_asked > 0 || f->busy) && now_ns < p->asked_ns + ALL_NS)
		return;
	s->under_way = false;
	if (p->found > s->began)
		f->credit += p->paid; /* it was not in vain */
}

static bool search_all(struct nvrm_finder *f, struct place *p, uint64_t now_ns, bool nobody)
{
	struct search *s = &p->all;
	bool now = p->wanted || (p->owed && now_ns >= s->began_ns + OWED_NS);

	if (s->under_way)
		end_all(f, p, now_ns, nobody);
	if (s->under_way || !now || !pay(f, p, p->wanted ? 0 : CREDIT_KEPT))
		return false;
	p->wanted = p->owed = false;
	p->asked_ns = now_ns;
	begin(f, s, now_ns);
	return true;
}

static void take_credit(struct nvrm_finder *f, uint64_t now_ns)
{
	uint64_t more = (now_ns - f->credit_ns) / (NSEC_PER_SEC / CREDIT_PER_S);

	if (!f->credit_ns)
		f->credit = CREDIT;
	f->credit = MIN(f->credit + more, CREDIT);
	f->credit_ns = f->credit_ns ? f->credit_ns + more * (NSEC_PER_SEC / CREDIT_PER_S) : now_ns;
}

static void follow_nodes(struct nvrm_finder *f, uint64_t now_ns)
{
	struct place *p, *next;

	for (p = LIST_FIRST(&f->places); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->asks)
			go_on_asking(f, p, now_ns);
		else if (now_ns >= p->nodes_ns)
			ask_nodes(f, p, now_ns);
	}
}

bool finder_search(struct nvrm_finder *f, uint64_t now_ns, bool no_urgent, bool nobody)
{
	bool others = false;
	struct place *p;

	if (!f->follows)
		return false;
	take_credit(f, now_ns);
	follow_nodes(f, now_ns);
	LIST_FOREACH(p, &f->places, link) {
		others |= search_likely(f, p, now_ns, no_urgent);
		others |= search_all(f, p, now_ns, nobody);
	}
	return others;
}

bool finder_places_ask(const struct nvrm_finder *f)
{
	const struct place *p;

	LIST_FOREACH(p, &f->places, link)
		if (p->asks)
			return true;
	return false;
}

int nvrm_finder_blind(const struct nvrm_finder *f)
{
	const struct place *p;

	LIST_FOREACH(p, &f->places, link)
		if (p->blind < 0)
			return p->blind;
	return 0;
}

bool finder_is_told(const struct seen *x)
{
	return x->place && x->place->blind == 0;
}

uint64_t finder_next_search(const struct nvrm_finder *f)
{
	uint64_t next_ns = UINT64_MAX;
	const struct place *p;

	LIST_FOREACH(p, &f->places, link) {
		if (p->likely.under_way)
			next_ns = MIN(next_ns, p->likely.began_ns + LIKELY_NS);
		else if (p->searches)
			next_ns = MIN(next_ns, next_search(p));
		if (p->all.under_way)
			next_ns = MIN(next_ns, p->asked_ns + ALL_NS);
		if (!p->asks)
			next_ns = MIN(next_ns, p->nodes_ns);
	}
	return next_ns;
}

void finder_free_places(struct nvrm_finder *f)
{
	while (!LIST_EMPTY(&f->places))
		place_free(f, LIST_FIRST(&f->places));
}
