/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Integer types and error numbers for code that is built both in user space and in the kernel. */
#ifndef GPREEMPT_ABI_TYPES_H
#define GPREEMPT_ABI_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef INT64_MAX
#define INT64_MAX S64_MAX
#endif
#else
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* A struct that crosses a boundary states its size where it is declared. */
#define ABI_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has the wrong size")
#define ABI_AT(type, field, off) \
	static_assert(offsetof(type, field) == (off), #type "." #field " is misplaced")

#endif
