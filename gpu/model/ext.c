/* SPDX-License-Identifier: MIT */
/* The extension's device: its files, who may be named in calls, and the calls' entry. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "gpu/model/driver.h"

#define MAX_ARG_BYTES 64u
#define MAX_STATS 8192u

/* ---- files ---- */

/* NULL: it is closed. */
static struct ext_file *find_file(const struct model *m, uint64_t id)
{
	for (struct ext_file *f = m->ext.files; f; f = f->next)
		if (f->id == id)
			return f;
	return NULL;
}

static struct ext_file *add_file(struct model *m, pid_t pid, struct model_kproc *own)
{
	struct ext_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct ext_file){
		.next = m->ext.files,
		.m = m,
		.id = ++m->ext.next_file,
		.pid = pid,
		.own = own,
	};
	m->ext.files = f;
	return f;
}

static void close_file(struct ext_file *f)
{
	struct model *m = f->m;
	struct ext_file **at = &m->ext.files;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	model_ext_end_holds(m, f->id);
	model_ext_free_tickets(f);
	free(f);
	model_run_resets(m);
	model_ext_expire(m);
}

int model_ext_open(struct model *m, struct model_task task, uint64_t *ret_file)
{
	struct model_proc *p = model_proc_find(m, task.pid);
	struct ext_file *f;

	if (!m->config.ext)
		return -ENODEV;
	if (!p)
		return -ESRCH;
	f = add_file(m, task.pid, NULL);
	if (!f)
		return -ENOMEM;
	*ret_file = f->id;
	return model_proc_note_thread(p, task.tid);
}

void model_ext_close(struct model *m, uint64_t file)
{
	struct ext_file *f = find_file(m, file);

	if (f)
		close_file(f);
}

void model_ext_close_files_of(struct model *m, pid_t pid)
{
	for (struct ext_file *f = m->ext.files, *next; f; f = next) {
		next = f->next;
		if (f->pid == pid)
			close_file(f);
	}
}

/* ---- rights ---- */

/* Of a process that has ended there is none to be found: -ESRCH. */
static int read_descriptor(const struct model *m, int fd, struct model_kproc **ret)
{
	uint64_t d;

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	if (fcntl(fd, F_GET_SEALS) < 0 || pread(fd, &d, sizeof(d), 0) != sizeof(d) || !d)
		return -EINVAL;
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		if (k->descriptor == d) {
			*ret = k;
			return 0;
		}
	return -ESRCH;
}

int model_borrow(struct model *m, pid_t by, pid_t pid, unsigned int nth, uint64_t *ret)
{
	struct model_proc *p = model_proc_find(m, pid), *caller = model_proc_find(m, by);

	if (!p || !caller || !p->has_fd || nth)
		return -ENOENT;
	if (!model_may_trace(caller, p))
		return -EPERM;
	while (!p->kproc->descriptor)
		if (getrandom(&p->kproc->descriptor, sizeof(p->kproc->descriptor), 0) < 0)
			return -errno;
	*ret = p->kproc->descriptor;
	return 0;
}

int model_descriptor(uint64_t what)
{
	_cleanup_close_ int fd = memfd_create("kfd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	return write(fd, &what, sizeof(what)) == sizeof(what) ? steal_fd(&fd) : -ENOMEM;
}

static bool is_bound(const struct ext_file *f, uint64_t serial)
{
	for (size_t i = 0; i < f->n_bound; i++)
		if (f->bound[i] == serial)
			return true;
	return false;
}

static void forget_ended(struct ext_file *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_bound; i++)
		if (model_kproc_by_serial(f->m, f->bound[i]))
			f->bound[n++] = f->bound[i];
	f->n_bound = n;
}

static int add_bound(struct ext_file *f, uint64_t serial)
{
	if (is_bound(f, serial))
		return 0;
	if (f->n_bound >= EXT_MAX_BOUND)
		forget_ended(f);
	if (f->n_bound >= EXT_MAX_BOUND)
		return -ENOSPC;
	f->bound[f->n_bound++] = serial;
	return 0;
}

static int bind_process(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_bind *a = data;
	struct model_kproc *k;
	int r;

	r = read_descriptor(c->m, a->fd, &k);
	if (r < 0)
		return r;
	r = add_bound(c->file, k->serial);
	if (r == 0)
		a->pid = (uint32_t)k->proc->pid;
	return r;
}

static bool may_name(const struct ext_call *c, const struct model_proc *p)
{
	if (p == c->caller)
		return true;
	return !c->file->own && (c->caller->admin || is_bound(c->file, p->kproc->serial));
}

int model_ext_target(const struct ext_call *c, uint32_t pid, uint64_t start_ticks,
		     struct model_kproc **ret)
{
	struct model_proc *p = c->caller;

	if (!c->file->own || pid)
		p = pid > INT32_MAX ? NULL : model_proc_by_tid(c->m, (pid_t)pid);
	if (!p || !p->kproc || (start_ticks && start_ticks != p->start_ticks))
		return -ESRCH;
	if (!may_name(c, p))
		return -EPERM;
	*ret = p->kproc;
	return 0;
}

/* ---- what can be seen ---- */

static uint32_t hqd_flags(const struct model_gpu *gpu)
{
	bool mes = model_is_mes(gpu);

	return (mes ? KFD_GPREEMPT_HQD_MES : 0) | (gpu->reset_pending ? KFD_GPREEMPT_HQD_HANG : 0) |
	       (model_ext_is_stopped(gpu) ? KFD_GPREEMPT_HQD_STOPPED : 0) |
	       (!mes && gpu->oversubscribed ? KFD_GPREEMPT_HQD_OVERSUBSCRIBED : 0);
}

void model_ext_fill_hqd(const struct model_gpu *gpu, struct kfd_gpreempt_hqd *ret)
{
	struct gpu_counts n = model_gpu_count(gpu);

	*ret = (struct kfd_gpreempt_hqd){
		.gpu_id = gpu->id,
		.total = gpu->m->config.chip->n_cp_queues,
		.active_compute = n.compute,
		.active = n.active,
		.active_sum = n.active,
		.queues = gpu->total_queues,
		.processes = n.processes,
		.gws = n.gws,
		.held = n.held,
		.flags = hqd_flags(gpu),
	};
}

static int get_hqd(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_hqd *a = data;
	const struct model_gpu *gpu = model_gpu_by_id(c->m, a->gpu_id);

	if (!gpu)
		return -ENODEV;
	model_ext_fill_hqd(gpu, a);
	return 0;
}

static uint32_t queue_flags(const struct model_queue *q, uint64_t owner)
{
	const struct ext_queue *s = &q->ext;
	bool mine = s->holds[EXT_HOLDER].owner == owner || s->holds[EXT_ITSELF].owner == owner;

	return (q->is_active ? KFD_GPREEMPT_QUEUE_ACTIVE : 0) |
	       (q->is_evicted ? KFD_GPREEMPT_QUEUE_EVICTED : 0) |
	       (q->is_suspended ? KFD_GPREEMPT_QUEUE_SUSPENDED : 0) |
	       (s->reasons & EXT_BY(EXT_HOLDER) ? KFD_GPREEMPT_QUEUE_HELD : 0) |
	       (s->reasons & EXT_BY(EXT_ITSELF) ? KFD_GPREEMPT_QUEUE_HELD_SELF : 0) |
	       (s->reasons & EXT_BY_STOP ? KFD_GPREEMPT_QUEUE_STOPPED : 0) |
	       (q->is_gws ? KFD_GPREEMPT_QUEUE_GWS : 0) | (mine ? KFD_GPREEMPT_QUEUE_MINE : 0);
}

static const struct ext_file *stopper(const struct model_gpu *gpu)
{
	for (const struct ext_file *f = gpu->m->ext.files; f; f = f->next)
		if (f->stops[gpu->index].count)
			return f;
	return NULL;
}

/* Whoever must end for it to run; of several one, and the next when that one has ended. */
static pid_t preempted_by(const struct model_queue *q)
{
	const struct ext_file *f = NULL;

	if (q->ext.reasons & EXT_BY(EXT_HOLDER))
		f = find_file(q->gpu->m, q->ext.holds[EXT_HOLDER].owner);
	else if (q->ext.reasons & EXT_BY_STOP)
		f = stopper(q->gpu);
	return f ? f->pid : q->ext.by;
}

static void fill_queue(const struct model_queue *q, uint64_t owner, struct kfd_gpreempt_queue *ret)
{
	const struct ext_queue *s = &q->ext;
	uint64_t now_ns = model_now_ns(q->gpu->m);

	*ret = (struct kfd_gpreempt_queue){
		.ring_base = q->ring_base,
		.write_ptr = q->write_ptr,
		.read_ptr = q->read_ptr,
		.cwsr_base = q->cwsr_base,
		.queue_id = q->id,
		.gpu_id = q->gpu->id,
		.ring_bytes = q->ring_bytes,
		.type = model_queue_user_type(q),
		.cwsr_bytes = q->cwsr_bytes,
		.priority = q->priority,
		.percent = q->percent,
		.flags = queue_flags(q, owner),
		.preemptions = s->preemptions,
		.preempted_by = (uint32_t)preempted_by(q),
		.held_ns = s->held_ns + (s->since_ns ? now_ns - s->since_ns : 0),
		.last_latency_ns = s->last_latency_ns,
		.max_latency_ns = s->max_latency_ns,
	};
}

static int get_stats(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_stats *a = data;
	uint32_t room = MIN(a->n, MAX_STATS), n = 0;
	int r;

	for (const struct model_queue *q = c->target->queues; q; q = q->next, n++) {
		struct kfd_gpreempt_queue out;

		if (n >= room)
			continue;
		fill_queue(q, c->file->id, &out);
		r = model_copy_to_user(c->m, a->queues + n * sizeof(out), &out, sizeof(out));
		if (r < 0)
			return r;
	}
	a->n = n;
	return 0;
}

/* ---- calls ---- */

static int get_version(struct ext_call *c, void *data)
{
	struct kfd_gpreempt_version *a = data;

	*a = (struct kfd_gpreempt_version){
		.version = KFD_GPREEMPT_VERSION,
		.abilities = KFD_GPREEMPT_CAN_BATCH,
		.max_entries = KFD_GPREEMPT_MAX_ENTRIES,
		.max_hold_ms = KFD_GPREEMPT_MAX_HOLD_MS,
	};
	if (c->m->config.ext == MODEL_EXT_VICTIMS)
		a->abilities |= KFD_GPREEMPT_CAN_VICTIMS_ONLY;
	if (c->caller->admin)
		a->abilities |= KFD_GPREEMPT_IS_ADMIN;
	if (model_ext_schedules(c->m))
		a->abilities |= KFD_GPREEMPT_SCHEDULES;
	return 0;
}

struct ext_desc {
	unsigned long request;
	int (*run)(struct ext_call *c, void *data);
	size_t start_at; /* start_ticks of the process whose pid comes first; 0: it names none */
};

static const struct ext_desc commands[] = {
	{ KFD_GPREEMPT_GET_VERSION, get_version },
	{ KFD_GPREEMPT_BATCH_UNMAP_QUEUES, model_ext_batch },
	{ KFD_GPREEMPT_FAST_REMAP, model_ext_batch },
	{ KFD_GPREEMPT_SWITCH, model_ext_batch },
	{ KFD_GPREEMPT_SELECTIVE_UNMAP, model_ext_batch },
	{ KFD_GPREEMPT_PREEMPT_QUEUE, model_ext_one },
	{ KFD_GPREEMPT_RESUME_QUEUE, model_ext_one },
	{ KFD_GPREEMPT_SET_QUEUE_STATE, model_ext_one },
	{ KFD_GPREEMPT_COLLECT, model_ext_collect },
	{ KFD_GPREEMPT_STOP_SCHED, model_ext_stop },
	{ KFD_GPREEMPT_START_SCHED, model_ext_stop },
	{ KFD_GPREEMPT_GET_HQD_STATUS, get_hqd },
	{ KFD_GPREEMPT_GET_STATS, get_stats, offsetof(struct kfd_gpreempt_stats, start_ticks) },
	{ KFD_GPREEMPT_BIND, bind_process },
	{ KFD_GPREEMPT_SET_MONITOR, model_ext_monitor },
	{ KFD_GPREEMPT_SET_HQD_RESERVATION, model_ext_reserve },
	{ KFD_GPREEMPT_SET_CLASS, model_ext_class,
	  offsetof(struct kfd_gpreempt_class, start_ticks) },
	{ KFD_GPREEMPT_SET_QUEUE_POLICY, model_ext_policy,
	  offsetof(struct kfd_gpreempt_policy, start_ticks) },
	{ KFD_GPREEMPT_HINT, model_ext_hint, offsetof(struct kfd_gpreempt_hint, start_ticks) },
};

static const struct ext_desc *find_command(unsigned long request)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (_IOC_NR(commands[i].request) == _IOC_NR(request))
			return &commands[i];
	return NULL;
}

/* copy_struct_from_user(): what is longer than we know must end in zeros. */
static int copy_in(const struct model *m, uint64_t *data, size_t known, uint64_t user, size_t bytes)
{
	int r = model_copy_from_user(m, data, user, MIN(known, bytes));

	for (size_t i = known; r == 0 && i < bytes; i++) {
		char byte = 0;

		r = model_copy_from_user(m, &byte, user + i, 1);
		if (r == 0 && byte)
			r = -E2BIG;
	}
	return r;
}

static int run_command(struct ext_call *c, unsigned long request, void *arg)
{
	const struct ext_desc *desc = find_command(request);
	size_t known = desc ? _IOC_SIZE(desc->request) : 0, bytes = _IOC_SIZE(request);
	uint64_t data[MAX_ARG_BYTES / sizeof(uint64_t)] = { 0 };
	int r;

	if (!desc)
		return -ENOTTY;
	r = copy_in(c->m, data, known, (uintptr_t)arg, bytes);
	if (r < 0)
		return r;
	c->nr = _IOC_NR(request);
	if (desc->start_at)
		r = model_ext_target(c, (uint32_t)data[0], data[desc->start_at / sizeof(data[0])],
				     &c->target);
	if (r == 0)
		r = desc->run(c, data);
	/* Even then: a batch that takes too long has a ticket. */
	if (model_copy_to_user(c->m, (uintptr_t)arg, data, MIN(known, bytes)) < 0)
		r = -EFAULT;
	return r;
}

bool model_ext_is_command(const struct model *m, unsigned int nr)
{
	return m->config.ext && nr >= KFD_GPREEMPT_COMMAND_START &&
	       nr < KFD_GPREEMPT_OWN_COMMAND_END;
}

static struct ext_file *own_file(struct model *m, struct model_proc *p)
{
	for (struct ext_file *f = m->ext.files; f; f = f->next)
		if (f->own == p->kproc)
			return f;
	return add_file(m, p->pid, p->kproc);
}

int model_ext_own_ioctl(struct model *m, struct model_proc *caller, unsigned long request,
			void *arg)
{
	struct ext_call c = {
		.m = m,
		.file = own_file(m, caller),
		.caller = caller,
		.began_ns = model_now_ns(m),
	};

	return c.file ? run_command(&c, request, arg) : -ENOMEM;
}

int model_ext_ioctl(struct model *m, struct model_task task, uint64_t file, unsigned long request,
		    void *arg)
{
	struct ext_call c = { .m = m };
	int r;

	model_faults_before_call(m);
	model_advance(m, m->config.chip->costs.ioctl_ns);
	c.file = find_file(m, file);
	c.caller = model_proc_find(m, task.pid);
	c.began_ns = model_now_ns(m);
	if (!c.file)
		return -EBADF;
	if (!c.caller)
		return -ESRCH;
	r = model_proc_note_thread(c.caller, task.tid);
	if (r < 0)
		return r;
	r = run_command(&c, request, arg);
	model_run_woken(m);
	model_run_resets(m);
	model_ext_expire(m);
	return r;
}
