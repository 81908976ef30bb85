/* SPDX-License-Identifier: MIT */
/* Events of a program's own: made, set, waited for without sleeping, and destroyed. */
#include <inttypes.h>

#include "abi/kfd_memory.h"
#include "tests/conformance/topics.h"

#define SIGNAL 0u
#define HW_EXCEPTION 3u
#define DEBUG_EVENT 5u
#define MEMORY 8u

enum which { ANY, ALL };

static int create(struct who who, uint32_t type, bool auto_reset, uint32_t *ret_id)
{
	struct kfd_ioctl_create_event_args args = { .event_type = type, .auto_reset = auto_reset };
	int r = call(who, AMDKFD_IOC_CREATE_EVENT, &args);

	*ret_id = args.event_id;
	return r;
}

static uint32_t add(struct who who, uint32_t type, bool auto_reset)
{
	uint32_t id;

	if (create(who, type, auto_reset, &id) < 0)
		broken("%s: no event", who.actor->w->case_name);
	return id;
}

static int destroy(struct who who, uint32_t id)
{
	struct kfd_ioctl_destroy_event_args args = { .event_id = id };

	return call(who, AMDKFD_IOC_DESTROY_EVENT, &args);
}

static int set(struct who who, uint32_t id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id };

	return call(who, AMDKFD_IOC_SET_EVENT, &args);
}

static int reset(struct who who, uint32_t id)
{
	struct kfd_ioctl_reset_event_args args = { .event_id = id };

	return call(who, AMDKFD_IOC_RESET_EVENT, &args);
}

static void say_wait(struct who who, const char *what, enum which which, const uint32_t *ids,
		     uint32_t n)
{
	struct world *w = who.actor->w;
	struct kfd_event_data *events = arena(w, (n + 1) * sizeof(*events));
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)events,
		.num_events = n,
		.wait_for_all = which == ALL,
		.wait_result = 99,
	};
	int r;

	for (uint32_t i = 0; i < n; i++)
		events[i].event_id = ids[i];
	r = call(who, AMDKFD_IOC_WAIT_EVENTS, &args);
	say(w, "%s: %s result %u", what, text_of(r), args.wait_result);
}

static void say_wait_one(struct who who, const char *what, uint32_t id)
{
	say_wait(who, what, ANY, &id, 1);
}

static void types(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	for (uint32_t type = 0; type < 11; type++) {
		struct kfd_ioctl_create_event_args args = {
			.event_type = type == 10 ? UINT32_MAX : type,
			.event_trigger_data = 77,
			.event_slot_index = 78,
			.node_id = type,
		};
		int r = call(me(a), AMDKFD_IOC_CREATE_EVENT, &args);

		say(w, "type %u: %s id %x trigger %x slot %u page %" PRIx64, type, text_of(r),
		    args.event_id, args.event_trigger_data, args.event_slot_index,
		    args.event_page_offset);
	}
}

static void ids_are_used_again(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	uint32_t ids[4];

	for (uint32_t i = 0; i < 4; i++)
		ids[i] = add(a, i == 3 ? MEMORY : SIGNAL, false);
	say(w, "first %s", ids_text(ids, 4));
	say(w, "destroy %s", text_of(destroy(a, ids[1])));
	say(w, "destroy it again %s", text_of(destroy(a, ids[1])));
	say(w, "destroy the memory event %s", text_of(destroy(a, ids[3])));
	ids[0] = add(a, DEBUG_EVENT, false);
	ids[1] = add(a, SIGNAL, false);
	ids[2] = add(a, MEMORY, false);
	ids[3] = add(a, HW_EXCEPTION, false);
	say(w, "then %s", ids_text(ids, 4));
}

static void unknown_ids(struct world *w)
{
	static const uint32_t unknown[] = { 0, 1, 255, 0x40000000, 0x7fffffff, UINT32_MAX };
	struct who a = me(kfd_actor(w, "self"));
	struct actor *other = kfd_actor(w, "other");

	add(me(other), SIGNAL, false);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		say(w, "set %x %s", unknown[i], text_of(set(a, unknown[i])));
		say(w, "reset %s", text_of(reset(a, unknown[i])));
		say(w, "destroy %s", text_of(destroy(a, unknown[i])));
		say_wait_one(a, "wait", unknown[i]);
	}
}

/* Only signals are set by programs. */
static void kinds(struct world *w)
{
	static const uint32_t all[] = { SIGNAL, HW_EXCEPTION, DEBUG_EVENT, MEMORY };
	struct who a = me(kfd_actor(w, "self"));

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		uint32_t id = add(a, all[i], false);

		say(w, "type %u: set %s", all[i], text_of(set(a, id)));
		say_wait_one(a, "wait", id);
		say(w, "reset %s", text_of(reset(a, id)));
		say_wait_one(a, "wait", id);
		say(w, "destroy %s", text_of(destroy(a, id)));
	}
}

static void resets_itself_or_not(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));

	for (int auto_reset = 0; auto_reset < 2; auto_reset++) {
		uint32_t id = add(a, SIGNAL, auto_reset);

		say_wait_one(a, auto_reset ? "resets itself, new" : "stays, new", id);
		set(a, id);
		say(w, "set twice %s", text_of(set(a, id)));
		say_wait_one(a, "once", id);
		say_wait_one(a, "twice", id);
		set(a, id);
		reset(a, id);
		say_wait_one(a, "set and reset", id);
	}
}

static void any_and_all(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	uint32_t ids[3];

	for (uint32_t i = 0; i < 3; i++)
		ids[i] = add(a, SIGNAL, true);
	set(a, ids[1]);
	say_wait(a, "any, the second is set", ANY, ids, 3);
	say_wait(a, "any, again", ANY, ids, 3);
	set(a, ids[1]);
	say_wait(a, "all, one is set", ALL, ids, 3);
	say_wait_one(a, "that one was reset by it", ids[1]);
	for (uint32_t i = 0; i < 3; i++)
		set(a, ids[i]);
	say_wait(a, "all are set", ALL, ids, 3);
	say_wait(a, "again", ALL, ids, 3);
	for (uint32_t i = 0; i < 3; i++)
		set(a, ids[i]);
	say_wait(a, "any, all are set", ANY, ids, 3);
	say_wait(a, "again", ANY, ids, 3);
}

static void one_twice(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));

	for (int auto_reset = 0; auto_reset < 2; auto_reset++) {
		uint32_t id = add(a, SIGNAL, auto_reset);
		uint32_t ids[] = { id, id };

		set(a, id);
		say_wait(a, auto_reset ? "resets itself, all" : "stays, all", ALL, ids, 2);
		set(a, id);
		say_wait(a, "any", ANY, ids, 2);
	}
}

static void a_bad_one_among_them(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	uint32_t ids[2] = { add(a, SIGNAL, true), NO_ID };

	set(a, ids[0]);
	say_wait(a, "any", ANY, ids, 2);
	say_wait_one(a, "the good one then", ids[0]);
	set(a, ids[0]);
	ids[1] = ids[0];
	ids[0] = NO_ID;
	say_wait(a, "the bad one first", ANY, ids, 2);
	say_wait_one(a, "the good one then", ids[1]);
}

static void numbers_and_pointers(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	struct kfd_ioctl_wait_events_args args = { .events_ptr = BAD_POINTER };
	int r;

	for (uint32_t n = 0; n < 2; n++) {
		args.num_events = n;
		args.wait_result = 99;
		r = call(a, AMDKFD_IOC_WAIT_EVENTS, &args);
		say(w, "bad pointer, %u: %s result %u", n, text_of(r), args.wait_result);
	}
	say_wait(a, "none, any", ANY, NULL, 0);
	say_wait(a, "none, all", ALL, NULL, 0);
}

static void ends_by_itself(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	struct kfd_event_data *event = arena(w, sizeof(*event));
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)event,
		.num_events = 1,
		.timeout = 1,
	};
	int r;

	event->event_id = add(a, SIGNAL, false);
	r = call(a, AMDKFD_IOC_WAIT_EVENTS, &args);
	say(w, "not set: %s result %u timeout then %u", text_of(r), args.wait_result, args.timeout);
	set(a, event->event_id);
	args.timeout = UINT32_MAX;
	r = call(a, AMDKFD_IOC_WAIT_EVENTS, &args);
	say(w, "set, for ever: %s result %u", text_of(r), args.wait_result);
}

static void say_age(struct who who, const char *what, uint32_t id, uint64_t age)
{
	struct world *w = who.actor->w;
	struct kfd_event_data *event = arena(w, sizeof(*event));
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)event,
		.num_events = 1,
	};
	int r;

	event->event_id = id;
	event->signal_event_data.last_event_age = age;
	r = call(who, AMDKFD_IOC_WAIT_EVENTS, &args);
	say(w, "%s, age %" PRIu64 ": %s result %u age %" PRIu64, what, age, text_of(r),
	    args.wait_result, event->signal_event_data.last_event_age);
}

static void ages(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	uint32_t id = add(a, SIGNAL, true);

	for (uint64_t age = 0; age < 3; age++)
		say_age(a, "new", id, age);
	set(a, id);
	for (uint64_t age = 0; age < 3; age++)
		say_age(a, "set once", id, age);
	set(a, id);
	reset(a, id);
	for (uint64_t age = 0; age < 4; age++)
		say_age(a, "set and reset", id, age);
	id = add(a, MEMORY, false);
	say_age(a, "of memory", id, 9);
}

static void how_many(struct world *w)
{
	struct who a = me(kfd_actor(w, "self"));
	uint32_t id, last = 0;
	int r, n = 0;

	while ((r = create(a, n % 2 ? SIGNAL : DEBUG_EVENT, false, &id)) == 0) {
		last = id;
		n++;
	}
	say(w, "after %d, the last %u: %s", n, last, text_of(r));
	r = create(a, MEMORY, false, &id);
	say(w, "one of memory %s %x", text_of(r), id);
	destroy(a, 100);
	r = create(a, SIGNAL, false, &id);
	say(w, "one less: %s %u", text_of(r), id);
}

/* The page of signals can be the program's own buffer, once. */
static void page(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_create_event_args args = { .event_page_offset = 1 };

	say(w, "no such GPU %s", text_of(call(me(a), AMDKFD_IOC_CREATE_EVENT, &args)));
	args.event_page_offset = (uint64_t)gpu_id(w) << 32 | 4711;
	say(w, "without address space %s", text_of(call(me(a), AMDKFD_IOC_CREATE_EVENT, &args)));
	acquire_vm(a);
	args.event_page_offset = (uint64_t)gpu_id(w) << 32 | 4711;
	say(w, "no such buffer %s", text_of(call(me(a), AMDKFD_IOC_CREATE_EVENT, &args)));
	add(me(a), SIGNAL, false);
	args.event_page_offset = (uint64_t)gpu_id(w) << 32 | 4711;
	say(w, "too late %s", text_of(call(me(a), AMDKFD_IOC_CREATE_EVENT, &args)));
}

static void counted_by_pause(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	for (int i = 0; i < 2; i++) {
		struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };
		int r = call(me(a), AMDKFD_IOC_CRIU_OP, &c);

		say(w, "%d events: %s objects %u bytes %" PRIu64, 2 * i, text_of(r), c.num_objects,
		    (uint64_t)c.priv_data_size);
		c.op = KFD_CRIU_OP_UNPAUSE;
		call(me(a), AMDKFD_IOC_CRIU_OP, &c);
		add(me(a), SIGNAL, false);
		add(me(a), HW_EXCEPTION, false);
	}
}

const struct conformance_case user_event_cases[] = {
	{ "user_events/types", types },
	{ "user_events/ids_are_used_again", ids_are_used_again },
	{ "user_events/unknown_ids", unknown_ids },
	{ "user_events/kinds", kinds },
	{ "user_events/resets_itself_or_not", resets_itself_or_not },
	{ "user_events/any_and_all", any_and_all },
	{ "user_events/one_twice", one_twice },
	{ "user_events/a_bad_one_among_them", a_bad_one_among_them },
	{ "user_events/numbers_and_pointers", numbers_and_pointers },
	{ "user_events/ends_by_itself", ends_by_itself },
	{ "user_events/ages", ages },
	{ "user_events/how_many", how_many },
	{ "user_events/page", page },
	{ "user_events/counted_by_pause", counted_by_pause },
	{ NULL, NULL },
};
