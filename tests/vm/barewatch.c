/* SPDX-License-Identifier: MIT */
/*
 * usage: barewatch ROUNDS
 *
 * How long a bare hardware watchpoint takes to wake its watcher: from when a process reads the
 * clock and writes, until the watcher's poll(2) returns. Half to one and a half milliseconds pass
 * between two writes. Prints the median and the 99th percentile, in microseconds:
 *
 *     p50_us 33.1 p99_us 46.0
 *
 * Exit status 77: there are no watchpoints here.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 100000
#define PATIENCE_MS 10000
#define BUFFER_BYTES 8192

static volatile uint64_t watched __attribute__((aligned(8)));

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void writes(volatile uint64_t *told, unsigned int rounds)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	unsigned int seed = 1;
	uint64_t ticks;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (rounds--) {
		struct itimerspec gap = { .it_value.tv_nsec = 500000 + rand_r(&seed) % 1000000 };

		timerfd_settime(timer, 0, &gap, NULL);
		if (read(timer, &ticks, sizeof(ticks)) < 0)
			break;
		*told = now_ns();
		watched++;
	}
	pause();
}

static int watch(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.wakeup_events = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How many came; two that came together are one. */
static unsigned int wait_for(int fd, const volatile uint64_t *told, unsigned int rounds,
			     uint64_t *ret_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t last = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < rounds && poll(&p, 1, PATIENCE_MS) == 1; i++) {
		uint64_t at = now_ns();

		if (*told != last)
			ret_ns[n++] = at - *told;
		last = *told;
	}
	return n;
}

int main(int argc, char **argv)
{
	static uint64_t ns[MAX_ROUNDS];
	unsigned int rounds = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0, n;
	volatile uint64_t *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int fd;

	if (!rounds || rounds > MAX_ROUNDS || told == MAP_FAILED)
		return 2;
	pid = fork();
	if (pid == 0) {
		writes(told, rounds);
		return 0;
	}
	fd = watch(pid);
	if (fd < 0 || mmap(NULL, BUFFER_BYTES, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		return 77;
	n = wait_for(fd, told, rounds, ns);
	kill(pid, SIGKILL);
	if (n < rounds * 9 / 10)
		return 1;
	qsort(ns, n, sizeof(*ns), compare);
	printf("p50_us %.1f p99_us %.1f\n", (double)ns[n / 2] / 1000,
	       (double)ns[n * 99 / 100] / 1000);
	return 0;
}
