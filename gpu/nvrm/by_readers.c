/* SPDX-License-Identifier: MIT */
/* Questions that readers ask, and descriptors that children close. */
#include <errno.h>
#include <string.h>

#include "gpu/helpers/drop.h"
#include "gpu/helpers/readers.h"
#include "gpu/nvrm/question.h"
#include "util/clock.h"

#define HEAR_NS (20 * NSEC_PER_MSEC) /* whether a reader hangs, and what was dropped with others */
#define BURY_NS NSEC_PER_SEC /* children that have dropped something */
#define WAIT_NS (2 * NSEC_PER_SEC)
#define DROPS_MAX 64u /* of a user, that nobody was found for; then no more of his are borrowed */

struct asked {
	struct readers_task task;
	LIST_ENTRY(asked) link;
	struct nvrm_readers *r;
	struct nvrm_question *q; /* NULL: forgotten */
	struct nvrm_words words;
};

struct nvrm_readers {
	struct readers *readers;
	LIST_HEAD(, asked) under_way;
	unsigned int n_under_way;
	struct drops drops;
	uid_t *users; /* whose file each descriptor is a copy of, by its number */
	uint32_t n_users;
	uint64_t dropped_ns; /* when those there were went last */
};

int nvrm_readers_new(struct nvrm_readers **ret)
{
	_cleanup_free_ struct nvrm_readers *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	error = readers_new(&(struct readers_options){ 0 }, &r->readers);
	if (error < 0)
		return error;
	*ret = steal_ptr(&r);
	return 0;
}

static void asked_free(struct asked *a)
{
	a->r->n_under_way--;
	LIST_REMOVE(a, link);
	free(a);
}

void nvrm_readers_free(struct nvrm_readers *r)
{
	if (!r)
		return;
	readers_free(r->readers);
	while (!LIST_EMPTY(&r->under_way))
		asked_free(LIST_FIRST(&r->under_way));
	drop_now(&r->drops); /* else it is done by the end of this process */
	free(r->drops.all);
	free(r->users);
	free(r);
}

static size_t write_words(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	const struct asked *a = (const struct asked *)t;

	if (max < sizeof(a->words))
		return SIZE_MAX;
	memcpy(to, &a->words, sizeof(a->words));
	return sizeof(a->words);
}

/* What came for nobody may be the last there is of an ended process: it is not closed here. */
static void drop_copies(struct asked *a, struct readers_answer *answer)
{
	for (uint32_t i = 0; i < answer->n_fds; i++)
		if (answer->fds[i] >= 0)
			drop_later(&a->r->drops, steal_fd(&answer->fds[i]), a->task.user);
}

static int note_user(struct nvrm_readers *r, int fd, uid_t user)
{
	uint32_t n = (uint32_t)fd + 1;
	uid_t *users;

	if (n > r->n_users) {
		users = reallocarray(r->users, n, sizeof(*users));
		if (!users)
			return -ENOMEM;
		r->users = users;
		r->n_users = n;
	}
	r->users[fd] = user;
	return 0;
}

static int note_users(struct asked *a, const struct readers_answer *answer)
{
	int r = 0;

	for (uint32_t i = 0; i < answer->n_fds && r >= 0; i++)
		r = note_user(a->r, answer->fds[i], a->task.user);
	return r;
}

static void take_words(struct asked *a, struct readers_answer *answer)
{
	struct nvrm_question *q = a->q;

	q->state = NVRM_ANSWERED;
	q->under_way = NULL;
	q->result = answer->result;
	if (answer->result < 0)
		return;
	if (answer->len == sizeof(q->words))
		memcpy(&q->words, answer->bytes, sizeof(q->words));
	if (answer->len != sizeof(q->words) || q->words.what != a->words.what ||
	    (a->task.wants_fds && q->words.n != answer->n_fds)) {
		q->result = -EBADMSG;
		return;
	}
	if (note_users(a, answer) < 0) {
		q->result = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < answer->n_fds; i++)
		q->fds[i] = steal_fd(&answer->fds[i]);
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct asked *a = (struct asked *)t;

	if (a->q)
		take_words(a, answer);
	drop_copies(a, answer);
	asked_free(a);
}

static void fail(struct nvrm_question *q, int error)
{
	q->result = error;
	q->state = NVRM_ANSWERED;
}

void nvrm_readers_ask(struct nvrm_readers *r, struct nvrm_question *q)
{
	bool copies = q->words.what == NVRM_ASK_COPIES;
	struct asked *a;

	if (copies && drop_count(&r->drops, q->user) >= DROPS_MAX) {
		fail(q, -EMFILE);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		fail(q, -ENOMEM);
		return;
	}
	a->r = r;
	a->q = q;
	a->words = q->words;
	a->task = (struct readers_task){
		.service = READER_NVRM,
		.pid = q->blamed,
		.user = q->user,
		.apart = q->apart,
		.wants_fds = copies,
		.write = write_words,
		.done = done,
	};
	q->under_way = a;
	r->n_under_way++;
	LIST_INSERT_HEAD(&r->under_way, a, link);
	readers_post(r->readers, &a->task);
}

void nvrm_readers_forget(struct nvrm_question *q)
{
	struct asked *a = q->under_way;

	a->q = q->under_way = NULL;
}

void nvrm_readers_drop(struct nvrm_readers *r, int fd)
{
	drop_later(&r->drops, fd, (uint32_t)fd < r->n_users ? r->users[fd] : READERS_SYSTEM);
}

int nvrm_readers_fd(const struct nvrm_readers *r)
{
	return readers_fd(r->readers);
}

/* A child costs a tenth of a millisecond or more: those of a short time go together. */
uint64_t nvrm_readers_hear(struct nvrm_readers *r)
{
	uint64_t now_ns = monotonic_ns();

	readers_run(r->readers);
	if (now_ns - r->dropped_ns >= HEAR_NS) {
		drop_now(&r->drops);
		r->dropped_ns = now_ns;
	}
	if (r->n_under_way || r->drops.n)
		return HEAR_NS;
	return r->drops.n_children ? BURY_NS : UINT64_MAX;
}

void nvrm_readers_ask_now(struct nvrm_question *q)
{
	struct nvrm_readers *r;
	int error = nvrm_readers_new(&r);

	if (error < 0) {
		fail(q, error);
		return;
	}
	nvrm_readers_ask(r, q);
	readers_wait(r->readers, WAIT_NS, &r->n_under_way);
	if (q->state == NVRM_ASKED) {
		nvrm_readers_forget(q);
		fail(q, -ETIMEDOUT);
	}
	nvrm_readers_free(r);
}
