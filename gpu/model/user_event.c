/* SPDX-License-Identifier: MIT */
/*
 * Events, as programs make, set and wait for them (Linux 6.12 kfd_events.c). No modelled GPU
 * signals one but by its reset, and nobody can while a call runs: a wait that would sleep ends
 * with its time, and one without an end is -EOPNOTSUPP.
 */
#include <errno.h>

#include "abi/kfd_memory.h"
#include "gpu/model/driver.h"

#define TYPE_SIGNAL 0u
#define TYPE_HW_EXCEPTION 3u
#define TYPE_DEBUG 5u

#define SIGNAL_SLOTS 256u /* of the page the driver makes; the first is never given out */
#define FIRST_OTHER_ID 0x40000000u
#define MMAP_TYPE_EVENTS (2ull << 62)
#define WAITER_BYTES 56u /* sizeof the driver's struct kfd_event_waiter */
#define FIRST_AGE 1u /* 0 is for callers that do not know ages */

#define WAIT_COMPLETE 0u
#define WAIT_TIMEOUT 1u
#define WAIT_FAIL 2u
#define WAIT_FOR_EVER UINT32_MAX

struct user_event {
	struct user_event *next; /* by id */
	uint32_t id;
	uint32_t type;
	bool auto_reset, signaled;
	uint64_t age;
	struct kfd_hsa_hw_exception_data exception;
};

static bool has_slot(const struct user_event *e)
{
	return e->type == TYPE_SIGNAL || e->type == TYPE_DEBUG;
}

/* Where it is in the list; that there is none: NULL. */
static struct user_event **find(struct model_kproc *k, uint32_t id)
{
	struct user_event **at = &k->events;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

uint32_t model_events_count(const struct model_kproc *k)
{
	uint32_t n = 0;

	for (const struct user_event *e = k->events; e; e = e->next)
		n++;
	return n;
}

void model_events_free(struct model_kproc *k)
{
	while (k->events) {
		struct user_event *e = k->events;

		k->events = e->next;
		free(e);
	}
}

static void set(struct user_event *e)
{
	e->signaled = true;
	e->age++;
}

/* kfd_signal_reset_event() */
void model_events_of_reset(struct model_gpu *gpu, const struct model_kproc *only)
{
	for (struct model_kproc *k = gpu->m->kprocs; k; k = k->next) {
		if (only && !k->pdds[gpu->index].has_reset_queue)
			continue;
		for (struct user_event *e = k->events; e; e = e->next) {
			if (e->type != TYPE_HW_EXCEPTION)
				continue;
			e->exception = (struct kfd_hsa_hw_exception_data){
				.memory_lost = 1,
				.gpu_id = gpu->id,
			};
			set(e);
		}
	}
}

/* ---- making and setting ---- */

/* Takes the lowest id that is free from @first on. */
static void insert(struct model_kproc *k, struct user_event *e, uint32_t first)
{
	struct user_event **at = &k->events;

	e->id = first;
	for (; *at && (*at)->id <= e->id; at = &(*at)->next)
		if ((*at)->id == e->id)
			e->id++;
	e->next = *at;
	*at = e;
}

/* A page is a buffer of the caller's, by its handle: the model has none. */
static int check_page(struct call *c, uint64_t handle)
{
	struct model_pdd *pdd = model_pdd_by_id(c->m, c->kproc, (uint32_t)(handle >> 32));

	return !c->kproc->has_event_page && pdd && !pdd->vm_acquired ? -ENODEV : -EINVAL;
}

int model_ioc_create_event(struct call *c, void *data)
{
	struct kfd_ioctl_create_event_args *a = data;
	struct model_kproc *k = c->kproc;
	struct user_event *e;

	if (a->event_page_offset)
		return check_page(c, a->event_page_offset);
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->type = a->event_type;
	e->auto_reset = a->auto_reset;
	e->age = FIRST_AGE;
	if (has_slot(e)) {
		if (k->n_signals == SIGNAL_SLOTS - 1) {
			free(e);
			return -ENOSPC;
		}
		k->has_event_page = true;
		k->n_signals++;
		insert(k, e, 1);
		a->event_page_offset = MMAP_TYPE_EVENTS;
		a->event_slot_index = e->id;
	} else {
		insert(k, e, FIRST_OTHER_ID);
	}
	a->event_id = e->id;
	a->event_trigger_data = e->id;
	return 0;
}

int model_ioc_destroy_event(struct call *c, void *data)
{
	const struct kfd_ioctl_destroy_event_args *a = data;
	struct user_event **at = find(c->kproc, a->event_id), *e = *at;

	if (!e)
		return -EINVAL;
	c->kproc->n_signals -= has_slot(e);
	*at = e->next;
	free(e);
	return 0;
}

int model_ioc_set_event(struct call *c, void *data)
{
	const struct kfd_ioctl_set_event_args *a = data;
	struct user_event *e = *find(c->kproc, a->event_id);

	if (!e || e->type != TYPE_SIGNAL)
		return -EINVAL;
	set(e);
	return 0;
}

int model_ioc_reset_event(struct call *c, void *data)
{
	const struct kfd_ioctl_reset_event_args *a = data;
	struct user_event *e = *find(c->kproc, a->event_id);

	if (!e || e->type != TYPE_SIGNAL)
		return -EINVAL;
	e->signaled = false;
	return 0;
}

/* ---- waiting ---- */

struct waiter {
	struct user_event *event;
	bool activated, knows_age;
};

static uint64_t nth(const struct kfd_ioctl_wait_events_args *a, uint32_t i)
{
	return a->events_ptr + i * sizeof(struct kfd_event_data);
}

/* What resets itself is reset by being looked at, whatever becomes of the call. */
static int look_at(const struct call *c, uint64_t user, struct waiter *w)
{
	struct kfd_event_data d;
	struct user_event *e;

	if (model_copy_from_user(c->m, &d, user, sizeof(d)) < 0)
		return -EFAULT;
	e = *find(c->kproc, d.event_id);
	if (!e)
		return -EINVAL;
	w->event = e;
	w->knows_age = e->type == TYPE_SIGNAL && d.signal_event_data.last_event_age;
	w->activated =
		e->signaled || (w->knows_age && e->age != d.signal_event_data.last_event_age);
	e->signaled = e->signaled && !e->auto_reset;
	return 0;
}

static int tell(const struct model *m, const struct waiter *w, uint64_t user)
{
	const struct user_event *e = w->event;

	if (!w->activated)
		return 0;
	if (e->type == TYPE_HW_EXCEPTION)
		return model_copy_to_user(m, user, &e->exception, sizeof(e->exception));
	return w->knows_age ? model_copy_to_user(m, user, &e->age, sizeof(e->age)) : 0;
}

static int wait_for(struct call *c, struct kfd_ioctl_wait_events_args *a, struct waiter *ws)
{
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < a->num_events; i++) {
		r = look_at(c, nth(a, i), &ws[i]);
		if (r < 0)
			return r;
		n += ws[i].activated;
	}
	if (n == a->num_events || (n && !a->wait_for_all)) {
		a->wait_result = WAIT_COMPLETE;
		for (uint32_t i = 0; i < a->num_events && r == 0; i++)
			r = tell(c->m, &ws[i], nth(a, i));
		return r;
	}
	if (a->timeout == WAIT_FOR_EVER)
		return -EOPNOTSUPP;
	model_advance(c->m, a->timeout * NSEC_PER_MSEC);
	a->wait_result = WAIT_TIMEOUT;
	return 0;
}

int model_ioc_wait_events(struct call *c, void *data)
{
	struct kfd_ioctl_wait_events_args *a = data;
	_cleanup_free_ struct waiter *ws = NULL;
	int r = -ENOMEM;

	if (a->num_events <= KMALLOC_MAX_BYTES / WAITER_BYTES)
		ws = calloc(MAX(a->num_events, 1u), sizeof(*ws));
	if (ws)
		r = wait_for(c, a, ws);
	if (r < 0)
		a->wait_result = WAIT_FAIL;
	return r;
}
