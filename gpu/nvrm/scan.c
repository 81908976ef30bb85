/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/scan.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "util/macros.h"

#define PAGE 1024u /* processes listed at once */
#define CHUNK 64u /* descriptors read before it is another user's turn */
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
};

struct user {
	TAILQ_ENTRY(user) link;
	TAILQ_HEAD(, seen) processes; /* whose turn it is next first */
	uid_t uid;
	size_t n, n_gpu;
	uint64_t step; /* in which all its processes have been looked at */
};

struct nvrm_scan {
	const struct nvrm_proc_files *files;
	void *data;
	LIST_HEAD(, seen) buckets[BUCKETS];
	TAILQ_HEAD(, user) users; /* the same */
	size_t n_users, n_gpu;
	uint64_t round, position; /* of listing */
	uint64_t step;
	bool listed; /* to the end, in this step */
	unsigned int left; /* of the budget */
};

/* ---- descriptors ---- */

static bool is_gpu(const char *path)
{
	static const char node[] = "dev/nvidia";
	const char *number = path + sizeof(node);

	return *path == '/' && !strncmp(path + 1, node, sizeof(node) - 1) && *number &&
	       number[strspn(number, "0123456789")] == '\0';
}

static bool is_gpu_fd(const struct nvrm_proc_files *files, void *data, pid_t pid, uint32_t fd)
{
	char path[64], target[64];

	snprintf(path, sizeof(path), "%d/fd/%u", (int)pid, fd);
	return files->read_link(data, path, target, sizeof(target)) >= 0 && is_gpu(target);
}

int nvrm_find_gpu_fd(const struct nvrm_proc_files *files, void *data, pid_t pid, uint64_t *position,
		     unsigned int *left, uint32_t *ret_fd)
{
	uint32_t fds[CHUNK];
	char path[32];

	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	while (*position != NVRM_LIST_END) {
		int n;

		if (*left == 0)
			return -EINPROGRESS;
		n = files->list(data, path, position, fds, MIN(*left, CHUNK));
		if (n < 0)
			return n;
		*left -= (unsigned int)n;
		for (int i = 0; i < n; i++) {
			if (!is_gpu_fd(files, data, pid, fds[i]))
				continue;
			*ret_fd = fds[i];
			return 1;
		}
	}
	return 0;
}

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
	if (s->files->owner(s->data, pid, &uid) < 0)
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

static void forget(struct nvrm_scan *s, struct seen *x)
{
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

/* Who is in a list that was read to its end is there, and nobody else. */
static int list_processes(struct nvrm_scan *s, unsigned int left)
{
	uint32_t pids[PAGE];

	while (left > 0) {
		int n = s->files->list(s->data, "", &s->position, pids, MIN(left, PAGE)), r = 0;

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

	if (s->files->owner(s->data, x->pid, &uid) < 0 || uid == x->user->uid)
		return;
	u = user_of(s, uid);
	if (!u)
		return;
	leave(s, x);
	join(x, u);
}

/* Of whose descriptors nothing is known has none as far as we are concerned. */
static bool is_hidden(int r)
{
	return r == -ENOENT || r == -ESRCH || r == -EACCES || r == -EPERM;
}

static void look(struct nvrm_scan *s, struct seen *x, uint64_t now_ns)
{
	unsigned int most, chunk;
	int r;

	s->left--;
	x->step = s->step;
	if (x->uses_gpu && !x->position && is_gpu_fd(s->files, s->data, x->pid, x->gpu_fd))
		return;
	if (!x->position)
		follow_owner(s, x);
	most = chunk = MIN(s->left, CHUNK);
	r = nvrm_find_gpu_fd(s->files, s->data, x->pid, &x->position, &chunk, &x->gpu_fd);
	s->left -= most - chunk;
	if (r == -EINPROGRESS)
		return;
	x->position = 0;
	if (r >= 0 || is_hidden(r)) /* else we are short of something: it is not known */
		set_uses_gpu(s, x, r > 0);
	x->wait_ns = x->wait_ns ? MIN(x->wait_ns * 2, AGAIN_LAST_NS) : AGAIN_FIRST_NS;
	if (r > 0)
		x->wait_ns = 0;
	x->due_ns = now_ns + x->wait_ns;
}

static bool is_due(const struct nvrm_scan *s, const struct seen *x, uint64_t now_ns)
{
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

	s->listed = false;
	r = list_processes(s, budget->processes);
	if (r < 0)
		return r;
	s->left = budget->descriptors;
	return look_around(s, now_ns) || !s->listed;
}

/* ---- telling ---- */

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

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
	qsort(all, n, sizeof(*all), by_pid);
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
		qsort(all, n, sizeof(*all), by_pid);
		memcpy(ret, all, MIN(n, max) * sizeof(*all));
	}
	return (int)s->n_gpu;
}

/* ---- beginning and ending ---- */

int nvrm_scan_new(const struct nvrm_proc_files *files, void *data, struct nvrm_scan **ret)
{
	struct nvrm_scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->files = files;
	s->data = data;
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
