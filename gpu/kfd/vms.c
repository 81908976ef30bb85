/* SPDX-License-Identifier: MIT */
/*
 * Has a process an address space on every GPU it may use?
 *
 * suspend_queues() of Linux 6.12 flushes the TLB of each GPU that comes after one where it has
 * suspended something, and the kernel oopses where the process never took an address space
 * (pdd->drm_priv is NULL). AMD's runtime takes one on every GPU when it starts; a program that
 * does not must not be suspended through the debug interface.
 *
 * Seen from outside, a GPU whose render node the process has not opened has none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "gpu/kfd/topology.h"
#include "util/macros.h"

#define FIRST_RENDER_MINOR 128
#define RENDER_MINORS 64

/* The render nodes @pid has open, as bits from FIRST_RENDER_MINOR on. */
static int open_render_nodes(struct gkfd *k, pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *names = NULL;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%d/fd", (int)pid);
	r = gkfd_list_dir(k, GKFD_TREE_PROC, path, &names);
	if (r < 0)
		return r;
	*ret = 0;
	for (const char *name = names; *name; name += strlen(name) + 1) {
		_cleanup_free_ char *link = NULL;
		const char *file;
		unsigned int minor;
		size_t len;

		snprintf(path, sizeof(path), "%d/fd/%.20s", (int)pid, name);
		if (gkfd_read_file(k, GKFD_TREE_PROC, path, &link, &len) < 0)
			continue;
		file = strrchr(link, '/');
		if (!file || sscanf(file, "/renderD%u", &minor) != 1)
			continue;
		if (minor - FIRST_RENDER_MINOR < RENDER_MINORS)
			*ret |= 1ull << (minor - FIRST_RENDER_MINOR);
	}
	return 0;
}

static bool has_node(const struct gkfd_topology *topology, uint32_t gpu_id, uint64_t nodes)
{
	const struct gkfd_node *gpu = gkfd_topology_find(topology, gpu_id);
	uint32_t bit;

	if (!gpu || !(gpu->known & GKFD_NODE_RENDER_MINOR))
		return true; /* cannot be told */
	bit = gpu->drm_render_minor - FIRST_RENDER_MINOR;
	return bit >= RENDER_MINORS || (nodes >> bit & 1);
}

int gkfd_vms_check(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	_cleanup_(gkfd_proc_done) struct gkfd_proc proc = { 0 };
	_cleanup_(gkfd_topology_done) struct gkfd_topology topology = { 0 };
	uint64_t nodes;

	if (!gkfd_pids_are_global(k) || gkfd_proc_read(k, pid, &proc) < 0 || proc.n_gpus < 2 ||
	    gkfd_topology_read(k, &topology) < 0 || open_render_nodes(k, pid, &nodes) < 0)
		return 0;
	for (size_t i = 0; i < proc.n_gpus; i++) {
		if (has_node(&topology, proc.gpus[i].gpu_id, nodes))
			continue;
		gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_NO_VM, "hold");
		fail->gpu_id = proc.gpus[i].gpu_id;
		return -EOPNOTSUPP;
	}
	return 0;
}
