/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cmd/gpreempt/demo.h"

#define PATIENCE_MS 5000 /* with a child that was asked to end */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif

/* In the child; its exit status tells of failures nobody could be told otherwise. */
static void become(struct demo *d, const struct demo_start *how, pid_t parent, int out)
{
	prctl(PR_SET_PDEATHSIG, how->death);
	if (getppid() != parent)
		_exit(EXIT_FAILED); /* it died before we said so */
	if ((out >= 0 && dup2(out, STDOUT_FILENO) < 0) ||
	    (how->err_fd >= 0 && dup2(how->err_fd, STDERR_FILENO) < 0))
		_exit(EXIT_FAILED);
	if (how->keep_fd >= 0)
		fcntl(how->keep_fd, F_SETFD, 0);
	signals_inherit(d->cli);
	if (strchr(how->program, '/'))
		execv(how->program, how->argv);
	else
		execvp(how->program, how->argv);
	_exit(127);
}

int demo_start(struct demo *d, const struct demo_start *how, struct demo_child *ret)
{
	_cleanup_close_ int out = -1, out_child = -1;
	pid_t parent = getpid(), pid;
	int fds[2];

	if (how->capture) {
		if (pipe2(fds, O_CLOEXEC) < 0)
			return -errno;
		out = fds[0];
		out_child = fds[1];
	}
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(d, how, parent, out_child);
	*ret = (struct demo_child){
		.pid = pid,
		.pid_fd = (int)syscall(SYS_pidfd_open, pid, 0u), /* close-on-exec by nature */
		.out_fd = steal_fd(&out),
	};
	return 0;
}

int demo_stop(struct demo_child *c, int sig)
{
	struct pollfd end = { .fd = c->pid_fd, .events = POLLIN };
	int status = 0;

	if (!c->pid)
		return 0;
	if (poll(&end, 1, 0) == 0) {
		kill(c->pid, sig);
		if (poll(&end, 1, PATIENCE_MS) <= 0)
			kill(c->pid, SIGKILL);
	}
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	closep(&c->pid_fd);
	closep(&c->out_fd);
	*c = (struct demo_child){ .pid_fd = -1, .out_fd = -1 };
	return status;
}

void demo_take_events(struct demo *d)
{
	struct gpreempt_event e = { .size = sizeof(e) };

	while (gpreempt_daemon_next_event(d->listening, &e) > 0)
		if (e.kind == GPREEMPT_EVENT_HELD || e.kind == GPREEMPT_EVENT_LET_GO)
			d->trace[d->n_trace++ % DEMO_MAX_TRACE] = e;
}

static bool has_ended(const struct demo_child *c, short revents)
{
	return c && revents;
}

int demo_wait(struct demo *d, struct demo_child *a, struct demo_child *b)
{
	struct pollfd fds[] = {
		{ .fd = d->cli->signal_fd, .events = POLLIN },
		{ .fd = d->daemon.pid_fd, .events = POLLIN },
		{ .fd = d->listening ? gpreempt_daemon_fd(d->listening) : -1, .events = POLLIN },
		{ .fd = a ? a->pid_fd : -1, .events = POLLIN },
		{ .fd = b ? b->pid_fd : -1, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue; /* EINTR */
		if (fds[0].revents)
			return cli_fail(d->cli, EXIT_FAILED, "nothing is left of it",
					"stopped before its end: %s",
					signal_word(signals_take(d->cli)));
		if (fds[1].revents)
			return cli_fail(d->cli, EXIT_FAILED, "please report it",
					"the demonstration's gpreemptd has ended");
		if (fds[2].revents)
			demo_take_events(d);
		if (has_ended(a, fds[3].revents) || has_ended(b, fds[4].revents))
			return EXIT_DONE;
	}
}
