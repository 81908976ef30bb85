/* SPDX-License-Identifier: MIT */
/* The transport to the kernel, with another character device in the place of NVIDIA's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpu/nvrm/rm.h"
#include "tests/kfd/counts.h"
#include "util/macros.h"

#define DEVICE "/dev/full"
#define CHILD_FDS 3 /* of the device; the child has them from FIRST_FD on, every other number */
#define FIRST_FD 10

static const struct nvrm_transport *const t = &nvrm_transport_syscall;

struct world {
	char root[64];
	void *data;
	pid_t child;
	int pidfd;
	struct nvrm_question q;
	size_t fds;
};

static void path_of(const struct world *w, const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", w->root, path);
}

static void make_file(const struct world *w, const char *name, const char *text)
{
	char path[128];
	int fd;

	path_of(w, name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_dir(const struct world *w, const char *name)
{
	char path[128];

	path_of(w, name, path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const struct world *w, const char *target, const char *name)
{
	char path[128];

	path_of(w, name, path, sizeof(path));
	assert_int_equal(symlink(target, path), 0);
}

/* Has the device open at some numbers, and something else at those between. */
static _Noreturn void be_child(int ready)
{
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < CHILD_FDS; i++) {
		dup3(device, FIRST_FD + 2 * i, O_CLOEXEC);
		dup3(other, FIRST_FD + 2 * i + 1, O_CLOEXEC);
	}
	close(device);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void start_child(struct world *w)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	w->child = fork();
	assert_true(w->child >= 0);
	if (w->child == 0)
		be_child(ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	w->pidfd = t->pidfd(w->data, w->child);
	assert_true(w->pidfd >= 0);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const char *tmp = getenv("TMPDIR");

	assert_non_null(w);
	w->fds = count_fds();
	snprintf(w->root, sizeof(w->root), "%s/nvrm-XXXXXX", tmp ? tmp : P_tmpdir);
	assert_non_null(mkdtemp(w->root));
	make_dir(w, "dev");
	make_dir(w, "proc");
	make_dir(w, "proc/7");
	make_dir(w, "proc/7/fd");
	make_link(w, DEVICE, "dev/nvidiactl");
	make_link(w, "/dev/nvidia0", "proc/7/fd/3");
	make_file(w, "proc/7/stat", "7 (job) S\n");
	w->data = nvrm_syscall_new(w->root);
	assert_non_null(w->data);
	start_child(w);
	*state = w;
	return 0;
}

static void remove_tree(const struct world *w)
{
	static const char *const names[] = { "proc/7/fd/3", "proc/7/fd", "proc/7/stat", "proc/7",
					     "proc", "dev/nvidiactl", "dev", "" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		path_of(w, names[i], path, sizeof(path));
		remove(path);
	}
}

static void end_child(struct world *w)
{
	if (w->child <= 0)
		return;
	kill(w->child, SIGKILL);
	assert_int_equal(waitpid(w->child, NULL, 0), w->child);
	w->child = 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct world *w = *state;

	end_child(w);
	close(w->pidfd);
	t->close(w->data);
	remove_tree(w);
	assert_int_equal(count_fds(), w->fds);
	return 0;
}

static int ask_copies(struct world *w, pid_t pid, uint64_t position)
{
	struct nvrm n = { .transport = t, .data = w->data };

	w->q.user = geteuid();
	w->q.blamed = pid;
	w->q.words = (struct nvrm_words){
		.what = NVRM_ASK_COPIES, .pid = pid, .position = position, .left = 512
	};
	return nvrm_ask(&n, &w->q);
}

static void the_device_is_opened_below_the_root(void **state)
{
	struct world *w = *state;
	struct stat device, got;
	char path[128];
	int fd = t->open(w->data);

	assert_true(fd >= 0);
	assert_int_equal(stat(DEVICE, &device), 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_true(got.st_rdev == device.st_rdev);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(t->ioctl(w->data, fd, FIONREAD, &(int){ 0 }), -ENOTTY);
	t->close_fd(w->data, fd);
	path_of(w, "dev/nvidiactl", path, sizeof(path));
	remove(path);
	assert_int_equal(t->open(w->data), -ENOENT);
	assert_int_equal(ask_copies(w, w->child, 0), -ENODEV);
}

static void check_copy(struct world *w, uint32_t i, const struct stat *device)
{
	struct stat got;
	int fd = w->q.words.copies[i].fd;

	assert_int_equal(fstat(fd, &got), 0);
	assert_true(got.st_rdev == device->st_rdev);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_string_equal(w->q.words.copies[i].link, DEVICE);
	t->drop_fd(w->data, fd);
}

static void descriptors_on_the_device_are_borrowed_and_no_others(void **state)
{
	struct world *w = *state;
	struct stat device;

	assert_int_equal(stat(DEVICE, &device), 0);
	assert_int_equal(ask_copies(w, w->child, 0), CHILD_FDS);
	assert_true(w->q.words.position == BORROW_END);
	for (uint32_t i = 0; i < CHILD_FDS; i++) {
		assert_int_equal(w->q.words.copies[i].number, FIRST_FD + 2 * i);
		check_copy(w, i, &device);
	}
}

/* Where it stopped, also in the middle of descriptors of no interest. */
static void descriptors_are_borrowed_a_few_at_a_time(void **state)
{
	struct world *w = *state;
	struct stat device;
	struct borrow_place at = { 0 };
	uint32_t n = 0;

	assert_int_equal(stat(DEVICE, &device), 0);
	while (at.position != BORROW_END) {
		struct borrowed copies[NVRM_COPIES];
		int r;

		at.left = 2;
		r = t->borrow(w->data, w->child, device.st_rdev, &at, copies);
		assert_in_range(r, 0, 2);
		for (int i = 0; i < r; i++) {
			assert_int_equal(copies[i].number, FIRST_FD + 2 * n++);
			close(copies[i].fd);
		}
		assert_false(at.missed);
	}
	assert_int_equal(n, CHILD_FDS);
}

static void the_end_is_told_and_nothing_is_borrowed_after_it(void **state)
{
	struct world *w = *state;
	struct pollfd end = { .fd = w->pidfd, .events = POLLIN };
	pid_t gone = w->child;

	assert_int_equal(poll(&end, 1, 0), 0);
	end_child(w);
	assert_int_equal(poll(&end, 1, -1), 1);
	assert_int_equal(ask_copies(w, gone, 0), -ESRCH);
	assert_int_equal(t->pidfd(w->data, gone), -ESRCH);
}

static void files_are_read_and_links_as_what_they_point_to(void **state)
{
	struct world *w = *state;
	char *text;
	size_t len;

	assert_int_equal(t->read_proc(w->data, "7/stat", &text, &len), 0);
	assert_string_equal(text, "7 (job) S\n");
	assert_int_equal(len, strlen(text));
	free(text);
	assert_int_equal(t->read_proc(w->data, "7/fd/3", &text, &len), 0);
	assert_string_equal(text, "/dev/nvidia0");
	assert_int_equal(len, strlen(text));
	free(text);
	assert_int_equal(t->read_proc(w->data, "8/stat", &text, &len), -ENOENT);
	assert_int_equal(t->read_proc(w->data, "7", &text, &len), -EISDIR);
}

static void directories_are_listed(void **state)
{
	struct world *w = *state;
	char *names;

	assert_int_equal(t->list_proc(w->data, "", &names), 0);
	assert_memory_equal(names, "7\0", 3);
	free(names);
	assert_int_equal(t->list_proc(w->data, "7/fd", &names), 0);
	assert_memory_equal(names, "3\0", 3);
	free(names);
	assert_int_equal(t->list_proc(w->data, "8/fd", &names), -ENOENT);
}

static void nobody_leaves_the_tree(void **state)
{
	struct world *w = *state;
	char *text;
	size_t len;

	assert_int_equal(t->read_proc(w->data, "../dev/nvidiactl", &text, &len), -EINVAL);
	assert_int_equal(t->read_proc(w->data, "/etc/passwd", &text, &len), -EINVAL);
	assert_int_equal(t->read_proc(w->data, "7/../../dev", &text, &len), -EINVAL);
	assert_int_equal(t->list_proc(w->data, "..", &text), -EINVAL);
}

static void the_real_proc_is_there_without_a_root(void **state)
{
	void *data = nvrm_syscall_new(NULL);
	char path[32], *text;
	size_t len;

	assert_non_null(data);
	snprintf(path, sizeof(path), "%d/stat", (int)getpid());
	assert_int_equal(t->read_proc(data, path, &text, &len), 0);
	assert_int_equal(strtol(text, NULL, 10), getpid());
	free(text);
	assert_true(t->now_ns(data) > 0);
	t->close(data);
}

/* ---- processes that may be hostile ---- */

#define COPIES 500
#define LAST_FD 1000

/* How often each of the numbers is in the directory, read @max at a time. */
static void count_numbers(void *data, const char *path, size_t max, unsigned int *ret, size_t n)
{
	uint64_t position = 0;
	uint32_t numbers[64];

	while (position != NVRM_LIST_END) {
		int r = t->list_numbers(data, path, &position, numbers, max);

		assert_in_range(r, 0, max);
		for (int i = 0; i < r; i++)
			if (numbers[i] < n)
				ret[numbers[i]]++;
	}
}

static void descriptors_are_listed_a_page_at_a_time(void **state)
{
	void *data = nvrm_syscall_new(NULL);
	unsigned int seen[LAST_FD] = { 0 };
	int fds[COPIES];
	char path[32], target[32], text[8];

	for (int i = 0; i < COPIES; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_in_range(fds[i], 0, LAST_FD - 1);
	}
	snprintf(path, sizeof(path), "%d/fd", (int)getpid());
	count_numbers(data, path, 64, seen, ARRAY_SIZE(seen));
	for (int i = 0; i < COPIES; i++)
		assert_int_equal(seen[fds[i]], 1);
	snprintf(path, sizeof(path), "%d/fd/%d", (int)getpid(), fds[COPIES - 1]);
	assert_int_equal(t->read_link(data, path, target, sizeof(target)), 9);
	assert_string_equal(target, "/dev/null");
	assert_int_equal(t->read_link(data, path, text, sizeof(text)), 7);
	assert_string_equal(text, "/dev/nu");
	for (int i = 0; i < COPIES; i++)
		close(fds[i]);
	assert_int_equal(t->read_link(data, path, target, sizeof(target)), -ENOENT);
	t->close(data);
}

static void processes_are_listed_a_page_at_a_time(void **state)
{
	const struct world *w = *state;
	void *data = nvrm_syscall_new(NULL);
	size_t n = (size_t)MAX(getpid(), w->child) + 1;
	unsigned int *seen = calloc(n, sizeof(*seen));
	uint64_t position = 0;
	uint32_t number;

	assert_non_null(seen);
	count_numbers(data, "", 5, seen, n);
	assert_int_equal(seen[getpid()], 1);
	assert_int_equal(seen[w->child], 1);
	assert_int_equal(t->list_numbers(w->data, "8/fd", &position, &number, 1), -ENOENT);
	assert_int_equal(t->list_numbers(w->data, "", &position, &number, 1), 1);
	assert_int_equal(number, 7);
	free(seen);
	t->close(data);
}

/* Who leaves root's rights may not be dumped any more, and its files are root's. */
static void a_process_is_its_users_also_when_it_may_not_be_dumped(void **state)
{
	void *data = nvrm_syscall_new(NULL);
	uid_t uid, other = geteuid() == 0 ? 65534 : geteuid();
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresuid(other, other, other) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(t->owner(data, pid, &uid), 0);
	assert_int_equal(uid, other);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(t->owner(data, pid, &uid), -ENOENT);
	close(ready[0]);
	close(ready[1]);
	t->close(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(the_device_is_opened_below_the_root),
		CASE(descriptors_on_the_device_are_borrowed_and_no_others),
		CASE(descriptors_are_borrowed_a_few_at_a_time),
		CASE(the_end_is_told_and_nothing_is_borrowed_after_it),
		CASE(files_are_read_and_links_as_what_they_point_to),
		CASE(directories_are_listed),
		CASE(nobody_leaves_the_tree),
		CASE(the_real_proc_is_there_without_a_root),
		CASE(descriptors_are_listed_a_page_at_a_time),
		CASE(processes_are_listed_a_page_at_a_time),
		CASE(a_process_is_its_users_also_when_it_may_not_be_dumped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
