/* SPDX-License-Identifier: MIT */
/* Processes as the worker has them: each once, whoever watches it or has it attached. */
#include <errno.h>

#include "gpu/nvrm/backend_internal.h"
#include "gpu/nvrm/internal.h"
#include "util/array.h"
#include "util/macros.h"

#define LONG_NS (10 * NSEC_PER_MSEC) /* between two steps of a long look */
#define STEP_NS (3 * NSEC_PER_MSEC) /* then it is over, however little was asked */
#define STEP_PARTS 4u

#define INDEX_BITS 5u /* of a GPU's index, the lowest of a group's number */
_Static_assert(NVRM_MAX_GPUS <= 1u << INDEX_BITS, "a set of GPUs is the bits of a word");

/* There are no more than the driver can have. */
static uint32_t index_of(struct backend *b, uint32_t gpu)
{
	uint32_t i = 0;

	while (i < b->n_gpus && b->gpus[i] != gpu)
		i++;
	if (i == NVRM_MAX_GPUS)
		return i - 1;
	if (i == b->n_gpus)
		b->gpus[b->n_gpus++] = gpu;
	return i;
}

uint32_t nvrm_gpu_bit(struct backend *b, uint32_t gpu)
{
	return 1u << index_of(b, gpu);
}

uint32_t nvrm_proc_gpus(const struct proc *x)
{
	uint32_t gpus = 0;

	for (size_t i = 0; x->p && i < x->p->n_groups; i++)
		gpus |= nvrm_gpu_bit(x->b, x->p->groups[i].gpu);
	return gpus;
}

void nvrm_proc_number_groups(struct proc *x)
{
	for (size_t i = 0; i < x->p->n_groups; i++) {
		struct nvrm_group *g = &x->p->groups[i];

		if (!g->number)
			g->number = ++x->numbers << INDEX_BITS | index_of(x->b, g->gpu);
	}
}

uint32_t nvrm_proc_gpu_of(const struct proc *x, uint32_t number)
{
	uint32_t n = number >> INDEX_BITS;

	return n > 0 && n <= x->numbers ? 1u << number % (1u << INDEX_BITS) : 0;
}

/* One more process than there are. */
static int make_room(struct backend *b)
{
	size_t n = b->n_procs + 1;
	int r = array_reserve(&b->polls, OWN_POLLS + n, &b->polls_room, sizeof(*b->polls));

	return r < 0 ? r : array_reserve(&b->batch, n, &b->batch_room, sizeof(*b->batch));
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
	free(x);
}

static struct nvrm_process *looked_at(const struct proc *x)
{
	return x->p ? x->p : x->opening;
}

/* What the driver is asked takes a few microseconds, unless somebody keeps it busy. */
static int look_a_step(struct nvrm_process *p, const struct proc *x, struct nvrm_failure *f)
{
	uint64_t began_ns = nvrm_now_ns(x->b->n);
	int r = -EINPROGRESS;

	for (unsigned int i = 0; i < STEP_PARTS && r == -EINPROGRESS; i++) {
		unsigned int left = NVRM_STEP_ASKS / STEP_PARTS;

		r = nvrm_process_look(p, &left, f);
		if (nvrm_process_waits(p) || nvrm_now_ns(x->b->n) - began_ns >= STEP_NS)
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
		x->look_ns = nvrm_now_ns(x->b->n) + LONG_NS;
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

void nvrm_proc_undo(struct proc *x)
{
	if (!x->p)
		return;
	nvrm_work_enter(x->b);
	x->owing = !nvrm_undo_all(x->p);
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
