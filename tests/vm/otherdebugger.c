/* SPDX-License-Identifier: MIT */
/*
 * usage: otherdebugger [--no-seize] PID
 *
 * A debugger that knows nothing of ours: seizes the process, enables debugging, says "attached" and
 * stays until the end of its standard input. Exit status 0; 4 when it was refused, after saying
 * what was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "abi/kfd.h"

#define REFUSED 4

static int refused(const char *what)
{
	printf("%s: %s\n", what, strerrorname_np(errno));
	return REFUSED;
}

static int enable(int kfd, pid_t pid)
{
	struct kfd_runtime_info info = { 0 };
	struct kfd_ioctl_dbg_trap_args a = {
		.pid = (uint32_t)pid,
		.op = KFD_IOC_DBG_TRAP_ENABLE,
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int fds[2];

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		return -1;
	a.enable.dbg_fd = (uint32_t)fds[1];
	return ioctl(kfd, AMDKFD_IOC_DBG_TRAP, &a);
}

static long number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 0);

	if (*text && !*end && n >= 0)
		return n;
	fprintf(stderr, "otherdebugger: '%s' is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	int seize = argc < 2 || strcmp(argv[1], "--no-seize");
	pid_t pid = argc > 2 - seize ? (pid_t)number(argv[2 - seize]) : 0;
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	char c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pid <= 0 || kfd < 0) {
		fprintf(stderr, "usage: otherdebugger [--no-seize] PID\n");
		return 2;
	}
	if (seize && ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return refused("seize");
	if (enable(kfd, pid))
		return refused("ENABLE");
	puts("attached");
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
