/* SPDX-License-Identifier: MIT */
/*
 * What the guard does should we die: for each client, through its descriptor, the controls that
 * enable its channels and give its slices back. Each is due only while it has something to undo.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

/* That we are alive is told through the slots of the threads that own the processes. */
#define FOR_EVER_NS (UINT64_MAX / 4)

struct plan {
	struct guard_undo undo;
	uint32_t data_used;
	struct nvrm_undo *places; /* by group */
};

_Static_assert(GUARD_CALLS <= 32, "the calls of a slot are the bits of a word");

static uint32_t bit_of(uint32_t call)
{
	return (uint32_t)(1ull << call); /* of one too many: none, it cannot be added */
}

static int add_call(struct plan *plan, const struct nvrm_control *control, const void *params)
{
	struct guard_undo *u = &plan->undo;
	struct guard_call *call = &u->calls[u->n_calls];

	if (u->n_calls == GUARD_CALLS || control->params_size > GUARD_DATA - plan->data_used)
		return -ENOSPC;
	call->request = NVRM_IOC_CONTROL;
	memcpy(call->arg, control, sizeof(*control));
	call->pointer_at = offsetof(struct nvrm_control, params);
	call->data_at = plan->data_used;
	call->data_len = control->params_size;
	memcpy(u->data + call->data_at, params, call->data_len);
	plan->data_used += call->data_len;
	u->n_calls++;
	return 0;
}

static int add_enable(struct plan *plan, const struct nvrm_group *g,
		      struct nvrm_disable_channels *params)
{
	struct nvrm_control control = {
		.client = g->client,
		.object = g->subdevice,
		.cmd = NVRM_CTRL_DISABLE_CHANNELS,
		.params_size = sizeof(*params),
	};
	int r = params->n > 0 ? add_call(plan, &control, params) : 0;

	params->n = 0;
	return r;
}

/* All channels on the subdevice of group @first and of the same client, as many as fit a call. */
static int plan_enables(struct plan *plan, const struct nvrm_process *p, size_t first)
{
	const struct nvrm_group *like = &p->groups[first];
	struct nvrm_disable_channels params = { 0 };

	for (size_t i = first; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];
		struct nvrm_undo *place = &plan->places[i];

		if (g->client != like->client || g->subdevice != like->subdevice)
			continue;
		for (size_t c = 0; c < g->n_channels; c++) {
			if (params.n == NVRM_MAX_CHANNELS && add_enable(plan, g, &params) < 0)
				return -ENOSPC;
			place->enable |= bit_of(plan->undo.n_calls);
			params.clients[params.n] = g->client;
			params.channels[params.n++] = g->channels[c];
		}
	}
	return add_enable(plan, like, &params);
}

static int plan_slice(struct plan *plan, const struct nvrm_process *p, size_t i)
{
	const struct nvrm_group *g = &p->groups[i];
	struct nvrm_timeslice params = { .us = g->own_slice_us };
	struct nvrm_control control = {
		.client = g->client,
		.object = g->handle,
		.cmd = NVRM_CTRL_SET_TIMESLICE,
		.params_size = sizeof(params),
	};

	plan->places[i].slice = bit_of(plan->undo.n_calls);
	return add_call(plan, &control, &params);
}

static uint32_t calls_due(const struct nvrm_group *g, const struct nvrm_undo *place)
{
	return (g->n_off > 0 ? place->enable : 0) | (g->sliced ? place->slice : 0);
}

static int plan_client(struct plan *plan, const struct nvrm_process *p, const struct nvrm_client *c)
{
	uint32_t due = 0;
	int r = 0;

	for (size_t i = 0; i < p->n_groups && r >= 0; i++) {
		if (p->groups[i].client == c->handle && !plan->places[i].enable)
			r = plan_enables(plan, p, i);
	}
	for (size_t i = 0; i < p->n_groups && r >= 0; i++) {
		if (p->groups[i].client == c->handle && p->groups[i].compute)
			r = plan_slice(plan, p, i);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_groups; i++) {
		if (p->groups[i].client == c->handle)
			due |= calls_due(&p->groups[i], &plan->places[i]);
	}
	for (uint32_t i = 0; i < plan->undo.n_calls; i++)
		plan->undo.calls[i].due = due >> i & 1;
	return 0;
}

static int hand_over(struct nvrm_process *p, struct nvrm_client *c, const struct plan *plan)
{
	int r;

	if (plan->undo.n_calls == 0)
		return 0;
	if (c->guard_slot < 0) {
		r = guard_arm(p->guard, p->pid, FOR_EVER_NS);
		if (r < 0)
			return r;
		c->guard_slot = r;
	}
	r = guard_entrust(p->guard, c->guard_slot, c->fd, p->pidfd, &plan->undo);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_groups; i++) {
		if (p->groups[i].client == c->handle)
			p->groups[i].undo = plan->places[i];
	}
	return 0;
}

static int entrust_client(struct nvrm_process *p, struct nvrm_client *c)
{
	_cleanup_free_ struct nvrm_undo *places = calloc(p->n_groups + 1, sizeof(*places));
	_cleanup_free_ struct plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (!places || !plan)
		return -ENOMEM;
	plan->places = places;
	r = plan_client(plan, p, c);
	return r < 0 ? r : hand_over(p, c, plan);
}

static int fail_entrust(struct nvrm_failure *ret, int r)
{
	if (r == -ENOSPC)
		return nvrm_fail(ret, r, NVRM_WHY_TOO_MANY, NULL);
	if (r == -EOWNERDEAD)
		return nvrm_fail(ret, r, NVRM_WHY_GUARD_DIED, NULL);
	return nvrm_fail(ret, r, NVRM_WHY_SYSTEM, "telling the guard");
}

int nvrm_entrust(struct nvrm_process *p, struct nvrm_failure *ret)
{
	if (p->entrusted)
		return 0;
	for (size_t i = 0; p->guard && i < p->n_clients; i++) {
		int r = entrust_client(p, &p->clients[i]);

		if (r < 0)
			return fail_entrust(ret, r);
	}
	p->entrusted = true;
	return 0;
}

int nvrm_entrust_to(struct nvrm_process *p, struct guard *guard, struct nvrm_failure *ret)
{
	int r;

	p->guard = guard;
	p->entrusted = false;
	r = nvrm_entrust(p, ret);
	if (r < 0)
		nvrm_distrust(p);
	return r;
}

void nvrm_distrust(struct nvrm_process *p)
{
	for (size_t i = 0; p->guard && i < p->n_clients; i++) {
		if (p->clients[i].guard_slot < 0)
			continue;
		guard_disarm(p->guard, p->clients[i].guard_slot);
		p->clients[i].guard_slot = -1;
	}
	p->guard = NULL;
}

/* Of these calls, those that are due and the others. */
static void set_due(struct nvrm_process *p, const struct nvrm_client *c, uint32_t calls,
		    uint32_t due)
{
	for (uint32_t i = 0; i < GUARD_CALLS; i++) {
		if (calls >> i & 1)
			guard_set_due(p->guard, c->guard_slot, i, due >> i & 1);
	}
}

void nvrm_due(struct nvrm_process *p, const struct nvrm_group *g, uint32_t calls)
{
	for (size_t i = 0; p->guard && i < p->n_clients; i++) {
		if (p->clients[i].handle == g->client && p->clients[i].guard_slot >= 0)
			set_due(p, &p->clients[i], calls, calls);
	}
}

/* A call may enable channels of several groups: it is due as long as one of them is off. */
static void settle_client(struct nvrm_process *p, const struct nvrm_client *c)
{
	uint32_t known = 0, due = 0;

	for (size_t i = 0; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];

		if (g->client != c->handle)
			continue;
		known |= g->undo.enable | g->undo.slice;
		due |= calls_due(g, &g->undo);
	}
	set_due(p, c, known, due);
}

void nvrm_settle_due(struct nvrm_process *p)
{
	for (size_t i = 0; p->guard && i < p->n_clients; i++) {
		if (p->clients[i].guard_slot >= 0)
			settle_client(p, &p->clients[i]);
	}
}
