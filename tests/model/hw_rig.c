/* SPDX-License-Identifier: MIT */
#include "tests/model/hw_rig.h"

void rig_open(struct rig *rig, const char *chip)
{
	rig_open_chip(rig, model_chip_find(chip));
}

void rig_open_chip(struct rig *rig, const struct model_chip *chip)
{
	timeline_init(&rig->time);
	assert_non_null(chip);
	rig->chip = chip;
	rig->vm = mem_new();
	assert_non_null(rig->vm);
	rig->gpu = hw_gpu_new(rig->chip, &rig->time);
	assert_non_null(rig->gpu);
}

void rig_close(struct rig *rig)
{
	hw_gpu_free(rig->gpu);
	mem_free(rig->vm);
	timeline_done(&rig->time);
}

void rig_run(struct rig *rig, uint64_t ns)
{
	timeline_run(&rig->time, rig->time.now_ns + ns);
}

void rig_queue_open(struct rig *rig, struct rig_queue *q, enum hw_ring ring, uint32_t slots)
{
	static const uint16_t invalid = AQL_INVALID;
	uint64_t pointers = mem_map(rig->vm, 4096);

	*q = (struct rig_queue){
		.rig = rig,
		.config = {
			.ring = ring,
			.vm = rig->vm,
			.ring_va = mem_map(rig->vm, slots * AQL_PACKET_BYTES),
			.ring_bytes = slots * AQL_PACKET_BYTES,
			.read_ptr_va = pointers + 128,
			.write_ptr_va = pointers + 56,
			.log_packets = true,
		},
	};
	for (uint32_t i = 0; ring == HW_RING_AQL && i < slots; i++)
		mem_write(rig->vm, rig_slot_va(q, i), &invalid, sizeof(invalid));
	q->hw = hw_queue_new(rig->gpu, &q->config);
	assert_non_null(q->hw);
}

void rig_queue_close(struct rig_queue *q)
{
	hw_queue_free(q->hw);
}

uint64_t rig_kernel(struct rig *rig, uint64_t wg_ns, uint32_t wg_units)
{
	struct hw_kernel k = { .magic = HW_KERNEL_MAGIC, .wg_ns = wg_ns, .wg_units = wg_units };
	uint64_t va = mem_map(rig->vm, sizeof(k));

	assert_int_equal(mem_write(rig->vm, va, &k, sizeof(k)), 0);
	return va;
}

uint64_t rig_signal(struct rig *rig, int64_t value)
{
	uint64_t va = mem_map(rig->vm, AQL_SIGNAL_BYTES);

	assert_int_not_equal(va, 0);
	mem_write64(rig->vm, va + AQL_SIGNAL_VALUE_OFFSET, value);
	return va;
}

int64_t rig_signal_value(struct rig *rig, uint64_t signal)
{
	return mem_read64(rig->vm, signal + AQL_SIGNAL_VALUE_OFFSET);
}

static uint32_t pointer_unit(const struct rig_queue *q)
{
	static const uint32_t per_packet[] = {
		[HW_RING_AQL] = 1,
		[HW_RING_PM4] = 16,
		[HW_RING_SDMA] = 64,
	};

	return per_packet[q->config.ring];
}

uint64_t rig_slot_va(const struct rig_queue *q, uint64_t index)
{
	return q->config.ring_va + index * AQL_PACKET_BYTES % q->config.ring_bytes;
}

void rig_put(struct rig_queue *q, const void *packet)
{
	struct rig *rig = q->rig;
	uint64_t va = rig_slot_va(q, q->written);

	assert_int_equal(mem_write(rig->vm, va, packet, AQL_PACKET_BYTES), 0);
	q->written++;
	mem_write64(rig->vm, q->config.write_ptr_va, q->written * pointer_unit(q));
}

void rig_dispatch(struct rig_queue *q, uint64_t kernel, uint32_t workgroups, uint16_t header_bits,
		  uint64_t signal)
{
	struct aql_dispatch d = {
		.header = AQL_KERNEL_DISPATCH | header_bits,
		.workgroup_x = 64,
		.workgroup_y = 1,
		.workgroup_z = 1,
		.grid_x = workgroups * 64,
		.grid_y = 1,
		.grid_z = 1,
		.kernel_object = kernel,
		.completion_signal = signal,
	};

	rig_put(q, &d);
	hw_doorbell(q->hw);
}

void rig_barrier(struct rig_queue *q, enum aql_type type, uint64_t dep0, uint64_t dep1,
		 uint64_t signal)
{
	struct aql_barrier b = {
		.header = type,
		.dep_signal = { dep0, 0, dep1 },
		.completion_signal = signal,
	};

	rig_put(q, &b);
	hw_doorbell(q->hw);
}

void rig_timed(struct rig_queue *q, uint64_t busy_ns, uint64_t signal)
{
	struct hw_timed_packet t = {
		.magic = HW_TIMED_MAGIC,
		.busy_ns = busy_ns,
		.completion_signal = signal,
	};

	rig_put(q, &t);
	hw_doorbell(q->hw);
}

void rig_map(struct rig *rig, struct hw_queue *const *qs, size_t n)
{
	assert_int_equal(hw_map(rig->gpu, qs, n), 0);
	rig_run(rig, rig->chip->costs.map_ns);
}

void rig_map_one(struct rig_queue *q)
{
	rig_map(q->rig, &q->hw, 1);
}

struct hw_unmap rig_unmap(struct rig *rig, uint32_t grace_kclk)
{
	struct hw_unmap op = { .grace_kclk = grace_kclk, .timeout_ns = RIG_TIMEOUT_NS };

	assert_int_equal(hw_unmap(rig->gpu, NULL, &op), 0);
	return op;
}

struct hw_queue_seen rig_stats(const struct rig_queue *q)
{
	return *hw_see(q->hw);
}

struct model_packet rig_packet(const struct rig_queue *q, uint64_t index)
{
	struct model_packet p;

	assert_int_equal(hw_queue_packets(q->hw, index, &p, 1), 1);
	assert_int_equal(p.index, index);
	return p;
}
