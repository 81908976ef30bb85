/* SPDX-License-Identifier: MIT */
/*
 * New processes at once: a thread hears of births and of GPUs that are opened, and finds who did
 * so. The owner is told when others than before use one, and waits for nothing that lies in /proc.
 */
#include <errno.h>
#include <string.h>

#include "gpu/helpers/births.h"
#include "gpu/nvrm/backend_internal.h"
#include "gpu/scout.h"
#include "util/clock.h"

#define BORN_MOST 1024u /* at a time; where there are more all are listed */
#define LISTED_MOST 16384u

struct follow {
	struct nvrm_finder *finder; /* the thread's from when that is there on */
	struct births *births; /* the same */
	uint64_t go_on_ns; /* when it is to go on by itself */
	struct scout *scout;

	pthread_mutex_t lock;
	pid_t pids[LISTED_MOST]; /* as they are known by now */
	int n; /* in all, or -errno */
	size_t n_unseen;
	int blind; /* -errno: some nodes are not watched */
};

/* ---- the thread's ---- */

static bool publish(struct follow *w, int error)
{
	bool changed;

	pthread_mutex_lock(&w->lock);
	changed = nvrm_finder_has_changed(w->finder) || (error < 0) != (w->n < 0);
	if (error < 0)
		w->n = error;
	else if (changed)
		w->n = nvrm_finder_list(w->finder, w->pids, LISTED_MOST);
	w->n_unseen = nvrm_finder_unseen(w->finder);
	w->blind = nvrm_finder_blind(w->finder);
	pthread_mutex_unlock(&w->lock);
	return changed;
}

/* A dozen times a second: it costs a system call, as long as nobody is born and nothing opened. */
static bool look(void *user, bool heard, uint64_t *ret_wait_ns)
{
	struct follow *w = user;
	pid_t pids[BORN_MOST];
	int n = births_take(w->births, pids, BORN_MOST), r;
	uint64_t now_ns = monotonic_ns(), wait_ns = 0;

	*ret_wait_ns = MIN(SCOUT_CALM_NS, w->go_on_ns > now_ns ? w->go_on_ns - now_ns : 0);
	if (n == 0 && !heard && now_ns < w->go_on_ns)
		return false;
	if (n < 0)
		nvrm_finder_list_again(w->finder);
	else
		nvrm_finder_born(w->finder, pids, (size_t)n);
	r = nvrm_finder_go_on(w->finder, &wait_ns);
	if (r < 0)
		wait_ns = SCOUT_CALM_NS;
	w->go_on_ns = now_ns + wait_ns;
	*ret_wait_ns = MIN(SCOUT_CALM_NS, wait_ns);
	return publish(w, r);
}

/* ---- the owner's ---- */

static void follow_free(struct follow *w)
{
	if (!w)
		return;
	scout_end(w->scout);
	births_free(w->births);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int begin(struct backend *b, struct follow *w)
{
	const struct nvrm *n = b->finder_n;
	struct scout_options options = { .look = look, .user = w };
	uint32_t none;
	int r = n->transport->opened(n->data, &none, 1);

	if (r >= 0)
		r = births_new("/proc", &w->births);
	if (r < 0)
		return r;
	w->finder = b->finder;
	nvrm_finder_follow(b->finder);
	options.fd = n->transport->opened_fd(n->data);
	options.answers_fd = nvrm_answers_fd(n);
	r = scout_start(&options, &w->scout);
	return r < 0 ? r : acting_poll(&b->base, ACTING_OTHERS, scout_fd(w->scout));
}

int nvrm_follow_begin(struct backend *b)
{
	struct follow *w;

	b->deaf = -ENOSYS;
	if (!b->finder_n || !b->finder_n->transport->opened || nvrm_answers_fd(b->finder_n) < 0)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	b->deaf = begin(b, w);
	b->blind = MIN(b->deaf, 0);
	if (b->deaf >= 0)
		b->follow = w;
	else
		follow_free(w);
	return b->deaf == -ENOMEM ? b->deaf : 0;
}

void nvrm_follow_end(struct backend *b)
{
	follow_free(steal_ptr(&b->follow));
}

int nvrm_follow_came(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;

	if (!b->follow)
		return b->deaf;
	b->came |= scout_told(b->follow->scout);
	return b->came;
}

static int list_followed(struct backend *b, pid_t *ret, size_t max)
{
	struct follow *w = b->follow;
	int n;

	if (max > 0)
		b->came = false;
	pthread_mutex_lock(&w->lock);
	n = w->n;
	if (n > 0 && max > 0)
		memcpy(ret, w->pids, MIN(MIN((size_t)n, max), LISTED_MOST) * sizeof(*ret));
	pthread_mutex_unlock(&w->lock);
	return n;
}

int nvrm_follow_processes(struct gpu_backend *base, pid_t *ret, size_t max)
{
	struct backend *b = (struct backend *)base;
	int r;

	if (b->follow)
		return list_followed(b, ret, max);
	r = nvrm_finder_look(b->finder);
	return r < 0 ? r : nvrm_finder_list(b->finder, ret, max);
}

/* ---- what goes unseen ---- */

static size_t count_unseen(struct backend *b, int *ret_blind)
{
	struct follow *w = b->follow;
	size_t n;

	*ret_blind = b->blind;
	if (!w)
		return nvrm_finder_unseen(b->finder);
	pthread_mutex_lock(&w->lock);
	n = w->n_unseen;
	*ret_blind = w->blind;
	pthread_mutex_unlock(&w->lock);
	return n;
}

const char *nvrm_follow_problem(struct gpu_backend *base)
{
	struct backend *b = (struct backend *)base;
	int blind = 0;
	size_t n = count_unseen(b, &blind);

	if (n > 0)
		snprintf(b->problem, sizeof(b->problem),
			 "%zu process%s cannot be looked at: nobody knows whether %s a GPU open", n,
			 n == 1 ? "" : "es", n == 1 ? "it has" : "they have");
	else if (blind < 0)
		snprintf(b->problem, sizeof(b->problem),
			 "nobody tells when a GPU is opened (inotify: %s): who begins to use one "
			 "may be seen half a minute later",
			 strerror(-blind));
	return n > 0 || blind < 0 ? b->problem : NULL;
}
