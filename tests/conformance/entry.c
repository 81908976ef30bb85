/* SPDX-License-Identifier: MIT */
/* What the driver asks of every call before it looks at which one it is. */
#include <string.h>

#include "abi/kfd_memory.h"
#include "tests/conformance/topics.h"

static void numbers(struct world *w)
{
	static const unsigned int outside[] = { 0, 0x27, 0x28, 0x7f, 0x80, 0xff };
	struct actor *a = kfd_actor(w, "self");
	char *arg = arena(w, 1024);

	for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
		say(w, "0x%02x %s", outside[i],
		    text_of(call(me(a), _IOC(_IOC_READ | _IOC_WRITE, 'K', outside[i], 8), arg)));
}

static void version(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_get_version_args v = { 0 };
	int r = call(me(a), AMDKFD_IOC_GET_VERSION, &v);

	say(w, "%s %u.%u", text_of(r), v.major_version, v.minor_version);
}

/* Only the number of a request and its size count. */
static void magic_and_direction(struct world *w)
{
	static const struct {
		const char *what;
		unsigned int dir, magic;
	} variants[] = {
		{ "other magic", _IOC_READ, 'Z' },
		{ "write", _IOC_WRITE, 'K' },
		{ "none", _IOC_NONE, 'K' },
		{ "read and write", _IOC_READ | _IOC_WRITE, 0 },
	};
	struct actor *a = kfd_actor(w, "self");

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct kfd_ioctl_get_version_args v = { 0 };
		int r = call(me(a), _IOC(variants[i].dir, variants[i].magic, 1, sizeof(v)), &v);

		say(w, "%s: %s %u.%u", variants[i].what, text_of(r), v.major_version,
		    v.minor_version);
	}
}

static void sizes(struct world *w)
{
	static const unsigned int bytes[] = { 0, 1, 4, 7, 8, 12, 16, 64 };
	struct actor *a = kfd_actor(w, "self");

	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++) {
		uint32_t *v = arena(w, 64);
		int r;

		memset(v, 0xee, 64);
		r = call(me(a), _IOC(_IOC_READ, 'K', 1, bytes[i]), v);
		say(w, "GET_VERSION in %u bytes: %s %x %x %x", bytes[i], text_of(r), v[0], v[1],
		    v[2]);
	}
}

static void short_calls(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_dbg_trap_args *d = arena(w, sizeof(*d));
	struct kfd_ioctl_runtime_enable_args *e = arena(w, sizeof(*e));

	d->pid = (uint32_t)a->pid;
	d->op = KFD_IOC_DBG_TRAP_DISABLE;
	say(w, "DBG_TRAP in 8 bytes: %s",
	    text_of(call(me(a), _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x26, 8), d)));
	e->mode_mask = 1;
	say(w, "RUNTIME_ENABLE without its mode: %s",
	    text_of(call(me(a), _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x25, 8), e)));
	say(w, "RUNTIME_ENABLE in 12 bytes: %s",
	    text_of(call(me(a), _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x25, 12), e)));
	say(w, "again: %s", text_of(runtime(me(a), 1)));
}

/* Before version 1.17 there was no engine in it. */
static void old_create_queue(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_create_queue_args args;
	int r;

	acquire_vm(a);
	args = queue_args(a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	r = call(me(a), _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x02, 88), &args);
	say(w, "CREATE_QUEUE in 88 bytes: %s id %u", text_of(r), args.queue_id);
}

static void bad_pointers(struct world *w)
{
	static const struct {
		const char *name;
		unsigned long request;
	} calls[] = {
		{ "GET_VERSION", AMDKFD_IOC_GET_VERSION },
		{ "CREATE_QUEUE", AMDKFD_IOC_CREATE_QUEUE },
		{ "UPDATE_QUEUE", AMDKFD_IOC_UPDATE_QUEUE },
		{ "RUNTIME_ENABLE", AMDKFD_IOC_RUNTIME_ENABLE },
		{ "DBG_TRAP", AMDKFD_IOC_DBG_TRAP },
		{ "CRIU_OP", AMDKFD_IOC_CRIU_OP },
	};
	struct actor *a = kfd_actor(w, "self");

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int bad = call_raw(me(a), calls[i].request, (void *)BAD_POINTER);
		int null = call_raw(me(a), calls[i].request, NULL);

		say(w, "%s: %s, NULL %s", calls[i].name, text_of(bad), text_of(null));
	}
}

/* A process without a GPU's address space sends every call with nothing in it. */
static void all_zero(struct world *w)
{
	static const unsigned long sized[] = {
		AMDKFD_IOC_GET_VERSION,
		AMDKFD_IOC_CREATE_QUEUE,
		AMDKFD_IOC_DESTROY_QUEUE,
		AMDKFD_IOC_SET_MEMORY_POLICY,
		AMDKFD_IOC_GET_CLOCK_COUNTERS,
		AMDKFD_IOC_GET_PROCESS_APERTURES,
		AMDKFD_IOC_UPDATE_QUEUE,
		AMDKFD_IOC_DESTROY_EVENT,
		AMDKFD_IOC_SET_EVENT,
		AMDKFD_IOC_RESET_EVENT,
		AMDKFD_IOC_WAIT_EVENTS,
		AMDKFD_IOC_DBG_REGISTER_DEPRECATED,
		AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED,
		AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED,
		AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED,
		AMDKFD_IOC_SET_SCRATCH_BACKING_VA,
		AMDKFD_IOC_GET_TILE_CONFIG,
		AMDKFD_IOC_SET_TRAP_HANDLER,
		AMDKFD_IOC_GET_PROCESS_APERTURES_NEW,
		AMDKFD_IOC_ACQUIRE_VM,
		AMDKFD_IOC_ALLOC_MEMORY_OF_GPU,
		AMDKFD_IOC_FREE_MEMORY_OF_GPU,
		AMDKFD_IOC_MAP_MEMORY_TO_GPU,
		AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU,
		AMDKFD_IOC_SET_CU_MASK,
		AMDKFD_IOC_GET_QUEUE_WAVE_STATE,
		AMDKFD_IOC_GET_DMABUF_INFO,
		AMDKFD_IOC_IMPORT_DMABUF,
		AMDKFD_IOC_ALLOC_QUEUE_GWS,
		AMDKFD_IOC_SMI_EVENTS,
		AMDKFD_IOC_SVM,
		AMDKFD_IOC_SET_XNACK_MODE,
		AMDKFD_IOC_CRIU_OP,
		AMDKFD_IOC_AVAILABLE_MEMORY,
		AMDKFD_IOC_EXPORT_DMABUF,
		AMDKFD_IOC_RUNTIME_ENABLE,
		AMDKFD_IOC_DBG_TRAP,
	};
	struct actor *a = kfd_actor(w, "self");

	for (size_t i = 0; i < ARRAY_SIZE(sized); i++)
		say(w, "0x%02lx %s", _IOC_NR(sized[i]),
		    text_of(call(me(a), sized[i], arena(w, _IOC_SIZE(sized[i])))));
}

/* ---- whose descriptor it is ---- */

static int version_on(struct who who, struct actor *owner)
{
	struct kfd_ioctl_get_version_args v = { 0 };

	return call_on(who, owner, AMDKFD_IOC_GET_VERSION, &v);
}

static int pause_on(struct who who, struct actor *owner)
{
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };

	return call_on(who, owner, AMDKFD_IOC_CRIU_OP, &c);
}

static void foreign_descriptor(struct world *w)
{
	struct actor *owner = kfd_actor(w, "owner");
	struct actor *other = kfd_actor(w, "other");

	say(w, "of another process: %s", text_of(version_on(me(other), owner)));
	say(w, "and of a thread of one's own: %s", text_of(version_on(second(other), other)));
	seize(me(other), owner);
	say(w, "of a tracee: %s", text_of(version_on(me(other), owner)));
	say(w, "CRIU_OP by the tracer: %s", text_of(pause_on(me(other), owner)));
	say(w, "CRIU_OP by another thread: %s", text_of(pause_on(second(other), owner)));
	detach(me(other), owner);
	say(w, "CRIU_OP after detaching: %s", text_of(pause_on(me(other), owner)));
}

static void inherited_descriptor(struct world *w)
{
	struct actor *parent = kfd_actor(w, "parent");
	struct actor *child = forked(parent, "child");

	say(w, "of the parent: %s", text_of(version_on(me(child), parent)));
	say(w, "its own open: %s", text_of(open_kfd(child)));
	say(w, "on that: %s", text_of(version_on(me(child), child)));
	say(w, "the parent still: %s", text_of(version_on(me(parent), parent)));
	kill_actor(parent);
	say(w, "the parent gone: %s", text_of(version_on(me(child), child)));
}

static void opened_twice(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	say(w, "runtime on: %s", text_of(runtime(me(a), 1)));
	say(w, "open again: %s", text_of(open_kfd(a)));
	say(w, "runtime on there: %s", text_of(runtime(me(a), 1)));
}

static void after_exec(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	say(w, "runtime on: %s", text_of(runtime(me(a), 1)));
	exec_self(a);
	say(w, "open: %s", text_of(open_kfd(a)));
	say(w, "runtime on: %s", text_of(runtime(me(a), 1)));
}

static void ordinary_user(struct world *w)
{
	struct actor *a = actor_of(w, "self", 1000);

	say(w, "open: %s", text_of(open_kfd(a)));
	say(w, "version: %s", text_of(version_on(me(a), a)));
	say(w, "CRIU_OP: %s", text_of(pause_on(me(a), a)));
	say(w, "runtime on: %s", text_of(runtime(me(a), 1)));
	say(w, "debugs itself: %s", text_of(enable(me(a), a, 0)));
}

const struct conformance_case entry_cases[] = {
	{ "entry/version", version },
	{ "entry/numbers", numbers },
	{ "entry/magic_and_direction", magic_and_direction },
	{ "entry/sizes", sizes },
	{ "entry/short_calls", short_calls },
	{ "entry/old_create_queue", old_create_queue },
	{ "entry/bad_pointers", bad_pointers },
	{ "entry/all_zero", all_zero },
	{ "entry/foreign_descriptor", foreign_descriptor },
	{ "entry/inherited_descriptor", inherited_descriptor },
	{ "entry/opened_twice", opened_twice },
	{ "entry/after_exec", after_exec },
	{ "entry/ordinary_user", ordinary_user },
	{ NULL, NULL },
};
