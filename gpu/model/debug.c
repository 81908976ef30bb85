/* SPDX-License-Identifier: MIT */
/*
 * DBG_TRAP (Linux 6.12 kfd_debug.c): who may, in what order it is checked, a session's begin and
 * end, exceptions and settings.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "gpu/model/driver.h"

#define OVERRIDE_OR 0u
#define OVERRIDE_REPLACE 1u
#define TRAP_MASK_GFX942 0xc00001ffu
#define TRAP_MASK_GFX90A 0x1ffu
#define TRAP_MASK_OLDER 0x80u /* address watch only: the register is everybody's */
#define FLAG_SINGLE_MEM_OP 1u
#define FLAG_SINGLE_ALU_OP 2u
#define CAP_PRECISE_MEMORY 0x40000u
#define CAP_PRECISE_ALU 0x40000000u

/* kfd_dbg_is_per_vmid_supported(): since gfx90a (9.4.2). */
bool model_gpu_debugs_per_vmid(const struct model_gpu *gpu)
{
	return gpu->m->config.chip->gfx_target_version >= 90010;
}

/* kfd_dbg_has_gws_support(), with firmware of today */
bool model_gpu_debugs_gws(const struct model_gpu *gpu)
{
	return gpu->m->config.chip->gfx_target_version / 10000 != 11;
}

/* debug_refresh_runlist(): the grace of 0 becomes 1. */
int model_dbg_refresh(struct model_gpu *gpu)
{
	int r;

	/* MES is told of the process's settings, which moves no queue. */
	if (!model_gpu_debugs_per_vmid(gpu) || model_is_mes(gpu))
		return 0;
	r = model_unmap_queues(gpu, 0);
	if (r < 0)
		return r;
	return model_map_queues(gpu);
}

/* ---- exceptions: who has which pending, and the debugger's descriptor ---- */

/* Writing to a pipe without reader must not end this process. */
static void write_quietly(int fd)
{
	const struct timespec now = { 0 };
	sigset_t pipe_signal, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	/* The driver always writes at offset 0; pipes and sockets have none. */
	if (pwrite(fd, ".", 1, 0) < 0 && errno == ESPIPE && write(fd, ".", 1) < 0 &&
	    errno == EPIPE && !sigismember(&before, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * One '.'. An eventfd takes no single byte and so never fires, as with the driver. Where the
 * driver would block on a full pipe, the byte is dropped.
 */
static void notify(struct model_kproc *k)
{
	struct pollfd p = { .fd = k->dbg_fd, .events = POLLOUT };

	if (k->dbg_fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
		write_quietly(k->dbg_fd);
}

void model_dbg_raise(struct model_kproc *k, uint64_t mask, struct model_gpu *gpu, uint32_t queue_id)
{
	struct model_queue *q;

	if (!k->debug_enabled)
		return;
	if (mask & KFD_EC_MASK_DEVICE) {
		k->pdds[gpu->index].exception_status |= mask & KFD_EC_MASK_DEVICE;
	} else if (mask & KFD_EC_MASK_PROCESS) {
		k->exception_status |= mask & KFD_EC_MASK_PROCESS;
	} else {
		q = model_queue_find(k, queue_id);
		if (q && q->gpu == gpu)
			q->exception_status |= mask;
	}
	if (k->exception_enable & mask)
		notify(k);
}

static int report(uint64_t *status, struct kfd_ioctl_dbg_trap_query_debug_event_args *a,
		  uint32_t gpu_id, uint32_t queue_id)
{
	uint64_t clear = a->exception_mask;

	a->exception_mask = *status;
	a->gpu_id = gpu_id;
	a->queue_id = queue_id;
	*status &= ~clear;
	return 0;
}

static int query_debug_event(struct model *m, struct model_kproc *k,
			     struct kfd_ioctl_dbg_trap_query_debug_event_args *a)
{
	for (struct model_queue *q = k->queues; q; q = q->next)
		if (q->exception_status & k->exception_enable)
			return report(&q->exception_status, a, q->gpu->id, q->id);
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (k->pdds[i].exception_status & k->exception_enable)
			return report(&k->pdds[i].exception_status, a, m->gpus[i].id, 0);
	if (k->exception_status & k->exception_enable)
		return report(&k->exception_status, a, 0, 0);
	*a = (struct kfd_ioctl_dbg_trap_query_debug_event_args){ 0 };
	return -EAGAIN;
}

static void set_exceptions_enabled(struct model *m, struct model_kproc *k, uint64_t mask)
{
	uint64_t found = k->exception_status;

	for (struct model_queue *q = k->queues; q; q = q->next)
		found |= q->exception_status;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		found |= k->pdds[i].exception_status;
	if (found & mask)
		notify(k);
	k->exception_enable = mask;
}

/* Where it would be pending; NULL: there is no such exception, or nobody of whom it could be. */
static uint64_t *status_of(struct model *m, struct model_kproc *k, uint32_t code, uint32_t source)
{
	uint64_t mask = code >= 1 && code <= 63 ? KFD_EC_MASK(code) : 0;
	struct model_queue *q = model_queue_find(k, source);
	struct model_pdd *pdd = model_pdd_by_id(m, k, source);

	if (mask & KFD_EC_MASK_QUEUE)
		return q ? &q->exception_status : NULL;
	if (mask & KFD_EC_MASK_DEVICE)
		return pdd ? &pdd->exception_status : NULL;
	return mask & KFD_EC_MASK_PROCESS ? &k->exception_status : NULL;
}

static int query_exception_info(struct model *m, struct model_kproc *k,
				struct kfd_ioctl_dbg_trap_query_exception_info_args *a)
{
	uint64_t *status = status_of(m, k, a->exception_code, a->source_id);
	uint32_t size = 0;
	int r;

	if (!a->info_ptr || !status)
		return -EINVAL;
	if (!(*status & KFD_EC_MASK(a->exception_code)))
		return -ENODATA;
	if (a->exception_code == EC_PROCESS_RUNTIME) {
		size = sizeof(k->runtime);
		r = model_copy_to_user(m, a->info_ptr, &k->runtime, MIN(a->info_size, size));
		if (r < 0)
			return r;
	}
	a->info_size = size;
	if (a->clear_exception)
		*status &= ~KFD_EC_MASK(a->exception_code);
	return 0;
}

/* What the runtime would see: bits in its error payload, which the save area points to. */
static void send_to_runtime(struct model_kproc *k, uint32_t queue_id, uint64_t reason)
{
	struct model_queue *q = model_queue_find(k, queue_id);
	struct kfd_context_save_area_header header;
	struct mem_space *mm = k->proc->mm;
	uint64_t payload;

	if (!q || mem_read(mm, q->cwsr_base, &header, sizeof(header)) < 0)
		return;
	if (mem_read(mm, header.err_payload_addr, &payload, sizeof(payload)) < 0)
		return;
	payload |= reason;
	mem_write(mm, header.err_payload_addr, &payload, sizeof(payload));
}

static int send_runtime_event(struct model *m, struct model_kproc *k,
			      const struct kfd_ioctl_dbg_trap_send_runtime_event_args *a)
{
	uint64_t reason = a->exception_mask;

	if (reason & KFD_EC_MASK(EC_DEVICE_MEMORY_VIOLATION)) {
		if (!model_pdd_by_id(m, k, a->gpu_id))
			return -ENODEV;
		reason &= ~KFD_EC_MASK(EC_DEVICE_MEMORY_VIOLATION);
	}
	if (reason & KFD_EC_MASK(EC_PROCESS_RUNTIME)) {
		model_runtime_up(m, k);
		reason &= ~KFD_EC_MASK(EC_PROCESS_RUNTIME);
	}
	if (reason)
		send_to_runtime(k, a->queue_id, reason);
	return 0;
}

/* ---- launch mode, overrides, flags, watch points: costed, without effect on waves ---- */

static int refresh_all(struct model *m)
{
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		int r = model_dbg_refresh(&m->gpus[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int launch_mode(struct model *m, uint32_t mode)
{
	mode &= 0xff; /* the driver passes it on as a byte */
	if (mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL &&
	    mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT &&
	    mode != KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG)
		return -EINVAL;
	return refresh_all(m);
}

/* The chips' validate_trap_override_request() of Linux 6.12 amdgpu. */
static int check_override(const struct model *m, uint32_t mode, uint32_t *ret_supported)
{
	uint32_t gfx = m->config.chip->gfx_target_version;

	if (!m->config.n_gpus) {
		*ret_supported = UINT32_MAX;
		return 0;
	}
	if (gfx < 90010) {
		*ret_supported = TRAP_MASK_OLDER;
		return mode == OVERRIDE_OR ? 0 : -EINVAL;
	}
	*ret_supported = gfx == 90010 ? TRAP_MASK_GFX90A : TRAP_MASK_GFX942;
	return mode == OVERRIDE_OR || mode == OVERRIDE_REPLACE ? 0 : -EPERM;
}

static int launch_override(struct model *m, struct model_kproc *k,
			   struct kfd_ioctl_dbg_trap_set_wave_launch_override_args *a)
{
	uint32_t bits = a->enable_mask, request = a->support_request_mask;
	int r;

	r = check_override(m, a->override_mode, &a->support_request_mask);
	if (r < 0)
		return r;
	if (request & ~a->support_request_mask)
		return -EACCES;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		a->enable_mask = k->pdds[i].override;
		k->pdds[i].override = (bits & request) | (k->pdds[i].override & ~request);
		r = model_dbg_refresh(&m->gpus[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_flags(struct model *m, struct model_kproc *k, uint32_t *flags)
{
	uint32_t before = k->dbg_flags, wanted = *flags;
	int r;

	*flags = before;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		uint32_t caps = model_gpu_capability(&m->gpus[i]);

		if ((wanted & FLAG_SINGLE_MEM_OP && !(caps & CAP_PRECISE_MEMORY)) ||
		    (wanted & FLAG_SINGLE_ALU_OP && !(caps & CAP_PRECISE_ALU)))
			return -EACCES;
	}
	k->dbg_flags = wanted;
	r = refresh_all(m);
	if (r < 0)
		k->dbg_flags = before;
	return r;
}

static int watch_set(struct model_pdd *pdd,
		     struct kfd_ioctl_dbg_trap_set_node_address_watch_args *a)
{
	struct model_gpu *gpu = pdd->gpu;
	uint32_t id = 0;
	int r;

	while (id < MAX_WATCH_POINTS && gpu->watch_ids & (1u << id))
		id++;
	if (id == MAX_WATCH_POINTS) {
		a->id = UINT32_MAX;
		return -ENOMEM;
	}
	a->id = id;
	gpu->watch_ids |= 1u << id;
	pdd->watch_ids |= 1u << id;
	if (model_gpu_debugs_per_vmid(gpu) && !model_is_mes(gpu)) {
		r = model_unmap_queues(gpu, 0);
		if (r == 0 && model_map_queues(gpu) == 0)
			return 0;
		pdd->watch_ids &= ~(1u << id);
		gpu->watch_ids &= ~(1u << id);
		return r; /* 0 when only the map failed */
	}
	return 0;
}

static int watch_clear(struct model_pdd *pdd, uint32_t id)
{
	int r;

	if (id >= MAX_WATCH_POINTS || !(pdd->watch_ids & (1u << id)))
		return -EINVAL;
	r = model_dbg_refresh(pdd->gpu);
	if (r < 0)
		return r;
	pdd->watch_ids &= ~(1u << id);
	pdd->gpu->watch_ids &= ~(1u << id);
	return 0;
}

/* ---- sessions ---- */

/* Chips without per-VMID debugging lend one VMID, to one session at a time. */
static int reserve_debug_vmid(struct model_gpu *gpu)
{
	int r;

	if (model_gpu_debugs_per_vmid(gpu))
		return 0;
	if (gpu->debug_vmid_reserved)
		return -EBUSY;
	r = model_unmap_queues(gpu, KFD_GRACE_KEEP_DEFAULT);
	if (r < 0)
		return r;
	gpu->debug_vmid_reserved = true;
	return model_map_queues(gpu);
}

static void release_debug_vmid(struct model_gpu *gpu)
{
	if (model_gpu_debugs_per_vmid(gpu) || !gpu->debug_vmid_reserved)
		return;
	if (model_unmap_queues(gpu, KFD_GRACE_KEEP_DEFAULT) < 0)
		return;
	gpu->debug_vmid_reserved = false;
	model_map_queues(gpu);
}

/*
 * To change how barriers wait, gfx908 stops all of KFD for a moment: every process is evicted and
 * brought back (kgd_arcturus_enable_debug_trap() of Linux 6.12 amdgpu_amdkfd_arcturus.c).
 */
static void stop_all_for_barriers(struct model_gpu *gpu)
{
	struct model *m = gpu->m;

	if (m->config.chip->gfx_target_version != 90008)
		return;
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		model_evict_queues(m, k);
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		model_restore_queues(m, k);
}

static void deactivate_pdds(struct model_kproc *k, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		stop_all_for_barriers(k->pdds[i].gpu);
		k->pdds[i].override = 0;
		release_debug_vmid(k->pdds[i].gpu);
		model_dbg_refresh(k->pdds[i].gpu);
	}
}

void model_dbg_deactivate(struct model *m, struct model_kproc *k)
{
	uint32_t flags = 0;

	model_resume_queues(m, k, 0, 0);
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		for (uint32_t id = 0; id < MAX_WATCH_POINTS; id++)
			watch_clear(&k->pdds[i], id);
	launch_mode(m, KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL);
	set_flags(m, k, &flags);
	deactivate_pdds(k, m->config.n_gpus);
}

int model_dbg_activate(struct model *m, struct model_kproc *k)
{
	int r = model_fault_take(m, MODEL_FAULT_ACTIVATE_FAILS) ? -EIO : 0;
	uint32_t i;

	if (r < 0) {
		k->runtime.runtime_state = DEBUG_RUNTIME_STATE_ENABLED_ERROR;
		return r;
	}
	for (i = 0; i < m->config.n_gpus; i++) {
		r = reserve_debug_vmid(k->pdds[i].gpu);
		if (r < 0)
			break;
		stop_all_for_barriers(k->pdds[i].gpu);
		r = model_dbg_refresh(k->pdds[i].gpu);
		if (r < 0)
			break;
	}
	if (i == m->config.n_gpus)
		return 0;
	k->runtime.runtime_state = r == -EBUSY ? DEBUG_RUNTIME_STATE_ENABLED_BUSY :
						 DEBUG_RUNTIME_STATE_ENABLED_ERROR;
	deactivate_pdds(k, i);
	return r;
}

static void drop_session(struct model *m, struct model_kproc *k)
{
	struct model_kproc *debugger = model_kproc_by_serial(m, k->debugger);

	close(k->dbg_fd);
	k->dbg_fd = -1;
	if (debugger)
		debugger->debugged_count--;
	k->debug_enabled = false;
}

void model_dbg_disable(struct model *m, struct model_kproc *k)
{
	if (!k->debug_enabled)
		return;
	if (k->runtime.runtime_state == DEBUG_RUNTIME_STATE_ENABLED)
		model_dbg_deactivate(m, k);
	else if (k->runtime.runtime_state != DEBUG_RUNTIME_STATE_DISABLED)
		k->runtime.runtime_state = DEBUG_RUNTIME_STATE_ENABLED;
	drop_session(m, k);
	k->debugger = 0;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		k->pdds[i].exception_status = 0;
	for (struct model_queue *q = k->queues; q; q = q->next)
		q->exception_status = 0;
	k->exception_status = 0;
}

/* A descriptor of our own process, kept open for the session as the driver keeps the file. */
static int take_fd(uint32_t fd)
{
	int flags = fcntl((int)fd, F_GETFL);

	if (flags < 0 || flags & O_PATH)
		return -EBADF;
	return fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
}

static int dbg_enable(struct model *m, struct model_kproc *k,
		      struct kfd_ioctl_dbg_trap_enable_args *a)
{
	uint32_t copy = MIN(a->rinfo_size, (uint32_t)sizeof(k->runtime));
	struct model_kproc *debugger;
	int fd, r = 0;

	if (k->debug_enabled)
		return -EALREADY;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (k->pdds[i].num_gws && !model_gpu_debugs_gws(k->pdds[i].gpu))
			return -EBUSY;
	fd = take_fd(a->dbg_fd);
	if (fd < 0)
		return -EBADF;
	k->dbg_fd = fd;
	/* A failed activation shows in the runtime state only. */
	if (k->runtime.runtime_state == DEBUG_RUNTIME_STATE_ENABLED)
		model_dbg_activate(m, k);
	k->debug_enabled = true;
	debugger = model_kproc_by_serial(m, k->debugger);
	if (debugger)
		debugger->debugged_count++;
	if (model_copy_to_user(m, a->rinfo_ptr, &k->runtime, copy) < 0) {
		/* k->debugger stays: the caller keeps its rights without the seizure. */
		model_dbg_deactivate(m, k);
		drop_session(m, k);
		r = -EFAULT;
	}
	a->rinfo_size = sizeof(k->runtime);
	return r;
}

/* ---- the call ---- */

static bool traces(const struct model_task *task, const struct model_proc *p)
{
	return p->tracer.pid == task->pid && p->tracer.tid == task->tid && task->pid;
}

static int find_target(struct call *c, const struct kfd_ioctl_dbg_trap_args *a,
		       struct model_kproc **ret)
{
	struct model_proc *p = a->pid ? model_proc_by_tid(c->m, (pid_t)a->pid) : NULL;
	struct model_kproc *k;

	if (!p)
		return -ESRCH;
	/* ENABLE by the tracer of the thread named makes a KFD process for it. */
	if (a->op == KFD_IOC_DBG_TRAP_ENABLE && p->pid == (pid_t)a->pid && traces(&c->task, p)) {
		k = model_kproc_get(c->m, p);
		if (!k)
			return -ENOMEM;
	} else {
		k = p->kproc;
	}
	if (!k)
		return -ESRCH;
	*ret = k;
	return 0;
}

static int check_permission(const struct call *c, const struct model_kproc *k, uint32_t op)
{
	if (k == c->kproc || traces(&c->task, k->proc))
		return 0;
	if (c->m->config.no_debugger_clause)
		return op == KFD_IOC_DBG_TRAP_DISABLE ? 0 : -EPERM;
	return k->debugger == c->kproc->serial ? 0 : -EPERM;
}

static int watch_op(struct model *m, struct model_kproc *k, struct kfd_ioctl_dbg_trap_args *a)
{
	bool set = a->op == KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH;
	uint32_t gpu_id = set ? a->set_node_address_watch.gpu_id :
				a->clear_node_address_watch.gpu_id;
	struct model_pdd *pdd = model_pdd_by_id(m, k, gpu_id);

	if (!pdd)
		return -ENODEV;
	return set ? watch_set(pdd, &a->set_node_address_watch) :
		     watch_clear(pdd, a->clear_node_address_watch.id);
}

static int enable_op(struct call *c, struct model_kproc *k, struct kfd_ioctl_dbg_trap_args *a)
{
	int r;

	/* Before it is known whether a session can begin: the root of the hijack. */
	if (k != c->kproc)
		k->debugger = c->kproc->serial;
	r = dbg_enable(c->m, k, &a->enable);
	if (r == 0)
		k->exception_enable = a->enable.exception_mask;
	return r;
}

static int run_op(struct call *c, struct model_kproc *k, struct kfd_ioctl_dbg_trap_args *a)
{
	struct model *m = c->m;

	switch (a->op) {
	case KFD_IOC_DBG_TRAP_ENABLE:
		return enable_op(c, k, a);
	case KFD_IOC_DBG_TRAP_DISABLE:
		model_dbg_disable(m, k);
		return 0;
	case KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT:
		return send_runtime_event(m, k, &a->send_runtime_event);
	case KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED:
		set_exceptions_enabled(m, k, a->set_exceptions_enabled.exception_mask);
		return 0;
	case KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE:
		return launch_override(m, k, &a->launch_override);
	case KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE:
		return launch_mode(m, a->launch_mode.launch_mode);
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		return model_suspend_queues(m, k, &a->suspend_queues);
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		return model_resume_queues(m, k, a->resume_queues.queue_array_ptr,
					   a->resume_queues.num_queues);
	case KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH:
	case KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH:
		return watch_op(m, k, a);
	case KFD_IOC_DBG_TRAP_SET_FLAGS:
		return set_flags(m, k, &a->set_flags.flags);
	case KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT:
		return query_debug_event(m, k, &a->query_debug_event);
	case KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO:
		return query_exception_info(m, k, &a->query_exception_info);
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		return model_queue_snapshot(m, k, &a->queue_snapshot);
	case KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT:
		return model_device_snapshot(m, k, &a->device_snapshot);
	default:
		return -EINVAL;
	}
}

/* The order of the checks is kfd_ioctl_set_debug_trap()'s of Linux 6.12.115. */
int model_ioc_dbg_trap(struct call *c, void *data)
{
	struct kfd_ioctl_dbg_trap_args *a = data;
	struct model_kproc *k;
	int r;

	r = find_target(c, a, &k);
	if (r < 0)
		return r;
	r = check_permission(c, k, a->op);
	if (r < 0)
		return r;
	if (a->op != KFD_IOC_DBG_TRAP_ENABLE && !k->debug_enabled)
		return -EINVAL;
	/* What touches the hardware is for targets that have enabled their runtime. */
	if (k->runtime.runtime_state != DEBUG_RUNTIME_STATE_ENABLED &&
	    a->op >= KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE &&
	    a->op <= KFD_IOC_DBG_TRAP_SET_FLAGS)
		return -EPERM;
	return run_op(c, k, a);
}
