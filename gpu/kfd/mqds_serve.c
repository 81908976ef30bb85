/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

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
