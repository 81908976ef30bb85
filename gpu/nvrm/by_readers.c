/* SPDX-License-Identifier: MIT */
/* Questions that readers ask, and descriptors that children close. */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/question.h"
#include "util/clock.h"

#define HEAR_NS (20 * NSEC_PER_MSEC) /* whether a reader hangs, and what was dropped with others */
#define BURY_NS NSEC_PER_SEC /* children that have dropped something */
#define WAIT_NS (2 * NSEC_PER_SEC)
#define DROPS_MAX 64u /* of a user, that nobody was found for; then no more of his are borrowed */

struct nvrm_readers {
	struct readers *readers;
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

void nvrm_readers_free(struct nvrm_readers *r)
{
	if (!r)
		return;
	readers_free(r->readers);
	free(r->users);
	free(r);
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

/* What came for nobody readers drop. */
static int take_answer(struct nvrm_question *q, struct readers_answer *answer)
{
	struct nvrm_words words;

	if (answer->result < 0)
		return answer->result;
	if (answer->len != sizeof(words))
		return -EBADMSG;
	memcpy(&words, answer->bytes, sizeof(words));
	if (words.what != q->words.what || (q->task.wants_fds && words.n != answer->n_fds))
		return -EBADMSG;
	for (uint32_t i = 0; i < answer->n_fds; i++)
		if (note_user(q->readers, answer->fds[i], q->user) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < answer->n_fds; i++)
		q->fds[i] = steal_fd(&answer->fds[i]);
	q->words = words;
	return answer->result;
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct nvrm_question *q = container_of(t, struct nvrm_question, task);

	nvrm_question_end(q, take_answer(q, answer));
}

void nvrm_readers_ask(struct nvrm_readers *r, struct nvrm_question *q)
{
	bool copies = q->words.what == NVRM_ASK_COPIES;

	if (copies && drop_count(readers_drops(r->readers), q->user) >= DROPS_MAX) {
		nvrm_question_end(q, -EMFILE);
		return;
	}
	q->readers = r;
	q->task = (struct readers_task){
		.service = READER_NVRM,
		.pid = q->blamed,
		.user = q->user,
		.apart = q->apart,
		.wants_fds = copies,
		.request = &q->words,
		.len = sizeof(q->words),
		.done = done,
	};
	readers_post(r->readers, &q->task);
}

void nvrm_readers_forget(struct nvrm_question *q)
{
	readers_cancel(q->readers->readers, &q->task);
}

void nvrm_readers_drop(struct nvrm_readers *r, int fd)
{
	drop_later(readers_drops(r->readers), fd,
		   (uint32_t)fd < r->n_users ? r->users[fd] : READERS_SYSTEM);
}

int nvrm_readers_fd(const struct nvrm_readers *r)
{
	return readers_fd(r->readers);
}

/* A child costs a tenth of a millisecond or more: those of a short time go together. */
uint64_t nvrm_readers_hear(struct nvrm_readers *r)
{
	struct drops *drops = readers_drops(r->readers);
	uint64_t now_ns = monotonic_ns();

	readers_run(r->readers);
	if (now_ns - r->dropped_ns >= HEAR_NS) {
		drop_now(drops);
		r->dropped_ns = now_ns;
	}
	if (readers_are_busy(r->readers) || drops->n)
		return HEAR_NS;
	return drops->n_children ? BURY_NS : UINT64_MAX;
}

void nvrm_readers_ask_now(struct nvrm_question *q)
{
	struct nvrm_readers *r;
	int error = nvrm_readers_new(&r);

	if (error < 0) {
		nvrm_question_end(q, error);
		return;
	}
	nvrm_readers_ask(r, q);
	readers_wait(r->readers, WAIT_NS, NULL);
	if (q->state == NVRM_ASKED) {
		nvrm_readers_forget(q);
		nvrm_question_end(q, -ETIMEDOUT);
	}
	nvrm_readers_free(r);
}
