/* SPDX-License-Identifier: MIT */
/* Feeds the files of a directory, and every beginning of each, to a fuzz target. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"
#include "util/macros.h"

#define CUTS_MAX 4096 /* beginnings of one file */

static uint8_t *read_bytes(int dir, const char *name, size_t *ret_len)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *bytes;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	*ret_len = (size_t)st.st_size;
	bytes = malloc(*ret_len + 1);
	if (bytes && read(fd, bytes, *ret_len) != st.st_size) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* Each beginning lies in an allocation of its size: a read past its end is seen by ASan. */
static void feed(const uint8_t *bytes, size_t len)
{
	size_t step = len / CUTS_MAX + 1;

	for (size_t cut = 0; cut <= len; cut += cut + step > len && cut < len ? len - cut : step) {
		uint8_t *copy = malloc(cut);

		PROMISE(copy || cut == 0);
		if (cut > 0)
			memcpy(copy, bytes, cut);
		LLVMFuzzerTestOneInput(copy, cut);
		free(copy);
	}
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	size_t n = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		_cleanup_free_ uint8_t *bytes = NULL;
		size_t len;

		bytes = read_bytes(dirfd(dir), entry->d_name, &len);
		if (!bytes)
			continue;
		feed(bytes, len);
		n++;
	}
	closedir(dir);
	printf("%zu files, each cut everywhere\n", n);
	return n == 0;
}
