/* SPDX-License-Identifier: MIT */
#include "tests/watchpoints/actor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

volatile uint64_t actor_words[ACTOR_WORDS] __attribute__((aligned(64)));

enum verb { WRITE, SET_THREADS, CHURN, EXEC, FORK, KEEP_LOCK };

struct order {
	enum verb verb;
	uint32_t thread, word, n;
};

static struct worker {
	pthread_t thread;
	int to[2], from[2];
} workers[ACTOR_THREADS];
static uint32_t n_workers;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void put(int fd, const void *data, size_t len)
{
	must(write(fd, data, len) == (ssize_t)len);
}

static bool get(int fd, void *data, size_t len)
{
	return read(fd, data, len) == (ssize_t)len;
}

/* ---- in the actor ---- */

static void write_word(const struct order *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		actor_words[o->word]++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct order o;

	while (get(w->to[0], &o, sizeof(o)) && o.n) {
		write_word(&o);
		put(w->from[1], "", 1);
	}
	return NULL;
}

static void add_worker(void)
{
	struct worker *w = &workers[n_workers++];

	must(pipe(w->to) == 0 && pipe(w->from) == 0);
	must(pthread_create(&w->thread, NULL, work, w) == 0);
}

static void end_worker(void)
{
	struct worker *w = &workers[--n_workers];
	const struct order over = { .n = 0 };

	put(w->to[1], &over, sizeof(over));
	pthread_join(w->thread, NULL);
	for (int i = 0; i < 2; i++) {
		close(w->to[i]);
		close(w->from[i]);
	}
}

static void have_written(const struct order *o)
{
	char done;

	if (!o->thread) {
		write_word(o);
		return;
	}
	put(workers[o->thread - 1].to[1], o, sizeof(*o));
	must(get(workers[o->thread - 1].from[0], &done, 1));
}

static void *write_once(void *arg)
{
	write_word(arg);
	return NULL;
}

static void churn(const struct order *o)
{
	struct order once = { .word = o->word, .n = 1 };
	pthread_t t;

	for (uint32_t i = 0; i < o->n; i++) {
		must(pthread_create(&t, NULL, write_once, &once) == 0);
		pthread_join(t, NULL);
	}
}

/* A page of which nobody knows what is in it: who touches it waits for ever. */
static void *page_of_nobody(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	r.range.start = (uintptr_t)page;
	r.range.len = 4096;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &r) < 0)
		return NULL;
	return page;
}

static void *keep_lock(void *arg)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	int *ready = arg;
	void *page = page_of_nobody();
	int32_t r = fd < 0 || !page ? -EOPNOTSUPP : 0;

	put(*ready, &r, sizeof(r));
	if (r == 0)
		must(read(fd, page, sizeof(uint64_t)) < 0);
	return NULL;
}

static void carry_out(const struct order *o, int from)
{
	static int ready;
	int32_t answer = 0;
	pthread_t t;

	switch (o->verb) {
	case WRITE:
		have_written(o);
		break;
	case SET_THREADS:
		while (n_workers < o->n)
			add_worker();
		while (n_workers > o->n)
			end_worker();
		break;
	case CHURN:
		churn(o);
		break;
	case EXEC:
		fcntl(from, F_SETFD, FD_CLOEXEC); /* its end is the answer */
		execl("/bin/sleep", "sleep", "1000000", NULL);
		abort();
	case FORK:
		answer = fork();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (answer == 0)
			pause();
		break;
	case KEEP_LOCK:
		ready = from;
		must(pthread_create(&t, NULL, keep_lock, &ready) == 0);
		return;
	}
	put(from, &answer, sizeof(answer));
}

static void act(int to, int from)
{
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (get(to, &o, sizeof(o)))
		carry_out(&o, from);
	_exit(0);
}

/* ---- for the test ---- */

void actor_start(struct actor *a)
{
	int to[2], from[2];

	must(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	a->pid = fork();
	must(a->pid >= 0);
	if (a->pid == 0) {
		close(to[1]);
		close(from[0]);
		act(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	a->to = to[1];
	a->from = from[0];
}

void actor_end(struct actor *a)
{
	kill(a->pid, SIGKILL);
	waitpid(a->pid, NULL, 0);
	close(a->to);
	close(a->from);
}

static int32_t answer_of(struct actor *a)
{
	int32_t answer;

	must(get(a->from, &answer, sizeof(answer)));
	return answer;
}

static void begin(struct actor *a, struct order o)
{
	put(a->to, &o, sizeof(o));
}

void actor_write(struct actor *a, uint32_t thread, uint32_t word, uint32_t times)
{
	begin(a, (struct order){ WRITE, thread, word, times });
	answer_of(a);
}

void actor_set_threads(struct actor *a, uint32_t n)
{
	begin(a, (struct order){ SET_THREADS, .n = n });
	answer_of(a);
}

void actor_churn(struct actor *a, uint32_t word, uint32_t n)
{
	begin(a, (struct order){ CHURN, .word = word, .n = n });
}

void actor_wait(struct actor *a)
{
	answer_of(a);
}

void actor_exec(struct actor *a)
{
	char end;

	begin(a, (struct order){ .verb = EXEC });
	must(!get(a->from, &end, 1));
}

pid_t actor_fork(struct actor *a)
{
	begin(a, (struct order){ .verb = FORK });
	return answer_of(a);
}

int actor_keep_lock(struct actor *a)
{
	begin(a, (struct order){ .verb = KEEP_LOCK });
	return answer_of(a);
}
