/* SPDX-License-Identifier: MIT */
/*
 * Input: how many queues (1 byte), their addresses, then the target's memory: the rest, repeated
 * over the whole address space. Addresses whose low half is past the rest are not mapped.
 */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/progress.h"
#include "tests/fuzz/fuzz.h"
#include "util/macros.h"

#define QUEUES_MAX 8

struct memory {
	const uint8_t *bytes;
	size_t len;
	size_t n_calls, n_spans, n_bytes;
};

static int read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans, size_t n)
{
	struct memory *m = data;

	m->n_calls++;
	if (m->len > 0 && m->bytes[0] == 0xff)
		return -ESRCH;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = spans[i].addr & 0xffff;

		m->n_spans++;
		m->n_bytes += spans[i].len;
		spans[i].ok = at < m->len && spans[i].len <= m->len - at;
		if (spans[i].ok)
			memcpy(spans[i].buf, m->bytes + at, spans[i].len);
	}
	return 0;
}

static void check(const struct gkfd_progress *p)
{
	PROMISE(p->state <= GKFD_QUEUE_BLOCKED);
	PROMISE(p->pointers_known || p->state == GKFD_QUEUE_UNKNOWN);
	PROMISE(p->read_index <= p->write_index);
	PROMISE(p->pending <= p->write_index - p->read_index);
	PROMISE(p->state != GKFD_QUEUE_BLOCKED || p->pending > 0);
	PROMISE(p->state != GKFD_QUEUE_PENDING || p->pending > 0);
	PROMISE(p->state != GKFD_QUEUE_IDLE || p->pending == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct gkfd_transport transport = { .read_mem = read_mem };
	struct gkfd_queue_addr queues[QUEUES_MAX] = { 0 };
	struct gkfd_progress progress[QUEUES_MAX];
	uint64_t saved;
	struct memory m = { 0 };
	struct gkfd k = { .transport = &transport, .data = &m };
	size_t n = len > 0 ? bytes[0] % QUEUES_MAX : 0, head = 1 + n * sizeof(queues[0]);
	int r;

	if (len < head)
		return 0;
	if (n > 0)
		memcpy(queues, bytes + 1, n * sizeof(queues[0]));
	m.bytes = bytes + head;
	m.len = len - head;

	r = gkfd_progress_read(&k, 1, queues, n, progress);
	PROMISE(r == 0 || r == -ESRCH);
	for (size_t i = 0; i < n; i++)
		check(&progress[i]);
	PROMISE(m.n_calls <= 3);
	PROMISE(m.n_spans <= n * (3 + 3 + 5));
	PROMISE(m.n_bytes <= n * (GKFD_PROGRESS_SCAN * 64 + 100));

	r = gkfd_saved_read(&k, 1, queues[0].ring_base, (uint32_t)queues[0].ring_bytes,
			    (uint32_t)(queues[0].ring_bytes >> 32), &saved);
	PROMISE(r == 0 || r == -ESRCH || r == -EINVAL || r == -EFAULT || r == -EBADMSG);
	return 0;
}
