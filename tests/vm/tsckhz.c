/* SPDX-License-Identifier: MIT */
/*
 * usage: tsckhz
 *
 * Prints this machine's time stamp counter's frequency in kHz, by its clock. An emulated CPU has
 * the same counter, and its kernel, left to find out for itself on a busy machine, may be wrong by
 * half and run through its time as fast.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 50
#define SPAN_MS 200

struct moment {
	uint64_t ns, ticks;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Both clocks at once: of several readings the one that took least. */
static struct moment read_both(void)
{
	uint64_t least = UINT64_MAX;
	struct moment best = { 0 };

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc(), ns = now_ns(), after = __rdtsc();

		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct moment){ ns, before + least / 2 };
	}
	return best;
}

int main(void)
{
	struct moment from = read_both(), to;

	poll(NULL, 0, SPAN_MS);
	to = read_both();
	to.ticks -= from.ticks;
	to.ns -= from.ns;
	printf("%llu\n", (unsigned long long)(to.ticks * 1000000 / to.ns));
	return 0;
}
