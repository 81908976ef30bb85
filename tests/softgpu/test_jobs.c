/* SPDX-License-Identifier: MIT */
/* Jobs on a software GPU: processes of their own, forked for each test. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cmd/gpreempt-softgpu/softgpu.h"
#include "cmd/wire/device_client.h"
#include "gpu/soft/transport.h"
#include "util/macros.h"

#define MAX_CLIENTS 8

struct rig {
	sd_event *loop;
	struct softgpu *gpu;
	char dir[64], path[96];
	int running; /* clients */
	int status[MAX_CLIENTS]; /* in the order they ended */
	int ended;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	char *why = NULL;

	snprintf(rig->dir, sizeof(rig->dir), "%s/gpreempt-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->path, sizeof(rig->path), "%s/%s", rig->dir, DEVICE_SOCKET);
	assert_int_equal(sd_event_new(&rig->loop), 0);
	assert_int_equal(softgpu_new("mi308x", rig->loop, rig->path, &rig->gpu, &why), 0);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	softgpu_free(rig->gpu);
	sd_event_unref(rig->loop);
	assert_int_equal(rmdir(rig->dir), 0); /* the socket is gone */
	free(rig);
	return 0;
}

/* ---- clients ---- */

/* In a client: its exit status is the line that failed. */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
			_exit(__LINE__ % 255 + 1); \
	} while (0)

static int on_client_end(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct rig *rig = user;
	siginfo_t info = { 0 };

	waitid(P_PIDFD, (id_t)fd, &info, WEXITED);
	rig->status[rig->ended++] = info.si_status;
	rig->running--;
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static pid_t start(struct rig *rig, void (*client)(const char *path))
{
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		client(rig->path);
		_exit(0);
	}
	fd = gkfd_trace_syscall.pidfd(NULL, pid);
	assert_true(fd >= 0);
	rig->running++;
	assert_true(sd_event_add_io(rig->loop, NULL, fd, EPOLLIN, on_client_end, rig) >= 0);
	return pid;
}

static void serve(struct rig *rig)
{
	while (rig->running)
		assert_true(sd_event_run(rig->loop, UINT64_MAX) >= 0);
}

static void serve_one(struct rig *rig, void (*client)(const char *path))
{
	start(rig, client);
	serve(rig);
	assert_int_equal(rig->status[rig->ended - 1], 0);
}

/* Whom the driver knows. */
static bool anybody_there(struct rig *rig)
{
	char *names = NULL;
	bool there;
	size_t len;

	assert_int_equal(
		model_read(softgpu_now(rig->gpu), GKFD_TREE_SYSFS, "proc", true, &names, &len), 0);
	there = names[0] != '\0';
	free(names);
	return there;
}

/* A client's end is told to us and to the device in any order. */
static void wait_until_empty(struct rig *rig)
{
	while (anybody_there(rig))
		assert_true(sd_event_run(rig->loop, UINT64_MAX) >= 0);
}

static int raw_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	CHECK(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

static struct device_submit kernel(uint32_t queue, uint32_t workgroups, uint64_t ns)
{
	return (struct device_submit){ .queue = queue, .workgroups = workgroups, .wg_ns = ns };
}

/* ---- tests ---- */

static void work_and_check(const char *path)
{
	struct device_welcome hello;
	struct device_submit work;
	union device_any a;
	uint32_t queue;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	CHECK(hello.gpus == 8 && hello.cus == 80 && strcmp(hello.chip, "mi308x") == 0);
	CHECK(device_create_queue(fd, 1, 7, &queue) == 0);
	work = kernel(queue, hello.cus, 5 * NSEC_PER_MSEC);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(device_submit(fd, 100 + i, &work) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(device_receive(fd, &a) == 0);
		CHECK(a.h.type == DEVICE_SUBMIT && a.h.seq == 100 + i);
		CHECK(a.done.queue == queue && a.done.index == i && a.done.saves == 0);
		CHECK(a.done.workgroups == hello.cus && a.done.finished == hello.cus);
		CHECK(a.done.executed_ns == hello.cus * work.wg_ns);
		CHECK(a.done.submitted_ns >= hello.now_ns);
		CHECK(a.done.started_ns >= a.done.submitted_ns);
		CHECK(a.done.done_ns - a.done.started_ns == work.wg_ns);
		CHECK(gkfd_syscall_now_ns(NULL) >= a.done.done_ns);
		CHECK(gkfd_syscall_now_ns(NULL) < a.done.done_ns + NSEC_PER_SEC);
	}
}

static void work_is_done_and_told_of_in_real_time(void **state)
{
	struct rig *rig = *state;

	serve_one(rig, work_and_check);
	wait_until_empty(rig);
}

static void make_100_queues(const char *path)
{
	struct device_welcome hello;
	uint32_t queues[100];
	union device_any a;
	int fd, left = 0;

	CHECK(device_connect(path, &fd, &hello) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		CHECK(device_create_queue(fd, i % 2, 0, &queues[i]) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++, left++) {
		struct device_submit work = kernel(queues[i], 1, NSEC_PER_MSEC);

		CHECK(device_submit(fd, (uint32_t)i, &work) == 0);
	}
	for (; left > 0; left--) {
		CHECK(device_receive(fd, &a) == 0);
		CHECK(a.h.type == DEVICE_SUBMIT && a.done.queue == queues[a.h.seq]);
		CHECK(a.done.finished == 1);
	}
}

static void hundred_queues_work_at_once(void **state)
{
	serve_one(*state, make_100_queues);
}

/* More answers than a socket holds, and nobody reads until all is done. */
static void flood_without_reading(const char *path)
{
	struct device_welcome hello;
	uint32_t queues[32], seen = 0;
	union device_any a;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		CHECK(device_create_queue(fd, 0, 0, &queues[i]) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		struct device_submit work = kernel(queues[i], 1, 1000);

		for (uint32_t n = 0; n < DEVICE_MAX_PENDING; n++)
			CHECK(device_submit(fd, n, &work) == 0);
	}
	for (; seen < ARRAY_SIZE(queues) * DEVICE_MAX_PENDING; seen++) {
		CHECK(device_receive(fd, &a) == 0);
		CHECK(a.h.type == DEVICE_SUBMIT);
	}
}

static void what_finds_no_room_in_the_socket_is_told_of_later(void **state)
{
	serve_one(*state, flood_without_reading);
}

/* Of the last queue: each that was asked for has a page, also one that was refused. */
static const uint64_t *last_write_ptr(void)
{
	const uint64_t *at = (const uint64_t *)(uintptr_t)DEVICE_PAGES_VA + 56 / sizeof(*at);
	const uint64_t *last = NULL;

	for (size_t i = 0; i < DEVICE_MAX_PROCESS_REQUESTS; i++) {
		if (at[i * DEVICE_PAGE_BYTES / sizeof(*at)])
			last = &at[i * DEVICE_PAGE_BYTES / sizeof(*at)];
	}
	return last;
}

static void overfill(const char *path)
{
	struct device_welcome hello;
	struct device_submit work;
	union device_any a;
	uint32_t queue;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	CHECK(device_create_queue(fd, 0, 0, &queue) == 0);
	CHECK(device_create_queue(fd, 8, 0, &queue) == -ENODEV);
	for (uint32_t i = 1; i < DEVICE_MAX_PROCESS_QUEUES; i++)
		CHECK(device_create_queue(fd, i % 8, 0, &queue) == 0);
	CHECK(device_create_queue(fd, 0, 0, &queue) == -ENOSPC);
	work = kernel(queue, 1, NSEC_PER_SEC);
	for (uint32_t i = 0; i <= DEVICE_MAX_PENDING; i++)
		CHECK(device_submit(fd, i, &work) == 0);
	CHECK(device_receive(fd, &a) == 0);
	CHECK(a.h.type == DEVICE_ERROR && a.error.error == ENOSPC);
	CHECK(a.h.seq == DEVICE_MAX_PENDING);
	CHECK(*last_write_ptr() == DEVICE_MAX_PENDING); /* what was refused is not there */
	work.queue = 9999;
	CHECK(device_submit(fd, 7, &work) == 0);
	CHECK(device_receive(fd, &a) == 0);
	CHECK(a.h.type == DEVICE_ERROR && a.error.error == ENOENT && a.h.seq == 7);
}

static void limits_are_kept_and_refusals_leave_the_connection(void **state)
{
	serve_one(*state, overfill);
}

/* Each must end the connection. */
static void send_garbage(const char *path)
{
	struct device_queue queue = { .h = device_header(DEVICE_QUEUE, sizeof(queue), 1) };
	struct device_header hello = device_header(DEVICE_HELLO, sizeof(hello), 1);
	unsigned char big[1000] = { 0 };
	struct device_header wrong[4] = { hello, hello, hello, hello };
	struct {
		const void *data;
		size_t len;
	} packets[] = {
		{ big, sizeof(big) },
		{ big, 1 },
		{ &hello, 15 },
		{ &queue, sizeof(queue) }, /* before hello */
		{ &wrong[0], sizeof(hello) },
		{ &wrong[1], sizeof(hello) },
		{ &wrong[2], sizeof(hello) },
		{ &wrong[3], sizeof(hello) },
	};

	memcpy(big, &hello, sizeof(hello));
	wrong[0].magic++;
	wrong[1].version++;
	wrong[2].type = 77;
	wrong[3].bytes--;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		int fd = raw_connect(path);
		char c;

		CHECK(send(fd, packets[i].data, packets[i].len, MSG_NOSIGNAL) >= 0);
		CHECK(recv(fd, &c, 1, 0) <= 0);
		close(fd);
	}
}

static void garbage_ends_the_connection(void **state)
{
	struct rig *rig = *state;

	serve_one(rig, send_garbage);
	wait_until_empty(rig);
}

static void submit_nonsense(const char *path)
{
	struct device_submit bad[] = {
		kernel(0, 0, 1),
		kernel(0, DEVICE_MAX_WORKGROUPS + 1, 1),
		kernel(0, 1, 0),
		kernel(0, 1, DEVICE_MAX_WG_NS + 1),
		{ .workgroups = 1, .wg_ns = 1, .per_cu = DEVICE_MAX_PER_CU + 1 },
		{ .workgroups = 1, .wg_ns = 1, .flags = 2 },
	};
	struct device_welcome hello;
	union device_any a;
	uint32_t queue;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int fd, r;

		/* Until the last connection's end has been seen the process is there already. */
		while ((r = device_connect(path, &fd, &hello)) == -EEXIST)
			;
		CHECK(r == 0);
		CHECK(device_create_queue(fd, 0, 0, &queue) == 0);
		bad[i].queue = queue;
		CHECK(device_submit(fd, 1, &bad[i]) == 0);
		CHECK(device_receive(fd, &a) == -ECONNRESET);
		close(fd);
	}
}

static void work_that_makes_no_sense_ends_the_connection(void **state)
{
	serve_one(*state, submit_nonsense);
}

static void connect_twice(const char *path)
{
	struct device_welcome hello;
	int fd, second;

	CHECK(device_connect(path, &fd, &hello) == 0);
	CHECK(device_connect(path, &second, &hello) == -EEXIST);
}

static void process_is_on_the_device_once(void **state)
{
	serve_one(*state, connect_twice);
}

static void leave_work_behind(const char *path)
{
	struct device_welcome hello;
	struct device_submit work;
	uint32_t queue;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	CHECK(device_create_queue(fd, 0, 0, &queue) == 0);
	work = kernel(queue, hello.cus * 100, NSEC_PER_SEC);
	for (int i = 0; i < 4; i++)
		CHECK(device_submit(fd, 0, &work) == 0);
	raise(SIGKILL);
}

static void killed_with_work_in_flight_it_leaves_nothing(void **state)
{
	struct rig *rig = *state;
	struct model_gpu_stats stats;

	start(rig, leave_work_behind);
	serve(rig);
	assert_int_equal(rig->status[0], SIGKILL);
	wait_until_empty(rig);
	assert_int_equal(model_gpu_stats(softgpu_now(rig->gpu), 0, &stats), 0);
	assert_int_equal(stats.total_queues, 0);
}

/* The connection outlives the process in its child: the process counts. */
static void die_before_a_child(const char *path)
{
	struct device_welcome hello;
	char c;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, 0);
		CHECK(recv(fd, &c, 1, 0) <= 0); /* until the service ends it */
		_exit(0);
	}
}

static void connection_ends_with_the_process_that_made_it(void **state)
{
	struct rig *rig = *state;

	serve_one(rig, die_before_a_child);
	wait_until_empty(rig);
}

static void serve_until_stopped(struct rig *rig, pid_t pid)
{
	int status;

	do {
		assert_true(sd_event_run(rig->loop, 20000) >= 0);
	} while (waitpid(pid, &status, WNOHANG | WUNTRACED) == 0);
	while (sd_event_run(rig->loop, 0) > 0)
		;
}

static void idle_with_queues(const char *path)
{
	struct device_welcome hello;
	uint32_t queue;
	int fd;

	CHECK(device_connect(path, &fd, &hello) == 0);
	for (uint32_t i = 0; i < 100; i++)
		CHECK(device_create_queue(fd, i % hello.gpus, 0, &queue) == 0);
	raise(SIGSTOP);
}

static void idle_queues_cost_nothing(void **state)
{
	struct rig *rig = *state;
	pid_t pid = start(rig, idle_with_queues);
	int turns = 0;

	serve_until_stopped(rig, pid); /* up to its last request all is done at once */
	for (int i = 0; i < 5; i++)
		turns += sd_event_run(rig->loop, 20000) > 0;
	assert_int_equal(turns, 0); /* nothing is due: the slots suffice, nobody takes turns */
	kill(pid, SIGKILL);
	serve(rig);
}

static void end_work_and_stay(const char *path)
{
	struct device_welcome hello;
	uint32_t queue;
	void *data;
	int fd;

	CHECK(soft_new(path, &data) == 0);
	CHECK(device_connect(path, &fd, &hello) == 0);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(device_create_queue(fd, 0, 0, &queue) == 0);
	raise(SIGSTOP);
	close(fd);
	raise(SIGSTOP);
}

/* A debugger by the model's own means holds queue @id of @pid. */
static void hold_queue(struct rig *rig, pid_t pid, uint32_t id)
{
	const struct model_proc_spec spec = { .pid = 4194301 };
	const struct model_task by = { spec.pid, spec.pid };
	struct model *m = softgpu_now(rig->gpu);
	struct kfd_runtime_info info;
	struct kfd_queue_snapshot_entry seen[2];
	struct kfd_ioctl_dbg_trap_args calls[] = {
		{ .op = KFD_IOC_DBG_TRAP_ENABLE,
		  .enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) } },
		{ .op = KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT,
		  .queue_snapshot = { .exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
				      .snapshot_buf_ptr = (uintptr_t)seen,
				      .num_queues = 2,
				      .entry_size = sizeof(seen[0]) } },
		{ .op = KFD_IOC_DBG_TRAP_SUSPEND_QUEUES,
		  .suspend_queues = { .queue_array_ptr = (uintptr_t)&id,
				      .num_queues = 1,
				      .grace_period = KFD_GRACE_KCLK_MIN } },
	};

	assert_int_equal(model_proc_start(m, &spec), 0);
	assert_int_equal(model_kfd_open(m, by), 0);
	assert_int_equal(model_ptrace_seize(m, by, pid), 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		calls[i].pid = (uint32_t)pid;
		assert_int_equal(model_ioctl(m, by, spec.pid, AMDKFD_IOC_DBG_TRAP, &calls[i]),
				 i == 2);
	}
}

static void held_queue_stays_and_the_others_go_with_their_connection(void **state)
{
	struct rig *rig = *state;
	pid_t pid = start(rig, end_work_and_stay);
	char path[64], *names = NULL;
	size_t len;

	serve_until_stopped(rig, pid);
	hold_queue(rig, pid, 1); /* the first that goes */
	kill(pid, SIGCONT);
	serve_until_stopped(rig, pid);
	snprintf(path, sizeof(path), "proc/%d/queues", pid);
	assert_int_equal(
		model_read(softgpu_now(rig->gpu), GKFD_TREE_SYSFS, path, true, &names, &len), 0);
	assert_string_equal(names, "1");
	assert_int_equal(names[2], '\0');
	free(names);
	kill(pid, SIGKILL);
	serve(rig);
}

static void clock_is_the_machines(void **state)
{
	struct rig *rig = *state;
	uint64_t before = gkfd_syscall_now_ns(NULL), in_model = model_now_ns(softgpu_now(rig->gpu));

	assert_true(in_model >= before);
	assert_true(in_model <= gkfd_syscall_now_ns(NULL));
	assert_true(model_now_ns(softgpu_now(rig->gpu)) >= in_model);
}

/* It is submitted by the model's own means: no process of the device's knows of it. */
static void work_nobody_waits_for_wakes_nobody(void **state)
{
	struct rig *rig = *state;
	struct model *m = softgpu_now(rig->gpu);
	struct model_proc_spec spec = { .pid = 4194301 };
	struct model_queue_spec queue = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	struct model_work work = {
		.workgroups = 8,
		.wg_ns = 20 * NSEC_PER_MSEC,
		.wg_per_cu = 1,
		.barrier = true, /* one after the other, for longer than this looks */
	};
	int turns = 0;
	uint32_t id;

	assert_int_equal(model_proc_start(m, &spec), 0);
	assert_int_equal(model_kfd_open(m, (struct model_task){ spec.pid, spec.pid }), 0);
	assert_int_equal(model_vm_acquire(m, spec.pid, 0), 0);
	assert_int_equal(model_queue_create(m, spec.pid, &queue, &id), 0);
	serve_one(rig, send_garbage); /* so that it looks what is due */
	for (int i = 0; i < 20; i++)
		assert_int_equal(model_submit(softgpu_now(rig->gpu), spec.pid, id, &work, NULL), 0);
	serve_one(rig, send_garbage);
	while (sd_event_run(rig->loop, 0) > 0)
		;
	for (int i = 0; i < 5; i++)
		turns += sd_event_run(rig->loop, 20000) > 0;
	assert_int_equal(turns, 0);
}

static void wrong_preset_is_refused_with_words(void **state)
{
	struct rig *rig = *state;
	struct softgpu *gpu = NULL;
	char *why = NULL;

	assert_int_equal(softgpu_new("nochip", rig->loop, rig->path, &gpu, &why), -EINVAL);
	assert_non_null(strstr(why, "nochip"));
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(work_is_done_and_told_of_in_real_time),
		TEST(hundred_queues_work_at_once),
		TEST(what_finds_no_room_in_the_socket_is_told_of_later),
		TEST(limits_are_kept_and_refusals_leave_the_connection),
		TEST(garbage_ends_the_connection),
		TEST(work_that_makes_no_sense_ends_the_connection),
		TEST(process_is_on_the_device_once),
		TEST(killed_with_work_in_flight_it_leaves_nothing),
		TEST(connection_ends_with_the_process_that_made_it),
		TEST(idle_queues_cost_nothing),
		TEST(held_queue_stays_and_the_others_go_with_their_connection),
		TEST(clock_is_the_machines),
		TEST(work_nobody_waits_for_wakes_nobody),
		TEST(wrong_preset_is_refused_with_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
