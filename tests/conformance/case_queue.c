/* SPDX-License-Identifier: MIT */
/* Queues as a runtime makes them, with sizes the topology gives. */
#include <errno.h>
#include <string.h>

#include "tests/conformance/case.h"

#define PAGE 4096u
#define RING_BYTES 4096u
#define WRITE_OFFSET 56 /* in the page of the pointers, as ROCr has them */
#define READ_OFFSET 128
#define DEBUG_BYTES_PER_WAVE 32u
#define ROUND_UP(n, to) (((n) + (to)-1) / (to) * (to))

int acquire_vm(struct actor *a)
{
	return a->w->ops->acquire_vm(a->w, a);
}

uint64_t map_memory(struct actor *a, size_t bytes, const char *name)
{
	uint64_t va = a->w->ops->map(a->w, a, bytes);

	if (!va)
		broken("%s: no memory for %s", a->w->case_name, name);
	world_name(a->w, NAME_ADDRESS, va, ROUND_UP(bytes, PAGE), "%s", name);
	return va;
}

uint32_t node_property(struct world *w, const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t len = strlen(name);
	const char *line;

	if (w->ops->read_file(w, GKFD_TREE_SYSFS, "topology/nodes/1/properties", &text) < 0)
		broken("there is no GPU");
	for (line = text; *line; line = strchrnul(line, '\n'), line += *line == '\n')
		if (!strncmp(line, name, len) && line[len] == ' ')
			return (uint32_t)strtoul(line + len + 1, NULL, 10);
	broken("no property %s", name);
}

uint32_t gpu_id(struct world *w)
{
	_cleanup_free_ char *text = NULL;

	if (w->ops->read_file(w, GKFD_TREE_SYSFS, "topology/nodes/1/gpu_id", &text) < 0)
		broken("there is no GPU");
	return (uint32_t)strtoul(text, NULL, 10);
}

uint32_t gfx_version(struct world *w)
{
	return node_property(w, "gfx_target_version");
}

bool is_mes(struct world *w)
{
	return gfx_version(w) >= 110000;
}

/* kfd_queue_ctx_save_restore_size() of Linux 6.12: what debuggers keep of each wave. */
static size_t debug_bytes(struct world *w, uint32_t n_xcc)
{
	uint32_t cu = node_property(w, "simd_count") / node_property(w, "simd_per_cu") / n_xcc;
	uint32_t engines =
		node_property(w, "array_count") / node_property(w, "simd_arrays_per_engine");
	uint32_t waves = is_mes(w) ? cu * 32 : MIN(cu * 40, engines * 512);

	return ROUND_UP(waves * DEBUG_BYTES_PER_WAVE, 64u);
}

static void add_compute_buffers(struct actor *a, struct kfd_ioctl_create_queue_args *args)
{
	uint32_t n_xcc = node_property(a->w, "num_xcc");

	args->eop_buffer_address = map_memory(a, PAGE, "eop");
	args->eop_buffer_size = PAGE;
	args->ctx_save_restore_size = node_property(a->w, "cwsr_size");
	args->ctl_stack_size = node_property(a->w, "ctl_stack_size");
	args->ctx_save_restore_address = map_memory(
		a, (args->ctx_save_restore_size + debug_bytes(a->w, n_xcc)) * n_xcc, "area");
}

struct kfd_ioctl_create_queue_args queue_args(struct actor *a, uint32_t type)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = map_memory(a, RING_BYTES, "ring"),
		.ring_size = RING_BYTES,
		.gpu_id = gpu_id(a->w),
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	uint64_t pointers = map_memory(a, PAGE, "pointers");

	args.write_pointer_address = pointers + WRITE_OFFSET;
	args.read_pointer_address = pointers + READ_OFFSET;
	if (type == KFD_IOC_QUEUE_TYPE_COMPUTE || type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
		add_compute_buffers(a, &args);
	return args;
}

int create_queue(struct actor *a, struct kfd_ioctl_create_queue_args *args)
{
	return call(me(a), AMDKFD_IOC_CREATE_QUEUE, args);
}

uint32_t add_queue(struct actor *a, uint32_t type)
{
	struct kfd_ioctl_create_queue_args args = queue_args(a, type);
	int r = create_queue(a, &args);

	if (r < 0)
		broken("%s: no queue: %s", a->w->case_name, strerror(-r));
	return args.queue_id;
}

void add_queues(struct actor *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		add_queue(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
}

int destroy_queue(struct who who, uint32_t id)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = id };

	return call(who, AMDKFD_IOC_DESTROY_QUEUE, &args);
}
