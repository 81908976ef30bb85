/* SPDX-License-Identifier: MIT */
/* The entry of the driver: kfd_ioctl() of Linux 6.12 kfd_chardev.c. */
#include <errno.h>

#include "abi/kfd_memory.h"
#include "gpu/model/driver.h"

#define FIRST_DEBUG_MINOR 13 /* RUNTIME_ENABLE and DBG_TRAP came with 1.13 */

static int get_version(struct call *c, void *data)
{
	struct kfd_ioctl_get_version_args *a = data;

	a->major_version = KFD_IOCTL_MAJOR_VERSION;
	a->minor_version = c->m->config.kfd_minor;
	return 0;
}

/* Deprecated debug calls; SVM and XNACK in a kernel without HSA_AMD_SVM, as Debian's. */
static int refuse(struct call *c, void *data)
{
	(void)c;
	(void)data;
	return -EPERM;
}

struct ioctl_desc {
	unsigned long request;
	int (*run)(struct call *c, void *data);
};

#define IOC(name, fn) [_IOC_NR(AMDKFD_IOC_##name)] = { AMDKFD_IOC_##name, fn }

static const struct ioctl_desc ioctls[AMDKFD_COMMAND_END] = {
	IOC(GET_VERSION, get_version),
	IOC(CREATE_QUEUE, model_ioc_create_queue),
	IOC(DESTROY_QUEUE, model_ioc_destroy_queue),
	IOC(SET_MEMORY_POLICY, model_ioc_set_memory_policy),
	IOC(GET_CLOCK_COUNTERS, model_ioc_get_clock_counters),
	IOC(GET_PROCESS_APERTURES, model_ioc_get_apertures),
	IOC(UPDATE_QUEUE, model_ioc_update_queue),
	IOC(CREATE_EVENT, model_ioc_create_event),
	IOC(DESTROY_EVENT, model_ioc_destroy_event),
	IOC(SET_EVENT, model_ioc_set_event),
	IOC(RESET_EVENT, model_ioc_reset_event),
	IOC(WAIT_EVENTS, model_ioc_wait_events),
	IOC(DBG_REGISTER_DEPRECATED, refuse),
	IOC(DBG_UNREGISTER_DEPRECATED, refuse),
	IOC(DBG_ADDRESS_WATCH_DEPRECATED, refuse),
	IOC(DBG_WAVE_CONTROL_DEPRECATED, refuse),
	IOC(SET_SCRATCH_BACKING_VA, model_ioc_set_scratch),
	IOC(GET_TILE_CONFIG, model_ioc_get_tile_config),
	IOC(SET_TRAP_HANDLER, model_ioc_set_trap_handler),
	IOC(GET_PROCESS_APERTURES_NEW, model_ioc_get_apertures_new),
	IOC(ACQUIRE_VM, model_ioc_acquire_vm),
	IOC(ALLOC_MEMORY_OF_GPU, model_ioc_alloc_memory),
	IOC(FREE_MEMORY_OF_GPU, model_ioc_free_memory),
	IOC(MAP_MEMORY_TO_GPU, model_ioc_map_memory),
	IOC(UNMAP_MEMORY_FROM_GPU, model_ioc_unmap_memory),
	IOC(SET_CU_MASK, model_ioc_set_cu_mask),
	IOC(GET_QUEUE_WAVE_STATE, model_ioc_get_queue_wave_state),
	IOC(GET_DMABUF_INFO, model_ioc_dmabuf_info),
	IOC(IMPORT_DMABUF, model_ioc_import_dmabuf),
	IOC(ALLOC_QUEUE_GWS, model_ioc_alloc_queue_gws),
	IOC(SMI_EVENTS, model_ioc_smi_events),
	IOC(SVM, refuse),
	IOC(SET_XNACK_MODE, refuse),
	IOC(CRIU_OP, model_ioc_criu),
	IOC(AVAILABLE_MEMORY, model_ioc_available_memory),
	IOC(EXPORT_DMABUF, model_ioc_export_dmabuf),
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
	r = desc->run(c, data);
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
	r = find_caller(m, task, fd_owner, desc && desc->run == model_ioc_criu, &c);
	if (r < 0)
		return r;
	r = ext ? model_ext_own_ioctl(m, c.proc, request, arg) : run_call(&c, desc, request, arg);
	model_run_woken(m);
	model_run_resets(m);
	model_ext_expire(m);
	return r;
}
