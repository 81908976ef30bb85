/* SPDX-License-Identifier: MIT */
/*
 * Process control by ptrace(2). PTRACE_O_EXITKILL is never asked for: a tracer that dies must
 * leave its target running.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/kfd/transport.h"

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

static int trace_reap(void *data, pid_t pid, int *ret_status)
{
	int status;
	pid_t r = waitpid(pid, &status, WNOHANG | __WALL);

	if (r < 0)
		return -errno;
	if (r == 0)
		return 0;
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
