/* SPDX-License-Identifier: MIT */
/* CREATE_QUEUE: what is checked, and in what order; ids and doorbells. */
#include <inttypes.h>

#include "tests/conformance/topics.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define PAGE 4096u
#define NOT_OURS (1ull << 63) /* where no user memory is, however many page tables */
#define NOWHERE 0x10000u
#define DOORBELL_PAGES 0x1fffu

/* Creates and, where that worked, destroys. */
static void try(struct actor *a, const char *what, struct kfd_ioctl_create_queue_args args)
{
	int r = create_queue(a, &args);

	say(a->w, "%s: %s", what, text_of(r));
	if (r == 0)
		destroy_queue(me(a), args.queue_id);
}

static struct actor *with_vm(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");

	acquire_vm(a);
	return a;
}

static void without_vm(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_create_queue_args args = { .queue_type = AQL, .ring_size = 4096 };

	try(a, "no GPU", args);
	args.gpu_id = gpu_id(w);
	try(a, "no address space", args);
	args.gpu_id = 1;
	try(a, "another GPU", args);
}

static void numbers(struct world *w)
{
	static const uint32_t percents[] = { 0, 1, 100, 101, 255, 256, 0x164, 0x165, 0xff64 };
	static const uint32_t priorities[] = { 0, 7, 15, 16, UINT32_MAX };
	static const uint32_t types[] = { 0, 1, 2, 3, 4, 5, 6, UINT32_MAX };
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);
	char what[32];

	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		struct kfd_ioctl_create_queue_args p = args;

		p.queue_percentage = percents[i];
		snprintf(what, sizeof(what), "percent 0x%x", percents[i]);
		try(a, what, p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(priorities); i++) {
		struct kfd_ioctl_create_queue_args p = args;

		p.queue_priority = priorities[i];
		snprintf(what, sizeof(what), "priority %u", priorities[i]);
		try(a, what, p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct kfd_ioctl_create_queue_args p = args;

		p.queue_type = types[i];
		snprintf(what, sizeof(what), "type %u", types[i]);
		try(a, what, p);
	}
}

static void ring_sizes(struct world *w)
{
	static const uint32_t sizes[] = { 0,	1,    2,    3,	  64,	 1000,	     1024,
					  2048, 4095, 4096, 8192, 65536, 0x80000000, UINT32_MAX };
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);
	char what[32];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		args.ring_size = sizes[i];
		snprintf(what, sizeof(what), "%u bytes", sizes[i]);
		try(a, what, args);
	}
}

static void small_ring_is_raised(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);
	int r;

	args.ring_size = 64;
	r = create_queue(a, &args);
	say(w, "%s size then %u", text_of(r), args.ring_size);
}

static void addresses(struct world *w)
{
	static const struct {
		const char *what;
		uint64_t keep, add; /* of the right one, and to it */
	} wrong[] = {
		{ "inside", UINT64_MAX, 64 },
		{ "nowhere", 0, NOWHERE },
		{ "not ours", UINT64_MAX, NOT_OURS },
	};
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args right = queue_args(a, AQL);
	char what[48];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		for (size_t k = 0; k < 5; k++) {
			static const char *const names[] = { "ring", "write", "read", "eop",
							     "area" };
			struct kfd_ioctl_create_queue_args args = right;
			uint64_t *const fields[] = {
				&args.ring_base_address,	&args.write_pointer_address,
				&args.read_pointer_address,	&args.eop_buffer_address,
				&args.ctx_save_restore_address,
			};

			*fields[k] = (*fields[k] & wrong[i].keep) + wrong[i].add;
			snprintf(what, sizeof(what), "%s, %s", names[k], wrong[i].what);
			try(a, what, args);
		}
	}
}

static void no_addresses(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args right = queue_args(a, AQL), args;

	args = right;
	args.ring_base_address = 0;
	try(a, "no ring", args);
	args = right;
	args.write_pointer_address = 0;
	try(a, "no write pointer", args);
	args = right;
	args.read_pointer_address = 0;
	try(a, "no read pointer", args);
	args = right;
	args.eop_buffer_address = 0;
	try(a, "no eop", args);
	args = right;
	args.ctx_save_restore_address = 0;
	try(a, "no area", args);
	try(a, "all there", right);
}

static void buffer_sizes(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args right = queue_args(a, AQL), args;

	args = right;
	args.eop_buffer_size = 0;
	try(a, "eop of 0", args);
	args.eop_buffer_size = PAGE - 1;
	try(a, "eop a byte short", args);
	args.eop_buffer_size = 2 * PAGE;
	try(a, "eop of two pages", args);
	args.eop_buffer_size = 0x100000000 + PAGE;
	try(a, "eop of 4 GiB and a page", args);
	args = right;
	args.ctl_stack_size -= PAGE;
	try(a, "stack too small", args);
	args.ctl_stack_size = right.ctl_stack_size + PAGE;
	try(a, "stack too large", args);
	args = right;
	args.ctx_save_restore_size -= 1;
	try(a, "area a byte short", args);
	args.ctx_save_restore_size = right.ctx_save_restore_size + PAGE;
	try(a, "area larger than mapped", args);
	args.ctx_save_restore_size = UINT32_MAX;
	try(a, "area of 4 GiB", args);
}

static void sdma_needs_less(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, KFD_IOC_QUEUE_TYPE_SDMA);

	try(a, "neither eop nor area", args);
	args.eop_buffer_address = PAGE;
	args.ctx_save_restore_address = PAGE;
	try(a, "wrong ones", args);
	args.ring_base_address = NOWHERE;
	try(a, "wrong ring", args);
}

static void sdma_engines(struct world *w)
{
	uint32_t n =
		node_property(w, "num_sdma_engines") + node_property(w, "num_sdma_xgmi_engines");
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID);

	try(a, "the first", args);
	args.sdma_engine_id = n - 1;
	try(a, "the last", args);
	args.sdma_engine_id = n;
	try(a, "one too many", args);
	args.sdma_engine_id = UINT32_MAX;
	try(a, "2^32-1", args);
}

/* Until an engine has no queue left. */
static void sdma_slots(struct world *w)
{
	static const uint32_t types[] = { KFD_IOC_QUEUE_TYPE_SDMA, KFD_IOC_QUEUE_TYPE_SDMA_XGMI };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct actor *a = with_vm(w);
		struct kfd_ioctl_create_queue_args args = queue_args(a, types[i]);
		uint32_t n = 0;
		int r;

		while ((r = create_queue(a, &args)) == 0)
			n++;
		say(w, "type %u: %u of %u and %u engines, then %s", types[i], n,
		    node_property(w, "num_sdma_engines"), node_property(w, "num_sdma_xgmi_engines"),
		    text_of(r));
		kill_actor(a);
	}
}

static void say_doorbell(struct actor *a, const char *what, uint32_t type, uint32_t engine)
{
	struct kfd_ioctl_create_queue_args args = queue_args(a, type);
	uint64_t gpu;
	int r;

	args.sdma_engine_id = engine;
	r = create_queue(a, &args);
	gpu = args.doorbell_offset >> 46 & 0xffff;
	say(a->w, "%s: %s id %u, doorbell type %u gpu %u at 0x%x", what, text_of(r), args.queue_id,
	    (unsigned int)(args.doorbell_offset >> 62), gpu == args.gpu_id,
	    (unsigned int)(args.doorbell_offset & DOORBELL_PAGES));
}

static void doorbells(struct world *w)
{
	struct actor *a = with_vm(w);

	say_doorbell(a, "AQL", AQL, 0);
	say_doorbell(a, "PM4", KFD_IOC_QUEUE_TYPE_COMPUTE, 0);
	say_doorbell(a, "SDMA", KFD_IOC_QUEUE_TYPE_SDMA, 0);
	say_doorbell(a, "SDMA", KFD_IOC_QUEUE_TYPE_SDMA, 0);
	say_doorbell(a, "SDMA of the first engine", KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID, 0);
	say_doorbell(a, "AQL", AQL, 0);
	destroy_queue(me(a), 0);
	say_doorbell(a, "AQL after the first went", AQL, 0);
}

static void ids(struct world *w)
{
	struct actor *a = with_vm(w);

	add_queues(a, 4);
	say(w, "fifth %u", add_queue(a, AQL));
	destroy_queue(me(a), 3);
	destroy_queue(me(a), 1);
	say(w, "1 and 3 free: %u", add_queue(a, AQL));
	say(w, "3 free: %u", add_queue(a, AQL));
	say(w, "none free: %u", add_queue(a, AQL));
	destroy_queue(me(a), 0);
	say(w, "0 free, SDMA: %u", add_queue(a, KFD_IOC_QUEUE_TYPE_SDMA));
}

static void id_after_failure(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);

	args.ctl_stack_size = 0;
	args.queue_id = 5;
	say(w, "fails %s", text_of(create_queue(a, &args)));
	say(w, "id %u offset %" PRIu64, args.queue_id, args.doorbell_offset);
	say(w, "the next %u", add_queue(a, AQL));
}

/* Inactive ones, to spare the scheduler. */
static void how_many(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);
	uint32_t n = 0;
	int r;

	args.queue_percentage = 0;
	while ((r = create_queue(a, &args)) == 0)
		n++;
	say(w, "%u queues, then %s", n, text_of(r));
	destroy_queue(me(a), 5);
	say(w, "after one went %s", text_of(create_queue(a, &args)));
	say(w, "id %u", args.queue_id);
}

static void states(struct world *w)
{
	struct actor *a = with_vm(w);
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);

	add_queue(a, AQL);
	args.queue_percentage = 0;
	say_active("with 0 percent", create_queue(a, &args), me(a), 2);
}

static void for_another_process(struct world *w)
{
	struct actor *a = with_vm(w);
	struct actor *b = kfd_actor(w, "other");
	struct kfd_ioctl_create_queue_args args = queue_args(a, AQL);

	acquire_vm(b);
	try(b, "memory of another process", args);
}

const struct conformance_case create_queue_cases[] = {
	{ "create_queue/without_vm", without_vm },
	{ "create_queue/numbers", numbers },
	{ "create_queue/ring_sizes", ring_sizes },
	{ "create_queue/small_ring_is_raised", small_ring_is_raised },
	{ "create_queue/addresses", addresses },
	{ "create_queue/no_addresses", no_addresses },
	{ "create_queue/buffer_sizes", buffer_sizes },
	{ "create_queue/sdma_needs_less", sdma_needs_less },
	{ "create_queue/sdma_engines", sdma_engines },
	{ "create_queue/sdma_slots", sdma_slots },
	{ "create_queue/doorbells", doorbells },
	{ "create_queue/ids", ids },
	{ "create_queue/id_after_failure", id_after_failure },
	{ "create_queue/how_many", how_many },
	{ "create_queue/states", states },
	{ "create_queue/for_another_process", for_another_process },
	{ NULL, NULL },
};
