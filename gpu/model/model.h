/* SPDX-License-Identifier: MIT */
/*
 * A software device: the KFD driver's behaviour over modelled GPUs, in virtual time.
 *
 * Deterministic: the same calls give the same answers and the same times. The clock moves only
 * in model_advance() and inside driver calls that wait for the hardware. Not thread-safe; the
 * transport (model_transport_new) adds a lock. Every duration is modelled, never measured.
 *
 * The driver half answers as Linux 6.12 does, refusals and quirks included: it is never kinder.
 * The hardware half (hw.h) runs workgroups on compute units and moves bytes when it saves them.
 */
#ifndef GPREEMPT_GPU_MODEL_MODEL_H
#define GPREEMPT_GPU_MODEL_MODEL_H

#include "abi/kfd.h"
#include "gpu/kfd/transport.h"

#define MODEL_MAX_GPUS 8
#define MODEL_MAX_XCC 8

/* The process that opens the device through the transport, in the model's own pid space. */
#define MODEL_SELF_PID 4194303

/* What a blocking driver call answers instead of blocking; see model_blocked_result(). */
#define MODEL_BLOCKED (-4097)

struct model;

/* ---- chips ---- */

/* Times the driver and firmware add; no source gives them, so all are assumed. */
struct model_costs {
	uint64_t unmap_ns; /* UNMAP_QUEUES and its fence, nothing to save */
	uint64_t map_ns; /* RUN_LIST until the first queue is loaded; a change of turns as well */
	uint64_t trap_ns; /* a wave's way into the trap handler */
	uint64_t header_ns; /* driver copies one queue's header on one XCC */
	uint64_t ioctl_ns; /* entering and leaving the driver */
	uint64_t quantum_ns; /* a turn on hardware, when not all queues or processes fit */
};

struct model_chip {
	const char *name;
	uint32_t gfx_target_version; /* as in sysfs: 90402 */
	uint32_t n_xcc;
	uint32_t n_engines; /* shader engines of an XCC */
	uint32_t cu_per_xcc;
	uint32_t cwsr_bytes_per_cu; /* register and LDS state of a full compute unit */
	uint32_t n_cp_queues; /* hardware queue slots the driver may use */
	uint32_t n_vmid;
	uint32_t n_sdma; /* copy engines */
	bool xgmi; /* then all but two of them are for it */
	uint32_t clock_mhz;
	uint64_t hbm_bytes_per_s;
	uint64_t link_bytes_per_s; /* to host memory */
	bool save_in_host; /* where context save areas are: there, or in HBM */
	uint64_t vram_bytes;
	struct model_costs costs;
};

extern const struct model_chip model_chips[]; /* ended by a NULL name */
const struct model_chip *model_chip_find(const char *name);

enum model_ext_kind { /* of the driver's extension, abi/kfd_gpreempt.h */
	MODEL_EXT_NONE,
	MODEL_EXT_ALL_QUEUES,
	MODEL_EXT_VICTIMS, /* and victims-only is allowed */
};

struct model_config {
	const struct model_chip *chip; /* copied */
	uint32_t n_gpus;
	uint32_t kfd_minor; /* 0: 17. Below 13 there is no debug interface */
	/* Taken out: the rule of 6.5 to early 6.12, every call needs the live tracer thread. */
	bool no_debugger_clause;
	bool log_packets; /* keep model_packet records */
	enum model_ext_kind ext;
};

int model_new(const struct model_config *config, struct model **ret);
void model_free(struct model *m);
void model_freep(struct model **m);

/*
 * A populated model, as "--device model[:SPEC]" makes it. SPEC: a chip name, then optional
 * ",key=value" (gpus, occupancy in percent, jobs=0 for nobody there, seed, kfd_minor, runtime=old,
 * log, ext=1, ext=victims, scheduler=1 for the extension's to be on; save_area=host, unmap_us,
 * map_us and quantum_us change the chip). NULL: mi308x.
 * pid 1001: offline, 10 busy queues on GPU 0; 1002: online, 2 queues on GPU 0; 1003: no queue.
 * -EINVAL and a line in *ret_why (the caller's to free) when SPEC makes no sense.
 */
int model_new_preset(const char *spec, struct model **ret, char **ret_why);
/*
 * The same with nobody there unless SPEC has jobs=1, the clock at @now_ns, and records of the
 * packets of all who come.
 */
int model_new_empty(const char *spec, uint64_t now_ns, struct model **ret, char **ret_why);

/* ---- time ---- */

uint64_t model_now_ns(const struct model *m);
void model_advance(struct model *m, uint64_t ns);
uint64_t model_next_ns(const struct model *m); /* when something is due; UINT64_MAX: nothing is */

/* ---- processes ---- */

struct model_task { /* who makes a call */
	pid_t pid;
	pid_t tid;
};

enum model_rights { /* those of an administrator */
		    MODEL_RIGHTS_BY_UID, /* root has them */
		    MODEL_RIGHTS_ALL,
		    MODEL_RIGHTS_NONE, /* root without capabilities has none */
};

struct model_proc_spec {
	pid_t pid;
	uid_t uid;
	enum model_rights rights;
	const char *comm;
	const char *cgroup; /* NULL: "/" */
	uint64_t start_ticks; /* as /proc/PID/stat has it; 0: the model makes it up */
};

int model_proc_start(struct model *m, const struct model_proc_spec *spec); /* or is forked */
int model_proc_exec(struct model *m, pid_t pid); /* a new mm: the KFD process goes */
void model_proc_exit(struct model *m, pid_t pid); /* by itself or killed: the same to KFD */

/* ptrace as far as KFD looks at it. -ESRCH, -EPERM (other user, already traced). */
int model_ptrace_seize(struct model *m, struct model_task tracer, pid_t pid);
int model_ptrace_detach(struct model *m, struct model_task tracer, pid_t pid);
int model_check_tracee(const struct model *m, struct model_task tracer, pid_t pid); /* -ESRCH */
void model_thread_exit(struct model *m, struct model_task task); /* its tracees run free */
/* The threads that made calls and do not live any more exit. */
void model_bury_threads(struct model *m, pid_t pid, bool (*lives)(pid_t pid, pid_t tid));
/* May one trace the other, and so read its memory? 0, -ESRCH, -EPERM. */
int model_check_trace(const struct model *m, pid_t by, pid_t pid);
struct model_task model_tracer(const struct model *m, pid_t pid); /* pid 0: nobody */
/* No process of the machine: its /proc is the model's too. */
bool model_is_invented(const struct model *m, pid_t pid);

/* ---- the driver ---- */

int model_kfd_open(struct model *m, struct model_task task);
/*
 * An ioctl by @task on a descriptor that process @fd_owner opened. Pointers inside @arg are
 * addresses of this process; a bad one gives -EFAULT. May answer MODEL_BLOCKED.
 */
int model_ioctl(struct model *m, struct model_task task, pid_t fd_owner, unsigned long request,
		void *arg);
/* The answer @r to one who cannot wait: a call that sleeps is given up as by a signal, -EDEADLK. */
int model_not_waiting(struct model *m, struct model_task task, int r);
/* model_ioctl() for such a one. */
int model_ioctl_now(struct model *m, struct model_task task, pid_t fd_owner, unsigned long request,
		    void *arg);
/*
 * Calls from now on come from another process, of whose memory this is there: copies, in which they
 * read and write. NULL: they come from this process again.
 */
struct model_lent {
	uint64_t addr;
	void *bytes;
	size_t len;
};
void model_lend(struct model *m, const struct model_lent *lent, size_t n);
/* What opening the render node of a GPU and ACQUIRE_VM do; queues need it. */
int model_vm_acquire(struct model *m, pid_t pid, uint32_t gpu_index);
/* What became of a blocked call: true and its result once it returned. */
bool model_blocked_result(struct model *m, struct model_task task, int *ret);
void model_signal(struct model *m, struct model_task task); /* a blocked call returns -EINTR */

/*
 * The device of the extension: a file of @task's process, whose end closes it. -ENODEV: there is no
 * extension. Descriptors that calls name are this process's; BIND takes one of model_descriptor().
 */
int model_ext_open(struct model *m, struct model_task task, uint64_t *ret_file);
int model_ext_ioctl(struct model *m, struct model_task task, uint64_t file, unsigned long request,
		    void *arg);
void model_ext_close(struct model *m, uint64_t file); /* lets go of all that is held through it */

/*
 * As pidfd_getfd(2) would: what the @nth descriptor of /dev/kfd of that process says, which nobody
 * can guess, and a file that says so. -ENOENT: it has no more; -EPERM.
 */
int model_borrow(struct model *m, pid_t by, pid_t pid, unsigned int nth, uint64_t *ret);
int model_descriptor(uint64_t what);

/* A file, or with @list the names in a directory, each with a NUL; one more follows in any case. */
int model_read(struct model *m, enum gkfd_tree tree, const char *path, bool list, char **ret_text,
	       size_t *ret_len);

/* The device as a gkfd transport; takes over @m. */
extern const struct gkfd_transport gkfd_transport_model;
void *model_transport_new(struct model *m);
struct model *model_transport_get(void *data); /* borrowed; for tests and the simulator */
/* The same where tracer threads may be at work; every other call waits meanwhile. */
struct model *model_transport_lock(void *data);
void model_transport_unlock(void *data);

/* ---- memory of a process ---- */

uint64_t model_mem_map(struct model *m, pid_t pid, size_t bytes); /* 0 on failure */
/*
 * Pages that others have as well, as in mem_adopt(): the pointers of its queues are in them, and
 * whoever has them may write there whatever it likes.
 */
int model_mem_adopt(struct model *m, pid_t pid, uint64_t va, void *pages, size_t bytes);
int model_mem_read(struct model *m, pid_t pid, uint64_t va, void *buf, size_t len);
int model_mem_write(struct model *m, pid_t pid, uint64_t va, const void *buf, size_t len);

/* ---- queues and work, as a well-behaved program makes them ---- */

struct model_queue_spec {
	uint32_t gpu_index;
	uint32_t type; /* KFD_IOC_QUEUE_TYPE_* */
	uint32_t ring_packets; /* 0: 1024 */
	uint32_t priority;
	uint32_t percent_zero; /* create it inactive */
};

int model_runtime_enable(struct model *m, pid_t pid);
int model_queue_create(struct model *m, pid_t pid, const struct model_queue_spec *spec,
		       uint32_t *ret_id);

struct model_work {
	uint32_t workgroups;
	uint64_t wg_ns; /* how long one workgroup runs */
	uint32_t wg_per_cu; /* how many fit on a compute unit: 1 fills it */
	bool barrier; /* waits for all earlier packets */
	bool signal; /* has a completion signal */
};

/* Writes one packet and rings the doorbell. -ENOSPC: the ring is full. */
int model_submit(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
		 uint64_t *ret_index);
/*
 * The same where the program has moved the write pointer past @index already, as real ones do
 * before they write the packet.
 */
int model_submit_reserved(struct model *m, pid_t pid, uint32_t queue_id,
			  const struct model_work *work, uint64_t index);
/* Moves it back by one, while the program may be moving it on. */
void model_unreserve(struct model *m, pid_t pid, uint32_t queue_id);
/* Where the program has it, and how many packets that says. -ENOENT. */
int model_write_pointer(struct model *m, pid_t pid, uint32_t queue_id, uint64_t *ret_va,
			uint64_t *ret_index);
/* Keeps @depth packets of @work queued for ever, like a training loop. */
int model_loop(struct model *m, pid_t pid, uint32_t queue_id, const struct model_work *work,
	       uint32_t depth);

/*
 * Calls @completed, from within whatever moved the clock, after each packet of the queue. It may
 * submit; of the model's other calls it may make none.
 */
int model_on_complete(struct model *m, pid_t pid, uint32_t queue_id,
		      void (*completed)(void *user, uint64_t index), void *user);

/* ---- faults ---- */

enum model_fault_kind {
	MODEL_FAULT_NONE,
	MODEL_FAULT_SLOW, /* every preemption on @gpu_index takes @ns longer */
	MODEL_FAULT_STUCK_QUEUE, /* queue (@pid, @queue_id) cannot be preempted; @resettable */
	MODEL_FAULT_DEAD_SCHEDULER, /* the fence of @gpu_index never comes: 9 s, then a reset */
	MODEL_FAULT_VANISH, /* @pid exits right before the @count-th driver call from now */
	MODEL_FAULT_ACTIVATE_FAILS, /* the next ENABLE cannot activate */
};

struct model_fault {
	enum model_fault_kind kind;
	uint32_t gpu_index;
	pid_t pid;
	uint32_t queue_id;
	uint32_t count;
	uint64_t ns;
	bool resettable; /* by itself: else the whole GPU is; MES knows only that */
};

int model_fault_set(struct model *m, const struct model_fault *fault);

/* ---- the truth, for tests and reports ---- */

struct model_gpu_stats {
	uint64_t cycles; /* runlist cycles: unmap, fence, map */
	uint64_t preemptions; /* of them, those with something to unmap */
	uint64_t maps, unmaps; /* queues, summed over cycles */
	uint64_t rotations; /* the firmware changed turns by itself */
	uint64_t saved_bytes; /* by all saves */
	uint64_t save_ns; /* time all saves took */
	uint64_t resets;
	uint32_t active_queues; /* counted into the runlist */
	uint32_t total_queues;
	uint32_t processes;
};

int model_gpu_stats(const struct model *m, uint32_t gpu_index, struct model_gpu_stats *ret);
uint32_t model_gpu_id(const struct model *m, uint32_t gpu_index); /* 0: no such GPU */
uint32_t model_n_gpus(const struct model *m);
const struct model_chip *model_chip_of(const struct model *m);

struct model_queue_stats {
	bool active, suspended, evicted, is_new, mapped;
	bool held; /* by the extension */
	bool on; /* mapped, and on hardware this turn */
	uint64_t completed; /* packets */
	uint64_t resident; /* workgroups on compute units now */
	uint64_t saved; /* workgroups in the save area now */
};

int model_queue_stats(const struct model *m, pid_t pid, uint32_t queue_id,
		      struct model_queue_stats *ret);

struct model_packet { /* with log_packets */
	uint64_t index;
	uint64_t submitted_ns, started_ns, done_ns; /* done 0: not yet */
	uint64_t executed_ns; /* summed over its workgroups: workgroups x wg_ns when done */
	uint32_t workgroups;
	uint32_t finished; /* workgroups; more than once each is a lie */
	uint32_t saves; /* how often some of it was saved */
};

/* Copies up to @max records from @first on, in order of submission; how many. */
size_t model_packets(const struct model *m, pid_t pid, uint32_t queue_id, uint64_t first,
		     struct model_packet *ret, size_t max);
/* Drops records of packets before @before from the oldest on, up to one that is not done. */
void model_forget_packets(struct model *m, pid_t pid, uint32_t queue_id, uint64_t before);

#endif
