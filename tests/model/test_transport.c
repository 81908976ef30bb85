/* SPDX-License-Identifier: MIT */
/* The software device through the table the client uses. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static const struct gkfd_transport *const t = &gkfd_transport_model;

static int setup(void **state)
{
	_cleanup_free_ char *why = NULL;
	struct model *m;

	if (model_new_preset("mi308x,gpus=2", &m, &why) < 0)
		return -1;
	*state = model_transport_new(m);
	return *state ? t->open(*state) : -1;
}

static int teardown(void **state)
{
	t->close(*state);
	return 0;
}

static int trap(void *data, uint32_t op, struct kfd_ioctl_dbg_trap_args *args)
{
	args->pid = 1001;
	args->op = op;
	return t->ioctl(data, AMDKFD_IOC_DBG_TRAP, args);
}

static int enable(void *data)
{
	struct kfd_runtime_info rinfo;
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.rinfo_ptr = (uintptr_t)&rinfo,
			.rinfo_size = sizeof(rinfo),
			.dbg_fd = 1,
		},
	};

	return trap(data, KFD_IOC_DBG_TRAP_ENABLE, &args);
}

static void it_says_its_times_are_modelled(void **state)
{
	(void)state;
	assert_true(t->modelled);
	assert_null(t->trace->peek);
}

static void the_clock_moves_with_calls_and_waits_only(void **state)
{
	uint64_t before = t->now_ns(*state);
	struct kfd_ioctl_get_version_args version;

	assert_int_equal(t->now_ns(*state), before);
	assert_int_equal(t->ioctl(*state, AMDKFD_IOC_GET_VERSION, &version), 0);
	assert_true(t->now_ns(*state) > before);
	before = t->now_ns(*state);
	assert_int_equal(t->wait(*state, NULL, 0, 5 * NSEC_PER_SEC), 0);
	assert_int_equal(t->now_ns(*state) - before, 5 * NSEC_PER_SEC);
}

static void a_descriptor_that_is_ready_ends_a_wait_at_once(void **state)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t before = t->now_ns(*state);

	assert_int_equal(t->wait(*state, &p, 1, NSEC_PER_SEC), 1);
	assert_int_equal(t->now_ns(*state), before);
	assert_int_equal(t->wait(*state, &p, 1, UINT64_MAX), 1);
}

static void the_seizing_thread_is_the_tracer(void **state)
{
	_cleanup_free_ char *text = NULL;
	char line[32];
	size_t len;

	assert_int_equal(enable(*state), -EPERM);
	assert_int_equal(t->trace->seize(*state, 1001), 0);
	assert_int_equal(t->trace->seize(*state, 1001), -EPERM);
	assert_int_equal(t->read_file(*state, GKFD_TREE_PROC, "1001/status", &text, &len), 0);
	snprintf(line, sizeof(line), "\nTracerPid:\t%d\n", gettid());
	assert_non_null(strstr(text, line));
	assert_int_equal(strlen(text), len);
	assert_int_equal(enable(*state), 0);
	assert_int_equal(t->trace->interrupt(*state, 1001), 0);
	assert_int_equal(t->trace->cont(*state, 1001, 0), 0);
	assert_int_equal(t->trace->listen(*state, 1001), 0);
	assert_int_equal(t->trace->reap(*state, 1001, NULL), 0);
	assert_int_equal(t->trace->detach(*state, 1001, 0), 0);
	assert_int_equal(t->trace->reap(*state, 1001, NULL), -ECHILD);
	assert_int_equal(t->trace->seize(*state, 999), -ESRCH);
	assert_int_equal(t->trace->pidfd(*state, 1001), -ENOSYS);
}

static void *enable_elsewhere(void *data)
{
	return (void *)(intptr_t)enable(data);
}

static void another_thread_is_not(void **state)
{
	pthread_t thread;
	void *r;

	assert_int_equal(t->trace->seize(*state, 1001), 0);
	assert_int_equal(pthread_create(&thread, NULL, enable_elsewhere, *state), 0);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_int_equal((intptr_t)r, -EPERM);
}

static void memory_of_a_process_can_be_read(void **state)
{
	struct kfd_queue_snapshot_entry entries[16];
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.snapshot_buf_ptr = (uintptr_t)entries,
			.num_queues = 16,
			.entry_size = sizeof(entries[0]),
		},
	};
	uint64_t read = 0, write = 0, nowhere;
	struct gkfd_span spans[3] = {
		{ .buf = &read, .len = 8 },
		{ .buf = &write, .len = 8 },
		{ .addr = 64, .buf = &nowhere, .len = 8 },
	};

	t->trace->seize(*state, 1001);
	assert_int_equal(enable(*state), 0);
	assert_int_equal(trap(*state, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args), 0);
	assert_int_equal(args.queue_snapshot.num_queues, 10);
	spans[0].addr = entries[0].read_pointer_address;
	spans[1].addr = entries[0].write_pointer_address;
	assert_int_equal(t->read_mem(*state, 1001, NULL, spans, 3), 0);
	assert_true(spans[0].ok && spans[1].ok && !spans[2].ok);
	assert_true(write > read && read > 0);
	assert_int_equal(t->read_mem(*state, 999, NULL, spans, 3), -ESRCH);
	assert_int_equal(entries[0].read_pointer_address - entries[0].write_pointer_address, 72);
}

static void a_call_of_ours_that_would_sleep_is_edeadlk(void **state)
{
	struct kfd_ioctl_runtime_enable_args runtime = { .mode_mask = 1 };
	struct kfd_ioctl_dbg_trap_args args = { .pid = MODEL_SELF_PID, .enable = { .dbg_fd = 1 } };
	struct kfd_ioctl_get_version_args version;

	assert_int_equal(t->ioctl(*state, AMDKFD_IOC_DBG_TRAP, &args), 0);
	assert_int_equal(t->ioctl(*state, AMDKFD_IOC_RUNTIME_ENABLE, &runtime), -EDEADLK);
	assert_int_equal(t->ioctl(*state, AMDKFD_IOC_GET_VERSION, &version), 0);
}

static void lists_end_with_an_empty_name(void **state)
{
	_cleanup_free_ char *names = NULL;
	char *none = NULL;

	assert_int_equal(t->list_dir(*state, GKFD_TREE_SYSFS, "topology/nodes", &names), 0);
	assert_memory_equal(names, "0\0" "1\0" "2\0", 7);
	assert_int_equal(t->list_dir(*state, GKFD_TREE_SYSFS, "nonsense", &none), -ENOENT);
	assert_null(none);
}

static void *hammer(void *data)
{
	struct kfd_ioctl_get_version_args version;

	for (int i = 0; i < 500; i++) {
		char *text;
		size_t len;

		if (t->ioctl(data, AMDKFD_IOC_GET_VERSION, &version) < 0)
			return data;
		if (t->read_file(data, GKFD_TREE_SYSFS, "proc/1001/queues/3/size", &text, &len) < 0)
			return data;
		free(text);
		t->wait(data, NULL, 0, 1000);
	}
	return NULL;
}

static void calls_may_come_from_several_threads(void **state)
{
	pthread_t threads[4];
	void *r;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, *state), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &r), 0);
		assert_null(r);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_says_its_times_are_modelled),
		T(the_clock_moves_with_calls_and_waits_only),
		T(a_descriptor_that_is_ready_ends_a_wait_at_once),
		T(the_seizing_thread_is_the_tracer),
		T(another_thread_is_not),
		T(memory_of_a_process_can_be_read),
		T(a_call_of_ours_that_would_sleep_is_edeadlk),
		T(lists_end_with_an_empty_name),
		T(calls_may_come_from_several_threads),
	};

	return cmocka_run_group_tests_name("model/transport", tests, NULL, NULL) != 0;
}
