/* SPDX-License-Identifier: MIT */
/*
 * How the client reaches NVIDIA's driver: a table with one implementation for the kernel
 * (nvrm_transport_syscall) and, in tests, a scripted one. Descriptors are what ioctl and close_fd
 * of the same table take, and nothing else.
 *
 * All calls return 0 or a count, or -errno, and may come from several threads at once.
 */
#ifndef GPREEMPT_GPU_NVRM_TRANSPORT_H
#define GPREEMPT_GPU_NVRM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/nvrm/scan.h"

struct nvrm_transport {
	const char *name;
	void (*close)(void *data); /* also frees @data */

	/* /dev/nvidiactl, the caller's to close. -ENOENT, -ENXIO: no such driver. */
	int (*open)(void *data);
	/* As ioctl(2), or -errno. EINTR is retried. */
	int (*ioctl)(void *data, int fd, unsigned long request, void *arg);
	void (*close_fd)(void *data, int fd);

	/* Turns readable when @pid exits. A real descriptor, also of a script. */
	int (*pidfd)(void *data, pid_t pid);
	/*
	 * A copy of the @nth descriptor that process has open on the control device, by its number.
	 * The right to it is the right to trace it: -EPERM, -EACCES. -ENOENT: it has no more.
	 * @ret_number: what it is there; or NULL.
	 */
	int (*borrow)(void *data, int pidfd, pid_t pid, unsigned int nth, uint32_t *ret_number);

	/*
	 * A whole file below /proc, by its path there ("driver/nvidia/version", "7/stat"), NUL
	 * after it; the caller's to free. Links ("7/fd/3", "7/exe") read as what they point to.
	 */
	int (*read_proc)(void *data, const char *path, char **ret_text, size_t *ret_len);
	/*
	 * The names in a directory below /proc without "." and "..", each ended by NUL, an empty
	 * one last; the caller's to free.
	 */
	int (*list_proc)(void *data, const char *path, char **ret_names);
	/* The same of processes that may be hostile and have any number of files. */
	const struct nvrm_proc_files *files;

	uint64_t (*now_ns)(void *data); /* CLOCK_MONOTONIC */
};

/* The kernel. Files are looked up below @root ("" or NULL: the real ones); NULL on ENOMEM. */
extern const struct nvrm_transport nvrm_transport_syscall;
void *nvrm_syscall_new(const char *root);

#endif
