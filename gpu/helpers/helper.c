/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "gpu/guard_watch.h"
#include "util/bare.h"
#include "util/macros.h"

#define PROGRAM (HELPER_FILE + HELPER_FILES) /* in the child; closed by executing it */
#define FIRST_FREE 10 /* descriptors are moved up here, out of the way of those a helper gets */

/*
 * Who could put another program in its place runs what he likes as us. Nobody may, but root, we and
 * whose program it is that we are.
 */
static bool is_trusted(int fd, mode_t type)
{
	struct stat st, us;

	if (fstat(fd, &st) < 0 || stat("/proc/self/exe", &us) < 0)
		return false;
	if ((st.st_mode & S_IFMT) != type || (st.st_mode & S_IWOTH))
		return false;
	if ((st.st_mode & S_IWGRP) && st.st_gid && st.st_gid != getegid() && st.st_gid != us.st_gid)
		return false;
	return !st.st_uid || st.st_uid == geteuid() || st.st_uid == us.st_uid;
}

static int open_trusted(int dir, const char *name, mode_t type)
{
	_cleanup_close_ int fd = openat(dir, name, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return is_trusted(fd, type) ? steal_fd(&fd) : -EPERM;
}

/*
 * Programs lie together when they are installed, but the daemon in sbin, and each in its own folder
 * when they are built.
 */
static int open_in(const char *path, const char *name)
{
	_cleanup_close_ int dir = open_trusted(AT_FDCWD, path, S_IFDIR), own = -1;

	if (dir < 0)
		return dir;
	own = open_trusted(dir, name, S_IFDIR);
	return open_trusted(own >= 0 ? own : dir, name, S_IFREG);
}

static int open_beside(const char *name)
{
	static const char *const others[] = { "..", "../bin" };
	char dir[PATH_MAX], other[sizeof(dir) + sizeof("/../bin")];
	ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;
	int fd;

	if (len < 0)
		return -errno;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	fd = open_in(dir, name);
	for (size_t i = 0; i < ARRAY_SIZE(others) && fd < 0; i++) {
		snprintf(other, sizeof(other), "%s/%s", dir, others[i]);
		fd = open_in(other, name);
	}
	return fd;
}

int helper_open(const char *name)
{
	const char *named = secure_getenv("GPREEMPT_HELPERS");
	int fd;

	if (named)
		return open_in(named, name);
	fd = open_beside(name);
	return fd >= 0 ? fd : open_in(GPREEMPT_HELPER_DIR, name);
}

/* ---- in the child ---- */

struct start {
	int program;
	const char *const *argv;
	int socket, files[HELPER_FILES];
	bool ends_with_us;
	pid_t parent;
};

/* None of those that are moved may lie where another one goes. */
BARE static void arrange_files(const struct start *s)
{
	long null = bare_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	long socket = bare_call(SYS_fcntl, s->socket, F_DUPFD, FIRST_FREE);
	long program = bare_call(SYS_fcntl, s->program, F_DUPFD, FIRST_FREE);
	long files[HELPER_FILES];

	for (int i = 0; i < HELPER_FILES; i++)
		files[i] = bare_call(SYS_fcntl, s->files[i], F_DUPFD, FIRST_FREE);

	bare_call(SYS_dup3, null, STDIN_FILENO, 0);
	bare_call(SYS_dup3, null, STDOUT_FILENO, 0);
	bare_call(SYS_dup3, program, PROGRAM, O_CLOEXEC);
	bare_call(SYS_dup3, socket, HELPER_SOCKET, 0);
	for (int i = 0; i < HELPER_FILES; i++) {
		bare_call(SYS_close, HELPER_FILE + i);
		bare_call(SYS_dup3, files[i], HELPER_FILE + i, 0);
	}
	bare_close_from(PROGRAM + 1);
}

BARE _Noreturn static void become(const struct start *s)
{
	const char *const none[] = { NULL };
	uint64_t no_signals = 0;

	bare_call(SYS_setsid);
	if (s->ends_with_us)
		bare_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	bare_call(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
	arrange_files(s);
	if (!s->ends_with_us || bare_call(SYS_getppid) == s->parent)
		bare_call(SYS_execveat, PROGRAM, "", s->argv, none, AT_EMPTY_PATH);
	for (;;)
		bare_call(SYS_exit_group, 127);
}

/* ---- for the owner ---- */

/* Without a signal at its end, and without the fork handlers of the program we are part of. */
static pid_t start(const struct start *s)
{
	pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);

	if (pid == 0)
		become(s);
	return pid < 0 ? -errno : pid;
}

int helper_start(int program, const char *const *argv, const int files[HELPER_FILES],
		 bool ends_with_us, struct helper *ret)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	struct start s = { program, argv, -1, { -1, -1 }, ends_with_us, getpid() };
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	s.socket = theirs = ends[1];
	for (int i = 0; files && i < HELPER_FILES; i++)
		s.files[i] = files[i];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	pid = start(&s);
	if (pid < 0)
		return pid;
	*ret = (struct helper){ .pid = pid, .socket = steal_fd(&ours) };
	ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return 0;
}

bool helper_is_blocked(const struct helper *h)
{
	_cleanup_close_ int fd = -1;
	char path[sizeof("/proc//stat") + 3 * sizeof(pid_t)], stat[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", h->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, stat, sizeof(stat));
	return n <= 0 || guard_read_state(stat, (size_t)n) != 'R';
}

bool helper_may_close(const char *release)
{
	unsigned int major, minor;

	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 9));
}

static bool has_unread(int socket)
{
	char byte;

	return recv(socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0;
}

void helper_hang_up(struct helper *h, struct drops *sockets, uid_t user)
{
	struct utsname kernel;

	if (h->socket < 0)
		return;
	shutdown(h->socket, SHUT_RDWR);
	if (uname(&kernel) == 0 && helper_may_close(kernel.release) && !has_unread(h->socket))
		close(h->socket);
	else
		drop_later(sockets, h->socket, user);
	h->socket = -1;
}

void helper_abandon(struct helper *h, struct drops *sockets, uid_t user)
{
	if (h->pid > 0)
		kill(h->pid, SIGKILL); /* our own unburied child: the pid is still its */
	helper_hang_up(h, sockets, user);
}

bool helper_bury(struct helper *h)
{
	siginfo_t info = { 0 };

	if (h->pid <= 0)
		return true;
	if (waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | __WALL) == 0 &&
	    info.si_code != CLD_EXITED && info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED)
		return false; /* whoever traces it is told of its stops, too */
	closep(&h->pidfd);
	*h = HELPER_NONE;
	return true;
}

/* ---- whose owner has ended ---- */

struct left {
	SLIST_ENTRY(left) link;
	struct helper helper;
};
static SLIST_HEAD(, left) all_left = SLIST_HEAD_INITIALIZER(all_left);
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

/* Without memory to remember it by, init buries it when this process has ended. */
void helper_leave(struct helper *h)
{
	struct left *l = helper_bury(h) ? NULL : malloc(sizeof(*l));

	if (l)
		l->helper = (struct helper){ .pid = h->pid, .pidfd = -1, .socket = -1 };
	closep(&h->pidfd);
	*h = HELPER_NONE;
	if (!l)
		return;
	pthread_mutex_lock(&left_lock);
	SLIST_INSERT_HEAD(&all_left, l, link);
	pthread_mutex_unlock(&left_lock);
}

/* Another thread that is at it will do. */
void helper_bury_left(void)
{
	struct left **at, *l;

	if (!__atomic_load_n(&all_left.slh_first, __ATOMIC_RELAXED) ||
	    pthread_mutex_trylock(&left_lock) != 0)
		return;
	at = &all_left.slh_first;
	while ((l = *at)) {
		if (!helper_bury(&l->helper)) {
			at = &l->link.sle_next;
			continue;
		}
		__atomic_store_n(at, l->link.sle_next, __ATOMIC_RELAXED);
		free(l);
	}
	pthread_mutex_unlock(&left_lock);
}
