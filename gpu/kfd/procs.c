/* SPDX-License-Identifier: MIT */
/* The "proc" directory of KFD's sysfs tree, Linux 6.12 kfd_process.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kfd/procs.h"
#include "gpu/kfd/text.h"
#include "util/array.h"
#include "util/macros.h"

#define PATH_BYTES 96

/* How sysfs says that an object went away between two reads. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* enum kfd_queue_type of the driver, which does not tell AQL from PM4. */
static uint32_t ioctl_type(uint64_t driver_type)
{
	switch (driver_type) {
	case 0:
		return KFD_IOC_QUEUE_TYPE_COMPUTE;
	case 1:
		return KFD_IOC_QUEUE_TYPE_SDMA;
	case 4:
		return KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	case 5:
		return KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID;
	default:
		return GKFD_QUEUE_TYPE_OTHER;
	}
}

static int read_queue(struct gkfd *k, pid_t pid, uint32_t queue_id, struct gkfd_proc_queue *ret)
{
	uint64_t size, type, gpu_id;
	char path[PATH_BYTES];
	int r;

	snprintf(path, sizeof(path), "proc/%d/queues/%u/size", pid, queue_id);
	r = gkfd_read_number(k, GKFD_TREE_SYSFS, path, UINT64_MAX, &size);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "proc/%d/queues/%u/type", pid, queue_id);
	r = gkfd_read_number(k, GKFD_TREE_SYSFS, path, UINT32_MAX, &type);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "proc/%d/queues/%u/gpuid", pid, queue_id);
	r = gkfd_read_number(k, GKFD_TREE_SYSFS, path, UINT32_MAX, &gpu_id);
	if (r < 0)
		return r;
	*ret = (struct gkfd_proc_queue){
		.queue_id = queue_id,
		.gpu_id = (uint32_t)gpu_id,
		.type = ioctl_type(type),
		.ring_bytes = size,
	};
	return 0;
}

static int read_queues(struct gkfd *k, struct gkfd_proc *p)
{
	_cleanup_free_ char *names = NULL;
	char path[PATH_BYTES];
	size_t room = 0;
	int r;

	snprintf(path, sizeof(path), "proc/%d/queues", p->pid);
	r = gkfd_list_dir(k, GKFD_TREE_SYSFS, path, &names);
	if (r < 0)
		return r;
	for (const char *name = names; *name; name += strlen(name) + 1) {
		uint64_t id;

		if (!gkfd_text_is_number(name, strlen(name), UINT32_MAX, &id))
			continue;
		if (array_reserve(&p->queues, p->n_queues + 1, &room, sizeof(*p->queues)) < 0)
			return -ENOMEM;
		r = read_queue(k, p->pid, (uint32_t)id, &p->queues[p->n_queues]);
		if (r == 0)
			p->n_queues++;
		else if (!is_gone(r))
			return r;
	}
	if (p->n_queues > 0)
		qsort(p->queues, p->n_queues, sizeof(*p->queues), compare_u32);
	return 0;
}

static struct gkfd_proc_gpu *gpu_of(struct gkfd_proc *p, size_t *room, uint32_t gpu_id)
{
	for (size_t i = 0; i < p->n_gpus; i++) {
		if (p->gpus[i].gpu_id == gpu_id)
			return &p->gpus[i];
	}
	if (array_reserve(&p->gpus, p->n_gpus + 1, room, sizeof(*p->gpus)) < 0)
		return NULL;
	p->gpus[p->n_gpus] = (struct gkfd_proc_gpu){ .gpu_id = gpu_id };
	return &p->gpus[p->n_gpus++];
}

/* A counter the hardware or the driver's age denies is unknown; one that is not a number lies. */
static int read_counter(struct gkfd *k, const char *path, uint64_t max, bool *ret_known,
			uint64_t *ret)
{
	int r = gkfd_read_number(k, GKFD_TREE_SYSFS, path, max, ret);

	*ret_known = r == 0;
	return r == -EBADMSG || r == -ENOMEM ? r : 0;
}

int gkfd_proc_occupancy(struct gkfd *k, pid_t pid, uint32_t gpu_id, uint32_t *ret)
{
	uint64_t occupancy = 0;
	char path[PATH_BYTES];
	bool known;
	int r;

	snprintf(path, sizeof(path), "proc/%d/stats_%u/cu_occupancy", pid, gpu_id);
	r = read_counter(k, path, UINT32_MAX, &known, &occupancy);
	if (r < 0)
		return r;
	if (!known)
		return -ENOENT;
	*ret = (uint32_t)occupancy;
	return 0;
}

static int read_gpu(struct gkfd *k, pid_t pid, struct gkfd_proc_gpu *gpu)
{
	char path[PATH_BYTES];
	int r;

	snprintf(path, sizeof(path), "proc/%d/vram_%u", pid, gpu->gpu_id);
	r = read_counter(k, path, UINT64_MAX, &gpu->has_vram, &gpu->vram_bytes);
	if (r < 0)
		return r;
	r = gkfd_proc_occupancy(k, pid, gpu->gpu_id, &gpu->cu_occupancy);
	gpu->has_occupancy = r == 0;
	return r < 0 && r != -ENOENT ? r : 0;
}

static int read_gpus(struct gkfd *k, const char *names, struct gkfd_proc *p)
{
	size_t room = 0;
	int r;

	for (; *names; names += strlen(names) + 1) {
		struct gkfd_text t = gkfd_text_of(names, strlen(names));
		uint32_t id;

		if (!gkfd_text_skip(&t, "vram_") && !gkfd_text_skip(&t, "stats_"))
			continue;
		if (!gkfd_text_dec32(&t, &id) || !gkfd_text_ended(&t))
			return -EBADMSG;
		if (!gpu_of(p, &room, id))
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->n_gpus; i++) {
		r = read_gpu(k, p->pid, &p->gpus[i]);
		if (r < 0)
			return r;
	}
	if (p->n_gpus > 0)
		qsort(p->gpus, p->n_gpus, sizeof(*p->gpus), compare_u32);
	return 0;
}

/* A process without its "queues" is on its way out, or the tree is wrong. */
static int why_no_queues(struct gkfd *k, const char *path)
{
	_cleanup_free_ char *names = NULL;
	int r = gkfd_list_dir(k, GKFD_TREE_SYSFS, path, &names);

	if (is_gone(r))
		return -ESRCH;
	return r < 0 ? r : -EBADMSG;
}

int gkfd_proc_read(struct gkfd *k, pid_t pid, struct gkfd_proc *ret)
{
	_cleanup_free_ char *names = NULL;
	struct gkfd_proc p = { .pid = pid };
	char path[PATH_BYTES];
	int r;

	snprintf(path, sizeof(path), "proc/%d", pid);
	r = gkfd_list_dir(k, GKFD_TREE_SYSFS, path, &names);
	if (r < 0)
		return is_gone(r) ? -ESRCH : r;
	r = read_queues(k, &p);
	if (is_gone(r))
		r = why_no_queues(k, path);
	if (r == 0)
		r = read_gpus(k, names, &p);
	if (r < 0) {
		gkfd_proc_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void gkfd_proc_done(struct gkfd_proc *p)
{
	free(p->queues);
	free(p->gpus);
	*p = (struct gkfd_proc){ 0 };
}

int gkfd_proc_list(struct gkfd *k, pid_t **ret, size_t *ret_n)
{
	_cleanup_free_ char *names = NULL;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0, room = 0;
	int r;

	r = gkfd_list_dir(k, GKFD_TREE_SYSFS, "proc", &names);
	if (r < 0)
		return r;
	for (const char *name = names; *name; name += strlen(name) + 1) {
		uint64_t pid;

		if (!gkfd_text_is_number(name, strlen(name), INT32_MAX, &pid) || pid == 0)
			continue;
		if (array_reserve(&pids, n + 1, &room, sizeof(*pids)) < 0)
			return -ENOMEM;
		pids[n++] = (pid_t)pid;
	}
	if (n > 0)
		qsort(pids, n, sizeof(*pids), compare_u32);
	*ret = steal_ptr(&pids);
	*ret_n = n;
	return 0;
}
