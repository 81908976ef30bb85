/* SPDX-License-Identifier: MIT */
/* Scope-bound cleanup and the few macros every user-space file may use. */
#ifndef GPREEMPT_UTIL_MACROS_H
#define GPREEMPT_UTIL_MACROS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC 1000000000ull

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/*
 * MIN() and MAX() evaluate each argument once, and are of the type that ?: would have. Of constants
 * they are constants, also outside functions.
 */
#define MIN_AND_MAX_OF(name, type) \
	static inline type min_##name(type a, type b) \
	{ \
		return a < b ? a : b; \
	} \
	static inline type max_##name(type a, type b) \
	{ \
		return a > b ? a : b; \
	}

MIN_AND_MAX_OF(int, int)
MIN_AND_MAX_OF(uint, unsigned int)
MIN_AND_MAX_OF(long, long)
MIN_AND_MAX_OF(ulong, unsigned long)
MIN_AND_MAX_OF(llong, long long)
MIN_AND_MAX_OF(ullong, unsigned long long)
MIN_AND_MAX_OF(u128, unsigned __int128)
MIN_AND_MAX_OF(double, double)

#define FOR_TYPE_OF(f, a, b) \
	_Generic(1 ? (a) : (b), int \
		 : f##_int, unsigned int \
		 : f##_uint, long \
		 : f##_long, unsigned long \
		 : f##_ulong, long long \
		 : f##_llong, unsigned long long \
		 : f##_ullong, unsigned __int128 \
		 : f##_u128, double \
		 : f##_double)
#define MIN(a, b) \
	__builtin_choose_expr(__builtin_constant_p((a) < (b)), (a) < (b) ? (a) : (b), \
			      FOR_TYPE_OF(min, a, b)(a, b))
#define MAX(a, b) \
	__builtin_choose_expr(__builtin_constant_p((a) > (b)), (a) > (b) ? (a) : (b), \
			      FOR_TYPE_OF(max, a, b)(a, b))

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* Takes a pointer out of a variable whose cleanup must then do nothing. */
#define steal_ptr(pp) \
	({ \
		__typeof__(*(pp)) _stolen = *(pp); \
		*(pp) = NULL; \
		_stolen; \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
