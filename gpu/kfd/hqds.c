/* SPDX-License-Identifier: MIT */
/*
 * "hqds", Linux 6.12 dqm_debugfs_hqds(): per node, per XCC, the registers of the scheduler's
 * own queue (HIQ) and of every slot the driver may use, then those of the SDMA engines.
 * Kernels before multi-XCC parts print the same without "Inst".
 */
#include <errno.h>

#include "abi/mqd_v9.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/dump.h"
#include "util/array.h"
#include "util/macros.h"

#define REG(dword) (MQD9_##dword - MQD9_HQD_FIRST)
#define NEEDED_REGS (REG(RING_BASE_HI) + 1)

struct parse {
	struct gkfd_hqds found;
	size_t room;
	bool in_node;
	bool in_slot; /* registers now are those of @slot */
	bool in_other; /* registers now are nothing we look at */
	struct gkfd_hqd slot;
	uint32_t n_regs;
	uint32_t regs[NEEDED_REGS];
};

static int end_slot(struct parse *p)
{
	p->in_other = false;
	if (!p->in_slot)
		return 0;
	p->in_slot = false;
	if (p->n_regs < NEEDED_REGS)
		return -EBADMSG;
	p->slot.active = p->regs[REG(ACTIVE)] & 1;
	if (array_reserve(&p->found.hqds, p->found.n + 1, &p->room, sizeof(p->slot)) < 0)
		return -ENOMEM;
	p->found.hqds[p->found.n++] = p->slot;
	return 0;
}

/* "Node 1, gpu_id 3f2a:" */
static int begin_node(struct parse *p, struct gkfd_text line)
{
	if (!gkfd_text_skip(&line, "Node ") || !gkfd_text_dec32(&line, &p->slot.node) ||
	    !gkfd_text_skip(&line, ", gpu_id ") || !gkfd_text_hex32(&line, &p->slot.gpu_id) ||
	    !gkfd_text_skip(&line, ":") || !gkfd_text_ended(&line))
		return -EBADMSG;
	p->in_node = true;
	return 0;
}

static bool parse_slot(struct gkfd_text line, struct gkfd_hqd *slot)
{
	uint32_t mec;

	slot->xcc = 0;
	if (gkfd_text_skip(&line, "Inst ")) {
		if (!gkfd_text_dec32(&line, &slot->xcc) || !gkfd_text_skip(&line, ",") ||
		    !gkfd_text_blanks(&line))
			return false;
	}
	slot->hiq = gkfd_text_skip(&line, "HIQ on MEC ");
	if (slot->hiq)
		return gkfd_text_dec32(&line, &mec) && gkfd_text_skip(&line, " Pipe ") &&
		       gkfd_text_dec32(&line, &slot->pipe) && gkfd_text_skip(&line, " Queue ") &&
		       gkfd_text_dec32(&line, &slot->queue) && gkfd_text_ended(&line);
	return gkfd_text_skip(&line, "CP Pipe ") && gkfd_text_dec32(&line, &slot->pipe) &&
	       gkfd_text_skip(&line, ", Queue ") && gkfd_text_dec32(&line, &slot->queue) &&
	       gkfd_text_ended(&line);
}

static bool begins_with(struct gkfd_text line, const char *literal)
{
	return gkfd_text_skip(&line, literal);
}

static int begin_slot(struct parse *p, struct gkfd_text heading)
{
	if (!p->in_node)
		return -EBADMSG;
	p->n_regs = 0;
	if (!begins_with(heading, "Inst ") && !begins_with(heading, "HIQ ") &&
	    !begins_with(heading, "CP ")) {
		p->in_other = true;
		return 0;
	}
	if (!parse_slot(heading, &p->slot))
		return -EBADMSG;
	p->in_slot = true;
	return 0;
}

static int take_row(struct parse *p, struct gkfd_text line)
{
	uint32_t words[GKFD_DUMP_ROW_WORDS], address;
	size_t n = gkfd_dump_row(line, &address, words);

	if (n == 0 || (!p->in_slot && !p->in_other))
		return -EBADMSG;
	for (size_t i = 0; i < n && p->in_slot && p->n_regs < NEEDED_REGS; i++)
		p->regs[p->n_regs++] = words[i];
	return 0;
}

static int take_line(void *data, const struct gkfd_text *line)
{
	struct gkfd_text heading;
	struct parse *p = data;
	int r;

	if (!line)
		return end_slot(p);
	heading = *line;
	if (gkfd_dump_heading(&heading)) {
		r = end_slot(p);
		return r < 0 ? r : begin_slot(p, heading);
	}
	if (line->at < line->end && *line->at == ' ')
		return take_row(p, *line);
	r = end_slot(p);
	return r < 0 ? r : begin_node(p, *line);
}

int gkfd_hqds_parse(const char *text, size_t len, struct gkfd_hqds *ret, uint32_t *ret_line)
{
	struct parse p = { 0 };
	int r;

	r = gkfd_dump_lines(text, len, take_line, &p, ret_line);
	if (r < 0) {
		gkfd_hqds_done(&p.found);
		return r;
	}
	*ret = p.found;
	return 0;
}

int gkfd_hqds_read(struct gkfd *k, struct gkfd_hqds *ret)
{
	_cleanup_free_ char *text = NULL;
	uint32_t line;
	size_t len;
	int r;

	r = gkfd_read_file(k, GKFD_TREE_DEBUGFS, "hqds", &text, &len);
	return r < 0 ? r : gkfd_hqds_parse(text, len, ret, &line);
}

void gkfd_hqds_done(struct gkfd_hqds *h)
{
	free(h->hqds);
	*h = (struct gkfd_hqds){ 0 };
}
