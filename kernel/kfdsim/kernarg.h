/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The one program that kfdsim's compute units can run: a link of a checksum chain.
 *
 * A dispatch whose kernarg points at a struct kfdsim_kernarg replaces, when it completes, the word
 * named there by kfdsim_mix(word, seq). Who submits 0, 1, 2, ... knows what the word must be after
 * n packets: one that was lost, repeated or reordered leaves another value.
 */
#ifndef GPREEMPT_KERNEL_KFDSIM_KERNARG_H
#define GPREEMPT_KERNEL_KFDSIM_KERNARG_H

#include "abi/types.h"

#define KFDSIM_KERNARG_MAGIC 0x6b66647368616465ull

struct kfdsim_kernarg {
	uint64_t magic;
	uint64_t word; /* address of a uint64_t, 8-aligned */
	uint64_t seq;
};
ABI_SIZE(struct kfdsim_kernarg, 24);

/* Not commutative in its order of application, and a bijection of the word for each seq. */
static inline uint64_t kfdsim_mix(uint64_t word, uint64_t seq)
{
	uint64_t x = (word ^ (seq + 1) * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return (x << 31 | x >> 33) + seq;
}

#endif
