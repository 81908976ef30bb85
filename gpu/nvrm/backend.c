/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "gpu/nvrm/backend_internal.h"
#include "gpu/nvrm/selftest.h"
#include "util/macros.h"

static struct backend *backend_of(struct gpu_backend *base)
{
	return (struct backend *)base;
}

static void backend_free(struct backend *b)
{
	if (!b)
		return;
	acting_end(&b->base);
	acting_forget(&b->kept);
	acting_forget(&b->orders);
	nvrm_watch_free_all(b);
	nvrm_follow_end(b);
	nvrm_finder_free(b->finder);
	nvrm_free(b->finder_n);
	acting_done(&b->base);
	closep(&b->wake_fd);
	pthread_mutex_destroy(&b->lock);
	nvrm_free(b->n);
	free(b);
}

static void backend_freep(struct backend **b)
{
	backend_free(*b);
}

static void backend_close(struct gpu_backend *base)
{
	backend_free(backend_of(base));
}

static uint64_t backend_now_ns(struct gpu_backend *base)
{
	return nvrm_now_ns(backend_of(base)->n);
}

/* What is cut into instances is left alone: it is as if it were not there. */
static int backend_nodes(struct gpu_backend *base, struct gpu_node *ret, size_t max)
{
	struct nvrm_gpu gpus[NVRM_MAX_GPUS];
	int n = nvrm_list_gpus(backend_of(base)->n, gpus, ARRAY_SIZE(gpus));
	size_t whole = 0;

	if (n < 0)
		return n;
	for (size_t i = 0; i < MIN((size_t)n, ARRAY_SIZE(gpus)); i++) {
		if (gpus[i].mig)
			continue;
		if (whole < max) {
			ret[whole] = (struct gpu_node){ .gpu = gpus[i].gpu };
			snprintf(ret[whole].name, sizeof(ret[whole].name), "%s", gpus[i].name);
		}
		whole++;
	}
	return (int)whole;
}

static int read_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	struct nvrm *n = user;

	return n->transport->read_proc(n->data, path, ret_text, ret_len);
}

static int backend_pidfd(struct gpu_backend *base, pid_t pid)
{
	struct nvrm *n = backend_of(base)->n;

	return n->transport->pidfd(n->data, pid);
}

static int backend_take(struct gpu_backend *base, struct gpu_done *ret)
{
	struct backend *b = backend_of(base);

	if (b->base.readers)
		readers_run(b->base.readers);
	return acting_take(base, ret);
}

/* ---- targets ---- */

static int target_begin(struct gpu_target *t, const struct gpu_attach *request)
{
	t->until_ns = NEVER_NS;
	t->refused = -EINPROGRESS;
	return 0;
}

static void target_end(struct gpu_target *t)
{
	free(t->off_ids);
}

static int target_post(struct gpu_target *t, struct order *o)
{
	STAILQ_INSERT_TAIL(&t->base.b->kept, o, link);
	return 0;
}

static const struct acting acting = {
	.target_size = sizeof(struct gpu_target),
	.order_size = sizeof(struct order),
	.begin = target_begin,
	.end = target_end,
	.post = target_post,
	.close = nvrm_work_stop,
};

static void backend_submit(struct gpu_backend *base)
{
	struct backend *b = backend_of(base);

	if (STAILQ_EMPTY(&b->kept))
		return;
	pthread_mutex_lock(&b->lock);
	STAILQ_CONCAT(&b->orders, &b->kept);
	pthread_mutex_unlock(&b->lock);
	nvrm_work_wake(b);
}

static bool target_holds(struct gpu_target *t)
{
	bool holds;

	pthread_mutex_lock(&t->base.b->lock);
	holds = t->holds;
	pthread_mutex_unlock(&t->base.b->lock);
	return holds;
}

static int target_held(struct gpu_target *t, uint32_t *ret, size_t max)
{
	size_t n;

	pthread_mutex_lock(&t->base.b->lock);
	n = t->n_off;
	if (MIN(n, max))
		memcpy(ret, t->off_ids, MIN(n, max) * sizeof(*ret));
	pthread_mutex_unlock(&t->base.b->lock);
	return (int)n;
}

static const struct gpu_ops ops = {
	.close = backend_close,
	.now_ns = backend_now_ns,
	.nodes = backend_nodes,
	.processes = nvrm_follow_processes,
	.came = nvrm_follow_came,
	.owner = acting_owner,
	.ask = acting_ask,
	.answer = acting_answer,
	.pidfd = backend_pidfd,
	.watch = nvrm_watch_new,
	.unwatch = nvrm_watch_leave,
	.refresh = nvrm_watch_refresh,
	.queues = nvrm_watch_queues,
	.look = nvrm_watch_look,
	.looked = nvrm_watch_looked,
	.blind = nvrm_watch_blind,
	.problem = nvrm_follow_problem,
	.attach = acting_attach,
	.suspend = acting_suspend,
	.resume = acting_resume,
	.slice = acting_slice,
	.release = acting_release,
	.submit = backend_submit,
	.holds = target_holds,
	.held = target_held,
	.fd = acting_fd,
	.take = backend_take,
};

/* Times of an H200 with driver 580.159.04, whose firmware takes most of them. */
static const struct gpu_caps caps = {
	.name = "nvrm",
	.level = "N2",
	.unit = GPU_UNIT_CONTEXT,
	.outlives_owner = true,
	.slices = true,
	.suspend_ns = 650 * NSEC_PER_USEC,
	.resume_ns = 300 * NSEC_PER_USEC,
};

static int refuse_for(const struct nvrm_backend_options *options, int error,
		      const struct nvrm_failure *failure)
{
	if (options->why)
		nvrm_failure_describe(error, 0, failure, options->why);
	return error;
}

static int check_driver(struct nvrm *n, const struct nvrm_backend_options *options)
{
	struct nvrm_failure failure = { .why = NVRM_WHY_NO_DRIVER };
	struct nvrm_version version;
	int r = nvrm_read_version(n, &version);

	if (r == -ENOENT)
		return refuse_for(options, -ENODEV, &failure);
	failure.why = NVRM_WHY_DRIVER_UNKNOWN;
	if (r >= 0)
		r = nvrm_check_version(&version, &failure);
	return r < 0 ? refuse_for(options, -EOPNOTSUPP, &failure) : 0;
}

/* One GPU stands for all: it is the driver that is tried. */
static int try_driver(struct nvrm *n, const struct nvrm_backend_options *options)
{
	struct nvrm_failure failure = { 0 };
	struct nvrm_selftest test;
	int r;

	if (options->untested)
		return 0;
	r = nvrm_selftest(n, 0, &test, &failure);
	if (r >= 0)
		return 0;
	refuse_for(options, -EOPNOTSUPP, &failure);
	/* Without libcuda there is nothing to try it with: that is told, and no reason to stop. */
	return r == -EOPNOTSUPP ? 0 : -EOPNOTSUPP;
}

static int backend_init(struct backend *b, const struct nvrm_backend_options *options)
{
	const struct proc_source source = { read_proc, b->n };
	int r = check_driver(b->n, options);

	if (r >= 0)
		r = acting_open(&b->base, options->by_readers, &source, options->why);
	if (r >= 0)
		r = try_driver(b->n, options);
	if (r < 0)
		return r;
	b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->wake_fd < 0)
		return gpu_why_fail(options->why, -errno, NULL);
	r = nvrm_finder_new(b->finder_n ? b->finder_n : b->n, &b->finder);
	if (r >= 0)
		r = nvrm_follow_begin(b);
	if (r >= 0)
		r = nvrm_work_start(b);
	return r < 0 ? gpu_why_fail(options->why, r, NULL) : 0;
}

int nvrm_backend_open(struct nvrm *n, const struct nvrm_backend_options *options,
		      struct gpu_backend **ret)
{
	_cleanup_(backend_freep) struct backend *b = calloc(1, sizeof(*b));
	int r;

	if (!b) {
		nvrm_free(n);
		nvrm_free(options->finder);
		return gpu_why_fail(options->why, -ENOMEM, NULL);
	}
	b->base.base = (struct gpu_backend){ .ops = &ops, .caps = caps };
	b->base.acting = &acting;
	b->n = n;
	b->finder_n = options->finder;
	b->guard = options->guard;
	b->base.fd = b->base.done.fd = b->wake_fd = b->slot = -1;
	pthread_mutex_init(&b->lock, NULL);
	STAILQ_INIT(&b->kept);
	STAILQ_INIT(&b->orders);
	STAILQ_INIT(&b->queue);
	r = backend_init(b, options);
	if (r < 0)
		return r;
	*ret = &steal_ptr(&b)->base.base;
	return 0;
}
