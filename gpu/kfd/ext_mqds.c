/* SPDX-License-Identifier: MIT */
/*
 * What "mqds" of debugfs tells of queues, from the extension: it is shorter, is there under
 * lockdown, and is asked process by process. Of whom it does not tell, debugfs may.
 */
#include <errno.h>

#include "gpu/kfd/ext.h"
#include "gpu/kfd/match.h"
#include "gpu/kfd/procs.h"
#include "util/array.h"
#include "util/macros.h"

struct table {
	struct gkfd_mqds m;
	size_t room;
};

static int add(struct table *t, const struct gkfd_mqd *mqd)
{
	if (array_reserve(&t->m.mqds, t->m.n + 1, &t->room, sizeof(*mqd)) < 0)
		return -ENOMEM;
	t->m.mqds[t->m.n++] = *mqd;
	return 0;
}

static struct gkfd_mqd mqd_of(pid_t pid, const struct kfd_gpreempt_queue *q)
{
	return (struct gkfd_mqd){
		.pid = pid,
		.gpu_id = q->gpu_id,
		.sdma = !gkfd_type_is_compute(q->type),
		.priority = q->priority,
		.ring_base = q->ring_base,
		.ring_bytes = q->ring_bytes,
		.read_ptr_addr = q->read_ptr,
		.write_ptr_addr = q->write_ptr,
		.cwsr_base = q->cwsr_base,
		.cwsr_bytes = q->cwsr_bytes,
	};
}

/* The highest id first, as "mqds" has them. How many, or why there are none to be had. */
static int ask(struct gkfd *k, pid_t pid, struct table *t)
{
	_cleanup_free_ struct kfd_gpreempt_queue *queues = NULL;
	int n = gkfd_ext_bind(k, pid);

	if (n >= 0)
		n = gkfd_ext_queues(k, pid, 0, &queues);
	for (int i = 0; i < n; i++) {
		struct gkfd_mqd mqd = mqd_of(pid, &queues[i]);

		if (add(t, &mqd) < 0)
			return -ENOMEM;
	}
	return n;
}

/* Of processes of which nothing is known yet. */
static int add_from_debugfs(struct gkfd *k, struct table *t)
{
	_cleanup_(gkfd_mqds_done) struct gkfd_mqds more = { 0 };
	struct gkfd_mqds asked = t->m;
	const struct gkfd_mqd *first;
	int r = gkfd_mqds_read(k, &more);

	for (size_t i = 0; r >= 0 && i < more.n; i++) {
		asked.mqds = t->m.mqds; /* it may have moved */
		if (gkfd_mqds_of_process(&asked, more.mqds[i].pid, &first) == 0)
			r = add(t, &more.mqds[i]);
	}
	return r;
}

int gkfd_ext_mqds(struct gkfd *k, pid_t own_pid, struct gkfd_mqds *ret)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct table t = { 0 };
	size_t n = 0, silent = 0;
	int r = gkfd_proc_list(k, &pids, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		int asked = pids[i] == own_pid ? 0 : ask(k, pids[i], &t);

		silent += asked < 0;
		if (asked == -ENOMEM)
			r = asked;
	}
	/* It may have ended, or belong to somebody else; most of the time there is none. */
	if (r >= 0 && silent > 0)
		r = add_from_debugfs(k, &t);
	if (r == -ENOMEM || (r < 0 && t.m.n == 0)) {
		gkfd_mqds_done(&t.m);
		return r;
	}
	*ret = t.m;
	return 0;
}
