/* SPDX-License-Identifier: MIT */
/* RESUME_QUEUES: the same ids, and all of them at once. */
#include <string.h>

#include "tests/conformance/topics.h"

static void try(struct session *s, const char *what, const uint32_t *list, uint32_t n)
{
	uint32_t *ids = arena(s->target->w, (n + 1) * sizeof(*ids));
	int r;

	for (uint32_t i = 0; i < 3; i++)
		s->ids[i] = i;
	suspend(me(s->debugger), s->target, s->ids, 3, GRACE_DEFAULT);
	memcpy(ids, list, n * sizeof(*ids));
	r = resume(me(s->debugger), s->target, ids, n);
	say(s->target->w, "%s: %s ids %s active %s", what, text_of(r), ids_text(ids, n),
	    active(me(s->target), 3));
}

static void lists(struct world *w)
{
	struct session s = attached(w, 3);

	try(&s, "none", (uint32_t[]){ 0 }, 0);
	try(&s, "the first", (uint32_t[]){ 0 }, 1);
	try(&s, "two", (uint32_t[]){ 2, 0 }, 2);
	try(&s, "all", (uint32_t[]){ 0, 1, 2 }, 3);
	try(&s, "none that is", (uint32_t[]){ NO_ID }, 1);
	try(&s, "one that is not among them", (uint32_t[]){ 0, NO_ID, 2 }, 3);
	try(&s, "one twice", (uint32_t[]){ 1, 1 }, 2);
	try(&s, "with the bit of an earlier refusal",
	    (uint32_t[]){ KFD_DBG_QUEUE_INVALID_MASK | 1 }, 1);
	try(&s, "with the bit of an earlier error", (uint32_t[]){ KFD_DBG_QUEUE_ERROR_MASK | 1 },
	    1);
}

static void pointers(struct world *w)
{
	struct session s = attached(w, 3);
	struct who by = me(s.debugger);
	uint32_t *many = arena(w, 1025 * sizeof(*many));

	suspend(by, s.target, s.ids, 3, GRACE_DEFAULT);
	say(w, "bad, 0: %s", text_of(resume(by, s.target, (void *)BAD_POINTER, 0)));
	say(w, "bad, 1: %s", text_of(resume(by, s.target, (void *)BAD_POINTER, 1)));
	say(w, "1025: %s", text_of(resume(by, s.target, many, 1025)));
	say(w, "active %s", active(me(s.target), 3));
	say_active("NULL, 0:", resume(by, s.target, NULL, 0), me(s.target), 3);
	suspend(by, s.target, s.ids, 3, GRACE_DEFAULT);
	say_active("NULL, 1:", resume(by, s.target, NULL, 1), me(s.target), 3);
	suspend(by, s.target, s.ids, 3, GRACE_DEFAULT);
	say_active("NULL, 5000:", resume(by, s.target, NULL, 5000), me(s.target), 3);
}

static void not_suspended(struct world *w)
{
	struct session s = attached(w, 3);
	struct who by = me(s.debugger);

	say(w, "all %s", text_of(resume_all(by, s.target)));
	say_ids(w, "by id", resume(by, s.target, s.ids, 3), s.ids, 3);
	suspend(by, s.target, s.ids, 1, GRACE_DEFAULT);
	say(w, "one of them suspended %s", text_of(resume(by, s.target, s.ids, 3)));
	say_active("again", resume(by, s.target, s.ids, 3), me(s.target), 3);
}

static void new_queues(struct world *w)
{
	struct session s = attached_unacknowledged(w, 2);

	say(w, "all %s", text_of(resume_all(me(s.debugger), s.target)));
	say_ids(w, "by id", resume(me(s.debugger), s.target, s.ids, 2), s.ids, 2);
}

static void no_queues(struct world *w)
{
	struct session s = attached(w, 0);

	say(w, "all %s", text_of(resume_all(me(s.debugger), s.target)));
	say_ids(w, "by id", resume(me(s.debugger), s.target, s.ids, 1), s.ids, 1);
}

static int update(struct session *s, const struct kfd_ioctl_create_queue_args *q, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = q->ring_base_address,
		.ring_size = q->ring_size,
		.queue_id = q->queue_id,
		.queue_percentage = percent,
		.queue_priority = 7,
	};

	return call(me(s->target), AMDKFD_IOC_UPDATE_QUEUE, &args);
}

/* The owner cannot end a hold, but can see to it that the queue stays off after it. */
static void updated_while_held(struct world *w)
{
	struct session s = attached(w, 0);
	struct kfd_ioctl_create_queue_args q = queue_args(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	create_queue(s.target, &q);
	snapshot(me(s.debugger), s.target, NEW);
	suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT);
	say_active("100 percent", update(&s, &q, 100), me(s.target), 1);
	say_active("0 percent", update(&s, &q, 0), me(s.target), 1);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 1);
	say_active("100 percent", update(&s, &q, 100), me(s.target), 1);
}

static void while_paused(struct world *w)
{
	struct session s = attached(w, 2);
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };

	suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT);
	say_active("pause", call(me(s.target), AMDKFD_IOC_CRIU_OP, &c), me(s.target), 2);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 2);
	s.ids[1] = 1;
	say_active("suspend", suspend(me(s.debugger), s.target, &s.ids[1], 1, GRACE_DEFAULT),
		   me(s.target), 2);
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_active("unpause", call(me(s.target), AMDKFD_IOC_CRIU_OP, &c), me(s.target), 2);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 2);
}

const struct conformance_case resume_cases[] = {
	{ "resume/lists", lists },
	{ "resume/pointers", pointers },
	{ "resume/not_suspended", not_suspended },
	{ "resume/new_queues", new_queues },
	{ "resume/no_queues", no_queues },
	{ "resume/updated_while_held", updated_while_held },
	{ "resume/while_paused", while_paused },
	{ NULL, NULL },
};
