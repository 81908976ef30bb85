/* SPDX-License-Identifier: MIT */
/* What the kernel says of the freezer of cgroup v1. tests/vm has it itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/freezer.h"

static const char *group(const char *text)
{
	static char path[FREEZER_PATH_SIZE];

	return freezer_parse_group(text, path) ? path : NULL;
}

static const char *mount(const char *text)
{
	static char path[FREEZER_PATH_SIZE];

	return freezer_parse_mount(text, path) ? path : NULL;
}

static void a_group_is_found_among_the_others(void **state)
{
	assert_string_equal(group("12:cpuset:/a\n11:freezer:/docker/4d\n0::/x\n"), "/docker/4d");
	assert_string_equal(group("3:cpu,freezer:/a:b"), "/a:b");
	assert_string_equal(group("3:freezer,cpu:/\n"), "/");
}

static void where_there_is_none_none_is_found(void **state)
{
	assert_null(group("0::/system.slice/gpreemptd.service\n"));
	assert_null(group("1:name=freezer:/x\n2:freezers:/x\n3:unfreezer:/x\n"));
	assert_null(group(""));
	assert_null(group("freezer\n:\n::\n7:freezer"));
}

static void a_path_that_is_too_long_is_none(void **state)
{
	char text[2 * FREEZER_PATH_SIZE];

	memset(text, 'x', sizeof(text));
	memcpy(text, "7:freezer:/", 11);
	text[sizeof(text) - 1] = '\0';
	assert_null(group(text));
}

#define V2 "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define CPU "30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define FREEZER "40 25 0:37 / /sys/fs/cgroup/freezer rw shared:20 - cgroup cgroup rw,freezer"

static void a_mount_is_found_among_the_others(void **state)
{
	assert_string_equal(mount(V2 CPU FREEZER "\n"), "/sys/fs/cgroup/freezer");
	assert_string_equal(mount(FREEZER), "/sys/fs/cgroup/freezer");
	assert_string_equal(mount("1 2 0:3 /docker/4d /f ro - cgroup none ro,freezer\n" V2), "/f");
	assert_null(mount(V2 CPU));
	assert_null(mount("1 2 0:3 / /freezer rw - ext4 /dev/freezer rw,freezer\n" V2));
	assert_null(mount(""));
	assert_null(mount(" - cgroup freezer"));
}

static void who_is_below_is_frozen_too(void **state)
{
	assert_true(freezer_covers("/a/b", "/a/b"));
	assert_true(freezer_covers("/a/b", "/a/b/c"));
	assert_false(freezer_covers("/a/b", "/a"));
	assert_false(freezer_covers("/a/b", "/a/bc"));
	assert_false(freezer_covers("/a/b", "/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_found_among_the_others),
		cmocka_unit_test(where_there_is_none_none_is_found),
		cmocka_unit_test(a_path_that_is_too_long_is_none),
		cmocka_unit_test(a_mount_is_found_among_the_others),
		cmocka_unit_test(who_is_below_is_frozen_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
