/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kfd/text.h"
#include "gpu/kfd/topology.h"
#include "util/array.h"
#include "util/macros.h"

#define NODES "topology/nodes"

/* Lines of "properties", Linux 6.12 kfd_topology.c node_show(). */
static const struct property {
	const char *name;
	size_t offset;
	uint32_t known;
} properties[] = {
#define PROPERTY(file_name, field, bit) \
	{ \
		file_name, offsetof(struct gkfd_node, field), GKFD_NODE_##bit \
	}
	PROPERTY("simd_count", simd_count, SIMD_COUNT),
	PROPERTY("simd_per_cu", simd_per_cu, SIMD_PER_CU),
	PROPERTY("num_xcc", num_xcc, NUM_XCC),
	PROPERTY("gfx_target_version", gfx_target_version, GFX),
	PROPERTY("num_cp_queues", num_cp_queues, CP_QUEUES),
	PROPERTY("cwsr_size", cwsr_size, CWSR_SIZE),
	PROPERTY("capability", capability, CAPABILITY),
	PROPERTY("drm_render_minor", drm_render_minor, RENDER_MINOR),
	PROPERTY("fw_version", fw_version, FW_VERSION),
#undef PROPERTY
};

static const struct property *find_property(const struct gkfd_text *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(properties); i++) {
		if (gkfd_text_equals(name, properties[i].name))
			return &properties[i];
	}
	return NULL;
}

static bool parse_property(struct gkfd_text *line, struct gkfd_node *node)
{
	const struct property *prop;
	struct gkfd_text name;
	uint64_t value;

	if (!gkfd_text_word(line, &name) || !gkfd_text_blanks(line))
		return false;
	prop = find_property(&name);
	if (!prop)
		return true;
	if (!gkfd_text_dec(line, UINT32_MAX, &value) || !gkfd_text_ended(line))
		return false;

	*(uint32_t *)(void *)((char *)node + prop->offset) = (uint32_t)value;
	node->known |= prop->known;
	return true;
}

int gkfd_node_parse(const char *text, size_t len, struct gkfd_node *node)
{
	struct gkfd_text t = gkfd_text_of(text, len), line;
	struct gkfd_node parsed = *node;

	if (len == 0)
		return -EBADMSG;
	while (!gkfd_text_ended(&t)) {
		if (!gkfd_text_line(&t, &line) || !parse_property(&line, &parsed))
			return -EBADMSG;
	}
	*node = parsed;
	return 0;
}

static int read_node_file(struct gkfd *k, const struct gkfd_node *node, const char *name,
			  char **ret_text, size_t *ret_len)
{
	char path[64];

	snprintf(path, sizeof(path), NODES "/%u/%s", node->index, name);
	return gkfd_read_file(k, GKFD_TREE_SYSFS, path, ret_text, ret_len);
}

static int read_name(struct gkfd *k, struct gkfd_node *node)
{
	_cleanup_free_ char *text = NULL;
	struct gkfd_text t, line;
	size_t len;
	int r = read_node_file(k, node, "name", &text, &len);

	if (r < 0)
		return r;
	t = gkfd_text_of(text, len);
	if (gkfd_text_line(&t, &line))
		t = line;
	gkfd_text_copy(&t, node->name, sizeof(node->name));
	return 0;
}

static int read_properties(struct gkfd *k, struct gkfd_node *node)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = read_node_file(k, node, "properties", &text, &len);

	return r < 0 ? r : gkfd_node_parse(text, len, node);
}

/* 1: a GPU, 0: none. A file that is missing from a node makes the tree wrong, not empty. */
static int read_node(struct gkfd *k, uint32_t index, struct gkfd_node *ret)
{
	struct gkfd_node node = { .index = index };
	uint64_t id = 0;
	char path[64];
	int r;

	snprintf(path, sizeof(path), NODES "/%u/gpu_id", index);
	r = gkfd_read_number(k, GKFD_TREE_SYSFS, path, UINT32_MAX, &id);
	node.gpu_id = (uint32_t)id;
	if (r >= 0 && id)
		r = read_name(k, &node);
	if (r >= 0 && id)
		r = read_properties(k, &node);
	if (r < 0)
		return r == -ENOENT ? -EBADMSG : r;
	*ret = node;
	return id != 0;
}

static int read_nodes(struct gkfd *k, const char *names, struct gkfd_topology *t)
{
	size_t room = 0;

	for (; *names; names += strlen(names) + 1) {
		uint64_t index;
		int r;

		if (!gkfd_text_is_number(names, strlen(names), UINT32_MAX, &index))
			continue;
		if (array_reserve(&t->nodes, t->n + 1, &room, sizeof(*t->nodes)) < 0)
			return -ENOMEM;
		r = read_node(k, (uint32_t)index, &t->nodes[t->n]);
		if (r == -EPERM)
			t->forbidden++;
		else if (r < 0)
			return r;
		else if (r > 0)
			t->n++;
	}
	return 0;
}

int gkfd_topology_read(struct gkfd *k, struct gkfd_topology *ret)
{
	_cleanup_free_ char *names = NULL;
	struct gkfd_topology t = { 0 };
	int r;

	r = gkfd_list_dir(k, GKFD_TREE_SYSFS, NODES, &names);
	if (r < 0)
		return r;
	r = read_nodes(k, names, &t);
	if (r < 0) {
		gkfd_topology_done(&t);
		return r;
	}
	if (t.n > 0)
		qsort(t.nodes, t.n, sizeof(*t.nodes), compare_u32);
	*ret = t;
	return 0;
}

void gkfd_topology_done(struct gkfd_topology *t)
{
	free(t->nodes);
	*t = (struct gkfd_topology){ 0 };
}

const struct gkfd_node *gkfd_topology_find(const struct gkfd_topology *t, uint32_t gpu_id)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->nodes[i].gpu_id == gpu_id)
			return &t->nodes[i];
	}
	return NULL;
}

uint32_t gkfd_node_cus(const struct gkfd_node *node)
{
	uint32_t needed = GKFD_NODE_SIMD_COUNT | GKFD_NODE_SIMD_PER_CU;

	if ((node->known & needed) != needed || node->simd_per_cu == 0)
		return 0;
	return node->simd_count / node->simd_per_cu;
}

void gkfd_node_gfx_name(const struct gkfd_node *node, char *buf, size_t size)
{
	uint32_t v = node->gfx_target_version;

	if (node->known & GKFD_NODE_GFX && v > 0)
		snprintf(buf, size, "gfx%u%x%x", v / 10000, v / 100 % 100, v % 100);
	else
		snprintf(buf, size, "unknown");
}

enum gkfd_scheduler gkfd_node_scheduler(const struct gkfd_node *node, int sched_policy)
{
	if (sched_policy == 2)
		return GKFD_SCHED_NO_HWS;
	if (!(node->known & GKFD_NODE_GFX))
		return GKFD_SCHED_UNKNOWN;
	if (node->gfx_target_version >= 110000)
		return GKFD_SCHED_MES;
	return sched_policy < 0 ? GKFD_SCHED_UNKNOWN : GKFD_SCHED_HWS;
}

int gkfd_sched_policy(struct gkfd *k)
{
	uint64_t policy = 0;
	int r = gkfd_read_number(k, GKFD_TREE_PARAMS, "sched_policy", INT32_MAX, &policy);

	return r < 0 ? r : (int)policy;
}
