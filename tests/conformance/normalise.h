/* SPDX-License-Identifier: MIT */
/*
 * Takes out of a line what two runs of one answer may differ in: pids, addresses and times.
 *
 * Only what is known to be one is replaced: a number is a pid when it is that of a process of the
 * case, an address when it lies in memory the case mapped. Every other number is an answer.
 */
#ifndef GPREEMPT_TESTS_CONFORMANCE_NORMALISE_H
#define GPREEMPT_TESTS_CONFORMANCE_NORMALISE_H

#include <stddef.h>
#include <stdint.h>

enum name_kind {
	NAME_PID, /* of a process or thread: a whole decimal number */
	NAME_GPU, /* what the driver calls a GPU in this boot: decimal, or hexadecimal without 0x */
	NAME_PASID, /* what the hardware calls a process: decimal, or hexadecimal with 0x */
	NAME_ADDRESS, /* hexadecimal with 0x, of @bytes bytes from @value on */
};

struct name {
	enum name_kind kind;
	uint64_t value;
	uint64_t bytes;
	char text[32]; /* what stands for it: "target" */
};

/*
 * Each name found becomes "<text>", an address inside "<text+0x38>", a number with a unit of time
 * (ns, us, ms) "<time>". The result is the caller's to free; NULL: ENOMEM.
 */
char *normalise(const struct name *names, size_t n, const char *line);

#endif
