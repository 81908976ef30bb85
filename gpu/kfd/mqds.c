/* SPDX-License-Identifier: MIT */
/*
 * "mqds", Linux 6.12 pqm_debugfs_mqds(): per process and queue a heading and one dump per XCC.
 * A dump that starts again at offset 0 is the next XCC's. How many there are is not to be
 * computed: an SDMA queue printed after a compute queue has as many as that one, not one.
 */
#include <errno.h>

#include "abi/mqd_v9.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/dump.h"
#include "util/array.h"
#include "util/macros.h"

#define NEEDED_DWORDS (MQD9_CTX_SAVE_SIZE + 1)
#define RING_LOG2_MAX 29 /* in the field's terms; a ring's size is a uint32_t in CREATE_QUEUE */

enum kind {
	NO_QUEUE,
	COMPUTE,
	SDMA,
	OTHER, /* its dumps are passed over */
};

struct parse {
	struct gkfd_mqds found;
	size_t room;
	bool in_process;
	enum kind kind;
	struct gkfd_mqd queue;
	uint32_t dumps; /* of this queue, begun */
	uint32_t next; /* offset the next row must have, or 0 */
	uint32_t dwords[NEEDED_DWORDS]; /* of the first dump: XCC 0 */
};

static uint64_t pair(const uint32_t *dwords, enum mqd9_dword lo)
{
	return (uint64_t)dwords[lo + 1] << 32 | dwords[lo];
}

static uint64_t ring_bytes(uint32_t pq_control)
{
	uint32_t log2_dwords_less_1 = pq_control & 0x3f;

	return log2_dwords_less_1 > RING_LOG2_MAX ? 0 : 8ull << log2_dwords_less_1;
}

static void fill_compute(struct gkfd_mqd *q, const uint32_t *dwords)
{
	q->priority = dwords[MQD9_QUEUE_PRIORITY];
	q->ring_base = pair(dwords, MQD9_RING_BASE_LO) << 8;
	q->ring_bytes = ring_bytes(dwords[MQD9_PQ_CONTROL]);
	q->read_ptr_addr = pair(dwords, MQD9_RPTR_ADDR_LO);
	q->write_ptr_addr = pair(dwords, MQD9_WPTR_ADDR_LO);
	q->cwsr_base = pair(dwords, MQD9_CTX_SAVE_LO);
	q->cwsr_bytes = dwords[MQD9_CTX_SAVE_SIZE];
}

static bool first_dump_is_short(const struct parse *p)
{
	return p->kind == COMPUTE && p->dumps <= 1 && p->next < NEEDED_DWORDS * 4;
}

static int end_queue(struct parse *p)
{
	if (first_dump_is_short(p))
		return -EBADMSG;
	if (p->kind == COMPUTE || p->kind == SDMA) {
		if (array_reserve(&p->found.mqds, p->found.n + 1, &p->room, sizeof(p->queue)) < 0)
			return -ENOMEM;
		if (p->kind == COMPUTE)
			fill_compute(&p->queue, p->dwords);
		p->found.mqds[p->found.n++] = p->queue;
	}
	p->kind = NO_QUEUE;
	return 0;
}

static int take_row(struct parse *p, struct gkfd_text line)
{
	uint32_t words[GKFD_DUMP_ROW_WORDS], start;
	bool wanted = p->dumps < 2; /* the row may begin the second, which tells no more */
	size_t n = gkfd_dump_row(line, &start, wanted ? words : NULL);

	if (n == 0 || p->kind == NO_QUEUE || start % 4 != 0)
		return -EBADMSG;
	if (start == 0) {
		if (p->dumps > 0 && first_dump_is_short(p))
			return -EBADMSG;
		p->dumps++;
	} else if (start != p->next) {
		return -EBADMSG;
	}
	p->next = start + 4 * (uint32_t)n;
	for (size_t i = 0; i < n && p->dumps == 1; i++) {
		if (start / 4 + i < NEEDED_DWORDS)
			p->dwords[start / 4 + i] = words[i];
	}
	return 0;
}

/* Linux 6.12 prints "PASID 0x8001", 6.14 and later, and AMD's own driver of 2026, "PASID 32769". */
static bool take_pasid(struct gkfd_text *line, uint32_t *ret)
{
	return gkfd_text_skip(line, "0x") ? gkfd_text_hex32(line, ret) : gkfd_text_dec32(line, ret);
}

static int begin_process(struct parse *p, struct gkfd_text line)
{
	uint64_t pid;
	uint32_t pasid;

	if (!gkfd_text_skip(&line, "Process ") || !gkfd_text_dec(&line, INT32_MAX, &pid) ||
	    !gkfd_text_skip(&line, " PASID ") || !take_pasid(&line, &pasid) ||
	    !gkfd_text_skip(&line, ":") || !gkfd_text_ended(&line))
		return -EBADMSG;
	p->queue.pid = (pid_t)pid;
	p->in_process = true;
	return 0;
}

static int begin_queue(struct parse *p, struct gkfd_text line)
{
	struct gkfd_mqd queue = { .pid = p->queue.pid };

	if (!p->in_process)
		return -EBADMSG;
	p->dumps = 0;
	p->next = 0;
	if (gkfd_text_skip(&line, "Compute queue on device"))
		p->kind = COMPUTE;
	else if (gkfd_text_skip(&line, "SDMA queue on device"))
		p->kind = SDMA;
	else
		p->kind = OTHER;
	if (p->kind != OTHER && (!gkfd_text_skip(&line, " ") ||
				 !gkfd_text_hex32(&line, &queue.gpu_id) || !gkfd_text_ended(&line)))
		return -EBADMSG;
	queue.sdma = p->kind == SDMA;
	p->queue = queue;
	return 0;
}

static int take_line(void *data, const struct gkfd_text *line)
{
	struct gkfd_text heading;
	struct parse *p = data;
	int r;

	if (!line)
		return end_queue(p);
	heading = *line;
	if (gkfd_dump_heading(&heading)) {
		r = end_queue(p);
		return r < 0 ? r : begin_queue(p, heading);
	}
	if (line->at < line->end && *line->at == ' ')
		return take_row(p, *line);
	r = end_queue(p);
	return r < 0 ? r : begin_process(p, *line);
}

int gkfd_mqds_parse(const char *text, size_t len, struct gkfd_mqds *ret, uint32_t *ret_line)
{
	struct parse p = { 0 };
	int r;

	r = gkfd_dump_lines(text, len, take_line, &p, ret_line);
	if (r < 0) {
		gkfd_mqds_done(&p.found);
		return r;
	}
	*ret = p.found;
	return 0;
}

int gkfd_mqds_read(struct gkfd *k, struct gkfd_mqds *ret)
{
	_cleanup_free_ char *text = NULL;
	uint32_t line;
	size_t len;
	int r;

	r = gkfd_read_file(k, GKFD_TREE_DEBUGFS, "mqds", &text, &len);
	return r < 0 ? r : gkfd_mqds_parse(text, len, ret, &line);
}

const char *gkfd_mqds_problem(int error)
{
	switch (error) {
	case -ENOENT:
		return "the driver's list of queues is not there: no debugfs, or no \"mqds\" in it";
	case -EACCES:
	case -EPERM:
		return "no right to the driver's list of queues (debugfs \"mqds\": root, and no "
		       "lockdown)";
	case -EBADMSG:
		return "the driver's list of queues (debugfs \"mqds\") is not of a known format";
	case -ETIMEDOUT:
	case -EUSERS:
		return "the driver's list of queues (debugfs \"mqds\") does not answer: a process "
		       "keeps it";
	default:
		return "the driver's list of queues (debugfs \"mqds\") cannot be read";
	}
}

void gkfd_mqds_done(struct gkfd_mqds *m)
{
	free(m->mqds);
	*m = (struct gkfd_mqds){ 0 };
}
