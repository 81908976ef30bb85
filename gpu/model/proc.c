/* SPDX-License-Identifier: MIT */
/* Processes, their threads and tracers, and the KFD process that goes with an mm. */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"
#include "util/array.h"

#define TICK_NS (10 * NSEC_PER_MSEC)
#define BOOT_TICKS 5000u

struct model_proc *model_proc_find(const struct model *m, pid_t pid)
{
	for (struct model_proc *p = m->procs; p; p = p->next)
		if (p->pid == pid)
			return p;
	return NULL;
}

struct model_proc *model_proc_by_tid(const struct model *m, pid_t tid)
{
	struct model_proc *leader = model_proc_find(m, tid);

	/* Threads of our own have real ids, which may be those of modelled processes. */
	if (leader)
		return leader;
	for (struct model_proc *p = m->procs; p; p = p->next)
		for (size_t i = 0; i < p->n_tids; i++)
			if (p->tids[i] == tid)
				return p;
	return NULL;
}

int model_proc_note_thread(struct model_proc *p, pid_t tid)
{
	if (tid == p->pid)
		return 0;
	for (size_t i = 0; i < p->n_tids; i++)
		if (p->tids[i] == tid)
			return 0;
	if (array_reserve(&p->tids, p->n_tids + 1, &p->cap_tids, sizeof(*p->tids)) < 0)
		return -ENOMEM;
	p->tids[p->n_tids++] = tid;
	return 0;
}

static void proc_free(struct model_proc *p)
{
	mem_free(p->mm);
	free(p->cgroup);
	free(p->tids);
	free(p);
}

static void proc_freep(struct model_proc **p)
{
	if (*p)
		proc_free(*p);
}

int model_proc_start(struct model *m, const struct model_proc_spec *spec)
{
	_cleanup_(proc_freep) struct model_proc *p = NULL;
	struct model_proc **last = &m->procs;

	if (spec->pid <= 0)
		return -EINVAL;
	if (model_proc_find(m, spec->pid))
		return -EEXIST;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = spec->pid;
	p->uid = spec->uid;
	p->admin = spec->rights == MODEL_RIGHTS_ALL ||
		   (spec->rights == MODEL_RIGHTS_BY_UID && spec->uid == 0);
	p->start_ticks = BOOT_TICKS + m->next_start++ + m->time.now_ns / TICK_NS;
	if (spec->start_ticks)
		p->start_ticks = spec->start_ticks;
	snprintf(p->comm, sizeof(p->comm), "%s", spec->comm ? spec->comm : "");
	p->cgroup = strdup(spec->cgroup ? spec->cgroup : "/");
	p->mm = mem_new();
	if (!p->cgroup || !p->mm)
		return -ENOMEM;
	while (*last)
		last = &(*last)->next;
	*last = steal_ptr(&p);
	return 0;
}

/* ---- the KFD process ---- */

struct model_kproc *model_kproc_by_serial(const struct model *m, uint64_t serial)
{
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		if (k->serial == serial)
			return k;
	return NULL;
}

struct model_kproc *model_kproc_get(struct model *m, struct model_proc *p)
{
	struct model_kproc *k = p->kproc;

	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->proc = p;
	k->serial = m->next_serial++;
	k->pasid = m->next_pasid++;
	k->dbg_fd = -1;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		k->pdds[i].gpu = &m->gpus[i];
	k->next = m->kprocs;
	m->kprocs = k;
	p->kproc = k;
	return k;
}

/*
 * Targets of a debugger that dies are disabled, but the driver looks for them only while its
 * count says there are some: after a hijack it may not (Linux 6.12 kfd_process.c).
 */
static void disable_targets(struct model *m, struct model_kproc *dying)
{
	if (dying->debugged_count <= 0)
		return;
	for (struct model_kproc *k = m->kprocs; k; k = k->next) {
		if (k->debugger != dying->serial)
			continue;
		model_dbg_disable(m, k);
		if (dying->debugged_count == 0)
			break;
	}
}

/* The mm goes away: what the driver's MMU notifier does, and the release work after it. */
static void kproc_release(struct model *m, struct model_proc *p)
{
	struct model_kproc *k = p->kproc;
	struct model_kproc **at = &m->kprocs;

	if (!k)
		return;
	model_blocked_forget(m, k);
	model_dbg_disable(m, k);
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	disable_targets(m, k);
	model_queues_terminate(m, k);
	p->kproc = NULL;
	model_events_free(k);
	free(k);
	model_run_woken(m);
	model_run_resets(m);
	model_ext_expire(m);
}

int model_proc_exec(struct model *m, pid_t pid)
{
	struct model_proc *p = model_proc_find(m, pid);
	struct mem_space *mm;

	if (!p)
		return -ESRCH;
	mm = mem_new();
	if (!mm)
		return -ENOMEM;
	model_ext_close_files_of(m, pid);
	kproc_release(m, p);
	mem_free(p->mm);
	p->mm = mm;
	p->has_fd = false;
	p->n_tids = 0;
	return 0;
}

static void untrace(struct model *m, pid_t tracer_pid, pid_t tracer_tid)
{
	for (struct model_proc *p = m->procs; p; p = p->next)
		if (p->tracer.pid == tracer_pid && (!tracer_tid || p->tracer.tid == tracer_tid))
			p->tracer = (struct model_task){ 0 };
}

void model_proc_exit(struct model *m, pid_t pid)
{
	struct model_proc *p = model_proc_find(m, pid);
	struct model_proc **at = &m->procs;

	if (!p)
		return;
	model_ext_close_files_of(m, pid);
	kproc_release(m, p);
	untrace(m, pid, 0);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	proc_free(p);
}

/* ---- ptrace ---- */

bool model_may_trace(const struct model_proc *by, const struct model_proc *p)
{
	return by->admin || by->uid == p->uid;
}

int model_ptrace_seize(struct model *m, struct model_task tracer, pid_t pid)
{
	struct model_proc *by = model_proc_find(m, tracer.pid);
	struct model_proc *p = model_proc_find(m, pid);

	if (!by || !p)
		return -ESRCH;
	if (by == p || !model_may_trace(by, p) || p->tracer.pid)
		return -EPERM;
	p->tracer = tracer;
	return model_proc_note_thread(by, tracer.tid);
}

int model_check_tracee(const struct model *m, struct model_task tracer, pid_t pid)
{
	struct model_task by = model_tracer(m, pid);

	return by.pid && by.pid == tracer.pid && by.tid == tracer.tid ? 0 : -ESRCH;
}

int model_ptrace_detach(struct model *m, struct model_task tracer, pid_t pid)
{
	int r = model_check_tracee(m, tracer, pid);

	if (r == 0)
		model_proc_find(m, pid)->tracer = (struct model_task){ 0 };
	return r;
}

void model_thread_exit(struct model *m, struct model_task task)
{
	struct model_proc *p = model_proc_find(m, task.pid);

	untrace(m, task.pid, task.tid);
	if (!p)
		return;
	for (size_t i = 0; i < p->n_tids; i++)
		if (p->tids[i] == task.tid)
			p->tids[i] = p->tids[--p->n_tids];
}

void model_bury_threads(struct model *m, pid_t pid, bool (*lives)(pid_t pid, pid_t tid))
{
	const struct model_proc *p = model_proc_find(m, pid);

	for (size_t i = p ? p->n_tids : 0; i > 0; i--) {
		struct model_task task = { .pid = pid, .tid = p->tids[i - 1] };

		if (!lives(task.pid, task.tid))
			model_thread_exit(m, task);
	}
}

int model_check_trace(const struct model *m, pid_t by, pid_t pid)
{
	const struct model_proc *caller = model_proc_find(m, by), *p = model_proc_find(m, pid);

	if (!caller || !p)
		return -ESRCH;
	return model_may_trace(caller, p) ? 0 : -EPERM;
}

struct model_task model_tracer(const struct model *m, pid_t pid)
{
	const struct model_proc *p = model_proc_find(m, pid);

	return p ? p->tracer : (struct model_task){ 0 };
}

bool model_is_invented(const struct model *m, pid_t pid)
{
	const struct model_proc *p = model_proc_find(m, pid);

	return p && p->invented;
}

int model_kfd_open(struct model *m, struct model_task task)
{
	struct model_proc *p = model_proc_find(m, task.pid);

	if (!p)
		return -ESRCH;
	if (!model_kproc_get(m, p))
		return -ENOMEM;
	p->has_fd = true;
	return model_proc_note_thread(p, task.tid);
}
