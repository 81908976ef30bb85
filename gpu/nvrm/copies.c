/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/look.h"
#include "util/macros.h"

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
