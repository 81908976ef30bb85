/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/match.h"

bool gkfd_type_is_compute(uint32_t type)
{
	return type == KFD_IOC_QUEUE_TYPE_COMPUTE || type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
}

struct gkfd_queue_addr gkfd_mqd_addr(const struct gkfd_mqd *mqd)
{
	return (struct gkfd_queue_addr){
		/* ROCm programs make no other compute queues; a descriptor does not say. */
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_base = mqd->ring_base,
		.ring_bytes = mqd->ring_bytes,
		.read_ptr_addr = mqd->read_ptr_addr,
		.write_ptr_addr = mqd->write_ptr_addr,
	};
}

size_t gkfd_mqds_of_process(const struct gkfd_mqds *m, pid_t pid, const struct gkfd_mqd **ret_first)
{
	size_t first = 0, end;

	while (first < m->n && m->mqds[first].pid != pid)
		first++;
	for (end = first; end < m->n && m->mqds[end].pid == pid; end++)
		;
	*ret_first = m->mqds + (m->n ? first : 0);
	return end - first;
}

static bool is_of_kind(const struct gkfd_mqd *mqd, const struct gkfd_proc_queue *q)
{
	return !mqd->sdma && mqd->gpu_id == q->gpu_id && mqd->ring_bytes == q->ring_bytes;
}

static bool is_same_kind(const struct gkfd_proc_queue *a, const struct gkfd_proc_queue *b)
{
	return gkfd_type_is_compute(a->type) && gkfd_type_is_compute(b->type) &&
	       a->gpu_id == b->gpu_id && a->ring_bytes == b->ring_bytes;
}

/*
 * The driver prints the newest queue first, and gives the lowest id that is free (Linux 6.12
 * kfd_process_queue_manager.c): what has @newer ids above it has as many descriptors before it.
 */
const struct gkfd_mqd *gkfd_match_queue(const struct gkfd_proc *proc,
					const struct gkfd_proc_queue *q,
					const struct gkfd_mqd *mqds, size_t n)
{
	const struct gkfd_mqd *found = NULL;
	size_t ids = 0, newer = 0, seen = 0;

	for (size_t i = 0; i < proc->n_queues; i++) {
		if (!is_same_kind(&proc->queues[i], q))
			continue;
		ids++;
		newer += proc->queues[i].queue_id > q->queue_id;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_of_kind(&mqds[i], q) && seen++ == newer)
			found = &mqds[i];
	}
	return ids > 0 && seen == ids ? found : NULL;
}
