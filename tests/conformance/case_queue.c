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
	int r = 0;

	for (uint32_t gpu = 0; gpu < a->w->n_gpus && r == 0; gpu++)
		r = a->w->ops->acquire_vm(a->w, a, gpu);
	return r;
}

static uint64_t map_on(struct actor *a, uint32_t gpu, size_t bytes, const char *name)
{
	uint64_t va = a->w->ops->map(a->w, a, gpu, bytes);

	if (!va)
		broken("%s: no memory for %s", a->w->case_name, name);
	world_name(a->w, NAME_ADDRESS, va, ROUND_UP(bytes, PAGE), "%s", name);
	return va;
}

uint64_t map_memory(struct actor *a, size_t bytes, const char *name)
{
	return map_on(a, 0, bytes, name);
}

uint32_t node_property(struct world *w, const char *name)
{
	size_t len = strlen(name);
	const char *line;

	if (!w->properties && w->ops->read_file(w, GKFD_TREE_SYSFS, "topology/nodes/1/properties",
						&w->properties) < 0)
		broken("there is no GPU");
	for (line = w->properties; *line; line = strchrnul(line, '\n'), line += *line == '\n')
		if (!strncmp(line, name, len) && line[len] == ' ')
			return (uint32_t)strtoul(line + len + 1, NULL, 10);
	broken("no property %s", name);
}

void find_gpus(struct world *w)
{
	w->n_gpus = 0;
	for (uint32_t i = 0; i < WORLD_GPUS; i++) {
		_cleanup_free_ char *text = NULL;
		char path[64];

		snprintf(path, sizeof(path), "topology/nodes/%u/gpu_id", i + 1);
		if (w->ops->read_file(w, GKFD_TREE_SYSFS, path, &text) < 0)
			break;
		w->gpu_ids[w->n_gpus++] = (uint32_t)strtoul(text, NULL, 10);
	}
	if (!w->n_gpus)
		broken("there is no GPU");
}

uint32_t gpu_id(struct world *w)
{
	return w->gpu_ids[0];
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
	uint32_t engines = node_property(w, "array_count") /
			   node_property(w, "simd_arrays_per_engine") / n_xcc;
	uint32_t waves = is_mes(w) ? cu * 32 : MIN(cu * 40, engines * 512);

	return ROUND_UP(waves * DEBUG_BYTES_PER_WAVE, 64u);
}

/* Zeroing them is what most of the time goes into: queues of an actor share them. */
static uint64_t shared_area(struct actor *a, uint32_t gpu, uint32_t cwsr_size)
{
	uint32_t n_xcc = node_property(a->w, "num_xcc");
	uint64_t *area = &a->buffers[gpu].area;

	if (!*area)
		*area = map_on(a, gpu, (cwsr_size + debug_bytes(a->w, n_xcc)) * n_xcc, "area");
	return *area;
}

void own_area(struct actor *a)
{
	a->buffers[0].area = 0;
}

struct kfd_ioctl_create_queue_args queue_args_on(struct actor *a, uint32_t gpu, uint32_t type)
{
	struct buffers *b = &a->buffers[gpu];
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = map_on(a, gpu, RING_BYTES, "ring"),
		.ring_size = RING_BYTES,
		.gpu_id = a->w->gpu_ids[gpu],
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};

	if (!b->pointers)
		b->pointers = map_on(a, gpu, PAGE, "pointers");
	args.write_pointer_address = b->pointers + WRITE_OFFSET;
	args.read_pointer_address = b->pointers + READ_OFFSET;
	if (type != KFD_IOC_QUEUE_TYPE_COMPUTE && type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
		return args;
	if (!b->eop)
		b->eop = map_on(a, gpu, PAGE, "eop");
	args.eop_buffer_address = b->eop;
	args.eop_buffer_size = PAGE;
	args.ctx_save_restore_size = node_property(a->w, "cwsr_size");
	args.ctl_stack_size = node_property(a->w, "ctl_stack_size");
	args.ctx_save_restore_address = shared_area(a, gpu, args.ctx_save_restore_size);
	return args;
}

struct kfd_ioctl_create_queue_args queue_args(struct actor *a, uint32_t type)
{
	return queue_args_on(a, 0, type);
}

int create_queue(struct actor *a, struct kfd_ioctl_create_queue_args *args)
{
	int r = call(me(a), AMDKFD_IOC_CREATE_QUEUE, args);

	if (r == 0 && args->queue_id < MAX_AREAS)
		a->areas[args->queue_id] = args->ctx_save_restore_address;
	return r;
}

/* The driver tells the state of a queue's waves only while it is not active. */
static char active_mark(struct who owner, uint32_t id)
{
	struct kfd_ioctl_get_queue_wave_state_args args = {
		.ctl_stack_address = owner.actor->areas[id],
		.queue_id = id,
	};

	switch (call(owner, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args)) {
	case 0:
		return '0';
	case -EINVAL:
		return '1';
	case -EFAULT:
		return '-';
	default:
		return '?';
	}
}

const char *active(struct who owner, uint32_t n)
{
	static char ring[4][MAX_AREAS + 1];
	static size_t next;
	char *text = ring[next++ % ARRAY_SIZE(ring)];

	for (uint32_t i = 0; i < n; i++)
		text[i] = active_mark(owner, i);
	text[n] = '\0';
	return text;
}

uint32_t add_queue_on(struct actor *a, uint32_t gpu, uint32_t type)
{
	struct kfd_ioctl_create_queue_args args = queue_args_on(a, gpu, type);
	int r = create_queue(a, &args);

	if (r < 0)
		broken("%s: no queue: %s", a->w->case_name, strerror(-r));
	return args.queue_id;
}

uint32_t add_queue(struct actor *a, uint32_t type)
{
	return add_queue_on(a, 0, type);
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
