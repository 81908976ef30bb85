/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/machine.h"
#include "util/macros.h"

#define AGAIN_FIRST_NS (NSEC_PER_SEC / 4)
#define AGAIN_LAST_NS (30 * NSEC_PER_SEC)
#define USER_AGAIN_NS (3 * NSEC_PER_SEC) /* whether it still has the GPU open */

struct seen {
	pid_t pid;
	uint64_t start_ticks;
	bool uses_gpu;
	uint64_t wait_ns, due_ns; /* its descriptors are looked at again then */
};

struct nvrm_finder {
	struct nvrm *n;
	struct seen *all; /* ascending by pid */
	size_t n_all;
};

int nvrm_finder_new(struct nvrm *n, struct nvrm_finder **ret)
{
	struct nvrm_finder *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->n = n;
	*ret = f;
	return 0;
}

void nvrm_finder_free(struct nvrm_finder *f)
{
	if (!f)
		return;
	free(f->all);
	free(f);
}

static int by_pid(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void look(struct nvrm *n, struct seen *s, uint64_t now_ns)
{
	s->uses_gpu = nvrm_has_gpu_open(n, s->pid) > 0;
	if (s->uses_gpu) {
		s->wait_ns = 0;
		s->due_ns = now_ns + USER_AGAIN_NS;
		return;
	}
	s->wait_ns = s->wait_ns ? MIN(s->wait_ns * 2, AGAIN_LAST_NS) : AGAIN_FIRST_NS;
	s->due_ns = now_ns + s->wait_ns;
}

/* Who is looked at seldom is not asked for its name either: that alone would cost the most. */
static bool update(struct nvrm *n, struct seen *s, uint64_t now_ns)
{
	struct nvrm_ident ident;

	if (!s->uses_gpu && now_ns < s->due_ns)
		return true;
	if (nvrm_identify(n, s->pid, &ident) < 0 || ident.state == 'Z' || ident.state == 'X')
		return false;
	if (ident.start_ticks != s->start_ticks)
		*s = (struct seen){ .pid = s->pid, .start_ticks = ident.start_ticks };
	if (now_ns >= s->due_ns)
		look(n, s, now_ns);
	return true;
}

int nvrm_finder_list(struct nvrm_finder *f, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *pids = NULL;
	uint64_t now_ns = f->n->transport->now_ns(f->n->data);
	struct seen *all;
	size_t n_all = 0, users = 0;
	int n = nvrm_list_pids(f->n, &pids);

	if (n < 0)
		return n;
	all = calloc((size_t)n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		struct seen key = { .pid = pids[i] }, *known = NULL, *s = &all[n_all];

		if (f->n_all)
			known = bsearch(&key, f->all, f->n_all, sizeof(key), by_pid);
		*s = known ? *known : key;
		if (!update(f->n, s, now_ns))
			continue;
		n_all++;
		if (!s->uses_gpu)
			continue;
		if (users < max)
			ret[users] = s->pid;
		users++;
	}
	free(f->all);
	f->all = all;
	f->n_all = n_all;
	return (int)users;
}
