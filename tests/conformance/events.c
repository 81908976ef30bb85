/* SPDX-License-Identifier: MIT */
/* What a debugger hears: bytes in its pipe, and what it may ask then. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

static void say_query(struct session *s, uint64_t clear, const char *what)
{
	struct kfd_ioctl_dbg_trap_query_debug_event_args e;
	int r = query_event(me(s->debugger), s->target, clear, &e);

	say(s->target->w, "%s: %s mask %" PRIx64 " gpu %u queue %u", what, text_of(r),
	    e.exception_mask, e.gpu_id, e.queue_id);
}

static void queues_come_and_go(struct world *w)
{
	struct session s = attached(w, 0);

	say_query(&s, 0, "nothing");
	add_queues(s.target, 1);
	say(w, "created: events %d", dots(w));
	add_queues(s.target, 2);
	say(w, "two more: events %d", dots(w));
	say_query(&s, NEW, "first");
	say_query(&s, NEW, "second");
	say_query(&s, NEW, "third");
	say_query(&s, NEW, "fourth");
	say_events(w, "destroy", destroy_queue(me(s.target), 1));
	say_query(&s, 0, "not cleared");
	say_query(&s, DELETED, "cleared");
	say_query(&s, DELETED, "gone");
}

static void order_of_sources(struct world *w)
{
	struct session s = attached(w, 2);

	send_runtime(me(s.debugger), s.target);
	destroy_queue(me(s.target), 0);
	add_queues(s.target, 1);
	for (uint32_t i = 0; i < 4; i++)
		say_query(&s, UINT64_MAX, "next");
}

static int subscribe(struct session *s, uint64_t mask)
{
	struct kfd_ioctl_dbg_trap_args args = { .set_exceptions_enabled.exception_mask = mask };

	return dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED, &args);
}

static void subscriptions(struct world *w)
{
	struct session s = attached(w, 0);

	say_events(w, "only deletions:", subscribe(&s, DELETED));
	add_queues(s.target, 1);
	say(w, "created: events %d", dots(w));
	say_query(&s, 0, "query");
	say_events(w, "creations too:", subscribe(&s, DELETED | NEW));
	say_query(&s, 0, "query");
	say_events(w, "nothing:", subscribe(&s, 0));
	destroy_queue(me(s.target), 0);
	say(w, "destroyed: events %d", dots(w));
	say_events(w, "everything:", subscribe(&s, UINT64_MAX));
	say_query(&s, UINT64_MAX, "query");
	say_query(&s, UINT64_MAX, "query");
	say_events(w, "everything again:", subscribe(&s, UINT64_MAX));
}

static void pending_at_enable(struct world *w)
{
	struct session s = attached_unacknowledged(w, 1);

	say(w, "events %d", dots(w));
	say_query(&s, 0, "query");
	say_query(&s, DELETED, "clears another bit");
	say_query(&s, NEW | DELETED, "clears it");
	say_query(&s, 0, "then");
}

static void exception_codes(struct world *w)
{
	struct session s = attached(w, 1);
	char line[1024];
	size_t at = 0;

	for (uint32_t code = 0; code <= 65; code++) {
		struct kfd_ioctl_dbg_trap_args args = {
			.query_exception_info = {
				.info_ptr = (uintptr_t)arena(w, 64),
				.info_size = 64,
				.exception_code = code,
			},
		};
		int r = dbg(me(s.debugger), s.target->pid, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO,
			    &args);

		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%u %s", at ? ", " : "",
				       code, text_of(r));
	}
	say(w, "%s", line);
}

static int info(struct session *s, uint32_t code, uint32_t source, void *buf, uint32_t *size)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.query_exception_info = {
			.info_ptr = (uintptr_t)buf,
			.info_size = *size,
			.source_id = source,
			.exception_code = code,
		},
	};
	int r = dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO, &args);

	*size = args.query_exception_info.info_size;
	return r;
}

static void exception_sources(struct world *w)
{
	struct session s = attached_unacknowledged(w, 2);
	void *buf = arena(w, 64);
	static const uint32_t sources[] = { 0, 1, 2, NO_ID };
	uint32_t size = 64;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		size = 64;
		r = info(&s, EC_QUEUE_NEW, sources[i], buf, &size);
		say(w, "queue %u: %s size %u", sources[i], text_of(r), size);
	}
	destroy_queue(me(s.target), 1);
	size = 64;
	r = info(&s, EC_DEVICE_QUEUE_DELETE, gpu_id(w), buf, &size);
	say(w, "device: %s size %u", text_of(r), size);
	r = info(&s, EC_DEVICE_QUEUE_DELETE, 0, buf, &size);
	say(w, "no device: %s", text_of(r));
	r = info(&s, EC_DEVICE_MEMORY_VIOLATION, gpu_id(w), buf, &size);
	say(w, "no fault: %s", text_of(r));
}

static void runtime_info(struct world *w)
{
	static const uint32_t sizes[] = { 0, 8, 15, 16, 17, 4096 };
	struct session s = attached(w, 0);
	int r;

	send_runtime(me(s.debugger), s.target);
	runtime(me(s.target), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t size = sizes[i];
		struct kfd_runtime_info *got = arena(w, 4096);

		got->runtime_state = 0xee;
		got->ttmp_setup = 0xee;
		r = info(&s, EC_PROCESS_RUNTIME, 0, got, &size);
		say(w, "size %u: %s size then %u state %x ttmp %x", sizes[i], text_of(r), size,
		    got->runtime_state, got->ttmp_setup);
	}
	for (uintptr_t bad = 0; bad <= BAD_POINTER; bad += BAD_POINTER) {
		uint32_t size = 16;

		r = info(&s, EC_PROCESS_RUNTIME, 0, (void *)bad, &size);
		say(w, "at %zu: %s", (size_t)bad, text_of(r));
	}
}

/* ---- what ENABLE takes ---- */

static int enable_with(struct session *s, int fd, uint64_t info_at, uint32_t info_size,
		       uint32_t *ret_size)
{
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = {
			.exception_mask = NEW,
			.rinfo_ptr = info_at,
			.rinfo_size = info_size,
			.dbg_fd = (uint32_t)fd,
		},
	};
	int r = dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_ENABLE, &args);

	*ret_size = args.enable.rinfo_size;
	return r;
}

static struct session seized(struct world *w)
{
	struct session s = { .target = kfd_actor(w, "target"),
			     .debugger = kfd_actor(w, "debugger") };

	acquire_vm(s.target);
	runtime(me(s.target), 1);
	seize(me(s.debugger), s.target);
	return s;
}

static void enable_sizes(struct world *w)
{
	static const uint32_t sizes[] = { 0, 4, 8, 12, 16, 17, 4096, UINT32_MAX };
	struct session s = seized(w);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kfd_runtime_info *got = arena(w, 64);
		uint32_t size;
		int r;

		got->runtime_state = 0xee;
		got->ttmp_setup = 0xee;
		r = enable_with(&s, w->pipes[0][1], (uintptr_t)got, sizes[i], &size);
		say(w, "size %u: %s size then %u state %x ttmp %x", sizes[i], text_of(r), size,
		    got->runtime_state, got->ttmp_setup);
		disable(me(s.debugger), s.target);
	}
}

static void enable_pointers(struct world *w)
{
	struct session s = seized(w);
	uint32_t size;
	int r;

	r = enable_with(&s, w->pipes[0][1], 0, 0, &size);
	say(w, "NULL and no size: %s", text_of(r));
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	r = enable_with(&s, w->pipes[0][1], BAD_POINTER, 16, &size);
	say(w, "bad: %s size %u", text_of(r), size);
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
	r = enable_with(&s, w->pipes[0][1], BAD_POINTER, 0, &size);
	say(w, "bad and no size: %s", text_of(r));
	r = enable_with(&s, w->pipes[0][1], BAD_POINTER, 16, &size);
	say(w, "twice: %s size %u", text_of(r), size);
}

/* After ENABLE failed to say the state, the caller keeps its rights without the seizure. */
static void enable_fault_keeps_rights(struct world *w)
{
	struct session s = seized(w);
	uint32_t size;
	int r = enable_with(&s, w->pipes[0][1], BAD_POINTER, 16, &size);

	say(w, "bad: %s", text_of(r));
	detach(me(s.debugger), s.target);
	say(w, "enable after detaching %s", text_of(enable(me(s.debugger), s.target, 0)));
}

static void descriptors(struct world *w)
{
	static const int none[] = { -1, 900, 0x7fffffff };
	struct session s = seized(w);
	uint32_t size;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		r = enable_with(&s, none[i], 0, 0, &size);
		say(w, "descriptor %d: %s", none[i], text_of(r));
	}
	say(w, "disable %s", text_of(disable(me(s.debugger), s.target)));
}

static void full_pipe(struct world *w)
{
	struct session s = attached(w, 0);
	char zeros[4096] = { 0 };

	while (write(w->pipes[0][1], zeros, sizeof(zeros)) > 0)
		;
	add_queues(s.target, 1);
	say_query(&s, NEW, "the event is there");
}

const struct conformance_case events_cases[] = {
	{ "events/queues_come_and_go", queues_come_and_go },
	{ "events/order_of_sources", order_of_sources },
	{ "events/subscriptions", subscriptions },
	{ "events/pending_at_enable", pending_at_enable },
	{ "events/exception_codes", exception_codes },
	{ "events/exception_sources", exception_sources },
	{ "events/runtime_info", runtime_info },
	{ "events/enable_sizes", enable_sizes },
	{ "events/enable_pointers", enable_pointers },
	{ "events/enable_fault_keeps_rights", enable_fault_keeps_rights },
	{ "events/descriptors", descriptors },
	{ "events/full_pipe", full_pipe },
	{ NULL, NULL },
};
