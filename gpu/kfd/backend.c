/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_ext.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/text.h"
#include "gpu/kfd/topology.h"
#include "util/macros.h"

static struct backend *backend_of(struct gpu_backend *base)
{
	return (struct backend *)base;
}

static void backend_free(struct backend *b)
{
	if (!b)
		return;
	ext_free(b->ext);
	mqds_reader_free(b->mqds_reader);
	gkfd_mqds_done(&b->mqds);
	gkfd_progress_room_free(b->room);
	mailbox_destroy(&b->done);
	gkfd_free(b->k);
	free(b);
}

static void backend_freep(struct backend **b)
{
	backend_free(*b);
}

static void backend_close(struct gpu_backend *base)
{
	struct backend *b = backend_of(base);

	if (!b->ext)
		act_close(b);
	while (!LIST_EMPTY(&b->watches))
		watch_free(LIST_FIRST(&b->watches));
	backend_free(b);
}

static uint64_t backend_now_ns(struct gpu_backend *base)
{
	return gkfd_now_ns(backend_of(base)->k);
}

/* What the driver finds by IP discovery it calls so, whichever chip it is (Linux 6.12). */
static void name_node(const struct gkfd_node *node, char *ret, size_t size)
{
	if (!node->name[0] || !strcmp(node->name, "ip discovery"))
		gkfd_node_gfx_name(node, ret, size);
	else
		snprintf(ret, size, "%s", node->name);
}

static int backend_nodes(struct gpu_backend *base, struct gpu_node *ret, size_t max)
{
	_cleanup_(gkfd_topology_done) struct gkfd_topology topology = { 0 };
	int r = gkfd_topology_read(backend_of(base)->k, &topology);

	if (r < 0)
		return r;
	for (size_t i = 0; i < MIN(topology.n, max); i++) {
		const struct gkfd_node *node = &topology.nodes[i];

		ret[i] = (struct gpu_node){ .gpu = node->gpu_id };
		if (node->known & GKFD_NODE_CP_QUEUES)
			ret[i].slots = node->num_cp_queues;
		name_node(node, ret[i].name, sizeof(ret[i].name));
	}
	return (int)topology.n;
}

/* We have the device open ourselves, which the driver counts as using it. */
static int backend_processes(struct gpu_backend *base, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct backend *b = backend_of(base);
	size_t n = 0, others = 0;
	int r = gkfd_proc_list(b->k, &pids, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == b->own_pid)
			continue;
		if (others < max)
			ret[others] = pids[i];
		others++;
	}
	return (int)others;
}

static int backend_read_proc(struct gpu_backend *base, const char *path, char **ret_text,
			     size_t *ret_len)
{
	return gkfd_read_file(backend_of(base)->k, GKFD_TREE_PROC, path, ret_text, ret_len);
}

static int backend_pidfd(struct gpu_backend *base, pid_t pid)
{
	struct gkfd *k = backend_of(base)->k;

	return k->transport->trace->pidfd(k->data, pid);
}

static int backend_fd(struct gpu_backend *base)
{
	return backend_of(base)->done.fd;
}

/* Looking is the same on every level, acting is not. */
/* clang-format off */
#define LOOKING \
	.close = backend_close, .now_ns = backend_now_ns, .nodes = backend_nodes, \
	.processes = backend_processes, .read_proc = backend_read_proc, .pidfd = backend_pidfd, \
	.watch = watch_new, .unwatch = watch_free, .refresh = watch_refresh, \
	.queues = watch_queues, .look = watch_look, .fd = backend_fd
/* clang-format on */

static const struct gpu_ops ops = {
	LOOKING,
	.attach = act_attach,
	.suspend = act_suspend,
	.resume = act_resume,
	.release = act_release,
	.take = act_take,
};

static const struct gpu_ops ops_with_ext = {
	LOOKING,
	.attach = ext_attach,
	.suspend = ext_suspend,
	.resume = ext_resume,
	.release = ext_release,
	.submit = ext_submit,
	.take = ext_take,
	.native = &ext_native_ops,
};

/* Times of nobody's hardware in particular, until there are measured ones. */
static struct gpu_caps caps_of(const struct backend *b)
{
	bool pauses = !b->ext && b->way == GKFD_BY_PAUSE, modelled = b->k->transport->modelled;

	return (struct gpu_caps){
		.name = modelled ? "model" : "kfd",
		.level = b->ext ? "K3" :
			 pauses ? "K1" :
				  "K2",
		.modelled = modelled,
		.unit = pauses ? GPU_UNIT_CONTEXT : GPU_UNIT_QUEUE,
		.counts_progress = true,
		.disturbs_all = !b->ext || !ext_spares_others(b->ext),
		.attach_is_free = b->ext,
		.schedules = b->ext && !modelled, /* a model only plays that it does */
		.outlives_owner = pauses,
		.suspend_ns = 500 * NSEC_PER_USEC,
		.resume_ns = 400 * NSEC_PER_USEC,
		.cycle_ns = 100 * NSEC_PER_USEC,
	};
}

static int refuse(const struct gkfd_backend_options *options, int error, const char *why)
{
	if (options->why)
		snprintf(options->why, GPU_WHY_SIZE, "%s", why);
	return error;
}

static pid_t own_pid(struct gkfd *k)
{
	_cleanup_free_ char *text = NULL;
	struct gkfd_text t;
	uint64_t pid;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_PROC, "self/stat", &text, &len) < 0)
		return getpid();
	t = gkfd_text_of(text, len);
	return gkfd_text_dec(&t, INT32_MAX, &pid) ? (pid_t)pid : getpid();
}

static const char *ext_problem(int error)
{
	switch (error) {
	case -ENODEV:
		return "the GPU driver has no extension (no /dev/" KFD_GPREEMPT_DEVICE ")";
	case -EPROTO:
		return "the GPU driver's extension is of another version";
	case -EACCES:
		return "no right to /dev/" KFD_GPREEMPT_DEVICE;
	default:
		return strerror(-error);
	}
}

/* 0: the extension is used, or not wanted where it is not there. */
static int open_ext(struct backend *b, const struct gkfd_backend_options *options)
{
	int r;

	if (options->ext == GKFD_EXT_NEVER)
		return 0;
	r = ext_new(b, &b->ext);
	if (r >= 0 || (r == -ENODEV && options->ext == GKFD_EXT_IF_PRESENT))
		return 0;
	refuse(options, r, ext_problem(r));
	if (options->ext == GKFD_EXT_IF_PRESENT)
		return 0;
	return r == -ENODEV ? -EOPNOTSUPP : r; /* the GPUs are there */
}

static int open_driver(struct backend *b, const struct gkfd_backend_options *options)
{
	bool pauses = options->way == GKFD_BY_PAUSE;
	char why[GPU_WHY_SIZE];
	int r = gkfd_open_device(b->k);

	if (r < 0) {
		snprintf(why, sizeof(why), "opening the GPU driver: %s", strerror(-r));
		return refuse(options, r, why);
	}
	if (gkfd_has(b->k, pauses ? GKFD_CAP_CRIU : GKFD_CAP_DEBUG))
		return 0;
	snprintf(why, sizeof(why), "the GPU driver is too old: KFD %u.%u, need %s", b->k->major,
		 b->k->minor, pauses ? "1.7" : "1.13");
	return refuse(options, -EOPNOTSUPP, why);
}

static int open_device(struct backend *b, const struct gkfd_backend_options *options)
{
	int r;

	if (!gkfd_pids_are_global(b->k))
		return refuse(options, -EOPNOTSUPP,
			      "in a pid namespace of its own a program cannot tell whose the "
			      "queues are: start it on the host, or with --pid=host");
	r = open_ext(b, options);
	return r < 0 || b->ext ? r : open_driver(b, options);
}

int gkfd_backend_open(struct gkfd *k, const struct gkfd_backend_options *options,
		      struct gpu_backend **ret)
{
	_cleanup_(backend_freep) struct backend *b = calloc(1, sizeof(*b));
	int r;

	if (!b) {
		gkfd_free(k);
		return refuse(options, -ENOMEM, strerror(ENOMEM));
	}
	b->k = k;
	b->way = options->way;
	b->guard = options->guard;
	b->patience_ns = options->patience_ns ? options->patience_ns : MQDS_PATIENCE_NS;
	r = mailbox_init(&b->done);
	if (r < 0)
		return refuse(options, r, strerror(-r));
	if (gkfd_progress_room_new(LOOK_QUEUES, LOOK_PACKETS, &b->room) < 0)
		return refuse(options, -ENOMEM, strerror(ENOMEM));
	b->own_pid = own_pid(k);
	r = open_device(b, options);
	if (r < 0)
		return r;
	b->base = (struct gpu_backend){ .ops = b->ext ? &ops_with_ext : &ops,
					.caps = caps_of(b) };
	*ret = &steal_ptr(&b)->base;
	return 0;
}

int gkfd_backend_new(struct gkfd *k, struct guard *guard, struct gpu_backend **ret)
{
	return gkfd_backend_open(k, &(struct gkfd_backend_options){ .guard = guard }, ret);
}
