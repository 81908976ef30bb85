/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/asks.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "util/macros.h"

struct ask;

struct part { /* one task of a question */
	struct readers_task task;
	struct ask *ask;
	uint32_t bits;
	struct proc_files files;
};

struct ask {
	TAILQ_ENTRY(ask) link;
	struct part kernel, memory;
	unsigned int under_way;
};

TAILQ_HEAD(ask_list, ask);

struct asks {
	struct readers *readers;
	struct proc_source source;
	struct ask_list asked;
};

int asks_new(struct readers *readers, const struct proc_source *source, struct asks **ret)
{
	struct asks *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->readers = readers;
	if (source)
		a->source = *source;
	TAILQ_INIT(&a->asked);
	*ret = a;
	return 0;
}

void asks_free(struct asks *a)
{
	struct ask *k;

	while (a && (k = TAILQ_FIRST(&a->asked))) {
		TAILQ_REMOVE(&a->asked, k, link);
		if (a->readers) {
			readers_cancel(a->readers, &k->kernel.task);
			readers_cancel(a->readers, &k->memory.task);
		}
		proc_files_done(&k->kernel.files);
		proc_files_done(&k->memory.files);
		free(k);
	}
	free(a);
}

static bool is_same(const struct proc_files *a, const struct proc_files *b)
{
	struct proc_stat x, y;

	return a->text[PROC_STAT] && b->text[PROC_STAT] &&
	       proc_stat_parse(a->text[PROC_STAT], a->len[PROC_STAT], &x) >= 0 &&
	       proc_stat_parse(b->text[PROC_STAT], b->len[PROC_STAT], &y) >= 0 &&
	       x.start_ticks == y.start_ticks;
}

/* What was read of its memory counts if it is of the same process as the rest. */
static void merge(struct ask *k)
{
	struct proc_files *to = &k->kernel.files, *from = &k->memory.files;

	if (from->result >= 0 && is_same(to, from)) {
		for (enum proc_file i = PROC_CMDLINE; i < PROC_FILES; i++) {
			to->text[i] = steal_ptr(&from->text[i]);
			to->len[i] = from->len[i];
		}
	} else if (from->result != -ESRCH) {
		to->unread = k->memory.bits;
	}
	proc_files_done(from);
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct part *p = (struct part *)t;

	p->files.result = answer->result;
	if (answer->result >= 0)
		p->files.result = proc_files_take(answer->bytes, answer->len, &p->files);
	p->ask->under_way--;
}

static void post(struct asks *a, struct ask *k, struct part *p, uid_t user, uint32_t bits,
		 bool apart)
{
	p->ask = k;
	p->bits = bits;
	p->task = (struct readers_task){
		.service = READER_PROC_FILES,
		.pid = k->kernel.files.pid,
		.user = user,
		.apart = apart,
		.request = &p->bits,
		.len = sizeof(p->bits),
		.done = done,
	};
	k->under_way++;
	readers_post(a->readers, &p->task);
}

static void post_all(struct asks *a, struct ask *k, uint32_t bits)
{
	uid_t user;
	int r = readers_user_of(k->kernel.files.pid, &user);

	if (r < 0) {
		k->kernel.files.result = r;
		return;
	}
	post(a, k, &k->kernel, user, bits & ~PROC_MEMORY, true);
	if (bits & PROC_MEMORY)
		post(a, k, &k->memory, user, bits & PROC_MEMORY, false);
}

static struct ask *find(const struct asks *a, pid_t pid)
{
	struct ask *k;

	TAILQ_FOREACH(k, &a->asked, link) {
		if (k->kernel.files.pid == pid)
			return k;
	}
	return NULL;
}

int asks_ask(struct asks *a, pid_t pid, uint32_t bits)
{
	struct ask *k;

	if (find(a, pid))
		return -EALREADY;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->kernel.files.pid = pid;
	TAILQ_INSERT_TAIL(&a->asked, k, link);
	if (a->readers) {
		post_all(a, k, bits);
		return 0;
	}
	k->kernel.files.result = proc_files_read(&a->source, pid, bits, &k->kernel.files);
	return 0;
}

static bool take(struct asks *a, struct proc_files *ret)
{
	struct ask *k;

	TAILQ_FOREACH(k, &a->asked, link) {
		if (k->under_way)
			continue;
		TAILQ_REMOVE(&a->asked, k, link);
		if (k->memory.bits)
			merge(k);
		*ret = k->kernel.files;
		free(k);
		return true;
	}
	return false;
}

bool asks_answer(struct asks *a, struct proc_files *ret)
{
	if (take(a, ret))
		return true;
	if (a->readers)
		readers_see(a->readers); /* it sends what was asked */
	return take(a, ret);
}

int asks_owner(const struct asks *a, pid_t pid, uid_t *ret)
{
	return a->readers ? readers_user_of(pid, ret) : proc_files_owner(&a->source, pid, ret);
}
