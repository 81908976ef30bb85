/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The ioctl interface of /dev/kfd, version 1.17 (Linux 6.12), queue and debug part.
 *
 * Written from the facts of the interface because distributions ship older headers than the
 * 1.13 that suspending queues needs. tests/abi compares every size, offset and request code
 * with the header of a real 6.12 kernel package. Memory and event calls: kfd_memory.h.
 *
 * "in" and "out" are the driver's view: "out" fields are written back, even on failure.
 */
#ifndef GPREEMPT_ABI_KFD_H
#define GPREEMPT_ABI_KFD_H

#include "abi/types.h"
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define AMDKFD_IOR(nr, type) _IOR('K', nr, type)
#define AMDKFD_IOW(nr, type) _IOW('K', nr, type)
#define AMDKFD_IOWR(nr, type) _IOWR('K', nr, type)
#define AMDKFD_COMMAND_START 0x01
#define AMDKFD_COMMAND_END 0x27 /* first number without a handler in 6.12 */

#define KFD_IOCTL_MAJOR_VERSION 1
#define KFD_IOCTL_MINOR_VERSION 17

struct kfd_ioctl_get_version_args {
	uint32_t major_version; /* out */
	uint32_t minor_version; /* out */
};
ABI_SIZE(struct kfd_ioctl_get_version_args, 8);

/* ---- queues ---- */

#define KFD_IOC_QUEUE_TYPE_COMPUTE 0 /* PM4 */
#define KFD_IOC_QUEUE_TYPE_SDMA 1
#define KFD_IOC_QUEUE_TYPE_COMPUTE_AQL 2
#define KFD_IOC_QUEUE_TYPE_SDMA_XGMI 3
#define KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID 4

#define KFD_MAX_QUEUE_PERCENTAGE 100
#define KFD_MAX_QUEUE_PRIORITY 15
#define KFD_MIN_QUEUE_RING_SIZE 1024

struct kfd_ioctl_create_queue_args {
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t doorbell_offset; /* out: mmap offset */
	uint32_t ring_size;
	uint32_t gpu_id;
	uint32_t queue_type;
	uint32_t queue_percentage; /* bits 0-7 percent, bits 8-15 target XCC of a PM4 queue */
	uint32_t queue_priority;
	uint32_t queue_id; /* out */
	uint64_t eop_buffer_address;
	uint64_t eop_buffer_size;
	uint64_t ctx_save_restore_address;
	uint32_t ctx_save_restore_size; /* per XCC */
	uint32_t ctl_stack_size;
	uint32_t sdma_engine_id; /* since 1.17 */
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_create_queue_args, 96);
ABI_AT(struct kfd_ioctl_create_queue_args, queue_id, 52);
ABI_AT(struct kfd_ioctl_create_queue_args, ctx_save_restore_address, 72);

struct kfd_ioctl_destroy_queue_args {
	uint32_t queue_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_destroy_queue_args, 8);

/* All four properties are overwritten together: a caller re-supplies what it wants to keep. */
struct kfd_ioctl_update_queue_args {
	uint64_t ring_base_address;
	uint32_t queue_id;
	uint32_t ring_size;
	uint32_t queue_percentage;
	uint32_t queue_priority;
};
ABI_SIZE(struct kfd_ioctl_update_queue_args, 24);

struct kfd_ioctl_set_cu_mask_args {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits; a multiple of 32 */
	uint64_t cu_mask_ptr;
};
ABI_SIZE(struct kfd_ioctl_set_cu_mask_args, 16);

struct kfd_ioctl_get_queue_wave_state_args {
	uint64_t ctl_stack_address;
	uint32_t ctl_stack_used_size; /* out */
	uint32_t save_area_used_size; /* out */
	uint32_t queue_id;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_get_queue_wave_state_args, 24);

struct kfd_ioctl_alloc_queue_gws_args {
	uint32_t queue_id;
	uint32_t num_gws;
	uint32_t first_gws; /* out */
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_alloc_queue_gws_args, 16);

/* Start of each XCC's part of a queue's context save area. */
struct kfd_context_save_area_header {
	struct {
		uint32_t control_stack_offset;
		uint32_t control_stack_size;
		uint32_t wave_state_offset;
		uint32_t wave_state_size; /* 0 on all XCCs: no wave ran when the queue was saved */
	} wave_state;
	uint32_t debug_offset;
	uint32_t debug_size;
	uint64_t err_payload_addr;
	uint32_t err_event_id;
	uint32_t reserved1;
};
ABI_SIZE(struct kfd_context_save_area_header, 40);

/* ---- runtime handshake (since 1.13) ---- */

#define KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK 1
#define KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK 2

struct kfd_ioctl_runtime_enable_args {
	uint64_t r_debug;
	uint32_t mode_mask;
	uint32_t capabilities_mask; /* never written by 6.12 */
};
ABI_SIZE(struct kfd_ioctl_runtime_enable_args, 16);

enum kfd_dbg_runtime_state {
	DEBUG_RUNTIME_STATE_DISABLED = 0,
	DEBUG_RUNTIME_STATE_ENABLED = 1,
	DEBUG_RUNTIME_STATE_ENABLED_BUSY = 2,
	DEBUG_RUNTIME_STATE_ENABLED_ERROR = 3,
};

struct kfd_runtime_info {
	uint64_t r_debug;
	uint32_t runtime_state;
	uint32_t ttmp_setup;
};
ABI_SIZE(struct kfd_runtime_info, 16);

/* ---- debug interface (since 1.13) ---- */

enum kfd_dbg_trap_exception_code {
	EC_QUEUE_PREEMPTION_ERROR = 30,
	EC_QUEUE_NEW = 31,
	EC_DEVICE_QUEUE_DELETE = 32,
	EC_DEVICE_MEMORY_VIOLATION = 33,
	EC_PROCESS_RUNTIME = 48,
};
#define KFD_EC_MASK(code) (1ULL << ((code) - 1))
#define KFD_EC_MASK_QUEUE 0x607f803fULL
#define KFD_EC_MASK_DEVICE 0xf80000000ULL
#define KFD_EC_MASK_PROCESS 0x1800000000000ULL

#define KFD_DBG_QUEUE_ERROR_MASK (1u << 30)
#define KFD_DBG_QUEUE_INVALID_MASK (1u << 31)

enum kfd_dbg_trap_operations {
	KFD_IOC_DBG_TRAP_ENABLE = 0,
	KFD_IOC_DBG_TRAP_DISABLE = 1,
	KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT = 2,
	KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED = 3,
	KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE = 4,
	KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE = 5,
	KFD_IOC_DBG_TRAP_SUSPEND_QUEUES = 6,
	KFD_IOC_DBG_TRAP_RESUME_QUEUES = 7,
	KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH = 8,
	KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH = 9,
	KFD_IOC_DBG_TRAP_SET_FLAGS = 10,
	KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT = 11,
	KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO = 12,
	KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT = 13,
	KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT = 14,
};

struct kfd_ioctl_dbg_trap_enable_args {
	uint64_t exception_mask;
	uint64_t rinfo_ptr;
	uint32_t rinfo_size; /* in: room, out: 16 */
	uint32_t dbg_fd; /* a non-blocking pipe or socket; an eventfd silently never fires */
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_enable_args, 24);

struct kfd_ioctl_dbg_trap_send_runtime_event_args {
	uint64_t exception_mask;
	uint32_t gpu_id;
	uint32_t queue_id;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_send_runtime_event_args, 16);

struct kfd_ioctl_dbg_trap_set_exceptions_enabled_args {
	uint64_t exception_mask;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_set_exceptions_enabled_args, 8);

struct kfd_ioctl_dbg_trap_set_wave_launch_override_args {
	uint32_t override_mode;
	uint32_t enable_mask; /* in, out */
	uint32_t support_request_mask; /* in, out */
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_set_wave_launch_override_args, 16);

#define KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL 0
#define KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT 1
#define KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG 3

struct kfd_ioctl_dbg_trap_set_wave_launch_mode_args {
	uint32_t launch_mode;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_set_wave_launch_mode_args, 8);

/* 8 bits of 1000 GPU clocks each; the driver truncates modulo 256 and 0 then means for ever. */
#define KFD_GRACE_KCLK_MIN 1
#define KFD_GRACE_KCLK_MAX 255
#define KFD_GRACE_KEEP_DEFAULT 0xffffffffu

struct kfd_ioctl_dbg_trap_suspend_queues_args {
	uint64_t exception_mask;
	uint64_t queue_array_ptr; /* ids; out: with KFD_DBG_QUEUE_*_MASK where one failed */
	uint32_t num_queues;
	uint32_t grace_period;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_suspend_queues_args, 24);

struct kfd_ioctl_dbg_trap_resume_queues_args {
	uint64_t queue_array_ptr; /* NULL: all queues of the target */
	uint32_t num_queues;
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_resume_queues_args, 16);

struct kfd_ioctl_dbg_trap_set_node_address_watch_args {
	uint64_t address;
	uint32_t mode;
	uint32_t mask;
	uint32_t gpu_id;
	uint32_t id; /* out */
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_set_node_address_watch_args, 24);

struct kfd_ioctl_dbg_trap_clear_node_address_watch_args {
	uint32_t gpu_id;
	uint32_t id;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_clear_node_address_watch_args, 8);

struct kfd_ioctl_dbg_trap_set_flags_args {
	uint32_t flags; /* out: what was set before */
	uint32_t pad;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_set_flags_args, 8);

struct kfd_ioctl_dbg_trap_query_debug_event_args {
	uint64_t exception_mask; /* in: to clear, out: all that is pending at the source */
	uint32_t gpu_id; /* out */
	uint32_t queue_id; /* out */
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_query_debug_event_args, 16);

struct kfd_ioctl_dbg_trap_query_exception_info_args {
	uint64_t info_ptr;
	uint32_t info_size; /* in: room, out: bytes there are */
	uint32_t source_id;
	uint32_t exception_code;
	uint32_t clear_exception;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_query_exception_info_args, 24);

struct kfd_ioctl_dbg_trap_queue_snapshot_args {
	uint64_t exception_mask; /* cleared on every entry returned */
	uint64_t snapshot_buf_ptr;
	uint32_t num_queues; /* in: room, out: queues there are */
	uint32_t entry_size; /* in: stride, out: bytes of an entry that are valid */
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_queue_snapshot_args, 24);

struct kfd_ioctl_dbg_trap_device_snapshot_args {
	uint64_t exception_mask;
	uint64_t snapshot_buf_ptr;
	uint32_t num_devices; /* in, out as above */
	uint32_t entry_size;
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_device_snapshot_args, 24);

struct kfd_queue_snapshot_entry {
	uint64_t exception_status;
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t ctx_save_restore_address;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t ring_size;
	uint32_t queue_type;
	uint32_t ctx_save_restore_area_size; /* per XCC */
	uint32_t reserved;
};
ABI_SIZE(struct kfd_queue_snapshot_entry, 64);
ABI_AT(struct kfd_queue_snapshot_entry, queue_id, 40);

struct kfd_dbg_device_info_entry {
	uint64_t exception_status;
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t location_id;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t revision_id;
	uint32_t subsystem_vendor_id;
	uint32_t subsystem_device_id;
	uint32_t fw_version;
	uint32_t gfx_target_version;
	uint32_t simd_count;
	uint32_t max_waves_per_simd;
	uint32_t array_count;
	uint32_t simd_arrays_per_engine;
	uint32_t num_xcc;
	uint32_t capability;
	uint32_t debug_prop;
};
ABI_SIZE(struct kfd_dbg_device_info_entry, 120);

struct kfd_ioctl_dbg_trap_args {
	uint32_t pid; /* in the caller's pid namespace */
	uint32_t op;
	union {
		struct kfd_ioctl_dbg_trap_enable_args enable;
		struct kfd_ioctl_dbg_trap_send_runtime_event_args send_runtime_event;
		struct kfd_ioctl_dbg_trap_set_exceptions_enabled_args set_exceptions_enabled;
		struct kfd_ioctl_dbg_trap_set_wave_launch_override_args launch_override;
		struct kfd_ioctl_dbg_trap_set_wave_launch_mode_args launch_mode;
		struct kfd_ioctl_dbg_trap_suspend_queues_args suspend_queues;
		struct kfd_ioctl_dbg_trap_resume_queues_args resume_queues;
		struct kfd_ioctl_dbg_trap_set_node_address_watch_args set_node_address_watch;
		struct kfd_ioctl_dbg_trap_clear_node_address_watch_args clear_node_address_watch;
		struct kfd_ioctl_dbg_trap_set_flags_args set_flags;
		struct kfd_ioctl_dbg_trap_query_debug_event_args query_debug_event;
		struct kfd_ioctl_dbg_trap_query_exception_info_args query_exception_info;
		struct kfd_ioctl_dbg_trap_queue_snapshot_args queue_snapshot;
		struct kfd_ioctl_dbg_trap_device_snapshot_args device_snapshot;
	};
};
ABI_SIZE(struct kfd_ioctl_dbg_trap_args, 32);
ABI_AT(struct kfd_ioctl_dbg_trap_args, enable, 8);

/* ---- CRIU (since 1.7) ---- */

enum kfd_criu_op {
	KFD_CRIU_OP_PROCESS_INFO = 0, /* evicts every queue of the process: a pause */
	KFD_CRIU_OP_CHECKPOINT = 1,
	KFD_CRIU_OP_UNPAUSE = 2,
	KFD_CRIU_OP_RESTORE = 3,
	KFD_CRIU_OP_RESUME = 4,
};

struct kfd_ioctl_criu_args {
	uint64_t devices;
	uint64_t bos;
	uint64_t priv_data;
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint32_t pid;
	uint32_t op;
};
ABI_SIZE(struct kfd_ioctl_criu_args, 56);

struct kfd_criu_device_bucket {
	uint32_t user_gpu_id;
	uint32_t actual_gpu_id;
	uint32_t drm_fd;
	uint32_t pad;
};
ABI_SIZE(struct kfd_criu_device_bucket, 16);

struct kfd_criu_bo_bucket {
	uint64_t addr;
	uint64_t size;
	uint64_t offset;
	uint64_t restored_offset;
	uint32_t gpu_id;
	uint32_t alloc_flags;
	uint32_t dmabuf_fd;
	uint32_t pad;
};
ABI_SIZE(struct kfd_criu_bo_bucket, 48);

/* ---- system management events (since 1.3) ---- */

struct kfd_ioctl_smi_events_args {
	uint32_t gpuid;
	uint32_t anon_fd; /* out */
};
ABI_SIZE(struct kfd_ioctl_smi_events_args, 8);

/* ---- request codes ---- */

#define AMDKFD_IOC_GET_VERSION AMDKFD_IOR(0x01, struct kfd_ioctl_get_version_args)
#define AMDKFD_IOC_CREATE_QUEUE AMDKFD_IOWR(0x02, struct kfd_ioctl_create_queue_args)
#define AMDKFD_IOC_DESTROY_QUEUE AMDKFD_IOWR(0x03, struct kfd_ioctl_destroy_queue_args)
#define AMDKFD_IOC_UPDATE_QUEUE AMDKFD_IOW(0x07, struct kfd_ioctl_update_queue_args)
#define AMDKFD_IOC_SET_CU_MASK AMDKFD_IOW(0x1a, struct kfd_ioctl_set_cu_mask_args)
#define AMDKFD_IOC_GET_QUEUE_WAVE_STATE \
	AMDKFD_IOWR(0x1b, struct kfd_ioctl_get_queue_wave_state_args)
#define AMDKFD_IOC_ALLOC_QUEUE_GWS AMDKFD_IOWR(0x1e, struct kfd_ioctl_alloc_queue_gws_args)
#define AMDKFD_IOC_SMI_EVENTS AMDKFD_IOWR(0x1f, struct kfd_ioctl_smi_events_args)
#define AMDKFD_IOC_CRIU_OP AMDKFD_IOWR(0x22, struct kfd_ioctl_criu_args)
#define AMDKFD_IOC_RUNTIME_ENABLE AMDKFD_IOWR(0x25, struct kfd_ioctl_runtime_enable_args)
#define AMDKFD_IOC_DBG_TRAP AMDKFD_IOWR(0x26, struct kfd_ioctl_dbg_trap_args)

#endif
