/* SPDX-License-Identifier: MIT */
/* The GPUs of the machine as sysfs describes them. Nothing here needs a right or opens a device. */
#ifndef GPREEMPT_GPU_KFD_TOPOLOGY_H
#define GPREEMPT_GPU_KFD_TOPOLOGY_H

#include "gpu/kfd/kfd.h"

/* Which properties a node had: unknown is not zero. */
enum gkfd_node_known {
	GKFD_NODE_SIMD_COUNT = 1u << 0,
	GKFD_NODE_SIMD_PER_CU = 1u << 1,
	GKFD_NODE_NUM_XCC = 1u << 2,
	GKFD_NODE_GFX = 1u << 3,
	GKFD_NODE_CP_QUEUES = 1u << 4,
	GKFD_NODE_CWSR_SIZE = 1u << 5,
	GKFD_NODE_CAPABILITY = 1u << 6,
	GKFD_NODE_RENDER_MINOR = 1u << 7,
	GKFD_NODE_FW_VERSION = 1u << 8,
};

struct gkfd_node {
	uint32_t index; /* of the directory; first, as they are sorted by it */
	uint32_t gpu_id;
	uint32_t known; /* GKFD_NODE_* */
	char name[64];
	uint32_t simd_count, simd_per_cu;
	uint32_t num_xcc;
	uint32_t gfx_target_version; /* 90402: major * 10000 + minor * 100 + step */
	uint32_t num_cp_queues; /* compute queue slots; per node, not per XCC */
	uint32_t cwsr_size; /* per XCC */
	uint32_t capability; /* HSA_CAP_* bits of the driver */
	uint32_t drm_render_minor;
	uint32_t fw_version;
};

#define GKFD_CAPABILITY_TRAP_DEBUG 0x00008000u
#define GKFD_CAPABILITY_DEBUG_FIRMWARE 0x20000000u

enum gkfd_scheduler {
	GKFD_SCHED_UNKNOWN,
	GKFD_SCHED_HWS, /* runlist firmware: gfx9 */
	GKFD_SCHED_NO_HWS, /* sched_policy=2: no debug interface */
	GKFD_SCHED_MES, /* gfx11 and later */
};

struct gkfd_topology {
	size_t n;
	struct gkfd_node *nodes; /* GPUs only, in order of index */
	size_t forbidden; /* nodes the device cgroup hides (-EPERM) */
};

/*
 * -ENOENT: no KFD driver. -EBADMSG: a file of the tree makes no sense. No GPU at all is an
 * empty list.
 */
int gkfd_topology_read(struct gkfd *k, struct gkfd_topology *ret);
void gkfd_topology_done(struct gkfd_topology *t);
const struct gkfd_node *gkfd_topology_find(const struct gkfd_topology *t, uint32_t gpu_id);

uint32_t gkfd_node_cus(const struct gkfd_node *node); /* 0: unknown */
/* "gfx942" and the like, "unknown" where the tree does not say. */
void gkfd_node_gfx_name(const struct gkfd_node *node, char *buf, size_t size);
/* @sched_policy: gkfd_sched_policy()'s answer. */
enum gkfd_scheduler gkfd_node_scheduler(const struct gkfd_node *node, int sched_policy);
int gkfd_sched_policy(struct gkfd *k); /* module parameter; -errno when not readable */

/* Parses one "properties" file into @node; unknown names are passed over. -EBADMSG. */
int gkfd_node_parse(const char *text, size_t len, struct gkfd_node *node);

#endif
