/* SPDX-License-Identifier: MIT */
/* The driver, its GPUs, and what can be done with them. Touches nobody. */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/selftest.h"
#include "lib/nvrm.h"

static void read_yama(struct nvrm *n, struct gpreempt_device_info *info)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (n->transport->read_proc(n->data, "sys/kernel/yama/ptrace_scope", &text, &len) < 0)
		return;
	info->yama_scope = (uint32_t)strtoul(text, NULL, 10);
	info->valid |= GPREEMPT_DEVICE_YAMA;
}

int nv_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	const struct nvrm_version *v = &ctx->nvrm->version;

	snprintf(info->name, sizeof(info->name), "NVIDIA GPU driver");
	snprintf(info->driver_version, sizeof(info->driver_version), "%s", v->text);
	snprintf(info->module, sizeof(info->module), "%s", v->open ? "open" : "proprietary");
	info->valid |= GPREEMPT_DEVICE_DRIVER;
	read_yama(ctx->nvrm->n, info);
	info->global_pids = true; /* they are those of /proc */
	return 0;
}

/* How many, of which the room is enough for all. */
static int list_gpus(struct gpreempt_ctx *ctx, struct nvrm_gpu ret[NVRM_MAX_GPUS])
{
	int n = nvrm_list_gpus(ctx->nvrm->n, ret, NVRM_MAX_GPUS);

	return MIN(n, NVRM_MAX_GPUS);
}

static struct gpreempt_gpu describe(const struct nvrm_gpu *from, uint32_t index)
{
	struct gpreempt_gpu gpu = {
		.size = sizeof(gpu),
		.valid = GPREEMPT_GPU_PCI | GPREEMPT_GPU_MIG,
		.index = index,
		.gpu_id = from->gpu,
		.mig = from->mig,
	};

	snprintf(gpu.name, sizeof(gpu.name), "%s", from->name);
	snprintf(gpu.pci, sizeof(gpu.pci), "%04x:%02x:%02x.0", from->domain & 0xffffff,
		 from->bus & 0xff, from->slot & 0xff);
	if (from->uuid[0]) {
		snprintf(gpu.uuid, sizeof(gpu.uuid), "%s", from->uuid);
		gpu.valid |= GPREEMPT_GPU_UUID;
	}
	return gpu;
}

static int fail_gpus(struct gpreempt_ctx *ctx, int r)
{
	if (r == -EACCES || r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"look at the rights of the device, or try sudo",
				"no right to open /dev/nvidiactl");
	if (r == -ENOENT || r == -ENXIO || r == -ENODEV)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT,
				"inside a container, give it the GPU's devices",
				"cannot open /dev/nvidiactl: %s", strerror(-r));
	return ctx_fail_errno(ctx, r, "the list of GPUs");
}

int nv_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	struct nvrm_gpu gpus[NVRM_MAX_GPUS] = { 0 };
	int n = list_gpus(ctx, gpus);

	if (n < 0)
		return fail_gpus(ctx, n);
	for (int i = 0; i < n; i++) {
		struct gpreempt_gpu gpu = describe(&gpus[i], (uint32_t)i);

		out_array_add(out, &gpu);
	}
	return 0;
}

/* ---- levels ---- */

static bool gpus_allow(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	struct nvrm_gpu gpus[NVRM_MAX_GPUS] = { 0 };
	int n = list_gpus(ctx, gpus), whole = 0;

	for (int i = 0; i < n; i++)
		whole += !gpus[i].mig;
	if (n == -EACCES || n == -EPERM)
		level_reason(level, "no right to open /dev/nvidiactl");
	else if (n < 0)
		level_reason(level, "the GPUs cannot be listed: %s", strerror(-n));
	else if (n == 0)
		level_reason(level, "the driver has no GPU");
	else if (whole == 0)
		level_reason(level, "the GPUs are cut into MIG instances, which are left alone");
	return whole > 0;
}

static bool driver_allows(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	struct nvrm_failure failure = { 0 };
	struct gpu_why text;
	int r = nvrm_check_version(&ctx->nvrm->version, &failure);

	if (r >= 0)
		return true;
	nvrm_failure_describe(r, 0, &failure, &text);
	level_reason(level, "%.190s", text.message);
	return false;
}

int nv_levels(struct gpreempt_ctx *ctx, struct out_array *out)
{
	static const struct {
		const char *name, *does;
	} levels[] = {
		{ "N2", "takes contexts off the GPU and back; needs the right to trace the "
			"process" },
		{ "N1", "time slices, by gpreemptd: offline contexts leave when others have work; "
			"needs the same right" },
	};
	bool mps = nv_mps_runs(ctx);

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct gpreempt_level level = { .size = sizeof(level) };

		snprintf(level.level, sizeof(level.level), "%s", levels[i].name);
		level_reason(
			&level, "%s%s", levels[i].does,
			mps ? "; MPS runs, and whoever shares a context through it is refused" :
			      "");
		level.available = driver_allows(ctx, &level) && gpus_allow(ctx, &level);
		out_array_add(out, &level);
	}
	return 0;
}

int nv_self_test(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_selftest test;
	int r = nv_check_driver(ctx);

	if (r < 0)
		return r;
	r = nvrm_selftest(ctx->nvrm->n, index, &test, &failure);
	if (r == -EOPNOTSUPP)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"it takes a CUDA program: does one run here?",
				"the driver could not be tried: %s failed", failure.step);
	if (r < 0)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED, "hold nobody on this machine",
				"a context of our own was not held and freed as it should: %s",
				failure.step ? failure.step : strerror(-r));
	ret->suspend_ns = test.suspend_ns;
	ret->frozen_ns = test.frozen_ns;
	ret->resume_ns = test.resume_ns;
	ret->running_ns = test.running_ns;
	return 0;
}
