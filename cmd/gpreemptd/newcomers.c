/* SPDX-License-Identifier: MIT */
/*
 * Processes that use a GPU and are not identified yet. Who they are is read by others, and may take
 * as long as they like; one that does not let itself be read stays here, and is told of.
 */
#include <errno.h>
#include <stdio.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define RETRY_FIRST_NS NSEC_PER_SEC
#define RETRY_LAST_NS (60 * NSEC_PER_SEC)

struct newcomer *newcomer_find(const struct scheduler *s, pid_t pid)
{
	struct newcomer *c;

	TAILQ_FOREACH(c, &s->newcomers, link) {
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

static void forget(struct scheduler *s, struct newcomer *c)
{
	TAILQ_REMOVE(&s->newcomers, c, link);
	closep(&c->pidfd);
	free(c);
}

void newcomers_forget(struct scheduler *s, bool all)
{
	struct newcomer *c = TAILQ_FIRST(&s->newcomers), *next;

	for (; c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (all || !c->listed)
			forget(s, c);
		else
			c->listed = false;
	}
}

/* Whose pid it was when it was opened, it is as long as that has not ended. */
void newcomer_came(struct scheduler *s, pid_t pid, uid_t uid)
{
	struct newcomer *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->pid = pid;
	c->uid = uid;
	c->pidfd = ops(s)->pidfd(s->b, pid);
	TAILQ_INSERT_TAIL(&s->newcomers, c, link);
	s->scan_ns = MIN(s->scan_ns, s->now_ns + s->config->scan_ns);
	newcomer_meet(s, c);
}

void newcomer_meet(struct scheduler *s, struct newcomer *c)
{
	c->listed = true;
	if (s->now_ns >= c->retry_ns)
		ops(s)->ask(s->b, c->pid, identity_files(&s->config->rules));
}

static void ask_later(struct scheduler *s, struct newcomer *c)
{
	uint64_t after_ns = c->retry_after_ns ? c->retry_after_ns : RETRY_FIRST_NS;

	c->retry_ns = s->now_ns + after_ns;
	c->retry_after_ns = MIN(2 * after_ns, RETRY_LAST_NS);
	c->unread = true;
}

const char *newcomers_problem(const struct scheduler *s, char *buf, size_t size)
{
	const struct newcomer *c;

	TAILQ_FOREACH(c, &s->newcomers, link) {
		if (!c->unread)
			continue;
		snprintf(buf, size,
			 "process %d uses a GPU but does not let itself be read: it has no class",
			 c->pid);
		return buf;
	}
	return NULL;
}

void newcomer_answered(struct scheduler *s, struct newcomer *c, const struct proc_files *files)
{
	struct identity id = { 0 };
	pid_t pid = c->pid;
	int pidfd, r = files->result;

	if (r >= 0)
		r = identity_take(files, &id);
	if (r >= 0 && has_ended(c->pidfd))
		r = -ESRCH;
	if (r < 0) {
		identity_done(&id);
		if (r == -ESRCH)
			forget(s, c); /* found again, it is another one */
		else
			ask_later(s, c);
		return;
	}
	pidfd = steal_fd(&c->pidfd);
	forget(s, c);
	process_came(s, pid, pidfd, &id);
}
