/* SPDX-License-Identifier: MIT */
/*
 * Under MPS the processes of a user work through one server's context: seen through any of them,
 * the hardware's group is the same. To take one off would take all off.
 */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
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
static bool is_server_of(struct nvrm_process *p, pid_t server)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_process *s;
	bool shared;

	if (nvrm_process_find(p->n, server, &s, &failure) < 0)
		return failure.why != NVRM_WHY_NO_CONTEXT && failure.why != NVRM_WHY_EXITED;
	shared = share_a_group(p, s);
	nvrm_process_close(s);
	return shared;
}

int nvrm_check_shared(struct nvrm_process *p, struct nvrm_failure *ret_failure)
{
	_cleanup_free_ pid_t *pids = NULL;
	bool shared = is_mps(p->n, p->pid);
	int n = nvrm_list_pids(p->n, &pids);

	if (n < 0)
		return nvrm_fail(ret_failure, n, NVRM_WHY_SYSTEM, "looking for MPS");
	for (int i = 0; i < n && !shared; i++) {
		if (pids[i] != p->pid && is_mps(p->n, pids[i]))
			shared = is_server_of(p, pids[i]);
	}
	if (!shared)
		return 0;
	return nvrm_fail(ret_failure, -EOPNOTSUPP, NVRM_WHY_SHARED, NULL);
}
