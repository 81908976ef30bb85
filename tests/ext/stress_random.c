/* SPDX-License-Identifier: MIT */
/*
 * usage: extrandom PID QUEUES N [SEED]
 *
 * Takes queues of the process, which must be the only one on GPU 0, off N times through the
 * extension: all of them, or some of them alone, each time for another time, after another pause.
 * Prints
 *
 *     holds N caught N seed N
 *
 * where a hold has caught a dispatch when the software GPU had to save waves for it: whatever it
 * saved then was of queues that were held. Exit status 0 when no call failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "abi/kfd_gpreempt.h"

#define MAX_QUEUES 64u
#define LONGEST_US 3000u /* of a hold, and of a pause */
#define COUNTERS "/sys/kernel/debug/kfdsim/0/counters"

static unsigned int seed;

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pass(void)
{
	struct timespec t = { .tv_nsec = below(LONGEST_US) * 1000L };

	ppoll(NULL, 0, &t, NULL);
}

static uint64_t saves(void)
{
	unsigned long long n = 0;
	char line[128];
	FILE *f = fopen(COUNTERS, "re");

	if (!f)
		die(COUNTERS);
	while (fgets(line, sizeof(line), f) && sscanf(line, "saves %llu", &n) != 1)
		continue;
	fclose(f);
	return n;
}

static int call(int fd, unsigned long request, struct kfd_gpreempt_entry *es, uint32_t n,
		uint32_t flags)
{
	bool map = request == KFD_GPREEMPT_FAST_REMAP;
	struct kfd_gpreempt_batch b = {
		.entries = (uintptr_t)es,
		.n_unmap = map ? 0 : n,
		.n_map = map ? n : 0,
		.flags = flags,
		.grace = 1,
	};

	return ioctl(fd, request, &b);
}

/* All, by one entry, or at least one of them by its number; how many entries. */
static uint32_t choose(struct kfd_gpreempt_entry *es, uint32_t pid, uint32_t n_queues, bool all)
{
	uint32_t n = 0;

	memset(es, 0, MAX_QUEUES * sizeof(*es));
	for (uint32_t id = 0; id < n_queues && !all; id++) {
		if (below(2) || (id + 1 == n_queues && !n))
			es[n++].queue_id = id;
	}
	if (all)
		es[n++].queue_id = KFD_GPREEMPT_ALL_QUEUES;
	for (uint32_t i = 0; i < n; i++) {
		es[i].pid = pid;
		es[i].gpu_id = KFD_GPREEMPT_ANY_GPU;
	}
	return n;
}

/* True: something was caught. */
static bool hold(int fd, uint32_t pid, uint32_t n_queues)
{
	struct kfd_gpreempt_entry es[MAX_QUEUES];
	bool all = below(2);
	uint32_t n = choose(es, pid, n_queues, all);
	uint64_t before = saves(), after;

	if (call(fd, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, es, n,
		 all ? 0 : KFD_GPREEMPT_VICTIMS_ONLY) != (int)n)
		die("unmap");
	after = saves();
	pass();
	if (call(fd, KFD_GPREEMPT_FAST_REMAP, es, n, 0) != (int)n)
		die("map");
	pass();
	return after > before;
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text && !*end)
		return (uint32_t)n;
	fprintf(stderr, "extrandom: '%s' is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	int fd = open("/dev/" KFD_GPREEMPT_DEVICE, O_RDWR | O_CLOEXEC);
	unsigned int first_seed = argc > 4 ? number(argv[4]) : 1;
	uint32_t n, caught = 0;

	if (argc < 4 || fd < 0 || number(argv[2]) > MAX_QUEUES) {
		fprintf(stderr, "usage: extrandom PID QUEUES N [SEED]\n");
		return 2;
	}
	seed = first_seed;
	for (n = 0; n < number(argv[3]); n++)
		caught += hold(fd, number(argv[1]), number(argv[2]));
	printf("holds %u caught %u seed %u\n", n, caught, first_seed);
	return 0;
}
