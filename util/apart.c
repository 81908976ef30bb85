/* SPDX-License-Identifier: MIT */
#include "util/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "util/clock.h"

#define AT_ONCE_MAX 64u

struct child {
	size_t i;
	pid_t pid; /* 0: none */
	int done_fd; /* a byte when it is done; it may take longer to end */
	uint64_t until_ns;
};

struct work {
	const struct apart *a;
	char *shared; /* results */
	int *errors;
	struct child children[AT_ONCE_MAX];
	unsigned int at_once;
};

_Noreturn static void be_child(const struct work *w, size_t i, int done_fd)
{
	w->a->run(w->a->user, i, w->shared + i * w->a->result_size);
	_exit(write(done_fd, "", 1) == 1 ? 0 : 1);
}

static void begin(struct work *w, struct child *c, size_t i)
{
	int ends[2];
	pid_t pid = -1;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		pid = fork();
		if (pid == 0)
			be_child(w, i, ends[1]);
		close(ends[1]);
	}
	if (pid < 0) {
		w->errors[i] = -errno;
		return;
	}
	*c = (struct child){ i, pid, ends[0], monotonic_ns() + w->a->limit_ns };
}

/* It is not waited for: whoever has used a driver may sit there as it ends. */
static void finish(struct work *w, struct child *c, int error)
{
	w->errors[c->i] = error;
	if (error)
		kill(c->pid, SIGKILL); /* our own unburied child: the pid is still its */
	waitpid(c->pid, NULL, WNOHANG);
	close(c->done_fd);
	c->pid = 0;
}

static void look_at(struct work *w, struct child *c, uint64_t now_ns)
{
	char byte;
	ssize_t n = read(c->done_fd, &byte, 1);

	if (n >= 0)
		finish(w, c, n == 1 ? 0 : -ECHILD);
	else if (now_ns >= c->until_ns)
		finish(w, c, -ETIMEDOUT);
}

/* Until one is done, or has to be; false: there is none. */
static bool await(struct work *w)
{
	struct pollfd ends[AT_ONCE_MAX];
	uint64_t now_ns = monotonic_ns(), wait_ns = UINT64_MAX;
	unsigned int n = 0;

	for (unsigned int k = 0; k < w->at_once; k++) {
		const struct child *c = &w->children[k];

		if (!c->pid)
			continue;
		ends[n++] = (struct pollfd){ .fd = c->done_fd, .events = POLLIN };
		wait_ns = MIN(wait_ns, c->until_ns > now_ns ? c->until_ns - now_ns : 0);
	}
	if (!n)
		return false;
	poll(ends, n, (int)(wait_ns / NSEC_PER_MSEC) + 1);
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
