/* SPDX-License-Identifier: MIT */
/* Queue descriptors of debugfs, arranged for looking up, and what they tell of a process. */

#include "lib/internal.h"

/* Linux 6.12 kfd_mqd_manager.c: priorities 0-6 are the low pipe class, 11-15 the high one. */
#define PRIORITY_OFFLINE_MAX 6
#define PRIORITY_ONLINE_MIN 11

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_mqds(const void *a, const void *b)
{
	const struct gkfd_mqd *x = a, *y = b;
	int c = compare((uint64_t)x->pid, (uint64_t)y->pid);

	if (c == 0)
		c = compare(x->gpu_id, y->gpu_id);
	return c ? c : compare(x->ring_base, y->ring_base);
}

int mqds_read(struct gpreempt_ctx *ctx, struct gkfd_mqds *ret)
{
	struct gkfd_mqds m = { 0 };
	size_t kept = 0;
	uint32_t line = 0;
	int r;

	r = gkfd_mqds_ask(ctx->k, &m, &line);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m.n; i++)
		if (!m.mqds[i].sdma)
			m.mqds[kept++] = m.mqds[i];
	m.n = kept;
	if (kept)
		qsort(m.mqds, kept, sizeof(*m.mqds), compare_mqds);
	*ret = m;
	return 0;
}

const struct gkfd_mqd *mqds_find(const struct gkfd_mqds *m, pid_t pid, uint32_t gpu_id,
				 uint64_t ring_base)
{
	struct gkfd_mqd key = { .pid = pid, .gpu_id = gpu_id, .ring_base = ring_base };

	if (m->n == 0)
		return NULL;
	return bsearch(&key, m->mqds, m->n, sizeof(*m->mqds), compare_mqds);
}

enum gpreempt_class class_with(enum gpreempt_class so_far, bool known, uint32_t priority)
{
	if (so_far == GPREEMPT_CLASS_ONLINE || (known && priority >= PRIORITY_ONLINE_MIN))
		return GPREEMPT_CLASS_ONLINE;
	return known && priority <= PRIORITY_OFFLINE_MAX ? so_far : GPREEMPT_CLASS_UNKNOWN;
}

enum gpreempt_class mqds_class(const struct gkfd_mqd *mqds, size_t n, size_t n_compute)
{
	enum gpreempt_class job_class =
		n > 0 && n >= n_compute ? GPREEMPT_CLASS_OFFLINE : GPREEMPT_CLASS_UNKNOWN;

	for (size_t i = 0; i < n; i++)
		job_class = class_with(job_class, true, mqds[i].priority);
	return job_class;
}
