/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/kfd/counts.h"

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

size_t count_threads(void)
{
	return count_entries("/proc/self/task");
}

size_t count_fds(void)
{
	return count_entries("/proc/self/fd");
}
