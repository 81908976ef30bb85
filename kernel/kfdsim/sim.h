/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A software GPU for the real amdkfd.
 *
 * amdkfd is linked with this instead of the rest of amdgpu. What it asks of the hardware it gets
 * from plain memory and one thread:
 *
 *   module.c    parameters, loading and unloading       device.c   one GPU's data, chips
 *   drm.c       render nodes                            buffer.c   memory with GART addresses
 *   gpuvm.c     memory of processes, address spaces     doorbell.c the doorbell aperture
 *   kgd.c, debug.c  functions of the chips              answers.c  what only wants an answer
 *   engine.c    the thread that is the hardware         reset.c    whole-GPU resets
 *   hiq.c       the scheduler's packets                 mes.c      the scheduler of gfx11, gfx12
 *   slots.c     who sits on hardware, rotation          preempt.c  taking queues off
 *   queue.c     one queue: load, doorbell, pointers     save.c     waves to memory and back
 *   run.c       AQL packets       pm4.c                 sdma.c     copy engines
 *   shader.c    the program that waves run              waits.c    who waits, how full slots are
 *   debugfs.c, log.c, counters.c  what is told
 *
 * Times are invented. What is said here about firmware and hardware without a source was not
 * verified on hardware.
 *
 * Locking: sim_gpu.lock guards everything the engine looks at: queues, address spaces, which GART
 * and doorbell memory exists. amdkfd's locks are taken before it, never inside. The engine keeps
 * no pointer into memory of others from one tick to the next.
 */
#ifndef GPREEMPT_KERNEL_KFDSIM_SIM_H
#define GPREEMPT_KERNEL_KFDSIM_SIM_H

#include <linux/bitmap.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include <amdgpu.h>
#include <amdgpu_amdkfd.h>
#include <amdgpu_object.h>
#include <amdgpu_reset.h>
#include <v9_structs.h>

#include "abi/aql.h"

#define SIM_MAX_GPUS 8
#define SIM_MAX_XCC 8
#define SIM_PIPES 4
#define SIM_PIPE_QUEUES 8
#define SIM_SLOTS (SIM_PIPES * SIM_PIPE_QUEUES) /* HQDs of MEC1, KFD's and others */
#define SIM_KERNEL_QUEUES 2 /* of each pipe are amdgpu's own: 8 compute rings */
#define SIM_NO_SLOT U32_MAX
#define SIM_LAST_VMID 15
#define SIM_MAX_QUEUES 1024 /* in one run list */
#define SIM_MAX_FLIGHT 4 /* dispatches of one queue that overlap */
#define SIM_MAX_PROCS 64 /* with counters of their own */
#define SIM_CU_WAVES 32
#define SIM_WAVE_BYTES 8192 /* of a saved wave; 32 fit in what KFD grants a compute unit */
#define SIM_SE 4 /* shader engines of an XCC */
#define SIM_BAR_PAGES 512 /* a doorbell aperture of 2 MiB */
#define SIM_DEFAULT_IQ_WAIT 0x01020304u /* CP_IQ_WAIT_TIME2; bits 8-15: grace period */

/* ---- memory ---- */

struct sim_gpu;

struct sim_buffer {
	struct amdgpu_bo bo;
	struct kref ref;
	struct sim_gpu *gpu;
	void *cpu; /* NULL: nothing behind it */
	u64 size;
	u32 gart_id; /* 0: no GART address */
	u32 mmap_id; /* 0: cannot be mapped */
	u32 bar_page, bar_pages; /* a part of the doorbell aperture */
	struct page **user_pages; /* pinned memory of a process */
	unsigned long n_user_pages;
};

/* Memory of a process; attached to the address spaces it was mapped to at least once. */
struct sim_mem {
	struct kgd_mem mem;
	struct sim_buffer *buffer;
	struct list_head attachments;
};

struct sim_attachment {
	struct list_head in_mem;
	struct list_head in_vm;
	struct sim_mem *mem;
	struct sim_vm *vm;
	bool mapped;
	struct amdgpu_bo_va bo_va;
	struct amdgpu_bo_va_mapping mapping;
};

/* What a file of the render node is: one address space. */
struct sim_vm {
	struct amdgpu_fpriv fpriv;
	struct amdgpu_bo root; /* only its reservation is used */
	struct sim_gpu *gpu;
	struct list_head link; /* in sim_gpu.vms */
	struct list_head attachments;
	struct maple_tree mapped; /* address to attachment */
};

/* ---- queues ---- */

/* A dispatch whose packet was consumed and whose waves are on compute units. */
struct sim_flight {
	u64 index; /* of its packet */
	u64 left; /* ticks */
	u32 waves;
	struct aql_dispatch packet;
};

enum sim_queue_kind { SIM_AQL, SIM_PM4, SIM_SDMA };

/* A queue of the run list, or of MES. */
struct sim_queue {
	u64 mqd, wptr; /* GART address; address in the process */
	u32 pasid, doorbell;
	enum sim_queue_kind kind;
	u32 engine; /* of an SDMA queue */
	bool resident; /* on hardware, with a VMID */
	bool in_turn; /* while slots are given out: has one in this turn */
	u32 slot, vmid; /* slot only for compute */
	u32 debug_vmid; /* of a process under a debugger on old chips, set apart for it; 0: none */
	u32 pipe_priority; /* 0..2 */
	bool leaving; /* being preempted: starts nothing new */
	bool frozen; /* its waves are being moved */
	bool hopeless; /* the firmware gave up on it */
	u64 read, write; /* packets, dwords or bytes by kind */
	struct sim_wait *wait; /* its account; NULL: none yet, or no memory for it */
	unsigned int n_flight;
	struct sim_flight flight[SIM_MAX_FLIGHT];
};

enum sim_preempt_phase { SIM_PREEMPT_NONE, SIM_PREEMPT_GRACE, SIM_PREEMPT_SAVE };

enum sim_select { SIM_BY_DOORBELL, SIM_BY_PASID, SIM_ALL };

struct sim_preempt {
	enum sim_preempt_phase phase;
	enum sim_select select;
	bool reset; /* waves are dropped, not saved */
	u32 pasid;
	unsigned int n_doorbells;
	u32 doorbells[4];
	u64 began_ns, until_ns;
};

/* The HIQ as loaded on the first XCC; all XCCs eat the same ring. */
struct sim_hiq {
	bool loaded;
	u64 mqd[SIM_MAX_XCC]; /* GART */
	u64 ring; /* GART */
	u32 ring_dw;
	u64 rptr_report; /* GART */
	u32 doorbell;
	u64 read; /* dwords */
};

/* ---- what is told about it ---- */

struct sim_proc_counters {
	u32 pasid;
	pid_t pid;
	u64 maps, unmaps, packets, saves, saved_bytes;
};

struct sim_counters {
	u64 set_resources, runlists, map_process, map_queues, unmaps, queries, write_data, nops;
	u64 cycles; /* finished unmaps */
	u64 adds, removes; /* MES */
	u64 packets, pm4, sdma, sdma_bytes, links; /* consumed; links of checksum chains */
	u64 saves, saved_waves, saved_bytes, restores; /* of queues with something running */
	u64 rotations, resets, queue_resets, tlb_flushes, irqs;
	u64 fence_ns; /* in all, that somebody waited for a fence */
	u64 slot_ns, slot_taken_ns, slot_used_ns; /* all slots; with a queue; one with work */
	u64 bad; /* packets no firmware would take, or of which nobody knows what it would do */
	u64 damaged; /* saved state that came back changed */
	u32 last_reg, last_value;
	struct sim_proc_counters procs[SIM_MAX_PROCS];
	unsigned int n_procs; /* ever; the table is a ring */
};

/* Files of debugfs; read anew at each use. */
struct sim_knobs {
	u32 preempt_us; /* an unmap takes at least that */
	u32 save_ns_per_kib; /* and for each KiB of an XCC's waves that */
	u32 quantum_us;
	u32 stuck_doorbell; /* this queue does not yield; U32_MAX: none */
	u32 stuck_ms; /* for how long the firmware tries */
	bool dead; /* the scheduler takes no orders any more */
	bool recover; /* a reset that is asked for happens */
	bool queue_reset_works;
	bool log_packets; /* those of user queues too */
};

struct sim_log;

/* ---- one GPU ---- */

struct sim_chip {
	u32 gc;
	u32 sdma;
	u32 sdma_engines; /* 0: by the number of XCCs */
	u32 first_vmid; /* up to 15 */
	bool xgmi;
	u16 device;
	u32 mec_fw;
};

struct sim_gpu {
	struct amdgpu_device adev;
	const struct sim_chip *chip;
	unsigned int index, n_xcc, cu_per_xcc;
	struct platform_device *pdev;
	struct amdgpu_reset_domain reset_domain;
	bool registered; /* with DRM */

	struct mutex lock;
	wait_queue_head_t changed; /* after a preemption, and when a fence was written */
	struct list_head vms;
	struct xarray gart;
	void *bar;
	DECLARE_BITMAP(bar_used, SIM_BAR_PAGES);

	struct sim_hiq hiq;
	u32 iq_wait; /* CP_IQ_WAIT_TIME2 */
	u32 vmids, slots; /* bits of those the scheduler may use */
	struct sim_queue *queues;
	unsigned int n_queues;
	bool chained; /* the run list ends in itself: rotate */
	unsigned int window; /* the first queue of the next turn */
	u64 turn_ends_ns, stalled_until_ns, ran_until_ns, slots_counted_ns;
	unsigned int turn; /* who is asked first for work */
	bool halted; /* MES was told to suspend all */
	u32 waves; /* on compute units */
	u32 trap_mask; /* SPI_GDBG_TRAP_MASK of chips where it is global */
	struct sim_preempt preempt;
	struct xarray waits;

	struct sim_counters count;
	struct sim_knobs knobs;
	struct sim_log *log;
	struct dentry *debugfs;
};

#define to_gpu(a) container_of((a), struct sim_gpu, adev)

extern struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
extern unsigned int sim_n_gpus;

static inline u64 sim_pair(u32 hi, u32 lo)
{
	return (u64)hi << 32 | lo;
}

static inline bool sim_is_mes(const struct sim_gpu *gpu)
{
	return gpu->adev.enable_mes;
}

/* device.c */
struct sim_gpu *sim_gpu_create(unsigned int index);
int sim_gpu_start(struct sim_gpu *gpu); /* makes it a node of amdkfd */
void sim_gpu_destroy(struct sim_gpu *gpu); /* from any stage; accepts NULL */

/* drm.c */
extern const struct drm_driver sim_drm_driver;
extern struct xarray sim_mmap_ids; /* of buffers, all GPUs */
struct sim_vm *sim_vm_of_pasid(struct sim_gpu *gpu, u32 pasid);

/* buffer.c */
enum sim_backing { SIM_NOTHING, SIM_MEMORY };
struct sim_buffer *sim_buffer_new(struct sim_gpu *gpu, u64 size, enum sim_backing backing);
struct sim_buffer *sim_buffer_of_user(struct sim_gpu *gpu, u64 address, u64 size);
int sim_buffer_to_gart(struct sim_buffer *b);
void sim_buffer_get(struct sim_buffer *b);
void sim_buffer_put(struct sim_buffer *b); /* not under sim_gpu.lock */
u64 sim_buffer_gart(const struct sim_buffer *b);
/* Valid until sim_gpu.lock is given up. NULL: no such memory. */
void *sim_gart(struct sim_gpu *gpu, u64 address, size_t bytes);

/* gpuvm.c: a process address; the same rules. */
void *sim_user(struct sim_gpu *gpu, u32 pasid, u64 address, size_t bytes);
void sim_vm_detach_all(struct sim_vm *vm);

/* doorbell.c */
u64 sim_doorbell(const struct sim_gpu *gpu, u32 dword);
bool sim_doorbell_rung(struct sim_gpu *gpu, u32 dword); /* since it was asked last */
void sim_doorbell_clear(struct sim_gpu *gpu, u32 dword);
int sim_bar_init(struct sim_gpu *gpu);
void sim_bar_exit(struct sim_gpu *gpu);
void sim_bar_release(struct sim_buffer *b);

/* engine.c */
int sim_engine_start(void);
void sim_engine_stop(void);
void sim_engine_wake(void); /* there is an order; may be called in vain */

/* hiq.c */
void sim_hiq_step(struct sim_gpu *gpu, u64 now);
bool sim_hiq_has_orders(const struct sim_gpu *gpu); /* not all is done; needs no lock */
bool sim_hiq_is_awaited(struct sim_gpu *gpu); /* the last of them is to write a fence */
struct v9_mqd *sim_hiq_mqd(struct sim_gpu *gpu, unsigned int xcc);
int sim_hiq_load(struct sim_gpu *gpu, void *mqd, u32 doorbell, unsigned int xcc);

/* mes.c */
extern const struct amdgpu_mes_funcs sim_mes_funcs;

/* slots.c */
void sim_slots_reset(struct sim_gpu *gpu); /* what there is before the driver says otherwise */
struct sim_queue *sim_queue_add(struct sim_gpu *gpu);
void sim_queue_remove(struct sim_gpu *gpu, struct sim_queue *q);
void sim_slots_fill(struct sim_gpu *gpu, u64 now);
void sim_slots_step(struct sim_gpu *gpu, u64 now);
struct sim_queue *sim_slot_owner(struct sim_gpu *gpu, u32 slot);

/* preempt.c */
void sim_preempt_begin(struct sim_gpu *gpu, const struct sim_preempt *what, u64 now);
void sim_preempt_step(struct sim_gpu *gpu, u64 now);
u64 sim_save_ns(const struct sim_gpu *gpu, u64 waves);

/* queue.c */
struct v9_mqd *sim_queue_mqd(struct sim_gpu *gpu, const struct sim_queue *q, unsigned int xcc);
struct v9_sdma_mqd *sim_queue_sdma_mqd(struct sim_gpu *gpu, const struct sim_queue *q);
bool sim_queue_on_hardware(struct sim_gpu *gpu, struct sim_queue *q); /* from its descriptor */
void sim_queue_off_hardware(struct sim_gpu *gpu, struct sim_queue *q, bool reset);
void sim_queue_see_doorbell(struct sim_gpu *gpu, struct sim_queue *q);
/* 0: its descriptor is gone, and @ret_dwords is untouched. */
u64 sim_queue_ring(struct sim_gpu *gpu, const struct sim_queue *q, u32 *ret_dwords);
void sim_queue_report(struct sim_gpu *gpu, struct sim_queue *q); /* the read pointer */

/* save.c */
u32 sim_waves_on(const struct v9_mqd *mqd, u32 waves, unsigned int n_xcc);
void sim_save(struct sim_gpu *gpu, struct sim_queue *q);
void sim_restore(struct sim_gpu *gpu, struct sim_queue *q);

/* waits.c */
extern const struct file_operations sim_waits_fops;
void sim_wait_begin(struct sim_gpu *gpu, struct sim_queue *q); /* it came onto hardware */
void sim_wait_over(struct sim_queue *q, u64 now); /* work was done, or there is none */
void sim_count_slots(struct sim_gpu *gpu, u64 now);
void sim_waits_free(struct sim_gpu *gpu);

/* run.c, pm4.c, sdma.c: some ticks of one queue */
void sim_run_aql(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks);
void sim_start_aql(struct sim_gpu *gpu, struct sim_queue *q);
void sim_run_pm4(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks);
void sim_run_sdma(struct sim_gpu *gpu, struct sim_queue *q, u64 ticks);

/* shader.c */
void sim_shader(struct sim_gpu *gpu, u32 pasid, const struct aql_dispatch *packet);

/* irq.c */
void sim_irq_end_of_pipe(struct sim_gpu *gpu, const struct sim_queue *q, u32 event);
void sim_irq_sdma_trap(struct sim_gpu *gpu, const struct sim_queue *q, u32 context);

/* reset.c */
void sim_reset_init(struct sim_gpu *gpu);

/* sleep.c */
void sim_sleep_init(struct sim_gpu *gpu);

/*
 * counters.c: never NULL; the entry may become another process's at the next call. PASIDs are used
 * again: when queues are mapped the process is looked up anew.
 */
struct sim_proc_counters *sim_count_new_proc(struct sim_gpu *gpu, u32 pasid);
struct sim_proc_counters *sim_count_proc(struct sim_gpu *gpu, u32 pasid);

/* log.c */
enum sim_event {
	SIM_EV_SET_RESOURCES,
	SIM_EV_RUNLIST,
	SIM_EV_MAP_PROCESS,
	SIM_EV_MAP_QUEUE,
	SIM_EV_UNMAP,
	SIM_EV_UNMAPPED,
	SIM_EV_QUERY,
	SIM_EV_WRITE,
	SIM_EV_ADD,
	SIM_EV_REMOVE,
	SIM_EV_ROTATE,
	SIM_EV_START,
	SIM_EV_DONE,
	SIM_EV_SAVE,
	SIM_EV_RESTORE,
	SIM_EV_STUCK,
	SIM_EV_RESET,
	SIM_EV_BAD,
};
struct sim_log *sim_log_new(void);
void sim_log_free(struct sim_log *log);
void sim_log(struct sim_gpu *gpu, enum sim_event what, u32 pasid, u32 doorbell, u64 a, u64 b);
extern const struct file_operations sim_log_fops;

/* debugfs.c */
void sim_debugfs_init(void);
void sim_debugfs_add(struct sim_gpu *gpu);
void sim_debugfs_exit(void);

/* policies.c */
#ifdef KFDSIM_POLICIES
void sim_policies_init(struct dentry *root);
#else
static inline void sim_policies_init(struct dentry *root) {}
#endif

#endif
