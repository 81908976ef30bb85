/* SPDX-License-Identifier: MIT */
/*
 * The points at which a distribution is told: the smallest sample, every percent, every tenth of
 * one above 99, the largest. By the nearest rank, so that each is a sample that occurred.
 */
#ifndef GPREEMPT_UTIL_CURVE_H
#define GPREEMPT_UTIL_CURVE_H

#include <stddef.h>
#include <stdint.h>

#define CURVE_POINTS 110

static inline uint32_t curve_permille(size_t point)
{
	return point < 100 ? (uint32_t)point * 10 : 990 + ((uint32_t)point - 99);
}

/* Which of @n samples in order it is, from 0. There must be one. */
static inline size_t curve_rank(size_t n, uint32_t permille)
{
	size_t rank = (n * permille + 999) / 1000;

	return rank ? rank - 1 : 0;
}

#endif
