/* SPDX-License-Identifier: MIT */
/* ALLOC_QUEUE_GWS and SET_CU_MASK. */
#include <string.h>

#include "tests/conformance/topics.h"

static void gws(struct actor *a, const char *what, uint32_t id, uint32_t n)
{
	struct kfd_ioctl_alloc_queue_gws_args args = {
		.queue_id = id,
		.num_gws = n,
		.first_gws = 0xee,
	};
	int r = call(me(a), AMDKFD_IOC_ALLOC_QUEUE_GWS, &args);

	say(a->w, "%s: %s first %u", what, text_of(r), args.first_gws);
}

static struct actor *with_queues(struct world *w, uint32_t n)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	add_queues(a, n);
	return a;
}

/*
 * Never by a queue that has none while another has it: before gfx942 Linux 6.12 follows a NULL
 * pointer then (amdgpu_amdkfd_remove_gws_from_process).
 */
static void gws_life(struct world *w)
{
	struct actor *a = with_queues(w, 2);

	gws(a, "none to give back", 0, 0);
	gws(a, "first queue", 0, 64);
	gws(a, "again", 0, 64);
	gws(a, "another queue", 1, 1);
	gws(a, "given back", 0, 0);
	gws(a, "twice", 0, 0);
	gws(a, "another queue", 1, 1);
	say_active("active:", 0, me(a), 2);
}

static void gws_of_no_queue(struct world *w)
{
	struct actor *a = with_queues(w, 1);

	gws(a, "no such queue", NO_ID, 64);
	gws(a, "2^32-1", UINT32_MAX, 64);
	gws(a, "so many", 0, UINT32_MAX);
}

static void gws_freed_by_destroy(struct world *w)
{
	struct actor *a = with_queues(w, 2);

	gws(a, "first queue", 0, 64);
	destroy_queue(me(a), 0);
	gws(a, "another queue", 1, 64);
}

static void gws_of_sdma(struct world *w)
{
	struct actor *a = with_queues(w, 0);

	add_queue(a, KFD_IOC_QUEUE_TYPE_SDMA);
	gws(a, "SDMA", 0, 64);
}

static void gws_and_debugger(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");

	acquire_vm(target);
	runtime(me(target), 1);
	add_queues(target, 2);
	gws(target, "before", 0, 64);
	seize(me(debugger), target);
	say(w, "enable %s", text_of(enable(me(debugger), target, 0)));
	gws(target, "given back", 0, 0);
	say(w, "enable %s", text_of(enable(me(debugger), target, 0)));
	gws(target, "during", 1, 64);
	say(w, "disable %s", text_of(disable(me(debugger), target)));
}

/* ---- CU masks ---- */

static int mask(struct actor *a, uint32_t id, uint32_t bits, const void *words)
{
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = id,
		.num_cu_mask = bits,
		.cu_mask_ptr = (uintptr_t)words,
	};

	return call(me(a), AMDKFD_IOC_SET_CU_MASK, &args);
}

static void mask_sizes(struct world *w)
{
	static const uint32_t bits[] = {
		0, 1, 31, 32, 33, 64, 96, 1024, 1025, 1056, 2048, 0x80000000, 0xffffffe0, UINT32_MAX
	};
	struct actor *a = with_queues(w, 1);
	uint32_t *words = arena(w, 4096);

	memset(words, 0xff, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		say(w, "%u bits: %s", bits[i], text_of(mask(a, 0, bits[i], words)));
	say_active("active:", 0, me(a), 1);
}

static void mask_pointers(struct world *w)
{
	struct actor *a = with_queues(w, 1);

	say(w, "NULL: %s", text_of(mask(a, 0, 32, NULL)));
	say(w, "bad: %s", text_of(mask(a, 0, 32, (void *)BAD_POINTER)));
	say(w, "bad, no bits: %s", text_of(mask(a, 0, 0, (void *)BAD_POINTER)));
	say(w, "bad, no queue: %s", text_of(mask(a, NO_ID, 32, (void *)BAD_POINTER)));
}

static void mask_queues(struct world *w)
{
	struct actor *a = with_queues(w, 1);
	uint32_t *words = arena(w, 64);

	words[0] = 0xf;
	say(w, "no such queue: %s", text_of(mask(a, NO_ID, 32, words)));
	say(w, "the queue: %s", text_of(mask(a, 0, 32, words)));
	words[0] = 0;
	say(w, "no unit: %s", text_of(mask(a, 0, 32, words)));
	words[0] = UINT32_MAX;
	say_active("all:", mask(a, 0, 32, words), me(a), 1);
	add_queue(a, KFD_IOC_QUEUE_TYPE_SDMA);
	say(w, "SDMA: %s", text_of(mask(a, 1, 32, words)));
}

static void mask_while_held(struct world *w)
{
	struct session s = attached(w, 1);
	uint32_t *words = arena(w, 64);

	words[0] = 1;
	say_active("suspend", suspend(me(s.debugger), s.target, s.ids, 1, GRACE_DEFAULT),
		   me(s.target), 1);
	say_active("mask", mask(s.target, 0, 32, words), me(s.target), 1);
	say_active("resume", resume_all(me(s.debugger), s.target), me(s.target), 1);
}

static void mask_before_debugging(struct world *w)
{
	struct actor *target = kfd_actor(w, "target");
	struct actor *debugger = kfd_actor(w, "debugger");
	uint32_t *words = arena(w, 64);
	struct kfd_runtime_info info;
	int r;

	words[0] = 1;
	acquire_vm(target);
	runtime(me(target), 1);
	add_queues(target, 1);
	say(w, "mask %s", text_of(mask(target, 0, 32, words)));
	seize(me(debugger), target);
	r = enable_info(me(debugger), target, 0, &info);
	say(w, "enable %s state %u", text_of(r), info.runtime_state);
	say(w, "mask %s", text_of(mask(target, 0, 32, words)));
}

const struct conformance_case gws_cumask_cases[] = {
	{ "gws/life", gws_life },
	{ "gws/of_no_queue", gws_of_no_queue },
	{ "gws/freed_by_destroy", gws_freed_by_destroy },
	{ "gws/of_sdma", gws_of_sdma },
	{ "gws/and_debugger", gws_and_debugger },
	{ "cu_mask/sizes", mask_sizes },
	{ "cu_mask/pointers", mask_pointers },
	{ "cu_mask/queues", mask_queues },
	{ "cu_mask/while_held", mask_while_held },
	{ "cu_mask/before_debugging", mask_before_debugging },
	{ NULL, NULL },
};
