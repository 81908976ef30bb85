/* SPDX-License-Identifier: MIT */
/*
 * Finds the processes that have a GPU open, by the names of their descriptors in /proc, a step at a
 * time. A step costs no more than its budget, however many processes and descriptors there are, and
 * users take turns in it: who has 100,000 descriptors waits for them himself.
 *
 * Who is there and whose it is the kernel tells. What descriptors are is a question (question.h),
 * which may be answered later or, where the process sees to that, never.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/queue.h>

#include "gpu/nvrm/machine.h"
#include "util/array.h"
#include "util/clock.h"

#define PAGE 1024u /* processes listed at once */
#define CHUNK 64u /* descriptors read before it is another user's turn */
#define CHUNK_OF_OTHERS 2048u /* the same, of a reader: some milliseconds */
#define BUCKETS 4096u

/* Who has no GPU open is looked at again ever more seldom. */
#define AGAIN_FIRST_NS (NSEC_PER_SEC / 4)
#define AGAIN_LAST_NS (30 * NSEC_PER_SEC)

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

struct nvrm_finder {
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
	unsigned int looks;
};

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

static void set_uses_gpu(struct nvrm_finder *f, struct seen *x, bool uses)
{
	size_t before = x->uses_gpu, now = uses;

	f->n_gpu = f->n_gpu - before + now;
	x->user->n_gpu = x->user->n_gpu - before + now;
	x->uses_gpu = uses;
}

/* ---- processes ---- */

static int owner(const struct nvrm_finder *f, pid_t pid, uid_t *ret)
{
	return f->n->transport->owner(f->n->data, pid, ret);
}

static struct seen *find(struct nvrm_finder *f, pid_t pid)
{
	struct seen *x;

	LIST_FOREACH(x, &f->buckets[(unsigned int)pid % BUCKETS], of_bucket)
		if (x->pid == pid)
			return x;
	return NULL;
}

static int meet(struct nvrm_finder *f, pid_t pid)
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
	LIST_INSERT_HEAD(&f->buckets[(unsigned int)pid % BUCKETS], x, of_bucket);
	join(x, u);
	return 0;
}

static void end_question(struct nvrm_finder *f, struct seen *x)
{
	nvrm_forget(f->n, x->question);
	LIST_REMOVE(x, of_asked);
	free(steal_ptr(&x->question));
}

static void forget(struct nvrm_finder *f, struct seen *x)
{
	if (x->question)
		end_question(f, x);
	f->n_unseen -= x->unseen;
	f->n_gpu -= x->uses_gpu;
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
static int list_processes(struct nvrm_finder *f, unsigned int left)
{
	uint32_t pids[PAGE];

	while (left > 0) {
		int n = f->n->transport->list_numbers(f->n->data, "", &f->position, pids,
						      MIN(left, PAGE));
		int r = 0;

		for (int i = 0; i < n && r >= 0; i++)
			r = pids[i] > 0 && pids[i] <= INT32_MAX ? meet(f, (pid_t)pids[i]) : 0;
		if (n < 0 || r < 0) {
			f->position = 0;
			return n < 0 ? n : r;
		}
		if (f->position == NVRM_LIST_END) {
			forget_all_but(f, f->round++);
			f->position = 0;
			f->listed = true;
			return 0;
		}
		left -= (unsigned int)n;
	}
	return 0;
}

/* ---- looking ---- */

/* It may have become another user's since. */
static void follow_owner(struct nvrm_finder *f, struct seen *x)
{
	struct user *u;
	uid_t uid;

	if (owner(f, x->pid, &uid) < 0 || uid == x->user->uid)
		return;
	u = user_of(f, uid);
	if (!u)
		return;
	leave(f, x);
	join(x, u);
}

/* Others read for us: what they have read is not of our budget. */
static bool by_others(const struct nvrm_finder *f)
{
	return nvrm_answers_fd(f->n) >= 0;
}

static void take(struct nvrm_finder *f, struct seen *x, int r, uint64_t now_ns)
{
	const struct nvrm_words *w = &x->question->words;

	f->n_unseen -= x->unseen;
	x->unseen = r < 0; /* what the process itself is the reason of is no error */
	f->n_unseen += x->unseen;
	x->position = r == 0 && w->position != NVRM_LIST_END ? w->position : 0;
	if (x->position)
		return;
	if (r >= 0) /* else we are short of something: it is not known */
		set_uses_gpu(f, x, r > 0);
	if (r > 0)
		x->gpu_fd = w->numbers[0];
	x->wait_ns = x->wait_ns ? MIN(x->wait_ns * 2, AGAIN_LAST_NS) : AGAIN_FIRST_NS;
	if (r > 0)
		x->wait_ns = 0;
	x->due_ns = now_ns + x->wait_ns;
}

static int ask(struct nvrm_finder *f, struct seen *x)
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
		.left = by_others(f) ? CHUNK_OF_OTHERS : MIN(f->left, CHUNK),
		.n = x->uses_gpu,
		.numbers = { x->gpu_fd },
	};
	x->question = q;
	LIST_INSERT_HEAD(&f->asked, x, of_asked);
	return nvrm_ask(f->n, q);
}

static void look(struct nvrm_finder *f, struct seen *x, uint64_t now_ns)
{
	int r;

	f->left--;
	x->step = f->step;
	if (!x->position)
		follow_owner(f, x);
	r = ask(f, x);
	if (r == -EINPROGRESS || !x->question)
		return;
	if (!by_others(f))
		f->left -= MIN(f->left, CHUNK) - x->question->words.left;
	take(f, x, r, now_ns);
	end_question(f, x);
}

/* What was answered since. How many questions are under way. */
static size_t take_answers(struct nvrm_finder *f, uint64_t now_ns)
{
	struct seen *x = LIST_FIRST(&f->asked), *next;
	size_t n = 0;

	for (; x; x = next) {
		int r = nvrm_ask(f->n, x->question);

		next = LIST_NEXT(x, of_asked);
		n += r == -EINPROGRESS;
		if (r == -EINPROGRESS)
			continue;
		take(f, x, r, now_ns);
		end_question(f, x);
	}
	return n;
}

size_t nvrm_finder_unseen(const struct nvrm_finder *f)
{
	return f->n_unseen;
}

static bool is_due(const struct nvrm_finder *f, const struct seen *x, uint64_t now_ns)
{
	if (x->question)
		return false;
	if (x->position)
		return true;
	return x->step != f->step && (x->uses_gpu || now_ns >= x->due_ns);
}

/* The next one of the user that is to be looked at. False: there is none in this step. */
static bool visit(struct nvrm_finder *f, struct user *u, uint64_t now_ns)
{
	for (size_t i = 0; i < u->n && u->step != f->step; i++) {
		struct seen *x = TAILQ_FIRST(&u->processes);

		TAILQ_REMOVE(&u->processes, x, of_user);
		TAILQ_INSERT_TAIL(&u->processes, x, of_user);
		if (!is_due(f, x, now_ns))
			continue;
		look(f, x, now_ns);
		return true;
	}
	u->step = f->step;
	return false;
}

/* One look of each user after the other. True: there is more to look at. */
static bool look_around(struct nvrm_finder *f, uint64_t now_ns)
{
	size_t idle = 0;

	f->step++;
	while (f->left > 1 && idle < f->n_users) { /* with less nothing could be read */
		struct user *u = TAILQ_FIRST(&f->users);

		TAILQ_REMOVE(&f->users, u, link);
		TAILQ_INSERT_TAIL(&f->users, u, link);
		idle = visit(f, u, now_ns) ? 0 : idle + 1;
	}
	return idle < f->n_users;
}

int nvrm_finder_step(struct nvrm_finder *f, const struct nvrm_finder_budget *budget)
{
	uint64_t now_ns = nvrm_now_ns(f->n);
	int r;

	take_answers(f, now_ns);
	f->listed = false;
	r = list_processes(f, budget->processes);
	if (r < 0)
		return r;
	f->left = budget->descriptors;
	return look_around(f, now_ns) || !f->listed;
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
	while (take_answers(f, nvrm_now_ns(f->n)) > 0 && (at_ns = monotonic_ns()) < until_ns) {
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
	r = nvrm_finder_step(f, first ? &first_look : &one_look);
	wait_for_answers(f);
	return r;
}

int nvrm_finder_look_at_all(struct nvrm_finder *f)
{
	return nvrm_finder_step(f, &no_limit);
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

int nvrm_finder_list(const struct nvrm_finder *f, pid_t *ret, size_t max)
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
	free(f);
}
