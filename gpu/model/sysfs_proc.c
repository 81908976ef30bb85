/* SPDX-License-Identifier: MIT */
/* The driver's "proc" directory: what each KFD process has (Linux 6.12 kfd_process.c). */
#include <errno.h>
#include <string.h>

#include "gpu/model/driver.h"

/* Takes "PREFIX_<gpu id>" off the path. */
static const struct model_pdd *take_pdd(struct model *m, const struct model_kproc *k,
					const char **path, const char *prefix)
{
	size_t n = strlen(prefix);
	const char *at = *path + n;
	uint64_t id;

	if (strncmp(*path, prefix, n) || !model_path_take_number(&at, &id))
		return NULL;
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		if (m->gpus[i].id != id)
			continue;
		*path = at;
		return &k->pdds[i];
	}
	return NULL;
}

/* Waves on the first XCC, taken times the XCCs for AQL queues, in compute units rounded up. */
static uint32_t cu_occupancy(const struct model *m, const struct model_kproc *k,
			     const struct model_pdd *pdd)
{
	uint32_t per_cu = MODEL_SIMD_PER_CU * MODEL_WAVES_PER_SIMD;
	uint32_t waves = 0;

	for (const struct model_queue *q = k->queues; q; q = q->next) {
		if (q->pdd != pdd || q->type != QUEUE_COMPUTE)
			continue;
		waves += hw_queue_waves(q->hw, 0) * (q->aql ? m->config.chip->n_xcc : 1);
	}
	return (waves + per_cu - 1) / per_cu;
}

static int stats_file(struct model *m, const struct model_kproc *k, const struct model_pdd *pdd,
		      const char *path, bool list, FILE *out)
{
	if (list) {
		if (*path)
			return -ENOTDIR;
		if (!model_is_mes(pdd->gpu))
			model_list_name(out, "cu_occupancy");
		model_list_name(out, "evicted_ms");
		return 0;
	}
	if (!strcmp(path, "cu_occupancy") && !model_is_mes(pdd->gpu))
		fprintf(out, "%u\n", cu_occupancy(m, k, pdd));
	else if (!strcmp(path, "evicted_ms"))
		fprintf(out, "%llu\n", (unsigned long long)(pdd->evicted_ns / NSEC_PER_MSEC));
	else
		return *path ? -ENOENT : -EISDIR;
	return 0;
}

static int queue_file(const struct model_kproc *k, const char *path, bool list, FILE *out)
{
	const struct model_queue *q;
	uint64_t id;

	if (list && !*path) {
		for (q = k->queues; q; q = q->next)
			model_list_name(out, "%u", q->id);
		return 0;
	}
	if (!model_path_take_number(&path, &id) || id > UINT32_MAX)
		return *path ? -ENOENT : -EISDIR;
	q = model_queue_find(k, (uint32_t)id);
	if (!q)
		return -ENOENT;
	if (list) {
		if (*path)
			return -ENOTDIR;
		model_list_name(out, "gpuid");
		model_list_name(out, "size");
		model_list_name(out, "type");
		return 0;
	}
	/* None of these ends in a newline. */
	if (!strcmp(path, "size"))
		fprintf(out, "%u", q->ring_bytes);
	else if (!strcmp(path, "type"))
		fprintf(out, "%d", q->type);
	else if (!strcmp(path, "gpuid"))
		fprintf(out, "%u", q->gpu->id);
	else
		return *path ? -ENOENT : -EISDIR;
	return 0;
}

static void list_process(struct model *m, FILE *out)
{
	model_list_name(out, "pasid");
	model_list_name(out, "queues");
	for (uint32_t i = 0; i < m->config.n_gpus; i++) {
		model_list_name(out, "sdma_%u", m->gpus[i].id);
		model_list_name(out, "stats_%u", m->gpus[i].id);
		model_list_name(out, "vram_%u", m->gpus[i].id);
	}
}

static int process_file(struct model *m, const struct model_kproc *k, const char *path, bool list,
			FILE *out)
{
	const struct model_pdd *pdd;

	if (!*path) {
		if (!list)
			return -EISDIR;
		list_process(m, out);
		return 0;
	}
	if (model_path_take(&path, "queues"))
		return queue_file(k, path, list, out);
	pdd = take_pdd(m, k, &path, "stats_");
	if (pdd)
		return stats_file(m, k, pdd, path, list, out);
	if (list)
		return -ENOENT;
	if (!strcmp(path, "pasid")) {
		fprintf(out, "%u\n", k->pasid);
		return 0;
	}
	pdd = take_pdd(m, k, &path, "vram_");
	if (pdd && !*path) {
		fprintf(out, "%llu\n", (unsigned long long)pdd->vram_bytes);
		return 0;
	}
	if (take_pdd(m, k, &path, "sdma_") && !*path) {
		fputs("0\n", out);
		return 0;
	}
	return -ENOENT;
}

int model_sysfs_proc(struct model *m, const char *path, bool list, FILE *out)
{
	uint64_t pid;

	if (!*path) {
		if (!list)
			return -EISDIR;
		for (struct model_kproc *k = m->kprocs; k; k = k->next)
			model_list_name(out, "%d", k->proc->pid);
		return 0;
	}
	if (!model_path_take_number(&path, &pid))
		return -ENOENT;
	for (struct model_kproc *k = m->kprocs; k; k = k->next)
		if ((uint64_t)k->proc->pid == pid)
			return process_file(m, k, path, list, out);
	return -ENOENT;
}
