/* SPDX-License-Identifier: MIT */
/*
 * What is done to contexts for measuring, without a daemon, a guard or a policy. JSON.
 *
 *	contexts selftest		the driver, on a context of our own
 *	contexts look PID		its groups
 *	contexts latency PID FILE N	N holds, timed by the beats in the job's file (job.h)
 *	contexts suspends PID N		N holds, of 1 to 4 ms, as often as there is time to run
 *	contexts slice US PID...	until its input ends
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench/h200/job.h"
#include "gpu/nvrm/process.h"
#include "gpu/nvrm/selftest.h"
#include "util/macros.h"

#define MAX_ROUNDS 100000
#define MAX_PIDS 16
#define WAIT_NS NSEC_PER_SEC

struct rounds {
	uint64_t *suspend, *frozen, *resume, *running; /* ns */
	size_t n;
};

struct watcher {
	volatile uint32_t *beats;
	_Atomic uint64_t changed_ns; /* the last beat that was seen */
	_Atomic uint64_t from_ns, again_ns; /* the first one seen from then on; 0: none yet */
	atomic_bool end;
	pthread_t thread;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static _Noreturn void die(const char *what, int r, pid_t pid, const struct nvrm_failure *f)
{
	struct gpu_why text = { .message = "" };

	if (f)
		nvrm_failure_describe(r, pid, f, &text);
	printf("{\"error\": \"%s: %s\", \"errno\": %d}\n", what,
	       text.message[0] ? text.message : strerror(-r), -r);
	exit(1);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end == text || *end)
		die(text, -EINVAL, 0, NULL);
	return value;
}

static struct nvrm *open_driver(void)
{
	void *data = nvrm_syscall_new(NULL);
	struct nvrm *n;
	int r = data ? nvrm_new(&nvrm_transport_syscall, data, &n) : -ENOMEM;

	if (r < 0)
		die("driver", r, 0, NULL);
	return n;
}

static struct nvrm_process *open_process(struct nvrm *n, const char *text)
{
	pid_t pid = (pid_t)number(text);
	struct nvrm_failure f = { 0 };
	struct nvrm_process *p;
	int r = nvrm_process_open(n, pid, &p, &f);

	if (r < 0)
		die("open", r, pid, &f);
	return p;
}

/* False: it has ended. */
static bool let_pass(const struct nvrm_process *p, uint64_t ns)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };
	struct timespec t = { .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };

	return ppoll(&fd, 1, &t, NULL) == 0;
}

/* ---- selftest ---- */

static int selftest(struct nvrm *n, char **args)
{
	struct nvrm_failure f = { 0 };
	struct nvrm_selftest t;
	int r = nvrm_selftest(n, 0, &t, &f);

	if (r < 0) {
		printf("{\"error\": \"self-test: %s, status %d\", \"errno\": %d}\n",
		       f.step ? f.step : "", f.status, -r);
		return 1;
	}
	printf("{\"suspend_us\": %.1f, \"frozen_us\": %.1f, \"resume_us\": %.1f, "
	       "\"running_us\": %.1f}\n",
	       (double)t.suspend_ns / NSEC_PER_USEC, (double)t.frozen_ns / NSEC_PER_USEC,
	       (double)t.resume_ns / NSEC_PER_USEC, (double)t.running_ns / NSEC_PER_USEC);
	return 0;
}

/* ---- look ---- */

static int look(struct nvrm *n, char **args)
{
	struct nvrm_process *p = open_process(n, args[0]);

	printf("{\"pid\": %d, \"groups\": [", (int)p->pid);
	for (size_t i = 0; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];

		printf("%s{\"gpu\": %u, \"id\": %u, \"compute\": %s, \"channels\": %zu, "
		       "\"slice_us\": %llu}",
		       i ? ", " : "", g->gpu, g->id, g->compute ? "true" : "false", g->n_channels,
		       (unsigned long long)g->slice_us);
	}
	printf("]}\n");
	nvrm_process_close(p);
	return 0;
}

/* ---- rounds ---- */

static void rounds_init(struct rounds *r)
{
	*r = (struct rounds){
		.suspend = calloc(MAX_ROUNDS, sizeof(uint64_t)),
		.frozen = calloc(MAX_ROUNDS, sizeof(uint64_t)),
		.resume = calloc(MAX_ROUNDS, sizeof(uint64_t)),
		.running = calloc(MAX_ROUNDS, sizeof(uint64_t)),
	};
	if (!r->suspend || !r->frozen || !r->resume || !r->running)
		die("memory", -ENOMEM, 0, NULL);
}

static void print_list(const char *name, const uint64_t *ns, size_t n)
{
	printf(", \"%s\": [", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%.1f", i ? ", " : "", (double)ns[i] / NSEC_PER_USEC);
	printf("]");
}

static void rounds_print(struct rounds *r, bool watched)
{
	printf("{\"rounds\": %zu", r->n);
	print_list("suspend_us", r->suspend, r->n);
	print_list("resume_us", r->resume, r->n);
	if (watched) {
		print_list("frozen_us", r->frozen, r->n);
		print_list("running_us", r->running, r->n);
	}
	printf("}\n");
	free(r->suspend);
	free(r->frozen);
	free(r->resume);
	free(r->running);
}

static void hold(struct nvrm_process *p, struct rounds *r, uint64_t began)
{
	struct nvrm_failure f = { 0 };
	uint64_t off_ns;
	int e = nvrm_hold(&p, 1, NVRM_ALL_GPUS, &off_ns, &f);

	if (e < 0)
		die("hold", e, p->pid, &f);
	r->suspend[r->n] = now_ns() - began;
}

static void let_go(struct nvrm_process *p, struct rounds *r, uint64_t began)
{
	struct nvrm_failure f = { 0 };
	int e = nvrm_let_go(&p, 1, NVRM_ALL_GPUS, &f);

	if (e < 0)
		die("let go", e, p->pid, &f);
	r->resume[r->n] = now_ns() - began;
}

static int suspends(struct nvrm *n, char **args)
{
	struct nvrm_process *p = open_process(n, args[0]);
	uint64_t wanted = MIN(number(args[1]), MAX_ROUNDS);
	struct rounds r;

	rounds_init(&r);
	for (; r.n < wanted; r.n++) {
		if (!let_pass(p, (1 + r.n * 7 % 4) * NSEC_PER_MSEC + r.n % 97 * 10000))
			break;
		hold(p, &r, now_ns());
		let_pass(p, (1 + r.n % 4) * NSEC_PER_MSEC / 2);
		let_go(p, &r, now_ns());
	}
	nvrm_process_close(p);
	rounds_print(&r, false);
	return 0;
}

/* ---- latency ---- */

static void *watch(void *arg)
{
	struct watcher *w = arg;
	uint32_t last[JOB_N_BEATS] = { 0 };

	while (!atomic_load(&w->end)) {
		bool changed = false;
		uint64_t now, from;

		for (int i = 0; i < JOB_N_BEATS; i++) {
			uint32_t beat = w->beats[i * JOB_BEAT_STRIDE];

			changed |= beat != last[i];
			last[i] = beat;
		}
		if (!changed)
			continue;
		now = now_ns();
		from = atomic_load(&w->from_ns);
		atomic_store(&w->changed_ns, now);
		if (from && now >= from && !atomic_load(&w->again_ns))
			atomic_store(&w->again_ns, now);
	}
	return NULL;
}

static void start_watcher(struct watcher *w, const char *file)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);
	char *at = fd < 0 ? MAP_FAILED : mmap(NULL, JOB_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	int r;

	if (at == MAP_FAILED)
		die(file, -errno, 0, NULL);
	close(fd);
	*w = (struct watcher){ .beats = (volatile uint32_t *)(void *)(at + JOB_BEATS) };
	r = pthread_create(&w->thread, NULL, watch, w);
	if (r)
		die("thread", -r, 0, NULL);
}

static void timed_round(struct nvrm_process *p, struct watcher *w, struct rounds *r)
{
	uint64_t began = now_ns(), changed, again;

	hold(p, r, began);
	let_pass(p, 2 * NSEC_PER_MSEC);
	changed = atomic_load(&w->changed_ns);
	r->frozen[r->n] = changed > began ? changed - began : 0;

	began = now_ns();
	atomic_store(&w->again_ns, 0);
	atomic_store(&w->from_ns, began);
	let_go(p, r, began);
	while (!(again = atomic_load(&w->again_ns)) && now_ns() < began + WAIT_NS)
		;
	atomic_store(&w->from_ns, 0);
	r->running[r->n] = again ? again - began : WAIT_NS;
}

static int latency(struct nvrm *n, char **args)
{
	struct nvrm_process *p = open_process(n, args[0]);
	uint64_t wanted = MIN(number(args[2]), MAX_ROUNDS);
	struct watcher w;
	struct rounds r;

	rounds_init(&r);
	start_watcher(&w, args[1]);
	for (; r.n < wanted; r.n++) {
		if (!let_pass(p, (3 + r.n % 5) * NSEC_PER_MSEC))
			break;
		timed_round(p, &w, &r);
	}
	atomic_store(&w.end, true);
	pthread_join(w.thread, NULL);
	nvrm_process_close(p);
	rounds_print(&r, true);
	return 0;
}

/* ---- slice ---- */

static int slice(struct nvrm *n, char **args)
{
	struct nvrm_process *all[MAX_PIDS];
	uint64_t us = number(args[0]);
	struct nvrm_failure f = { 0 };
	size_t count = 0;

	for (args++; *args && count < MAX_PIDS; args++, count++) {
		int r;

		all[count] = open_process(n, *args);
		r = nvrm_slice(all[count], NVRM_ALL_GPUS, us, &f);
		if (r < 0)
			die("slice", r, all[count]->pid, &f);
	}
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	while (count > 0)
		nvrm_process_close(all[--count]);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args; /* at least */
		int (*run)(struct nvrm *n, char **args);
	} commands[] = {
		{ "selftest", 0, selftest }, { "look", 1, look },   { "latency", 3, latency },
		{ "suspends", 2, suspends }, { "slice", 2, slice },
	};
	struct nvrm *n;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (argc < 2 || strcmp(argv[1], commands[i].name) || argc - 2 < commands[i].args)
			continue;
		n = open_driver();
		r = commands[i].run(n, argv + 2);
		nvrm_free(n);
		return r;
	}
	fprintf(stderr, "usage: contexts selftest|look|latency|suspends|slice ...\n");
	return 2;
}
