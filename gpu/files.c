/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "gpu/files.h"
#include "util/macros.h"

#define READ_FIRST_BYTES 4096u

bool files_stay_inside(const char *path)
{
	if (*path == '/')
		return false;
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.')
			return false;
		path += len;
		path += strspn(path, "/");
	}
	return true;
}

static bool may_use(int dir, const char *path)
{
	return dir == AT_FDCWD || files_stay_inside(path);
}

/* The files of sysfs, debugfs and proc have no size: what they hold is known at their end. */
static int read_to_end(int fd, size_t most, bool all, char **ret_text, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	size_t room = 0, len = 0;
	ssize_t r;

	do {
		if (len == room) {
			size_t bigger = room ? room * 2 : READ_FIRST_BYTES;
			char *grown = realloc(text, bigger + 1);

			if (!grown)
				return -ENOMEM;
			text = grown;
			room = bigger;
		}
		r = read(fd, text + len, room - len);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			len += (size_t)r;
		if (len > most && all)
			return -EFBIG;
	} while (r != 0 && len <= most);

	len = MIN(len, most);

	text[len] = '\0';
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

static int read_file(int dir, const char *path, size_t most, bool all, char **ret_text,
		     size_t *ret_len)
{
	_cleanup_close_ int fd = -1;

	if (!may_use(dir, path))
		return -EINVAL;
	/* O_NONBLOCK: a fifo in a copied tree must not hang us. */
	fd = openat(dir, path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read_to_end(fd, most, all, ret_text, ret_len);
}

int files_read_open(int fd, size_t most, char **ret_text, size_t *ret_len)
{
	return read_to_end(fd, most, true, ret_text, ret_len);
}

int files_read(int dir, const char *path, size_t most, char **ret_text, size_t *ret_len)
{
	return read_file(dir, path, most, true, ret_text, ret_len);
}

int files_read_some(int dir, const char *path, size_t most, char **ret_text, size_t *ret_len)
{
	return read_file(dir, path, most, false, ret_text, ret_len);
}

int files_read_link(int dir, const char *path, char **ret_text, size_t *ret_len)
{
	char target[PATH_MAX];
	ssize_t len;
	char *text;

	if (!may_use(dir, path))
		return -EINVAL;
	len = readlinkat(dir, path, target, sizeof(target));
	if (len < 0)
		return -errno;
	text = strndup(target, (size_t)len);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	*ret_len = (size_t)len;
	return 0;
}

static int is_entry(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Frees @entries. */
static char *join_names(struct dirent **entries, int n)
{
	size_t bytes = 1;
	char *names, *end;

	for (int i = 0; i < n; i++)
		bytes += strlen(entries[i]->d_name) + 1;
	names = end = malloc(bytes);
	for (int i = 0; i < n; i++) {
		if (names)
			end = stpcpy(end, entries[i]->d_name) + 1;
		free(entries[i]);
	}
	free(entries);
	if (names)
		*end = '\0';
	return names;
}

int files_list(int dir, const char *path, char **ret_names)
{
	struct dirent **entries;
	char *names;
	int n;

	if (!may_use(dir, path))
		return -EINVAL;
	n = scandirat(dir, *path ? path : ".", &entries, is_entry, by_name);
	if (n < 0)
		return -errno;
	names = join_names(entries, n);
	if (!names)
		return -ENOMEM;
	*ret_names = names;
	return 0;
}
