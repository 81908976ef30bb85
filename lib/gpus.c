/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gpu/freezer.h"
#include "gpu/kfd/signing.h"
#include "lib/internal.h"

static const char *const scheduler_names[] = {
	[GKFD_SCHED_HWS] = "hws",
	[GKFD_SCHED_NO_HWS] = "no-hws",
	[GKFD_SCHED_MES] = "mes",
};

static void describe(const struct gkfd_node *node, uint32_t index, int sched_policy,
		     struct gpreempt_gpu *ret)
{
	enum gkfd_scheduler sched = gkfd_node_scheduler(node, sched_policy);

	*ret = (struct gpreempt_gpu){ .size = sizeof(*ret),
				      .index = index,
				      .gpu_id = node->gpu_id };
	snprintf(ret->name, sizeof(ret->name), "%s", node->name);
	if (node->known & GKFD_NODE_GFX) {
		gkfd_node_gfx_name(node, ret->gfx, sizeof(ret->gfx));
		ret->valid |= GPREEMPT_GPU_GFX;
	}
	if (node->known & GKFD_NODE_NUM_XCC) {
		ret->xcc = node->num_xcc;
		ret->valid |= GPREEMPT_GPU_XCC;
	}
	if (gkfd_node_cus(node)) {
		ret->cu = gkfd_node_cus(node);
		ret->valid |= GPREEMPT_GPU_CU;
	}
	if (node->known & GKFD_NODE_CP_QUEUES) {
		ret->hqd_total = node->num_cp_queues;
		ret->valid |= GPREEMPT_GPU_HQD_TOTAL;
	}
	if ((node->known & GKFD_NODE_CWSR_SIZE) && (node->known & GKFD_NODE_NUM_XCC)) {
		ret->cwsr_bytes = (uint64_t)node->cwsr_size * node->num_xcc;
		ret->valid |= GPREEMPT_GPU_CWSR;
	}
	if (node->known & GKFD_NODE_FW_VERSION) {
		ret->fw_version = node->fw_version;
		ret->valid |= GPREEMPT_GPU_FIRMWARE;
	}
	if (sched != GKFD_SCHED_UNKNOWN) {
		snprintf(ret->scheduler, sizeof(ret->scheduler), "%s", scheduler_names[sched]);
		ret->valid |= GPREEMPT_GPU_SCHEDULER;
	}
}

int amd_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	const struct gkfd_topology *topology;
	int r = ctx_topology(ctx, &topology), sched_policy;

	if (r < 0)
		return r;
	sched_policy = gkfd_sched_policy(ctx->k);
	for (size_t i = 0; i < topology->n; i++) {
		struct gpreempt_gpu gpu;

		describe(&topology->nodes[i], (uint32_t)i, sched_policy, &gpu);
		out_array_add(out, &gpu);
	}
	return 0;
}

EXPORT int gpreempt_get_gpus(struct gpreempt_ctx *ctx, struct gpreempt_gpu *ret, size_t max)
{
	return out_list(ctx, ctx->vendor->gpus, ret, max, UP_TO(struct gpreempt_gpu, mig));
}

/* Where queues have their pointers is told by debugfs; to whoever has the extension, by that. */
static void read_debugfs(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	_cleanup_(gkfd_mqds_done) struct gkfd_mqds mqds = { 0 };
	struct kfd_gpreempt_version version;
	int r = mqds_read(ctx, &mqds);

	info->debugfs = r >= 0;
	if (r < 0 && gkfd_ext_open(ctx->k, &version) < 0)
		snprintf(info->blind, sizeof(info->blind), "%s", gkfd_mqds_problem(r));
}

static void read_yama(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (gkfd_read_file(ctx->k, GKFD_TREE_PROC, "sys/kernel/yama/ptrace_scope", &text, &len) < 0)
		return;
	info->yama_scope = (uint32_t)strtoul(text, NULL, 10);
	info->valid |= GPREEMPT_DEVICE_YAMA;
}

static void read_driver(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	_cleanup_free_ char *text = NULL, *names = NULL;
	size_t len;

	if (gkfd_read_file(ctx->k, GKFD_TREE_MODULE, "version", &text, &len) >= 0 && len > 0) {
		snprintf(info->driver_version, sizeof(info->driver_version), "%.*s",
			 (int)strcspn(text, "\n"), text);
		info->valid |= GPREEMPT_DEVICE_DRIVER;
	}
	/*
	 * amdgpu finds its GPUs on the PCI bus. One that has not registered there drives
	 * something else, as in the virtual machines for tests.
	 */
	if (gkfd_list_dir(ctx->k, GKFD_TREE_MODULE, "", &names) < 0)
		return;
	free(steal_ptr(&names));
	info->emulated = true;
	if (gkfd_list_dir(ctx->k, GKFD_TREE_MODULE, "drivers", &names) < 0)
		return;
	for (const char *name = names; *name; name += strlen(name) + 1)
		if (strncmp(name, "pci:", strlen("pci:")) == 0)
			info->emulated = false;
}

static void read_signing(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	struct gkfd_signing s;

	gkfd_signing_read(ctx->k, &s);
	if (s.known & GKFD_SIGNING_SECURE_BOOT)
		info->valid |= GPREEMPT_DEVICE_SECURE_BOOT;
	if (s.known & GKFD_SIGNING_LOCKDOWN)
		info->valid |= GPREEMPT_DEVICE_LOCKDOWN;
	info->secure_boot = s.secure_boot;
	info->signed_modules_only = gkfd_signing_is_needed(&s);
	snprintf(info->lockdown, sizeof(info->lockdown), "%s", s.lockdown);
}

int amd_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	const struct gkfd_topology *topology;
	int r;

	r = ctx_topology(ctx, &topology);
	if (r < 0)
		return r;
	snprintf(info->name, sizeof(info->name), "%s",
		 gpreempt_is_modelled(ctx) ? "software device (modelled)" : "AMD GPU driver (KFD)");
	if (ctx_open_device_quietly(ctx) >= 0) {
		info->kfd_major = ctx->k->major;
		info->kfd_minor = ctx->k->minor;
		info->valid |= GPREEMPT_DEVICE_VERSION;
	}
	read_yama(ctx, info);
	read_driver(ctx, info);
	read_signing(ctx, info);
	read_debugfs(ctx, info);
	info->global_pids = gkfd_pids_are_global(ctx->k);
	info->hidden_gpus = (uint32_t)topology->forbidden;
	return 0;
}

EXPORT int gpreempt_get_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *ret)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };
	char freezer[FREEZER_PATH_SIZE];
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_device_info, signed_modules_only));
	if (r < 0)
		return r;
	snprintf(info.backend, sizeof(info.backend), "%s", ctx->backend);
	r = ctx->vendor->device_info(ctx, &info);
	if (r < 0)
		return r;
	if (!gpreempt_is_modelled(ctx) && freezer_group(freezer))
		snprintf(info.freezer, sizeof(info.freezer), "%.*s", (int)sizeof(info.freezer) - 1,
			 freezer);
	return out_struct(ret, &info);
}

EXPORT int gpreempt_self_test(struct gpreempt_ctx *ctx, uint32_t index,
			      struct gpreempt_self_test *ret)
{
	struct gpreempt_self_test test = { .size = sizeof(test) };
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_self_test, running_ns));
	if (r < 0)
		return r;
	r = ctx->vendor->self_test(ctx, index, &test);
	return r < 0 ? r : out_struct(ret, &test);
}
