/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gpu/model/live.h"
#include "util/macros.h"

#define JOB 4194301 /* no process of this machine */

static const struct gkfd_transport *t = &gkfd_transport_live;

static uint64_t now_ns(void)
{
	return gkfd_syscall_now_ns(NULL);
}

static int set_up(void **state)
{
	struct live *l = NULL;
	char *why = NULL;

	assert_int_equal(live_new("mi308x,gpus=1", &l, &why), 0);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	live_unref(*state);
	return 0;
}

static uint32_t add_job(struct live *l, pid_t pid)
{
	struct model_proc_spec spec = { .pid = pid };
	struct model_queue_spec queue = { .type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL };
	struct model_task task = { .pid = pid, .tid = pid };
	struct model *m = live_lock(l);
	uint32_t id;
	int r;

	r = model_proc_start(m, &spec);
	if (r >= 0)
		r = model_kfd_open(m, task);
	if (r >= 0)
		r = model_runtime_enable(m, pid);
	if (r >= 0)
		r = model_queue_create(m, pid, &queue, &id);
	live_unlock(l);
	assert_int_equal(r, 0);
	return id;
}

static void submit(struct live *l, pid_t pid, uint32_t id, uint64_t ns)
{
	struct model_work work = { .workgroups = 8, .wg_ns = ns, .wg_per_cu = 1 };

	assert_int_equal(model_submit(live_lock(l), pid, id, &work, NULL), 0);
	live_unlock(l);
}

static bool is_readable(struct live *l, int timeout_ms)
{
	struct pollfd p = { .fd = live_fd(l), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static struct model_packet packet(struct live *l, pid_t pid, uint32_t id, uint64_t index)
{
	struct model_packet p = { 0 };

	model_packets(live_lock(l), pid, id, index, &p, 1);
	live_unlock(l);
	return p;
}

static void clock_is_the_machines(void **state)
{
	struct live *l = *state;
	uint64_t before = now_ns(), in_model = model_now_ns(live_lock(l));

	live_unlock(l);
	assert_true(in_model >= before);
	assert_true(in_model <= now_ns());
	assert_true(t->now_ns(l) >= in_model);
	assert_true(t->modelled);
}

static void descriptor_wakes_when_something_is_due(void **state)
{
	struct live *l = *state;
	uint32_t id = add_job(l, JOB);
	struct model_packet p;

	while (is_readable(l, 0)) { /* what mapping the queue still had to do */
		live_lock(l);
		live_hush(l);
		live_unlock(l);
	}
	submit(l, JOB, id, 30 * NSEC_PER_MSEC);
	assert_false(is_readable(l, 60)); /* nobody waits for it */
	submit(l, JOB, id, 30 * NSEC_PER_MSEC);
	live_lock(l);
	live_expect(l, 1);
	live_unlock(l);
	do {
		assert_true(is_readable(l, 5000));
		live_lock(l);
		live_hush(l);
		live_unlock(l);
		p = packet(l, JOB, id, 1);
	} while (!p.done_ns);
	assert_true(p.done_ns - p.started_ns == 30 * NSEC_PER_MSEC);
	assert_true(now_ns() >= p.done_ns);
	assert_false(is_readable(l, 0));
	assert_false(is_readable(l, 20)); /* and then nothing is */
}

static void notify_wakes_at_once(void **state)
{
	struct live *l = *state;

	assert_false(is_readable(l, 0));
	live_lock(l);
	live_notify(l);
	live_unlock(l);
	assert_true(is_readable(l, 5000));
	live_lock(l);
	live_hush(l);
	live_unlock(l);
	assert_false(is_readable(l, 0));
}

/* ---- a call that waits for the hardware ---- */

#define SLOW_NS (300 * NSEC_PER_MSEC)

static void make_slow(struct live *l)
{
	struct model_fault slow = { .kind = MODEL_FAULT_SLOW, .ns = SLOW_NS };

	assert_int_equal(model_fault_set(live_lock(l), &slow), 0);
	live_unlock(l);
}

struct hold {
	struct live *l;
	pid_t pid;
	uint32_t queue;
	uint64_t began_ns, ended_ns;
	int result;
	atomic_bool done;
};

static int dbg(struct live *l, struct kfd_ioctl_dbg_trap_args *args)
{
	return t->ioctl(l, AMDKFD_IOC_DBG_TRAP, args);
}

static int enable(struct live *l, pid_t pid, int fd)
{
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args args = {
		.pid = (uint32_t)pid,
		.op = KFD_IOC_DBG_TRAP_ENABLE,
		.enable = { .rinfo_ptr = (uintptr_t)&info,
			    .rinfo_size = sizeof(info),
			    .dbg_fd = (uint32_t)fd },
	};

	return dbg(l, &args);
}

/* The driver suspends no queue its debugger has not seen. */
static int see_queue(struct live *l, pid_t pid)
{
	struct kfd_queue_snapshot_entry entry;
	struct kfd_ioctl_dbg_trap_args args = {
		.pid = (uint32_t)pid,
		.op = KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT,
		.queue_snapshot = { .exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
				    .snapshot_buf_ptr = (uintptr_t)&entry,
				    .num_queues = 1,
				    .entry_size = sizeof(entry) },
	};

	return dbg(l, &args);
}

static int suspend(struct live *l, pid_t pid, uint32_t *queue)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.pid = (uint32_t)pid,
		.op = KFD_IOC_DBG_TRAP_SUSPEND_QUEUES,
		.suspend_queues = { .queue_array_ptr = (uintptr_t)queue, .num_queues = 1 },
	};

	return dbg(l, &args);
}

static void *hold_it(void *arg)
{
	struct hold *h = arg;
	int pipe_fd[2];

	h->result = pipe(pipe_fd);
	if (h->result == 0)
		h->result = t->trace->seize(h->l, h->pid);
	if (h->result == 0)
		h->result = enable(h->l, h->pid, pipe_fd[1]);
	if (h->result >= 0)
		h->result = see_queue(h->l, h->pid);
	h->began_ns = now_ns();
	if (h->result >= 0)
		h->result = suspend(h->l, h->pid, &h->queue);
	h->ended_ns = now_ns();
	atomic_store(&h->done, true);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return NULL;
}

static void call_takes_its_time_and_others_go_on_meanwhile(void **state)
{
	struct live *l = *state;
	struct hold h = { .l = l, .pid = JOB, .queue = add_job(l, JOB) };
	struct model_queue_stats stats = { 0 };
	uint64_t asked_ns = 0, answered_ns = 0;
	pthread_t thread;

	assert_int_equal(t->open(l), 0);
	submit(l, JOB, h.queue, 10 * NSEC_PER_SEC);
	make_slow(l);
	assert_int_equal(pthread_create(&thread, NULL, hold_it, &h), 0);
	while (!stats.suspended && !atomic_load(&h.done)) {
		asked_ns = now_ns();
		assert_int_equal(model_queue_stats(live_lock(l), JOB, h.queue, &stats), 0);
		live_unlock(l);
		answered_ns = now_ns();
	}
	pthread_join(thread, NULL);
	assert_int_equal(h.result, 1);
	assert_true(h.ended_ns - h.began_ns >= SLOW_NS);
	assert_true(answered_ns - asked_ns < SLOW_NS / 2); /* the call was on its way meanwhile */
	assert_true(answered_ns < h.ended_ns);
}

/* ---- processes ---- */

static char *read_proc(struct live *l, pid_t pid, const char *name, int *ret)
{
	char path[64], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	*ret = t->read_file(l, GKFD_TREE_PROC, path, &text, &len);
	return text;
}

static void proc_is_the_machines_own(void **state)
{
	struct live *l = *state;
	char path[32], *text, *ns = NULL;
	size_t len;
	int r;

	add_job(l, getppid());
	text = read_proc(l, getppid(), "status", &r);
	assert_int_equal(r, 0);
	assert_non_null(strstr(text, "VmRSS:"));
	free(text);
	/* But what is of the device is not there: its descriptors, and whose pids it knows. */
	snprintf(path, sizeof(path), "%d/fd", getppid());
	assert_true(t->list_dir(l, GKFD_TREE_PROC, path, &ns) < 0);
	assert_int_equal(t->read_file(l, GKFD_TREE_PROC, "self/ns/pid", &ns, &len), -ENOENT);
}

static void proc_of_the_presets_processes_is_the_models(void **state)
{
	struct live *l = NULL;
	char *why = NULL, *text;
	int r;

	assert_int_equal(live_new("mi308x,gpus=1,jobs=1,occupancy=0", &l, &why), 0);
	text = read_proc(l, 1001, "comm", &r);
	assert_int_equal(r, 0);
	assert_string_equal(text, "train\n");
	free(text);
	assert_int_equal(t->trace->pidfd(l, 1001), -ENOSYS);
	live_unref(l);
}

static void nobody_is_there_by_itself(void **state)
{
	char *names = NULL;

	assert_int_equal(t->list_dir(*state, GKFD_TREE_SYSFS, "proc", &names), 0);
	assert_int_equal(names[0], '\0');
	free(names);
}

static void end_of_a_real_process_is_seen(void **state)
{
	struct live *l = *state;
	pid_t pid = fork();
	struct pollfd p = { .events = POLLIN };

	if (pid == 0) {
		pause();
		_exit(0);
	}
	add_job(l, pid);
	p.fd = t->trace->pidfd(l, pid);
	assert_true(p.fd >= 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(t->wait(l, &p, 1, UINT64_MAX), 1);
	waitpid(pid, NULL, 0);
	close(p.fd);
}

static void device_outlives_a_transport(void **state)
{
	struct live *l = *state;
	void *data = live_transport(l);
	uint32_t id = add_job(l, JOB);

	assert_int_equal(t->open(data), 0);
	t->close(data);
	submit(l, JOB, id, 1000);
}

static void wrong_spec_is_refused_with_words(void **state)
{
	struct live *l = NULL;
	char *why = NULL;

	assert_int_equal(live_new("nochip", &l, &why), -EINVAL);
	assert_non_null(strstr(why, "nochip"));
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(clock_is_the_machines),
		TEST(descriptor_wakes_when_something_is_due),
		TEST(notify_wakes_at_once),
		TEST(call_takes_its_time_and_others_go_on_meanwhile),
		TEST(proc_is_the_machines_own),
		TEST(proc_of_the_presets_processes_is_the_models),
		TEST(nobody_is_there_by_itself),
		TEST(end_of_a_real_process_is_seen),
		TEST(device_outlives_a_transport),
		TEST(wrong_spec_is_refused_with_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
