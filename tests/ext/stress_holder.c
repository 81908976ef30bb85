/* SPDX-License-Identifier: MIT */
/*
 * A holder: any of the extension's calls, on any of the targets, with one file or the next, from
 * one thread or two. Its end is somebody else's business, or comes in the middle of something.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/ext/stress.h"

#define MAX_ENTRIES 8u
#define LONGEST_HOLD_MS 60
#define LONGEST_STOP_MS 10
#define LONGEST_PAUSE_MS 8

struct holder {
	struct world *w;
	int fd;
	unsigned int seed;
};

static unsigned int below(struct holder *h, unsigned int n)
{
	return stress_below(&h->seed, n);
}

static pid_t some_pid(struct holder *h)
{
	if (!below(h, 20))
		return getpid();
	return atomic_load(&h->w->targets[below(h, STRESS_TARGETS)].pid);
}

static uint32_t some_gpu(struct holder *h)
{
	return h->w->gpu_ids[below(h, h->w->n_gpus)];
}

static void fill_entries(struct holder *h, struct kfd_gpreempt_entry *es, unsigned int n)
{
	memset(es, 0, n * sizeof(*es));
	for (unsigned int i = 0; i < n; i++) {
		es[i].pid = (uint32_t)some_pid(h);
		es[i].queue_id = below(h, 3) ? KFD_GPREEMPT_ALL_QUEUES : below(h, STRESS_QUEUES);
		es[i].gpu_id = below(h, 3) ? KFD_GPREEMPT_ANY_GPU : some_gpu(h);
	}
}

/* All may be named, and where GPUs do not die nothing is wrong with the hardware. */
static bool may_be(const struct holder *h, int result)
{
	return !result || result == -ESRCH || result == -ENOENT || result == -EBUSY ||
	       result == -EALREADY || stress_is_loss(h->w, -result);
}

static void judge_entries(struct holder *h, const struct kfd_gpreempt_entry *es, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!may_be(h, es[i].result))
			stress_broken(h->w, "an entry's result is %s",
				      strerrorname_np(-es[i].result));
		atomic_fetch_add(&h->w->taken_off, es[i].queues);
	}
	atomic_fetch_add(&h->w->entries, n);
}

static void collect(struct holder *h, uint64_t ticket)
{
	struct kfd_gpreempt_entry es[MAX_ENTRIES];
	struct kfd_gpreempt_collect c = {
		.ticket = ticket,
		.entries = (uintptr_t)es,
		.n = MAX_ENTRIES,
	};
	struct pollfd p = { .fd = h->fd, .events = POLLIN };

	memset(es, 0, sizeof(es));
	if (below(h, 4))
		poll(&p, 1, (int)below(h, 4 * LONGEST_PAUSE_MS));
	if (!ioctl(h->fd, KFD_GPREEMPT_COLLECT, &c))
		judge_entries(h, es, c.n);
	else if (errno != EAGAIN && errno != ENOENT)
		stress_broken(h->w, "COLLECT: %s", strerrorname_np(errno));
}

static void batch(struct holder *h)
{
	static const unsigned long calls[] = {
		KFD_GPREEMPT_BATCH_UNMAP_QUEUES,
		KFD_GPREEMPT_SELECTIVE_UNMAP,
		KFD_GPREEMPT_FAST_REMAP,
		KFD_GPREEMPT_SWITCH,
	};
	struct kfd_gpreempt_entry es[MAX_ENTRIES];
	unsigned int which = below(h, 4), n = 2 + below(h, MAX_ENTRIES - 1);
	struct kfd_gpreempt_batch b = {
		.entries = (uintptr_t)es,
		.n_unmap = which < 2 ? n : which == 2 ? 0 : 1 + below(h, n - 1),
		.flags = (below(h, 3) ? 0 : KFD_GPREEMPT_VICTIMS_ONLY) |
			 (below(h, 4) ? 0 : KFD_GPREEMPT_ASYNC),
		.grace = below(h, 3) ? KFD_GPREEMPT_DEFAULT_GRACE : 1 + below(h, 255),
		.hold_ms = 1 + below(h, LONGEST_HOLD_MS),
		.timeout_ms = below(h, 2) ? 0 : 1 + below(h, LONGEST_PAUSE_MS),
	};

	b.n_map = n - b.n_unmap;
	fill_entries(h, es, n);
	atomic_fetch_add(&h->w->batches, 1);
	if (ioctl(h->fd, calls[which], &b) >= 0) {
		if (!b.ticket)
			judge_entries(h, es, n);
	} else if (errno != ENOSPC && !(errno == ETIME && b.ticket)) {
		stress_broken(h->w, "call %lx: %s", calls[which] & 0xff, strerrorname_np(errno));
	}
	if (!b.ticket)
		return;
	atomic_fetch_add(&h->w->tickets, 1);
	if (below(h, 8))
		collect(h, below(h, 2) ? b.ticket : 0);
}

static void single(struct holder *h)
{
	static const unsigned long calls[] = {
		KFD_GPREEMPT_PREEMPT_QUEUE,
		KFD_GPREEMPT_RESUME_QUEUE,
		KFD_GPREEMPT_SET_QUEUE_STATE,
	};
	unsigned int which = below(h, 3);
	struct kfd_gpreempt_one one = {
		.pid = (uint32_t)some_pid(h),
		.queue_id = below(h, STRESS_QUEUES),
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = 1 + below(h, LONGEST_HOLD_MS),
		.state = which == 2 ? below(h, 2) : 0,
	};

	if (ioctl(h->fd, calls[which], &one) && !may_be(h, -errno))
		stress_broken(h->w, "call %lx: %s", calls[which] & 0xff, strerrorname_np(errno));
	atomic_fetch_add(&h->w->singles, 1);
}

static void stop_and_start(struct holder *h)
{
	struct kfd_gpreempt_stop s = {
		.gpu_id = some_gpu(h),
		.hold_ms = 1 + below(h, LONGEST_STOP_MS),
	};

	if (ioctl(h->fd, KFD_GPREEMPT_STOP_SCHED, &s) && !stress_is_loss(h->w, errno))
		stress_broken(h->w, "STOP_SCHED: %s", strerrorname_np(errno));
	atomic_fetch_add(&h->w->stops, 1);
	if (!below(h, 3))
		return;
	s.hold_ms = 0;
	if (ioctl(h->fd, KFD_GPREEMPT_START_SCHED, &s) && errno != EALREADY &&
	    !stress_is_loss(h->w, errno))
		stress_broken(h->w, "START_SCHED: %s", strerrorname_np(errno));
}

static void look(struct holder *h)
{
	struct kfd_gpreempt_queue qs[STRESS_QUEUES];
	struct kfd_gpreempt_stats s = {
		.pid = (uint32_t)some_pid(h),
		.n = STRESS_QUEUES,
		.queues = (uintptr_t)qs,
	};

	if (ioctl(h->fd, KFD_GPREEMPT_GET_STATS, &s)) {
		if (errno != ESRCH)
			stress_broken(h->w, "GET_STATS: %s", strerrorname_np(errno));
	} else if (s.n > STRESS_QUEUES) {
		stress_broken(h->w, "%u queues of one target", s.n);
	}
	atomic_fetch_add(&h->w->looks, 1);
}

static void bind_target(struct holder *h)
{
	unsigned int slot = below(h, STRESS_TARGETS);
	pid_t pid = atomic_load(&h->w->targets[slot].pid);
	int pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct kfd_gpreempt_bind b = { .fd = -1 };

	if (pidfd < 0)
		return;
	b.fd = (int)syscall(SYS_pidfd_getfd, pidfd, atomic_load(&h->w->targets[slot].kfd), 0);
	/* The number may be another file's by now, or its process gone. */
	if (b.fd >= 0 && ioctl(h->fd, KFD_GPREEMPT_BIND, &b) && errno != EINVAL && errno != ESRCH)
		stress_broken(h->w, "BIND: %s", strerrorname_np(errno));
	if (b.fd >= 0)
		close(b.fd);
	close(pidfd);
	atomic_fetch_add(&h->w->binds, 1);
}

static void do_something(struct holder *h)
{
	switch (below(h, 16)) {
	case 0 ... 7:
		batch(h);
		break;
	case 8 ... 10:
		single(h);
		break;
	case 11:
		if (!below(h, 4))
			stop_and_start(h);
		break;
	case 12:
		look(h);
		break;
	case 13:
		bind_target(h);
		break;
	case 14:
		collect(h, 0);
		break;
	default:
		break;
	}
	poll(NULL, 0, (int)below(h, LONGEST_PAUSE_MS));
}

/* Mostly after what it can get hold of: what others wait for must not be part of that. */
static void *second_thread(void *arg)
{
	struct holder h = *(struct holder *)arg;

	h.seed++;
	while (!atomic_load(&h.w->stop)) {
		if (below(&h, 4))
			collect(&h, 0);
		else
			do_something(&h);
	}
	return NULL;
}

/* Its descriptor may be closed while another thread is in a call, too. */
static void open_again(struct holder *h)
{
	int fd = open(STRESS_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		stress_broken(h->w, "%s: %s", STRESS_DEVICE, strerrorname_np(errno));
		exit(1);
	}
	if (h->fd < 0) {
		h->fd = fd;
		return;
	}
	dup2(fd, h->fd);
	close(fd);
}

_Noreturn void stress_holder(struct world *w, unsigned int seed)
{
	struct holder h = { .w = w, .fd = -1, .seed = seed };
	pthread_t thread;

	open_again(&h);
	if (below(&h, 2) && pthread_create(&thread, NULL, second_thread, &h))
		stress_broken(w, "no thread");
	while (!atomic_load(&w->stop)) {
		do_something(&h);
		if (!below(&h, 100))
			open_again(&h);
		if (!below(&h, 400))
			_exit(0);
		if (!below(&h, 400))
			raise(SIGKILL);
	}
	exit(0);
}
