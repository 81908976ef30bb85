/* SPDX-License-Identifier: MIT */
/* Refusals of the calls an owner makes on its queues. */
#include <errno.h>

#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void runtime_enable_twice_is_ebusy_and_after_a_queue_eexist(void **state)
{
	struct rig *r = *state;

	rig_target(r, 0);
	assert_int_equal(model_runtime_enable(r->m, TARGET), -EBUSY);
	rig_queue(r, OTHER, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	assert_int_equal(model_runtime_enable(r->m, OTHER), -EEXIST);
}

/* Arguments of a queue that would work, with memory of its own. */
static struct kfd_ioctl_create_queue_args good_args(struct rig *r)
{
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = model_gpu_id(r->m, 0),
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.ring_size = 8192,
		.eop_buffer_size = 4096,
		.ctx_save_restore_size = 12214272,
		.ctl_stack_size = 8192,
	};

	args.ring_base_address = model_mem_map(r->m, TARGET, 8192);
	args.read_pointer_address = model_mem_map(r->m, TARGET, 4096);
	args.write_pointer_address = model_mem_map(r->m, TARGET, 4096);
	args.eop_buffer_address = model_mem_map(r->m, TARGET, 4096);
	args.ctx_save_restore_address = model_mem_map(r->m, TARGET, (12214272 + 800 * 32) * 4);
	return args;
}

static int create(struct rig *r, struct kfd_ioctl_create_queue_args args)
{
	return rig_ioctl(r, r->target, AMDKFD_IOC_CREATE_QUEUE, &args);
}

static void create_queue_checks_values_before_the_gpu(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_create_queue_args good, a;

	rig_target(r, 0);
	good = good_args(r);
	good.gpu_id = 1;
	a = good;
	a.queue_percentage = 101;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.queue_priority = 16;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address = 1ull << 63;
	assert_int_equal(create(r, a), -EFAULT);
	a = good;
	a.ring_size = 3000;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.write_pointer_address = UINT64_MAX;
	assert_int_equal(create(r, a), -EFAULT);
	a = good;
	a.queue_type = 5;
	assert_int_equal(create(r, a), -524);
	assert_int_equal(create(r, good), -EINVAL);
	good.gpu_id = model_gpu_id(r->m, 0);
	assert_int_equal(create(r, good), -ESRCH);
}

static void create_queue_checks_buffers_to_the_page(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_create_queue_args good, a;

	rig_target(r, 0);
	assert_int_equal(model_vm_acquire(r->m, TARGET, 0), 0);
	good = good_args(r);
	a = good;
	a.ring_size = 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address += 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ring_base_address = 0;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.read_pointer_address = 0x1000;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctl_stack_size = 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctx_save_restore_size--;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.ctx_save_restore_size += 4096;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.eop_buffer_size = 2048;
	assert_int_equal(create(r, a), -EINVAL);
	a = good;
	a.queue_type = KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID;
	a.sdma_engine_id = 8;
	assert_int_equal(create(r, a), -EINVAL);
	assert_int_equal(create(r, good), 0);
}

static void a_process_may_have_255_queues_on_a_gpu(void **state)
{
	struct rig *r = *state;
	struct model_queue_spec spec = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_packets = 64,
		.percent_zero = 1,
	};
	uint32_t id;

	for (uint32_t i = 0; i < 255; i++)
		assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), 0);
	assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), -ENOSPC);
}

static void sdma_queues_run_out(void **state)
{
	struct rig *r = *state;
	struct model_queue_spec spec = { .type = KFD_IOC_QUEUE_TYPE_SDMA, .ring_packets = 64 };
	uint32_t id;

	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), 0);
	assert_int_equal(model_queue_create(r->m, TARGET, &spec, &id), -ENOMEM);
}

static void unknown_queues_have_a_number_each_call_likes(void **state)
{
	struct rig *r = *state;
	uint32_t mask = 1;
	struct kfd_ioctl_update_queue_args update = { .queue_id = 5 };
	struct kfd_ioctl_set_cu_mask_args cu = {
		.queue_id = 5, .num_cu_mask = 32, .cu_mask_ptr = (uintptr_t)&mask,
	};
	struct kfd_ioctl_get_queue_wave_state_args wave = { .queue_id = 5 };
	struct kfd_ioctl_alloc_queue_gws_args gws = { .queue_id = 5, .num_gws = 64 };

	rig_target(r, 0);
	assert_int_equal(rig_destroy(r, r->target, 5), -EINVAL);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &update), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EINVAL);
}

static void cu_masks_and_gws(void **state)
{
	struct rig *r = *state;
	uint32_t mask[64] = { 1 };
	struct kfd_ioctl_set_cu_mask_args cu = { .cu_mask_ptr = (uintptr_t)mask };
	struct kfd_ioctl_alloc_queue_gws_args gws = { .num_gws = 64 };

	rig_target(r, 2);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EINVAL);
	cu.num_cu_mask = 33;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EINVAL);
	cu.num_cu_mask = 2048; /* cut to 1024 */
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), 0);
	cu.cu_mask_ptr = BAD_POINTER;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_SET_CU_MASK, &cu), -EFAULT);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), 0);
	gws.queue_id = 1;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EBUSY);
	gws.num_gws = 0;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), 0);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws), -EINVAL);
}

static void wave_state_of_an_active_queue_is_einval(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;
	struct kfd_queue_snapshot_entry entry;
	struct kfd_ioctl_get_queue_wave_state_args wave = { 0 };

	rig_attached(r, 1);
	rig_snapshot(r, r->daemon, TARGET, 0, &entry);
	wave.ctl_stack_address = entry.ctx_save_restore_address;
	rig_busy(r, TARGET, 0);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EINVAL);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), 0);
	assert_int_equal(wave.save_area_used_size, 20 * 610304);
	assert_int_equal(wave.ctl_stack_used_size, 20 * 32 * 8);
	wave.ctl_stack_address = BAD_POINTER;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &wave), -EFAULT);
}

static void update_queue_arguments(void **state)
{
	struct rig *r = *state;
	struct kfd_ioctl_update_queue_args a = { .ring_base_address = 0x5000, .ring_size = 4096 };

	rig_target(r, 1);
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EFAULT);
	a.queue_percentage = 101;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.queue_percentage = 100;
	a.queue_priority = 16;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.queue_priority = 0;
	a.ring_size = 5000;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), -EINVAL);
	a.ring_size = 0;
	a.ring_base_address = 0;
	assert_int_equal(rig_ioctl(r, r->target, AMDKFD_IOC_UPDATE_QUEUE, &a), 0);
	assert_false(rig_queue_stats(r, 0).active);
}

static void a_process_that_lost_queues_to_a_reset_is_refused_updates(void **state)
{
	struct rig *r = *state;
	struct model_fault fault = { .kind = MODEL_FAULT_DEAD_SCHEDULER };
	uint32_t id = 0;

	rig_attached(r, 1);
	model_fault_set(r->m, &fault);
	assert_int_equal(rig_suspend(r, r->daemon, TARGET, &id, 1, 1), 0);
	assert_int_equal(rig_update(r, r->target, 0, 100), -EACCES);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(runtime_enable_twice_is_ebusy_and_after_a_queue_eexist),
		T(create_queue_checks_values_before_the_gpu),
		T(create_queue_checks_buffers_to_the_page),
		T(a_process_may_have_255_queues_on_a_gpu),
		T(sdma_queues_run_out),
		T(unknown_queues_have_a_number_each_call_likes),
		T(cu_masks_and_gws),
		T(wave_state_of_an_active_queue_is_einval),
		T(update_queue_arguments),
		T(a_process_that_lost_queues_to_a_reset_is_refused_updates),
	};

	return cmocka_run_group_tests_name("model/driver_queues", tests, NULL, NULL) != 0;
}
