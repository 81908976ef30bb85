/* SPDX-License-Identifier: MIT */
/* AMD's driver, or a software device, behind the library's calls. */
#include <errno.h>

#include "lib/internal.h"

static void amd_close(struct gpreempt_ctx *ctx)
{
	if (ctx->topology_read)
		gkfd_topology_done(&ctx->topology);
	gkfd_free(ctx->k);
}

static uint64_t amd_now_ns(struct gpreempt_ctx *ctx)
{
	return gkfd_now_ns(ctx->k);
}

static int amd_self_test(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret)
{
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
			"try what is claimed on a process of yours: gpreempt accept PID",
			"the self-test is for NVIDIA GPUs");
}

const struct vendor vendor_amd = {
	.driver = "AMD's driver",
	.has = HAS_SLOTS | HAS_PROGRESS | HAS_GRACE | HAS_OWN | HAS_BRAKE | HAS_SCHEDULER,
	.open_backend = amd_open_backend,
	.snapshot = amd_snapshot,
	.close = amd_close,
	.now_ns = amd_now_ns,
	.device_info = amd_device_info,
	.gpus = amd_gpus,
	.levels = amd_levels,
	.self_test = amd_self_test,
	.processes = amd_processes,
	.queues = amd_queues,
	.list = amd_list,
	.release = amd_release,
};
