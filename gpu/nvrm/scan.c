/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/scan.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "gpu/nvrm/rm.h"
#include "util/array.h"
#include "util/macros.h"

#define PAGE 1024u /* processes listed at once */
#define CHUNK 64u /* descriptors read before it is another user's turn */
#define CHUNK_OF_OTHERS 2048u /* the same, of a reader: some milliseconds */
#define BUCKETS 4096u

/* Who has no GPU open is looked at again ever more seldom. */
#define AGAIN_FIRST_NS (NSEC_PER_SEC / 4)
#define AGAIN_LAST_NS (30 * NSEC_PER_SEC)

struct user;

struct seen { /* a process */
	LIST_ENTRY(seen) of_bucket;
	TAILQ_ENTRY(seen) of_user;
	struct user *user;
	pid_t pid;
	uint64_t round; /* of listing, in which it was there */
	bool uses_gpu;
	uint32_t gpu_fd; /* by which that is known */
	uint64_t position; /* of the look that is under way; 0: none is */
	uint64_t step; /* in which a look began last */
	uint64_t wait_ns, due_ns; /* it is looked at again then */
	LIST_ENTRY(seen) of_asked;
	struct nvrm_question *question; /* that is under way, or NULL */
	bool unseen; /* nothing came of the last one */
};

struct user {
	TAILQ_ENTRY(user) link;
	TAILQ_HEAD(, seen) processes; /* whose turn it is next first */
	uid_t uid;
	size_t n, n_gpu;
	uint64_t step; /* in which all its processes have been looked at */
};

struct nvrm_scan {
	struct nvrm *n;
	LIST_HEAD(, seen) asked;
	size_t n_unseen;
	LIST_HEAD(, seen) buckets[BUCKETS];
	TAILQ_HEAD(, user) users; /* the same */
	size_t n_users, n_gpu;
	uint64_t round, position; /* of listing */
	uint64_t step;
	bool listed; /* to the end, in this step */
	unsigned int left; /* of the budget */
};

/* ---- users ---- */

static struct user *user_of(struct nvrm_scan *s, uid_t uid)
{
	struct user *u;

	TAILQ_FOREACH(u, &s->users, link)
		if (u->uid == uid)
			return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	TAILQ_INIT(&u->processes);
	TAILQ_INSERT_TAIL(&s->users, u, link);
	s->n_users++;
	return u;
}

static void join(struct seen *x, struct user *u)
{
	x->user = u;
	TAILQ_INSERT_TAIL(&u->processes, x, of_user);
	u->n++;
	u->n_gpu += x->uses_gpu;
}

static void leave(struct nvrm_scan *s, struct seen *x)
{
	struct user *u = x->user;

	TAILQ_REMOVE(&u->processes, x, of_user);
	u->n--;
	u->n_gpu -= x->uses_gpu;
	if (u->n > 0)
		return;
	TAILQ_REMOVE(&s->users, u, link);
	s->n_users--;
	free(u);
}

static void set_uses_gpu(struct nvrm_scan *s, struct seen *x, bool uses)
{
	size_t before = x->uses_gpu, now = uses;

	s->n_gpu = s->n_gpu - before + now;
	x->user->n_gpu = x->user->n_gpu - before + now;
	x->uses_gpu = uses;
}

/* ---- processes ---- */

static int owner(const struct nvrm_scan *s, pid_t pid, uid_t *ret)
{
	return s->n->transport->owner(s->n->data, pid, ret);
}

static struct seen *find(struct nvrm_scan *s, pid_t pid)
{
	struct seen *x;

	LIST_FOREACH(x, &s->buckets[(unsigned int)pid % BUCKETS], of_bucket)
		if (x->pid == pid)
			return x;
	return NULL;
}

static int meet(struct nvrm_scan *s, pid_t pid)
{
	struct seen *x = find(s, pid);
	struct user *u;
	uid_t uid;

	if (x) {
		x->round = s->round;
		return 0;
	}
	if (owner(s, pid, &uid) < 0)
		return 0; /* it has ended */
	x = calloc(1, sizeof(*x));
	u = x ? user_of(s, uid) : NULL;
	if (!u) {
		free(x);
		return -ENOMEM;
	}
	x->pid = pid;
	x->round = s->round;
	LIST_INSERT_HEAD(&s->buckets[(unsigned int)pid % BUCKETS], x, of_bucket);
	join(x, u);
	return 0;
}

static void end_question(struct nvrm_scan *s, struct seen *x)
{
	nvrm_forget(s->n, x->question);
	LIST_REMOVE(x, of_asked);
	free(steal_ptr(&x->question));
}

static void forget(struct nvrm_scan *s, struct seen *x)
{
	if (x->question)
		end_question(s, x);
	s->n_unseen -= x->unseen;
	s->n_gpu -= x->uses_gpu;
	LIST_REMOVE(x, of_bucket);
	leave(s, x);
	free(x);
}

static void forget_all_but(struct nvrm_scan *s, uint64_t round)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct seen *x = LIST_FIRST(&s->buckets[i]), *next;

		for (; x; x = next) {
			next = LIST_NEXT(x, of_bucket);
			if (x->round != round)
				forget(s, x);
		}
	}
}

static int list(struct nvrm_scan *s, uint32_t *ret, size_t max)
{
	return s->n->transport->list_numbers(s->n->data, "", &s->position, ret, max);
}

/* Who is in a list that was read to its end is there, and nobody else. */
static int list_processes(struct nvrm_scan *s, unsigned int left)
{
	uint32_t pids[PAGE];

	while (left > 0) {
		int n = list(s, pids, MIN(left, PAGE)), r = 0;

		for (int i = 0; i < n && r >= 0; i++)
			r = pids[i] > 0 && pids[i] <= INT32_MAX ? meet(s, (pid_t)pids[i]) : 0;
		if (n < 0 || r < 0) {
			s->position = 0;
			return n < 0 ? n : r;
		}
		if (s->position == NVRM_LIST_END) {
			forget_all_but(s, s->round++);
			s->position = 0;
			s->listed = true;
			return 0;
		}
		left -= (unsigned int)n;
	}
	return 0;
}

/* ---- looking ---- */

/* It may have become another user's since. */
static void follow_owner(struct nvrm_scan *s, struct seen *x)
{
	struct user *u;
	uid_t uid;

	if (owner(s, x->pid, &uid) < 0 || uid == x->user->uid)
		return;
	u = user_of(s, uid);
	if (!u)
		return;
	leave(s, x);
	join(x, u);
}

/* Others read for us: what they have read is not of our budget. */
static bool by_others(const struct nvrm_scan *s)
{
	const struct nvrm_transport *t = s->n->transport;

	return t->answers_fd && t->answers_fd(s->n->data) >= 0;
}

static void set_unseen(struct nvrm_scan *s, struct seen *x, bool unseen)
{
	s->n_unseen = s->n_unseen - x->unseen + unseen;
	x->unseen = unseen;
}

static void take(struct nvrm_scan *s, struct seen *x, int r, uint64_t now_ns)
{
	const struct nvrm_words *w = &x->question->words;

	set_unseen(s, x, r < 0); /* what the process itself is the reason of is no error */
	x->position = r == 0 && w->position != NVRM_LIST_END ? w->position : 0;
	if (x->position)
		return;
	if (r >= 0) /* else we are short of something: it is not known */
		set_uses_gpu(s, x, r > 0);
	if (r > 0)
		x->gpu_fd = w->numbers[0];
	x->wait_ns = x->wait_ns ? MIN(x->wait_ns * 2, AGAIN_LAST_NS) : AGAIN_FIRST_NS;
	if (r > 0)
		x->wait_ns = 0;
	x->due_ns = now_ns + x->wait_ns;
}

static int ask(struct nvrm_scan *s, struct seen *x)
{
	struct nvrm_question *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->asker = q->blamed = x->pid;
	q->user = x->user->uid;
	q->words = (struct nvrm_words){
		.what = NVRM_ASK_GPU,
		.pid = x->pid,
		.position = x->position,
		.left = by_others(s) ? CHUNK_OF_OTHERS : MIN(s->left, CHUNK),
		.n = x->uses_gpu,
		.numbers = { x->gpu_fd },
	};
	x->question = q;
	LIST_INSERT_HEAD(&s->asked, x, of_asked);
	return nvrm_ask(s->n, q);
}

static void look(struct nvrm_scan *s, struct seen *x, uint64_t now_ns)
{
	int r;

	s->left--;
	x->step = s->step;
	if (!x->position)
		follow_owner(s, x);
	r = ask(s, x);
	if (r == -EINPROGRESS || !x->question)
		return;
	if (!by_others(s))
		s->left -= MIN(s->left, CHUNK) - x->question->words.left;
	take(s, x, r, now_ns);
	end_question(s, x);
}

size_t nvrm_scan_take(struct nvrm_scan *s, uint64_t now_ns)
{
	struct seen *x = LIST_FIRST(&s->asked), *next;
	size_t n = 0;

	for (; x; x = next) {
		int r = nvrm_ask(s->n, x->question);

		next = LIST_NEXT(x, of_asked);
		n += r == -EINPROGRESS;
		if (r == -EINPROGRESS)
			continue;
		take(s, x, r, now_ns);
		end_question(s, x);
	}
	return n;
}

size_t nvrm_scan_unseen(const struct nvrm_scan *s)
{
	return s->n_unseen;
}

static bool is_due(const struct nvrm_scan *s, const struct seen *x, uint64_t now_ns)
{
	if (x->question)
		return false;
	if (x->position)
		return true;
	return x->step != s->step && (x->uses_gpu || now_ns >= x->due_ns);
}

/* The next one of the user that is to be looked at. False: there is none in this step. */
static bool visit(struct nvrm_scan *s, struct user *u, uint64_t now_ns)
{
	for (size_t i = 0; i < u->n && u->step != s->step; i++) {
		struct seen *x = TAILQ_FIRST(&u->processes);

		TAILQ_REMOVE(&u->processes, x, of_user);
		TAILQ_INSERT_TAIL(&u->processes, x, of_user);
		if (!is_due(s, x, now_ns))
			continue;
		look(s, x, now_ns);
		return true;
	}
	u->step = s->step;
	return false;
}

/* One look of each user after the other. True: there is more to look at. */
static bool look_around(struct nvrm_scan *s, uint64_t now_ns)
{
	size_t idle = 0;

	s->step++;
	while (s->left > 1 && idle < s->n_users) { /* with less nothing could be read */
		struct user *u = TAILQ_FIRST(&s->users);

		TAILQ_REMOVE(&s->users, u, link);
		TAILQ_INSERT_TAIL(&s->users, u, link);
		idle = visit(s, u, now_ns) ? 0 : idle + 1;
	}
	return idle < s->n_users;
}

int nvrm_scan_step(struct nvrm_scan *s, uint64_t now_ns, const struct nvrm_scan_budget *budget)
{
	int r;

	nvrm_scan_take(s, now_ns);
	s->listed = false;
	r = list_processes(s, budget->processes);
	if (r < 0)
		return r;
	s->left = budget->descriptors;
	return look_around(s, now_ns) || !s->listed;
}

/* ---- telling ---- */

/* The most that every user may have of @max. */
static size_t share_of(const struct nvrm_scan *s, size_t max)
{
	const struct user *u;
	size_t share = 0, sum = 0;

	if (s->n_gpu <= max)
		return max;
	while (sum <= max) {
		share++;
		sum = 0;
		TAILQ_FOREACH(u, &s->users, link)
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

int nvrm_scan_list(const struct nvrm_scan *s, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *all = calloc(s->n_gpu + 1, sizeof(*all));
	size_t share = share_of(s, max), n = 0;
	const struct user *u;

	if (!all)
		return -ENOMEM;
	TAILQ_FOREACH(u, &s->users, link)
		n += list_user(u, all + n, share);
	if (n > 0) {
		qsort(all, n, sizeof(*all), compare_u32);
		memcpy(ret, all, MIN(n, max) * sizeof(*all));
	}
	return (int)s->n_gpu;
}

/* ---- beginning and ending ---- */

int nvrm_scan_new(struct nvrm *n, struct nvrm_scan **ret)
{
	struct nvrm_scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->n = n;
	s->round = 1;
	TAILQ_INIT(&s->users);
	*ret = s;
	return 0;
}

void nvrm_scan_free(struct nvrm_scan *s)
{
	if (!s)
		return;
	forget_all_but(s, 0);
	free(s);
}
