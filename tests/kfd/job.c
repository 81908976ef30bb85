/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/kfd/job.h"
#include "util/macros.h"

/* In the child: the pipes to their places, and the program. */
static _Noreturn void exec_program(int in, int out, int tell)
{
	const int from[] = { in, out, tell };
	int high[3];

	for (int i = 0; i < 3; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < 3; i++)
		dup2(high[i], 3 + i);
	execl(JOB_PROGRAM, JOB_PROGRAM, (char *)NULL);
	_exit(99);
}

void job_start(struct job *j)
{
	int in[2], out[2], tell[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	j->parent = fork();
	assert_true(j->parent >= 0);
	if (j->parent == 0)
		exec_program(in[0], out[1], tell[1]);
	close(in[0]);
	close(out[1]);
	close(tell[1]);
	j->to_job = in[1];
	j->from_job = out[0];
	j->from_parent = tell[0];
	assert_int_equal(read(tell[0], &j->pid, sizeof(j->pid)), sizeof(j->pid));
	assert_int_equal(job_hear(j->from_job), 'r');
}

void job_end(struct job *j)
{
	kill(j->pid, SIGKILL);
	kill(j->parent, SIGKILL);
	waitpid(j->parent, NULL, 0);
	close(j->to_job);
	close(j->from_job);
	close(j->from_parent);
}

void job_tell(const struct job *j, char command)
{
	assert_int_equal(write(j->to_job, &command, 1), 1);
}

char job_hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c = 0;

	if (poll(&p, 1, 5000) <= 0 || read(fd, &c, 1) != 1)
		return 0;
	return c;
}

char job_state(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];
	char state = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "State: %c", &state) == 1)
			break;
	return state;
}

int job_tracer(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];
	int tracer = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	return tracer;
}
