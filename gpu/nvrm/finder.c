/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/machine.h"
#include "util/macros.h"

/*
 * Of one look. A link that nobody has read before takes 5 to 20 us, so these are some milliseconds,
 * and tens of them at the beginning, when nobody is held yet and all processes are new. To list
 * processes is cheap; on most machines these are all, so that a new one is seen at once.
 */
static const struct nvrm_scan_budget one_look = { .processes = 16384, .descriptors = 512 };
static const struct nvrm_scan_budget first_look = { .processes = 16384, .descriptors = 2048 };
static const struct nvrm_scan_budget no_limit = { .processes = UINT_MAX, .descriptors = UINT_MAX };

#define FIRST_LOOKS 8u

struct nvrm_finder {
	struct nvrm *n;
	struct nvrm_scan *scan;
	unsigned int looks;
};

int nvrm_finder_new(struct nvrm *n, struct nvrm_finder **ret)
{
	_cleanup_free_ struct nvrm_finder *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->n = n;
	r = nvrm_scan_new(n->transport->files, n->data, &f->scan);
	if (r < 0)
		return r;
	*ret = steal_ptr(&f);
	return 0;
}

void nvrm_finder_free(struct nvrm_finder *f)
{
	if (!f)
		return;
	nvrm_scan_free(f->scan);
	free(f);
}

static int look(struct nvrm_finder *f, const struct nvrm_scan_budget *budget)
{
	return nvrm_scan_step(f->scan, f->n->transport->now_ns(f->n->data), budget);
}

int nvrm_finder_look(struct nvrm_finder *f)
{
	bool first = f->looks < FIRST_LOOKS;

	f->looks += first;
	return look(f, first ? &first_look : &one_look);
}

int nvrm_finder_look_at_all(struct nvrm_finder *f)
{
	return look(f, &no_limit);
}

int nvrm_finder_list(struct nvrm_finder *f, pid_t *ret, size_t max)
{
	return nvrm_scan_list(f->scan, ret, max);
}
