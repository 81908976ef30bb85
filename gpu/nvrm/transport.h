/* SPDX-License-Identifier: MIT */
/*
 * How the client reaches NVIDIA's driver: a table with one implementation for the kernel
 * (nvrm_transport_syscall) and, in tests, a scripted one. Descriptors are what ioctl and close_fd
 * of the same table take, and nothing else.
 *
 * All calls return 0 or a count, or -errno. They may come from several threads at once, but ask(),
 * forget(), hear(), drop_fd() and opened() from one only.
 */
#ifndef GPREEMPT_GPU_NVRM_TRANSPORT_H
#define GPREEMPT_GPU_NVRM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/nvrm/question.h"

struct nvrm_transport {
	void (*close)(void *data); /* also frees @data */

	/* /dev/nvidiactl, the caller's to close. -ENOENT, -ENXIO: no such driver. */
	int (*open)(void *data);
	/* As ioctl(2), or -errno. EINTR is retried. */
	int (*ioctl)(void *data, int fd, unsigned long request, void *arg);
	void (*close_fd)(void *data, int fd);

	/* Turns readable when @pid exits. A real descriptor, also of a script. */
	int (*pidfd)(void *data, pid_t pid);
	/*
	 * Copies of descriptors that process has open on the control device, as
	 * borrow_some_here(), up to NVRM_COPIES; to be dropped. @device is the transport's own way
	 * to name it. Whoever has its pidfd asks that afterwards whether it still was the same
	 * process.
	 */
	int (*borrow)(void *data, pid_t pid, uint64_t device, struct borrow_place *at,
		      struct borrowed *ret);
	/* As close_fd, of a copy: it may be the last one, and closing that may take long. */
	void (*drop_fd)(void *data, int fd);

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
	/*
	 * The same of processes that may be hostile and have any number of files. None of these
	 * opens what a link points to or asks what it is: a target chooses that, and it may never
	 * answer.
	 *
	 * The next numbers among the names in a directory ("", "7/fd"), from *position on: 0 is the
	 * beginning, NVRM_LIST_END means that there are no more. How many.
	 */
	int (*list_numbers)(void *data, const char *path, uint64_t *position, uint32_t *ret,
			    size_t max);
	/* What a link says, cut short where it is longer. */
	int (*read_link)(void *data, const char *path, char *ret, size_t size);
	/* Whose a process is. -ENOENT: it has ended. */
	int (*owner)(void *data, pid_t pid, uid_t *ret);

	uint64_t (*now_ns)(void *data); /* CLOCK_MONOTONIC */

	/*
	 * Has opened() tell when somebody opens a node of the driver's in the /dev that a process
	 * sees: their numbers, up to @max; how many. *@ret_error: why it does not of others, or 0.
	 * It is a reader that does it.
	 */
	int (*watch_nodes)(void *data, pid_t pid, uint64_t device, uint32_t *ret, size_t max,
			   int *ret_error);
	/* It need not tell of that node any more. */
	void (*unwatch_node)(void *data, uint32_t node);
	/*
	 * What was told since, as nodes_opened(), of which opened_fd() is readable; -1: it never
	 * is. -errno: nothing can be told. These four may be NULL: the same.
	 */
	int (*opened)(void *data, uint32_t *ret, size_t max);
	int (*opened_fd)(void *data);

	/*
	 * Has a question answered, at once or until hear() was called. NULL: all four are, and
	 * questions are answered here (nvrm_ask).
	 */
	void (*ask)(void *data, struct nvrm_question *q);
	void (*forget)(void *data, struct nvrm_question *q);
	/*
	 * Readable when there is something to hear; -1: there never is. Hearing sees to copies that
	 * were dropped, too, and tells how long it may take until the next time.
	 */
	int (*answers_fd)(void *data);
	uint64_t (*hear)(void *data);
};

/* The kernel. Files are looked up below @root ("" or NULL: the real ones); NULL on ENOMEM. */
extern const struct nvrm_transport nvrm_transport_syscall;
void *nvrm_syscall_new(const char *root);
/* It is told when nodes are opened, where that is possible; before it has readers. */
void nvrm_syscall_watch(void *data);
/* In a reader: what is to be watched, its owner is told of by this descriptor. */
void nvrm_syscall_watch_by(void *data, int inotify);
/*
 * Has questions answered by readers and copies closed by children, from now on; else they are seen
 * to here. -ENOPKG: the program is not installed.
 */
int nvrm_syscall_by_readers(void *data);

#endif
