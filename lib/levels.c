/* SPDX-License-Identifier: MIT */
/* Which ways to preempt this machine has, and why not the others. Attaches to nobody. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "gpu/kfd/signing.h"
#include "lib/internal.h"

#define DEBUG_CAPABILITIES (GKFD_CAPABILITY_TRAP_DEBUG | GKFD_CAPABILITY_DEBUG_FIRMWARE)

/* 0: it can be opened and is new enough. */
static int check_device(struct gpreempt_ctx *ctx, enum gkfd_cap cap, const char *since,
			struct gpreempt_level *level)
{
	int r = ctx_open_device_quietly(ctx);

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

static int check_right_to_pause(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	if (may_checkpoint(ctx))
		return 0;
	level_reason(level, "needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN: try sudo (and only on "
			    "request: --level K1)");
	return -EACCES;
}

static void level_k1(struct gpreempt_ctx *ctx, struct gpreempt_level *level)
{
	level_reason(level,
		     "only on request (--level K1): pauses whole processes, of any ROCm runtime; "
		     "only the guard would undo it");
	level->available = check_device(ctx, GKFD_CAP_CRIU, "1.7 (Linux 5.18)", level) >= 0 &&
			   check_right_to_pause(ctx, level) >= 0;
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

int amd_levels(struct gpreempt_ctx *ctx, struct out_array *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct gpreempt_level level = { .size = sizeof(level) };

		snprintf(level.level, sizeof(level.level), "%s", levels[i].name);
		levels[i].tell(ctx, &level);
		out_array_add(out, &level);
	}
	return 0;
}

EXPORT int gpreempt_get_levels(struct gpreempt_ctx *ctx, struct gpreempt_level *ret, size_t max)
{
	return out_list(ctx, ctx->vendor->levels, ret, max, UP_TO(struct gpreempt_level, reason));
}
