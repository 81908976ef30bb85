/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cmd/gpreempt/demo.h"
#include "util/advice.h"

#define START_MS 10000 /* for the daemon to be ready */
#define PATIENCE_MS 5000 /* with a child that was asked to end */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same on every architecture since Linux 5.3 */
#endif

/* No waiting until an offline job is known for a while: this is over in a few seconds. */
static const char config[] = "[policy]\nname = none\n\n[hold]\nattach_age = 0s\n";

static int fail(struct demo *d, const char *what, int error)
{
	return cli_fail(d->cli, EXIT_FAILED,
			advice_for(error, "look at free memory, processes and disk"), "%s: %s",
			what, strerror(error));
}

/* ---- children ---- */

/* In the child; its exit status tells of failures nobody could be told otherwise. */
static void become(struct demo *d, const struct demo_start *how, pid_t parent, int out)
{
	prctl(PR_SET_PDEATHSIG, how->death);
	if (getppid() != parent)
		_exit(EXIT_FAILED); /* it died before we said so */
	if (dup2(out, how->output) < 0)
		_exit(EXIT_FAILED);
	if (how->keep_fd)
		fcntl(how->keep_fd, F_SETFD, 0);
	signals_inherit(d->cli);
	execvp(how->program, how->argv);
	_exit(127);
}

int demo_start(struct demo *d, const struct demo_start *how, struct demo_child *ret)
{
	_cleanup_close_ int out = memfd_create("output", MFD_CLOEXEC);
	pid_t parent = getpid(), pid = out < 0 ? -1 : fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(d, how, parent, out);
	*ret = (struct demo_child){
		.pid = pid,
		.pid_fd = (int)syscall(SYS_pidfd_open, pid, 0u), /* close-on-exec by nature */
		.out_fd = steal_fd(&out),
	};
	return 0;
}

void demo_stop(struct demo_child *c, int sig)
{
	struct pollfd end = { .fd = c->pid_fd, .events = POLLIN };

	if (!c->pid)
		return;
	if (poll(&end, 1, 0) == 0) {
		kill(c->pid, sig);
		if (poll(&end, 1, PATIENCE_MS) <= 0)
			kill(c->pid, SIGKILL);
	}
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	closep(&c->pid_fd);
	closep(&c->out_fd);
	c->pid = 0;
}

void demo_take_events(struct demo *d)
{
	struct gpreempt_event e = { .size = sizeof(e) };

	while (gpreempt_daemon_next_event(d->listening, &e) > 0)
		if (e.kind == GPREEMPT_EVENT_HELD || e.kind == GPREEMPT_EVENT_LET_GO)
			d->trace[d->n_trace++ % DEMO_MAX_TRACE] = e;
}

int demo_wait(struct demo *d, const struct demo_child *a, const struct demo_child *b)
{
	struct pollfd fds[] = {
		{ .fd = d->cli->signal_fd, .events = POLLIN },
		{ .fd = d->daemon.pid_fd, .events = POLLIN },
		{ .fd = gpreempt_daemon_fd(d->listening), .events = POLLIN },
		{ .fd = a->pid_fd, .events = POLLIN },
		{ .fd = b->pid_fd, .events = POLLIN },
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
		if (fds[3].revents || fds[4].revents)
			return EXIT_DONE;
	}
}

/* ---- the directory, and who removes it ---- */

static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0); /* "." and "..": refused */
	closedir(dir);
	rmdir(path);
}

/* A process that outlives ours by a moment; signals of the terminal are blocked already. */
static void be_janitor(const char *dir, int gone_fd)
{
	char c;

	prctl(PR_SET_NAME, "gpreempt-demo");
	close_range(STDIN_FILENO, (unsigned int)gone_fd - 1, 0);
	close_range((unsigned int)gone_fd + 1, UINT_MAX, 0);
	while (read(gone_fd, &c, 1) < 0 && errno == EINTR)
		;
	remove_dir(dir);
	_exit(0);
}

/* Sockets are to be in it, whose paths have 107 bytes at most. */
static void choose_dir(struct demo *d)
{
	static const char name[] = "/gpreempt-demo-XXXXXX";
	const char *tmp = getenv("TMPDIR");

	if (!tmp || strlen(tmp) + sizeof(name) > sizeof(d->dir))
		tmp = "/tmp";
	snprintf(d->dir, sizeof(d->dir), "%s%s", tmp, name);
}

static int make_dir(struct demo *d)
{
	int fds[2];

	choose_dir(d);
	if (!mkdtemp(d->dir)) {
		d->dir[0] = '\0';
		return fail(d, "no directory for the daemon", errno);
	}
	snprintf(d->control, sizeof(d->control), "%s/control.sock", d->dir);
	d->cli->socket = d->control;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return fail(d, "no pipe", errno);
	d->janitor = fork();
	if (d->janitor == 0) {
		close(fds[1]);
		be_janitor(d->dir, fds[0]);
	}
	close(fds[0]);
	d->alive_fd = fds[1];
	return d->janitor < 0 ? fail(d, "no process", errno) : EXIT_DONE;
}

/* ---- the daemon ---- */

static int make_notify_socket(struct demo *d)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", d->dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	setenv("NOTIFY_SOCKET", addr.sun_path, 1);
	return steal_fd(&fd);
}

static int make_config(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return write(fd, config, strlen(config)) == (ssize_t)strlen(config) ? 0 : -EIO;
}

/* The last line it wrote, for whoever asks why. */
static int say_why(struct demo *d)
{
	char text[512];
	off_t end = lseek(d->daemon.out_fd, 0, SEEK_END);
	ssize_t len = pread(d->daemon.out_fd, text, sizeof(text) - 1, MAX(end - 511, 0));
	char *line, *hint;

	text[len > 0 ? len : 0] = '\0';
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	hint = strstr(line, "; hint: "); /* what it said itself is better */
	if (hint)
		*hint = '\0';
	return cli_fail(d->cli, EXIT_FAILED,
			hint ? hint + strlen("; hint: ") :
			       "install gpreemptd beside gpreempt, or into PATH",
			"gpreemptd does not start%s%s", line[0] ? ": " : "", line);
}

/* READY=1 of sd_notify(3), or its end. */
static int await_ready(struct demo *d, int notify_fd)
{
	struct pollfd fds[] = {
		{ .fd = notify_fd, .events = POLLIN },
		{ .fd = d->daemon.pid_fd, .events = POLLIN },
		{ .fd = d->cli->signal_fd, .events = POLLIN },
	};
	char text[256];

	for (;;) {
		int r = poll(fds, ARRAY_SIZE(fds), START_MS);
		ssize_t len;

		if (r < 0)
			continue; /* EINTR */
		if (r == 0 || fds[1].revents)
			return say_why(d);
		if (fds[2].revents)
			return cli_fail(d->cli, EXIT_FAILED, "nothing is left of it", "stopped: %s",
					signal_word(signals_take(d->cli)));
		len = recv(notify_fd, text, sizeof(text) - 1, 0);
		text[len > 0 ? len : 0] = '\0';
		if (strstr(text, "READY=1"))
			return EXIT_DONE;
	}
}

static int start_daemon(struct demo *d)
{
	char program[PATH_MAX], config_path[sizeof(d->dir) + 16];
	_cleanup_close_ int notify_fd = make_notify_socket(d);
	static const char *const places[] = { "gpreemptd", "../sbin/gpreemptd",
					      "../gpreemptd/gpreemptd" };
	const char *argv[] = { "gpreemptd", "--device", d->device,   "--run-dir",
			       d->dir,	    "--config", config_path, NULL };
	const struct demo_start how = {
		.program = program,
		.argv = (char **)argv,
		.output = STDERR_FILENO,
		.keep_fd = d->alive_fd,
		.death = SIGTERM, /* it lets go and cleans up */
	};
	int r;

	snprintf(config_path, sizeof(config_path), "%s/gpreempt.conf", d->dir);
	r = MIN(notify_fd, make_config(config_path));
	if (r < 0)
		return fail(d, "no files for the daemon", -r);
	find_program(places, ARRAY_SIZE(places), program);
	r = demo_start(d, &how, &d->daemon);
	unsetenv("NOTIFY_SOCKET");
	if (r < 0)
		return fail(d, "no process for the daemon", -r);
	return await_ready(d, notify_fd);
}

int demo_begin(struct demo *d)
{
	int status = make_dir(d);

	if (status == EXIT_DONE)
		status = start_daemon(d);
	if (status == EXIT_DONE)
		status = daemon_connect(d->cli, &d->asking);
	if (status == EXIT_DONE)
		status = daemon_connect(d->cli, &d->listening);
	if (status == EXIT_DONE && gpreempt_daemon_subscribe(d->listening) < 0)
		status = daemon_failed(d->cli, d->listening);
	return status;
}

void demo_end(struct demo *d)
{
	d->asking = gpreempt_daemon_close(d->asking);
	d->listening = gpreempt_daemon_close(d->listening);
	demo_stop(&d->daemon, SIGTERM);
	closep(&d->alive_fd);
	if (d->janitor > 0)
		while (waitpid(d->janitor, NULL, 0) < 0 && errno == EINTR)
			;
	else if (d->dir[0])
		remove_dir(d->dir);
}
