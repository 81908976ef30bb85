/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver behind the library's calls. */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/process.h"
#include "gpu/nvrm/selftest.h"
#include "lib/internal.h"

/* Notes the failure and returns @r. @pid 0: of no process. */
static int fail(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct nvrm_failure *f)
{
	struct gpu_why text;

	nvrm_failure_describe(r, pid, f, &text);
	return ctx_fail_why(ctx, r, &text);
}

/* A driver whose interface is known; anything else is left alone. */
static int check_driver(struct gpreempt_ctx *ctx)
{
	struct nvrm_failure failure = { 0 };
	int r = nvrm_check_version(&ctx->nvrm_version, &failure);

	return r < 0 ? fail(ctx, r, 0, &failure) : 0;
}

/* ---- the machine ---- */

static void read_yama(struct nvrm *n, struct gpreempt_device_info *info)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (n->transport->read_proc(n->data, "sys/kernel/yama/ptrace_scope", &text, &len) < 0)
		return;
	info->yama_scope = (uint32_t)strtoul(text, NULL, 10);
	info->valid |= GPREEMPT_DEVICE_YAMA;
}

static int nv_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	const struct nvrm_version *v = &ctx->nvrm_version;

	snprintf(info->name, sizeof(info->name), "NVIDIA GPU driver");
	snprintf(info->driver_version, sizeof(info->driver_version), "%s", v->text);
	snprintf(info->module, sizeof(info->module), "%s", v->open ? "open" : "proprietary");
	info->valid |= GPREEMPT_DEVICE_DRIVER;
	read_yama(ctx->nvrm, info);
	info->global_pids = true; /* they are those of /proc */
	return 0;
}

/* How many, of which the room is enough for all. */
static int list_gpus(struct gpreempt_ctx *ctx, struct nvrm_gpu ret[NVRM_MAX_GPUS])
{
	int n = nvrm_list_gpus(ctx->nvrm, ret, NVRM_MAX_GPUS);

	return MIN(n, NVRM_MAX_GPUS);
}

static void add_gpu(struct out_array *out, const struct nvrm_gpu *from)
{
	struct gpreempt_gpu gpu = {
		.size = sizeof(gpu),
		.valid = GPREEMPT_GPU_PCI | GPREEMPT_GPU_MIG,
		.index = (uint32_t)out->n,
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
	out_array_add(out, &gpu);
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

static int nv_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	struct nvrm_gpu gpus[NVRM_MAX_GPUS] = { 0 };
	int n = list_gpus(ctx, gpus);

	if (n < 0)
		return fail_gpus(ctx, n);
	for (int i = 0; i < n; i++)
		add_gpu(out, &gpus[i]);
	return 0;
}

/* ---- processes: nothing is done to them ---- */

static struct gpreempt_queue describe_group(const struct nvrm_process *process,
					    const struct nvrm_group *g)
{
	struct gpreempt_queue q = {
		.size = sizeof(q),
		.valid = GPREEMPT_QUEUE_CHANNELS | GPREEMPT_QUEUE_SLICE,
		.pid = process->pid,
		.queue_id = nvrm_group_id(process, g),
		.gpu_id = g->gpu,
		.type = g->compute ? GPREEMPT_QUEUE_GROUP_COMPUTE : GPREEMPT_QUEUE_GROUP_COPY,
		.channels = (uint32_t)g->n_channels,
		.slice_us = g->slice_us,
	};

	return q;
}

/* Its descriptors are borrowed for as long as the look takes. */
static int nv_look(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue **ret, size_t *ret_n,
		   bool *ret_hidden)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_process *process = NULL;
	int r = nvrm_check_version(&ctx->nvrm_version, &failure);

	if (r >= 0)
		r = nvrm_process_open(ctx->nvrm, pid, &process, &failure);
	*ret_hidden = r < 0 && failure.why != NVRM_WHY_NO_CONTEXT;
	if (r < 0)
		return fail(ctx, r, pid, &failure);
	*ret = calloc(process->n_groups + 1, sizeof(**ret));
	for (*ret_n = 0; *ret && *ret_n < process->n_groups; ++*ret_n)
		(*ret)[*ret_n] = describe_group(process, &process->groups[*ret_n]);
	nvrm_process_close(process);
	return *ret ? 0 : ctx_fail_errno(ctx, -ENOMEM, "queues");
}

/* The processes that have a GPU open, but not the caller. */
static int nv_list(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t kept = 0;
	int n = 0;

	if (!ctx->nvrm_finder)
		n = nvrm_finder_new(ctx->nvrm, &ctx->nvrm_finder);
	if (n >= 0)
		n = nvrm_finder_look_at_all(ctx->nvrm_finder);
	if (n >= 0)
		n = nvrm_finder_list(ctx->nvrm_finder, NULL, 0);
	if (n >= 0) {
		pids = calloc((size_t)n + 1, sizeof(*pids));
		n = pids ? nvrm_finder_list(ctx->nvrm_finder, pids, (size_t)n) : -ENOMEM;
	}
	if (n < 0)
		return ctx_fail_errno(ctx, n, "the list of GPU processes");
	for (int i = 0; i < n; i++)
		if (pids[i] != getpid()) /* which may have the driver open to look around */
			pids[kept++] = pids[i];
	*ret = steal_ptr(&pids);
	*ret_n = kept;
	return 0;
}

static int read_file(struct nvrm *n, pid_t pid, const char *name, char **ret_text, size_t *ret_len)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	return n->transport->read_proc(n->data, path, ret_text, ret_len);
}

static int nv_identify(struct gpreempt_ctx *ctx, pid_t pid, struct gkfd_proc_ident *ret)
{
	_cleanup_free_ char *stat = NULL, *status = NULL;
	size_t stat_len, status_len;
	int r = read_file(ctx->nvrm, pid, "stat", &stat, &stat_len);

	if (r >= 0)
		r = read_file(ctx->nvrm, pid, "status", &status, &status_len);
	if (r >= 0)
		r = gkfd_proc_parse_stat(stat, stat_len, ret);
	return r < 0 ? r : gkfd_proc_parse_status(status, status_len, ret);
}

static int nv_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
		     bool only_idle, struct out_array *out)
{
	int r = check_driver(ctx);

	return r < 0 ? r : plain_queues(ctx, filter, only_idle, out);
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
	int r = nvrm_check_version(&ctx->nvrm_version, &failure);

	if (r >= 0)
		return true;
	nvrm_failure_describe(r, 0, &failure, &text);
	level_reason(level, "%.190s", text.message);
	return false;
}

static bool mps_runs(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error before = ctx->last;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	bool found = false;

	if (nv_list(ctx, &pids, &n) < 0)
		ctx->last = before;
	for (size_t i = 0; i < n && !found; i++)
		found = nvrm_is_mps_server(ctx->nvrm, pids[i]);
	return found;
}

static int nv_levels(struct gpreempt_ctx *ctx, struct out_array *out)
{
	static const struct {
		const char *name, *does;
	} levels[] = {
		{ "N2", "takes contexts off the GPU and back; needs the right to trace the "
			"process" },
		{ "N1", "time slices, by gpreemptd: offline contexts leave when others have work; "
			"needs the same right" },
	};
	bool mps = mps_runs(ctx);

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

/* ---- acting ---- */

static int nv_self_test(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_selftest test;
	int r = check_driver(ctx);

	if (r < 0)
		return r;
	r = nvrm_selftest(ctx->nvrm, index, &test, &failure);
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

/* Unless it was named: who has ended, who has nothing to hold, who is not the caller's to touch. */
static bool is_passed_over(int r, enum nvrm_why why)
{
	return r == -ESRCH || why == NVRM_WHY_EXITED || why == NVRM_WHY_NO_CONTEXT ||
	       why == NVRM_WHY_NOT_FOUND || why == NVRM_WHY_NO_RIGHT;
}

static int nv_release(struct gpreempt_ctx *ctx, pid_t pid, bool named)
{
	struct nvrm_failure failure = { 0 };
	int r = check_driver(ctx);

	if (r < 0)
		return r;
	r = nvrm_release_pid(ctx->nvrm, pid, &failure);
	if (r < 0 && !named && is_passed_over(r, failure.why))
		return 0;
	return r < 0 ? fail(ctx, r, pid, &failure) : r > 0;
}

/* Nothing is done to a process that is only looked at: no guard has to undo it. */
static int nv_open_backend(struct gpreempt_ctx *ctx, unsigned int flags, struct gpu_backend **ret)
{
	bool looks = flags & GPREEMPT_ATTACH_LOOK_ONLY;
	int r;

	if (flags & GPREEMPT_ATTACH_PAUSE)
		return ctx_needs(ctx, 0, "way to pause whole processes (level K1)",
				 "leave the level out, or name N2");
	r = check_driver(ctx);
	return r < 0 ? r : ctx_open_backend(ctx, looks ? MAX_WAYS : 0, "N2", !looks, ret);
}

/* ---- opening ---- */

static int nv_begin(struct gpreempt_ctx *ctx)
{
	int r;

	ctx->nvrm = ctx->data;
	r = nvrm_read_version(ctx->nvrm, &ctx->nvrm_version);
	if (r == -ENOENT)
		return fail(ctx, -ENODEV, 0, &(struct nvrm_failure){ .why = NVRM_WHY_NO_DRIVER });
	return r < 0 ? ctx_fail_errno(ctx, r, "the version of NVIDIA's driver") : 0;
}

static void nv_end(struct gpreempt_ctx *ctx)
{
	nvrm_finder_free(ctx->nvrm_finder);
}

static uint64_t nv_now_ns(struct gpreempt_ctx *ctx)
{
	return nvrm_now_ns(ctx->nvrm);
}

const struct vendor vendor_nvidia = {
	.begin = nv_begin,
	.end = nv_end,
	.open_backend = nv_open_backend,
	.look = nv_look,
	.identify = nv_identify,
	.snapshot = plain_snapshot,
	.now_ns = nv_now_ns,
	.wait = plain_wait,
	.device_info = nv_device_info,
	.gpus = nv_gpus,
	.levels = nv_levels,
	.self_test = nv_self_test,
	.processes = plain_processes,
	.queues = nv_queues,
	.list = nv_list,
	.release = nv_release,
};
