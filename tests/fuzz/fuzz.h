/* SPDX-License-Identifier: MIT */
/*
 * A target is one file with this function. clang's libFuzzer calls it with bytes of its own
 * making, replay.c with the files of the corpus. It crashes or it returns 0.
 */
#ifndef GPREEMPT_TESTS_FUZZ_FUZZ_H
#define GPREEMPT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What a parser promises whatever it is fed. */
#define PROMISE(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

#endif
