/* SPDX-License-Identifier: MIT */
/* Usage: idle SECONDS OTHERS: what a scheduler costs on a machine on which nothing happens. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/newcomers/machine.h"

#define SETTLE_NS 40000000000ull

int main(int argc, char **argv)
{
	const char *why = machine_impossible();
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	size_t others = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t settle = argc > 3 ? strtoull(argv[3], NULL, 10) * 1000000000ull : SETTLE_NS;
	struct machine_cost before, after;
	struct machine *m;
	double unit = 1e7 * (double)seconds;

	if (why) {
		fprintf(stderr, "idle: %s\n", why);
		return 1;
	}
	machine_enter();
	m = machine_start();
	machine_crowd(m, others);
	machine_run(m, machine_now_ns() + settle, NULL);
	before = machine_cost(m);
	machine_run(m, machine_now_ns() + seconds * 1000000000ull, NULL);
	after = machine_cost(m);
	printf("%zu others: own %.4f %%, readers %.4f %%, %.1f turns/s\n", others,
	       (double)(after.own_ns - before.own_ns) / unit,
	       (double)(after.readers_ns - before.readers_ns) / unit,
	       (double)(after.turns - before.turns) / (double)seconds);
	machine_end(m);
	return 0;
}
