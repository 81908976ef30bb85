/* SPDX-License-Identifier: MIT */
/* AMD's driver, or a software device, behind the library's calls. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "gpu/kfd/release.h"
#include "gpu/kfd/signing.h"
#include "lib/internal.h"

/* ---- the machine ---- */

static const char *const scheduler_names[] = {
	[GKFD_SCHED_HWS] = "hws",
	[GKFD_SCHED_NO_HWS] = "no-hws",
	[GKFD_SCHED_MES] = "mes",
};

static void add_gpu(struct out_array *out, const struct gkfd_node *node, int sched_policy)
{
	enum gkfd_scheduler sched = gkfd_node_scheduler(node, sched_policy);
	struct gpreempt_gpu gpu = {
		.size = sizeof(gpu),
		.index = (uint32_t)out->n,
		.gpu_id = node->gpu_id,
	};

	snprintf(gpu.name, sizeof(gpu.name), "%s", node->name);
	if (node->known & GKFD_NODE_GFX) {
		gkfd_node_gfx_name(node, gpu.gfx, sizeof(gpu.gfx));
		gpu.valid |= GPREEMPT_GPU_GFX;
	}
	if (node->known & GKFD_NODE_NUM_XCC) {
		gpu.xcc = node->num_xcc;
		gpu.valid |= GPREEMPT_GPU_XCC;
	}
	if (gkfd_node_cus(node)) {
		gpu.cu = gkfd_node_cus(node);
		gpu.valid |= GPREEMPT_GPU_CU;
	}
	if (node->known & GKFD_NODE_CP_QUEUES) {
		gpu.hqd_total = node->num_cp_queues;
		gpu.valid |= GPREEMPT_GPU_HQD_TOTAL;
	}
	if ((node->known & GKFD_NODE_CWSR_SIZE) && (node->known & GKFD_NODE_NUM_XCC)) {
		gpu.cwsr_bytes = (uint64_t)node->cwsr_size * node->num_xcc;
		gpu.valid |= GPREEMPT_GPU_CWSR;
	}
	if (node->known & GKFD_NODE_FW_VERSION) {
		gpu.fw_version = node->fw_version;
		gpu.valid |= GPREEMPT_GPU_FIRMWARE;
	}
	if (sched != GKFD_SCHED_UNKNOWN) {
		snprintf(gpu.scheduler, sizeof(gpu.scheduler), "%s", scheduler_names[sched]);
		gpu.valid |= GPREEMPT_GPU_SCHEDULER;
	}
	out_array_add(out, &gpu);
}

static int amd_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	const struct gkfd_topology *topology;
	int r = ctx_topology(ctx, &topology), sched_policy;

	if (r < 0)
		return r;
	sched_policy = gkfd_sched_policy(ctx->k);
	for (size_t i = 0; i < topology->n; i++)
		add_gpu(out, &topology->nodes[i], sched_policy);
	return 0;
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

static int amd_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	const struct gkfd_topology *topology;
	int r;

	r = ctx_topology(ctx, &topology);
	if (r < 0)
		return r;
	snprintf(info->name, sizeof(info->name), "%s",
		 gpreempt_is_modelled(ctx) ? "software device (modelled)" : "AMD GPU driver (KFD)");
	if (gkfd_open_device(ctx->k) >= 0) {
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

/* ---- levels: which ways to preempt there are, and why not the others ---- */

#define DEBUG_CAPABILITIES (GKFD_CAPABILITY_TRAP_DEBUG | GKFD_CAPABILITY_DEBUG_FIRMWARE)

/* 0: it can be opened and is new enough. */
static int check_device(struct gpreempt_ctx *ctx, enum gkfd_cap cap, const char *since,
			struct gpreempt_level *level)
{
	int r = gkfd_open_device(ctx->k);

	if (r == -EACCES || r == -EPERM)
		level_reason(level,
			     "no right to open /dev/kfd: join the group 'render', or try sudo");
	else if (r < 0)
		level_reason(level, "cannot open /dev/kfd: %s", strerror(-r));
	else if (!gkfd_has(ctx->k, cap))
		level_reason(level, "the driver is too old: KFD %u.%u, need %s", ctx->k->major,
			     ctx->k->minor, since);
	else
		return 0;
	return -EOPNOTSUPP;
}

static bool gpus_allow(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	const struct gkfd_topology *topology;
	int policy = gkfd_sched_policy(ctx->k), r = ctx_topology(ctx, &topology);
	size_t able = 0;

	for (size_t i = 0; r >= 0 && i < topology->n; i++)
		able += (topology->nodes[i].capability & DEBUG_CAPABILITIES) == DEBUG_CAPABILITIES;
	if (r < 0)
		level_reason(level, "the GPUs cannot be listed: %s", strerror(-r));
	else if (topology->n == 0)
		level_reason(level, "%s",
			     topology->forbidden ? "this process may use none of the machine's "
						   "GPUs (device cgroup)" :
						   "the driver has no GPU");
	else if (policy == 2)
		level_reason(level,
			     "amdgpu runs with sched_policy=2, which has no debug interface");
	else if (able == 0)
		level_reason(level, "the GPU or its firmware has no debug support (topology: "
				    "capability)");
	else if (able < topology->n)
		level_reason(level, "debug interface, on %zu of %zu GPUs", able, topology->n);
	return able > 0 && policy != 2;
}

static void level_k2(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	level_reason(level,
		     "debug interface: suspends queues of one process per call; needs the right to "
		     "trace it");
	level->available = check_device(ctx, GKFD_CAP_DEBUG, "1.13 (Linux 6.5)", level) >= 0 &&
			   gpus_allow(ctx, level);
}

/* What is not told, as by a model, is not missing. */
static bool may_checkpoint(struct gpreempt_ctx *ctx)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	uint64_t caps;
	size_t len;

	if (gkfd_read_file(ctx->k, GKFD_TREE_PROC, "self/status", &text, &len) < 0)
		return true;
	line = strstr(text, "\nCapEff:");
	if (!line)
		return true;
	caps = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	return caps & (1ull << CAP_CHECKPOINT_RESTORE | 1ull << CAP_SYS_ADMIN);
}

static void level_k1(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	level_reason(level,
		     "only on request (--level K1): pauses whole processes, of any ROCm runtime; "
		     "only the guard would undo it");
	if (check_device(ctx, GKFD_CAP_CRIU, "1.7 (Linux 5.18)", level) < 0)
		return;
	level->available = may_checkpoint(ctx);
	if (!level->available)
		level_reason(level, "needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN: try sudo (and "
				    "only on request: --level K1)");
}

/* Where modules must be signed, that is the first thing to be done about it. */
static void reason_not_loaded(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	struct gkfd_signing s;

	gkfd_signing_read(ctx->k, &s);
	if (!gkfd_signing_is_needed(&s)) {
		level_reason(level, "kernel extension: not loaded");
		return;
	}
	level_reason(level,
		     "kernel extension: not loaded, and unsigned it would be refused (%s%s%.15s): "
		     "enrol the key DKMS signs with, mokutil --import /var/lib/dkms/mok.pub, and "
		     "restart",
		     s.secure_boot ? "Secure Boot" : "signing enforced",
		     s.known & GKFD_SIGNING_LOCKDOWN ? ", lockdown " : "", s.lockdown);
}

static int check_extension(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	struct kfd_gpreempt_version version;
	int r = gkfd_ext_open(ctx->k, &version);

	if (r == -ENODEV)
		reason_not_loaded(ctx, level);
	else if (r == -EACCES)
		level_reason(level, "kernel extension: no right to open /dev/" KFD_GPREEMPT_DEVICE
				    ": try sudo, or join its group");
	else if (r == -EPROTO)
		level_reason(level, "kernel extension: it is of another version than this command");
	else if (r < 0)
		level_reason(level,
			     "kernel extension: cannot open /dev/" KFD_GPREEMPT_DEVICE ": %s",
			     strerror(-r));
	else
		level_reason(level, "kernel extension: any queues of any processes in one call%s",
			     version.abilities & KFD_GPREEMPT_IS_ADMIN ?
				     "" :
				     "; needs the right to trace them");
	return r;
}

static void level_k3(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	level->available = check_extension(ctx, level) >= 0 &&
			   check_device(ctx, GKFD_CAP_CRIU, "1.7 (Linux 5.18)", level) >= 0;
}

static void level_k0(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	level_reason(level,
		     "a program's own queues: only from inside that program, not by this command");
}

static const struct {
	const char *name;
	void (*tell)(struct gpreempt_ctx *ctx, struct gpreempt_level *level);
} levels[] = {
	{ "K3", level_k3 },
	{ "K2", level_k2 },
	{ "K1", level_k1 },
	{ "K0", level_k0 },
};

static int amd_levels(struct gpreempt_ctx *ctx, struct out_array *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct gpreempt_level level = { .size = sizeof(level) };

		snprintf(level.level, sizeof(level.level), "%s", levels[i].name);
		levels[i].tell(ctx, &level);
		out_array_add(out, &level);
	}
	return 0;
}

/* ---- acting ---- */

/* The backends; the extension's where it is there and nobody wants another. */
enum way { WAY_EXT, WAY_DEBUG, WAY_PAUSE };

static enum way choose_way(struct gpreempt_ctx *ctx, unsigned int flags)
{
	struct kfd_gpreempt_version version;

	if (flags & GPREEMPT_ATTACH_PAUSE)
		return WAY_PAUSE;
	if (flags & GPREEMPT_ATTACH_DEBUG || gkfd_ext_open(ctx->k, &version) < 0)
		return WAY_DEBUG;
	return WAY_EXT;
}

static int amd_open_backend(struct gpreempt_ctx *ctx, unsigned int flags, struct gpu_backend **ret)
{
	static const char *const names[] = { "K3", "K2", "K1" };
	enum way way = choose_way(ctx, flags);
	bool unguarded = flags & GPREEMPT_ATTACH_LOOK_ONLY && gpreempt_is_modelled(ctx);
	int r = ctx_open_device(ctx);

	return r < 0 ? r :
		       ctx_open_backend(ctx, unguarded ? MAX_WAYS + way : way, names[way],
					way != WAY_EXT && !unguarded, ret);
}

/* Where that cannot be told it may have some. */
static bool has_queues(struct gkfd *k, pid_t pid)
{
	_cleanup_free_ char *names = NULL;
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/queues", (int)pid);
	return gkfd_list_dir(k, GKFD_TREE_SYSFS, path, &names) < 0 || *names;
}

static int amd_list(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n)
{
	int r = ctx_open_device(ctx);
	size_t n = 0, kept = 0;
	pid_t *pids = NULL;

	if (r < 0)
		return r;
	if (!gkfd_pids_are_global(ctx->k))
		return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED,
				"run it on the host, or name the pids",
				"inside a container the holds of the machine cannot be seen");
	r = gkfd_proc_list(ctx->k, &pids, &n);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "the list of GPU processes");
	/*
	 * Those without a queue have nothing that could be held. Among them are our own that hang
	 * at one that has, as they end.
	 */
	for (size_t i = 0; i < n; i++)
		if (pids[i] != ctx_own_pid(ctx) && has_queues(ctx->k, pids[i]))
			pids[kept++] = pids[i];
	*ret = pids;
	*ret_n = kept;
	return 0;
}

static int amd_release(struct gpreempt_ctx *ctx, pid_t pid, bool named)
{
	struct gkfd_failure failure = { 0 };
	int r = ctx_open_device(ctx);

	if (r < 0)
		return r;
	r = gkfd_release_pid(ctx->k, pid, &failure);
	/* Of all processes: one that ended is let go, and somebody's debugger is no hold. */
	if (!named && (r == -ESRCH || (r < 0 && failure.why == GKFD_WHY_TRACED)))
		return 0;
	return r < 0 ? ctx_fail_target(ctx, r, pid, &failure) : r;
}

/* ---- opening ---- */

static int amd_begin(struct gpreempt_ctx *ctx)
{
	ctx->k = ctx->data;
	ctx->modelled = ctx->k->transport->modelled;
	ctx->alone = ctx->k->transport->alone;
	return 0;
}

static void amd_end(struct gpreempt_ctx *ctx)
{
	if (ctx->topology_read)
		gkfd_topology_done(&ctx->topology);
}

static uint64_t amd_now_ns(struct gpreempt_ctx *ctx)
{
	return gkfd_now_ns(ctx->k);
}

static int amd_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t ns)
{
	return gkfd_wait(ctx->k, fds, n, ns);
}

const struct vendor vendor_amd = {
	.has = GPREEMPT_HAS_QUEUES | GPREEMPT_HAS_HOLDS | GPREEMPT_HAS_SLOTS |
	       GPREEMPT_HAS_PROGRESS | GPREEMPT_HAS_GRACE | GPREEMPT_HAS_OWN | GPREEMPT_HAS_BRAKE |
	       GPREEMPT_HAS_SCHEDULER,
	.begin = amd_begin,
	.end = amd_end,
	.open_backend = amd_open_backend,
	.snapshot = amd_snapshot,
	.saved = amd_saved,
	.save_ns = model_save_ns,
	.now_ns = amd_now_ns,
	.wait = amd_wait,
	.device_info = amd_device_info,
	.gpus = amd_gpus,
	.levels = amd_levels,
	.processes = amd_processes,
	.queues = amd_queues,
	.list = amd_list,
	.release = amd_release,
};
