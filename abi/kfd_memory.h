/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The ioctl interface of /dev/kfd, version 1.17: memory, events, and what is left. See kfd.h. */
#ifndef GPREEMPT_ABI_KFD_MEMORY_H
#define GPREEMPT_ABI_KFD_MEMORY_H

#include "abi/kfd.h"

/* ---- address space ---- */

struct kfd_process_device_apertures {
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_process_device_apertures, 56);

#define NUM_OF_SUPPORTED_GPUS 7 /* of the old call only */
struct kfd_ioctl_get_process_apertures_args {
	struct kfd_process_device_apertures process_apertures[NUM_OF_SUPPORTED_GPUS];
	uint32_t num_of_nodes;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_get_process_apertures_args, 400);

struct kfd_ioctl_get_process_apertures_new_args {
	uint64_t kfd_process_device_apertures_ptr;
	uint32_t num_of_nodes; /* in: room, out: filled */
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_get_process_apertures_new_args, 16);

struct kfd_ioctl_acquire_vm_args {
	uint32_t drm_fd;
	uint32_t gpu_id;
};
ABI_SIZE(struct kfd_ioctl_acquire_vm_args, 8);

#define KFD_IOC_ALLOC_MEM_FLAGS_GTT (1u << 1)
#define KFD_IOC_ALLOC_MEM_FLAGS_USERPTR (1u << 2)
#define KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE (1u << 31)

struct kfd_ioctl_alloc_memory_of_gpu_args {
	uint64_t va_addr;
	uint64_t size;
	uint64_t handle; /* out */
	uint64_t mmap_offset; /* in for user pointers, else out */
	uint32_t gpu_id;
	uint32_t flags;
};
ABI_SIZE(struct kfd_ioctl_alloc_memory_of_gpu_args, 40);

struct kfd_ioctl_map_memory_to_gpu_args {
	uint64_t handle;
	uint64_t device_ids_array_ptr;
	uint32_t n_devices;
	uint32_t n_success; /* in, out */
};
ABI_SIZE(struct kfd_ioctl_map_memory_to_gpu_args, 24);

struct kfd_ioctl_unmap_memory_from_gpu_args {
	uint64_t handle;
	uint64_t device_ids_array_ptr;
	uint32_t n_devices;
	uint32_t n_success; /* in, out */
};
ABI_SIZE(struct kfd_ioctl_unmap_memory_from_gpu_args, 24);

struct kfd_ioctl_set_memory_policy_args {
	uint64_t alternate_aperture_base;
	uint64_t alternate_aperture_size;
	uint32_t gpu_id;
	uint32_t default_policy;
	uint32_t alternate_policy;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_set_memory_policy_args, 32);

struct kfd_ioctl_set_scratch_backing_va_args {
	uint64_t va_addr;
	uint32_t gpu_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_set_scratch_backing_va_args, 16);

struct kfd_ioctl_set_trap_handler_args {
	uint64_t tba_addr;
	uint64_t tma_addr;
	uint32_t gpu_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_set_trap_handler_args, 24);

struct kfd_ioctl_get_available_memory_args {
	uint64_t available; /* out */
	uint32_t gpu_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_get_available_memory_args, 16);

struct kfd_ioctl_svm_args {
	uint64_t start_addr;
	uint64_t size;
	uint32_t op;
	uint32_t nattr;
	uint64_t attrs[]; /* type and value */
};
ABI_SIZE(struct kfd_ioctl_svm_args, 24);

/* ---- sharing buffers ---- */

struct kfd_ioctl_get_dmabuf_info_args {
	uint64_t size; /* out */
	uint64_t metadata_ptr;
	uint32_t metadata_size; /* in: room, out: bytes there are */
	uint32_t gpu_id; /* out */
	uint32_t flags; /* out */
	uint32_t dmabuf_fd;
};
ABI_SIZE(struct kfd_ioctl_get_dmabuf_info_args, 32);

struct kfd_ioctl_import_dmabuf_args {
	uint64_t va_addr;
	uint64_t handle; /* out */
	uint32_t gpu_id;
	uint32_t dmabuf_fd;
};
ABI_SIZE(struct kfd_ioctl_import_dmabuf_args, 24);

/* ---- clocks and tiling ---- */

struct kfd_ioctl_get_clock_counters_args {
	uint64_t gpu_clock_counter; /* out */
	uint64_t cpu_clock_counter; /* out */
	uint64_t system_clock_counter; /* out */
	uint64_t system_clock_freq; /* out */
	uint32_t gpu_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_get_clock_counters_args, 40);

struct kfd_ioctl_get_tile_config_args {
	uint64_t tile_config_ptr;
	uint64_t macro_tile_config_ptr;
	uint32_t num_tile_configs; /* in, out */
	uint32_t num_macro_tile_configs; /* in, out */
	uint32_t gpu_id;
	uint32_t gb_addr_config; /* out */
	uint32_t num_banks; /* out */
	uint32_t num_ranks; /* out */
};
ABI_SIZE(struct kfd_ioctl_get_tile_config_args, 40);

/* ---- events ---- */

struct kfd_ioctl_create_event_args {
	uint64_t event_page_offset; /* out */
	uint32_t event_trigger_data; /* out */
	uint32_t event_type;
	uint32_t auto_reset;
	uint32_t node_id;
	uint32_t event_id; /* out */
	uint32_t event_slot_index; /* out */
};
ABI_SIZE(struct kfd_ioctl_create_event_args, 32);

struct kfd_ioctl_destroy_event_args {
	uint32_t event_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_destroy_event_args, 8);

struct kfd_ioctl_set_event_args {
	uint32_t event_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_set_event_args, 8);

struct kfd_ioctl_reset_event_args {
	uint32_t event_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_reset_event_args, 8);

struct kfd_hsa_signal_event_data {
	uint64_t last_event_age; /* in, out; since 1.14 */
};
ABI_SIZE(struct kfd_hsa_signal_event_data, 8);

struct kfd_hsa_hw_exception_data {
	uint32_t reset_type;
	uint32_t reset_cause;
	uint32_t memory_lost;
	uint32_t gpu_id;
};
ABI_SIZE(struct kfd_hsa_hw_exception_data, 16);

struct kfd_memory_exception_failure {
	uint32_t NotPresent;
	uint32_t ReadOnly;
	uint32_t NoExecute;
	uint32_t imprecise;
};
ABI_SIZE(struct kfd_memory_exception_failure, 16);

struct kfd_hsa_memory_exception_data {
	struct kfd_memory_exception_failure failure;
	uint64_t va;
	uint32_t gpu_id;
	uint32_t ErrorType;
};
ABI_SIZE(struct kfd_hsa_memory_exception_data, 32);

struct kfd_event_data {
	union {
		struct kfd_hsa_memory_exception_data memory_exception_data; /* out */
		struct kfd_hsa_hw_exception_data hw_exception_data; /* out */
		struct kfd_hsa_signal_event_data signal_event_data;
	};
	uint64_t kfd_event_data_ext;
	uint32_t event_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_event_data, 48);

struct kfd_ioctl_wait_events_args {
	uint64_t events_ptr;
	uint32_t num_events;
	uint32_t wait_for_all;
	uint32_t timeout;
	uint32_t wait_result; /* out */
};
ABI_SIZE(struct kfd_ioctl_wait_events_args, 24);

/* ---- request codes; of arguments that nobody looks into only the size is said ---- */

#define AMDKFD_IOC_SET_MEMORY_POLICY AMDKFD_IOW(0x04, struct kfd_ioctl_set_memory_policy_args)
#define AMDKFD_IOC_GET_CLOCK_COUNTERS AMDKFD_IOWR(0x05, struct kfd_ioctl_get_clock_counters_args)
#define AMDKFD_IOC_GET_PROCESS_APERTURES \
	AMDKFD_IOR(0x06, struct kfd_ioctl_get_process_apertures_args)
#define AMDKFD_IOC_CREATE_EVENT AMDKFD_IOWR(0x08, struct kfd_ioctl_create_event_args)
#define AMDKFD_IOC_DESTROY_EVENT AMDKFD_IOW(0x09, struct kfd_ioctl_destroy_event_args)
#define AMDKFD_IOC_SET_EVENT AMDKFD_IOW(0x0a, struct kfd_ioctl_set_event_args)
#define AMDKFD_IOC_RESET_EVENT AMDKFD_IOW(0x0b, struct kfd_ioctl_reset_event_args)
#define AMDKFD_IOC_WAIT_EVENTS AMDKFD_IOWR(0x0c, struct kfd_ioctl_wait_events_args)
#define AMDKFD_IOC_DBG_REGISTER_DEPRECATED AMDKFD_IOW(0x0d, uint64_t)
#define AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED AMDKFD_IOW(0x0e, uint64_t)
#define AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED AMDKFD_IOW(0x0f, uint64_t[2])
#define AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED AMDKFD_IOW(0x10, uint64_t[2])
#define AMDKFD_IOC_SET_SCRATCH_BACKING_VA \
	AMDKFD_IOWR(0x11, struct kfd_ioctl_set_scratch_backing_va_args)
#define AMDKFD_IOC_GET_TILE_CONFIG AMDKFD_IOWR(0x12, struct kfd_ioctl_get_tile_config_args)
#define AMDKFD_IOC_SET_TRAP_HANDLER AMDKFD_IOW(0x13, struct kfd_ioctl_set_trap_handler_args)
#define AMDKFD_IOC_GET_PROCESS_APERTURES_NEW \
	AMDKFD_IOWR(0x14, struct kfd_ioctl_get_process_apertures_new_args)
#define AMDKFD_IOC_ACQUIRE_VM AMDKFD_IOW(0x15, struct kfd_ioctl_acquire_vm_args)
#define AMDKFD_IOC_ALLOC_MEMORY_OF_GPU AMDKFD_IOWR(0x16, struct kfd_ioctl_alloc_memory_of_gpu_args)
#define AMDKFD_IOC_FREE_MEMORY_OF_GPU AMDKFD_IOW(0x17, uint64_t)
#define AMDKFD_IOC_MAP_MEMORY_TO_GPU AMDKFD_IOWR(0x18, struct kfd_ioctl_map_memory_to_gpu_args)
#define AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU \
	AMDKFD_IOWR(0x19, struct kfd_ioctl_unmap_memory_from_gpu_args)
#define AMDKFD_IOC_GET_DMABUF_INFO AMDKFD_IOWR(0x1c, struct kfd_ioctl_get_dmabuf_info_args)
#define AMDKFD_IOC_IMPORT_DMABUF AMDKFD_IOWR(0x1d, struct kfd_ioctl_import_dmabuf_args)
#define AMDKFD_IOC_SVM AMDKFD_IOWR(0x20, struct kfd_ioctl_svm_args)
#define AMDKFD_IOC_SET_XNACK_MODE AMDKFD_IOWR(0x21, int32_t)
#define AMDKFD_IOC_AVAILABLE_MEMORY AMDKFD_IOWR(0x23, struct kfd_ioctl_get_available_memory_args)
#define AMDKFD_IOC_EXPORT_DMABUF AMDKFD_IOWR(0x24, uint64_t[2])

#endif
