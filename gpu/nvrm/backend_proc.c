/* SPDX-License-Identifier: MIT */
/* Processes as the worker has them: each once, whoever watches it or has it attached. */
#include <errno.h>

#include "gpu/nvrm/backend_internal.h"
#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define LONG_NS (10 * NSEC_PER_MSEC) /* between two steps of a long look */
#define STEP_NS (3 * NSEC_PER_MSEC) /* then it is over, however little was asked */
#define STEP_PARTS 4u

bool nvrm_gpu_set_has(const struct gpu_set *s, uint32_t gpu)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->gpus[i] == gpu)
			return true;
	return false;
}

void nvrm_gpu_set_add(struct gpu_set *s, uint32_t gpu)
{
	if (s->n < NVRM_MAX_GPUS && !nvrm_gpu_set_has(s, gpu))
		s->gpus[s->n++] = gpu;
}

void nvrm_gpu_set_remove(struct gpu_set *s, uint32_t gpu)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->gpus[i] != gpu)
			continue;
		s->gpus[i] = s->gpus[--s->n];
		return;
	}
}

void nvrm_proc_gpus(const struct proc *x, struct gpu_set *ret)
{
	ret->n = 0;
	for (size_t i = 0; x->p && i < x->p->n_groups; i++)
		nvrm_gpu_set_add(ret, x->p->groups[i].gpu);
}

/* One more process than there are. */
static int make_room(struct backend *b)
{
	size_t room = b->room ? 2 * b->room : 16;
	void *polls, *batch;

	if (b->n_procs < b->room)
		return 0;
	polls = realloc(b->polls, (room + OWN_POLLS) * sizeof(*b->polls));
	if (!polls)
		return -ENOMEM;
	b->polls = polls;
	batch = realloc(b->batch, room * sizeof(*b->batch));
	if (!batch)
		return -ENOMEM;
	b->batch = batch;
	b->room = room;
	return 0;
}

/* Processes of which nobody can tell whose they are share one turn. */
static struct user *user_get(struct backend *b, pid_t pid)
{
	struct user *u;
	uid_t uid;

	if (b->n->transport->owner(b->n->data, pid, &uid) < 0)
		uid = (uid_t)-1;
	LIST_FOREACH(u, &b->users, link)
		if (u->uid == uid)
			break;
	if (!u) {
		u = calloc(1, sizeof(*u));
		if (!u)
			return NULL;
		u->uid = uid;
		LIST_INSERT_HEAD(&b->users, u, link);
	}
	u->n_procs++;
	return u;
}

static void user_put(struct user *u)
{
	if (!u || --u->n_procs > 0)
		return;
	LIST_REMOVE(u, link);
	free(u);
}

static int proc_new(struct backend *b, pid_t pid, struct proc **ret)
{
	_cleanup_close_ int pidfd = -1;
	struct proc *x;
	int r = make_room(b);

	if (r < 0)
		return r;
	pidfd = b->n->transport->pidfd(b->n->data, pid);
	if (pidfd < 0)
		return pidfd;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->user = user_get(b, pid);
	if (!x->user) {
		free(x);
		return -ENOMEM;
	}
	x->b = b;
	x->pid = pid;
	x->pidfd = steal_fd(&pidfd);
	LIST_INSERT_HEAD(&b->procs, x, link);
	b->n_procs++;
	*ret = x;
	return 0;
}

int nvrm_proc_get(struct backend *b, pid_t pid, struct proc **ret)
{
	struct proc *x;

	LIST_FOREACH(x, &b->procs, link) {
		if (x->pid != pid || x->ended)
			continue;
		*ret = x;
		return 0;
	}
	return proc_new(b, pid, ret);
}

void nvrm_proc_put(struct proc *x)
{
	if (x->t || x->attach || x->n_watches || x->owing)
		return;
	nvrm_proc_close(x);
	LIST_REMOVE(x, link);
	x->b->n_procs--;
	closep(&x->pidfd);
	user_put(x->user);
	free(x->named);
	free(x);
}

/* A group is the same as long as its client, which our descriptor keeps, has it by this handle. */
static const struct named *find_group(const struct proc *x, const struct nvrm_group *g)
{
	for (size_t i = 0; i < x->n_named; i++) {
		const struct named *n = &x->named[i];

		if (n->client == g->client && n->handle == g->handle && n->gpu == g->gpu)
			return n;
	}
	return NULL;
}

int nvrm_proc_name_groups(struct proc *x)
{
	for (size_t i = 0; i < x->p->n_groups; i++) {
		const struct nvrm_group *g = &x->p->groups[i];
		struct named *more;

		if (find_group(x, g))
			continue;
		more = reallocarray(x->named, x->n_named + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		x->named = more;
		more[x->n_named] = (struct named){
			.client = g->client,
			.handle = g->handle,
			.gpu = g->gpu,
			.queue = (uint32_t)x->n_named + 1,
		};
		x->n_named++;
	}
	return 0;
}

const struct named *nvrm_proc_named(const struct proc *x, uint32_t queue)
{
	return queue > 0 && queue <= x->n_named ? &x->named[queue - 1] : NULL;
}

static uint64_t now_ns(const struct proc *x)
{
	return x->b->n->transport->now_ns(x->b->n->data);
}

static struct nvrm_process *looked_at(const struct proc *x)
{
	return x->p ? x->p : x->opening;
}

/* What the driver is asked takes a few microseconds, unless somebody keeps it busy. */
static int look_a_step(struct nvrm_process *p, const struct proc *x, struct nvrm_failure *f)
{
	uint64_t began_ns = now_ns(x);
	int r = -EINPROGRESS;

	for (unsigned int i = 0; i < STEP_PARTS && r == -EINPROGRESS; i++) {
		unsigned int left = NVRM_STEP_ASKS / STEP_PARTS;

		r = nvrm_process_look(p, &left, f);
		if (nvrm_process_waits(p) || now_ns(x) - began_ns >= STEP_NS)
			break;
	}
	return r;
}

static int look(struct proc *x, struct nvrm_failure *ret_failure)
{
	int r;

	if (!x->p && !x->opening) {
		r = nvrm_process_begin(x->b->n, x->pid, &x->opening, ret_failure);
		if (r < 0)
			return r;
		x->opening->quest = &x->quest;
	}
	return look_a_step(looked_at(x), x, ret_failure);
}

int nvrm_proc_look(struct proc *x, struct nvrm_failure *ret_failure)
{
	int r;

	nvrm_work_enter(x->b);
	r = look(x, ret_failure);
	if (r != -EINPROGRESS)
		x->unanswered = looked_at(x) ? looked_at(x)->unanswered : 0;
	if (r < 0 && r != -EINPROGRESS)
		nvrm_process_close(steal_ptr(&x->opening));
	nvrm_work_leave(x->b);
	x->steps = r == -EINPROGRESS ? x->steps + 1 : 0;
	if (x->steps >= LONG_STEPS)
		x->look_ns = now_ns(x) + LONG_NS;
	x->asks = r == -EINPROGRESS && nvrm_process_waits(looked_at(x));
	if (r < 0 || !x->opening)
		return r;
	x->p = steal_ptr(&x->opening);
	/* Online work waits for none of these, and a second call to the firmware for them. */
	x->p->spares_copies = true;
	return 1;
}

bool nvrm_proc_go_on(struct backend *b)
{
	struct proc *x;
	bool any = false;

	LIST_FOREACH(x, &b->procs, link) {
		bool asks = x->asks && looked_at(x) && nvrm_process_waits(looked_at(x));

		any |= x->asks && !asks;
		x->asks = asks;
	}
	return any;
}

static bool is_undone(const struct nvrm_process *p)
{
	for (size_t i = 0; i < p->n_groups; i++)
		if (p->groups[i].n_off > 0 || p->groups[i].sliced)
			return false;
	return true;
}

void nvrm_proc_undo(struct proc *x)
{
	if (!x->p)
		return;
	nvrm_work_enter(x->b);
	nvrm_undo_all(x->p);
	x->owing = !is_undone(x->p);
	if (!x->owing)
		nvrm_distrust(x->p);
	nvrm_work_leave(x->b);
}

void nvrm_proc_close(struct proc *x)
{
	nvrm_work_enter(x->b);
	nvrm_process_close(steal_ptr(&x->opening));
	nvrm_process_close(steal_ptr(&x->p));
	x->owing = false;
	nvrm_work_leave(x->b);
}
