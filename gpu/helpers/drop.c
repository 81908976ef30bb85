/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/drop.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "util/bare.h"
#include "util/clock.h"

#define DROPPED_AT_ONCE 16u
#define CHILDREN_FREELY 8u /* of one user; beyond that each has twice as many to drop */
#define DROPPED_MOST 512u
#define CHILDREN_MOST 256u /* of one user */
#define READY_NS (200 * NSEC_PER_MSEC)
#define SIG_DROP SIGUSR1 /* to a child: nobody but it has them any more */

/*
 * A child has a copy of everything this process has open, and closes what is not its own to drop.
 * Were somebody else's last copy dropped meanwhile, the close would be the child's. So one child is
 * made at a time, in all threads, and nothing is closed before it says here that it is ready.
 */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *ready; /* the number of the last child that was */
static uint32_t numbers;

static void reap(struct drops *d)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < d->n_children; i++)
		if (waitpid(d->children[i].pid, NULL, WNOHANG | __WALL) == 0)
			d->children[left++] = d->children[i];
	d->n_children = left;
}

BARE static bool is_to_drop(const struct drop *all, uint32_t n, int fd)
{
	for (uint32_t i = 0; i < n; i++)
		if (all[i].fd == fd)
			return true;
	return false;
}

/*
 * The child, with all signals blocked. It may wait for ever as it ends, with whatever it has open:
 * so that is nothing but what it is to drop.
 */
BARE _Noreturn static void drop_and_die(const struct drop *all, uint32_t n, pid_t parent,
					uint32_t *word, uint32_t number)
{
	uint64_t signals = 1ull << (SIG_DROP - 1);
	int last = -1;

	for (uint32_t i = 0; i < n; i++)
		last = MAX(last, all[i].fd);
	for (int fd = 0; fd < last; fd++)
		if (!is_to_drop(all, n, fd))
			bare_call(SYS_close, fd);
	bare_close_from(last + 1);
	__atomic_store_n(word, number, __ATOMIC_RELEASE);
	bare_call(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	bare_call(SYS_prctl, PR_SET_PDEATHSIG, SIG_DROP);
	while (bare_call(SYS_getppid) == parent &&
	       bare_call(SYS_rt_sigtimedwait, &signals, NULL, NULL, sizeof(signals)) != SIG_DROP)
		;
	for (;;)
		bare_call(SYS_exit_group, 0);
}

/* As guard_start() makes its process: without SIGCHLD and fork handlers. */
static pid_t make_child(const struct drop *all, uint32_t n, uint32_t number)
{
	pid_t parent = getpid(), pid;
	sigset_t all_signals, before;

	sigfillset(&all_signals);
	pthread_sigmask(SIG_SETMASK, &all_signals, &before);
	pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		drop_and_die(all, n, parent, ready, number);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static bool make_word(void)
{
	void *page = ready ? ready :
			     mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	ready = page;
	return true;
}

static bool becomes_ready(uint32_t number)
{
	uint64_t until_ns = monotonic_ns() + READY_NS, now_ns;
	uint32_t seen;

	while ((seen = __atomic_load_n(ready, __ATOMIC_ACQUIRE)) != number &&
	       (now_ns = monotonic_ns()) < until_ns) {
		struct timespec left = { .tv_nsec = (long)(until_ns - now_ns) };

		syscall(SYS_futex, ready, FUTEX_WAIT, seen, &left, NULL, 0);
	}
	return seen == number;
}

/* How many of a user's it takes to have a child of theirs; UINT32_MAX: there are too many. */
static uint32_t least(const struct drops *d, uid_t user)
{
	uint32_t hung = 0, n = DROPPED_AT_ONCE;

	for (uint32_t i = 0; i < d->n_children; i++)
		hung += d->children[i].user == user;
	if (hung < CHILDREN_FREELY)
		return 1;
	if (hung >= CHILDREN_MOST)
		return UINT32_MAX;
	for (; hung > CHILDREN_FREELY && n < DROPPED_MOST; hung--)
		n *= 2;
	return n;
}

/* From @at on, all of one user. False: nobody can be found for them now. */
static bool drop_some(struct drops *d, uint32_t at, uint32_t n)
{
	uid_t user = d->all[at].user;
	pid_t child;

	if (d->n_children == DROP_CHILDREN || n < least(d, user) || !make_word())
		return false;
	child = make_child(d->all + at, n, ++numbers);
	if (child < 0)
		return false;
	d->children[d->n_children++] = (struct drop_child){ child, user };
	if (!becomes_ready(numbers)) {
		kill(child, SIGKILL); /* it drops copies, and we try again */
		return false;
	}
	/* It has a copy of each, so none of these is the last. */
	for (uint32_t i = 0; i < n; i++)
		close(d->all[at + i].fd);
	d->n -= n;
	memmove(d->all + at, d->all + at + n, (d->n - at) * sizeof(*d->all));
	kill(child, SIG_DROP);
	return true;
}

static uint32_t end_of_user(const struct drops *d, uint32_t at)
{
	uint32_t end = at;

	while (end < d->n && d->all[end].user == d->all[at].user)
		end++;
	return end;
}

void drop_now(struct drops *d)
{
	reap(d);
	pthread_mutex_lock(&one_at_a_time);
	for (uint32_t at = 0; at < d->n;) {
		uint32_t end = end_of_user(d, at);

		if (!drop_some(d, at, end - at))
			at = end;
	}
	pthread_mutex_unlock(&one_at_a_time);
}

static uint32_t first_of(const struct drops *d, uid_t user)
{
	uint32_t at = 0;

	while (at < d->n && d->all[at].user < user)
		at++;
	return at;
}

uint32_t drop_count(const struct drops *d, uid_t user)
{
	uint32_t at = first_of(d, user);

	return at < d->n && d->all[at].user == user ? end_of_user(d, at) - at : 0;
}

void drop_later(struct drops *d, int fd, uid_t user)
{
	struct drop *all = reallocarray(d->all, d->n + 1, sizeof(*all));
	uint32_t at;

	if (!all)
		return; /* it stays open */
	d->all = all;
	at = first_of(d, user);
	memmove(all + at + 1, all + at, (d->n - at) * sizeof(*all));
	all[at] = (struct drop){ fd, user };
	d->n++;
	if (d->n % DROPPED_AT_ONCE == 0 || drop_count(d, user) % DROPPED_AT_ONCE == 0)
		drop_now(d);
}
