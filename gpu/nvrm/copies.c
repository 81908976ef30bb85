/* SPDX-License-Identifier: MIT */
/* Descriptors of processes: copies of them, what they are, and whose they were before a fork. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

#define MOST_DESCRIPTORS 64u /* of an ancestor */

/* Those that were read, also by others: so a look at any number of them comes to steps. */
static void count_down(unsigned int *left, unsigned int unused)
{
	*left -= MIN(*left, NVRM_STEP_ASKS - MIN(unused, NVRM_STEP_ASKS));
}

/* From *position on. */
static int ask(struct nvrm *n, struct nvrm_question *q, pid_t pid, enum nvrm_what what,
	       uint64_t *position, unsigned int *left)
{
	int r;

	if (q->state == NVRM_UNASKED)
		nvrm_question_about(n, q, pid,
				    &(struct nvrm_words){ .what = what,
							  .position = *position,
							  .left = NVRM_STEP_ASKS });
	r = nvrm_ask(n, q);
	if (r < 0)
		return r;
	count_down(left, q->words.left);
	*position = q->words.position;
	return r;
}

static int ask_copies(struct nvrm *n, struct nvrm_question *q, pid_t pid, struct nvrm_copies *c,
		      unsigned int *left)
{
	int r = ask(n, q, pid, NVRM_ASK_COPIES, &c->position, left);

	if (r < 0)
		return r;
	c->missed |= q->words.missed;
	c->n = q->words.n;
	c->next = 0;
	memcpy(c->all, q->words.copies, sizeof(c->all));
	return 0;
}

int nvrm_next_copy(struct nvrm *n, struct nvrm_question *q, pid_t pid, struct nvrm_copies *c,
		   unsigned int *left, int *ret_fd)
{
	while (c->next == c->n) {
		int r;

		if (c->position == BORROW_END)
			return 0;
		if (*left == 0)
			return -EINPROGRESS;
		r = ask_copies(n, q, pid, c, left);
		if (r < 0)
			return r;
	}
	*ret_fd = c->all[c->next++].fd;
	return 1;
}

void nvrm_copies_done(struct nvrm *n, struct nvrm_copies *c)
{
	while (c->next < c->n)
		n->transport->drop_fd(n->data, c->all[c->next++].fd);
	*c = (struct nvrm_copies){ 0 };
}

int nvrm_ask_gpu(struct nvrm *n, struct nvrm_question *q, pid_t pid, uint64_t *position,
		 unsigned int *left, pid_t *ret_parent)
{
	enum nvrm_what what = ret_parent ? NVRM_ASK_PARENT : NVRM_ASK_GPU;
	int r;

	do {
		if (*left == 0)
			return -EINPROGRESS;
		r = ask(n, q, pid, what, position, left);
		if (r < 0)
			return r;
		if (ret_parent)
			*ret_parent = q->words.parent;
	} while (r == 0 && *position != NVRM_LIST_END);
	return r;
}

/* ---- ancestors ---- */

/*
 * Who only borrows descriptors, as we do, has no GPU open; the caller may, and may have borrowed
 * those of its own children.
 */
static int list_ancestors(struct nvrm *n, struct nvrm_question *q, pid_t pid,
			  struct nvrm_ancestors *a, unsigned int *left)
{
	if (!a->at) { /* the process itself is asked for its parent only */
		a->at = pid;
		a->position = NVRM_LIST_END;
	}
	while (a->at > 1 && a->passed <= NVRM_ANCESTORS) {
		pid_t parent;
		int r = nvrm_ask_gpu(n, q, a->at, &a->position, left, &parent);

		if (r < 0)
			return r;
		if (r > 0)
			a->pids[a->n++] = a->at;
		a->passed++;
		a->at = parent;
		a->position = parent == getpid() ? NVRM_LIST_END : 0;
	}
	a->listed = true;
	return 0;
}

/* 1, 0 or -errno; the copies are those of the process that is asked. */
static int has_client(struct nvrm *n, struct nvrm_question *q, uint32_t client,
		      struct nvrm_ancestors *a, unsigned int *left)
{
	while (a->n_copies < MOST_DESCRIPTORS) {
		int fd, r;
		bool found;

		if (*left == 0)
			return -EINPROGRESS;
		r = nvrm_next_copy(n, q, a->pids[a->asked], &a->copies, left, &fd);
		if (r <= 0)
			return r;
		*left -= *left > 0;
		a->n_copies++;
		found = nvrm_whose(n, fd, client) == NVRM_THIS;
		n->transport->drop_fd(n->data, fd);
		if (found)
			return 1;
	}
	return 0;
}

/* Whose descriptors are not to be had has none that could have been inherited. */
static bool is_out_of_reach(int r)
{
	return r == -EPERM || r == -EACCES || r == -ESRCH;
}

int nvrm_client_is_inherited(struct nvrm *n, struct nvrm_question *q, pid_t pid, uint32_t client,
			     struct nvrm_ancestors *a, unsigned int *left)
{
	int r = a->listed ? 0 : list_ancestors(n, q, pid, a, left);

	while (r == 0 && a->asked < a->n) {
		r = has_client(n, q, client, a, left);
		if (is_out_of_reach(r))
			r = 0;
		if (r < 0)
			return r;
		nvrm_ancestors_done(n, a);
		a->asked++;
	}
	if (r >= 0)
		a->asked = 0;
	return r;
}

void nvrm_ancestors_done(struct nvrm *n, struct nvrm_ancestors *a)
{
	nvrm_copies_done(n, &a->copies);
	a->n_copies = 0;
}
