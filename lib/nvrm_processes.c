/* SPDX-License-Identifier: MIT */
/* Going through the processes that use NVIDIA GPUs; nothing is done to them. */
#include <errno.h>
#include <string.h>

#include "lib/nvrm.h"

struct gpreempt_queue nv_describe_group(const struct nvrm_process *process,
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

int nv_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n)
{
	_cleanup_free_ struct gpreempt_queue *queues = NULL;
	struct nvrm_failure failure = { 0 };
	struct nvrm_process *process = NULL;
	size_t n = 0;
	int r = process_check(p);

	if (r < 0)
		return r;
	ctx_call_begin(p->ctx);
	r = nvrm_process_open(p->ctx->nvrm->n, p->pid, NULL, &process, &failure);
	ctx_call_end(p->ctx);
	if (r < 0)
		return ctx_fail_nvrm(p->ctx, r, p->pid, &failure);
	queues = calloc(process->n_groups + 1, sizeof(*queues));
	for (; queues && n < process->n_groups; n++)
		queues[n] = nv_describe_group(process, &process->groups[n]);
	nvrm_process_close(process);
	/* Of a hold that somebody else made, nobody but that one can tell. */
	if (!queues || snapshot_mark_held(p, queues, n) < 0)
		return ctx_fail_errno(p->ctx, -ENOMEM, "snapshot");
	*ret = steal_ptr(&queues);
	*ret_n = n;
	return 0;
}

/* How many are in *ret, which is the caller's to free. */
static int read_pids(struct gpreempt_ctx *ctx, pid_t **ret)
{
	struct nvrm_finder *finder = ctx->nvrm->finder;
	_cleanup_free_ pid_t *pids = NULL;
	int n = nvrm_finder_look_at_all(finder);

	if (n >= 0)
		n = nvrm_finder_list(finder, NULL, 0);
	if (n < 0)
		return n;
	pids = calloc((size_t)n + 1, sizeof(*pids));
	n = pids ? nvrm_finder_list(finder, pids, (size_t)n) : -ENOMEM;
	if (n >= 0)
		*ret = steal_ptr(&pids);
	return n;
}

int nv_list(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n)
{
	pid_t *pids = NULL;
	size_t kept = 0;
	int r = 0;

	if (!ctx->nvrm->finder)
		r = nvrm_finder_new(ctx->nvrm->n, &ctx->nvrm->finder);
	if (r >= 0)
		r = read_pids(ctx, &pids);
	if (r < 0)
		return ctx_fail_errno(ctx, r, "the list of GPU processes");
	for (int i = 0; i < r; i++)
		if (pids[i] != getpid()) /* which may have the driver open to look around */
			pids[kept++] = pids[i];
	*ret = pids;
	*ret_n = kept;
	return 0;
}

static int read_file(struct nvrm *n, pid_t pid, const char *name, char **ret_text, size_t *ret_len)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	return n->transport->read_proc(n->data, path, ret_text, ret_len);
}

static int read_ident(struct nvrm *n, pid_t pid, struct gkfd_proc_ident *ret)
{
	_cleanup_free_ char *stat = NULL, *status = NULL;
	size_t stat_len, status_len;
	int r = read_file(n, pid, "stat", &stat, &stat_len);

	if (r >= 0)
		r = read_file(n, pid, "status", &status, &status_len);
	if (r >= 0)
		r = gkfd_proc_parse_stat(stat, stat_len, ret);
	return r < 0 ? r : gkfd_proc_parse_status(status, status_len, ret);
}

/* Its descriptors are borrowed for as long as the look takes. NULL: it cannot be looked into. */
static struct nvrm_process *look_into(struct gpreempt_ctx *ctx, pid_t pid, enum nvrm_why *ret_why)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_process *process = NULL;

	if (nvrm_check_version(&ctx->nvrm->version, &failure) >= 0 &&
	    nvrm_process_open(ctx->nvrm->n, pid, NULL, &process, &failure) >= 0)
		return process;
	*ret_why = failure.why;
	return NULL;
}

static void describe(struct gpreempt_ctx *ctx, pid_t pid, struct gpreempt_process_info *ret)
{
	enum nvrm_why why = NVRM_WHY_NONE;
	struct nvrm_process *process = look_into(ctx, pid, &why);
	struct gkfd_proc_ident ident = { 0 };

	*ret = (struct gpreempt_process_info){ .size = sizeof(*ret), .pid = pid };
	if (read_ident(ctx->nvrm->n, pid, &ident) >= 0)
		info_identify(ret, &ident, ident.tracer_pid ? "traced" : NULL);
	ret->hidden = !process && why != NVRM_WHY_NO_CONTEXT;
	for (size_t i = 0; process && i < process->n_groups; i++)
		info_add_gpu(ret, process->groups[i].gpu);
	ret->queues = process ? (uint32_t)process->n_groups : 0;
	nvrm_process_close(process);
}

int nv_processes(struct gpreempt_ctx *ctx, struct out_array *out)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r = nv_list(ctx, &pids, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct gpreempt_process_info info;

		describe(ctx, pids[i], &info);
		if (info.valid & GPREEMPT_PROC_COMM) /* else it has ended */
			out_array_add(out, &info);
	}
	return 0;
}

int nv_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter, bool only_idle,
	      struct out_array *out)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	int r = nv_check_driver(ctx);

	if (r >= 0)
		r = nv_list(ctx, &pids, &n);
	/* Classes and priorities are not known here, and so none that was asked for matches. */
	if (r < 0 || filter->job_class != GPREEMPT_CLASS_UNKNOWN || filter->min_priority >= 0 ||
	    filter->max_priority >= 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		enum nvrm_why why;
		struct nvrm_process *process = look_into(ctx, pids[i], &why);

		for (size_t j = 0; process && j < process->n_groups; j++) {
			struct gpreempt_queue q =
				nv_describe_group(process, &process->groups[j]);

			out_array_add(out, &q);
		}
		nvrm_process_close(process);
	}
	return 0;
}

bool nv_mps_runs(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error before = ctx->last;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	bool found = false;

	if (nv_list(ctx, &pids, &n) < 0)
		ctx->last = before;
	for (size_t i = 0; i < n && !found; i++)
		found = nvrm_is_mps_server(ctx->nvrm->n, pids[i]);
	return found;
}
