/* SPDX-License-Identifier: MIT */
#include "lib/nvrm_keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct nv_keeper {
	struct nvrm *n;
	pthread_t thread;
	pthread_mutex_t lock;
	int epoll_fd; /* the ends of processes and of the guard, and wake_fd */
	int wake_fd;
	struct guard *guard; /* of what is attached; NULL: none */
	int slot; /* where this thread tells it that it is alive */
	LIST_HEAD(, nv_attached) all;
	bool leave;
};

static uint64_t now_ns(const struct nv_keeper *k)
{
	return k->n->transport->now_ns(k->n->data);
}

static void tell(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static int watch(struct nv_keeper *k, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Explicitly: the guard may have copies of it, which would keep it in the set. */
static void unwatch(struct nv_keeper *k, int fd)
{
	epoll_ctl(k->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void beat(const struct nv_keeper *k, uint64_t allow_ns)
{
	if (k->guard)
		guard_beat(k->guard, k->slot, allow_ns);
}

static int take_guard(struct nv_keeper *k, struct guard *guard)
{
	int slot, r;

	if (!guard || k->guard)
		return 0;
	slot = guard_arm(guard, 0, GUARD_DRIVER_CALL_NS);
	if (slot < 0)
		return slot;
	r = watch(k, guard_fd(guard));
	if (r < 0) {
		guard_disarm(guard, slot);
		return r;
	}
	k->guard = guard;
	k->slot = slot;
	return 0;
}

static void leave_guard(struct nv_keeper *k)
{
	if (!k->guard)
		return;
	unwatch(k, guard_fd(k->guard));
	guard_disarm(k->guard, k->slot);
	k->guard = NULL;
}

static void close_process(struct nv_keeper *k, struct nv_attached *a)
{
	if (!a->process)
		return;
	unwatch(k, a->process->pidfd);
	nvrm_process_close(steal_ptr(&a->process));
	a->whole = false;
	a->resume_at_ns = UINT64_MAX;
}

void keeper_give_up(struct nv_keeper *k, struct nv_attached *a, int error,
		    const struct nvrm_failure *failure)
{
	if (!a->process)
		return;
	a->error = error;
	a->failure = *failure;
	close_process(k, a);
	tell(a->over_fd);
}

int keeper_check(struct nv_keeper *k, struct nv_attached *a)
{
	if (a->process && nvrm_process_ended(a->process))
		keeper_give_up(k, a, -ESRCH, &(struct nvrm_failure){ .why = NVRM_WHY_EXITED });
	else if (a->process && a->process->guard && !guard_alive(a->process->guard))
		keeper_give_up(k, a, -EOWNERDEAD,
			       &(struct nvrm_failure){ .why = NVRM_WHY_GUARD_DIED });
	return a->process ? 0 : a->error;
}

/* ---- the thread ---- */

static void let_go(struct nv_keeper *k, struct nv_attached *a)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_let_go(&a->process, 1, NVRM_ALL_GPUS, &failure);

	a->whole = false;
	a->resume_at_ns = UINT64_MAX;
	if (r < 0)
		keeper_give_up(k, a, r, &failure);
}

/* In steps: the holds of others may end meanwhile. True: there is more to look at. */
static bool hold_new(struct nv_keeper *k, struct nv_attached *a)
{
	struct nvrm_failure failure = { 0 };
	unsigned int left = NVRM_STEP_ASKS;
	uint64_t off_ns;
	int r = nvrm_process_look(a->process, &left, &failure);

	if (r == -EINPROGRESS)
		return true;
	if (r > 0)
		r = nvrm_hold(&a->process, 1, NVRM_ALL_GPUS, &off_ns, &failure);
	if (r < 0)
		keeper_give_up(k, a, r, &failure);
	return false;
}

/* What has come to pass; how long until there may be more, at most a beat. */
static uint64_t look(struct nv_keeper *k)
{
	uint64_t next_ns = UINT64_MAX;
	struct nv_attached *a;

	beat(k, GUARD_DRIVER_CALL_NS);
	LIST_FOREACH(a, &k->all, link)
	{
		if (keeper_check(k, a) < 0)
			continue;
		if (now_ns(k) >= a->resume_at_ns)
			let_go(k, a);
		else if (a->whole && hold_new(k, a))
			next_ns = 0;
		next_ns = MIN(next_ns, GUARD_BEAT_NS);
		if (a->process && a->resume_at_ns != UINT64_MAX)
			next_ns = MIN(next_ns, a->resume_at_ns - MIN(now_ns(k), a->resume_at_ns));
	}
	if (k->guard && !guard_alive(k->guard))
		leave_guard(k);
	beat(k, GUARD_SILENCE_NS);
	return k->guard ? MIN(next_ns, GUARD_BEAT_NS) : next_ns; /* also with none but the dead */
}

static void wait_for(const struct nv_keeper *k, uint64_t ns)
{
	int ms = ns == UINT64_MAX ? -1 : (int)((ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
	struct epoll_event event;
	uint64_t count;

	if (epoll_wait(k->epoll_fd, &event, 1, ms) <= 0 || event.data.fd != k->wake_fd)
		return;
	while (read(k->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static void *keep(void *arg)
{
	struct nv_keeper *k = arg;

	for (;;) {
		uint64_t ns = 0;
		bool leave;

		pthread_mutex_lock(&k->lock);
		leave = k->leave;
		if (!leave)
			ns = look(k);
		pthread_mutex_unlock(&k->lock);
		if (leave)
			return NULL;
		wait_for(k, ns);
	}
}

/* ---- for the context ---- */

static int launch(struct nv_keeper *k)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&k->thread, NULL, keep, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void free_keeper(struct nv_keeper *k)
{
	closep(&k->epoll_fd);
	closep(&k->wake_fd);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

int keeper_new(struct nvrm *n, struct nv_keeper **ret)
{
	struct nv_keeper *k = calloc(1, sizeof(*k));
	int r = 0;

	if (!k)
		return -ENOMEM;
	k->n = n;
	LIST_INIT(&k->all);
	pthread_mutex_init(&k->lock, NULL);
	k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	k->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->epoll_fd < 0 || k->wake_fd < 0)
		r = -errno;
	if (r >= 0)
		r = watch(k, k->wake_fd);
	if (r >= 0)
		r = launch(k);
	if (r < 0) {
		free_keeper(k);
		return r;
	}
	*ret = k;
	return 0;
}

void keeper_free(struct nv_keeper *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->leave = true;
	pthread_mutex_unlock(&k->lock);
	tell(k->wake_fd);
	pthread_join(k->thread, NULL);
	free_keeper(k);
}

void keeper_enter(struct nv_keeper *k)
{
	pthread_mutex_lock(&k->lock);
	beat(k, GUARD_DRIVER_CALL_NS);
}

void keeper_leave(struct nv_keeper *k)
{
	beat(k, GUARD_SILENCE_NS);
	pthread_mutex_unlock(&k->lock);
}

void keeper_wake(struct nv_keeper *k)
{
	tell(k->wake_fd);
}

int keeper_add(struct nv_keeper *k, struct nv_attached *a)
{
	int r = take_guard(k, a->process->guard);

	if (r >= 0)
		r = watch(k, a->process->pidfd);
	if (r < 0) {
		if (LIST_EMPTY(&k->all))
			leave_guard(k);
		return r;
	}
	LIST_INSERT_HEAD(&k->all, a, link);
	keeper_wake(k);
	return 0;
}

void keeper_remove(struct nv_keeper *k, struct nv_attached *a)
{
	close_process(k, a);
	LIST_REMOVE(a, link);
	if (LIST_EMPTY(&k->all))
		leave_guard(k); /* the context may exchange it now */
}
