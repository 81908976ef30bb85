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

static struct mqds *mqds_of(struct readers_task *t)
{
	return (struct mqds *)((char *)t - offsetof(struct mqds, task));
}

static size_t write_request(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	const struct gkfd_mqds_request request = { .by_ext = mqds_of(t)->by_ext };

	if (max < sizeof(request))
		return SIZE_MAX;
	memcpy(to, &request, sizeof(request));
	return sizeof(request);
}

static void take(struct mqds *m, struct gkfd_mqds *list, int error)
{
	gkfd_mqds_done(&m->list);
	m->list = *list;
	m->error = error;
	m->known = true;
	m->came = true;
}

static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct mqds *m = mqds_of(t);
	struct gkfd_mqds list = { 0 };
	int r = answer->result;

	if (r >= 0)
		r = gkfd_mqds_take(answer->bytes, answer->len, &list, &m->line);
	take(m, &list, r);
	m->under_way = 0;
}

int mqds_init(struct backend *b)
{
	const struct readers_options options = { .patience_ns = PATIENCE_NS, .most_hung = 1 };
	struct mqds *m = &b->mqds;

	m->by_ext = b->ext;
	m->task = (struct readers_task){
		.service = READER_MQDS,
		.user = READERS_SYSTEM,
		.write = write_request,
		.done = done,
	};
	/* What a transport of its own makes up cannot hang. */
	if (!b->readers || b->k->transport != &gkfd_transport_syscall)
		return 0;
	return readers_new(&options, &m->readers);
}

void mqds_done(struct backend *b)
{
	readers_free(b->mqds.readers);
	gkfd_mqds_done(&b->mqds.list);
}

static void read_here(struct backend *b)
{
	struct mqds *m = &b->mqds;
	struct gkfd_mqds list = { 0 };
	int r = m->by_ext ? gkfd_ext_mqds(b->k, b->own_pid, &list) :
			    gkfd_mqds_read(b->k, &list, &m->line);

	take(m, &list, r);
}

/* What came too late for whoever asked is for the next who does. */
static bool is_fresh(struct mqds *m, uint64_t now_ns)
{
	if (m->came)
		m->fresh_ns = now_ns;
	m->came = false;
	return m->known && now_ns - m->fresh_ns < MQDS_FRESH_NS;
}

void mqds_refresh(struct backend *b)
{
	struct mqds *m = &b->mqds;
	uint64_t now_ns = gkfd_now_ns(b->k);

	if (is_fresh(m, now_ns))
		return;
	if (!m->under_way)
		m->asked_ns = now_ns;
	m->asked = true;
	if (!m->readers) {
		read_here(b);
	} else if (!m->under_way) {
		m->known = false;
		m->under_way = 1;
		readers_post(m->readers, &m->task);
		readers_wait(m->readers, WAIT_NS, &m->under_way);
	}
	is_fresh(m, now_ns);
}

const struct gkfd_mqds *mqds_list(const struct backend *b)
{
	static const struct gkfd_mqds none = { 0 };

	return b->mqds.known ? &b->mqds.list : &none;
}

bool mqds_is_known(const struct backend *b)
{
	return b->mqds.known;
}

const char *mqds_problem(const struct backend *b)
{
	const struct mqds *m = &b->mqds;

	if (!m->asked)
		return NULL;
	if (!m->known)
		return gkfd_now_ns(b->k) - m->asked_ns < LATE_NS ? NULL :
								   gkfd_mqds_problem(-ETIMEDOUT);
	return m->error < 0 ? gkfd_mqds_problem(m->error) : NULL;
}
