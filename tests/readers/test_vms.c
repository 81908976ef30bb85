/* SPDX-License-Identifier: MIT */
/* Process 4242 of the mi308x tree may use two GPUs; which of them it has opened, the test says. */
#include <stdio.h>
#include <sys/stat.h>

#include "gpu/kfd/session.h"
#include "tests/readers/rig.h"

struct fixture {
	char root[64];
	struct gkfd *k;
};

static void path_in(const struct fixture *f, const char *name, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", f->root, name);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	snprintf(f->root, sizeof(f->root), "/tmp/gpreempt-vms-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	path_in(f, "sys", path, sizeof(path));
	assert_int_equal(symlink(TREES "/mi308x/sys", path), 0);
	path_in(f, "proc", path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
	path_in(f, "proc/4242", path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
	path_in(f, "proc/4242/fd", path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(f->root), &f->k), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	static const char *const made[] = { "proc/4242/fd/0", "proc/4242/fd/3", "proc/4242/fd/4",
					    "proc/4242/fd",   "proc/4242",	"proc",
					    "sys",	      "" };
	struct fixture *f = *state;
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		path_in(f, made[i], path, sizeof(path));
		remove(path);
	}
	gkfd_free(f->k);
	free(f);
	return 0;
}

static void opens(const struct fixture *f, const char *fd, const char *file)
{
	char path[128], name[32];

	snprintf(name, sizeof(name), "proc/4242/fd/%s", fd);
	path_in(f, name, path, sizeof(path));
	assert_int_equal(symlink(file, path), 0);
}

static void a_process_that_opened_every_gpu_may_be_suspended(void **state)
{
	struct fixture *f = *state;
	struct gkfd_failure fail = { 0 };

	opens(f, "0", "/dev/null");
	opens(f, "3", "/dev/dri/renderD128");
	opens(f, "4", "/dev/dri/renderD136");
	assert_int_equal(gkfd_vms_check(f->k, 4242, &fail), 0);
}

static void a_gpu_that_was_not_opened_is_named(void **state)
{
	struct fixture *f = *state;
	struct gkfd_failure fail = { 0 };

	opens(f, "0", "/dev/null");
	opens(f, "3", "/dev/dri/renderD128");
	assert_int_equal(gkfd_vms_check(f->k, 4242, &fail), -EOPNOTSUPP);
	assert_int_equal(fail.why, GKFD_WHY_NO_VM);
	assert_int_equal(fail.gpu_id, 61005);
}

static void what_cannot_be_seen_is_not_held_against_a_process(void **state)
{
	struct fixture *f = *state;
	struct gkfd_failure fail = { 0 };

	assert_int_equal(gkfd_vms_check(f->k, 4243, &fail), 0); /* not listed by the driver */
	assert_int_equal(fail.why, GKFD_WHY_NONE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_process_that_opened_every_gpu_may_be_suspended),
		T(a_gpu_that_was_not_opened_is_named),
		T(what_cannot_be_seen_is_not_held_against_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
