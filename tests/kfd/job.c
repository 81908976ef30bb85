/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/kfd/job.h"
#include "util/macros.h"

static int echo_fd;

static void say(int fd, char c)
{
	while (write(fd, &c, 1) < 0 && errno == EINTR)
		;
}

static void on_usr1(int sig)
{
	say(echo_fd, 'u');
}

static void *exec_main(void *arg)
{
	execl("/bin/cat", "cat", (char *)NULL);
	_exit(99);
}

static _Noreturn void job_main(int in, int out)
{
	struct sigaction act = { .sa_handler = on_usr1 };
	pthread_t thread;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	echo_fd = out;
	sigaction(SIGUSR1, &act, NULL);
	dup2(in, 0); /* what exec'd programs read from: nothing until the test closes it */
	say(out, 'r');
	for (;;) {
		ssize_t n = read(in, &c, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || c == 'q')
			_exit(7);
		if (c == 'x')
			exec_main(NULL);
		if (c == 't' && pthread_create(&thread, NULL, exec_main, NULL) == 0)
			for (;;)
				pause();
	}
}

static _Noreturn void parent_main(pid_t *job, int in, int out, int tell)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	*job = fork();
	if (*job == 0)
		job_main(in, out);
	if (write(tell, job, sizeof(*job)) != sizeof(*job))
		_exit(1);
	while (waitpid(*job, &status, WUNTRACED | WCONTINUED) >= 0) {
		if (WIFSTOPPED(status)) {
			say(tell, 'S');
		} else if (WIFCONTINUED(status)) {
			say(tell, 'C');
		} else {
			say(tell, WIFEXITED(status) ? 'E' : 'K');
			say(tell, (char)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
			break;
		}
	}
	_exit(0);
}

void job_start(struct job *j)
{
	int in[2], out[2], tell[2];
	pid_t job = 0;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	j->parent = fork();
	assert_true(j->parent >= 0);
	if (j->parent == 0) {
		close(in[1]);
		parent_main(&job, in[0], out[1], tell[1]);
	}
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

static int status_field(pid_t pid, const char *name, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, strlen(name)))
			continue;
		snprintf(ret, size, "%s", line + strlen(name));
		return 0;
	}
	return -ESRCH;
}

int job_tracer(pid_t pid)
{
	char value[256];
	int tracer = -1;

	if (status_field(pid, "TracerPid:", value, sizeof(value)) == 0)
		sscanf(value, "%d", &tracer);
	return tracer;
}

char job_state(pid_t pid)
{
	char value[256], state = 0;

	if (status_field(pid, "State:", value, sizeof(value)) == 0)
		sscanf(value, " %c", &state);
	return state;
}
