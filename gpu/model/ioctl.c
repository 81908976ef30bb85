/* SPDX-License-Identifier: MIT */
/*
 * The entry of the driver: kfd_ioctl() of Linux 6.12 kfd_chardev.c, and its calls about memory,
 * clocks and checkpoints. The checks of their arguments are the driver's; where the driver would
 * then hand out a thing the model does not have, the answer is -EOPNOTSUPP:
 *
 *   ALLOC_MEMORY_OF_GPU    no device memory
 *   SMI_EVENTS             no event stream
 *   IMPORT_DMABUF          no dma-buf, nor can one be asked about
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "abi/kfd_memory.h"
#include "abi/mqd_v9.h"
#include "gpu/model/driver.h"

#define FIRST_DEBUG_MINOR 13 /* RUNTIME_ENABLE and DBG_TRAP came with 1.13 */
#define CACHE_POLICY_LAST 1u /* 0 coherent, 1 non-coherent */
#define GPU_COUNTER_NS 10u /* 100 MHz */
#define TASK_SIZE_MAX ((1ull << 47) - PAGE_BYTES) /* x86-64, four page table levels */

/* sizeof the driver's kfd_criu_*_priv_data */
#define PROCESS_PRIV_BYTES 8u
#define DEVICE_PRIV_BYTES 8u
#define QUEUE_PRIV_BYTES 120u
#define EVENT_PRIV_BYTES 64u

/*
 * ---- memory of the caller ----
 *
 * A pointer may be wrong. Of another process's memory only what it lent is there; for our own the
 * kernel copies, and says so instead of crashing.
 */

void model_lend(struct model *m, const struct model_lent *lent, size_t n)
{
	m->lent = lent;
	m->n_lent = n;
}

static void *find_lent(const struct model *m, uint64_t addr, size_t n)
{
	for (size_t i = 0; i < m->n_lent; i++) {
		const struct model_lent *l = &m->lent[i];

		if (addr >= l->addr && n <= l->len && addr - l->addr <= l->len - n)
			return (char *)l->bytes + (addr - l->addr);
	}
	return NULL;
}

/* Between our @mine and the caller's @addr. */
static int copy(const struct model *m, void *mine, uint64_t addr, size_t n, bool to_user)
{
	struct iovec local = { .iov_base = mine, .iov_len = n };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = n };
	void *lent = m->lent ? find_lent(m, addr, n) : NULL;
	ssize_t done = -1;

	if (!n)
		return 0;
	if (lent) {
		memcpy(to_user ? lent : mine, to_user ? mine : lent, n);
		return 0;
	}
	if (!m->lent)
		done = (to_user ? process_vm_writev : process_vm_readv)(getpid(), &local, 1,
									&remote, 1, 0);
	return done == (ssize_t)n ? 0 : -EFAULT;
}

int model_copy_from_user(const struct model *m, void *to, uint64_t from, size_t n)
{
	return copy(m, to, from, n, false);
}

int model_copy_to_user(const struct model *m, uint64_t to, const void *from, size_t n)
{
	return copy(m, (void *)from, to, n, true);
}

bool model_access_ok(uint64_t addr)
{
	return addr <= TASK_SIZE_MAX;
}

/* ---- calls ---- */

static int get_version(struct call *c, void *data)
{
	struct kfd_ioctl_get_version_args *a = data;

	a->major_version = KFD_IOCTL_MAJOR_VERSION;
	a->minor_version = c->m->config.kfd_minor;
	return 0;
}

static int get_clock_counters(struct call *c, void *data)
{
	struct kfd_ioctl_get_clock_counters_args *a = data;
	uint64_t now = model_now_ns(c->m);
	bool known = model_pdd_by_id(c->m, c->kproc, a->gpu_id);

	a->gpu_clock_counter = known ? now / GPU_COUNTER_NS : 0;
	a->cpu_clock_counter = now;
	a->system_clock_counter = now;
	a->system_clock_freq = NSEC_PER_SEC;
	return 0;
}

static struct kfd_process_device_apertures apertures_of(const struct model_gpu *gpu)
{
	return (struct kfd_process_device_apertures){
		.lds_base = MODEL_LDS_BASE,
		.lds_limit = MODEL_LDS_BASE | UINT32_MAX,
		.scratch_base = MODEL_SCRATCH_BASE,
		.scratch_limit = MODEL_SCRATCH_BASE | UINT32_MAX,
		.gpuvm_base = MODEL_GPUVM_BASE,
		.gpuvm_limit = MODEL_GPUVM_LIMIT,
		.gpu_id = gpu->id,
	};
}

static int get_apertures(struct call *c, void *data)
{
	struct kfd_ioctl_get_process_apertures_args *a = data;

	for (uint32_t i = 0; i < MIN(c->m->config.n_gpus, (uint32_t)NUM_OF_SUPPORTED_GPUS); i++)
		a->process_apertures[a->num_of_nodes++] = apertures_of(&c->m->gpus[i]);
	return 0;
}

static int get_apertures_new(struct call *c, void *data)
{
	struct kfd_ioctl_get_process_apertures_new_args *a = data;
	struct kfd_process_device_apertures all[MODEL_MAX_GPUS];
	uint32_t n = MIN(a->num_of_nodes, c->m->config.n_gpus);

	if (a->num_of_nodes == 0) {
		a->num_of_nodes = c->m->config.n_gpus;
		return 0;
	}
	if (a->num_of_nodes > c->m->config.n_gpus + 1) /* nodes of the topology */
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		all[i] = apertures_of(&c->m->gpus[i]);
	a->num_of_nodes = n;
	return model_copy_to_user(c->m, a->kfd_process_device_apertures_ptr, all,
				  n * sizeof(all[0]));
}

/* ---- memory ---- */

int model_vm_acquire(struct model *m, pid_t pid, uint32_t gpu_index)
{
	struct model_proc *p = model_proc_find(m, pid);

	if (!p || !p->kproc)
		return -ESRCH;
	if (gpu_index >= m->config.n_gpus)
		return -ENODEV;
	p->kproc->pdds[gpu_index].vm_acquired = true;
	return 0;
}

/* No descriptor of this process is a render node of a modelled GPU: model_vm_acquire() is. */
static int acquire_vm(struct call *c, void *data)
{
	const struct kfd_ioctl_acquire_vm_args *a = data;
	struct model_pdd *pdd;

	if (fcntl((int)a->drm_fd, F_GETFD) < 0)
		return -EINVAL;
	pdd = model_pdd_by_id(c->m, c->kproc, a->gpu_id);
	if (!pdd)
		return -EINVAL;
	return pdd->vm_acquired ? -EBUSY : -EINVAL;
}

static int need_vm(struct call *c, uint32_t gpu_id, int without)
{
	struct model_pdd *pdd = model_pdd_by_id(c->m, c->kproc, gpu_id);

	if (!pdd)
		return -EINVAL;
	return pdd->vm_acquired ? 0 : without;
}

static int alloc_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_alloc_memory_of_gpu_args *a = data;
	int r;

	if (!a->size)
		return -EINVAL;
	r = need_vm(c, a->gpu_id, -ENODEV);
	return r < 0 ? r : -EOPNOTSUPP;
}

static int check_device_array(const struct model *m, uint64_t array, uint32_t n, uint32_t n_success)
{
	_cleanup_free_ uint32_t *ids = NULL;

	if (!n || n_success > n)
		return -EINVAL;
	if (n > KMALLOC_MAX_BYTES / sizeof(*ids))
		return -ENOMEM;
	ids = calloc(n, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	return model_copy_from_user(m, ids, array, n * sizeof(*ids));
}

static int map_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_map_memory_to_gpu_args *a = data;
	int r = check_device_array(c->m, a->device_ids_array_ptr, a->n_devices, a->n_success);

	if (r == 0)
		r = need_vm(c, (uint32_t)(a->handle >> 32), -ENODEV);
	return r < 0 ? r : -ENOMEM;
}

static int unmap_memory(struct call *c, void *data)
{
	const struct kfd_ioctl_unmap_memory_from_gpu_args *a = data;
	int r = check_device_array(c->m, a->device_ids_array_ptr, a->n_devices, a->n_success);

	if (r < 0)
		return r;
	return model_pdd_by_id(c->m, c->kproc, (uint32_t)(a->handle >> 32)) ? -ENOMEM : -EINVAL;
}

static int set_memory_policy(struct call *c, void *data)
{
	const struct kfd_ioctl_set_memory_policy_args *a = data;

	if (a->default_policy > CACHE_POLICY_LAST || a->alternate_policy > CACHE_POLICY_LAST)
		return -EINVAL;
	return need_vm(c, a->gpu_id, -ESRCH);
}

static int set_trap_handler(struct call *c, void *data)
{
	const struct kfd_ioctl_set_trap_handler_args *a = data;

	return need_vm(c, a->gpu_id, -ESRCH);
}

static int set_scratch(struct call *c, void *data)
{
	const struct kfd_ioctl_set_scratch_backing_va_args *a = data;

	return need_vm(c, a->gpu_id, -ENODEV);
}

static int get_tile_config(struct call *c, void *data)
{
	struct kfd_ioctl_get_tile_config_args *a = data;

	if (!model_pdd_by_id(c->m, c->kproc, a->gpu_id))
		return -EINVAL;
	a->num_tile_configs = 0;
	a->num_macro_tile_configs = 0;
	return 0;
}

static int available_memory(struct call *c, void *data)
{
	struct kfd_ioctl_get_available_memory_args *a = data;
	struct model_pdd *pdd = model_pdd_by_id(c->m, c->kproc, a->gpu_id);
	uint64_t used = 0;

	if (!pdd)
		return -EINVAL;
	for (struct model_kproc *k = c->m->kprocs; k; k = k->next)
		used += k->pdds[pdd->gpu->index].vram_bytes;
	a->available = c->m->config.chip->vram_bytes - MIN(used, c->m->config.chip->vram_bytes);
	return 0;
}

/* ---- sharing ---- */

static int dmabuf_info(struct call *c, void *data)
{
	const struct kfd_ioctl_get_dmabuf_info_args *a = data;

	return fcntl((int)a->dmabuf_fd, F_GETFD) < 0 ? -EBADF : -EINVAL;
}

static int import_dmabuf(struct call *c, void *data)
{
	const struct kfd_ioctl_import_dmabuf_args *a = data;
	int r = need_vm(c, a->gpu_id, -ENODEV);

	if (r < 0)
		return r;
	return fcntl((int)a->dmabuf_fd, F_GETFD) < 0 ? -EBADF : -EINVAL;
}

static int smi_events(struct call *c, void *data)
{
	const struct kfd_ioctl_smi_events_args *a = data;

	return model_pdd_by_id(c->m, c->kproc, a->gpuid) ? -EOPNOTSUPP : -EINVAL;
}

/* ---- CRIU_OP as far as it stops and starts queues; images are not modelled ---- */

static uint64_t object_bytes(const struct model *m, const struct model_kproc *k, uint32_t *ret_n)
{
	uint64_t bytes = PROCESS_PRIV_BYTES + (uint64_t)m->config.n_gpus * DEVICE_PRIV_BYTES;

	*ret_n = model_events_count(k);
	bytes += (uint64_t)*ret_n * EVENT_PRIV_BYTES;
	for (const struct model_queue *q = k->queues; q; q = q->next) {
		bool compute = q->type == QUEUE_COMPUTE;

		bytes += QUEUE_PRIV_BYTES + (compute ? MQD9_BYTES : MQD_SDMA_BYTES) +
			 (compute ? q->ctl_stack_bytes : 0);
		++*ret_n;
	}
	return bytes;
}

/* Up to Linux 6.12.115 it was paused once more each time, and one UNPAUSE did not undo that. */
static int process_info(struct call *c, struct kfd_ioctl_criu_args *a)
{
	struct model_kproc *k = c->kproc;
	int r = 0;

	if (!c->m->config.n_gpus)
		return -ENODEV;
	if (!k->queues_paused)
		r = model_evict_queues(c->m, k);
	if (r < 0)
		return r;
	k->queues_paused = true;
	a->pid = (uint32_t)k->proc->pid;
	a->num_devices = c->m->config.n_gpus;
	a->num_bos = 0;
	a->priv_data_size = object_bytes(c->m, k, &a->num_objects);
	return 0;
}

static int unpause(struct call *c)
{
	int r;

	if (!c->kproc->queues_paused)
		return -EINVAL;
	r = model_restore_queues(c->m, c->kproc);
	if (r == 0)
		c->kproc->queues_paused = false;
	return r;
}

static int checkpoint(struct call *c, const struct kfd_ioctl_criu_args *a)
{
	if (!a->devices || !a->bos || !a->priv_data)
		return -EINVAL;
	if (!c->m->config.n_gpus)
		return -ENODEV;
	return c->kproc->queues_paused ? -EOPNOTSUPP : -EINVAL;
}

static int criu_resume(struct call *c, const struct kfd_ioctl_criu_args *a)
{
	struct model_proc *p = a->pid ? model_proc_by_tid(c->m, (pid_t)a->pid) : NULL;

	return p && p->kproc ? 0 : -ESRCH;
}

static int criu(struct call *c, void *data)
{
	struct kfd_ioctl_criu_args *a = data;

	switch (a->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		return process_info(c, a);
	case KFD_CRIU_OP_CHECKPOINT:
		return checkpoint(c, a);
	case KFD_CRIU_OP_UNPAUSE:
		return unpause(c);
	case KFD_CRIU_OP_RESTORE:
		return -EINVAL;
	case KFD_CRIU_OP_RESUME:
		return criu_resume(c, a);
	default:
		return -EINVAL;
	}
}

/* ---- the entry ---- */

struct ioctl_desc {
	unsigned long request;
	int (*run)(struct call *c, void *data);
	int error; /* of those that always fail */
};

#define IOC(name, fn) [_IOC_NR(AMDKFD_IOC_##name)] = { AMDKFD_IOC_##name, fn, 0 }
#define FAILS(name, error) [_IOC_NR(AMDKFD_IOC_##name)] = { AMDKFD_IOC_##name, NULL, error }

static const struct ioctl_desc ioctls[AMDKFD_COMMAND_END] = {
	IOC(GET_VERSION, get_version),
	IOC(CREATE_QUEUE, model_ioc_create_queue),
	IOC(DESTROY_QUEUE, model_ioc_destroy_queue),
	IOC(SET_MEMORY_POLICY, set_memory_policy),
	IOC(GET_CLOCK_COUNTERS, get_clock_counters),
	IOC(GET_PROCESS_APERTURES, get_apertures),
	IOC(UPDATE_QUEUE, model_ioc_update_queue),
	IOC(CREATE_EVENT, model_ioc_create_event),
	IOC(DESTROY_EVENT, model_ioc_destroy_event),
	IOC(SET_EVENT, model_ioc_set_event),
	IOC(RESET_EVENT, model_ioc_reset_event),
	IOC(WAIT_EVENTS, model_ioc_wait_events),
	/* Of the old debug interface. */
	FAILS(DBG_REGISTER_DEPRECATED, -EPERM),
	FAILS(DBG_UNREGISTER_DEPRECATED, -EPERM),
	FAILS(DBG_ADDRESS_WATCH_DEPRECATED, -EPERM),
	FAILS(DBG_WAVE_CONTROL_DEPRECATED, -EPERM),
	IOC(SET_SCRATCH_BACKING_VA, set_scratch),
	IOC(GET_TILE_CONFIG, get_tile_config),
	IOC(SET_TRAP_HANDLER, set_trap_handler),
	IOC(GET_PROCESS_APERTURES_NEW, get_apertures_new),
	IOC(ACQUIRE_VM, acquire_vm),
	IOC(ALLOC_MEMORY_OF_GPU, alloc_memory),
	/* Whatever the handle says, there is no such buffer. */
	FAILS(FREE_MEMORY_OF_GPU, -EINVAL),
	IOC(MAP_MEMORY_TO_GPU, map_memory),
	IOC(UNMAP_MEMORY_FROM_GPU, unmap_memory),
	IOC(SET_CU_MASK, model_ioc_set_cu_mask),
	IOC(GET_QUEUE_WAVE_STATE, model_ioc_get_queue_wave_state),
	IOC(GET_DMABUF_INFO, dmabuf_info),
	IOC(IMPORT_DMABUF, import_dmabuf),
	IOC(ALLOC_QUEUE_GWS, model_ioc_alloc_queue_gws),
	IOC(SMI_EVENTS, smi_events),
	/* In a kernel without HSA_AMD_SVM, as Debian's. */
	FAILS(SVM, -EPERM),
	FAILS(SET_XNACK_MODE, -EPERM),
	IOC(CRIU_OP, criu),
	IOC(AVAILABLE_MEMORY, available_memory),
	FAILS(EXPORT_DMABUF, -EINVAL),
	IOC(RUNTIME_ENABLE, model_ioc_runtime_enable),
	IOC(DBG_TRAP, model_ioc_dbg_trap),
};

static const struct ioctl_desc *find_ioctl(const struct model *m, unsigned int nr)
{
	if (nr < AMDKFD_COMMAND_START || nr >= AMDKFD_COMMAND_END)
		return NULL;
	if (m->config.kfd_minor < FIRST_DEBUG_MINOR && nr >= _IOC_NR(AMDKFD_IOC_RUNTIME_ENABLE))
		return NULL;
	return &ioctls[nr];
}

/* The descriptor serves the process that opened it, and for CRIU_OP that one's tracer thread. */
static int find_caller(struct model *m, struct model_task task, pid_t fd_owner, bool criu,
		       struct call *ret)
{
	struct model_proc *owner = model_proc_find(m, fd_owner);
	struct model_proc *caller = model_proc_find(m, task.pid);

	if (!caller)
		return -ESRCH;
	/* After an exec the driver would go on with a dead process; here the descriptor is gone. */
	if (!owner || !owner->kproc || !owner->has_fd)
		return -EBADF;
	if (owner != caller &&
	    !(criu && owner->tracer.pid == task.pid && owner->tracer.tid == task.tid))
		return -EBADF;
	/* CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN */
	if (criu && !caller->admin)
		return -EACCES;
	*ret = (struct call){ .m = m, .task = task, .proc = caller, .kproc = owner->kproc };
	return model_proc_note_thread(caller, task.tid);
}

/* kfd_ioctl_svm_validate() */
static int validate(unsigned int nr, const void *data, size_t user_size)
{
	const struct kfd_ioctl_svm_args *svm = data;

	if (nr != _IOC_NR(AMDKFD_IOC_SVM))
		return 0;
	return user_size < sizeof(*svm) + svm->nattr * sizeof(svm->attrs[0]) ? -EINVAL : 0;
}

/* Copies in what the caller's size says, runs, copies back even when it failed. */
static int run_call(struct call *c, const struct ioctl_desc *desc, unsigned long request, void *arg)
{
	size_t user_size = _IOC_SIZE(request);
	size_t size = MAX(user_size, (size_t)_IOC_SIZE(desc->request));
	_cleanup_free_ void *data = calloc(1, size);
	unsigned int dir = _IOC_DIR(desc->request);
	int r;

	if (!data)
		return -ENOMEM;
	if (dir & _IOC_WRITE) {
		r = model_copy_from_user(c->m, data, (uintptr_t)arg, user_size);
		if (r < 0)
			return r;
	}
	r = validate(_IOC_NR(request), data, user_size);
	if (r < 0)
		return r;
	r = desc->run ? desc->run(c, data) : desc->error;
	if (r != MODEL_BLOCKED && dir & _IOC_READ &&
	    model_copy_to_user(c->m, (uintptr_t)arg, data, user_size) < 0)
		r = -EFAULT;
	return r;
}

int model_ioctl(struct model *m, struct model_task task, pid_t fd_owner, unsigned long request,
		void *arg)
{
	const struct ioctl_desc *desc;
	struct call c;
	bool ext;
	int r;

	/* A thread that sleeps in the driver cannot call it again. */
	if (model_blocked_find(m, task))
		return -EDEADLK;
	model_faults_before_call(m);
	model_advance(m, m->config.chip->costs.ioctl_ns);
	ext = model_ext_is_command(m, _IOC_NR(request));
	desc = find_ioctl(m, _IOC_NR(request));
	if (!desc && !ext)
		return -ENOTTY;
	r = find_caller(m, task, fd_owner, desc && desc->run == criu, &c);
	if (r < 0)
		return r;
	r = ext ? model_ext_own_ioctl(m, c.proc, request, arg) : run_call(&c, desc, request, arg);
	model_run_woken(m);
	model_run_resets(m);
	model_ext_expire(m);
	return r;
}
