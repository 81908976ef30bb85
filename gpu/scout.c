/* SPDX-License-Identifier: MIT */
#include "gpu/scout.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#include "gpu/acting.h"
#include "util/clock.h"

struct scout {
	struct scout_options options;
	pthread_t thread;
	bool started;
	int end_fd, told_fd;
	bool told; /* atomic */
};

enum { END, NEWS, ANSWERS, POLLS };

/*
 * The owner may wake up and take the word before this returns, or in the middle. Said before, it is
 * there when the owner wakes up; said after, the owner comes to empty what it was woken by.
 */
static void tell(struct scout *s)
{
	__atomic_store_n(&s->told, true, __ATOMIC_RELEASE);
	eventfd_write(s->told_fd, 1);
	__atomic_store_n(&s->told, true, __ATOMIC_RELEASE);
}

static int wait_until(struct pollfd polls[POLLS], uint64_t until_ns)
{
	uint64_t now_ns = monotonic_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {
		.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(left_ns % NSEC_PER_SEC),
	};
	int r = ppoll(polls, POLLS, until_ns == SCOUT_NEVER ? NULL : &left, NULL);

	return r < 0 && errno != EINTR ? -errno : 0;
}

static uint64_t after(uint64_t wait_ns)
{
	return wait_ns == SCOUT_NEVER ? SCOUT_NEVER : monotonic_ns() + wait_ns;
}

static void *run(void *arg)
{
	struct scout *s = arg;
	const struct scout_options *o = &s->options;
	struct pollfd p[POLLS] = { [END] = { .fd = s->end_fd, .events = POLLIN },
				   [NEWS] = { .fd = o->fd, .events = POLLIN },
				   [ANSWERS] = { .fd = o->answers_fd, .events = POLLIN } };
	uint64_t look_ns = after(SCOUT_CALM_NS), rest_ns = 0;

	while (wait_until(p, p[NEWS].fd < 0 ? MIN(look_ns, rest_ns) : look_ns) == 0) {
		bool heard = p[NEWS].revents || p[ANSWERS].revents;
		uint64_t wait_ns = SCOUT_NEVER;

		if (p[END].revents)
			break;
		if (p[NEWS].revents)
			rest_ns = after(SCOUT_BUSY_NS);
		if (heard || monotonic_ns() >= look_ns) {
			if (o->look(o->user, heard, &wait_ns))
				tell(s);
			look_ns = after(wait_ns);
		}
		p[NEWS].fd = monotonic_ns() >= rest_ns ? o->fd : -1;
		if (o->fd < 0)
			rest_ns = SCOUT_NEVER;
	}
	return NULL;
}

int scout_start(const struct scout_options *options, struct scout **ret)
{
	struct scout *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->told_fd < 0 || s->end_fd < 0)
		r = -errno;
	if (r >= 0)
		r = acting_thread(&s->thread, "gpreempt-scout", run, s);
	if (r < 0) {
		scout_end(s);
		return r;
	}
	s->started = true;
	*ret = s;
	return 0;
}

void scout_end(struct scout *s)
{
	if (!s)
		return;
	if (s->started) {
		eventfd_write(s->end_fd, 1);
		pthread_join(s->thread, NULL);
	}
	closep(&s->end_fd);
	closep(&s->told_fd);
	free(s);
}

int scout_fd(const struct scout *s)
{
	return s->told_fd;
}

bool scout_told(struct scout *s)
{
	eventfd_t count;

	if (!__atomic_load_n(&s->told, __ATOMIC_ACQUIRE))
		return false; /* and no system call */
	__atomic_store_n(&s->told, false, __ATOMIC_RELEASE);
	eventfd_read(s->told_fd, &count);
	return true;
}
