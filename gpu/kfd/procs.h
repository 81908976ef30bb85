/* SPDX-License-Identifier: MIT */
/*
 * Processes that use KFD, from sysfs "proc/" and /proc: no right needed, nothing attached.
 * sysfs names a process by its pid in the initial namespace; where gpreempt itself runs in
 * another one, those names say nothing about the pids it sees (gkfd_pids_are_global).
 */
#ifndef GPREEMPT_GPU_KFD_PROCS_H
#define GPREEMPT_GPU_KFD_PROCS_H

#include "gpu/kfd/kfd.h"

/* A kind this code has no name for; a snapshot has the same value for those the driver lacks. */
#define GKFD_QUEUE_TYPE_OTHER UINT32_MAX

struct gkfd_proc_queue {
	uint32_t queue_id; /* first, as they are sorted by it */
	uint32_t gpu_id;
	/*
	 * KFD_IOC_QUEUE_TYPE_*, or GKFD_QUEUE_TYPE_OTHER. sysfs does not tell AQL from PM4:
	 * every compute queue is KFD_IOC_QUEUE_TYPE_COMPUTE here.
	 */
	uint32_t type;
	uint64_t ring_bytes;
};

struct gkfd_proc_gpu {
	uint32_t gpu_id; /* the same */
	bool has_vram, has_occupancy;
	uint64_t vram_bytes;
	uint32_t cu_occupancy; /* compute units with waves, at this instant */
};

struct gkfd_proc {
	pid_t pid;
	size_t n_queues;
	struct gkfd_proc_queue *queues; /* by queue id */
	size_t n_gpus;
	struct gkfd_proc_gpu *gpus; /* every GPU the process may use, by id */
};

/* Reads one process. -ESRCH: it has no KFD process. -EBADMSG: the tree makes no sense. */
int gkfd_proc_read(struct gkfd *k, pid_t pid, struct gkfd_proc *ret);
void gkfd_proc_done(struct gkfd_proc *p);
/* gkfd_proc_gpu's; -ENOENT: not known here. */
int gkfd_proc_occupancy(struct gkfd *k, pid_t pid, uint32_t gpu_id, uint32_t *ret);
/* Only the pids, ascending; *ret is the caller's to free. A process may vanish meanwhile. */
int gkfd_proc_list(struct gkfd *k, pid_t **ret, size_t *ret_n);

/* What /proc tells of a process. */
struct gkfd_proc_ident {
	pid_t pid;
	pid_t tgid; /* the process; another number than pid: a thread of it */
	pid_t tracer_pid; /* 0: nobody; a thread id of the tracer */
	uid_t uid; /* effective */
	uint64_t start_ticks; /* with the pid, names one process of this boot */
	char state; /* R S D T t Z X */
	char comm[16];
};

int gkfd_proc_identify(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret); /* -ESRCH */
/* True as well where there are no pid namespaces to ask about: copied trees, the model. */
bool gkfd_pids_are_global(struct gkfd *k);
/* The pid here of the process that is @pid inside some container; 0: none or several. */
pid_t gkfd_pid_from_container(struct gkfd *k, pid_t pid);

/* Parsers, on text that may be anything. -EBADMSG. */
int gkfd_proc_parse_stat(const char *text, size_t len, struct gkfd_proc_ident *ret);
int gkfd_proc_parse_status(const char *text, size_t len, struct gkfd_proc_ident *ret);

#endif
