/* SPDX-License-Identifier: MIT */
/* A queue cannot be suspended before somebody took note that it is new. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

/* Tries each of three queues for itself: "1" it was suspended. */
static void say_who_may(struct session *s, const char *what)
{
	char text[4] = "000";

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t *id = arena(s->target->w, sizeof(*id));

		*id = i;
		if (suspend(me(s->debugger), s->target, id, 1, GRACE_DEFAULT) == 1)
			text[i] = '1';
	}
	resume_all(me(s->debugger), s->target);
	say(s->target->w, "%s: %s", what, text);
}

static int snapshot_of(struct session *s, uint64_t clear, uint32_t capacity)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.queue_snapshot = {
			.exception_mask = clear,
			.snapshot_buf_ptr = (uintptr_t)arena(s->target->w, 1024),
			.num_queues = capacity,
			.entry_size = 64,
		},
	};

	return dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &args);
}

static void refused(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);
	int r = suspend(me(s.debugger), s.target, s.ids, 3, GRACE_DEFAULT);

	say(w, "%s ids %s active %s", text_of(r), ids_text(s.ids, 3), active(me(s.target), 3));
}

static void snapshots(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);

	snapshot_of(&s, 0, 16);
	say_who_may(&s, "a snapshot that clears nothing");
	snapshot_of(&s, DELETED | RUNTIME, 16);
	say_who_may(&s, "that clears other bits");
	snapshot_of(&s, NEW, 0);
	say_who_may(&s, "without room");
	snapshot_of(&s, NEW, 1);
	say_who_may(&s, "with room for one");
	snapshot_of(&s, NEW, 2);
	say_who_may(&s, "with room for two");
	snapshot_of(&s, UINT64_MAX, 3);
	say_who_may(&s, "with room for all");
}

static void events(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;
	int r;

	r = query_event(me(s.debugger), s.target, 0, &e);
	say(w, "query %s mask %" PRIx64 " queue %u", text_of(r), e.exception_mask, e.queue_id);
	say_who_may(&s, "a query that clears nothing");
	for (uint32_t i = 0; i < 4; i++) {
		r = query_event(me(s.debugger), s.target, NEW, &e);
		say(w, "query %s mask %" PRIx64 " queue %u", text_of(r), e.exception_mask,
		    e.queue_id);
	}
	say_who_may(&s, "queries that clear");
}

static void exception_info(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);
	struct kfd_ioctl_dbg_trap_args args = {
		.query_exception_info = {
			.info_ptr = (uintptr_t)arena(w, 64),
			.info_size = 64,
			.source_id = 1,
			.exception_code = EC_QUEUE_NEW,
		},
	};
	int r;

	r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO, &args);
	say(w, "info %s size %u", text_of(r), args.query_exception_info.info_size);
	say_who_may(&s, "that does not clear");
	args.query_exception_info.clear_exception = 1;
	r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO, &args);
	say(w, "info %s size %u", text_of(r), args.query_exception_info.info_size);
	say_who_may(&s, "that clears");
	r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO, &args);
	say(w, "again %s", text_of(r));
}

static void disable_acknowledges(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);

	disable(me(s.debugger), s.target);
	say(w, "enable %s", text_of(enable(me(s.debugger), s.target, NEW)));
	say_who_may(&s, "after a session");
	add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	s.ids[0] = 3;
	say(w, "one made since then: %s",
	    text_of(suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT)));
}

/* What a suspend clears it clears on refused queues too, if one of the list was suspended. */
static void cleared_by_suspend(struct world *w)
{
	struct session s = attached_unacknowledged(w, 3);
	struct kfd_ioctl_dbg_trap_args args = {
		.suspend_queues = {
			.exception_mask = NEW,
			.queue_array_ptr = (uintptr_t)s.ids,
			.num_queues = 3,
		},
	};
	int r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);

	say(w, "all new %s ids %s", text_of(r), ids_text(s.ids, 3));
	say_who_may(&s, "after that");
	snapshot_of(&s, NEW, 1);
	r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &args);
	say(w, "two new %s ids %s", text_of(r), ids_text(s.ids, 3));
	resume_all(me(s.debugger), s.target);
	say_who_may(&s, "after that");
}

static void reused_id(struct world *w)
{
	struct session s = attached(w, 3);

	destroy_queue(me(s.target), 1);
	say(w, "new id %u", add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL));
	say_who_may(&s, "one is new");
}

static void self_debug(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	uint32_t *ids = arena(w, 64);

	acquire_vm(a);
	runtime(me(a), 1);
	add_queues(a, 1);
	enable(me(a), a, 0);
	say(w, "new %s", text_of(suspend(me(a), a, ids, 1, GRACE_DEFAULT)));
	snapshot(me(a), a, NEW);
	ids[0] = 0;
	say_active("seen", suspend(me(a), a, ids, 1, GRACE_DEFAULT), me(a), 1);
}

static void other_types(struct world *w)
{
	struct session s = attached(w, 0);
	uint32_t ids[] = { add_queue(s.target, KFD_IOC_QUEUE_TYPE_SDMA),
			   add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE) };
	int r = suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT);

	say(w, "ids %u %u: suspend %s ids %s", ids[0], ids[1], text_of(r), ids_text(s.ids, 2));
	snapshot(me(s.debugger), s.target, NEW);
	r = suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT);
	say(w, "seen: suspend %s ids %s", text_of(r), ids_text(s.ids, 2));
}

const struct conformance_case new_rule_cases[] = {
	{ "new_rule/refused", refused },
	{ "new_rule/snapshots", snapshots },
	{ "new_rule/events", events },
	{ "new_rule/exception_info", exception_info },
	{ "new_rule/disable_acknowledges", disable_acknowledges },
	{ "new_rule/cleared_by_suspend", cleared_by_suspend },
	{ "new_rule/reused_id", reused_id },
	{ "new_rule/self_debug", self_debug },
	{ "new_rule/other_types", other_types },
	{ NULL, NULL },
};
