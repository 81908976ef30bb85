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
	head.error = want->by_ext ? gkfd_ext_mqds(k, 0, &mqds) : gkfd_mqds_read(k, &mqds);
	head.n = mqds.n;
	r = reader_put(room, &head, sizeof(head));
	return r < 0 || !mqds.n ? r : reader_put(room, mqds.mqds, mqds.n * sizeof(*mqds.mqds));
}

/* ---- for who asks ---- */

static int take(const void *answer, size_t len, struct gkfd_mqds *ret)
{
	const struct gkfd_mqds_answer *head = answer;
	struct gkfd_mqds mqds = { 0 };

	if (len < sizeof(*head) || (len - sizeof(*head)) / sizeof(*mqds.mqds) != head->n)
		return -EPROTO;
	if (head->error < 0 || !head->n)
		return (int)MIN(head->error, 0);
	mqds.mqds = calloc(head->n, sizeof(*mqds.mqds));
	if (!mqds.mqds)
		return -ENOMEM;
	mqds.n = head->n;
	memcpy(mqds.mqds, head + 1, mqds.n * sizeof(*mqds.mqds));
	*ret = mqds;
	return 0;
}

void gkfd_mqds_answer_is(struct gkfd_mqds_question *q, int result, struct gkfd_mqds *list)
{
	gkfd_mqds_done(&q->list);
	q->list = *list;
	q->result = result;
	q->left = 0;
}

static void answered(struct readers_task *t, struct readers_answer *answer)
{
	struct gkfd_mqds list = { 0 };
	int r = answer->result;

	if (r >= 0)
		r = take(answer->bytes, answer->len, &list);
	gkfd_mqds_answer_is(container_of(t, struct gkfd_mqds_question, task), r, &list);
}

void gkfd_mqds_question_init(struct gkfd_mqds_question *q, bool by_ext)
{
	*q = (struct gkfd_mqds_question){
		.task = { .service = READER_MQDS,
			  .user = READERS_SYSTEM,
			  .request = &q->request,
			  .len = sizeof(q->request),
			  .done = answered },
		.request = { .by_ext = by_ext },
	};
}

/* ---- for who waits for it ---- */

#define PATIENCE_NS (5 * NSEC_PER_SEC) /* of many queues, on a busy machine, some seconds */

int gkfd_mqds_ask(struct gkfd *k, struct gkfd_mqds *ret)
{
	struct gkfd_mqds_question q;
	int r = -ENOSYS;

	gkfd_mqds_question_init(&q, false);
	if (k->transport == &gkfd_transport_syscall)
		r = readers_once(&q.task, PATIENCE_NS, PATIENCE_NS);
	if (r < 0 && r != -ETIMEDOUT)
		return gkfd_mqds_read(k, ret);
	if (r >= 0)
		r = q.result;
	if (r >= 0)
		*ret = q.list;
	return r;
}
