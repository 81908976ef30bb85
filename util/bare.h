/* SPDX-License-Identifier: MIT */
/*
 * For code that runs in a bare clone of a process: other threads may have held any lock of the C
 * library when it was made, and it may share their memory. It makes system calls and nothing else.
 */
#ifndef GPREEMPT_UTIL_BARE_H
#define GPREEMPT_UTIL_BARE_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The sanitizers' run-time belongs to threads that do not exist in a clone. */
#define BARE __attribute__((no_sanitize("thread", "address", "undefined")))

/* Elsewhere errno would be another thread's, and so would be what a sanitizer does in clone(2). */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_THREAD__)
#define BARE_MAY_SHARE_MEMORY 1
#else
#define BARE_MAY_SHARE_MEMORY 0
#endif

/* As the kernel answers: a result, or -errno. */
BARE static inline long bare_syscall(long number, long a, long b, long c, long d, long e,
				      long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
	long result = syscall(number, a, b, c, d, e, f);

	return result < 0 ? -errno : result;
#endif
}

#define BARE_ARGS_(number, a, b, c, d, e, f, ...) \
	bare_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* bare_call(number, up to six arguments) */
#define bare_call(...) BARE_ARGS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Closes all descriptors from @first on. */
BARE static inline void bare_close_from(int first)
{
#ifdef SYS_close_range
	if (bare_call(SYS_close_range, first, ~0u, 0) == 0)
		return;
#endif
	for (int fd = first; fd < 65536; fd++)
		bare_call(SYS_close, fd);
}

#endif
