/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/question.h"

#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/machine.h"
#include "util/macros.h"

#define CHUNK 64u /* descriptors listed at once */
#define SINCE_MOST 64u /* new ones that are looked at */

/* ---- asking ---- */

void nvrm_question_about(struct nvrm *n, struct nvrm_question *q, pid_t pid,
			 const struct nvrm_words *words)
{
	q->words = *words;
	q->words.pid = pid;
	q->blamed = pid;
	q->apart = pid != q->asker;
	if (n->transport->owner(n->data, q->asker, &q->user) < 0)
		q->user = READERS_SYSTEM; /* it has ended */
}

void nvrm_question_end(struct nvrm_question *q, int result)
{
	q->result = result;
	q->state = NVRM_ANSWERED;
}

int nvrm_ask(struct nvrm *n, struct nvrm_question *q)
{
	if (q->state == NVRM_UNASKED) {
		q->state = NVRM_ASKED;
		if (n->transport->ask)
			n->transport->ask(n->data, q);
		else
			nvrm_question_end(q, nvrm_answer(n, &q->words));
	}
	if (q->state == NVRM_ASKED)
		return -EINPROGRESS;
	q->state = NVRM_UNASKED;
	return q->result;
}

int nvrm_answers_fd(const struct nvrm *n)
{
	return n->transport->answers_fd ? n->transport->answers_fd(n->data) : -1;
}

void nvrm_forget(struct nvrm *n, struct nvrm_question *q)
{
	if (q->state == NVRM_ASKED)
		n->transport->forget(n->data, q);
	for (uint32_t i = 0; q->state == NVRM_ANSWERED && q->result >= 0 && i < q->words.n; i++)
		if (q->words.what == NVRM_ASK_COPIES)
			n->transport->drop_fd(n->data, q->words.copies[i].fd);
	q->state = NVRM_UNASKED;
}

/* ---- answering ---- */

static int copy(struct nvrm *n, struct nvrm_words *w)
{
	struct borrow_place at = { .position = w->position, .left = w->left };
	int r = n->transport->borrow(n->data, w->pid, w->device, &at, w->copies);

	w->position = at.position;
	w->left = at.left;
	w->missed = at.missed;
	if (r >= 0)
		w->n = (uint32_t)r;
	return r;
}

enum kind { OF_NONE, OF_OTHER, OF_DRIVER, OF_GPU };

/* /dev/nvidia[0-9]+ is a GPU. */
static enum kind kind_of(const char *path)
{
	static const char node[] = "dev/nvidia";
	const char *number = path + sizeof(node);

	if (*path != '/' || strncmp(path + 1, node, sizeof(node) - 1) != 0)
		return OF_OTHER;
	return *number && number[strspn(number, "0123456789")] == '\0' ? OF_GPU : OF_DRIVER;
}

static enum kind read_kind(struct nvrm *n, struct nvrm_words *w, uint32_t fd)
{
	char path[64], target[64];
	enum kind kind;

	snprintf(path, sizeof(path), "%d/fd/%u", (int)w->pid, fd);
	if (n->transport->read_link(n->data, path, target, sizeof(target)) < 0)
		return OF_NONE;
	kind = kind_of(target);
	w->uses_driver |= kind >= OF_DRIVER;
	return kind;
}

/* -EINPROGRESS: there are more descriptors than may be read. */
static int find_gpu_fd(struct nvrm *n, struct nvrm_words *w)
{
	uint32_t fds[CHUNK];
	char path[32];

	if (w->position == 0)
		w->lowest = 0;
	snprintf(path, sizeof(path), "%d/fd", (int)w->pid);
	while (w->position != NVRM_LIST_END) {
		int read;

		if (w->left == 0)
			return -EINPROGRESS;
		read = n->transport->list_numbers(n->data, path, &w->position, fds,
						  MIN(w->left, CHUNK));
		if (read < 0)
			return read;
		w->left -= (unsigned int)read;
		for (int i = 0; i < read; i++) {
			w->lowest += fds[i] == w->lowest; /* they ascend */
			if (read_kind(n, w, fds[i]) != OF_GPU)
				continue;
			w->numbers[0] = fds[i];
			return 1;
		}
	}
	return 0;
}

/* Whoever has ended, or may not be asked, has none as far as we are concerned. */
static bool is_hidden(int r)
{
	return r == -ENOENT || r == -ESRCH || r == -EACCES || r == -EPERM;
}

/* "mnt:[4026531841]"; 0: it has ended, or may not be asked. */
static uint64_t read_place(struct nvrm *n, pid_t pid)
{
	char path[32], target[64];
	unsigned long long place;

	snprintf(path, sizeof(path), "%d/ns/mnt", (int)pid);
	if (n->transport->read_link(n->data, path, target, sizeof(target)) < 0 ||
	    sscanf(target, "mnt:[%llu]", &place) != 1)
		return 0;
	return place;
}

static int find_gpu(struct nvrm *n, struct nvrm_words *w)
{
	bool tried = w->n > 0 && w->position == 0;
	int r;

	if (w->wants_place)
		w->place = read_place(n, w->pid);
	if (tried && read_kind(n, w, w->numbers[0]) == OF_GPU)
		return 1;
	r = find_gpu_fd(n, w);
	if (is_hidden(r))
		w->position = NVRM_LIST_END;
	return r == -EINPROGRESS || is_hidden(r) ? 0 : r;
}

/* It may have closed lower ones before; then it is seen at the next look at all of them. */
static int find_since(struct nvrm *n, struct nvrm_words *w)
{
	bool found = false;

	for (w->opened = 0; w->opened < SINCE_MOST; w->opened++) {
		uint32_t fd = w->lowest + w->opened;
		enum kind kind = read_kind(n, w, fd);

		if (kind == OF_NONE)
			break;
		if (kind == OF_GPU && !found)
			w->numbers[0] = fd;
		found |= kind == OF_GPU;
	}
	return found;
}

static int find_place(struct nvrm *n, struct nvrm_words *w)
{
	w->place = read_place(n, w->pid);
	return w->place ? 0 : -ESRCH;
}

static int watch_nodes(struct nvrm *n, struct nvrm_words *w)
{
	uint64_t place = read_place(n, w->pid);
	int r = n->transport->watch_nodes ?
			n->transport->watch_nodes(n->data, w->pid, w->device, w->numbers,
						  NVRM_ASKED_PIDS, &w->unwatched) :
			-ENOSYS;

	if (r < 0)
		return r;
	w->n = (uint32_t)r;
	w->place = read_place(n, w->pid);
	if (w->place != place)
		w->place = 0; /* they are of the one or the other */
	return 0;
}

int nvrm_read_stat(struct nvrm *n, pid_t pid, struct proc_stat *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t len;
	int r;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	r = n->transport->read_proc(n->data, path, &text, &len);
	return r < 0 ? r : proc_stat_parse(text, len, ret);
}

static int find_parent(struct nvrm *n, struct nvrm_words *w)
{
	struct proc_stat stat;
	int r = find_gpu(n, w);

	if (r >= 0)
		w->parent = nvrm_read_stat(n, w->pid, &stat) < 0 ? 0 : stat.parent;
	return r;
}

static int read_links(struct nvrm *n, struct nvrm_words *w)
{
	for (uint32_t i = 0; i < MIN(w->n, NVRM_COPIES); i++) {
		struct borrowed *c = &w->copies[i];
		char path[32];

		snprintf(path, sizeof(path), "%d/fd/%u", (int)w->pid, c->number);
		if (n->transport->read_link(n->data, path, c->link, sizeof(c->link)) < 0)
			c->link[0] = '\0';
	}
	return 0;
}

static int find_servers(struct nvrm *n, struct nvrm_words *w)
{
	w->servers = 0;
	for (uint32_t i = 0; i < MIN(w->n, NVRM_ASKED_PIDS); i++)
		if (nvrm_is_mps_server(n, (pid_t)w->numbers[i]))
			w->servers |= 1ull << i;
	return 0;
}

int nvrm_answer(struct nvrm *n, struct nvrm_words *w)
{
	switch (w->what) {
	case NVRM_ASK_COPIES:
		return copy(n, w);
	case NVRM_ASK_GPU:
		return find_gpu(n, w);
	case NVRM_ASK_SINCE:
		return find_since(n, w);
	case NVRM_ASK_PLACE:
		return find_place(n, w);
	case NVRM_ASK_NODES:
		return watch_nodes(n, w);
	case NVRM_ASK_PARENT:
		return find_parent(n, w);
	case NVRM_ASK_LINKS:
		return read_links(n, w);
	case NVRM_ASK_SERVERS:
		return find_servers(n, w);
	default:
		return -EINVAL;
	}
}

int nvrm_question_serve(void *user, pid_t pid, const void *request, size_t len,
			struct reader_room *room)
{
	struct nvrm n = { .transport = &nvrm_transport_syscall, .data = user };
	struct nvrm_words words;
	int r;

	if (len != sizeof(words) || room->max < sizeof(words))
		return -EINVAL;
	memcpy(&words, request, sizeof(words));
	r = nvrm_answer(&n, &words);
	if (r < 0)
		return r;
	for (uint32_t i = 0; words.what == NVRM_ASK_COPIES && i < words.n; i++)
		room->fds[room->n_fds++] = words.copies[i].fd;
	reader_put(room, &words, sizeof(words));
	return r;
}
