/* SPDX-License-Identifier: MIT */
/*
 * usage: killmoment PID SIGNAL JOURNAL random|held|ioctl MS
 *
 * Sends the signal at a moment of its own: after a random part of MS, or as soon as the journal has
 * an entry, or a thread of the process or of one of its children is seen inside an ioctl on the
 * driver; after MS in any case. What it saw last before it did:
 *
 *     held N ioctl N
 *
 * the journal's entries, and threads inside such a call.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cmd/gpreemptd/journal.h"

#define MAX_THREADS 64

struct sight {
	unsigned int held, in_ioctl;
};

struct victim {
	int pid;
	const struct journal_file *journal; /* NULL: none */
	int threads[MAX_THREADS]; /* their "stack" files */
	unsigned int n;
};

static uint64_t number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text && !*end)
		return n;
	fprintf(stderr, "killmoment: '%s' is not a number\n", text);
	exit(2);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static const struct journal_file *map_journal(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED :
			   mmap(NULL, sizeof(struct journal_file), PROT_READ, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void open_threads(struct victim *v, int pid)
{
	char path[300];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d)) && v->n < MAX_THREADS) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stack", pid, e->d_name);
		v->threads[v->n] = open(path, O_RDONLY | O_CLOEXEC);
		v->n += v->threads[v->n] >= 0;
	}
	if (d)
		closedir(d);
}

/* Those that its main thread has made: its holders among them. */
static void open_children(struct victim *v)
{
	char path[64];
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", v->pid, v->pid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		open_threads(v, pid);
	if (f)
		fclose(f);
}

/* The driver waits for the hardware awake: what a thread is doing only its stack tells. */
static bool is_in_ioctl(int thread)
{
	char text[4096];
	ssize_t n = pread(thread, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "kfd_ioctl") || strstr(text, "gp_ioctl"); /* or the extension's */
}

static struct sight look(const struct victim *v)
{
	struct sight s = { 0 };

	for (unsigned int i = 0; v->journal && i < JOURNAL_ENTRIES; i++)
		s.held += v->journal->entries[i].pid != 0;
	for (unsigned int i = 0; i < v->n; i++)
		s.in_ioctl += is_in_ioctl(v->threads[i]);
	return s;
}

static bool is_the_moment(const char *when, const struct sight *s)
{
	if (strcmp(when, "held") == 0)
		return s->held;
	return strcmp(when, "ioctl") == 0 && s->in_ioctl;
}

int main(int argc, char **argv)
{
	struct victim v = { 0 };
	uint64_t until, ms;
	struct sight s;

	if (argc != 6) {
		fprintf(stderr, "usage: killmoment PID SIGNAL JOURNAL random|held|ioctl MS\n");
		return 2;
	}
	v.pid = (int)number(argv[1]);
	v.journal = map_journal(argv[3]);
	open_threads(&v, v.pid);
	open_children(&v);
	srand((unsigned int)now_us());
	ms = number(argv[5]);
	until = now_us() + (strcmp(argv[4], "random") ? ms * 1000 : rand() % (ms * 1000 + 1));
	do {
		s = look(&v);
	} while (!is_the_moment(argv[4], &s) && now_us() < until && poll(NULL, 0, 0) == 0);
	if (kill(v.pid, (int)number(argv[2])) < 0) {
		perror("kill");
		return 1;
	}
	printf("held %u ioctl %u\n", s.held, s.in_ioctl);
	return 0;
}
