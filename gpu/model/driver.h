/* SPDX-License-Identifier: MIT */
/*
 * The driver half of the model, shared by its files only.
 *
 * Names follow amdkfd of Linux 6.12 where it has them, so that the two can be read side by side:
 * a kproc is its kfd_process, a pdd its kfd_process_device, a gpu its kfd_node with the queue
 * manager. The driver's locks are not modelled: one call runs at a time, and what would sleep
 * is a struct blocked.
 */
#ifndef GPREEMPT_GPU_MODEL_DRIVER_H
#define GPREEMPT_GPU_MODEL_DRIVER_H

#include "gpu/model/ext.h"
#include "gpu/model/hw.h"
#include "util/macros.h"

#define MAX_QUEUES_PER_PROCESS 1024 /* ids */
#define MAX_QUEUES_PER_DEVICE 4096 /* module parameter max_num_of_queues_per_device */
#define MAX_WATCH_POINTS 4
#define PAGE_BYTES 4096u
#define KMALLOC_MAX_BYTES (4u << 20) /* x86-64 */
#define PREEMPTION_TIMEOUT_NS (9000 * NSEC_PER_MSEC) /* queue_preemption_timeout_ms */

/* What hardware and its topology say whatever the chip. */
#define MODEL_SIMD_PER_CU 4u
#define MODEL_WAVES_PER_SIMD 8u
#define MODEL_PCI_VENDOR 0x1002u
#define MODEL_MEC_FW_VERSION 160u
#define MODEL_LDS_BASE 0x1000000000000ull
#define MODEL_SCRATCH_BASE 0x2000000000000ull
#define MODEL_GPUVM_BASE 0x10000ull
#define MODEL_GPUVM_LIMIT 0x7fffffffffffull
#define MODEL_FIRST_VMID 3u

/* enum kfd_queue_type, as sysfs shows it. */
enum queue_type { QUEUE_COMPUTE = 0, QUEUE_SDMA = 1, QUEUE_SDMA_XGMI = 4 };

struct model_gpu {
	struct model *m;
	struct hw_gpu *hw;
	uint32_t index;
	uint32_t id; /* gpu_id */
	bool active_runlist;
	bool in_cycle; /* unmapped and not yet mapped again */
	bool oversubscribed; /* the last run list was chained */
	bool reset_pending;
	bool debug_vmid_reserved; /* chips that cannot debug per VMID */
	uint32_t watch_ids; /* in use */
	uint32_t total_queues;
	uint8_t sdma_used[2][16]; /* a bit per SDMA queue slot; of XGMI engines in the second */
	struct model_gpu_stats stats;
	struct ext_scheduler scheduler;
};

struct model_pdd { /* what one KFD process has on one GPU */
	struct model_gpu *gpu;
	bool vm_acquired;
	bool has_reset_queue;
	uint32_t queue_count;
	uint32_t evicted; /* nested */
	uint64_t evicted_at_ns, evicted_ns;
	uint64_t exception_status;
	uint64_t vram_bytes;
	uint32_t num_gws;
	uint32_t watch_ids;
	uint32_t override;
	struct ext_hold holds[EXT_N_HOLDERS]; /* queues created from now on are born so */
	uint8_t doorbells[MAX_QUEUES_PER_PROCESS / 8];
};

struct model_queue {
	struct model_queue *next; /* newest first */
	struct model_kproc *owner;
	struct model_gpu *gpu;
	struct model_pdd *pdd;
	struct hw_queue *hw;
	uint32_t id;
	enum queue_type type;
	bool aql;
	uint64_t ring_base, read_ptr, write_ptr, eop_base, cwsr_base;
	uint32_t ring_bytes, eop_bytes, cwsr_bytes, ctl_stack_bytes;
	uint32_t percent, priority, target_xcc;
	uint64_t exception_status;
	bool is_active, is_evicted, is_suspended, is_being_destroyed;
	bool gws, is_gws, cu_masked;
	uint32_t cu_mask[32];
	uint32_t doorbell_id;
	uint32_t sdma_id, sdma_engine, sdma_queue;
	uint64_t saved_read, saved_write; /* indices in the descriptor, from the last unmap */
	uint64_t slots_va; /* what its packets point to, if we write them; 0: nothing yet */
	struct model_work loop;
	struct ext_queue ext;
};

struct model_kproc {
	struct model_kproc *next; /* newest first */
	struct model_proc *proc;
	uint64_t serial; /* never reused: how a debugger is remembered */
	uint32_t pasid;
	struct model_pdd pdds[MODEL_MAX_GPUS];
	struct model_queue *queues;
	uint8_t ids[MAX_QUEUES_PER_PROCESS / 8];
	uint64_t exception_status;
	bool queues_paused; /* by CRIU PROCESS_INFO */
	struct user_event *events;
	uint32_t n_signals; /* of them, those with a slot in the page */
	bool has_event_page;

	struct kfd_runtime_info runtime;
	int runtime_sema; /* posts nobody waited for */
	bool runtime_retry;

	bool debug_enabled;
	int dbg_fd;
	uint64_t exception_enable;
	uint64_t debugger; /* serial; may be of a process long gone, as the driver's pointer */
	int debugged_count; /* may disagree with @debugger of others after a hijack */
	uint64_t descriptor; /* at random, once one was borrowed: who has it has the right */
	uint32_t dbg_flags;
	struct ext_class ext;
};

struct model_proc {
	struct model_proc *next;
	pid_t pid;
	uid_t uid;
	bool admin; /* has what capabilities the driver and ptrace(2) ask for */
	char comm[16];
	char *cgroup;
	uint64_t start_ticks; /* as in /proc/PID/stat */
	struct mem_space *mm;
	struct model_kproc *kproc; /* of the current mm */
	bool has_fd; /* opened /dev/kfd since the last exec */
	bool invented; /* no process of the machine: its /proc is the model's too */
	struct model_task tracer; /* pid 0: none */
	pid_t *tids; /* threads seen beside the leader */
	size_t n_tids, cap_tids;
};

enum blocked_on { BLOCKED_RUNTIME_ENABLE, BLOCKED_RUNTIME_DISABLE, BLOCKED_DESTROY };

struct blocked { /* a call that sleeps in the driver */
	struct blocked *next; /* oldest first */
	struct model_task task;
	struct model_kproc *kproc;
	enum blocked_on on;
	uint32_t queue_id;
	bool woken, done;
	int result;
};

#define MODEL_FAULT_KINDS (MODEL_FAULT_ACTIVATE_FAILS + 1)

struct model {
	struct model_config config;
	struct model_chip chip; /* config's, as its maker left it */
	struct timeline time;
	struct model_gpu gpus[MODEL_MAX_GPUS];
	struct model_proc *procs;
	struct model_kproc *kprocs;
	struct blocked *blocked;
	uint64_t next_serial, next_start;
	uint32_t next_pasid;
	uint64_t calls; /* driver calls so far */
	struct model_fault faults[MODEL_FAULT_KINDS];
	uint64_t vanish_at_call;
	struct model_ext ext;
	const struct model_lent *lent; /* NULL: calls come from this process */
	size_t n_lent;
};

/* ---- proc.c ---- */
struct model_proc *model_proc_find(const struct model *m, pid_t pid);
/* By any thread of it; the tid of a thread that never made a call is not known. */
struct model_proc *model_proc_by_tid(const struct model *m, pid_t tid);
int model_proc_note_thread(struct model_proc *p, pid_t tid);
bool model_may_trace(const struct model_proc *by, const struct model_proc *p); /* as ptrace(2) */
struct model_kproc *model_kproc_by_serial(const struct model *m, uint64_t serial);
/* The KFD process of @p's mm, made when there is none. NULL: ENOMEM. */
struct model_kproc *model_kproc_get(struct model *m, struct model_proc *p);

/* ---- runtime.c ---- */
/* MODEL_BLOCKED, or -EINTR. */
int model_block(struct model *m, struct model_task task, struct model_kproc *k, enum blocked_on on,
		uint32_t queue_id);
struct blocked *model_blocked_find(struct model *m, struct model_task task);
/* Continues woken calls until none is left; each may wake others. */
void model_run_woken(struct model *m);
void model_wake_destroyers(struct model *m, struct model_gpu *gpu);
void model_blocked_forget(struct model *m, const struct model_kproc *k);
void model_runtime_up(struct model *m, struct model_kproc *k); /* the semaphore */

/* ---- ioctl.c: memory of the caller (model_lend), by addresses that may be wrong ---- */
int model_copy_from_user(const struct model *m, void *to, uint64_t from, size_t n);
int model_copy_to_user(const struct model *m, uint64_t to, const void *from, size_t n);
bool model_access_ok(uint64_t addr);

/* ---- runlist.c: gfx11 and later have none, but MES ---- */
#define MES_SDMA_RESERVED 2 /* queues of an engine: paging and graphics */
bool model_is_mes(const struct model_gpu *gpu);
/* Adds what is active and takes off what is not; nothing else is touched. */
int model_mes_sync(struct model_gpu *gpu);
/* -EIO during a reset; -ETIMEDOUT: it did not answer, a reset will follow. */
int model_mes_remove(struct model_queue *q);
int model_mes_add(struct model_queue *q);

/* ---- runlist.c ---- */
bool model_queue_wants_run(const struct model_queue *q); /* QUEUE_IS_ACTIVE */
/* One runlist cycle. -EIO during a reset, -ETIME when the preemption failed. */
int model_execute_queues(struct model_gpu *gpu, uint32_t grace);
int model_unmap_queues(struct model_gpu *gpu, uint32_t grace);
int model_map_queues(struct model_gpu *gpu);
/* What model_unmap_queues() does before and after the wait; some queues, or all of them. */
struct hw_unmap model_unmap_begin(struct model_gpu *gpu, uint32_t grace);
int model_unmap_end(struct model_gpu *gpu, const struct hw_unmap *op, int r);
int model_unmap_all_end(struct model_gpu *gpu, const struct hw_unmap *op, int r);
bool model_gpu_oversubscribed(const struct model_gpu *gpu);
int model_evict_queues(struct model *m, struct model_kproc *k);
int model_restore_queues(struct model *m, struct model_kproc *k);
void model_faults_before_call(struct model *m);
bool model_fault_take(struct model *m, enum model_fault_kind kind);
void model_run_resets(struct model *m);
struct gpu_counts { /* of its queues; those that are active by kind; who has any */
	uint32_t queues, held, active, compute, gws, processes;
};
struct gpu_counts model_gpu_count(const struct model_gpu *gpu);
/* All queues on a GPU, one after the other: the one after @q, NULL the first. */
struct model_queue *model_next_on(const struct model_gpu *gpu, const struct model_queue *q);

/* ---- queue.c ---- */
/* Takes the first of @n bits that is clear, of those from @first on, @step apart; -1: none. */
int model_bit_take(uint8_t *map, uint32_t first, uint32_t step, uint32_t n);
struct cwsr_sizes {
	uint32_t ctl_stack, cwsr, debug; /* bytes per XCC */
};
struct cwsr_sizes model_cwsr_sizes(const struct model_chip *chip);
uint32_t model_sdma_engines(const struct model_chip *chip);
uint32_t model_sdma_queues(const struct model_chip *chip); /* of one engine */
struct model_gpu *model_gpu_by_id(struct model *m, uint32_t gpu_id);
struct model_pdd *model_pdd_by_id(struct model *m, struct model_kproc *k, uint32_t gpu_id);
uint32_t model_queue_user_type(const struct model_queue *q); /* KFD_IOC_QUEUE_TYPE_* */
struct model_queue *model_queue_find(const struct model_kproc *k, uint32_t id);
/* NULL: there is no such process, or it has no such queue. */
struct model_queue *model_queue_of(const struct model *m, pid_t pid, uint32_t queue_id);
/* The second half of a destroy, once nothing holds the queue. */
int model_queue_destroy_now(struct model_queue *q);
uint32_t model_gpu_gws(const struct model_gpu *gpu); /* 0: it has none to give */
/* When the process dies: no events, one cycle per GPU. */
void model_queues_terminate(struct model *m, struct model_kproc *k);

/* ---- debug*.c ---- */
bool model_gpu_debugs_per_vmid(const struct model_gpu *gpu);
bool model_gpu_debugs_gws(const struct model_gpu *gpu); /* both at a time */
int model_dbg_activate(struct model *m, struct model_kproc *k);
void model_dbg_deactivate(struct model *m, struct model_kproc *k);
void model_dbg_disable(struct model *m, struct model_kproc *k);
/* Sets status bits; one '.' to the debugger when it subscribed to any of @mask. */
void model_dbg_raise(struct model_kproc *k, uint64_t mask, struct model_gpu *gpu,
		     uint32_t queue_id);
int model_dbg_refresh(struct model_gpu *gpu);
int model_suspend_queues(struct model *m, struct model_kproc *k,
			 struct kfd_ioctl_dbg_trap_suspend_queues_args *args);
int model_resume_queues(struct model *m, struct model_kproc *k, uint64_t array, uint32_t n);
int model_queue_snapshot(struct model *m, struct model_kproc *k,
			 struct kfd_ioctl_dbg_trap_queue_snapshot_args *args);
int model_device_snapshot(struct model *m, struct model_kproc *k,
			  struct kfd_ioctl_dbg_trap_device_snapshot_args *args);
/* The headers of one queue. -EFAULT as from the driver. */
int model_wave_state(struct model *m, struct model_queue *q, uint64_t area, bool in_target);

/* ---- ioctls: @data is the argument struct in our memory ---- */
struct call {
	struct model *m;
	struct model_task task;
	struct model_proc *proc; /* of @task */
	struct model_kproc *kproc; /* of the descriptor */
};
int model_ioc_create_queue(struct call *c, void *data);
int model_ioc_destroy_queue(struct call *c, void *data);
int model_ioc_update_queue(struct call *c, void *data);
int model_ioc_set_cu_mask(struct call *c, void *data);
int model_ioc_get_queue_wave_state(struct call *c, void *data);
int model_ioc_alloc_queue_gws(struct call *c, void *data);
int model_ioc_runtime_enable(struct call *c, void *data);
int model_ioc_dbg_trap(struct call *c, void *data);
int model_ioc_create_event(struct call *c, void *data);
int model_ioc_destroy_event(struct call *c, void *data);
int model_ioc_set_event(struct call *c, void *data);
int model_ioc_reset_event(struct call *c, void *data);
int model_ioc_wait_events(struct call *c, void *data);

/* ---- user_event.c ---- */
uint32_t model_events_count(const struct model_kproc *k);
void model_events_free(struct model_kproc *k);
/* Of the GPU, or of @only's queue there. */
void model_events_of_reset(struct model_gpu *gpu, const struct model_kproc *only);

/* ---- files ---- */
/*
 * Who prints a directory names each of its entries once. Where it is the directory that is to be
 * listed, the name is printed; where the path leads on through the entry, that is to be printed,
 * and nothing after it.
 */
struct tree {
	const char *path; /* what is left of it */
	uint64_t number; /* that comes next in it; UINT64_MAX: none */
	bool list; /* a directory is wanted, else a file */
	FILE *out;
	int result;
};
#define model_at_dir(t, ...) model_at(t, true, __VA_ARGS__)
#define model_at_file(t, ...) model_at(t, false, __VA_ARGS__)
bool model_at(struct tree *t, bool dir, const char *fmt, ...) _printf_(3, 4);
void model_print_debugfs(struct tree *t, struct model *m);
uint32_t model_gpu_location(const struct model_gpu *gpu);
uint32_t model_gpu_device_id(const struct model_gpu *gpu);
uint32_t model_gpu_capability(const struct model_gpu *gpu);
uint32_t model_gpu_debug_prop(const struct model_gpu *gpu);

#endif
