/* SPDX-License-Identifier: MIT */
/* UPDATE_QUEUE: all four fields at once, by the owner. */
#include "tests/conformance/topics.h"

#define PAGE 4096u
#define NOT_OURS (1ull << 63)
#define NOWHERE 0x10000u

struct owner {
	struct actor *a;
	struct kfd_ioctl_update_queue_args right; /* nothing changes */
};

static struct owner owner_of_a_queue(struct world *w)
{
	struct owner o = { .a = kfd_actor(w, "self") };
	struct kfd_ioctl_create_queue_args q;

	acquire_vm(o.a);
	q = queue_args(o.a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	create_queue(o.a, &q);
	o.right = (struct kfd_ioctl_update_queue_args){
		.ring_base_address = q.ring_base_address,
		.ring_size = q.ring_size,
		.queue_id = q.queue_id,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	return o;
}

static void try(struct owner *o, const char *what, struct kfd_ioctl_update_queue_args args)
{
	say_active(what, call(me(o->a), AMDKFD_IOC_UPDATE_QUEUE, &args), me(o->a), 1);
}

static void percents(struct world *w)
{
	static const uint32_t values[] = { 100, 0, 1, 0, 50, 101, 255, 0, 0x164, 0x100, 0xff64 };
	struct owner o = owner_of_a_queue(w);
	char what[32];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct kfd_ioctl_update_queue_args args = o.right;

		args.queue_percentage = values[i];
		snprintf(what, sizeof(what), "percent 0x%x:", values[i]);
		try(&o, what, args);
	}
}

static void priorities(struct world *w)
{
	static const uint32_t values[] = { 0, 6, 7, 11, 15, 16, UINT32_MAX };
	struct owner o = owner_of_a_queue(w);
	char what[32];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct kfd_ioctl_update_queue_args args = o.right;

		args.queue_priority = values[i];
		snprintf(what, sizeof(what), "priority %u:", values[i]);
		try(&o, what, args);
	}
}

static void rings(struct world *w)
{
	struct owner o = owner_of_a_queue(w);
	struct kfd_ioctl_update_queue_args args = o.right;

	args.ring_base_address = 0;
	try(&o, "no ring:", args);
	try(&o, "the right one:", o.right);
	args.ring_size = 0;
	try(&o, "no ring, no size:", args);
	args = o.right;
	args.ring_base_address = NOWHERE;
	try(&o, "nowhere:", args);
	args = o.right;
	args.ring_base_address += 64;
	try(&o, "inside:", args);
	args.ring_base_address = NOT_OURS;
	try(&o, "not ours:", args);
	args.ring_base_address = map_memory(o.a, 2 * PAGE, "another");
	try(&o, "another, too small a size:", args);
	args.ring_size = 2 * PAGE;
	try(&o, "another:", args);
	try(&o, "back:", o.right);
}

static void ring_sizes(struct world *w)
{
	static const uint32_t sizes[] = { 0, 1, 3, 512, 1024, 2048, 4095, 4096, 8192, 0x80000000 };
	struct owner o = owner_of_a_queue(w);
	char what[32];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kfd_ioctl_update_queue_args args = o.right;

		args.ring_size = sizes[i];
		snprintf(what, sizeof(what), "%u bytes:", sizes[i]);
		try(&o, what, args);
	}
}

static void unknown_queue(struct world *w)
{
	struct owner o = owner_of_a_queue(w);
	struct actor *other = kfd_actor(w, "other");
	struct kfd_ioctl_update_queue_args args = o.right;

	args.queue_id = NO_ID;
	try(&o, "no such queue:", args);
	args.queue_id = UINT32_MAX;
	try(&o, "2^32-1:", args);
	args.queue_id = NO_ID;
	args.queue_priority = 16;
	try(&o, "and no such priority:", args);
	say(w, "of another process %s",
	    text_of(call(me(other), AMDKFD_IOC_UPDATE_QUEUE, &o.right)));
	say(w, "on its descriptor %s",
	    text_of(call_on(me(other), o.a, AMDKFD_IOC_UPDATE_QUEUE, &o.right)));
	say(w, "by another thread %s",
	    text_of(call(second(o.a), AMDKFD_IOC_UPDATE_QUEUE, &o.right)));
}

static void nothing_comes_back(struct world *w)
{
	struct owner o = owner_of_a_queue(w);
	struct kfd_ioctl_update_queue_args args = o.right;

	args.ring_base_address = 0;
	args.ring_size = 16;
	say(w, "%s", text_of(call(me(o.a), AMDKFD_IOC_UPDATE_QUEUE, &args)));
	say(w, "size %u", args.ring_size);
}

static void sdma(struct world *w)
{
	struct actor *a = kfd_actor(w, "self");
	struct kfd_ioctl_update_queue_args args = { .ring_size = 4096 };
	struct kfd_ioctl_create_queue_args q;

	acquire_vm(a);
	q = queue_args(a, KFD_IOC_QUEUE_TYPE_SDMA);
	create_queue(a, &q);
	args.ring_base_address = q.ring_base_address;
	say(w, "0 percent %s", text_of(call(me(a), AMDKFD_IOC_UPDATE_QUEUE, &args)));
	args.queue_percentage = 100;
	say(w, "100 percent %s", text_of(call(me(a), AMDKFD_IOC_UPDATE_QUEUE, &args)));
}

static void while_paused(struct world *w)
{
	struct owner o = owner_of_a_queue(w);
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_update_queue_args off = o.right;

	off.queue_percentage = 0;
	say_active("pause", call(me(o.a), AMDKFD_IOC_CRIU_OP, &c), me(o.a), 1);
	try(&o, "100 percent", o.right);
	try(&o, "0 percent", off);
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_active("unpause", call(me(o.a), AMDKFD_IOC_CRIU_OP, &c), me(o.a), 1);
	try(&o, "100 percent", o.right);
}

static void wave_state(struct world *w)
{
	struct owner o = owner_of_a_queue(w);
	struct kfd_ioctl_get_queue_wave_state_args args = {
		.ctl_stack_address = o.a->areas[0],
		.ctl_stack_used_size = 0xee,
		.save_area_used_size = 0xee,
	};
	int r = call(me(o.a), AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args);

	say(w, "active %s", text_of(r));
	o.right.queue_percentage = 0;
	call(me(o.a), AMDKFD_IOC_UPDATE_QUEUE, &o.right);
	r = call(me(o.a), AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args);
	say(w, "inactive %s stack %u area %u", text_of(r), args.ctl_stack_used_size,
	    args.save_area_used_size);
	args.ctl_stack_address = BAD_POINTER;
	say(w, "bad address %s", text_of(call(me(o.a), AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args)));
	args.queue_id = NO_ID;
	say(w, "no queue %s", text_of(call(me(o.a), AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args)));
	args.queue_id = add_queue(o.a, KFD_IOC_QUEUE_TYPE_SDMA);
	say(w, "SDMA %s", text_of(call(me(o.a), AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args)));
}

const struct conformance_case update_queue_cases[] = {
	{ "update_queue/percents", percents },
	{ "update_queue/priorities", priorities },
	{ "update_queue/rings", rings },
	{ "update_queue/ring_sizes", ring_sizes },
	{ "update_queue/unknown_queue", unknown_queue },
	{ "update_queue/nothing_comes_back", nothing_comes_back },
	{ "update_queue/sdma", sdma },
	{ "update_queue/while_paused", while_paused },
	{ "update_queue/wave_state", wave_state },
	{ NULL, NULL },
};
