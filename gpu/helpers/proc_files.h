/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of a process, read by whoever can afford to hang: behind some of these files
 * lies memory of the process, and behind that whatever it has mapped there.
 */
#ifndef GPREEMPT_GPU_HELPERS_PROC_FILES_H
#define GPREEMPT_GPU_HELPERS_PROC_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/helpers/reader.h"

enum proc_file {
	PROC_STAT,
	PROC_STATUS,
	PROC_CGROUP,
	PROC_EXE, /* what the link points to */
	PROC_PARENTS, /* "stat" of its ancestors but init, the nearest first, each ended by NUL */
	PROC_CMDLINE, /* memory of the process, as the next */
	PROC_ENVIRON,
	PROC_FILES,
};

#define PROC_BIT(file) (1u << (file))
#define PROC_MEMORY (PROC_BIT(PROC_CMDLINE) | PROC_BIT(PROC_ENVIRON))
#define PROC_PARENTS_MAX 64

struct proc_files {
	pid_t pid;
	int result; /* 0, or -errno: nothing is known; -ESRCH: it is gone */
	uint32_t unread; /* PROC_BITs of those that did not answer in time */
	char *text[PROC_FILES]; /* with a NUL behind it; NULL: not asked for, or not to be had */
	size_t len[PROC_FILES];
};

void proc_files_done(struct proc_files *f);

/*
 * Reads the files of @bits through @read_file, a function for paths below /proc. All are of the
 * same process, or it is -ESRCH. What cannot be read is left out.
 */
struct proc_source {
	int (*read_file)(void *user, const char *path, char **ret_text, size_t *ret_len);
	void *user;
};
int proc_files_read(const struct proc_source *source, pid_t pid, uint32_t bits,
		    struct proc_files *ret);

/* The effective user. -ESRCH. */
int proc_files_owner(const struct proc_source *source, pid_t pid, uid_t *ret);

struct proc_stat { /* of what "stat" says */
	pid_t pid, parent;
	char comm[16];
	char state; /* R S D T t Z X */
	uint64_t start_ticks; /* with the pid, names one process of this boot */
};

/* Of text that may be anything. -EBADMSG. */
int proc_stat_parse(const char *text, size_t len, struct proc_stat *ret);

/* ---- by a reader; a request is the bits ---- */

int proc_files_serve(void *user, pid_t pid, const void *request, size_t len,
		     struct reader_room *room); /* @user: nothing */
/* Adds what an answer has to @f. */
int proc_files_take(const void *answer, size_t len, struct proc_files *f);

#endif
