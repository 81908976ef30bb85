/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/kfd_memory.h"
#include "tests/vm/mk.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define MAX_NODES 64
#define EVENT_PAGE_BYTES 32768
#define EVENT_SIGNAL 0

static uint32_t read_gpu_id(unsigned int node)
{
	char path[128];
	uint32_t id = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%u/gpu_id", node);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%u", &id) != 1)
		id = 0;
	fclose(f);
	return id;
}

static void read_properties(struct mk_gpu *gpu, unsigned int node)
{
	const struct {
		const char *key;
		uint32_t *value;
	} wanted[] = {
		{ "cwsr_size", &gpu->cwsr_size },
		{ "ctl_stack_size", &gpu->ctl_stack_size },
		{ "drm_render_minor", &gpu->render_minor },
		{ "gfx_target_version", &gpu->gfx_target_version },
		{ "simd_count", &gpu->simd_count },
		{ "simd_per_cu", &gpu->simd_per_cu },
		{ "array_count", &gpu->array_count },
		{ "simd_arrays_per_engine", &gpu->arrays_per_engine },
		{ "num_xcc", &gpu->n_xcc },
	};
	char path[128], key[64];
	unsigned long long value;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%u/properties", node);
	f = fopen(path, "re");
	if (!f)
		mk_die("%s", path);
	while (fscanf(f, "%63s %llu", key, &value) == 2) {
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
			if (!strcmp(key, wanted[i].key))
				*wanted[i].value = (uint32_t)value;
		}
	}
	fclose(f);
}

/* False: there are not so many. */
static bool find_gpu(struct mk_gpu *gpu, unsigned int index)
{
	for (unsigned int node = 0; node < MAX_NODES; node++) {
		gpu->gpu_id = read_gpu_id(node);
		if (gpu->gpu_id && index-- == 0) {
			read_properties(gpu, node);
			return true;
		}
	}
	return false;
}

static void map_to_gpu(struct mk_gpu *gpu, uint64_t handle)
{
	struct kfd_ioctl_map_memory_to_gpu_args m = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)&gpu->gpu_id,
		.n_devices = 1,
	};

	if (ioctl(gpu->kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &m))
		mk_die("MAP_MEMORY_TO_GPU");
}

static void *alloc_user(struct mk_gpu *gpu, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.va_addr = (uintptr_t)p,
		.size = size,
		.mmap_offset = (uintptr_t)p,
		.gpu_id = gpu->gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};

	if (p == MAP_FAILED)
		mk_die("mmap");
	if (ioctl(gpu->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a))
		mk_die("ALLOC_MEMORY_OF_GPU for user memory");
	map_to_gpu(gpu, a.handle);
	if (gpu->n_user < MK_MAX_USER) {
		gpu->user[gpu->n_user].at = a.va_addr;
		gpu->user[gpu->n_user++].size = size;
	}
	return p;
}

void *mk_alloc(struct mk_gpu *gpu, size_t size, uint64_t *ret_handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.size = size,
		.gpu_id = gpu->gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	void *p;

	if (gpu->user_memory && !ret_handle)
		return alloc_user(gpu, size);
	p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		mk_die("mmap");
	a.va_addr = (uintptr_t)p;
	if (ioctl(gpu->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a))
		mk_die("ALLOC_MEMORY_OF_GPU %zu", size);
	p = mmap(p, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, gpu->drm,
		 (off_t)a.mmap_offset);
	if (p == MAP_FAILED)
		mk_die("mmap of GPU memory");
	map_to_gpu(gpu, a.handle);
	if (ret_handle)
		*ret_handle = a.handle;
	return p;
}

/* The process brings the page of event slots; it goes with the first event. */
static void create_event(struct mk_gpu *gpu)
{
	struct kfd_ioctl_create_event_args e = { .event_type = EVENT_SIGNAL, .auto_reset = 1 };
	uint64_t *page = mk_alloc(gpu, EVENT_PAGE_BYTES, &e.event_page_offset);

	memset(page, 0xff, EVENT_PAGE_BYTES);
	if (ioctl(gpu->kfd, AMDKFD_IOC_CREATE_EVENT, &e))
		mk_die("CREATE_EVENT");
	gpu->event_id = e.event_id;
	gpu->mailbox = (uintptr_t)(page + e.event_slot_index);
}

static void open_drm(struct mk_gpu *gpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->render_minor);
	gpu->drm = open(path, O_RDWR | O_CLOEXEC);
	if (gpu->drm < 0)
		mk_die("%s", path);
}

static void acquire_vm(struct mk_gpu *gpu)
{
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = gpu->gpu_id };

	open_drm(gpu);
	vm.drm_fd = (uint32_t)gpu->drm;
	if (ioctl(gpu->kfd, AMDKFD_IOC_ACQUIRE_VM, &vm))
		mk_die("ACQUIRE_VM");
}

static void open_driver(struct mk_gpu *gpu, unsigned int index)
{
	memset(gpu, 0, sizeof(*gpu));
	if (!find_gpu(gpu, index)) {
		errno = ENODEV;
		mk_die("GPU %u", index);
	}
	gpu->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (gpu->kfd < 0)
		mk_die("/dev/kfd");
	acquire_vm(gpu);
}

void mk_gpu_open(struct mk_gpu *gpu, unsigned int index)
{
	struct mk_gpu other = { 0 };

	open_driver(gpu, index);
	other.kfd = gpu->kfd;
	for (unsigned int i = 0; find_gpu(&other, i); i++) {
		if (i != index)
			acquire_vm(&other);
	}
	create_event(gpu);
}

void mk_gpu_open_only(struct mk_gpu *gpu, unsigned int index)
{
	open_driver(gpu, index);
	create_event(gpu);
}

void mk_gpu_also(struct mk_gpu *gpu, const struct mk_gpu *first, unsigned int index)
{
	memset(gpu, 0, sizeof(*gpu));
	if (!find_gpu(gpu, index)) {
		errno = ENODEV;
		mk_die("GPU %u", index);
	}
	gpu->kfd = first->kfd;
	open_drm(gpu);
}

void mk_gpu_runtime(struct mk_gpu *gpu, bool enable)
{
	struct kfd_ioctl_runtime_enable_args a = { .mode_mask = enable };

	while (ioctl(gpu->kfd, AMDKFD_IOC_RUNTIME_ENABLE, &a)) {
		if (errno != EINTR)
			mk_die("RUNTIME_ENABLE %d", enable);
	}
}

void mk_wait(struct mk_gpu *gpu, unsigned int ms)
{
	struct kfd_event_data e = { .event_id = gpu->event_id };
	struct kfd_ioctl_wait_events_args w = {
		.events_ptr = (uintptr_t)&e,
		.num_events = 1,
		.timeout = ms,
	};

	if (ioctl(gpu->kfd, AMDKFD_IOC_WAIT_EVENTS, &w) && errno != EINTR && errno != ETIME)
		mk_die("WAIT_EVENTS");
}
