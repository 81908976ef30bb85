/* SPDX-License-Identifier: MIT */
#include "util/apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "util/macros.h"

#define AT_ONCE_MAX 64u
#define LOOK_MS 20 /* where the kernel has no descriptor for a process's end */

struct child {
	size_t i;
	pid_t pid; /* 0: none */
	int pidfd;
	uint64_t until_ns;
};

struct work {
	const struct apart *a;
	char *shared; /* results */
	int *errors;
	struct child children[AT_ONCE_MAX];
	unsigned int at_once;
};

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void begin(struct work *w, struct child *c, size_t i)
{
	pid_t pid = fork();

	if (pid == 0) {
		w->a->run(w->a->user, i, w->shared + i * w->a->result_size);
		_exit(0);
	}
	if (pid < 0) {
		w->errors[i] = -errno;
		return;
	}
	*c = (struct child){ .i = i, .pid = pid, .until_ns = monotonic_ns() + w->a->limit_ns };
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

static void forget(struct child *c)
{
	closep(&c->pidfd);
	c->pid = 0;
}

/* A child of ours: its pid stays its own until we have waited for it. */
static void look_at(struct work *w, struct child *c, uint64_t now_ns)
{
	int status;
	pid_t r = waitpid(c->pid, &status, WNOHANG);

	if (r == 0 && now_ns < c->until_ns)
		return;
	if (r == 0) {
		kill(c->pid, SIGKILL); /* it may sit in a driver: not to be waited for */
		w->errors[c->i] = -ETIMEDOUT;
	} else {
		w->errors[c->i] = r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 :
											   -ECHILD;
	}
	forget(c);
}

/* Until one ends, or has to; false: there is none. */
static bool await(struct work *w)
{
	struct pollfd ends[AT_ONCE_MAX];
	uint64_t now_ns = monotonic_ns(), wait_ns = UINT64_MAX;
	unsigned int n = 0;
	bool blind = false;

	for (unsigned int k = 0; k < w->at_once; k++) {
		const struct child *c = &w->children[k];

		if (!c->pid)
			continue;
		blind |= c->pidfd < 0;
		ends[n++] = (struct pollfd){ .fd = c->pidfd, .events = POLLIN };
		wait_ns = MIN(wait_ns, c->until_ns > now_ns ? c->until_ns - now_ns : 0);
	}
	if (!n)
		return false;
	poll(ends, n, blind ? LOOK_MS : (int)(wait_ns / NSEC_PER_MSEC) + 1);
	now_ns = monotonic_ns();
	for (unsigned int k = 0; k < w->at_once; k++) {
		if (w->children[k].pid)
			look_at(w, &w->children[k], now_ns);
	}
	return true;
}

static struct child *free_place(struct work *w)
{
	for (unsigned int k = 0; k < w->at_once; k++) {
		if (!w->children[k].pid)
			return &w->children[k];
	}
	return NULL;
}

int apart_run(const struct apart *a, void *results, int *errors)
{
	struct work w = { .a = a, .errors = errors, .at_once = MIN(a->at_once, AT_ONCE_MAX) };
	size_t bytes = a->n * a->result_size;
	uint64_t until_ns = monotonic_ns() + a->all_ns;

	if (!a->n)
		return 0;
	w.shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w.shared == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < a->n; i++) {
		struct child *c;

		while (!(c = free_place(&w)))
			await(&w);
		if (monotonic_ns() < until_ns)
			begin(&w, c, i);
		else
			errors[i] = -ETIMEDOUT;
	}
	while (await(&w))
		;
	memcpy(results, w.shared, bytes);
	munmap(w.shared, bytes);
	return 0;
}
