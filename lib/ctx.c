/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/driver.h"
#include "gpu/model/model.h"
#include "gpu/nvrm/driver.h"
#include "gpu/soft/driver.h"
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

static int open_model(const char *spec, void **ret, struct gpu_why *ret_why)
{
	_cleanup_free_ char *why = NULL;
	struct gkfd *k = NULL;
	struct model *m;
	int r = model_new_preset(spec, &m, &why);

	if (r == -EINVAL) {
		gpu_why_set(ret_why, GPU_WHY_USAGE, NULL, "no such model '%s'%s%s",
			    spec ? spec : "", why ? ": " : "", why ? why : "");
		list_presets(ret_why->hint, sizeof(ret_why->hint));
		return r;
	}
	if (r >= 0)
		r = gkfd_new(&gkfd_transport_model, model_transport_new(m), &k);
	if (r < 0)
		return gpu_why_fail(ret_why, r, "the model cannot be made");
	*ret = k;
	return 0;
}

static const struct gpu_driver model_driver = {
	.name = "model",
	.argument = "[:PRESET]",
	.whose = "the model's",
	.open = open_model,
	.close = gkfd_driver_close,
	.act = gkfd_driver_act,
};

/* What people ask of these they tell in more detail than a backend does. */
static const struct {
	const struct gpu_driver *driver;
	const struct vendor *vendor;
} vendors[] = {
	{ &model_driver, &vendor_amd },
	{ &soft_driver, &vendor_amd },
	{ &gkfd_driver, &vendor_amd },
	{ &nvrm_driver, &vendor_nvidia },
};

int ctx_take(struct gpreempt_ctx *ctx, const struct gpu_driver *driver, void *data)
{
	ctx->driver = driver;
	ctx->data = data;
	ctx->vendor = &vendor_plain;
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
		if (!strcmp(vendors[i].driver->name, driver->name))
			ctx->vendor = vendors[i].vendor;
	}
	ctx->has = ctx->vendor->has;
	return ctx->vendor->begin(ctx);
}

static int open_named(struct gpreempt_ctx *ctx, const char *device, const struct gpu_driver **ret,
		      void **ret_data)
{
	const struct gpu_driver *d = &model_driver;
	const char *argument;
	struct gpu_why why;
	char names[128];
	int r;

	if (!gpu_driver_is(d, device, &argument))
		d = gpu_driver_named(device, &argument);
	if (!d) {
		gpu_driver_list(names, sizeof(names));
		gpu_why_set(&why, GPU_WHY_USAGE, NULL, "no such device '%s'", device);
		snprintf(why.hint, sizeof(why.hint), "devices: auto, %s, %s%s", names,
			 model_driver.name, model_driver.argument);
		return ctx_fail_why(ctx, -EINVAL, &why);
	}
	*ret = d;
	r = d->open(argument, ret_data, &why);
	return r < 0 ? ctx_fail_why(ctx, r, &why) : 0;
}

static int open_device(struct gpreempt_ctx *ctx, const char *device)
{
	const struct gpu_driver *d;
	struct gpu_why why;
	void *data;
	int r;

	if (device && strcmp(device, "auto")) {
		r = open_named(ctx, device, &d, &data);
	} else {
		r = gpu_driver_open_any(NULL, &d, &data, &why);
		if (r < 0)
			ctx_fail_why(ctx, r, &why);
	}
	return r < 0 ? r : ctx_take(ctx, d, data);
}

int ctx_open_backend(struct gpreempt_ctx *ctx, unsigned int slot, const char *level, bool guarded,
		     struct gpu_backend **ret)
{
	struct gpu_way way = { .level = level };
	struct gpu_why why;
	int r = guarded ? ctx_start_guard(ctx) : 0;

	if (r < 0)
		return r;
	way.guard = guarded ? ctx->guard : NULL;
	if (!ctx->backends[slot])
		r = ctx->driver->act(ctx->data, &way, &ctx->backends[slot], &why);
	*ret = ctx->backends[slot];
	return r < 0 ? ctx_fail_why(ctx, r, &why) : 0;
}

struct gpreempt_ctx *ctx_new(void)
{
	struct gpreempt_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->refs = 1;
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
	if (ctx->driver) {
		ctx->vendor->end(ctx);
		ctx->driver->close(ctx->data);
	}
	free(ctx);
	return NULL;
}

EXPORT const char *gpreempt_backend(const struct gpreempt_ctx *ctx)
{
	return ctx->driver->name;
}

EXPORT bool gpreempt_is_modelled(const struct gpreempt_ctx *ctx)
{
	return ctx->modelled;
}

EXPORT unsigned int gpreempt_abilities(const struct gpreempt_ctx *ctx)
{
	return ctx->has;
}

EXPORT uint64_t gpreempt_now_ns(struct gpreempt_ctx *ctx)
{
	return ctx->vendor->now_ns(ctx);
}

int ctx_needs(struct gpreempt_ctx *ctx, unsigned int ability, const char *what, const char *hint)
{
	if (ctx->has & ability)
		return 0;
	return ctx_fail(ctx, -EOPNOTSUPP, GPREEMPT_ERROR_REFUSED, hint, "%s driver has no %s",
			ctx->driver->whose, what);
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
	return ctx->alone ? MODEL_SELF_PID : getpid();
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
	return endless && ctx->alone ? plain_wait(ctx, fds, n, ns) :
				       ctx->vendor->wait(ctx, fds, n, ns);
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
