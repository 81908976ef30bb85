/* SPDX-License-Identifier: MIT */
/*
 * Files of the kernel below a directory: read whole and listed. Paths are relative and stay inside
 * (-EINVAL), unless the directory is AT_FDCWD. Results are the caller's to free.
 */
#ifndef GPREEMPT_GPU_FILES_H
#define GPREEMPT_GPU_FILES_H

#include <stdbool.h>
#include <stddef.h>

bool files_stay_inside(const char *path); /* relative, and without ".." */

/* *ret_text has a NUL after it. -EFBIG: more than @most bytes. */
int files_read(int dir, const char *path, size_t most, char **ret_text, size_t *ret_len);
/* The same, but no more than @most bytes are read. */
int files_read_some(int dir, const char *path, size_t most, char **ret_text, size_t *ret_len);
/* As files_read(), of a descriptor. */
int files_read_open(int fd, size_t most, char **ret_text, size_t *ret_len);
/* What a link points to. -EINVAL: not one. */
int files_read_link(int dir, const char *path, char **ret_text, size_t *ret_len);
/*
 * The names in a directory ("": itself) in order, without "." and "..", each ended by NUL and an
 * empty one last.
 */
int files_list(int dir, const char *path, char **ret_names);

#endif
