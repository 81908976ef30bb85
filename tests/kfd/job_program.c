/* SPDX-License-Identifier: MIT */
/*
 * The program behind job.h: a parent that reports on its child. Never built with a sanitizer,
 * whose run-time would hold back the signals the tests are about. Descriptors: 3 commands,
 * 4 what the job says, 5 what the parent sees.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void *stay_main(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static _Noreturn void job_main(int in, int out)
{
	struct sigaction act = { .sa_handler = on_usr1 };
	pthread_t thread;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* in an orphaned group, as meson's are, SIGTSTP does nothing */
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
		if (c == 'l' && pthread_create(&thread, NULL, stay_main, NULL) == 0)
			syscall(SYS_exit, 0);
	}
}

static _Noreturn void parent_main(int in, int out, int tell)
{
	pid_t job;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	job = fork();
	if (job == 0)
		job_main(in, out);
	if (write(tell, &job, sizeof(job)) != sizeof(job))
		_exit(1);
	while (waitpid(job, &status, WUNTRACED | WCONTINUED) >= 0) {
		if (WIFSTOPPED(status)) {
			say(tell, 'S');
		} else if (WIFCONTINUED(status)) {
			say(tell, 'C');
		} else {
			say(tell, WIFEXITED(status) ? 'E' : 'K');
			say(tell,
			    (char)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
			break;
		}
	}
	_exit(0);
}

int main(void)
{
	parent_main(3, 4, 5);
}
