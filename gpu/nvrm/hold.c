/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define TIMES 4 /* each of ours that died may have left one */

enum which { COMPUTE = 1, COPY = 2, ALL = COMPUTE | COPY };

struct part { /* channels of a group, in one call */
	size_t who;
	struct nvrm_group *g;
	size_t from, n;
};

/* The first failure of several steps. */
struct outcome {
	int r;
	struct nvrm_failure *failure;
};

static void take_in(struct outcome *o, int r, const struct nvrm_failure *f)
{
	if (r >= 0 || o->r < 0)
		return;
	o->r = r;
	if (o->failure)
		*o->failure = *f;
}

/* One go over the processes on one GPU. */
struct go {
	struct nvrm_process *const *procs;
	bool *out; /* who failed, of a hold: is let alone, and on again in the end */
	uint32_t gpu;
	bool disable;
	enum which which;
	struct outcome *outcome;
	struct nvrm_disable_channels call;
	struct part parts[NVRM_MAX_CHANNELS];
	size_t n_parts;
	bool alone; /* a call may name one client only */
};

static bool is_on(const struct nvrm_group *g, uint32_t gpu)
{
	return gpu == NVRM_ALL_GPUS || g->gpu == gpu;
}

/* The first one's client speaks for all: the driver looks at nobody's but the caller's. */
static int issue(struct go *go)
{
	const struct nvrm_group *g = go->parts[0].g;
	struct nvrm *n = go->procs[go->parts[0].who]->n;

	go->call.disable = go->disable;
	return nvrm_disable_channels(n, g->fd, g->client, g->subdevice, &go->call);
}

static void note_part(const struct part *part, bool disable)
{
	struct nvrm_group *g = part->g;

	if (disable && g->n_off == part->from)
		g->n_off = part->from + part->n;
	else if (!disable && g->n_off == part->from + part->n)
		g->n_off = part->from;
}

/* What of a call that failed was done nobody knows: who was to be off is taken for off. */
static void fail(struct go *go, int status)
{
	const char *step = go->disable ? "suspending its channels" : "resuming its channels";
	struct nvrm_failure failure;
	int r = nvrm_fail_status(&failure, status, step, go->gpu);

	for (size_t i = 0; i < go->n_parts; i++) {
		size_t who = go->parts[i].who;

		go->procs[who]->doubtful = true; /* its groups may not be what they were */
		if (go->disable)
			go->out[who] = true;
	}
	take_in(go->outcome, r, &failure);
}

static void flush(struct go *go)
{
	int status;

	if (go->n_parts == 0)
		return;
	for (size_t i = 0; go->disable && i < go->n_parts; i++)
		nvrm_due(go->procs[go->parts[i].who], go->parts[i].g, go->parts[i].g->undo.enable);
	status = issue(go);
	for (size_t i = 0; i < go->n_parts && (go->disable || status == NVRM_OK); i++)
		note_part(&go->parts[i], go->disable);
	if (status != NVRM_OK)
		fail(go, status);
	go->n_parts = 0;
	go->call.n = 0;
}

/* Of a hold that has failed nothing more is asked for. */
static bool is_out(const struct go *go, size_t who)
{
	return go->disable && go->out[who];
}

static void add_part(struct go *go, size_t who, struct nvrm_group *g, size_t from, size_t n)
{
	go->parts[go->n_parts++] = (struct part){ who, g, from, n };
	for (size_t i = from; i < from + n; i++) {
		go->call.clients[go->call.n] = g->client;
		go->call.channels[go->call.n++] = g->channels[i];
	}
	if (go->call.n == NVRM_MAX_CHANNELS)
		flush(go);
}

/* What is off comes on from the last to the first, so that it stays the first that are off. */
static void add_group(struct go *go, size_t who, struct nvrm_group *g)
{
	size_t at = g->n_off, left = go->disable ? g->n_channels - g->n_off : g->n_off;

	if (go->alone && go->n_parts > 0 && go->parts[0].g->client != g->client)
		flush(go);
	while (left > 0 && !is_out(go, who)) {
		size_t n = MIN(left, NVRM_MAX_CHANNELS - go->call.n);
		size_t from = go->disable ? at : at - n;

		at = go->disable ? at + n : at - n;
		left -= n;
		add_part(go, who, g, from, n);
	}
}

static void add_process(struct go *go, size_t who)
{
	struct nvrm_process *p = go->procs[who];
	int r = nvrm_process_check(p);

	if (r < 0 && go->disable) {
		struct nvrm_failure failure;

		nvrm_fail(&failure, r, NVRM_WHY_SYSTEM, "asking whose its clients are");
		take_in(go->outcome, r, &failure);
		go->out[who] = true;
	}
	/* Through itself the driver looks whose it is. */
	go->alone = r < 0;
	if (go->alone)
		flush(go);
	for (size_t i = 0; i < p->n_groups && !is_out(go, who); i++) {
		struct nvrm_group *g = &p->groups[i];

		if (go->disable && (!g->checked || g->spared || (p->spares_copies && !g->compute)))
			continue;
		if (g->gpu == go->gpu && (go->which & (g->compute ? COMPUTE : COPY)))
			add_group(go, who, g);
	}
	if (go->alone)
		flush(go);
	go->alone = false;
}

/* On one GPU, as few calls as there can be. @out NULL: nobody is to be off. */
static void go_over(struct nvrm_process *const *procs, bool *out, size_t n, uint32_t gpu,
		    enum which which, struct outcome *o)
{
	struct go go = {
		.procs = procs,
		.out = out,
		.gpu = gpu,
		.disable = out,
		.which = which,
		.outcome = o,
	};

	for (size_t i = 0; i < n; i++) {
		if (!is_out(&go, i))
			add_process(&go, i);
	}
	flush(&go);
	for (size_t i = 0; i < n; i++)
		nvrm_settle_due(procs[i]);
}

/* The next one above @after that any of them is on; 0: none. */
static uint32_t next_gpu(struct nvrm_process *const *procs, size_t n, uint32_t after, uint32_t gpu)
{
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < procs[i]->n_groups; k++) {
			const struct nvrm_group *g = &procs[i]->groups[k];

			if (is_on(g, gpu) && g->gpu > after && (!next || g->gpu < next))
				next = g->gpu;
		}
	}
	return next;
}

static void go_over_gpus(struct nvrm_process *const *procs, bool *out, size_t n, uint32_t gpu,
			 enum which which, struct outcome *o)
{
	for (uint32_t at = next_gpu(procs, n, 0, gpu); at; at = next_gpu(procs, n, at, gpu))
		go_over(procs, out, n, at, which, o);
}

/* Nobody is touched whom nobody would free. */
static int check_guard(struct nvrm_process *p, struct nvrm_failure *f)
{
	if (!p->guard)
		return 0;
	if (!guard_alive(p->guard))
		return nvrm_fail(f, -EOWNERDEAD, NVRM_WHY_GUARD_DIED, NULL);
	return nvrm_entrust(p, f);
}

int nvrm_hold(struct nvrm_process *const *procs, size_t n, uint32_t gpu, uint64_t *ret_off_ns,
	      struct nvrm_failure *ret_failure)
{
	_cleanup_free_ bool *out = calloc(n + 1, sizeof(*out));
	struct outcome outcome = { .failure = ret_failure };
	struct nvrm_failure failure;
	uint64_t off_ns = 0;

	if (!out)
		return nvrm_fail(ret_failure, -ENOMEM, NVRM_WHY_SYSTEM, NULL);
	for (size_t i = 0; i < n; i++) {
		int r = check_guard(procs[i], &failure);

		out[i] = r < 0;
		take_in(&outcome, r, &failure);
	}
	go_over_gpus(procs, out, n, gpu, COMPUTE, &outcome);
	if (n > 0)
		off_ns = nvrm_now_ns(procs[0]->n);
	go_over_gpus(procs, out, n, gpu, COPY, &outcome);
	for (size_t i = 0; i < n; i++) {
		if (out[i])
			nvrm_let_go(&procs[i], 1, gpu, NULL);
	}
	if (outcome.r >= 0 && ret_off_ns)
		*ret_off_ns = off_ns;
	return outcome.r;
}

int nvrm_let_go(struct nvrm_process *const *procs, size_t n, uint32_t gpu,
		struct nvrm_failure *ret_failure)
{
	struct outcome outcome = { .failure = ret_failure };

	go_over_gpus(procs, NULL, n, gpu, ALL, &outcome);
	return outcome.r;
}

size_t nvrm_groups_off(const struct nvrm_process *p, uint32_t gpu)
{
	size_t off = 0;

	for (size_t i = 0; i < p->n_groups; i++)
		off += p->groups[i].n_off > 0 && is_on(&p->groups[i], gpu);
	return off;
}

/* The GPU is in trouble, not the call. */
static bool is_final(int status)
{
	return status == NVRM_TIMEOUT || status == NVRM_GPU_IS_LOST;
}

/* One that the driver refused may have been set all the same: then it is given back. */
static int set_slice(struct nvrm_process *p, struct nvrm_group *g, uint64_t us,
		     struct nvrm_failure *f)
{
	int status;

	nvrm_due(p, g, g->undo.slice);
	status = nvrm_set_timeslice(p->n, g->fd, g->client, g->handle, us);
	if (status == NVRM_OK) {
		g->slice_us = us;
		g->sliced = us != g->own_slice_us;
	} else {
		g->sliced = us != g->own_slice_us || g->sliced;
		nvrm_fail_status(f, status, "setting its time slice", g->gpu);
		p->doubtful = true;
		if (us != g->own_slice_us && !is_final(status) &&
		    nvrm_set_timeslice(p->n, g->fd, g->client, g->handle, g->own_slice_us) ==
			    NVRM_OK) {
			g->slice_us = g->own_slice_us;
			g->sliced = false;
		}
	}
	nvrm_settle_due(p);
	return nvrm_status_errno(status);
}

int nvrm_slice(struct nvrm_process *p, uint32_t gpu, uint64_t us,
	       struct nvrm_failure *ret_failure)
{
	struct outcome outcome = { .failure = ret_failure };
	int r;

	if (nvrm_process_ended(p)) {
		nvrm_process_drop(p);
		return nvrm_fail(ret_failure, -ESRCH, NVRM_WHY_EXITED, NULL);
	}
	r = nvrm_process_check(p);
	if (r < 0 && us)
		return nvrm_fail(ret_failure, r, NVRM_WHY_SYSTEM, "asking whose its clients are");
	r = us ? check_guard(p, ret_failure) : 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_groups; i++) {
		struct nvrm_group *g = &p->groups[i];
		uint64_t wanted = us ? us : g->own_slice_us;
		struct nvrm_failure failure;

		if (!g->compute || !is_on(g, gpu) || (us && !g->checked))
			continue;
		if (g->slice_us == wanted && (us || !g->sliced))
			continue;
		r = set_slice(p, g, wanted, &failure);
		take_in(&outcome, r, &failure);
	}
	return outcome.r;
}

/* ---- what others have left ---- */

static void take_for_off(struct nvrm_process *p, bool off)
{
	for (size_t i = 0; i < p->n_groups; i++)
		p->groups[i].n_off = off ? p->groups[i].n_channels : 0;
}

static int release(struct nvrm_process *p, struct nvrm_failure *f)
{
	struct outcome outcome = { .failure = f };
	struct nvrm_failure failure;
	int groups = (int)p->n_groups;

	for (int i = 0; i < TIMES; i++) {
		take_for_off(p, true);
		take_in(&outcome, nvrm_let_go(&p, 1, NVRM_ALL_GPUS, &failure), &failure);
	}
	take_for_off(p, false);
	/* Theirs is what libcuda gives. */
	take_in(&outcome, nvrm_slice(p, NVRM_ALL_GPUS, 0, &failure), &failure);
	return outcome.r < 0 ? outcome.r : groups;
}

int nvrm_release_pid(struct nvrm *n, pid_t pid, struct nvrm_failure *ret_failure)
{
	struct nvrm_process *p = NULL;
	int r = nvrm_process_begin(n, pid, &p, ret_failure);

	if (r < 0)
		return r;
	p->plain = true;
	r = nvrm_process_refresh(p, ret_failure);
	if (r >= 0)
		r = release(p, ret_failure);
	nvrm_process_close(p);
	return r;
}
