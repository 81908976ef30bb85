/* SPDX-License-Identifier: MIT */
/* A driver that has nothing but its backend, behind the library's calls. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "lib/internal.h"

static int plain_open_backend(struct gpreempt_ctx *ctx, unsigned int flags,
			      struct gpu_backend **ret)
{
	bool looks = flags & GPREEMPT_ATTACH_LOOK_ONLY;

	if (flags & (GPREEMPT_ATTACH_PAUSE | GPREEMPT_ATTACH_DEBUG))
		return ctx_needs(ctx, 0, "such level", "leave it out");
	return ctx_open_backend(ctx, looks ? MAX_WAYS : 0, NULL, !looks, ret);
}

/* That through which nobody is stopped; NULL: it could not be opened, which is noted. */
static struct gpu_backend *lookout(struct gpreempt_ctx *ctx)
{
	struct gpu_backend *b;

	return plain_open_backend(ctx, GPREEMPT_ATTACH_LOOK_ONLY, &b) < 0 ? NULL : b;
}

/* ---- the machine ---- */

static int plain_begin(struct gpreempt_ctx *ctx)
{
	struct gpu_backend *b = lookout(ctx);

	if (!b)
		return ctx->last.error;
	ctx->modelled = b->caps.modelled;
	ctx->has |= b->caps.unit == GPU_UNIT_QUEUE ? GPREEMPT_HAS_QUEUES : 0;
	return 0;
}

static void plain_end(struct gpreempt_ctx *ctx)
{
}

static uint64_t plain_now_ns(struct gpreempt_ctx *ctx)
{
	struct gpu_backend *b = lookout(ctx);

	return b ? b->ops->now_ns(b) : 0;
}

int plain_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	int r = ppoll(fds, n, &ts, NULL);

	return r < 0 ? -errno : r;
}

static int plain_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info)
{
	snprintf(info->name, sizeof(info->name), "%s GPU driver", ctx->driver->whose);
	info->global_pids = true;
	return 0;
}

static int plain_gpus(struct gpreempt_ctx *ctx, struct out_array *out)
{
	struct gpu_node nodes[GPU_NODES_MAX];
	struct gpu_backend *b = lookout(ctx);
	int n = b ? b->ops->nodes(b, nodes, ARRAY_SIZE(nodes)) : ctx->last.error;

	for (int i = 0; i < MIN(n, GPU_NODES_MAX); i++) {
		struct gpreempt_gpu gpu = { .size = sizeof(gpu), .index = (uint32_t)i };

		gpu.gpu_id = nodes[i].gpu;
		gpu.hqd_total = nodes[i].slots;
		gpu.valid = nodes[i].slots ? GPREEMPT_GPU_HQD_TOTAL : 0;
		snprintf(gpu.name, sizeof(gpu.name), "%s", nodes[i].name);
		out_array_add(out, &gpu);
	}
	return b && n < 0 ? ctx_fail_errno(ctx, n, "the list of GPUs") : MIN(n, 0);
}

static int plain_levels(struct gpreempt_ctx *ctx, struct out_array *out)
{
	struct gpreempt_level level = { .size = sizeof(level), .available = true };
	struct gpu_backend *b = lookout(ctx);

	if (!b)
		return ctx->last.error;
	snprintf(level.level, sizeof(level.level), "%s", b->caps.level);
	level_reason(&level, "takes %s of a process off the GPU and back",
		     b->caps.unit == GPU_UNIT_QUEUE ? "queues" : "all");
	out_array_add(out, &level);
	return 0;
}

/* ---- processes: nothing is done to them ---- */

static int plain_list(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n)
{
	struct gpu_backend *b = lookout(ctx);
	_cleanup_free_ pid_t *pids = NULL;
	int n = b ? b->ops->processes(b, NULL, 0) : ctx->last.error;

	if (n >= 0) {
		pids = calloc((size_t)n + 1, sizeof(*pids));
		n = pids ? MIN(n, b->ops->processes(b, pids, (size_t)n)) : -ENOMEM;
	}
	if (n < 0)
		return b ? ctx_fail_errno(ctx, n, "the list of GPU processes") : n;
	*ret = steal_ptr(&pids);
	*ret_n = (size_t)n;
	return 0;
}

static int plain_look(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_queue **ret,
		      size_t *ret_n, bool *ret_hidden)
{
	struct gpu_backend *b = lookout(ctx);
	const struct gpu_queue *queues;
	struct gpu_watch *w = NULL;
	int r = b ? b->ops->watch(b, pid, &w) : ctx->last.error;

	if (r < 0)
		return b ? ctx_fail_errno(ctx, r, "queues") : r;
	queues = b->ops->queues(w, ret_n);
	*ret = calloc(*ret_n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < *ret_n; i++)
		(*ret)[i] = (struct gpreempt_queue){ .size = sizeof(**ret),
						     .pid = pid,
						     .type = GPREEMPT_QUEUE_OTHER,
						     .queue_id = queues[i].queue,
						     .gpu_id = queues[i].gpu };
	b->ops->unwatch(w);
	return *ret ? 0 : ctx_fail_errno(ctx, -ENOMEM, "queues");
}

/* Whoever is asked may take his time: so long it is waited. */
static int plain_identify(struct gpreempt_ctx *ctx, pid_t pid, struct gkfd_proc_ident *ret)
{
	struct gpu_backend *b = lookout(ctx);
	struct pollfd fd = { .fd = b ? b->ops->fd(b) : -1, .events = POLLIN };
	struct proc_files files;
	int r = b ? b->ops->ask(b, pid, PROC_BIT(PROC_STAT) | PROC_BIT(PROC_STATUS)) :
		    ctx->last.error;

	while (r >= 0 && !b->ops->answer(b, &files)) {
		poll(&fd, 1, -1);
		process_hear(ctx, b);
	}
	if (r < 0)
		return r;
	r = files.result;
	if (r >= 0 && files.text[PROC_STAT])
		r = gkfd_proc_parse_stat(files.text[PROC_STAT], files.len[PROC_STAT], ret);
	if (r >= 0 && files.text[PROC_STATUS])
		r = gkfd_proc_parse_status(files.text[PROC_STATUS], files.len[PROC_STATUS], ret);
	proc_files_done(&files);
	return r;
}

/* ---- from that; also of other vendors ---- */

int plain_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	bool hidden;
	int r = process_check(p);

	if (r < 0)
		return r;
	ctx_call_begin(p->ctx);
	r = p->ctx->vendor->look(p->ctx, p->pid, &queues, ret_n, &hidden);
	ctx_call_end(p->ctx);
	if (r < 0)
		return r;
	/* Of a hold that somebody else made, nobody but that one can tell. */
	if (snapshot_mark_held(p, queues, *ret_n) < 0)
		return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	*ret = steal_ptr(&queues);
	return 0;
}

static void add_process(struct gpreempt_ctx *ctx, pid_t pid, struct out_array *out)
{
	struct gpreempt_process_info info = { .size = sizeof(info), .pid = pid };
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct gpreempt_error before = ctx->last;
	struct gkfd_proc_ident ident = { 0 };
	size_t n = 0;

	if (ctx->vendor->look(ctx, pid, &queues, &n, &info.hidden) < 0)
		ctx->last = before; /* it is told all the same */
	if (ctx->vendor->identify(ctx, pid, &ident) < 0)
		return; /* it has ended */
	info.queues = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		info_add_gpu(&info, queues[i].gpu_id);
	info_identify(&info, &ident, ident.tracer_pid ? "traced" : NULL);
	out_array_add(out, &info);
}

int plain_processes(struct gpreempt_ctx *ctx, struct out_array *out)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r = ctx->vendor->list(ctx, &pids, &n);

	for (size_t i = 0; i < n && r >= 0; i++)
		add_process(ctx, pids[i], out);
	return r;
}

/* Of classes, priorities and progress nothing is known here, so that none asked for matches. */
int plain_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter,
		 bool only_idle, struct out_array *out)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r = ctx->vendor->list(ctx, &pids, &n);

	if (r < 0 || filter->job_class != GPREEMPT_CLASS_UNKNOWN || filter->min_priority >= 0 ||
	    filter->max_priority >= 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ struct gpreempt_queue *queues = NULL;
		struct gpreempt_error before = ctx->last;
		size_t n_queues = 0;
		bool hidden;

		if (ctx->vendor->look(ctx, pids[i], &queues, &n_queues, &hidden) < 0)
			ctx->last = before;
		for (size_t q = 0; q < n_queues; q++)
			out_array_add(out, &queues[q]);
	}
	return 0;
}

static int plain_release(struct gpreempt_ctx *ctx, pid_t pid, bool named)
{
	struct gkfd_proc_ident ident = { 0 };
	int r = plain_identify(ctx, pid, &ident);

	if (r >= 0)
		r = ctx->driver->undo(ctx->data,
				      &(struct gpu_leftover){ .pid = pid,
							      .start_ticks = ident.start_ticks,
							      .level = lookout(ctx)->caps.level });
	return r == -ESRCH && !named ? 0 : r < 0 ? ctx_fail_errno(ctx, r, "release") : r;
}

const struct vendor vendor_plain = {
	.begin = plain_begin,
	.end = plain_end,
	.open_backend = plain_open_backend,
	.look = plain_look,
	.identify = plain_identify,
	.snapshot = plain_snapshot,
	.now_ns = plain_now_ns,
	.wait = plain_wait,
	.device_info = plain_device_info,
	.gpus = plain_gpus,
	.levels = plain_levels,
	.processes = plain_processes,
	.queues = plain_queues,
	.list = plain_list,
	.release = plain_release,
};
