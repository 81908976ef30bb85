/* SPDX-License-Identifier: MIT */
/* SUSPEND_QUEUES: which ids, how many, and what the caller reads back. */
#include <inttypes.h>
#include <string.h>

#include "tests/conformance/topics.h"

#define ERROR_BIT KFD_DBG_QUEUE_ERROR_MASK
#define INVALID_BIT KFD_DBG_QUEUE_INVALID_MASK

static void try(struct session *s, const char *what, const uint32_t *list, uint32_t n)
{
	uint32_t *ids = arena(s->target->w, (n + 1) * sizeof(*ids));
	int r;

	memcpy(ids, list, n * sizeof(*ids));
	r = suspend(me(s->debugger), s->target, ids, n, GRACE_DEFAULT);
	say(s->target->w, "%s: %s ids %s active %s", what, text_of(r), ids_text(ids, n),
	    active(me(s->target), 3));
	resume_all(me(s->debugger), s->target);
}

static void lists(struct world *w)
{
	struct session s = attached(w, 3);

	try(&s, "none", (uint32_t[]){ 0 }, 0);
	try(&s, "the first", (uint32_t[]){ 0 }, 1);
	try(&s, "the last", (uint32_t[]){ 2 }, 1);
	try(&s, "two", (uint32_t[]){ 2, 0 }, 2);
	try(&s, "all", (uint32_t[]){ 0, 1, 2 }, 3);
	try(&s, "all backwards", (uint32_t[]){ 2, 1, 0 }, 3);
	try(&s, "none that is", (uint32_t[]){ NO_ID }, 1);
	try(&s, "one that is not among them", (uint32_t[]){ 0, NO_ID, 2 }, 3);
	try(&s, "one twice", (uint32_t[]){ 1, 1 }, 2);
	try(&s, "one three times among others", (uint32_t[]){ 1, 0, 1, 2, 1 }, 5);
	try(&s, "with the bit of an earlier refusal", (uint32_t[]){ INVALID_BIT | 1 }, 1);
	try(&s, "with the bit of an earlier error", (uint32_t[]){ ERROR_BIT | 1 }, 1);
	try(&s, "with both", (uint32_t[]){ INVALID_BIT | ERROR_BIT | 1, 0 }, 2);
	try(&s, "with a bit that means nothing", (uint32_t[]){ 0x10000001 }, 1);
	try(&s, "the largest number", (uint32_t[]){ UINT32_MAX }, 1);
}

static void repeated(struct world *w)
{
	struct session s = attached(w, 3);
	struct who by = me(s.debugger);

	say_active("once", suspend(by, s.target, s.ids, 2, GRACE_DEFAULT), me(s.target), 3);
	say_ids(w, "twice", suspend(by, s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	say_ids(w, "and one more", suspend(by, s.target, s.ids, 3, GRACE_DEFAULT), s.ids, 3);
	say_active("resumed once", resume_all(by, s.target), me(s.target), 3);
}

static void counts_and_pointers(struct world *w)
{
	struct session s = attached(w, 3);
	struct who by = me(s.debugger);
	uint32_t *many = arena(w, 1025 * sizeof(*many));

	memset(many, 0x11, 1025 * sizeof(*many));
	say(w, "NULL, 0: %s", text_of(suspend(by, s.target, NULL, 0, 0)));
	say(w, "NULL, 1: %s", text_of(suspend(by, s.target, NULL, 1, 0)));
	say(w, "NULL, 1025: %s", text_of(suspend(by, s.target, NULL, 1025, 0)));
	say(w, "bad, 0: %s", text_of(suspend(by, s.target, (void *)BAD_POINTER, 0, 0)));
	say(w, "bad, 1: %s", text_of(suspend(by, s.target, (void *)BAD_POINTER, 1, 0)));
	say(w, "bad, 1025: %s", text_of(suspend(by, s.target, (void *)BAD_POINTER, 1025, 0)));
	many[1023] = 1;
	say_ids(w, "1024, the last:", suspend(by, s.target, many, 1024, 0), &many[1023], 1);
	say_ids(w, "1025, the first:", suspend(by, s.target, many, 1025, 0), &many[0], 1);
	say(w, "2^32-1: %s", text_of(suspend(by, s.target, many, UINT32_MAX, 0)));
	say(w, "active %s", active(me(s.target), 3));
}

/* Idle queues: how long a grace is shows in nothing but that every value is taken. */
static void grace(struct world *w)
{
	static const uint32_t values[] = { 0,	1,    2,     254,	 255,	     256,
					   257, 1000, 65535, 0x7fffffff, 0xfffffffe, 0xffffffff };
	struct session s = attached(w, 1);

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		int r;

		s.ids[0] = 0;
		r = suspend(me(s.debugger), s.target, s.ids, 1, values[i]);
		say(w, "grace %u: %s id %x", values[i], text_of(r), s.ids[0]);
		resume_all(me(s.debugger), s.target);
	}
}

static void types(struct world *w)
{
	static const struct {
		const char *name;
		uint32_t type;
	} kinds[] = {
		{ "PM4", KFD_IOC_QUEUE_TYPE_COMPUTE },
		{ "SDMA", KFD_IOC_QUEUE_TYPE_SDMA },
		{ "AQL", KFD_IOC_QUEUE_TYPE_COMPUTE_AQL },
	};
	struct session s = attached(w, 0);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		add_queue(s.target, kinds[i].type);
	snapshot(me(s.debugger), s.target, NEW);
	for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int r = suspend(me(s.debugger), s.target, &s.ids[i], 1, GRACE_DEFAULT);

		say(w, "%s: %s id %x", kinds[i].name, text_of(r), s.ids[i]);
	}
	say_ids(w, "all again:", suspend(me(s.debugger), s.target, s.ids, 3, GRACE_DEFAULT), s.ids,
		3);
	say(w, "resume all %s", text_of(resume_all(me(s.debugger), s.target)));
}

static void inactive_queue(struct world *w)
{
	struct session s = attached(w, 0);
	struct kfd_ioctl_create_queue_args args =
		queue_args(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	int r;

	args.queue_percentage = 0;
	create_queue(s.target, &args);
	snapshot(me(s.debugger), s.target, NEW);
	r = suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT);
	say(w, "suspend %s id %x active %s", text_of(r), s.ids[0], active(me(s.target), 1));
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 1);
}

static void say_header(struct session *s, uint32_t id, uint32_t xcc, const char *what)
{
	struct kfd_context_save_area_header h;
	struct world *w = s->target->w;
	uint64_t at = s->target->areas[id] + (uint64_t)xcc * node_property(w, "cwsr_size");
	uint32_t stack = node_property(w, "ctl_stack_size");

	w->ops->peek(w, s->target, at, &h, sizeof(h));
	say(w, "%s: stack at its end %+d size %u, waves behind it %+d size %u, rest %u %u %" PRIx64,
	    what, (int)(h.wave_state.control_stack_offset - stack), h.wave_state.control_stack_size,
	    (int)(h.wave_state.wave_state_offset - stack), h.wave_state.wave_state_size,
	    h.debug_offset, h.debug_size, h.err_payload_addr);
}

/* The header of every compute queue is written, suspended or not; what the thunk wrote stays. */
static void headers(struct world *w)
{
	struct session s = attached(w, 1);
	struct kfd_context_save_area_header h;
	uint32_t last = node_property(w, "num_xcc") - 1;

	own_area(s.target);
	add_queues(s.target, 1);
	memset(&h, 0xee, sizeof(h));
	h.err_payload_addr = 0x1234;
	h.debug_offset = 5;
	h.debug_size = 6;
	for (uint32_t id = 0; id < 2; id++)
		w->ops->poke(w, s.target, s.target->areas[id], &h, sizeof(h));
	say(w, "suspend %s", text_of(suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT)));
	say_header(&s, 0, 0, "suspended, first XCC");
	say_header(&s, 0, last, "suspended, last XCC");
	say_header(&s, 1, 0, "not suspended");
}

static void no_header_without_success(struct world *w)
{
	struct session s = attached_unacknowledged(w, 1);
	struct kfd_context_save_area_header h;

	memset(&h, 0, sizeof(h));
	h.wave_state.control_stack_size = 0xabcd;
	w->ops->poke(w, s.target, s.target->areas[0], &h, sizeof(h));
	suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT);
	w->ops->peek(w, s.target, s.target->areas[0], &h, sizeof(h));
	say(w, "refused: %x", h.wave_state.control_stack_size);
}

static void other_processes(struct world *w)
{
	struct session s = attached(w, 2);
	struct actor *other = kfd_actor(w, "other");

	acquire_vm(other);
	add_queues(other, 2);
	say(w, "suspend %s", text_of(suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT)));
	say(w, "target %s other %s", active(me(s.target), 2), active(me(other), 2));
	say(w, "resume %s", text_of(resume_all(me(s.debugger), s.target)));
	say(w, "target %s other %s", active(me(s.target), 2), active(me(other), 2));
}

static void two_sessions(struct world *w)
{
	struct session s = attached(w, 1);
	struct actor *other = kfd_actor(w, "other");

	acquire_vm(other);
	runtime(me(other), 1);
	add_queues(other, 1);
	seize(me(s.debugger), other);
	say(w, "enable %s", text_of(enable(me(s.debugger), other, NEW)));
	snapshot(me(s.debugger), other, NEW);
	say(w, "suspend the first %s",
	    text_of(suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT)));
	s.ids[1] = 0;
	say(w, "suspend the second %s",
	    text_of(suspend(me(s.debugger), other, &s.ids[1], 1, GRACE_DEFAULT)));
	say(w, "active %s %s", active(me(s.target), 1), active(me(other), 1));
	say(w, "resume the first %s", text_of(resume_all(me(s.debugger), s.target)));
	say(w, "active %s %s", active(me(s.target), 1), active(me(other), 1));
}

static void clears_exceptions(struct world *w)
{
	struct session s = attached(w, 1);
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.exception_mask = UINT64_MAX,
			.queue_array_ptr = (uintptr_t)s.ids,
			.num_queues = 1,
		},
	};
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;
	int r;

	add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);
	say(w, "suspend %s mask then %" PRIx64, text_of(r), args.suspend_queues.exception_mask);
	r = query_event(me(s.debugger), s.target, 0, &e);
	say(w, "the other one's event %s queue %u", text_of(r), e.queue_id);
}

const struct conformance_case suspend_cases[] = {
	{ "suspend/lists", lists },
	{ "suspend/repeated", repeated },
	{ "suspend/counts_and_pointers", counts_and_pointers },
	{ "suspend/grace", grace },
	{ "suspend/types", types },
	{ "suspend/inactive_queue", inactive_queue },
	{ "suspend/headers", headers },
	{ "suspend/no_header_without_success", no_header_without_success },
	{ "suspend/other_processes", other_processes },
	{ "suspend/two_sessions", two_sessions },
	{ "suspend/clears_exceptions", clears_exceptions },
	{ NULL, NULL },
};
