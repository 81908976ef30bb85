/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "lib/ext.h"

struct ext_keeper {
	struct gkfd *k;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	LIST_HEAD(, ext_attached) all;
	bool runs; /* the thread */
	bool leave;
	uint64_t owner_until_ns; /* the owner is well until then; any thread's */
};

static bool has_exited(struct ext_keeper *k, const struct ext_attached *a)
{
	struct pollfd end = { .fd = a->pidfd, .events = POLLIN };
	struct gkfd_proc_ident ident;

	if (a->pidfd >= 0)
		return poll(&end, 1, 0) > 0;
	return gkfd_proc_identify(k->k, a->pid, &ident) < 0 || ident.start_ticks != a->start_ticks;
}

void ext_note_free(struct ext_attached *a)
{
	a->holds = false;
	free(steal_ptr(&a->entries));
	a->n_entries = 0;
}

void ext_give_up(struct ext_attached *a, int error, const struct gkfd_failure *failure)
{
	uint64_t one = 1;

	if (a->error)
		return;
	a->error = error;
	a->failure = *failure;
	ext_note_free(a);
	while (write(a->over_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int ext_check(struct ext_keeper *k, struct ext_attached *a)
{
	if (!a->error && has_exited(k, a))
		ext_give_up(a, -ESRCH, &(struct gkfd_failure){ .why = GKFD_WHY_EXITED });
	return a->error;
}

uint32_t ext_hold_ms(struct ext_keeper *k, uint64_t until_ns)
{
	uint64_t now_ns = gkfd_now_ns(k->k);
	uint64_t owner_ns = __atomic_load_n(&k->owner_until_ns, __ATOMIC_ACQUIRE);
	uint64_t end_ns = MIN(until_ns, owner_ns);

	if (end_ns <= now_ns)
		return 0;
	return (uint32_t)((MIN(end_ns - now_ns, EXT_HOLD_NS) + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

void ext_note_held(struct ext_keeper *k, struct ext_attached *a, uint64_t asked_ns,
		   uint32_t hold_ms)
{
	uint64_t hold_ns = hold_ms * NSEC_PER_MSEC;

	a->holds = true;
	a->lapses_ns = asked_ns + hold_ns;
	a->renew_at_ns = a->lapses_ns < a->until_ns ? asked_ns + hold_ns / 4 : UINT64_MAX;
	pthread_cond_signal(&k->changed);
}

/*
 * What is left of the queues that were named: not those that were destroyed, nor those that have
 * got the id of such a one since and were taken off by the renewal.
 */
static void drop_destroyed(struct ext_keeper *k, struct ext_attached *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n_entries; i++) {
		struct kfd_gpreempt_batch back = { .grace = KFD_GPREEMPT_DEFAULT_GRACE };
		struct kfd_gpreempt_entry *e = &a->entries[i];
		bool another = e->queue_id != KFD_GPREEMPT_ALL_QUEUES && e->queues > 0;

		if (another)
			gkfd_ext_map(k->k, e, 1, &back);
		else if (e->result != -ENOENT)
			a->entries[n++] = *e;
	}
	a->n_entries = n;
}

static int first_failure(struct ext_keeper *k, const struct ext_attached *a,
			 struct gkfd_failure *failure)
{
	int r = 0;

	for (uint32_t i = 0; i < a->n_entries && r == 0; i++)
		r = gkfd_ext_explain(k->k, &a->entries[i], a->entries[i].result, failure);
	return r;
}

/* It runs another program when it lives but has nothing to do with the driver any more. */
static void renewal_failed(struct ext_attached *a, int error, struct gkfd_failure *failure)
{
	if (failure->why == GKFD_WHY_NO_KFD_PROCESS)
		failure->why = GKFD_WHY_EXECED;
	ext_give_up(a, error, failure);
}

static void renew(struct ext_keeper *k, struct ext_attached *a)
{
	uint64_t asked_ns = gkfd_now_ns(k->k);
	struct kfd_gpreempt_batch b = { .grace = KFD_GPREEMPT_DEFAULT_GRACE,
					.hold_ms = ext_hold_ms(k, a->until_ns) };
	struct gkfd_failure failure = { 0 };
	int r;

	if (b.hold_ms == 0) {
		a->renew_at_ns = UINT64_MAX; /* the owner hangs */
		return;
	}
	r = a->n_entries ? gkfd_ext_unmap(k->k, a->entries, a->n_entries, &b) : 0;
	if (r < 0) {
		r = gkfd_ext_explain(k->k, &a->entries[0], r, &failure);
	} else {
		drop_destroyed(k, a);
		r = first_failure(k, a, &failure);
	}
	if (r < 0)
		renewal_failed(a, r, &failure);
	else
		ext_note_held(k, a, asked_ns, b.hold_ms);
}

static void let_go(struct ext_keeper *k, struct ext_attached *a)
{
	struct kfd_gpreempt_batch b = { .grace = KFD_GPREEMPT_DEFAULT_GRACE };

	/* Should that fail, the driver does it by itself: its time is over too. */
	if (a->n_entries)
		gkfd_ext_map(k->k, a->entries, a->n_entries, &b);
	ext_note_free(a);
}

static uint64_t next_look(const struct ext_attached *a)
{
	return MIN(a->until_ns, MIN(a->renew_at_ns, a->lapses_ns));
}

/* What has come to pass; how long until there may be more. */
static uint64_t look(struct ext_keeper *k)
{
	uint64_t next_ns = UINT64_MAX, now_ns = gkfd_now_ns(k->k);
	struct ext_attached *a;

	LIST_FOREACH(a, &k->all, link)
	{
		if (!a->holds)
			continue;
		if (now_ns >= a->until_ns)
			let_go(k, a);
		else if (now_ns >= a->lapses_ns)
			ext_give_up(a, -EAGAIN, &(struct gkfd_failure){ .why = GKFD_WHY_LAPSED });
		else if (now_ns >= a->renew_at_ns)
			renew(k, a);
		if (a->holds)
			next_ns = MIN(next_ns, next_look(a));
	}
	now_ns = gkfd_now_ns(k->k);
	return next_ns == UINT64_MAX ? next_ns : next_ns - MIN(now_ns, next_ns);
}

/* ---- the thread ---- */

static void wait_for(struct ext_keeper *k, uint64_t ns)
{
	struct timespec end;

	if (ns == UINT64_MAX) {
		pthread_cond_wait(&k->changed, &k->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns += (uint64_t)end.tv_nsec;
	end.tv_sec += (time_t)(ns / NSEC_PER_SEC);
	end.tv_nsec = (long)(ns % NSEC_PER_SEC);
	pthread_cond_timedwait(&k->changed, &k->lock, &end);
}

static void *keep(void *arg)
{
	struct ext_keeper *k = arg;

	pthread_mutex_lock(&k->lock);
	while (!k->leave)
		wait_for(k, look(k));
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

int ext_keep(struct ext_keeper *k)
{
	sigset_t all, before;
	int r;

	if (k->runs || k->k->transport->modelled)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&k->thread, NULL, keep, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	k->runs = r == 0;
	return -r;
}

/* ---- for the context ---- */

int ext_keeper_new(struct gkfd *gkfd, struct ext_keeper **ret)
{
	struct ext_keeper *k = calloc(1, sizeof(*k));
	pthread_condattr_t attr;

	if (!k)
		return -ENOMEM;
	k->k = gkfd;
	k->owner_until_ns = UINT64_MAX;
	LIST_INIT(&k->all);
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret = k;
	return 0;
}

void ext_keeper_free(struct ext_keeper *k)
{
	if (!k)
		return;
	ext_enter(k);
	k->leave = true;
	pthread_cond_signal(&k->changed);
	ext_leave(k);
	if (k->runs)
		pthread_join(k->thread, NULL);
	pthread_cond_destroy(&k->changed);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

void ext_beat(struct ext_keeper *k, uint64_t allow_ns)
{
	__atomic_store_n(&k->owner_until_ns, gkfd_now_ns(k->k) + allow_ns, __ATOMIC_RELEASE);
}

void ext_enter(struct ext_keeper *k)
{
	pthread_mutex_lock(&k->lock);
}

void ext_leave(struct ext_keeper *k)
{
	pthread_mutex_unlock(&k->lock);
}

void ext_tick(struct ext_keeper *k)
{
	if (!k->k->transport->modelled)
		return;
	ext_enter(k);
	look(k);
	ext_leave(k);
}

void ext_add(struct ext_keeper *k, struct ext_attached *a)
{
	LIST_INSERT_HEAD(&k->all, a, link);
}

void ext_remove(struct ext_attached *a)
{
	LIST_REMOVE(a, link);
}
