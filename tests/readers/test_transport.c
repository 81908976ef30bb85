/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "tests/readers/rig.h"

struct root { /* an empty root of our own */
	struct gkfd *k;
	char path[64];
	char dir[128];
};

static int make_root(void **state)
{
	static const char *const levels[] = { "sys", "module", "amdgpu", "parameters" };
	struct root *r = calloc(1, sizeof(*r));
	int len;

	snprintf(r->path, sizeof(r->path), "/tmp/gpreempt-XXXXXX");
	assert_non_null(mkdtemp(r->path));
	len = snprintf(r->dir, sizeof(r->dir), "%s", r->path);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		len += snprintf(r->dir + len, sizeof(r->dir) - (size_t)len, "/%s", levels[i]);
		assert_int_equal(mkdir(r->dir, 0700), 0);
	}
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(r->path), &r->k), 0);
	*state = r;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int remove_root(void **state)
{
	struct root *r = *state;

	assert_int_equal(nftw(r->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	gkfd_free(r->k);
	free(r);
	return 0;
}

static void put(const struct root *r, const char *name, const void *bytes, size_t len, off_t size)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static int read_param(struct root *r, const char *path, char **text, size_t *len)
{
	return gkfd_read_file(r->k, GKFD_TREE_PARAMS, path, text, len);
}

static void files_of_any_size_are_read_whole(void **state)
{
	static const off_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
	struct root *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *text;
		size_t len;

		put(r, "a", "x", 1, sizes[i]);
		assert_int_equal(read_param(r, "a", &text, &len), 0);
		assert_int_equal(len, sizes[i]);
		assert_int_equal(text[len], '\0');
		free(text);
	}
}

static void a_file_beyond_the_limit_is_efbig(void **state)
{
	struct root *r = *state;
	char *text = NULL;
	size_t len;

	put(r, "just", "x", 1, GKFD_FILE_MAX_BYTES);
	assert_int_equal(read_param(r, "just", &text, &len), 0);
	assert_int_equal(len, GKFD_FILE_MAX_BYTES);
	free(text);
	text = NULL;
	put(r, "over", "x", 1, GKFD_FILE_MAX_BYTES + 1);
	assert_int_equal(read_param(r, "over", &text, &len), -EFBIG);
	assert_null(text);
}

static uint64_t stamp_of(const struct root *r)
{
	uint64_t stamp = 0;

	assert_int_equal(r->k->transport->stamp(r->k->data, &stamp), 0);
	return stamp;
}

/* Also where one process has gone and another has come. */
static void the_stamp_is_another_one_for_other_processes(void **state)
{
	static const char *const levels[] = { "class", "kfd", "kfd", "proc" };
	const struct root *r = *state;
	char procs[128], one[160], two[160];
	int len = snprintf(procs, sizeof(procs), "%s/sys", r->path);
	uint64_t none, first;

	assert_int_equal(r->k->transport->stamp(r->k->data, &none), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		len += snprintf(procs + len, sizeof(procs) - (size_t)len, "/%s", levels[i]);
		assert_int_equal(mkdir(procs, 0700), 0);
	}
	snprintf(one, sizeof(one), "%s/4711", procs);
	snprintf(two, sizeof(two), "%s/4712", procs);
	none = stamp_of(r);
	assert_int_equal(mkdir(one, 0700), 0);
	first = stamp_of(r);
	assert_true(first != none);
	assert_true(stamp_of(r) == first);
	assert_int_equal(rename(one, two), 0);
	assert_true(stamp_of(r) != first);
	assert_int_equal(rmdir(two), 0);
	assert_true(stamp_of(r) == none);
}

static void files_without_a_size_are_read(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = NULL;
	char *text;
	size_t len;

	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(NULL), &k), 0);
	assert_int_equal(gkfd_read_file(k, GKFD_TREE_PROC, "self/status", &text, &len), 0);
	assert_int_equal(strlen(text), len);
	assert_memory_equal(text, "Name:", 5);
	free(text);
}

static void a_namespace_link_reads_as_its_target(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = NULL;
	char *text, expected[64] = "";
	size_t len;

	assert_true(readlink("/proc/self/ns/pid", expected, sizeof(expected) - 1) > 0);
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(""), &k), 0);
	assert_int_equal(gkfd_read_file(k, GKFD_TREE_PROC, "self/ns/pid", &text, &len), 0);
	assert_string_equal(text, expected);
	assert_int_equal(len, strlen(expected));
	free(text);
}

static void paths_cannot_leave_their_tree(void **state)
{
	static const char *const bad[] = {
		"..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x", "a//../x",
	};
	struct root *r = *state;
	char *text;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(read_param(r, bad[i], &text, &len), -EINVAL);
		assert_int_equal(gkfd_list_dir(r->k, GKFD_TREE_PARAMS, bad[i], &text), -EINVAL);
	}
	put(r, "a..b", "x", 1, 1);
	assert_int_equal(read_param(r, "a..b", &text, &len), 0);
	free(text);
}

static void errors_of_the_file_system_are_passed_on(void **state)
{
	struct root *r = *state;
	char *text;
	size_t len;

	assert_int_equal(read_param(r, "none", &text, &len), -ENOENT);
	assert_int_equal(read_param(r, ".", &text, &len), -EISDIR);
	assert_int_equal(gkfd_read_file(r->k, GKFD_TREE_DEBUGFS, "mqds", &text, &len), -ENOENT);
	put(r, "a", "x", 1, 1);
	assert_int_equal(gkfd_list_dir(r->k, GKFD_TREE_PARAMS, "a", &text), -ENOTDIR);
}

static void a_fifo_does_not_hang_us(void **state)
{
	struct root *r = *state;
	char path[256], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/fifo", r->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_param(r, "fifo", &text, &len), 0);
	assert_int_equal(len, 0);
	free(text);
}

static void names_come_sorted_and_end_with_an_empty_one(void **state)
{
	struct root *r = *state;
	char *names;

	assert_int_equal(gkfd_list_dir(r->k, GKFD_TREE_PARAMS, "", &names), 0);
	assert_int_equal(names[0], '\0');
	free(names);
	put(r, "b", "", 0, 0);
	put(r, "a", "", 0, 0);
	put(r, "10", "", 0, 0);
	assert_int_equal(gkfd_list_dir(r->k, GKFD_TREE_PARAMS, "", &names), 0);
	assert_memory_equal(names, "10\0a\0b\0", 8);
	free(names);
}

static void the_device_is_looked_for_below_the_root(void **state)
{
	struct root *r = *state;

	assert_int_equal(gkfd_open_device(r->k), -ENOENT);
	assert_int_equal(gkfd_ioctl(r->k, AMDKFD_IOC_GET_VERSION, NULL), -EBADF);
}

static void a_wait_ends_with_its_time_or_a_descriptor(void **state)
{
	struct root *r = *state;
	int fds[2];
	struct pollfd poll_fd = { .events = POLLIN };
	uint64_t before = gkfd_now_ns(r->k);

	assert_int_equal(pipe(fds), 0);
	poll_fd.fd = fds[0];
	assert_int_equal(gkfd_wait(r->k, &poll_fd, 1, NSEC_PER_MSEC), 0);
	assert_true(gkfd_now_ns(r->k) - before >= NSEC_PER_MSEC);
	assert_int_equal(gkfd_wait(r->k, NULL, 0, 0), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(gkfd_wait(r->k, &poll_fd, 1, UINT64_MAX), 1);
	assert_int_equal(gkfd_wait(r->k, &poll_fd, 1, UINT64_MAX - 1), 1);
	close(fds[0]);
	close(fds[1]);
}

static volatile sig_atomic_t n_alarms;

static void on_alarm(int sig)
{
	n_alarms++;
}

static void a_signal_does_not_shorten_a_wait(void **state)
{
	struct root *r = *state;
	struct itimerval every_2_ms = { { 0, 2000 }, { 0, 2000 } }, off = { 0 };
	struct sigaction action = { .sa_handler = on_alarm }, old;
	uint64_t before = gkfd_now_ns(r->k);

	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &every_2_ms, NULL);
	assert_int_equal(gkfd_wait(r->k, NULL, 0, 20 * NSEC_PER_MSEC), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(n_alarms > 0);
	assert_true(gkfd_now_ns(r->k) - before >= 20 * NSEC_PER_MSEC);
}

#define ROOT_TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOT_TEST(files_of_any_size_are_read_whole),
		ROOT_TEST(a_file_beyond_the_limit_is_efbig),
		ROOT_TEST(the_stamp_is_another_one_for_other_processes),
		cmocka_unit_test(files_without_a_size_are_read),
		cmocka_unit_test(a_namespace_link_reads_as_its_target),
		ROOT_TEST(paths_cannot_leave_their_tree),
		ROOT_TEST(errors_of_the_file_system_are_passed_on),
		ROOT_TEST(a_fifo_does_not_hang_us),
		ROOT_TEST(names_come_sorted_and_end_with_an_empty_one),
		ROOT_TEST(the_device_is_looked_for_below_the_root),
		ROOT_TEST(a_wait_ends_with_its_time_or_a_descriptor),
		ROOT_TEST(a_signal_does_not_shorten_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
