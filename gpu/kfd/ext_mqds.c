/* SPDX-License-Identifier: MIT */
/*
 * What "mqds" of debugfs tells of queues, from the extension: it is shorter, is there under
 * lockdown, and is asked process by process. Which process it is, whoever reads sysfs knows.
 */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "gpu/kfd/grow.h"
#include "gpu/kfd/match.h"
#include "gpu/kfd/procs.h"
#include "util/macros.h"

static struct gkfd_mqd mqd_of(pid_t pid, const struct kfd_gpreempt_queue *q)
{
	return (struct gkfd_mqd){
		.pid = pid,
		.gpu_id = q->gpu_id,
		.sdma = !gkfd_type_is_compute(q->type),
		.active = q->flags & KFD_GPREEMPT_QUEUE_ACTIVE,
		.priority = q->priority,
		.ring_base = q->ring_base,
		.ring_bytes = q->ring_bytes,
		.read_ptr_addr = q->read_ptr,
		.write_ptr_addr = q->write_ptr,
		.cwsr_base = q->cwsr_base,
		.cwsr_bytes = q->cwsr_bytes,
	};
}

/* The highest id first, as "mqds" has them. */
static int add_queues(struct gkfd *k, pid_t pid, struct gkfd_mqds *m, size_t *room)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n = gkfd_ext_bind(k, pid);

	if (n >= 0)
		n = gkfd_ext_queues(k, pid, 0, &queues);
	for (int i = 0; i < n; i++) {
		struct gkfd_mqd *grown = gkfd_grow(m->mqds, m->n, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->mqds = grown;
		m->mqds[m->n++] = mqd_of(pid, &queues[i]);
	}
	return n == -ESRCH ? 0 : MIN(n, 0); /* it has ended meanwhile */
}

int gkfd_ext_mqds(struct gkfd *k, struct gkfd_mqds *ret)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct gkfd_mqds m = { 0 };
	size_t n = 0, room = 0;
	int r = gkfd_proc_list(k, &pids, &n);

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = add_queues(k, pids[i], &m, &room);
	if (r < 0) {
		gkfd_mqds_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}
