/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>

#include "gpu/nvrm/internal.h"
#include "gpu/nvrm/machine.h"
#include "gpu/nvrm/scan.h"
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
/* For answers: readers that are there have them in less. What comes later counts the next time. */
#define WAIT_NS (2 * NSEC_PER_MSEC)

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
	r = nvrm_scan_new(n, &f->scan);
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

static uint64_t now_ns(const struct nvrm_finder *f)
{
	return f->n->transport->now_ns(f->n->data);
}

static int look(struct nvrm_finder *f, const struct nvrm_scan_budget *budget)
{
	return nvrm_scan_step(f->scan, now_ns(f), budget);
}

/* Of the machine, on which answers are made, whatever else is played. */
static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void wait_for_answers(struct nvrm_finder *f)
{
	const struct nvrm_transport *t = f->n->transport;
	struct pollfd p = { .fd = t->answers_fd ? t->answers_fd(f->n->data) : -1,
			    .events = POLLIN };
	uint64_t until_ns = clock_ns() + WAIT_NS, at_ns;

	if (p.fd < 0)
		return;
	t->hear(f->n->data);
	while (nvrm_scan_take(f->scan, now_ns(f)) > 0 && (at_ns = clock_ns()) < until_ns) {
		struct timespec left = { .tv_nsec = (long)(until_ns - at_ns) };

		ppoll(&p, 1, &left, NULL);
		t->hear(f->n->data);
	}
}

int nvrm_finder_look(struct nvrm_finder *f)
{
	bool first = f->looks < FIRST_LOOKS;
	int r;

	f->looks += first;
	r = look(f, first ? &first_look : &one_look);
	wait_for_answers(f);
	return r;
}

int nvrm_finder_look_at_all(struct nvrm_finder *f)
{
	return look(f, &no_limit);
}

size_t nvrm_finder_unseen(const struct nvrm_finder *f)
{
	return nvrm_scan_unseen(f->scan);
}

int nvrm_finder_list(struct nvrm_finder *f, pid_t *ret, size_t max)
{
	return nvrm_scan_list(f->scan, ret, max);
}
