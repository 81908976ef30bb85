/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/question.h"

#include <errno.h>
#include <string.h>

#include "gpu/helpers/readers.h"
#include "gpu/nvrm/internal.h"
#include "util/macros.h"

/* ---- asking ---- */

void nvrm_question_about(struct nvrm *n, struct nvrm_question *q, pid_t pid,
			 const struct nvrm_words *words)
{
	q->words = *words;
	q->words.pid = pid;
	q->blamed = pid;
	q->apart = pid != q->asker;
	if (n->transport->files->owner(n->data, q->asker, &q->user) < 0)
		q->user = READERS_SYSTEM; /* it has ended */
}

int nvrm_ask(struct nvrm *n, struct nvrm_question *q)
{
	if (q->state == NVRM_UNASKED && n->transport->ask) {
		q->state = NVRM_ASKED;
		n->transport->ask(n->data, q);
	} else if (q->state == NVRM_UNASKED) {
		q->result = nvrm_answer(n->transport, n->data, &q->words, q->fds);
		q->state = NVRM_ANSWERED;
	}
	if (q->state == NVRM_ASKED)
		return -EINPROGRESS;
	q->state = NVRM_UNASKED;
	return q->result;
}

void nvrm_forget(struct nvrm *n, struct nvrm_question *q)
{
	if (q->state == NVRM_ASKED)
		n->transport->forget(n->data, q);
	for (uint32_t i = 0; q->state == NVRM_ANSWERED && q->result >= 0 && i < q->words.n; i++)
		if (q->words.what == NVRM_ASK_COPIES)
			n->transport->drop_fd(n->data, q->fds[i]);
	q->state = NVRM_UNASKED;
}

/* ---- answering ---- */

static int copy(const struct nvrm_transport *t, void *data, struct nvrm_words *w, int *ret_fds)
{
	struct borrowed copies[NVRM_COPIES];
	struct borrow_place at = { .position = w->position, .left = w->left };
	int n = t->borrow(data, w->pid, w->device, &at, copies);

	w->position = at.position;
	w->left = at.left;
	w->missed = at.missed;
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		ret_fds[i] = copies[i].fd;
		w->numbers[i] = copies[i].number;
		memcpy(w->links[i], copies[i].link, sizeof(w->links[i]));
	}
	w->n = (uint32_t)n;
	return n;
}

/* Whoever has ended, or may not be asked, has none as far as we are concerned. */
static bool is_hidden(int r)
{
	return r == -ENOENT || r == -ESRCH || r == -EACCES || r == -EPERM;
}

static int find_gpu(const struct nvrm_transport *t, void *data, struct nvrm_words *w)
{
	bool tried = w->n > 0 && w->position == 0;
	int r;

	if (tried && nvrm_is_gpu_fd(t->files, data, w->pid, w->numbers[0]))
		return 1;
	r = nvrm_find_gpu_fd(t->files, data, w->pid, &w->position, &w->left, &w->numbers[0]);
	if (is_hidden(r))
		w->position = NVRM_LIST_END;
	return r == -EINPROGRESS || is_hidden(r) ? 0 : r;
}

static int find_parent(const struct nvrm_transport *t, void *data, struct nvrm_words *w)
{
	struct nvrm_ident ident;
	int r = find_gpu(t, data, w);

	if (r >= 0)
		w->parent = nvrm_identify(t, data, w->pid, &ident) < 0 ? 0 : ident.parent;
	return r;
}

static int read_links(const struct nvrm_transport *t, void *data, struct nvrm_words *w)
{
	for (uint32_t i = 0; i < MIN(w->n, NVRM_COPIES); i++) {
		char path[32];

		snprintf(path, sizeof(path), "%d/fd/%u", (int)w->pid, w->numbers[i]);
		if (t->files->read_link(data, path, w->links[i], sizeof(w->links[i])) < 0)
			w->links[i][0] = '\0';
	}
	return 0;
}

static int find_servers(const struct nvrm_transport *t, void *data, struct nvrm_words *w)
{
	w->servers = 0;
	for (uint32_t i = 0; i < MIN(w->n, NVRM_ASKED_PIDS); i++)
		if (nvrm_looks_like_server(t, data, (pid_t)w->numbers[i]))
			w->servers |= 1ull << i;
	return 0;
}

int nvrm_answer(const struct nvrm_transport *t, void *data, struct nvrm_words *w, int *ret_fds)
{
	switch (w->what) {
	case NVRM_ASK_COPIES:
		return copy(t, data, w, ret_fds);
	case NVRM_ASK_GPU:
		return find_gpu(t, data, w);
	case NVRM_ASK_PARENT:
		return find_parent(t, data, w);
	case NVRM_ASK_LINKS:
		return read_links(t, data, w);
	case NVRM_ASK_SERVERS:
		return find_servers(t, data, w);
	default:
		return -EINVAL;
	}
}

int nvrm_question_serve(void *user, pid_t pid, const void *request, size_t len,
			struct reader_room *room)
{
	struct nvrm_words words;
	int r;

	if (len != sizeof(words) || room->max < sizeof(words))
		return -EINVAL;
	memcpy(&words, request, sizeof(words));
	r = nvrm_answer(&nvrm_transport_syscall, user, &words, room->fds);
	if (r < 0)
		return r;
	if (words.what == NVRM_ASK_COPIES)
		room->n_fds = words.n;
	reader_put(room, &words, sizeof(words));
	return r;
}
