/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "gpu/model/model.h"
#include "gpu/soft/transport.h"
#include "lib/internal.h"

static void list_presets(char *buf, size_t size)
{
	size_t at = (size_t)snprintf(buf, size, "presets:");

	for (const struct model_chip *c = model_chips; c->name && at < size; c++)
		at += (size_t)snprintf(buf + at, size - at, "%s %s", c == model_chips ? "" : ",",
				       c->name);
	if (at < size)
		snprintf(buf + at, size - at, "; for example: --device model:mi300x");
}

static int open_model(struct gpreempt_ctx *ctx, const char *spec)
{
	char presets[sizeof(ctx->last.hint)];
	_cleanup_free_ char *why = NULL;
	struct model *m = NULL;
	int r;

	r = model_new_preset(spec, &m, &why);
	if (r == -EINVAL) {
		list_presets(presets, sizeof(presets));
		return ctx_fail(ctx, r, GPREEMPT_ERROR_USAGE, presets, "no such model '%s'%s%s",
				spec ? spec : "", why ? ": " : "", why ? why : "");
	}
	snprintf(ctx->backend, sizeof(ctx->backend), "model");
	if (r >= 0)
		r = gkfd_new(&gkfd_transport_model, model_transport_new(m), &ctx->k);
	return r < 0 ? ctx_fail_errno(ctx, r, "making the model") : 0;
}

static int open_kfd(struct gpreempt_ctx *ctx)
{
	int r = gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(NULL), &ctx->k);
	_cleanup_free_ char *names = NULL;

	if (r < 0)
		return r;
	snprintf(ctx->backend, sizeof(ctx->backend), "kfd");
	/* The driver makes this tree and its device node together. */
	r = gkfd_list_dir(ctx->k, GKFD_TREE_SYSFS, "topology", &names);
	if (r < 0)
		return ctx_fail(ctx, -ENODEV, GPREEMPT_ERROR_ABSENT,
				"load amdgpu, or try without a GPU: --device model",
				"no AMD GPU driver on this machine (no /dev/kfd)");
	return 0;
}

/* AMD's driver where it is there, else NVIDIA's. */
static int open_any(struct gpreempt_ctx *ctx)
{
	int r = open_kfd(ctx);

	if (r != -ENODEV)
		return r;
	gkfd_free(steal_ptr(&ctx->k));
	ctx_clear_error(ctx);
	r = ctx_open_nvrm_driver(ctx);
	if (r == -ENODEV)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT,
				"load amdgpu or nvidia, or try without a GPU: --device model",
				"no GPU driver on this machine: neither AMD's (no /dev/kfd) nor "
				"NVIDIA's (no /dev/nvidiactl)");
	return r;
}

/* A software GPU that others use too. */
static int open_soft(struct gpreempt_ctx *ctx, const char *socket)
{
	void *data;
	int r = soft_new(socket, &data);

	if (r == -ENOENT || r == -ECONNREFUSED)
		return ctx_fail(ctx, -ENODEV, GPREEMPT_ERROR_ABSENT,
				"start one: gpreempt-softgpu SOCKET", "no software GPU at %s: %s",
				socket, strerror(-r));
	if (r == -EACCES || r == -EUSERS || r == -EOPNOTSUPP)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, NULL, "the software GPU at %s: %s",
				socket,
				r == -EOPNOTSUPP ? "it is in another pid namespace" : strerror(-r));
	if (r < 0)
		return ctx_fail_errno(ctx, r, "connecting to the software GPU");
	snprintf(ctx->backend, sizeof(ctx->backend), "soft");
	return gkfd_new(&gkfd_transport_soft, data, &ctx->k);
}

#define DEVICES "devices: auto, kfd, nvrm, model, model:PRESET, soft:SOCKET"

static int open_device(struct gpreempt_ctx *ctx, const char *device)
{
	if (!device || strcmp(device, "auto") == 0)
		return open_any(ctx);
	if (strcmp(device, "kfd") == 0)
		return open_kfd(ctx);
	if (strcmp(device, "nvrm") == 0)
		return ctx_open_nvrm_driver(ctx);
	if (strcmp(device, "model") == 0)
		return open_model(ctx, NULL);
	if (strncmp(device, "model:", strlen("model:")) == 0)
		return open_model(ctx, device + strlen("model:"));
	if (strncmp(device, "soft:", strlen("soft:")) == 0)
		return open_soft(ctx, device + strlen("soft:"));
	return ctx_fail(ctx, -EINVAL, GPREEMPT_ERROR_USAGE, DEVICES, "no such device '%s'", device);
}

struct gpreempt_ctx *ctx_new(void)
{
	struct gpreempt_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->refs = 1;
	ctx->vendor = &vendor_amd;
	ctx->slot = -1;
	LIST_INIT(&ctx->processes);
	ctx_clear_error(ctx);
	return ctx;
}

EXPORT int gpreempt_open(const char *device, struct gpreempt_ctx **ret,
			 struct gpreempt_error *ret_error)
{
	struct gpreempt_ctx *ctx = ctx_new();
	int r;

	if (!ctx)
		return -ENOMEM;
	r = open_device(ctx, device);
	if (r < 0) {
		if (ctx->last.kind == GPREEMPT_ERROR_NONE)
			ctx_fail_errno(ctx, r, "opening the device");
		gpreempt_get_error(ctx, ret_error);
		gpreempt_unref(ctx);
		return r;
	}
	*ret = ctx;
	return 0;
}

EXPORT struct gpreempt_ctx *gpreempt_ref(struct gpreempt_ctx *ctx)
{
	ctx->refs++;
	return ctx;
}

EXPORT struct gpreempt_ctx *gpreempt_unref(struct gpreempt_ctx *ctx)
{
	if (!ctx || --ctx->refs > 0)
		return NULL;
	while (!LIST_EMPTY(&ctx->processes))
		gpreempt_detach(LIST_FIRST(&ctx->processes));
	if (ctx->own.holding)
		gpreempt_resume_own(ctx, NULL);
	backends_close(ctx);
	guard_stop(ctx->guard);
	gpreempt_daemon_close(ctx->daemon);
	ctx->vendor->close(ctx);
	free(ctx);
	return NULL;
}

EXPORT const char *gpreempt_backend(const struct gpreempt_ctx *ctx)
{
	return ctx->backend;
}

EXPORT bool gpreempt_is_modelled(const struct gpreempt_ctx *ctx)
{
	return ctx->k && ctx->k->transport->modelled;
}

bool ctx_is_alone(const struct gpreempt_ctx *ctx)
{
	return ctx->k && ctx->k->transport->alone;
}

EXPORT uint64_t gpreempt_now_ns(struct gpreempt_ctx *ctx)
{
	return ctx->vendor->now_ns(ctx);
}

int ctx_needs(struct gpreempt_ctx *ctx, enum ability ability, const char *what, const char *hint)
{
	if (ctx->vendor->has & ability)
		return 0;
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED, hint, "%s has no %s",
			ctx->vendor->driver, what);
}

int ctx_open_device(struct gpreempt_ctx *ctx)
{
	int r = gkfd_open_device(ctx->k);

	if (r == -EACCES || r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED,
				"join the group 'render' and log in again, or try sudo",
				"no right to open /dev/kfd");
	if (r == -ENOENT || r == -ENODEV || r == -ENXIO)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_ABSENT,
				"load amdgpu, or try without a GPU: --device model",
				"the GPU driver is gone: /dev/kfd: %s", strerror(-r));
	return r < 0 ? ctx_fail_errno(ctx, r, "opening /dev/kfd") : 0;
}

pid_t ctx_own_pid(const struct gpreempt_ctx *ctx)
{
	return ctx_is_alone(ctx) ? MODEL_SELF_PID : getpid();
}

int ctx_topology(struct gpreempt_ctx *ctx, const struct gkfd_topology **ret)
{
	int r;

	if (!ctx->topology_read) {
		r = gkfd_topology_read(ctx->k, &ctx->topology);
		if (r < 0)
			return ctx_fail_errno(ctx, r, "the list of GPUs");
		ctx->topology_read = true;
	}
	*ret = &ctx->topology;
	return 0;
}

static bool anything_held(const struct gpreempt_ctx *ctx)
{
	const struct gpreempt_process *p;

	LIST_FOREACH(p, &ctx->processes, link)
		if (process_holds(p))
			return true;
	return false;
}

static void beat(struct gpreempt_ctx *ctx, uint64_t allow_ns)
{
	if (ctx->slot >= 0)
		guard_beat(ctx->guard, ctx->slot, allow_ns);
	if (ctx->promised)
		backends_promise(ctx, allow_ns);
}

void ctx_call_begin(struct gpreempt_ctx *ctx)
{
	beat(ctx, GUARD_DRIVER_CALL_NS);
}

void ctx_call_end(struct gpreempt_ctx *ctx)
{
	bool wanted = ctx->promised && ctx->guard && anything_held(ctx);

	if (wanted && ctx->slot < 0) {
		/* With a dead guard the tracer lets go by itself: nothing to add here. */
		int slot = guard_arm(ctx->guard, 0, GUARD_SILENCE_NS);

		ctx->slot = slot < 0 ? -1 : slot;
	} else if (!wanted && ctx->slot >= 0) {
		guard_disarm(ctx->guard, ctx->slot);
		ctx->slot = -1;
	}
	beat(ctx, GUARD_SILENCE_NS);
}

EXPORT int gpreempt_keepalive(struct gpreempt_ctx *ctx)
{
	ctx->promised = true;
	ctx_call_end(ctx);
	return 0;
}

EXPORT int gpreempt_guard_fd(const struct gpreempt_ctx *ctx)
{
	return ctx->guard ? guard_fd(ctx->guard) : -1;
}

/* A model's clock jumps; waiting without end for people and programs takes real time. */
static int wait_a_while(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t ns,
			bool endless)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	int r;

	if (ctx->k && !(endless && ctx_is_alone(ctx)))
		return gkfd_wait(ctx->k, fds, n, ns);
	r = ppoll(fds, n, &ts, NULL);
	return r < 0 ? -errno : r;
}

EXPORT int gpreempt_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n,
			 uint64_t timeout_ns)
{
	uint64_t start = gpreempt_now_ns(ctx);
	bool endless = timeout_ns > UINT64_MAX - start;
	uint64_t until = endless ? UINT64_MAX : start + timeout_ns;

	for (;;) {
		uint64_t now = gpreempt_now_ns(ctx);
		uint64_t left = until > now ? until - now : 0;
		int r;

		beat(ctx, GUARD_SILENCE_NS);
		r = wait_a_while(ctx, fds, n, MIN(left, GUARD_BEAT_NS), endless);
		beat(ctx, GUARD_SILENCE_NS);
		backends_tick(ctx);
		if (r == -EINTR)
			continue;
		if (r < 0)
			return ctx_fail_errno(ctx, r, "waiting");
		if (r > 0 || (!endless && gpreempt_now_ns(ctx) >= until))
			return r;
	}
}
