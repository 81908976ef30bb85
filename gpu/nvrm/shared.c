/* SPDX-License-Identifier: MIT */
/*
 * Under MPS the processes of a user work through one server's context: seen through any of them,
 * the hardware's group is the same. To take one off would take all off.
 */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/look.h"
#include "util/macros.h"

/* The names of server and control daemon are longer than the kernel keeps: both read so. */
static bool is_mps(struct nvrm *n, pid_t pid)
{
	static const char name[] = "nvidia-cuda-mps";
	struct nvrm_ident ident;

	return nvrm_identify(n, pid, &ident) >= 0 && ident.state != 'Z' &&
	       !strncmp(ident.comm, name, sizeof(name) - 1);
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

/* One that cannot be looked at may be the server of this one. */
static bool is_server(const struct nvrm_process *p, const struct nvrm_process *other, int r,
		      const struct nvrm_failure *failure)
{
	if (r >= 0)
		return share_a_group(p, other);
	return failure->why != NVRM_WHY_NO_CONTEXT && failure->why != NVRM_WHY_EXITED;
}

/* 1: it is the server of this one; 0: it is not. */
static int look_into_other(const struct nvrm_process *p, struct nvrm_sharing *s, unsigned int *left)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_process_look(s->other, left, &failure);

	if (r == -EINPROGRESS)
		return r;
	r = is_server(p, s->other, r, &failure);
	nvrm_sharing_done(s);
	return r;
}

/* As if it had been looked into and could not be. */
static int begin_other(const struct nvrm_process *p, struct nvrm_sharing *s, pid_t pid)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_process_begin_plain(p->n, pid, &s->other, &failure);

	return r < 0 ? is_server(p, NULL, r, &failure) : 0;
}

/* 1: there is one, in *ret; 0: there are no more. */
static int next_pid(struct nvrm *n, struct nvrm_sharing *s, pid_t *ret)
{
	while (s->next == s->n) {
		if (s->position == NVRM_LIST_END)
			return 0;
		s->next = 0;
		s->n = n->transport->files->list(n->data, "", &s->position, s->pids,
						 NVRM_SHARING_PAGE);
		if (s->n < 0)
			return s->n;
	}
	*ret = (pid_t)s->pids[s->next++];
	return 1;
}

static int find_server(struct nvrm_process *p, struct nvrm_sharing *s, unsigned int *left)
{
	for (;;) {
		pid_t pid;
		int r = s->other ? look_into_other(p, s, left) : 0;

		if (r != 0)
			return r;
		if (*left == 0)
			return -EINPROGRESS;
		(*left)--;
		r = next_pid(p->n, s, &pid);
		if (r > 0)
			r = pid != p->pid && is_mps(p->n, pid) ? begin_other(p, s, pid) : 0;
		else
			return r;
		if (r != 0)
			return r;
	}
}

int nvrm_check_shared(struct nvrm_process *p, struct nvrm_sharing *s, unsigned int *left,
		      struct nvrm_failure *ret_failure)
{
	int r = is_mps(p->n, p->pid) ? 1 : find_server(p, s, left);

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
