/* SPDX-License-Identifier: MIT */
/*
 * libgpreempt: look at the GPU queues of other processes, and take them off the GPU and back.
 *
 * Everything hangs from a context; the library has no global state, prints nothing and never
 * exits. Calls return 0 or a count, or -errno; results come through ret_ parameters, untouched
 * on failure. After a failure gpreempt_get_error() has a line for people and a hint.
 *
 * Structs start with their size, which the caller sets so that they can grow; of an array the
 * first entry's size counts for all. A size that was forgotten, or is shorter than the struct ever
 * was, is -EINVAL, and so are options with fields set that this library does not know: nothing was
 * done then, but that a call to resume has resumed. A field the device does not know has its bit
 * missing in "valid". Calls that fill an array return how many entries there are, which may be more
 * than the @max they filled; with @max 0 the array may be NULL.
 *
 * A context and what hangs from it may be used by one thread at a time. While anything is
 * attached the process has a guard beside it: a process that is stopped or hangs for two
 * seconds is killed, because its death is what makes the driver resume the job, and what frees
 * a job from a tracer that would stop it at its next signal. It is made undumpable for the same
 * reason (gpreempt_attach()). Pid 1 of a container cannot be guarded and is refused.
 *
 * On level K3, the kernel extension, there is neither a guard nor a tracer: the driver itself lets
 * go when the process ends, or when it stops or hangs and does not renew its holds, which a thread
 * of the library does.
 *
 * A program that waits for any child (waitpid(-1)) may see stops of attached processes: they
 * are not its children, and it should pass over them. It delays their signals a little.
 *
 * On NVIDIA GPUs ("nvrm") what is suspended are channel groups, the contexts of CUDA: they are
 * listed as queues. Nobody is traced. Nothing there tells what a group has to do, and the driver
 * does not resume what its holder left: the guard does, and should that have been killed too,
 * gpreempt_release(). What AMD's driver alone has is -EOPNOTSUPP there: hardware queue slots, grace
 * periods, GPREEMPT_ATTACH_PAUSE, monitors, the caller's own queues.
 */
#ifndef GPREEMPT_H
#define GPREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pollfd;
struct gpreempt_ctx;
struct gpreempt_process;
struct gpreempt_monitor;

/* ---- errors ---- */

enum gpreempt_error_kind { /* also the exit statuses of gpreempt(1) */
	GPREEMPT_ERROR_NONE = 0,
	GPREEMPT_ERROR_FAILED = 1,
	GPREEMPT_ERROR_USAGE = 2, /* the call makes no sense */
	GPREEMPT_ERROR_ABSENT = 3, /* no such device, daemon, process or queue */
	GPREEMPT_ERROR_REFUSED = 4, /* rights, policy, not supported, or somebody else debugs it */
};

struct gpreempt_error {
	size_t size;
	enum gpreempt_error_kind kind;
	int error; /* -errno */
	char message[256];
	char hint[256]; /* what to do about it; may be empty */
};

/*
 * The last failure of a call on @ctx or on what hangs from it. Fills nothing where the size of *ret
 * was forgotten. Since: 0.1
 */
void gpreempt_get_error(const struct gpreempt_ctx *ctx, struct gpreempt_error *ret);

/* ---- context ---- */

/*
 * @device: "kfd", "nvrm", "model" or "model:SPEC"; "auto" or NULL: AMD's driver where it is
 * there, else NVIDIA's. Opens nothing yet but finds out whether it is there: -ENODEV when not,
 * -EINVAL when the name makes no sense. There is no context to ask then, so *ret_error, which
 * may be NULL, is filled. Since: 0.1
 */
int gpreempt_open(const char *device, struct gpreempt_ctx **ret, struct gpreempt_error *ret_error);
struct gpreempt_ctx *gpreempt_ref(struct gpreempt_ctx *ctx); /* Since: 0.1 */
/*
 * Returns NULL. With the last reference everything is resumed and given back: processes and
 * monitors of this context are gone then. Accepts NULL. Since: 0.1
 */
struct gpreempt_ctx *gpreempt_unref(struct gpreempt_ctx *ctx);
/* "kfd", "nvrm" or "model". Since: 0.1 */
const char *gpreempt_backend(const struct gpreempt_ctx *ctx);
/* Times come from a model and must be shown as such. Since: 0.1 */
bool gpreempt_is_modelled(const struct gpreempt_ctx *ctx);

/* What drivers may have or not. */
enum gpreempt_ability {
	GPREEMPT_HAS_QUEUES = 1 << 0, /* what is held are queues; else channel groups */
	GPREEMPT_HAS_HOLDS = 1 << 1, /* tells what is held, whoever holds it */
	GPREEMPT_HAS_SLOTS = 1 << 2, /* of hardware queue slots */
	GPREEMPT_HAS_PROGRESS = 1 << 3, /* of what queues have to do */
	GPREEMPT_HAS_GRACE = 1 << 4, /* a grace period for what runs */
	GPREEMPT_HAS_OWN = 1 << 5, /* the caller's own queues can be suspended */
	GPREEMPT_HAS_BRAKE = 1 << 6, /* a GPU can be stopped as a whole, with an extension */
	GPREEMPT_HAS_SCHEDULER = 1 << 7, /* one inside the driver, with an extension */
};

/* enum gpreempt_ability. Asks nothing of the driver. Since: 0.1 */
unsigned int gpreempt_abilities(const struct gpreempt_ctx *ctx);
/* The device's clock; virtual on a model. Since: 0.1 */
uint64_t gpreempt_now_ns(struct gpreempt_ctx *ctx);
/*
 * Lets time pass on the device's clock until a descriptor is ready (how many) or @timeout_ns is
 * over (0; UINT64_MAX: never). Also keeps the promise of gpreempt_keepalive(). Since: 0.1
 */
int gpreempt_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t timeout_ns);

/* ---- the machine; attaches to nobody ---- */

enum {
	GPREEMPT_DEVICE_VERSION = 1 << 0,
	GPREEMPT_DEVICE_YAMA = 1 << 1,
	GPREEMPT_DEVICE_DRIVER = 1 << 2,
	GPREEMPT_DEVICE_SECURE_BOOT = 1 << 3,
	GPREEMPT_DEVICE_LOCKDOWN = 1 << 4,
};

struct gpreempt_device_info {
	size_t size;
	uint64_t valid;
	char backend[16]; /* "kfd", "nvrm", "model" */
	char name[64];
	uint32_t kfd_major, kfd_minor; /* of AMD's driver's interface */
	uint32_t yama_scope; /* kernel.yama.ptrace_scope */
	bool debugfs; /* readable: priorities, classes and used slots can be told */
	bool global_pids; /* false: inside a pid namespace, where sysfs speaks of other pids */
	uint32_t hidden_gpus; /* that this process may not use */
	char driver_version[64]; /* as packages of the driver name it; the kernel's own does not */
	bool emulated; /* the driver is real, its GPU is not: its times are nobody's */
	char module[16]; /* NVIDIA's kernel module: "open" or "proprietary"; else empty */
	bool secure_boot;
	char lockdown[20]; /* of the kernel: "none", "integrity" or "confidentiality" */
	bool signed_modules_only; /* for one of these reasons, or because it was told to */
	char blind[128]; /* why gpreemptd would not see work of jobs here; empty: it would */
	/*
	 * The group of cgroup v1's freezer that this process is in: from there only processes in it
	 * can be held, as it could not let go of others when it is frozen. Empty: none.
	 */
	char freezer[128];
};

/* Opens the device; where that fails only the version is not valid. Since: 0.1 */
int gpreempt_get_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *ret);

enum {
	GPREEMPT_GPU_XCC = 1 << 0,
	GPREEMPT_GPU_CU = 1 << 1,
	GPREEMPT_GPU_HQD_TOTAL = 1 << 2,
	GPREEMPT_GPU_SCHEDULER = 1 << 3,
	GPREEMPT_GPU_GFX = 1 << 4,
	GPREEMPT_GPU_CWSR = 1 << 5,
	GPREEMPT_GPU_FIRMWARE = 1 << 6,
	GPREEMPT_GPU_PCI = 1 << 7,
	GPREEMPT_GPU_UUID = 1 << 8,
	GPREEMPT_GPU_MIG = 1 << 9,
};

struct gpreempt_gpu {
	size_t size;
	uint64_t valid;
	uint32_t index; /* 0 is the first */
	uint32_t gpu_id;
	char name[64];
	char gfx[16]; /* "gfx942" */
	char scheduler[16]; /* "hws", "mes", "no-hws" */
	uint32_t xcc;
	uint32_t cu;
	uint32_t hqd_total; /* compute queue slots, not multiplied by XCCs */
	uint64_t cwsr_bytes; /* save area of one queue, all XCCs together */
	uint32_t fw_version; /* of the compute microcode (MEC), which preempts */
	char pci[16]; /* "0000:18:00.0" */
	char uuid[48];
	bool mig; /* cut into instances, which are left alone */
};

/* Since: 0.1 */
int gpreempt_get_gpus(struct gpreempt_ctx *ctx, struct gpreempt_gpu *ret, size_t max);

struct gpreempt_level {
	size_t size;
	char level[8]; /* "K3" ... "K0"; "N2", "N1" */
	bool available;
	char reason[192]; /* why not, or what it does */
};

/* What can be done on this machine, best first. Since: 0.1 */
int gpreempt_get_levels(struct gpreempt_ctx *ctx, struct gpreempt_level *ret, size_t max);

struct gpreempt_self_test {
	size_t size;
	uint64_t suspend_ns, frozen_ns; /* until the call returned; until nothing ran any more */
	uint64_t resume_ns, running_ns; /* until the call returned; until it ran again */
};

/*
 * Whether NVIDIA's driver does what is thought of it, tried on a context of a child of the caller's
 * on one GPU, by libcuda's index. -EIO: it does not; -EOPNOTSUPP: there is no libcuda to try it
 * with, or no such driver. Takes a few seconds. Since: 0.1
 */
int gpreempt_self_test(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret);

enum {
	GPREEMPT_HQD_TOTAL = 1 << 0,
	GPREEMPT_HQD_ACTIVE = 1 << 1, /* with TOTAL also: free */
	GPREEMPT_HQD_RESERVED = 1 << 2,
	GPREEMPT_HQD_OFFLINE = 1 << 3,
	GPREEMPT_HQD_QUEUES = 1 << 4,
	GPREEMPT_HQD_HELD = 1 << 5, /* with it: stopped */
};

struct gpreempt_hqd_status {
	size_t size;
	uint64_t valid;
	uint32_t gpu_id;
	uint32_t queues; /* compute queues that exist; may be more than there are slots */
	uint32_t total; /* slots */
	uint32_t active; /* in use: as the driver or the hardware tells, else as there are queues */
	uint32_t free;
	uint32_t online_reserved;
	uint32_t offline_used;
	uint32_t held; /* queues that are off the GPU through the kernel extension */
	bool stopped; /* gpreempt_stop_gpu(), by anybody */
};

/* One entry per GPU. Since: 0.1 */
int gpreempt_get_hqd_status(struct gpreempt_ctx *ctx, struct gpreempt_hqd_status *ret, size_t max);

/* ---- processes and queues; attaches to nobody ---- */

/* Told by the priority of a process's queues, where debugfs can be read. */
enum gpreempt_class {
	GPREEMPT_CLASS_UNKNOWN,
	GPREEMPT_CLASS_ONLINE, /* a queue of priority 11 or more */
	GPREEMPT_CLASS_OFFLINE, /* all queues of priority 0 to 6 */
};

enum {
	GPREEMPT_PROC_VRAM = 1 << 0,
	GPREEMPT_PROC_COMM = 1 << 1, /* with it: uid, state, tracer_pid */
};

#define GPREEMPT_MAX_GPUS 64

struct gpreempt_process_info {
	size_t size;
	uint64_t valid;
	pid_t pid;
	uid_t uid;
	char comm[16];
	char state[16]; /* "running", "stopped", "attached" (by us), "traced", "held", "zombie" */
	enum gpreempt_class job_class;
	uint32_t queues;
	uint32_t gpus[GPREEMPT_MAX_GPUS]; /* gpu ids it has queues on */
	uint32_t n_gpus;
	pid_t tracer_pid; /* 0: nobody */
	uint64_t vram_bytes;
	bool hidden; /* queues and gpus are not known: no right to look, or it shares a context */
};

/* Every process that has opened the driver, those without queues too, by pid. Since: 0.1 */
int gpreempt_list_processes(struct gpreempt_ctx *ctx, struct gpreempt_process_info *ret,
			    size_t max);
/*
 * The pids of those that could be held: with queues, and others than the caller. How many there
 * are, of which @max at most are written. On AMD GPUs no process can keep this waiting, as it can
 * whatever reads its memory or its files in /proc. Since: 0.1
 */
int gpreempt_list_pids(struct gpreempt_ctx *ctx, pid_t *ret, size_t max);

enum {
	GPREEMPT_QUEUE_RING_BASE = 1 << 0,
	GPREEMPT_QUEUE_POINTERS = 1 << 1, /* addresses */
	GPREEMPT_QUEUE_CWSR_BASE = 1 << 2,
	GPREEMPT_QUEUE_CWSR_BYTES = 1 << 3,
	GPREEMPT_QUEUE_PRIORITY = 1 << 4,
	GPREEMPT_QUEUE_PENDING = 1 << 5,
	GPREEMPT_QUEUE_STATE = 1 << 6,
	GPREEMPT_QUEUE_EXCEPTIONS = 1 << 7,
	GPREEMPT_QUEUE_INDICES = 1 << 8,
	GPREEMPT_QUEUE_CHANNELS = 1 << 9,
	GPREEMPT_QUEUE_SLICE = 1 << 10,
};

enum gpreempt_queue_type {
	GPREEMPT_QUEUE_COMPUTE_PM4 = 0,
	GPREEMPT_QUEUE_SDMA = 1,
	GPREEMPT_QUEUE_COMPUTE_AQL = 2,
	GPREEMPT_QUEUE_SDMA_XGMI = 3,
	GPREEMPT_QUEUE_SDMA_BY_ENGINE = 4,
	GPREEMPT_QUEUE_COMPUTE = 5, /* which packets it takes is not known */
	GPREEMPT_QUEUE_OTHER = 6,
	GPREEMPT_QUEUE_GROUP_COMPUTE = 7, /* a channel group of an NVIDIA GPU */
	GPREEMPT_QUEUE_GROUP_COPY = 8, /* the same, whose engine only copies */
};

struct gpreempt_queue {
	size_t size;
	uint64_t valid;
	pid_t pid;
	uint32_t queue_id; /* within the process */
	uint32_t gpu_id;
	enum gpreempt_queue_type type;
	enum gpreempt_class job_class; /* of its process */
	uint32_t priority; /* 0..15 */
	uint64_t ring_base, ring_bytes;
	uint64_t read_ptr_addr, write_ptr_addr;
	uint64_t read_index, write_index; /* AQL: packets; PM4: dwords; SDMA: bytes */
	uint64_t cwsr_base, cwsr_bytes; /* bytes of all XCCs together */
	uint64_t exceptions;
	uint64_t pending; /* published packets not yet taken */
	char state[16]; /* "idle", "running", "pending", "blocked", "suspended" */
	uint32_t channels; /* of a channel group */
	uint64_t slice_us; /* how long it runs before another gets its turn */
};

const char *gpreempt_queue_type_name(enum gpreempt_queue_type type); /* Since: 0.1 */
const char *gpreempt_class_name(enum gpreempt_class job_class); /* Since: 0.1 */

struct gpreempt_queue_filter {
	size_t size;
	enum gpreempt_class job_class; /* UNKNOWN: any */
	int min_priority, max_priority; /* -1: any; else unknown priorities do not match */
};

/*
 * The queues of all processes that match, by pid and id. Ids come from sysfs and the rest from
 * debugfs, which has no ids: among queues of one process that look alike only what all of them
 * share is known. @filter may be NULL. On an NVIDIA GPU only of processes the caller may trace,
 * whose descriptors are borrowed for a moment. Since: 0.1
 */
int gpreempt_get_all_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
			    struct gpreempt_queue *ret, size_t max);
/* Offline queues known to have nothing to do. Since: 0.1 */
int gpreempt_find_idle_offline_queues(struct gpreempt_ctx *ctx, struct gpreempt_queue *ret,
				      size_t max);

/* ---- one process, attached ---- */

enum {
	/* Nothing will be suspended. */
	GPREEMPT_ATTACH_LOOK_ONLY = 1 << 0,
	/*
	 * Level K1: pause it through the driver's checkpoint interface, which any ROCm runtime
	 * can stand but needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. All queues or none can
	 * be suspended then, a grace period has no effect, and a snapshot has only what sysfs
	 * tells. The driver does not end a pause when the caller dies: the guard does, and
	 * should that have been killed too, gpreempt_release().
	 */
	GPREEMPT_ATTACH_PAUSE = 1 << 1,
	/* Level K2, the driver's debug interface, also where the kernel extension could be used. */
	GPREEMPT_ATTACH_DEBUG = 1 << 2,
};

/*
 * Where the kernel extension is loaded and can be used (level K3) it costs nothing, and nobody is
 * traced. Else it costs a runlist cycle on every GPU the process may use; nothing with
 * GPREEMPT_ATTACH_PAUSE. On an NVIDIA GPU it costs the process nothing: its descriptors are
 * borrowed. Since: 0.1
 */
int gpreempt_attach(struct gpreempt_ctx *ctx, pid_t pid, unsigned int flags,
		    struct gpreempt_process **ret);
/* Resumes, detaches, frees; returns NULL. Accepts NULL. Since: 0.1 */
struct gpreempt_process *gpreempt_detach(struct gpreempt_process *p);
pid_t gpreempt_process_pid(const struct gpreempt_process *p); /* Since: 0.1 */
/* Readable when the attachment has ended by itself (exit, exec, another debugger). Since: 0.1 */
int gpreempt_process_fd(const struct gpreempt_process *p);
/*
 * 0: attached. -ESRCH: exited or runs another program; -EPERM: taken by another debugger;
 * -EOWNERDEAD: the guard died; -EIO: a preemption failed; -EAGAIN: it could not be held any
 * longer (its runtime ended; level K3: the caller stood still). Nothing is held then. Since: 0.1
 */
int gpreempt_process_check(struct gpreempt_process *p);

/* All queues, newest first; ret_time_ns may be NULL. Since: 0.1 */
int gpreempt_snapshot(struct gpreempt_process *p, struct gpreempt_queue *ret, size_t max,
		      uint64_t *ret_time_ns);
/* 1: has work waiting or running; 0: idle; -ENODATA: cannot be told, as of NVIDIA's. Since: 0.1 */
int gpreempt_is_queue_active(struct gpreempt_process *p, uint32_t queue_id);

#define GPREEMPT_GRACE_MIN 1
#define GPREEMPT_GRACE_MAX 255

struct gpreempt_suspend_options {
	size_t size;
	uint32_t grace_kclk; /* thousands of GPU clocks a wave gets to end by itself; 0: 1 */
	uint64_t longest_ns; /* resumed by itself after so long; 0: no such limit */
	bool want_saved; /* also find out how much was saved, after the fact */
};

struct gpreempt_timing {
	size_t size;
	uint64_t call_ns; /* around the driver call, by the device's clock */
	uint32_t queues;
	bool has_saved;
	uint64_t saved_bytes; /* wave state moved off the GPU */
	bool has_save_ns;
	uint64_t save_ns; /* moving it; only a model knows */
};

/*
 * Takes queues off the GPU, all or none; @ids NULL: every queue of the process, also those it
 * creates meanwhile (on an NVIDIA GPU a moment later). @options and @ret may be NULL. Since: 0.1
 */
int gpreempt_suspend_queues(struct gpreempt_process *p, const uint32_t *ids, size_t n,
			    const struct gpreempt_suspend_options *options,
			    struct gpreempt_timing *ret);
/* Everything suspended of @p; with nothing suspended it does nothing. Since: 0.1 */
int gpreempt_resume_queues(struct gpreempt_process *p, struct gpreempt_timing *ret);
/* The ids the last suspension took; none after a resumption. Since: 0.1 */
int gpreempt_held_queues(const struct gpreempt_process *p, uint32_t *ret, size_t max);

/*
 * All queues of several processes: all or none. On AMD GPUs this is one driver call for those
 * attached on level K3, else one per process; on NVIDIA GPUs as few as there can be. Since: 0.1
 */
int gpreempt_batch_unmap_queues(struct gpreempt_process *const *procs, size_t n,
				const struct gpreempt_suspend_options *options);
int gpreempt_fast_remap_queues(struct gpreempt_process *const *procs, size_t n); /* Since: 0.1 */

/* ---- the caller's own queues (level K0) ---- */

struct gpreempt_own_queue {
	size_t size;
	uint32_t queue_id;
	/* What it was created with; only for where the debug interface is missing. */
	uint32_t priority; /* 0..15 */
	uint64_t ring_base, ring_bytes; /* 0: not known */
};

/*
 * Takes queues of the calling process off the GPU, all or none, in one cycle: needs no rights,
 * no other process and no guard. @queues NULL: all it has now. Where the driver or the ROCm
 * runtime has no debug interface each queue costs a cycle, and its ring must be known
 * (-EOPNOTSUPP otherwise). The caller must not wait for work on these queues before it has
 * resumed them. Of @options, only the grace period counts. -EBUSY: somebody debugs the caller;
 * -EALREADY: resume first. @options and @ret may be NULL. Since: 0.1
 */
int gpreempt_suspend_own(struct gpreempt_ctx *ctx, const struct gpreempt_own_queue *queues,
			 size_t n, const struct gpreempt_suspend_options *options,
			 struct gpreempt_timing *ret);
/* Everything suspended so; with nothing suspended it does nothing. Since: 0.1 */
int gpreempt_resume_own(struct gpreempt_ctx *ctx, struct gpreempt_timing *ret);

/*
 * From now on, while anything is suspended, the caller promises to call this or
 * gpreempt_wait() at least once a second; a process that does not is killed, or, on level K3,
 * loses what it holds. Since: 0.1
 */
int gpreempt_keepalive(struct gpreempt_ctx *ctx);
/* Readable when the guard has died; what was suspended is resumed then. -1: none. Since: 0.1 */
int gpreempt_guard_fd(const struct gpreempt_ctx *ctx);

/* ---- sampling ---- */

struct gpreempt_count { /* how often something was seen */
	uint32_t key;
	uint64_t count;
};

struct gpreempt_stats {
	size_t size;
	uint64_t samples;
	uint32_t min, max; /* queues in a sample */
	double avg;
	bool stable; /* the same ids in every sample */
	size_t n_ids, n_gpus, n_types;
	const struct gpreempt_count *ids, *gpus, *types; /* by key; until the next sample */
	char advice[256];
};

/* Since: 0.1 */
int gpreempt_monitor_new(struct gpreempt_process *p, struct gpreempt_monitor **ret);
/* Returns NULL, accepts NULL; the process stays attached. Since: 0.1 */
struct gpreempt_monitor *gpreempt_monitor_free(struct gpreempt_monitor *mon);
/*
 * Takes a snapshot into the statistics; *ret_queues (borrowed until the next sample) and
 * *ret_time_ns may be NULL. How many queues. Since: 0.1
 */
int gpreempt_monitor_sample(struct gpreempt_monitor *mon, const struct gpreempt_queue **ret_queues,
			    uint64_t *ret_time_ns);
/* -ENODATA before the first sample. Since: 0.1 */
int gpreempt_monitor_stats(struct gpreempt_monitor *mon, struct gpreempt_stats *ret);

/* ---- machine-wide ---- */

/*
 * Ends holds, whoever made them: asks the holder, kills it when it does not answer, takes
 * orphaned sessions back and ends orphaned pauses, where the caller has the right to. @pids
 * NULL: all of them. Writes the pids let go to @ret; how many. Tries them all; when some could
 * not be let go while others could, the count is of those, and gpreempt_get_error(), empty
 * otherwise, has the first failure. NVIDIA's driver does not tell whether anything was held:
 * there everybody who could be let go counts, and of all processes those the caller may not
 * trace are passed over. Since: 0.1
 */
int gpreempt_release(struct gpreempt_ctx *ctx, const pid_t *pids, size_t n, pid_t *ret, size_t max);

/*
 * Level K3's brake: nothing of any process runs on the GPU, until gpreempt_start_gpu(), until
 * @longest_ns, at most a minute, is over or the caller is gone. Another call sets the time anew.
 * For administrators. -EOPNOTSUPP: there is no kernel extension; -ENODEV: no such GPU. Since: 0.1
 */
int gpreempt_stop_gpu(struct gpreempt_ctx *ctx, uint32_t gpu_id, uint64_t longest_ns);
/* -EALREADY: it is not stopped, or not through this context. Since: 0.1 */
int gpreempt_start_gpu(struct gpreempt_ctx *ctx, uint32_t gpu_id);

/* ---- for the scheduler inside the driver (gpreempt/kernel.h): -EOPNOTSUPP without ---- */

#define GPREEMPT_ALL_QUEUES UINT32_MAX

enum { /* flags of a queue policy */
       GPREEMPT_POLICY_LAZY = 1 << 0, /* no slot before there is work */
       GPREEMPT_POLICY_AUTO_DEACTIVATE = 1 << 1, /* and none while there is none */
       GPREEMPT_POLICY_PREEMPTIBLE = 1 << 2, /* the default of offline processes */
};

/*
 * Of a process as a whole: @queue_id is GPREEMPT_ALL_QUEUES, another is -EOPNOTSUPP. Without
 * CAP_SYS_ADMIN only with GPREEMPT_POLICY_PREEMPTIBLE and where no administrator has set anything:
 * -EPERM. Since: 0.1
 */
int gpreempt_set_queue_policy(struct gpreempt_ctx *ctx, pid_t pid, uint32_t queue_id,
			      uint32_t flags);
/*
 * Of the slots of a GPU, or of all (UINT32_MAX), so many are kept for online queues, and offline
 * ones have so many at most. Both 0: nothing is kept. For administrators. -ENOENT: the scheduler is
 * off; -ENODEV: no such GPU; -EINVAL: more than 100 together. Since: 0.1
 */
int gpreempt_set_hqd_reservation(struct gpreempt_ctx *ctx, uint32_t gpu_id, uint32_t online_percent,
				 uint32_t offline_percent);
/*
 * Work of @pid is about to come: told to the daemon, and where none runs to the scheduler inside
 * the driver, where that is on. Since: 0.1
 */
int gpreempt_hint(struct gpreempt_ctx *ctx, pid_t pid);

#ifdef __cplusplus
}
#endif

#endif
