/* SPDX-License-Identifier: MIT */
/*
 * Who shares a context with others: to take one of them off the GPU would take all of them off.
 *
 * That is what MPS is for. Its control daemon starts a server, nvidia-cuda-mps-server, as the user
 * whose programs ask for it, or as root one for all users (nvidia-cuda-mps-control(1)). These
 * programs, its clients, compute in the server's context: seen through any of them the hardware's
 * group has the same id (H200, driver 580). The control daemon itself has no context.
 *
 * So nobody but a server and its clients is concerned, and who they are is the driver's to say: a
 * process is refused when one of its groups is its server's too or, if it is a server, a client's.
 * Names only tell where to look, since not all can be compared with all. Anybody can choose his:
 *
 * - A server is known by its executable and not by what it calls itself, and it is root's or the
 *   same user's. Nobody else's process serves this one, whatever it is named.
 * - No name exempts a process itself: one that looks like a server is refused for its clients only.
 * - Which groups a process has cannot always be found out. Then it is taken for the server, or for
 *   a client. Who makes up such a process keeps his own jobs from being held and nobody else's; by
 *   running MPS he could do the same.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "gpu/nvrm/machine.h"
#include "util/macros.h"

#define ROOT 0u

/* The kernel keeps no more of the name than the control daemon has in common with it. */
static bool is_called_server(struct nvrm *n, pid_t pid)
{
	static const char name[] = "nvidia-cuda-mps";
	struct proc_stat stat;

	return nvrm_read_stat(n, pid, &stat) >= 0 && stat.state != 'Z' &&
	       !strncmp(stat.comm, name, sizeof(name) - 1);
}

/* Its file may have been replaced since: then the kernel says so behind its name. */
static bool is_servers_file(char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), suffix = sizeof(deleted) - 1;
	const char *name = strrchr(path, '/');

	if (!name)
		return false;
	if (len > suffix && !strcmp(path + len - suffix, deleted))
		path[len - suffix] = '\0';
	return !strcmp(name + 1, "nvidia-cuda-mps-server");
}

bool nvrm_is_mps_server(struct nvrm *n, pid_t pid)
{
	char path[32], file[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	r = n->transport->read_link(n->data, path, file, sizeof(file));
	/* Who may not be asked for it can be asked for his name only. */
	if (r == -EACCES || r == -EPERM)
		return is_called_server(n, pid);
	return r >= 0 && is_servers_file(file);
}

static bool share_a_group(const struct nvrm_process *a, const struct nvrm_process *b)
{
	for (size_t i = 0; i < a->n_groups; i++) {
		for (size_t k = 0; k < b->n_groups; k++) {
			const struct nvrm_group *g = &a->groups[i], *h = &b->groups[k];

			if (g->compute && h->compute && g->gpu == h->gpu && g->id == h->id)
				return true;
		}
	}
	return false;
}

/* @r is what came of looking into the other one. */
static bool is_shared(const struct nvrm_process *p, const struct nvrm_process *other, int r,
		      const struct nvrm_failure *failure)
{
	if (r >= 0)
		return share_a_group(p, other);
	return failure->why != NVRM_WHY_NO_CONTEXT && failure->why != NVRM_WHY_EXITED;
}

/* 1: it shares a group with the process, as far as one can tell; 0: it does not. */
static int look_into_other(const struct nvrm_process *p, struct nvrm_sharing *s, unsigned int *left)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_process_look(s->other, left, &failure);

	if (r == -EINPROGRESS)
		return r;
	r = is_shared(p, s->other, r, &failure);
	nvrm_sharing_done(s);
	return r;
}

enum interest { NONE, IF_SERVER, SUSPECT };

/* Whether the process can be its server, or its client. */
static enum interest interest_in(const struct nvrm_process *p, uid_t owner, pid_t pid)
{
	uid_t uid;

	if (pid == p->pid || p->n->transport->owner(p->n->data, pid, &uid) < 0)
		return NONE;
	if (p->serves && (owner == ROOT || uid == owner))
		return SUSPECT;
	return uid == ROOT || uid == owner ? IF_SERVER : NONE;
}

/* 1: as above, of one that cannot even be begun with; 0: see whether there is s->other. */
static int consider(const struct nvrm_process *p, struct nvrm_sharing *s)
{
	struct nvrm_failure failure = { 0 };
	uint32_t at = s->next++;
	int r;

	if (!(s->suspects >> at & 1))
		return 0;
	r = nvrm_process_begin(p->n, (pid_t)s->pids[at], &s->other, &failure);
	if (r < 0)
		return is_shared(p, NULL, r, &failure);
	s->other->plain = true;
	return 0;
}

/* 1: there is a page with processes to be asked about; 0: all have been gone through. */
static int next_page(const struct nvrm_process *p, struct nvrm_sharing *s, unsigned int *left)
{
	uint32_t pids[NVRM_SHARING_PAGE];

	s->n = s->next = 0;
	s->suspects = 0;
	s->asked = false;
	while (s->n == 0 && s->position != NVRM_LIST_END) {
		int n;

		if (*left == 0)
			return -EINPROGRESS;
		n = p->n->transport->list_numbers(p->n->data, "", &s->position, pids,
						  MIN(*left, NVRM_SHARING_PAGE));
		if (n < 0)
			return n;
		*left -= MAX(1u, (unsigned int)n);
		for (int i = 0; i < n; i++) {
			enum interest interest = interest_in(p, s->owner, (pid_t)pids[i]);

			if (interest == SUSPECT)
				s->suspects |= 1ull << s->n;
			if (interest != NONE)
				s->pids[s->n++] = pids[i];
		}
	}
	return s->n > 0;
}

/* Of those that are @p's user's or root's. */
static int ask_servers(const struct nvrm_process *p, struct nvrm_question *q, const uint32_t *pids,
		       uint32_t n_pids)
{
	struct nvrm_words words = { .what = NVRM_ASK_SERVERS, .n = n_pids };

	if (q->state == NVRM_UNASKED) {
		memcpy(words.numbers, pids, n_pids * sizeof(*pids));
		nvrm_question_about(p->n, q, p->pid, &words);
	}
	return nvrm_ask(p->n, q);
}

/* Suspects are not asked for what they look like, unless others are. */
static int ask_page(const struct nvrm_process *p, struct nvrm_sharing *s, struct nvrm_question *q)
{
	bool all = s->suspects == UINT64_MAX >> (NVRM_SHARING_PAGE - s->n);
	int r = all ? 0 : ask_servers(p, q, s->pids, s->n);

	if (r < 0)
		return r;
	if (!all)
		s->suspects |= q->words.servers;
	s->asked = true;
	return 0;
}

/* 1, 0, -EINPROGRESS or -errno */
static int compare_with_all(const struct nvrm_process *p, struct nvrm_sharing *s,
			    struct nvrm_question *q, unsigned int *left)
{
	for (;;) {
		int r = s->other ? look_into_other(p, s, left) : 0;

		if (r == 0 && s->next == s->n) {
			r = next_page(p, s, left);
			if (r <= 0)
				return r;
			r = 0;
		}
		if (r == 0 && !s->asked)
			r = ask_page(p, s, q);
		if (r == 0)
			r = consider(p, s);
		if (r != 0)
			return r;
	}
}

static int begin(struct nvrm_process *p, struct nvrm_sharing *s, struct nvrm_question *q)
{
	uint32_t pid = (uint32_t)p->pid;
	int r = p->n->transport->owner(p->n->data, p->pid, &s->owner);

	if (r >= 0)
		r = ask_servers(p, q, &pid, 1);
	if (r < 0)
		return r;
	p->serves = q->words.servers;
	s->begun = true;
	return 0;
}

int nvrm_check_shared(struct nvrm_process *p, struct nvrm_sharing *s, struct nvrm_question *q,
		      unsigned int *left, struct nvrm_failure *ret_failure)
{
	int r = s->begun ? 0 : begin(p, s, q);

	if (r >= 0)
		r = compare_with_all(p, s, q, left);
	if (r == -EINPROGRESS || r == 0)
		return r;
	if (r < 0)
		return nvrm_fail(ret_failure, r, NVRM_WHY_SYSTEM, "looking for MPS");
	return nvrm_fail(ret_failure, -EOPNOTSUPP, NVRM_WHY_SHARED, NULL);
}

void nvrm_sharing_done(struct nvrm_sharing *s)
{
	nvrm_process_close(steal_ptr(&s->other));
}
