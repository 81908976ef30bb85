/* SPDX-License-Identifier: MIT */
/*
 * Finds the processes that have a GPU open, by the names of their descriptors in /proc, a step at a
 * time. A step costs no more than its budget, however many processes and descriptors there are, and
 * users take turns in it: who has 100,000 descriptors waits for them himself.
 *
 * Who is there and whose it is the kernel tells. What descriptors are is a question (question.h),
 * which may be answered later or, where the process sees to that, never.
 *
 * Who is told of births and of openings (nvrm_finder_follow) need not look again and again at
 * processes that do not use a GPU: those are asked when somebody has opened one.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "gpu/nvrm/finder_internal.h"
#include "util/array.h"
#include "util/clock.h"

#define PAGE 1024u /* processes listed at once */
#define LIST_NS (10 * NSEC_PER_SEC) /* between two lists, where births are told */

/* To be gone on with where nothing is told: somebody is young, uses a GPU, nobody does. */
#define AGAIN_SOON_NS (40 * NSEC_PER_MSEC)
#define AGAIN_NS (250 * NSEC_PER_MSEC)
#define AGAIN_ALONE_NS NSEC_PER_SEC

/*
 * Of one look. A link that nobody has read before takes 5 to 20 us, so these are some milliseconds,
 * and tens of them at the beginning, when nobody is held yet and all processes are new. To list
 * processes is cheap; on most machines these are all, so that a new one is seen at once.
 */
static const struct nvrm_finder_budget one_look = { .processes = 16384, .descriptors = 512 };
static const struct nvrm_finder_budget first_look = { .processes = 16384, .descriptors = 2048 };
static const struct nvrm_finder_budget no_limit = { UINT_MAX, UINT_MAX };

#define FIRST_LOOKS 8u
/* For answers: readers that are there have them in less. What comes later counts the next time. */
#define WAIT_NS (2 * NSEC_PER_MSEC)

/* ---- users ---- */

static struct user *user_of(struct nvrm_finder *f, uid_t uid)
{
	struct user *u;

	TAILQ_FOREACH(u, &f->users, link)
		if (u->uid == uid)
			return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	TAILQ_INIT(&u->processes);
	TAILQ_INSERT_TAIL(&f->users, u, link);
	f->n_users++;
	return u;
}

static void join(struct seen *x, struct user *u)
{
	x->user = u;
	TAILQ_INSERT_TAIL(&u->processes, x, of_user);
	u->n++;
	u->n_gpu += x->uses_gpu;
}

static void leave(struct nvrm_finder *f, struct seen *x)
{
	struct user *u = x->user;

	TAILQ_REMOVE(&u->processes, x, of_user);
	u->n--;
	u->n_gpu -= x->uses_gpu;
	if (u->n > 0)
		return;
	TAILQ_REMOVE(&f->users, u, link);
	f->n_users--;
	free(u);
}

void finder_set_uses_gpu(struct nvrm_finder *f, struct seen *x, bool uses)
{
	size_t before = x->uses_gpu, now = uses;

	f->n_gpu = f->n_gpu - before + now;
	x->user->n_gpu = x->user->n_gpu - before + now;
	x->uses_gpu = uses;
	f->changed |= before != now;
}

/* ---- processes ---- */

static int owner(const struct nvrm_finder *f, pid_t pid, uid_t *ret)
{
	return f->n->transport->owner(f->n->data, pid, ret);
}

/* Nothing is asked about it now. */
bool finder_follow_owner(struct nvrm_finder *f, struct seen *x)
{
	struct user *u;
	uid_t uid;
	int r = owner(f, x->pid, &uid);

	if (r < 0 || uid == x->user->uid)
		return r != -ENOENT;
	u = user_of(f, uid);
	if (!u)
		return true;
	leave(f, x);
	join(x, u);
	return true;
}

bool finder_is_gone(const struct nvrm_finder *f, const struct seen *x)
{
	uid_t uid;

	return owner(f, x->pid, &uid) == -ENOENT;
}

static struct seen *find(struct nvrm_finder *f, pid_t pid)
{
	struct seen *x;

	LIST_FOREACH(x, &f->buckets[(unsigned int)pid % BUCKETS], of_bucket)
		if (x->pid == pid)
			return x;
	return NULL;
}

static int meet(struct nvrm_finder *f, pid_t pid, uint64_t now_ns)
{
	struct seen *x = find(f, pid);
	struct user *u;
	uid_t uid;

	if (x) {
		x->round = f->round;
		return 0;
	}
	if (owner(f, pid, &uid) < 0)
		return 0; /* it has ended */
	x = calloc(1, sizeof(*x));
	u = x ? user_of(f, uid) : NULL;
	if (!u) {
		free(x);
		return -ENOMEM;
	}
	x->pid = pid;
	x->round = f->round;
	x->met_ns = now_ns;
	f->young_ns = now_ns ? now_ns + YOUNG_NS : f->young_ns;
	LIST_INSERT_HEAD(&f->buckets[(unsigned int)pid % BUCKETS], x, of_bucket);
	join(x, u);
	return 0;
}

static void forget(struct nvrm_finder *f, struct seen *x)
{
	finder_take_out(f, x);
	if (x->question)
		finder_end_question(f, x);
	f->n_unseen -= x->unseen;
	f->n_gpu -= x->uses_gpu;
	f->changed |= x->uses_gpu;
	LIST_REMOVE(x, of_bucket);
	leave(f, x);
	free(x);
}

static void forget_all_but(struct nvrm_finder *f, uint64_t round)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct seen *x = LIST_FIRST(&f->buckets[i]), *next;

		for (; x; x = next) {
			next = LIST_NEXT(x, of_bucket);
			if (x->round != round)
				forget(f, x);
		}
	}
}

/* Who is in a list that was read to its end is there, and nobody else. */
static int list_processes(struct nvrm_finder *f, unsigned int left, uint64_t now_ns)
{
	uint64_t met_ns = f->follows && f->list_ns ? now_ns : 0;
	uint32_t pids[PAGE];

	while (left > 0) {
		int n = f->n->transport->list_numbers(f->n->data, "", &f->position, pids,
						      MIN(left, PAGE));
		int r = 0;

		for (int i = 0; i < n && r >= 0; i++)
			r = pids[i] > 0 && pids[i] <= INT32_MAX ? meet(f, (pid_t)pids[i], met_ns) :
								  0;
		if (n < 0 || r < 0) {
			f->position = 0;
			return n < 0 ? n : r;
		}
		if (f->position == NVRM_LIST_END) {
			forget_all_but(f, f->round++);
			f->position = 0;
			f->listed = true;
			f->list_ns = now_ns + LIST_NS;
			return 0;
		}
		left -= (unsigned int)n;
	}
	return 0;
}

/* ---- looking ---- */

size_t nvrm_finder_unseen(const struct nvrm_finder *f)
{
	return f->n_unseen;
}

/* True: there is more to look at. */
static bool look_around(struct nvrm_finder *f, unsigned int budget, uint64_t now_ns)
{
	bool urgent, more;

	f->left = budget;
	finder_hear_nodes(f, now_ns);
	do {
		urgent = finder_look_around(f, true, now_ns);
		more = finder_look_around(f, false, now_ns);
	} while (finder_search(f, now_ns, !urgent, !more) && f->left > 1);
	return more;
}

int nvrm_finder_step(struct nvrm_finder *f, const struct nvrm_finder_budget *budget)
{
	uint64_t now_ns = nvrm_now_ns(f->n);
	int r;

	finder_take_answers(f, now_ns);
	f->listed = false;
	r = list_processes(f, budget->processes, now_ns);
	if (r < 0)
		return r;
	return look_around(f, budget->descriptors, now_ns) || !f->listed;
}

static const struct nvrm_finder_budget *next_budget(struct nvrm_finder *f)
{
	bool first = f->looks < FIRST_LOOKS;

	f->looks += first;
	return first ? &first_look : &one_look;
}

static void wait_for_answers(struct nvrm_finder *f)
{
	const struct nvrm_transport *t = f->n->transport;
	struct pollfd p = { .fd = nvrm_answers_fd(f->n), .events = POLLIN };
	/* Of the machine, on which answers are made, whatever else is played. */
	uint64_t until_ns = monotonic_ns() + WAIT_NS, at_ns;

	if (p.fd < 0)
		return;
	t->hear(f->n->data);
	while (finder_take_answers(f, nvrm_now_ns(f->n)) > 0 &&
	       (at_ns = monotonic_ns()) < until_ns) {
		struct timespec left = { .tv_nsec = (long)(until_ns - at_ns) };

		ppoll(&p, 1, &left, NULL);
		t->hear(f->n->data);
	}
}

int nvrm_finder_look(struct nvrm_finder *f)
{
	int r = nvrm_finder_step(f, next_budget(f));

	wait_for_answers(f);
	return r;
}

int nvrm_finder_look_at_all(struct nvrm_finder *f)
{
	return nvrm_finder_step(f, &no_limit);
}

/* ---- following ---- */

void nvrm_finder_follow(struct nvrm_finder *f)
{
	f->follows = true;
}

void nvrm_finder_born(struct nvrm_finder *f, const pid_t *pids, size_t n)
{
	uint64_t now_ns = nvrm_now_ns(f->n);

	for (size_t i = 0; i < n; i++)
		if (meet(f, pids[i], now_ns) < 0)
			nvrm_finder_list_again(f);
}

void nvrm_finder_list_again(struct nvrm_finder *f)
{
	f->list_ns = MIN(f->list_ns, 1);
}

static void hear(struct nvrm_finder *f)
{
	if (f->n->transport->hear)
		f->n->transport->hear(f->n->data);
}

/* Who is due at some time or other waits for somebody else, but for a second at most. */
static uint64_t next_ns(const struct nvrm_finder *f, uint64_t now_ns, bool more)
{
	uint64_t next = now_ns + (f->n_gpu ? AGAIN_NS : AGAIN_ALONE_NS);

	if (more || now_ns < f->young_ns)
		next = now_ns + AGAIN_SOON_NS;
	return MIN(next, finder_next_search(f));
}

int nvrm_finder_go_on(struct nvrm_finder *f, uint64_t *ret_wait_ns)
{
	const struct nvrm_finder_budget *budget = next_budget(f);
	uint64_t now_ns = nvrm_now_ns(f->n);
	bool more;
	int r = 0;

	hear(f);
	finder_take_answers(f, now_ns);
	if (now_ns >= f->list_ns)
		r = list_processes(f, budget->processes, now_ns);
	if (r < 0)
		return r;
	more = look_around(f, budget->descriptors, now_ns);
	if (!LIST_EMPTY(&f->asked) || finder_places_ask(f))
		hear(f); /* it sends what was asked */
	*ret_wait_ns = next_ns(f, now_ns, more);
	*ret_wait_ns = *ret_wait_ns > now_ns ? *ret_wait_ns - now_ns : 0;
	return 0;
}

bool nvrm_finder_has_changed(const struct nvrm_finder *f)
{
	return f->changed;
}

/* ---- telling ---- */

/* The most that every user may have of @max. */
static size_t share_of(const struct nvrm_finder *f, size_t max)
{
	const struct user *u;
	size_t share = 0, sum = 0;

	if (f->n_gpu <= max)
		return max;
	while (sum <= max) {
		share++;
		sum = 0;
		TAILQ_FOREACH(u, &f->users, link)
			sum += MIN(u->n_gpu, share);
	}
	return share - 1;
}

/* The lowest of them, so that the choice stays the same. */
static size_t list_user(const struct user *u, pid_t *all, size_t share)
{
	const struct seen *x;
	size_t n = 0;

	TAILQ_FOREACH(x, &u->processes, of_user)
		if (x->uses_gpu)
			all[n++] = x->pid;
	qsort(all, n, sizeof(*all), compare_u32);
	return MIN(n, share);
}

int nvrm_finder_list(struct nvrm_finder *f, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *all = calloc(f->n_gpu + 1, sizeof(*all));
	size_t share = share_of(f, max), n = 0;
	const struct user *u;

	if (!all)
		return -ENOMEM;
	TAILQ_FOREACH(u, &f->users, link)
		n += list_user(u, all + n, share);
	if (n > 0) {
		qsort(all, n, sizeof(*all), compare_u32);
		memcpy(ret, all, MIN(n, max) * sizeof(*all));
	}
	if (max > 0)
		f->changed = false;
	return (int)f->n_gpu;
}

/* ---- beginning and ending ---- */

int nvrm_finder_new(struct nvrm *n, struct nvrm_finder **ret)
{
	struct nvrm_finder *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->n = n;
	f->round = 1;
	TAILQ_INIT(&f->users);
	*ret = f;
	return 0;
}

void nvrm_finder_free(struct nvrm_finder *f)
{
	if (!f)
		return;
	forget_all_but(f, 0);
	finder_free_places(f);
	free(f);
}
