/* SPDX-License-Identifier: MIT */
/*
 * "rls", Linux 6.12 pm_debugfs_runlist(): per node the runlist as PM4 type-3 packets, whose
 * header has the opcode in bits 8-15 and in bits 16-29 the dwords that follow, less one.
 */
#include <errno.h>

#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/dump.h"
#include "gpu/kfd/grow.h"
#include "util/macros.h"

enum pm4_opcode {
	PM4_MAP_PROCESS = 0xa1,
	PM4_MAP_QUEUES = 0xa2,
	PM4_RUN_LIST = 0xa5,
};

struct parse {
	struct gkfd_runlists found;
	size_t room;
	bool in_node, has_content;
	uint32_t next; /* offset the next row must have */
	uint32_t body; /* dwords left of the current packet */
};

static struct gkfd_runlist *current(struct parse *p)
{
	return &p->found.lists[p->found.n - 1];
}

static int end_node(struct parse *p)
{
	if (p->in_node && (!p->has_content || p->body > 0))
		return -EBADMSG;
	p->in_node = false;
	return 0;
}

static int begin_node(struct parse *p, struct gkfd_text line)
{
	struct gkfd_runlist list = { 0 }, *grown;

	if (!gkfd_dump_node(line, &list.node, &list.gpu_id))
		return -EBADMSG;
	grown = gkfd_grow(p->found.lists, p->found.n, &p->room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->found.lists = grown;
	p->found.lists[p->found.n++] = list;
	p->in_node = true;
	p->has_content = false;
	p->next = 0;
	p->body = 0;
	return 0;
}

static int take_dword(struct parse *p, uint32_t dword)
{
	if (p->body > 0) {
		p->body--;
		return 0;
	}
	if (dword == 0)
		return 0; /* room the list did not use */
	if (dword >> 30 != 3)
		return -EBADMSG;
	p->body = (dword >> 16 & 0x3fff) + 1;
	switch (dword >> 8 & 0xff) {
	case PM4_MAP_PROCESS:
		current(p)->processes++;
		break;
	case PM4_MAP_QUEUES:
		current(p)->queues++;
		break;
	case PM4_RUN_LIST:
		current(p)->oversubscribed = true;
		break;
	}
	return 0;
}

static int take_row(struct parse *p, struct gkfd_text line)
{
	uint32_t words[GKFD_DUMP_ROW_WORDS], start;
	size_t n = gkfd_dump_row(line, &start, words);
	int r;

	if (n == 0 || !p->in_node || start != p->next)
		return -EBADMSG;
	if (p->has_content && !current(p)->active)
		return -EBADMSG; /* said to have none */
	p->next = start + 4 * (uint32_t)n;
	p->has_content = true;
	current(p)->active = true;
	for (size_t i = 0; i < n; i++) {
		r = take_dword(p, words[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_line(void *data, const struct gkfd_text *line)
{
	struct gkfd_text heading;
	struct parse *p = data;
	int r;

	if (!line)
		return end_node(p);
	heading = *line;
	if (gkfd_dump_heading(&heading)) {
		if (!p->in_node || p->has_content ||
		    !gkfd_text_equals(&heading, "No active runlist"))
			return -EBADMSG;
		p->has_content = true;
		return 0;
	}
	if (line->at < line->end && *line->at == ' ')
		return take_row(p, *line);
	r = end_node(p);
	return r < 0 ? r : begin_node(p, *line);
}

int gkfd_runlists_parse(const char *text, size_t len, struct gkfd_runlists *ret, uint32_t *ret_line)
{
	struct parse p = { 0 };
	int r;

	r = gkfd_dump_lines(text, len, take_line, &p, ret_line);
	if (r < 0) {
		gkfd_runlists_done(&p.found);
		return r;
	}
	*ret = p.found;
	return 0;
}

int gkfd_runlists_read(struct gkfd *k, struct gkfd_runlists *ret, uint32_t *ret_line)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = gkfd_read_file(k, GKFD_TREE_DEBUGFS, "rls", &text, &len);
	return r < 0 ? r : gkfd_runlists_parse(text, len, ret, ret_line);
}

void gkfd_runlists_done(struct gkfd_runlists *r)
{
	free(r->lists);
	*r = (struct gkfd_runlists){ 0 };
}
