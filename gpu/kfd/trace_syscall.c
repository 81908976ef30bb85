/* SPDX-License-Identifier: MIT */
/*
 * Process control by ptrace(2). PTRACE_O_EXITKILL is never asked for: a tracer that dies must
 * leave its target running.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/transport.h"
#include "util/macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif

static int request(int op, pid_t pid, unsigned long arg)
{
	return ptrace(op, pid, NULL, (void *)arg) < 0 ? -errno : 0;
}

static int trace_seize(void *data, pid_t pid)
{
	return request(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXEC);
}

static int trace_interrupt(void *data, pid_t pid)
{
	return request(PTRACE_INTERRUPT, pid, 0);
}

static int trace_cont(void *data, pid_t pid, int sig)
{
	return request(PTRACE_CONT, pid, (unsigned long)sig);
}

static int trace_listen(void *data, pid_t pid)
{
	return request(PTRACE_LISTEN, pid, 0);
}

static int trace_detach(void *data, pid_t pid, int sig)
{
	return request(PTRACE_DETACH, pid, (unsigned long)sig);
}

/*
 * A host program that waits for any child takes the stops of its tracees as well, without
 * knowing; such a target is stopped, and no wait(2) will ever tell of it again.
 */
static int taken_stop(pid_t pid, int *ret_status)
{
	siginfo_t info;
	int event;

	if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) < 0)
		return 0; /* it runs, or PTRACE_LISTENs */
	event = info.si_code >> 8;
	if (event != PTRACE_EVENT_STOP && event != PTRACE_EVENT_EXEC)
		event = 0;
	*ret_status = event << 16 | W_STOPCODE(info.si_signo);
	return 1;
}

static bool is_own_child(pid_t pid)
{
	char path[sizeof("/proc//stat") + 3 * sizeof(pid_t)], text[512];
	_cleanup_close_ int fd = -1;
	struct proc_stat stat;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return n > 0 && proc_stat_parse(text, (size_t)n, &stat) >= 0 && stat.parent == getpid();
}

static bool is_end(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	       info->si_code == CLD_DUMPED;
}

/*
 * The end of a stranger's child must be taken, or its parent never hears of it; that of a child
 * of the host program is for the host program to take.
 */
static int trace_reap(void *data, pid_t pid, int *ret_status)
{
	siginfo_t info = { 0 };
	int status;
	pid_t r;

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) < 0)
		return -errno;
	if (info.si_pid == 0)
		return taken_stop(pid, ret_status);
	if (is_end(&info) && is_own_child(pid)) {
		*ret_status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) :
							   info.si_status;
		return 1;
	}
	r = waitpid(pid, &status, WNOHANG | __WALL);
	if (r < 0)
		return -errno;
	if (r == 0)
		return taken_stop(pid, ret_status);
	*ret_status = status;
	return 1;
}

static int trace_peek(void *data, pid_t pid)
{
	siginfo_t info;
	int r;

	do {
		r = waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int trace_pidfd(void *data, pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0u); /* close-on-exec by nature */

	return fd < 0 ? -errno : (int)fd;
}

const struct gkfd_trace_ops gkfd_trace_syscall = {
	.seize = trace_seize,
	.interrupt = trace_interrupt,
	.cont = trace_cont,
	.listen = trace_listen,
	.detach = trace_detach,
	.reap = trace_reap,
	.peek = trace_peek,
	.pidfd = trace_pidfd,
};
