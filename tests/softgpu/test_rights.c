/* SPDX-License-Identifier: MIT */
/* Who may do what on a software GPU that root runs: what the driver lets them. */
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/softgpu/rig.h"

static int set_up(void **state)
{
	return rig_set_up(state, "mi308x,gpus=1,ext=1");
}

static bool may_hold(const char *path, pid_t job)
{
	void *data;

	return soft_new(path, &data) >= 0 && rig_suspend_all(data, job) == 1;
}

static bool may_look_inside(const char *path, pid_t job)
{
	const struct gkfd_transport *t = rig_transport;
	uint64_t word;
	struct gkfd_span span = { 8, &word, sizeof(word), false };
	void *data;

	return soft_new(path, &data) >= 0 && t->read_mem(data, job, NULL, &span, 1) != -EPERM;
}

static bool may_read(const char *path, enum gkfd_tree tree, const char *file)
{
	char *text = NULL;
	size_t len;
	void *data;

	return soft_new(path, &data) >= 0 &&
	       rig_transport->read_file(data, tree, file, &text, &len) >= 0;
}

static bool may_read_debugfs(const char *path, pid_t job)
{
	(void)job;
	return may_read(path, GKFD_TREE_DEBUGFS, "mqds");
}

static bool may_read_debugfs_by_sys(const char *path, pid_t job)
{
	(void)job;
	return may_read(path, GKFD_TREE_SYS, "kernel/debug/" KFD_GPREEMPT_DEVICE);
}

static int bind_to(void *data, int fd)
{
	struct kfd_gpreempt_bind bind = { .fd = fd };

	return rig_transport->ext(data, KFD_GPREEMPT_BIND, &bind);
}

/* Whom it has borrowed from it may name. */
static bool may_bind(const char *path, pid_t job)
{
	struct kfd_gpreempt_stats stats = { .pid = (uint32_t)job };
	void *data;
	int fd;

	if (soft_new(path, &data) < 0)
		return false;
	fd = rig_transport->borrow(data, job, 0);
	return fd >= 0 && bind_to(data, fd) >= 0 &&
	       rig_transport->ext(data, KFD_GPREEMPT_GET_STATS, &stats) >= 0;
}

/* What a descriptor says cannot be guessed, not even from that of one's own. */
static bool forged_descriptor_works(const char *path, pid_t job)
{
	int fd = memfd_create("kfd", MFD_CLOEXEC), own;
	uint64_t word;
	void *data;

	(void)job;
	if (soft_new(path, &data) < 0 || rig_transport->open(data) < 0)
		return true;
	own = rig_transport->borrow(data, getpid(), 0);
	if (own < 0 || pread(own, &word, sizeof(word), 0) != sizeof(word))
		return true;
	for (int64_t i = -64; i < 64; i++) {
		uint64_t guess = i < 0 ? (uint64_t)-i : word + (uint64_t)i + 1;

		if (pwrite(fd, &guess, sizeof(guess), 0) != sizeof(guess) ||
		    bind_to(data, fd) != -ESRCH)
			return true;
	}
	return false;
}

static bool may_stop_gpus(const char *path, pid_t job)
{
	struct kfd_gpreempt_monitor off = { .gpu_id = KFD_GPREEMPT_ANY_GPU };
	void *data;

	(void)job;
	return soft_new(path, &data) >= 0 &&
	       rig_transport->ext(data, KFD_GPREEMPT_SET_MONITOR, &off) != -EPERM;
}

static void root_may_all(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, STRANGER);

	assert_true(rig_apart(0, may_hold, rig->path, j.pid));
	assert_true(rig_apart(0, may_look_inside, rig->path, j.pid));
	assert_true(rig_apart(0, may_read_debugfs, rig->path, j.pid));
	assert_true(rig_apart(0, may_read_debugfs_by_sys, rig->path, j.pid));
	assert_true(rig_apart(0, may_bind, rig->path, j.pid));
	assert_true(rig_apart(0, may_stop_gpus, rig->path, j.pid));
	rig_end_job(&j);
}

static void users_may_with_what_is_theirs(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, STRANGER);

	assert_true(rig_apart(STRANGER, may_hold, rig->path, j.pid));
	assert_true(rig_apart(STRANGER, may_look_inside, rig->path, j.pid));
	assert_true(rig_apart(STRANGER, may_bind, rig->path, j.pid));
	rig_end_job(&j);
}

static void users_may_not_with_what_is_others(void **state)
{
	struct rig *rig = *state;
	struct job roots = rig_job(rig, 0), others = rig_job(rig, STRANGER - 1);
	const pid_t jobs[] = { roots.pid, others.pid };

	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		assert_false(rig_apart(STRANGER, may_hold, rig->path, jobs[i]));
		assert_false(rig_apart(STRANGER, may_look_inside, rig->path, jobs[i]));
		assert_false(rig_apart(STRANGER, may_bind, rig->path, jobs[i]));
	}
	assert_false(rig_apart(STRANGER, may_read_debugfs, rig->path, 0));
	assert_false(rig_apart(STRANGER, may_read_debugfs_by_sys, rig->path, 0));
	assert_false(rig_apart(STRANGER, may_stop_gpus, rig->path, 0));
	assert_false(rig_apart(STRANGER, forged_descriptor_works, rig->path, 0));
	rig_end_job(&roots);
	rig_end_job(&others);
}

/* Processes of a user who takes what he can get, until the pipe is closed. */
static void crowd(const struct rig *rig, const int until[2], int n)
{
	struct device_welcome welcome;
	int fd;
	char c;

	while (n--) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid)
			continue;
		close(until[1]);
		if (setresuid(STRANGER, STRANGER, STRANGER) < 0 ||
		    device_connect(rig->path, &fd, &welcome) < 0)
			_exit(1);
		_exit(read(until[0], &c, 1) == 0 ? 0 : 1);
	}
}

static bool may_come(const char *path, pid_t job)
{
	void *data;

	(void)job;
	return soft_new(path, &data) >= 0;
}

static void await_full(const struct rig *rig)
{
	uint64_t until_ns = gkfd_syscall_now_ns(NULL) + SOON_MS * NSEC_PER_MSEC;

	while (rig_apart(STRANGER, may_come, rig->path, 0))
		assert_true(gkfd_syscall_now_ns(NULL) < until_ns);
}

static void a_device_full_of_a_users_processes_has_room_for_root(void **state)
{
	struct rig *rig = *state;
	int until[2];

	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	crowd(rig, until, DEVICE_MAX_PROCESSES);
	close(until[0]);
	await_full(rig);
	assert_true(rig_apart(0, may_come, rig->path, 0));
	close(until[1]);
	for (int i = 0; i < (int)DEVICE_MAX_PROCESSES; i++)
		assert_true(wait(NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, rig_tear_down)
		TEST(root_may_all),
		TEST(users_may_with_what_is_theirs),
		TEST(users_may_not_with_what_is_others),
		TEST(a_device_full_of_a_users_processes_has_room_for_root),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP only root can be two people\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
