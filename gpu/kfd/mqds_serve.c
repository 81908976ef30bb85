/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/helpers/readers.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/ext.h"
#include "util/macros.h"

int gkfd_mqds_serve(struct gkfd *k, const void *request, size_t len, struct reader_room *room)
{
	_cleanup_(gkfd_mqds_done) struct gkfd_mqds mqds = { 0 };
	const struct gkfd_mqds_request *want = request;
	struct gkfd_mqds_answer head = { 0 };
	int r;

	if (len != sizeof(*want))
		return -EINVAL;
	head.error = want->by_ext ? gkfd_ext_mqds(k, 0, &mqds) :
				    gkfd_mqds_read(k, &mqds, &head.line);
	head.n = mqds.n;
	r = reader_put(room, &head, sizeof(head));
	return r < 0 || !mqds.n ? r : reader_put(room, mqds.mqds, mqds.n * sizeof(*mqds.mqds));
}

int gkfd_mqds_take(const void *answer, size_t len, struct gkfd_mqds *ret, uint32_t *ret_line)
{
	const struct gkfd_mqds_answer *head = answer;
	struct gkfd_mqds mqds = { 0 };

	if (len < sizeof(*head) || (len - sizeof(*head)) / sizeof(*mqds.mqds) != head->n)
		return -EPROTO;
	*ret_line = head->line;
	if (head->error < 0 || !head->n)
		return MIN(head->error, 0);
	mqds.mqds = calloc(head->n, sizeof(*mqds.mqds));
	if (!mqds.mqds)
		return -ENOMEM;
	mqds.n = head->n;
	memcpy(mqds.mqds, head + 1, mqds.n * sizeof(*mqds.mqds));
	*ret = mqds;
	return 0;
}

/* ---- for who waits for it ---- */

#define PATIENCE_NS (5 * NSEC_PER_SEC) /* of many queues, on a busy machine, some seconds */

struct question {
	struct readers_task task;
	unsigned int left;
	int result;
	struct gkfd_mqds *list;
	uint32_t line;
};

static size_t write_request(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	const struct gkfd_mqds_request request = { .by_ext = false };

	if (max < sizeof(request))
		return SIZE_MAX;
	memcpy(to, &request, sizeof(request));
	return sizeof(request);
}

static void answered(struct readers_task *t, struct readers_answer *answer)
{
	struct question *q = (struct question *)t;

	q->left = 0;
	q->result = answer->result;
	if (q->result >= 0)
		q->result = gkfd_mqds_take(answer->bytes, answer->len, q->list, &q->line);
}

int gkfd_mqds_ask(struct gkfd *k, struct gkfd_mqds *ret, uint32_t *ret_line)
{
	struct question q = {
		.task = { .service = READER_MQDS,
			  .user = READERS_SYSTEM,
			  .write = write_request,
			  .done = answered },
		.left = 1,
		.result = -ETIMEDOUT,
		.list = ret,
	};
	struct readers *r;

	if (k->transport != &gkfd_transport_syscall ||
	    readers_new(&(struct readers_options){ .patience_ns = PATIENCE_NS }, &r) < 0)
		return gkfd_mqds_read(k, ret, ret_line);
	readers_post(r, &q.task);
	readers_wait(r, PATIENCE_NS, &q.left);
	readers_cancel(r, &q.task);
	readers_free(r);
	*ret_line = q.line;
	return q.result;
}
