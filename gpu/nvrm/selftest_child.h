/* SPDX-License-Identifier: MIT */
/* The two sides of the self-test: a child with a CUDA context, and who holds it. */
#ifndef GPREEMPT_GPU_NVRM_SELFTEST_CHILD_H
#define GPREEMPT_GPU_NVRM_SELFTEST_CHILD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* In a page of both, and of the GPU: its parts are cache lines apart. */
struct selftest_page {
	_Atomic uint32_t beat; /* counted by the GPU */
	uint8_t pad[60];
	_Atomic uint32_t stop; /* ends the kernel and, after it, the child */
	uint8_t pad2[60];
	_Atomic uint64_t changed_ns; /* when the beat was seen to change last, CLOCK_MONOTONIC */
	_Atomic uint64_t again_ns; /* the same, after SELFTEST_SILENCE_NS without a beat */
	_Atomic int32_t error; /* a CUresult: why the kernel was not started */
};

#define SELFTEST_SILENCE_NS 10000000ull

/* What the child says once: the kernel was started, or it cannot be. */
enum selftest_said {
	SELFTEST_STARTED = 1,
	SELFTEST_NO_LIBRARY,
	SELFTEST_NO_CONTEXT, /* no such GPU, no memory left, no right */
	SELFTEST_NO_KERNEL,
};

/* In the child, after fork(2). Says it to @fd, watches the beat, and does not return. */
_Noreturn void selftest_child(struct selftest_page *page, size_t size, unsigned int gpu, int fd);

#endif
