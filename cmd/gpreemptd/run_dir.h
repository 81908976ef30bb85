/* SPDX-License-Identifier: MIT */
/* The directory under /run with all that is there only while a daemon is, and its lock. */
#ifndef GPREEMPT_CMD_GPREEMPTD_RUN_DIR_H
#define GPREEMPT_CMD_GPREEMPTD_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct run_dir {
	char *path;
	int lock_fd;
};

/* Makes it if need be. -EBUSY: another daemon's, of pid *ret_owner; -EPERM: others write to it. */
int run_dir_take(const char *path, struct run_dir *ret, pid_t *ret_owner);
void run_dir_done(struct run_dir *dir);

/* The path of a file in it; the caller's to free. NULL: no memory. */
char *run_dir_file(const struct run_dir *dir, const char *name);

/* Puts that text in the place of the file, at once or not at all; -errno. */
int run_dir_replace(const char *path, const char *text, size_t len);
/* The lock of a file. -EBUSY: *ret_owner has it; -EAGAIN: somebody had. */
int run_dir_lock(int fd, pid_t *ret_owner);

/*
 * Is it a zombie, or somebody whom SIGKILL has reached? Not one of its instructions is run any
 * more, but what it has open and locked stays so until the kernel is through with it.
 */
bool is_dying(pid_t pid);

#endif
