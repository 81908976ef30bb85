/* SPDX-License-Identifier: MIT */
/* The promise that matters most: a holder is killed, and the job runs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cmd/gpreempt/accept.h"

#define HOLDS_NS (10 * NSEC_PER_SEC) /* to begin holding */
#define RUNS_NS (2 * NSEC_PER_SEC)
#define STEP_NS (5 * NSEC_PER_MSEC)
#define SELF "/proc/self/exe"

/* In the child: becomes a holder that does not outlive us either. */
static void become_holder(struct accept *a, pid_t parent, int out)
{
	char pid[16], *device = a->cli->device ? (char *)a->cli->device : (char *)"auto";
	char *const argv[] = { (char *)"gpreempt", (char *)"--device", device, (char *)"hold", pid,
			       (char *)"--for",	   (char *)"10",       NULL };

	snprintf(pid, sizeof(pid), "%d", (int)a->pid);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	    dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
		execv(SELF, argv);
	_exit(EXIT_FAILED);
}

/* Its pid, or -errno. *ret_out: what it says. */
static pid_t start_holder(struct accept *a, int *ret_out)
{
	pid_t parent = getpid(), child;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child == 0)
		become_holder(a, parent, fds[1]);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	*ret_out = fds[0];
	return child;
}

/* 0: it says that it holds. -EINTR; -EPROTO: it says something else, in @line. */
static int wait_until_held(struct accept *a, int out, char *line, size_t size)
{
	struct pollfd fds[2] = { { .fd = a->cli->signal_fd, .events = POLLIN },
				 { .fd = out, .events = POLLIN } };
	int r = gpreempt_wait(a->cli->ctx, fds, ARRAY_SIZE(fds), HOLDS_NS);
	ssize_t n;

	if (r < 0)
		return r;
	if (fds[0].revents)
		return -EINTR;
	n = r > 0 ? read(out, line, size - 1) : 0;
	line[MAX(n, 0)] = '\0';
	return strncmp(line, "holding ", strlen("holding ")) == 0 ? 0 : -EPROTO;
}

/* The driver lets nobody else in before it has ended the session of the dead. */
static int attach_again(struct accept *a, uint64_t began)
{
	for (;;) {
		int r = accept_attach(a, GPREEMPT_ATTACH_LOOK_ONLY);

		if (r >= 0 || gpreempt_now_ns(a->cli->ctx) - began > RUNS_NS)
			return r;
		r = accept_wait(a, STEP_NS);
		if (r < 0)
			return r;
	}
}

static void see_it_run(struct accept *a, struct outcome *o, uint64_t began)
{
	_cleanup_free_ struct look *l = NULL;
	uint64_t ns = 0;
	int r = attach_again(a, began);

	if (r >= 0)
		r = look_take(a->process, &l);
	if (r >= 0)
		r = look_wait(a, l, RUNS_NS, &ns);
	ns = gpreempt_now_ns(a->cli->ctx) - began;
	if (r == -ETIME || (r >= 0 && ns > RUNS_NS))
		outcome_fail_figure(o, (double)ns / NSEC_PER_MSEC,
				    "no queue was seen to go on within 2 s");
	else if (r < 0)
		outcome_error(a, o, r);
	else
		outcome_pass(o, (double)ns / NSEC_PER_MSEC,
			     "from SIGKILL until a queue was seen to go on");
}

void check_killed(struct accept *a, struct outcome *o)
{
	_cleanup_close_ int out = -1;
	char line[160] = "";
	uint64_t began, ns;
	pid_t holder;
	int r;

	if (cli_is_alone(a->cli)) {
		outcome_skip(o, "needs a driver: a model goes with its process");
		return;
	}
	if (look_working(a, o, &ns) < 0)
		return;
	a->process = gpreempt_detach(a->process);
	holder = start_holder(a, &out);
	if (holder < 0) {
		outcome_skip(o, "cannot start a holder: %s", strerror(-holder));
		return;
	}
	r = wait_until_held(a, out, line, sizeof(line));
	began = gpreempt_now_ns(a->cli->ctx);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	if (r >= 0)
		see_it_run(a, o, began);
	else if (r == -EPROTO)
		outcome_fail(o, "the holder said: %.*s", (int)strcspn(line, "\n"), line);
	else
		outcome_error(a, o, r);
	a->process = gpreempt_detach(a->process);
}
