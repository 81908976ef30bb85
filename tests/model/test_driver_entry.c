/* SPDX-License-Identifier: MIT */
/* How a call enters the driver: numbers, sizes, directions, descriptors. */
#include <errno.h>
#include <string.h>

#include "abi/kfd_memory.h"
#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void only_the_number_selects_the_call(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_get_version_args version = { 0 };

	assert_int_equal(rig_ioctl(r, r->daemon,
				   _IOC(_IOC_WRITE, 'Z', 0x01, sizeof(version)), &version),
			 0);
	assert_int_equal(version.major_version, 1);
	assert_int_equal(version.minor_version, 17);
}

static void numbers_outside_the_table_are_enotty(void **state)
{
	struct rig *r = *state;
	char arg[64] = { 0 };

	assert_int_equal(rig_ioctl(r, r->daemon, _IO('K', 0), arg), -ENOTTY);
	for (unsigned int nr = 0x27; nr < 256; nr++)
		assert_int_equal(rig_ioctl(r, r->daemon, _IOWR('K', nr, arg), arg), -ENOTTY);
}

static void a_short_struct_is_filled_with_zeros(void **state)
{
	struct rig *r = *state;
	/* CREATE_QUEUE had 88 bytes before 1.17. */
	struct kfd_ioctl_create_queue_args args = {
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.gpu_id = model_gpu_id(r->m, 0),
		.sdma_engine_id = 0x5a5a5a5a,
	};
	struct kfd_ioctl_get_version_args version = { 0, 77 };

	model_kfd_open(r->m, r->target);
	assert_int_equal(rig_ioctl(r, r->target, _IOC(_IOC_READ, 'K', 0x02, 88), &args), -ESRCH);
	assert_int_equal(args.sdma_engine_id, 0x5a5a5a5a);
	assert_int_equal(rig_ioctl(r, r->daemon, _IOC(_IOC_READ, 'K', 0x01, 4), &version), 0);
	assert_int_equal(version.major_version, 1);
	assert_int_equal(version.minor_version, 77);
}

static void a_long_struct_comes_back_whole(void **state)
{
	struct rig *r = *state;
	unsigned char buf[200];

	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(rig_ioctl(r, r->daemon, _IOC(_IOC_READ, 'K', 0x05, sizeof(buf)), buf), 0);
	assert_int_equal(buf[199], 0x5a);
	memset(buf, 0x5a, sizeof(buf));
	/* One the driver only writes is zeroed to the caller's size. */
	assert_int_equal(rig_ioctl(r, r->daemon, _IOC(_IOC_READ, 'K', 0x01, sizeof(buf)), buf), 0);
	assert_int_equal(buf[199], 0);
}

static void a_bad_argument_pointer_is_efault(void **state)
{
	struct rig *r = *state;
	void *bad = (void *)BAD_POINTER;

	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_VERSION, bad), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_CREATE_QUEUE, bad), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_UPDATE_QUEUE, bad), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_DBG_TRAP, NULL), -EFAULT);
}

static void a_descriptor_of_another_process_is_ebadf(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_get_version_args version;
	const struct model_proc_spec forked = { .pid = 500 };
	struct model_task child = { 500, 500 };

	assert_int_equal(model_ioctl(r->m, r->second, DAEMON, AMDKFD_IOC_GET_VERSION, &version),
			 -EBADF);
	assert_int_equal(model_proc_start(r->m, &forked), 0);
	assert_int_equal(model_ioctl(r->m, child, DAEMON, AMDKFD_IOC_GET_VERSION, &version),
			 -EBADF);
	assert_int_equal(model_ioctl(r->m, child, 500, AMDKFD_IOC_GET_VERSION, &version), -EBADF);
	assert_int_equal(model_kfd_open(r->m, child), 0);
	assert_int_equal(model_ioctl(r->m, child, 500, AMDKFD_IOC_GET_VERSION, &version), 0);
}

static void a_tracer_may_use_it_for_criu_only(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_criu_args criu = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_get_version_args version;
	struct model_task sibling = { DAEMON, DAEMON + 1 };

	rig_target(r, 2);
	model_ptrace_seize(r->m, r->daemon, TARGET);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_GET_VERSION, &version),
			 -EBADF);
	assert_int_equal(model_ioctl(r->m, sibling, TARGET, AMDKFD_IOC_CRIU_OP, &criu), -EBADF);
	assert_int_equal(model_ioctl(r->m, r->daemon, TARGET, AMDKFD_IOC_CRIU_OP, &criu), 0);
	assert_int_equal(criu.pid, TARGET);
	assert_int_equal(criu.num_devices, 2);
	assert_int_equal(criu.num_objects, 2);
	assert_int_equal(criu.priv_data_size, 8 + 2 * 8 + 2 * (120 + 2048 + 8192));
}

static void the_old_debug_numbers_are_eperm(void **state)
{
	struct rig *r = *state;
	char arg[16] = { 0 };

	for (unsigned int nr = 0x0d; nr <= 0x10; nr++)
		assert_int_equal(rig_ioctl(r, r->daemon, _IOW('K', nr, arg), arg), -EPERM);
}

static void before_1_13_the_debug_numbers_do_not_exist(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_get_version_args version = { 0 };
	struct kfd_ioctl_dbg_trap_args trap = { .pid = DAEMON };

	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_VERSION, &version), 0);
	assert_int_equal(version.minor_version, 11);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_DBG_TRAP, &trap), -ENOTTY);
	assert_int_equal(rig_runtime_disable(r, r->daemon), -ENOTTY);
}

/* ---- calls beside the point answer as the driver refuses ---- */

static void memory_calls_refuse_as_the_driver_does(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = { 0 };
	struct kfd_ioctl_map_memory_to_gpu_args map = { 0 };
	struct kfd_ioctl_acquire_vm_args vm = { .drm_fd = UINT32_MAX };
	struct kfd_ioctl_svm_args svm = { .nattr = 1 };
	uint32_t id = 0;

	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc), -EINVAL);
	alloc.size = 4096;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc), -EINVAL);
	alloc.gpu_id = model_gpu_id(r->m, 0);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc), -ENODEV);
	model_vm_acquire(r->m, DAEMON, 0);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc),
			 -EOPNOTSUPP);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map), -EINVAL);
	map.n_devices = 1;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map), -EFAULT);
	map.device_ids_array_ptr = (uintptr_t)&id;
	map.handle = (uint64_t)model_gpu_id(r->m, 0) << 32;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map), -ENOMEM);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_ACQUIRE_VM, &vm), -EINVAL);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_SVM, &svm), -EINVAL);
	svm.nattr = 0;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_SVM, &svm), -EPERM);
}

static void clocks_and_apertures_answer(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_get_clock_counters_args clock = { .gpu_id = model_gpu_id(r->m, 0) };
	struct kfd_ioctl_get_process_apertures_new_args count = { 0 };
	struct kfd_process_device_apertures apertures[2];

	model_advance(r->m, NSEC_PER_SEC);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_CLOCK_COUNTERS, &clock), 0);
	assert_int_equal(clock.system_clock_counter, model_now_ns(r->m));
	assert_int_equal(clock.system_clock_freq, 1000000000);
	assert_true(clock.gpu_clock_counter > 0);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &count), 0);
	assert_int_equal(count.num_of_nodes, 2);
	count.kfd_process_device_apertures_ptr = (uintptr_t)apertures;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &count), 0);
	assert_int_equal(apertures[1].gpu_id, model_gpu_id(r->m, 1));
	count.num_of_nodes = 4;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &count),
			 -EINVAL);
}

static void event_calls_find_no_event(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_set_event_args event = { .event_id = 1 };
	struct kfd_ioctl_wait_events_args wait = { 0 };

	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_SET_EVENT, &event), -EINVAL);
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_WAIT_EVENTS, &wait), 0);
	wait.num_events = 1;
	wait.events_ptr = BAD_POINTER;
	assert_int_equal(rig_ioctl(r, r->daemon, AMDKFD_IOC_WAIT_EVENTS, &wait), -EFAULT);
	assert_int_equal(wait.wait_result, 2);
}

/* Random addresses must not be ours: the model would write there. */
static void spoil_pointers(unsigned char *buf, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v;

		memcpy(&v, buf + i, sizeof(v));
		if (v >= 4096 && v < 1ull << 48)
			buf[i + 7] |= 0x80;
	}
}

/* Whatever the bytes, the driver answers and does not fall over. */
static void any_bytes_get_an_answer(void **state)
{
	struct rig *r = *state;
	uint64_t x = 88172645463325252ull;
	_Alignas(8) unsigned char buf[512];

	rig_attached(r, 2);
	for (int round = 0; round < 4000; round++) {
		unsigned int nr, size;

		for (size_t i = 0; i < sizeof(buf); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			buf[i] = x & 8 ? (unsigned char)(x >> 20) : 0;
		}
		spoil_pointers(buf, sizeof(buf));
		nr = (unsigned int)(x >> 32) % 0x29;
		size = (unsigned int)(x >> 40) % 256;
		if (nr == _IOC_NR(AMDKFD_IOC_DBG_TRAP)) {
			struct kfd_ioctl_dbg_trap_args *a = (void *)buf;

			a->pid = x & 1 ? TARGET : DAEMON;
			a->op %= 17;
			a->enable.dbg_fd = UINT32_MAX;
		}
		(void)rig_ioctl(r, x & 2 ? r->daemon : r->target, _IOC(3u, 'K', nr, size), buf);
	}
	assert_int_equal(rig_disable(r, r->daemon, TARGET), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(only_the_number_selects_the_call),
		T(numbers_outside_the_table_are_enotty),
		T(a_short_struct_is_filled_with_zeros),
		T(a_long_struct_comes_back_whole),
		T(a_bad_argument_pointer_is_efault),
		T(a_descriptor_of_another_process_is_ebadf),
		T(a_tracer_may_use_it_for_criu_only),
		T(the_old_debug_numbers_are_eperm),
		cmocka_unit_test_setup_teardown(before_1_13_the_debug_numbers_do_not_exist,
						rig_setup_kfd_1_11, rig_teardown),
		T(memory_calls_refuse_as_the_driver_does),
		T(clocks_and_apertures_answer),
		T(event_calls_find_no_event),
		T(any_bytes_get_an_answer),
	};

	return cmocka_run_group_tests_name("model/driver_entry", tests, NULL, NULL) != 0;
}
