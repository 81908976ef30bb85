/* SPDX-License-Identifier: MIT */
/*
 * Where queues have their pointers, from debugfs "mqds" or the extension. Both wait for locks of
 * the driver's, the first for locks that any process can keep: a reader of its own does it, and
 * while that hangs no other one is sent after it, as each would keep the driver from letting go of
 * processes that end (Linux 6.12: it reads under kfd_processes_srcu).
 */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/ext.h"
#include "util/macros.h"

#define WAIT_NS (20 * NSEC_PER_MSEC) /* it takes a few milliseconds while nothing is wrong */
#define PATIENCE_NS (10 * NSEC_PER_SEC) /* of many queues, on a busy machine, some seconds */
#define LATE_NS NSEC_PER_SEC /* this is told */

int mqds_init(struct backend *b)
{
	const struct readers_options options = { .patience_ns = PATIENCE_NS, .most_hung = 1 };
	struct mqds *m = &b->mqds;

	gkfd_mqds_question_init(&m->q, b->ext);
	/* What a transport of its own makes up cannot hang. */
	if (!b->base.readers || b->k->transport != &gkfd_transport_syscall)
		return 0;
	return readers_new(&options, &m->readers);
}

void mqds_done(struct backend *b)
{
	readers_free(b->mqds.readers);
	gkfd_mqds_done(&b->mqds.q.list);
}

static void read_here(struct backend *b)
{
	struct gkfd_mqds list = { 0 };
	int r = b->mqds.q.request.by_ext ? gkfd_ext_mqds(b->k, b->own_pid, &list) :
					   gkfd_mqds_read(b->k, &list);

	gkfd_mqds_answer_is(&b->mqds.q, r, &list);
}

bool mqds_is_known(const struct backend *b)
{
	return b->mqds.asked && !b->mqds.q.left;
}

/* What came too late for whoever asked is for the next who does: it is fresh when first used. */
static bool is_fresh(struct backend *b, uint64_t now_ns)
{
	struct mqds *m = &b->mqds;

	if (!mqds_is_known(b))
		return false;
	if (!m->used)
		m->fresh_ns = now_ns;
	m->used = true;
	return now_ns - m->fresh_ns < MQDS_FRESH_NS;
}

void mqds_refresh(struct backend *b)
{
	struct mqds *m = &b->mqds;
	uint64_t now_ns = gkfd_now_ns(b->k);

	if (is_fresh(b, now_ns))
		return;
	if (!m->q.left)
		m->asked_ns = now_ns;
	m->asked = true;
	m->used = false;
	if (!m->readers) {
		read_here(b);
	} else if (!m->q.left) {
		m->q.left = 1;
		readers_post(m->readers, &m->q.task);
		readers_wait(m->readers, WAIT_NS, &m->q.left);
	}
	is_fresh(b, now_ns);
}

const struct gkfd_mqds *mqds_list(const struct backend *b)
{
	static const struct gkfd_mqds none = { 0 };

	return mqds_is_known(b) ? &b->mqds.q.list : &none;
}

const char *mqds_problem(const struct backend *b)
{
	const struct mqds *m = &b->mqds;

	if (!m->asked)
		return NULL;
	if (m->q.left)
		return gkfd_now_ns(b->k) - m->asked_ns < LATE_NS ? NULL :
								   gkfd_mqds_problem(-ETIMEDOUT);
	return m->q.result < 0 ? gkfd_mqds_problem(m->q.result) : NULL;
}
