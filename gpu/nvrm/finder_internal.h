/* SPDX-License-Identifier: MIT */
/*
 * Between finder.c (who is there, and what is told of them), finder_look.c (what is asked about
 * them) and finder_places.c (where the nodes are that they open).
 */
#ifndef GPREEMPT_GPU_NVRM_FINDER_INTERNAL_H
#define GPREEMPT_GPU_NVRM_FINDER_INTERNAL_H

#include <string.h>
#include <sys/queue.h>

#include "gpu/nvrm/machine.h"
#include "util/macros.h"

#define BUCKETS 4096u
#define NO_QUESTION (-1)

/* It may still move to a place of its own, and is asked for that often; then it is looked at. */
#define YOUNG_NS (250 * NSEC_PER_MSEC)

struct user;
struct place;

struct seen { /* a process */
	LIST_ENTRY(seen) of_bucket;
	TAILQ_ENTRY(seen) of_user;
	TAILQ_ENTRY(seen) of_place;
	struct user *user;
	struct place *place; /* NULL: not known */
	pid_t pid;
	uint64_t met_ns; /* 0: it was there before us */
	uint64_t round; /* of listing, in which it was there */
	bool uses_gpu, uses_driver;
	uint32_t gpu_fd; /* by which that is known */
	uint64_t position; /* of the look that is under way; 0: none is */
	uint64_t step; /* in which a look began last */
	uint64_t wait_ns, due_ns; /* it is looked at again then */
	LIST_ENTRY(seen) of_asked;
	struct nvrm_question *question; /* that is under way, or NULL */
	bool unseen; /* nothing came of the last one */

	/* who opened a node is searched for */
	bool looked; /* at all of its descriptors, once at least */
	bool likely; /* it uses the driver, or opens and closes things: it is asked first */
	bool suspect; /* it is to be asked whoever else is */
	uint32_t lowest, opened; /* as struct nvrm_words has them, of the last look and since */
	uint64_t searched; /* when it was asked last, as nvrm_finder.events counts */
	bool urgent; /* what is asked about it somebody waits for */
	uint64_t place_ns; /* while it is young: when its place is asked for again */
};

struct user {
	TAILQ_ENTRY(user) link;
	TAILQ_HEAD(, seen) processes; /* whose turn it is next first */
	uid_t uid;
	size_t n, n_gpu, n_asked;
	uint64_t step; /* in which all its processes have been looked at */
};

struct nvrm_finder {
	struct nvrm *n;
	LIST_HEAD(, seen) asked;
	size_t n_unseen;
	LIST_HEAD(, seen) buckets[BUCKETS];
	TAILQ_HEAD(, user) users; /* the same */
	size_t n_users, n_gpu;
	uint64_t round, position; /* of listing */
	uint64_t step;
	bool listed; /* to the end, in this step */
	unsigned int left; /* of the budget */
	unsigned int looks;

	/* where it is told of births and openings */
	bool follows;
	bool changed; /* others use a GPU than were listed last */
	uint64_t list_ns; /* when all are listed again */
	uint64_t young_ns; /* until then somebody is young */
	LIST_HEAD(, place) places;
	size_t n_watched; /* nodes of theirs */
	uint64_t events; /* so far: what came before what */
	uint64_t credit, credit_ns; /* what may be asked in vain, and as of when */
	size_t n_urgent; /* questions under way that somebody waits for */
	bool held_back; /* somebody waits for his turn, as enough is asked about his user */
	bool busy; /* something else is asked about one who is suspect */
};

/* ---- finder.c ---- */

void finder_set_uses_gpu(struct nvrm_finder *f, struct seen *x, bool uses);
/* It may have become another user's since. False: it has ended. */
bool finder_follow_owner(struct nvrm_finder *f, struct seen *x);
bool finder_is_gone(const struct nvrm_finder *f, const struct seen *x); /* it has ended */

/* ---- finder_look.c ---- */

bool finder_by_others(const struct nvrm_finder *f);
/* What was answered since. How many questions are under way. */
size_t finder_take_answers(struct nvrm_finder *f, uint64_t now_ns);
/*
 * One look of each user after the other, of all who are due or only of those who are urgent. True:
 * there is more to look at.
 */
bool finder_look_around(struct nvrm_finder *f, bool urgent, uint64_t now_ns);
void finder_end_question(struct nvrm_finder *f, struct seen *x);

/* ---- finder_places.c ---- */

/* It was found to be there. */
void finder_put_into(struct nvrm_finder *f, struct seen *x, uint64_t place, uint64_t now_ns);
void finder_take_out(struct nvrm_finder *f, struct seen *x);
bool finder_is_told(const struct seen *x); /* when it opens a node */
enum suspicion { NOT_SUSPECT, SUSPECT, LIKELY_SUSPECT };
/* Is it to be asked whether it has opened something? */
enum suspicion finder_suspects(const struct seen *x);
/* It is, or has answered; @found: that it has opened a node. */
void finder_ask_suspect(struct nvrm_finder *f, struct seen *x);
void finder_heard_suspect(struct nvrm_finder *f, struct seen *x, bool found);
/* Takes what was told. */
void finder_hear_nodes(struct nvrm_finder *f, uint64_t now_ns);
/*
 * Goes on with searches, where there is nobody left to be asked urgently, and at all. True: there
 * are others now.
 */
bool finder_search(struct nvrm_finder *f, uint64_t now_ns, bool no_urgent, bool nobody);
bool finder_places_ask(const struct nvrm_finder *f); /* something is not answered yet */
/* When there is something to do, whether or not somebody tells. */
uint64_t finder_next_search(const struct nvrm_finder *f);
void finder_free_places(struct nvrm_finder *f);

#endif
