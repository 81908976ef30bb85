/* SPDX-License-Identifier: MIT */
/*
 * A look into a process: which clients, objects and groups it has, and whether it shares them. The
 * driver is asked number by number, and a process can make that take as long as it likes. So a look
 * is made in steps and keeps here what it has found out; between two steps anything may be done to
 * the process, and nothing that is found is used before the look is over.
 *
 * Each of these functions asks at most *left times, counts that down, and returns -EINPROGRESS
 * where it is to be called again: at once or, if the question is under way, when it is answered.
 * What is needed once per call is not counted.
 */
#ifndef GPREEMPT_GPU_NVRM_LOOK_H
#define GPREEMPT_GPU_NVRM_LOOK_H

#include "gpu/nvrm/process.h"

/* ---- listing.c ---- */

struct nvrm_listing { /* of all objects of a client; zeroed before it begins */
	uint32_t client;
	struct nvrm_objects objects;
	uint32_t n_asked;
	uint32_t missed; /* in a row */
};

/* A status or -errno. */
int nvrm_list_objects(struct nvrm *n, int fd, struct nvrm_listing *l, unsigned int *left);
/* Looks for objects beside the known ones, the newer ones first. The same. */
int nvrm_list_further(struct nvrm *n, struct nvrm_client *c, unsigned int *left);
void nvrm_listing_done(struct nvrm_listing *l);

/* ---- copies.c ---- */

struct nvrm_copies { /* of descriptors of a process, one after the other; zeroed at first */
	uint64_t position;
	uint32_t n, next;
	struct borrowed all[NVRM_COPIES];
	bool missed; /* one that was closed as we looked */
};

/*
 * 1: the next one, @ret_fd, is the caller's to drop; its name is at next - 1. 0: there
 * are no more.
 */
int nvrm_next_copy(struct nvrm *n, struct nvrm_question *q, pid_t pid, struct nvrm_copies *c,
		   unsigned int *left, int *ret_fd);
void nvrm_copies_done(struct nvrm *n, struct nvrm_copies *c);

/* 1: it has a GPU open; 0: it has not. @ret_parent may be NULL. */
int nvrm_ask_gpu(struct nvrm *n, struct nvrm_question *q, pid_t pid, uint64_t *position,
		 unsigned int *left, pid_t *ret_parent);

#define NVRM_ANCESTORS 32

struct nvrm_ancestors { /* that have a GPU open; zeroed before the first is looked for */
	bool listed;
	pid_t at;
	unsigned int passed;
	uint64_t position; /* among the descriptors of that one */
	pid_t pids[NVRM_ANCESTORS];
	size_t n, asked;
	struct nvrm_copies copies; /* of the descriptors of the one that is asked */
	unsigned int n_copies;
};

/*
 * A process forked with contexts has its parent's descriptors, and so the parent's clients seem to
 * be its own (workers that load data are forked so). 1: one of its ancestors has this client; 0.
 */
int nvrm_client_is_inherited(struct nvrm *n, struct nvrm_question *q, pid_t pid, uint32_t client,
			     struct nvrm_ancestors *a, unsigned int *left);
void nvrm_ancestors_done(struct nvrm *n, struct nvrm_ancestors *a);

/* ---- discover.c ---- */

struct nvrm_range { /* of clients' numbers, from the highest down */
	uint32_t from, to;
};

struct nvrm_search { /* nvrm_search_init() */
	bool anew; /* also for all objects of the clients that are known */
	struct nvrm_listing listing; /* of the client that is looked at */

	struct nvrm_copies copies; /* of the descriptors of the process */
	int fd; /* the one that is looked at; -1: none */
	struct nvrm_range ranges[NVRM_QUEST_CLIENTS + 1];
	size_t n_ranges, range;
	uint32_t number, asks;
	bool trying; /* that number, which is a client of the descriptor */
	bool own; /* and not an ancestor's */
	struct nvrm_ancestors ancestors;

	uint32_t newest; /* number there is; 0: not known */
	uint32_t lowest; /* number of a client of the process */
	size_t descriptors, objects; /* seen, also of clients without channels */
	bool inherited; /* one of its descriptors is an ancestor's */
	bool missed; /* descriptors, or clients that could not be noted: nothing was learnt */
	bool twice; /* all descriptors are gone through a second time */
	int gpu_open; /* 1, 0 or, not known yet, -EINPROGRESS */
	uint64_t position; /* of that */
	struct nvrm_quest learnt;
};

void nvrm_search_init(struct nvrm_process *p, struct nvrm_search *s, bool anew);
void nvrm_search_done(struct nvrm_process *p, struct nvrm_search *s);
/* Looks for all clients. */
int nvrm_discover(struct nvrm_process *p, struct nvrm_search *s, struct nvrm_question *q,
		  unsigned int *left, struct nvrm_failure *ret_failure);
/* 1: it has closed a descriptor that we have a copy of; 0: it has not. */
int nvrm_has_closed(struct nvrm_process *p, struct nvrm_question *q);
/* Looks at the known ones for what is new. -ESTALE: a group is gone. */
int nvrm_look_further(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *ret_failure);

/* ---- shared.c ---- */

#define NVRM_SHARING_PAGE NVRM_ASKED_PIDS

struct nvrm_sharing { /* zeroed before it begins */
	bool begun;
	uid_t owner; /* of the process */
	uint64_t position; /* in the list of all processes */
	uint32_t pids[NVRM_SHARING_PAGE]; /* that can be of interest */
	uint64_t suspects; /* a bit for each that is, whatever it looks like */
	bool asked; /* what the others look like */
	uint32_t n, next;
	struct nvrm_process *other; /* that is looked into */
};

/* -EOPNOTSUPP with NVRM_WHY_SHARED: it shares a group with another process, by MPS. */
int nvrm_check_shared(struct nvrm_process *p, struct nvrm_sharing *s, struct nvrm_question *q,
		      unsigned int *left, struct nvrm_failure *ret_failure);
void nvrm_sharing_done(struct nvrm_sharing *s);

#endif
