/* SPDX-License-Identifier: MIT */
/*
 * Finds the processes that have a GPU open, by the names of their descriptors in /proc, a step at a
 * time. A step costs no more than its budget, however many processes and descriptors there are, and
 * users take turns in it: who has 100,000 descriptors waits for them himself.
 *
 * Who is there and whose it is the kernel tells. What descriptors are is a question (question.h),
 * which may be answered later or, where the process sees to that, never.
 */
#ifndef GPREEMPT_GPU_NVRM_SCAN_H
#define GPREEMPT_GPU_NVRM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct nvrm_scan_budget {
	unsigned int processes; /* that are listed */
	unsigned int descriptors; /* that are read, and processes that are looked at */
};

struct nvrm;
struct nvrm_scan;

int nvrm_scan_new(struct nvrm *n, struct nvrm_scan **ret);
void nvrm_scan_free(struct nvrm_scan *s); /* accepts NULL */
/*
 * 0: all that is due has been looked at; 1: there is more. Whoever is known stays so until it was
 * looked at again. -errno: the processes could not be listed.
 */
int nvrm_scan_step(struct nvrm_scan *s, uint64_t now_ns, const struct nvrm_scan_budget *budget);
/* Takes what was answered since. How many questions are under way. */
size_t nvrm_scan_take(struct nvrm_scan *s, uint64_t now_ns);
/* Processes of which nobody could find out, the last time, whether they have one open. */
size_t nvrm_scan_unseen(const struct nvrm_scan *s);
/*
 * The pids that are known by now, ascending: how many, of which @max at most are written. Where
 * these are not all, no user has more than another who has some left out. -ENOMEM.
 */
int nvrm_scan_list(const struct nvrm_scan *s, pid_t *ret, size_t max);

#endif
