/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/run_dir.h"
#include "util/macros.h"

#define LOCK_NAME "lock"

char *run_dir_file(const struct run_dir *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir->path, name) < 0 ? NULL : path;
}

static bool has_sigkill(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	unsigned long long pending;

	return line && sscanf(line + strlen(key), "%llx", &pending) == 1 &&
	       (pending >> (SIGKILL - 1) & 1);
}

bool is_dying(pid_t pid)
{
	_cleanup_close_ int fd = -1;
	char path[sizeof("/proc//status") + 3 * sizeof(pid_t)], status[4096];
	const char *state;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, status, sizeof(status) - 1);
	status[MAX(n, 0)] = '\0';
	state = strstr(status, "\nState:\t");
	if (state && strchr("ZX", state[strlen("\nState:\t")]))
		return true;
	return has_sigkill(status, "\nSigPnd:\t") || has_sigkill(status, "\nShdPnd:\t");
}

/*
 * A lock of fcntl(2): it names its owner, and the guard, which is our child, does not inherit it
 * and cannot keep it when we are gone.
 */
int run_dir_lock(int fd, pid_t *ret_owner)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_SETLK, &l) == 0)
		return 0;
	if (errno != EACCES && errno != EAGAIN)
		return -errno;
	if (fcntl(fd, F_GETLK, &l) < 0)
		return -errno;
	if (l.l_type == F_UNLCK)
		return -EAGAIN;
	*ret_owner = l.l_pid;
	return -EBUSY;
}

/*
 * Who may write there may put links in the place of our files, and have them written to and made
 * readable with our rights.
 */
static int check_dir(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return 0;
}

/*
 * The one before us removes its lock as it goes: what we locked may be no file any more. Whoever
 * could read it could lock it, and keep us from starting.
 */
static int lock_file(const char *path, int *ret_fd, pid_t *ret_owner)
{
	for (;;) {
		_cleanup_close_ int fd =
			open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat ours, there;
		int r;

		if (fd < 0)
			return -errno;
		r = run_dir_lock(fd, ret_owner);
		if (r == -EAGAIN)
			continue;
		/* Its lock is of a file that is not there any more, then. */
		if (r == -EBUSY && is_dying(*ret_owner) && unlink(path) == 0)
			continue;
		if (r < 0)
			return r;
		if (fstat(fd, &ours) < 0)
			return -errno;
		if (stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
		    ours.st_dev == there.st_dev) {
			*ret_fd = steal_fd(&fd);
			return 0;
		}
	}
}

int run_dir_take(const char *path, struct run_dir *ret, pid_t *ret_owner)
{
	struct run_dir dir = { .lock_fd = -1 };
	_cleanup_free_ char *name = NULL, *file = NULL;
	int r;

	name = strdup(path);
	if (!name)
		return -ENOMEM;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = check_dir(path);
	if (r < 0)
		return r;
	dir.path = name;
	file = run_dir_file(&dir, LOCK_NAME);
	if (!file)
		return -ENOMEM;
	r = lock_file(file, &dir.lock_fd, ret_owner);
	if (r < 0)
		return r;
	steal_ptr(&name);
	*ret = dir;
	return 0;
}

void run_dir_done(struct run_dir *dir)
{
	_cleanup_free_ char *file = NULL;

	if (!dir->path)
		return;
	file = run_dir_file(dir, LOCK_NAME);
	if (file && dir->lock_fd >= 0)
		unlink(file);
	closep(&dir->lock_fd);
	free(dir->path);
	*dir = (struct run_dir){ .lock_fd = -1 };
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A new file each time: one that was left lying there, or is somebody's link, is not written to. */
static int write_beside(const char *path, const char *text, size_t len)
{
	_cleanup_close_ int fd = -1;

	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Whatever the umask. It tells more of everybody's jobs than strangers may know. */
	if (fchmod(fd, 0640) < 0)
		return -errno;
	return write_all(fd, text, len);
}

int run_dir_replace(const char *path, const char *text, size_t len)
{
	_cleanup_free_ char *beside = NULL;
	int r;

	if (asprintf(&beside, "%s.new", path) < 0) {
		beside = NULL; /* asprintf leaves it undefined */
		return -ENOMEM;
	}
	r = write_beside(beside, text, len);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	return r;
}
