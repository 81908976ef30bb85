/* SPDX-License-Identifier: MIT */
/* Starting a software GPU that ends with us. */
#ifndef GPREEMPT_GPU_SOFT_STARTED_H
#define GPREEMPT_GPU_SOFT_STARTED_H

#include <stddef.h>
#include <stdint.h>

#define SOFTGPU_PROGRAM "gpreempt-softgpu"

struct softgpu_started { /* what it tells its parent, once */
	int32_t error; /* -errno; 0: it is ready */
	char why[252];
};

struct softgpu_child;

/*
 * Starts one with its socket at @path, which is removed with it, and waits until it is ready.
 * @preset may be NULL. -EINVAL: no such preset; -ENOPKG: the program is not installed; in any
 * failure a line in @ret_why (@size bytes).
 */
int softgpu_start(const char *preset, const char *path, struct softgpu_child **ret, char *ret_why,
		  size_t size);
void softgpu_end(struct softgpu_child *c); /* accepts NULL */

#endif
