/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "gpu/kfd/backend_ext.h"
#include "gpu/kfd/holder.h"
#include "gpu/kfd/procs.h"
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
	if (b->holder_program >= 0)
		holders_free(b);
	ext_free(b->ext);
	alerts_free(b->alerts);
	mqds_done(b);
	follow_end(b);
	acting_done(&b->base);
	gkfd_look_room_free(b->room);
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

	while (!LIST_EMPTY(&b->watches))
		watch_free(LIST_FIRST(&b->watches));
	acting_end(&b->base);
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

/* Who has the device open is counted by the driver as using it: so are we, or our holders. */
static bool is_ours(const struct backend *b, pid_t pid)
{
	return pid == b->own_pid || (b->holder_program >= 0 && holders_own(b, pid));
}

static int backend_processes(struct gpu_backend *base, pid_t *ret, size_t max)
{
	_cleanup_free_ pid_t *pids = NULL;
	struct backend *b = backend_of(base);
	size_t n = 0, others = 0;
	int r;

	if (max > 0)
		follow_listed(b); /* before: who comes meanwhile is asked for again */
	r = gkfd_proc_list(b->k, &pids, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (is_ours(b, pids[i]))
			continue;
		if (others < max)
			ret[others] = pids[i];
		others++;
	}
	return (int)others;
}

static int read_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	return gkfd_read_file(user, GKFD_TREE_PROC, path, ret_text, ret_len);
}

static int backend_pidfd(struct gpu_backend *base, pid_t pid)
{
	struct gkfd *k = backend_of(base)->k;

	return k->transport->trace->pidfd(k->data, pid);
}

/* A bit for each part that has something to say. */
static uint32_t who_speaks(const struct backend *b)
{
	struct epoll_event events[PARTS];
	int n = epoll_wait(b->base.fd, events, PARTS, 0);
	uint32_t parts = 0;

	for (int i = 0; i < n; i++)
		parts |= 1u << events[i].data.u32;
	return parts;
}

static void run_readers(struct readers *r, bool speak)
{
	if (r)
		(speak ? readers_run : readers_see)(r);
}

static void run_helpers(struct backend *b)
{
	uint32_t speaks = who_speaks(b);

	run_readers(b->base.readers, speaks & 1u << ACTING_READERS);
	run_readers(b->mqds.readers, speaks & 1u << PART_MQDS);
	if (b->holder_program >= 0)
		holders_run(b, speaks & 1u << PART_HOLDERS);
	if (b->alerts)
		(speaks & 1u << PART_ALERTS ? alerts_run : alerts_see)(b->alerts);
}

static int backend_take(struct gpu_backend *base, struct gpu_done *ret)
{
	struct backend *b = backend_of(base);

	if (acting_take(base, ret) == 1)
		return 1;
	run_helpers(b);
	return acting_take(base, ret);
}

static void backend_effort(struct gpu_backend *base, struct gpu_effort *ret)
{
	const struct backend *b = backend_of(base);

	*ret = (struct gpu_effort){ 0 };
	if (b->base.readers)
		ret->helpers_ns += readers_spent_ns(b->base.readers);
	if (b->alerts) {
		ret->helpers_ns += alerts_spent_ns(b->alerts);
		ret->traps = alerts_traps(b->alerts);
	}
}

static const char *backend_problem(struct gpu_backend *base)
{
	struct backend *b = backend_of(base);

	if (!b->mqds.asked)
		mqds_refresh(b); /* before somebody's work goes unseen */
	return mqds_problem(b);
}

/* What is the same on every level. */
/* clang-format off */
#define SAME \
	.close = backend_close, .now_ns = backend_now_ns, .nodes = backend_nodes, \
	.processes = backend_processes, .came = follow_came, .owner = acting_owner, \
	.ask = acting_ask, \
	.answer = acting_answer, .pidfd = backend_pidfd, .watch = watch_new, \
	.unwatch = watch_free, .refresh = watch_refresh, .queues = watch_queues, \
	.look = look_at, .looked = look_result, .blind = look_blind, \
	.problem = backend_problem, .alert = alert_set, .alerted = alert_next, \
	.alert_fd = alert_fd, .is_alert = alert_state, .effort = backend_effort, \
	.attach = acting_attach, \
	.suspend = acting_suspend, .resume = acting_resume, .release = acting_release, \
	.fd = acting_fd, .take = backend_take
/* clang-format on */

static const struct gpu_ops ops_with_threads = {
	SAME,
	.holds = act_holds,
	.held = act_held,
};

static const struct gpu_ops ops_with_holders = {
	SAME,
	.holds = holders_hold,
};

static const struct gpu_ops ops_with_ext = {
	SAME,
	.submit = ext_submit,
	.holds = ext_holds,
	.held = ext_held,
	.tick = ext_tick,
	.promise = ext_promise,
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
		.made_up_time = b->k->transport->made_up_time,
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

static pid_t own_pid(struct gkfd *k)
{
	_cleanup_free_ char *text = NULL;
	struct proc_stat self;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_PROC, "self/stat", &text, &len) < 0 ||
	    proc_stat_parse(text, len, &self) < 0)
		return getpid();
	return self.pid;
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
	gpu_why_fail(options->why, r, ext_problem(r));
	if (options->ext == GKFD_EXT_IF_PRESENT)
		return 0;
	return r == -ENODEV ? -EOPNOTSUPP : r; /* the GPUs are there */
}

static int open_driver(struct backend *b, const struct gkfd_backend_options *options)
{
	bool pauses = options->way == GKFD_BY_PAUSE;
	char why[192];
	int r = options->by_holders ? holders_open(b) : gkfd_open_device(b->k);

	if (r == -ENOENT && options->by_holders && b->holder_program < 0)
		return gpu_why_fail(options->why, r,
				    "the program " HOLDER_PROGRAM " is not installed");
	if (r < 0) {
		snprintf(why, sizeof(why), "opening the GPU driver: %s", strerror(-r));
		return gpu_why_fail(options->why, r, why);
	}
	if (options->named_only) /* attaching says it better */
		return 0;
	if (gkfd_has(b->k, pauses ? GKFD_CAP_CRIU : GKFD_CAP_DEBUG))
		return 0;
	snprintf(why, sizeof(why), "the GPU driver is too old: KFD %u.%u, need %s", b->k->major,
		 b->k->minor, pauses ? "1.7" : "1.13");
	return gpu_why_fail(options->why, -EOPNOTSUPP, why);
}

static int open_device(struct backend *b, const struct gkfd_backend_options *options)
{
	int r;

	if (!options->named_only && !gkfd_pids_are_global(b->k))
		return gpu_why_fail(options->why, -EOPNOTSUPP,
				    "in a pid namespace of its own a program cannot tell whose the "
				    "queues are: start it on the host, or with --pid=host");
	r = open_ext(b, options);
	return r < 0 || b->ext ? r : open_driver(b, options);
}

static int open_readers(struct backend *b, const struct gkfd_backend_options *options)
{
	const struct proc_source source = { read_proc, b->k };
	int r = acting_open(&b->base, options->by_readers, &source, options->why);

	if (r < 0)
		return r;
	r = gkfd_look_room_new(&b->room);
	return r < 0 ? gpu_why_fail(options->why, r, NULL) : 0;
}

/* Once it is known who acts. */
static int begin(struct backend *b, const struct gkfd_backend_options *options)
{
	int r = mqds_init(b);

	if (r >= 0 && b->mqds.readers)
		r = acting_poll(&b->base, PART_MQDS, readers_fd(b->mqds.readers));
	if (!options->named_only)
		alert_open(b);
	if (r >= 0 && b->holders_fd >= 0)
		r = acting_poll(&b->base, PART_HOLDERS, b->holders_fd);
	return r < 0 ? gpu_why_fail(options->why, r, NULL) : 0;
}

static void choose_acting(struct backend *b)
{
	if (b->ext) {
		b->base.base.ops = &ops_with_ext;
		b->base.acting = &acting_by_ext;
	} else if (b->holder_program >= 0) {
		b->base.base.ops = &ops_with_holders;
		b->base.acting = &acting_by_holders;
	} else {
		b->base.base.ops = &ops_with_threads;
		b->base.acting = &acting_by_threads;
	}
}

int gkfd_backend_open(struct gkfd *k, const struct gkfd_backend_options *options,
		      struct gpu_backend **ret)
{
	_cleanup_(backend_freep) struct backend *b = calloc(1, sizeof(*b));
	int r;

	if (!b) {
		gkfd_free(k);
		return gpu_why_fail(options->why, -ENOMEM, NULL);
	}
	b->k = k;
	b->way = options->way;
	b->guard = options->guard;
	b->base.fd = b->holder_program = b->holders_fd = b->base.done.fd = b->opens = -1;
	b->deaf = -ENOSYS;
	b->own_pid = options->by_holders ? 0 : own_pid(k);
	r = open_readers(b, options);
	if (r >= 0)
		r = open_device(b, options);
	if (r >= 0)
		r = begin(b, options);
	if (r < 0)
		return r;
	if (options->follows)
		follow_begin(b);
	choose_acting(b);
	b->base.base.caps = caps_of(b);
	*ret = &steal_ptr(&b)->base.base;
	return 0;
}

struct gkfd_target *gkfd_backend_target(struct gpu_target *t)
{
	const struct backend *b = ((struct target_base *)t)->b;

	return b->base.acting == &acting_by_threads ? act_target(t) : NULL;
}
