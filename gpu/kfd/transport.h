/* SPDX-License-Identifier: MIT */
/*
 * How the KFD client reaches a driver: a table with one implementation for the kernel
 * (gkfd_transport_syscall), one for a software device of one's own (gpu/model), one for a software
 * GPU that others use too (gpu/soft), and, in tests, scripted ones. Everything above this table is
 * the same code on all of them.
 *
 * All calls return 0 or a count, or -errno. @data is what the transport's owner passed to
 * gkfd_open(). Calls may come from several threads at once.
 */
#ifndef GPREEMPT_GPU_KFD_TRANSPORT_H
#define GPREEMPT_GPU_KFD_TRANSPORT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file trees the client reads. Paths below them are relative, without a leading slash. */
enum gkfd_tree {
	GKFD_TREE_SYSFS, /* /sys/class/kfd/kfd */
	GKFD_TREE_DEBUGFS, /* /sys/kernel/debug/kfd */
	GKFD_TREE_PARAMS, /* /sys/module/amdgpu/parameters */
	GKFD_TREE_MODULE, /* /sys/module/amdgpu; a model has none */
	GKFD_TREE_PROC, /* /proc */
	GKFD_TREE_SYS, /* /sys: what is no GPU driver's alone */
	GKFD_TREE_COUNT,
};

/* A file larger than this is refused with -EFBIG: nothing the driver prints comes near. */
#define GKFD_FILE_MAX_BYTES (64u << 20)

struct gkfd_span { /* one piece of a target's memory */
	uint64_t addr;
	void *buf;
	size_t len;
	bool ok; /* out: all of it was read */
};

/* What reading one process's memory again and again can keep; the reader's to begin and end. */
struct gkfd_mem {
	int fd; /* -1: nothing is open */
	bool file_only; /* the fast way was refused for what is read */
};
#define GKFD_MEM_NONE ((struct gkfd_mem){ .fd = -1 })

/*
 * Process control. A thread that seizes is the tracer; only it may call the others for that
 * pid, except peek and pidfd.
 */
struct gkfd_trace_ops {
	int (*seize)(void *data, pid_t pid);
	int (*interrupt)(void *data, pid_t pid);
	int (*cont)(void *data, pid_t pid, int sig);
	int (*listen)(void *data, pid_t pid);
	int (*detach)(void *data, pid_t pid, int sig);

	/* Takes one pending event without blocking: 1 and a wait status, 0 none, -ECHILD gone. */
	int (*reap)(void *data, pid_t pid, int *ret_status);

	/*
	 * Blocks until reap would find something; a cancellation point. NULL where a target
	 * never stops (software device): then only the driver's -ESRCH tells of its end.
	 */
	int (*peek)(void *data, pid_t pid);

	/* An fd that turns readable when @pid exits; -ENOSYS where the kernel has none. */
	int (*pidfd)(void *data, pid_t pid);
};

struct gkfd_transport {
	bool modelled; /* its clock is a cost model's: printed times must say so */
	bool made_up_time; /* its clock moves only when somebody waits or calls */
	bool alone; /* nobody else is on it, and its processes are invented */
	const struct gkfd_trace_ops *trace;
	/* Is it a process of this machine, under that pid? NULL: none is. */
	bool (*is_real)(void *data, pid_t pid);

	int (*open)(void *data); /* /dev/kfd; once */
	void (*close)(void *data); /* also frees @data */

	/* As ioctl(2): what the driver returns, or -errno. EINTR is retried. */
	int (*ioctl)(void *data, unsigned long request, void *arg);

	/*
	 * As ioctl, on the device of the driver's extension, which is opened at the first call and
	 * closed with the rest. -ENODEV: there is none. NULL: there cannot be any.
	 */
	int (*ext)(void *data, unsigned long request, void *arg);

	/*
	 * A descriptor that turns readable when somebody opens the device, by the node it has for
	 * this program; read it to empty it, and close it. NULL: nobody tells.
	 */
	int (*opens)(void *data);
	/*
	 * A number that is another one when other processes use the driver, told without a lock.
	 * NULL: nobody tells.
	 */
	int (*stamp)(void *data, uint64_t *ret);

	/*
	 * A descriptor that turns readable, and one to name in KFD_IOC_DBG_TRAP_ENABLE for it.
	 * NULL: a pipe of one's own will do.
	 */
	int (*events)(void *data, int ret_fds[2]);

	/*
	 * A copy of the @nth descriptor of the driver that @pid has open, the caller's to close;
	 * the caller must trace it. It may be one that @pid inherited and cannot use (-EBADF of
	 * ioctl_on). -ENOENT: it has no more.
	 */
	int (*borrow)(void *data, pid_t pid, unsigned int nth);
	/* As ioctl, on a descriptor borrowed from @pid. */
	int (*ioctl_on)(void *data, pid_t pid, int fd, unsigned long request, void *arg);

	/*
	 * A whole file; *ret_text is NUL-terminated and the caller's to free. Below
	 * GKFD_TREE_PROC the links of namespaces ("self/ns/pid"), of descriptors ("7/fd/3") and
	 * of programs ("7/exe") read as what they point to: "pid:[4026531836]".
	 */
	int (*read_file)(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			 size_t *ret_len);

	/*
	 * The names in a directory without "." and "..", each ended by NUL, one after the other
	 * and an empty one last; the caller's to free.
	 */
	int (*list_dir)(void *data, enum gkfd_tree tree, const char *path, char **ret_names);

	/*
	 * Fills the spans it can and marks them; an error only when none could be tried. Opens
	 * nothing it has kept in @mem. A kept file is of the program that ran when it was opened:
	 * once nothing can be read, close it.
	 */
	int (*read_mem)(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			size_t n);

	/* A clock for measuring: CLOCK_MONOTONIC, or the model's. */
	uint64_t (*now_ns)(void *data);

	/*
	 * Lets time pass until a descriptor is ready (returns how many) or @timeout_ns is over
	 * (0). UINT64_MAX: no end. A model's clock moves by @timeout_ns when nothing is ready.
	 */
	int (*wait)(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns);
};

/* The kernel. Trees are looked up below @root ("" or NULL: the real ones); NULL on ENOMEM. */
extern const struct gkfd_transport gkfd_transport_syscall;
void *gkfd_syscall_new(const char *root);
int gkfd_syscall_device(void *data, dev_t *ret); /* of /dev/kfd */
/* Nobody depends on this process: what may hang need not be left to a reader. */
void gkfd_syscall_may_hang(void *data);

/*
 * Its way to read memory (mem_syscall.c), which stops nobody and needs the right to ptrace. @pid is
 * one of the caller's pid namespace, whatever root the trees have. -ESRCH, -EPERM; no descriptor
 * outlives the call, but @mem's.
 */
int gkfd_syscall_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			  size_t n);

/* Its process control and clock, for transports that script the driver but trace for real. */
extern const struct gkfd_trace_ops gkfd_trace_syscall;
uint64_t gkfd_syscall_now_ns(void *data);
int gkfd_syscall_wait(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns);

#endif
