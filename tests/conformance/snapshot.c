/* SPDX-License-Identifier: MIT */
/* GET_QUEUE_SNAPSHOT and GET_DEVICE_SNAPSHOT: sizes, room, and what is in them. */
#include <inttypes.h>
#include <string.h>

#include "tests/conformance/topics.h"

#define BUFFER_BYTES 16384
#define FILL 0xee
#define ASIC_REVISION_MASK 0x03c00000u

static int take(struct session *s, struct kfd_ioctl_dbg_trap_args *args, void *buf)
{
	args->queue_snapshot.snapshot_buf_ptr = (uintptr_t)buf;
	return dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, args);
}

/* How far into the buffer something was written. */
static size_t written(const unsigned char *buf)
{
	size_t n = BUFFER_BYTES;

	while (n && buf[n - 1] == FILL)
		n--;
	return n;
}

static void entry_sizes(struct world *w)
{
	static const uint32_t sizes[] = { 0, 1, 8, 39, 40, 44, 63, 64, 65, 96, 4096, UINT32_MAX };
	struct session s = attached(w, 2);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kfd_ioctl_dbg_trap_args args = { 0 };
		unsigned char *buf = arena(w, BUFFER_BYTES);
		int r;

		memset(buf, FILL, BUFFER_BYTES);
		args.queue_snapshot.entry_size = sizes[i];
		args.queue_snapshot.num_queues = sizes[i] == UINT32_MAX ? 1 : 2;
		r = take(&s, &args, buf);
		say(w, "size %u: %s, size then %u, queues %u, bytes %zu", sizes[i], text_of(r),
		    args.queue_snapshot.entry_size, args.queue_snapshot.num_queues, written(buf));
	}
}

static void room(struct world *w)
{
	static const uint32_t rooms[] = { 0, 1, 2, 3, 4, 1024, UINT32_MAX };
	struct session s = attached(w, 3);

	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct kfd_ioctl_dbg_trap_args args = { 0 };
		unsigned char *buf = arena(w, BUFFER_BYTES);
		int r;

		memset(buf, FILL, BUFFER_BYTES);
		args.queue_snapshot.entry_size = 64;
		args.queue_snapshot.num_queues = rooms[i];
		r = take(&s, &args, buf);
		say(w, "room %u: %s, queues %u, bytes %zu", rooms[i], text_of(r),
		    args.queue_snapshot.num_queues, written(buf));
	}
}

static void pointers(struct world *w)
{
	struct session s = attached(w, 2);
	static const uintptr_t bad[] = { 0, BAD_POINTER };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (uint32_t n = 0; n < 3; n++) {
			struct kfd_ioctl_dbg_trap_args args = { 0 };
			int r;

			args.queue_snapshot.entry_size = 64;
			args.queue_snapshot.num_queues = n;
			r = take(&s, &args, (void *)bad[i]);
			say(w, "%s, room %u: %s queues %u", i ? "bad" : "NULL", n, text_of(r),
			    args.queue_snapshot.num_queues);
		}
	}
}

/* The second entry lies where nothing is mapped. */
static void half_a_buffer(struct world *w)
{
	struct session s = attached_unacknowledged(w, 2);
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	char *end = w->arena + ARENA_BYTES;
	int r;

	args.queue_snapshot.exception_mask = NEW;
	args.queue_snapshot.entry_size = 64;
	args.queue_snapshot.num_queues = 2;
	r = take(&s, &args, end - 64);
	say(w, "%s queues %u", text_of(r), args.queue_snapshot.num_queues);
	say_ids(w, "suspend", suspend(me(s.debugger), s.target, s.ids, 2, GRACE_DEFAULT), s.ids, 2);
	memset(end - 64, 0, 64);
}

static void say_entry(struct world *w, const struct kfd_queue_snapshot_entry *e)
{
	uint32_t area = node_property(w, "cwsr_size");

	say(w, "status %" PRIx64 " ring 0x%" PRIx64 " write 0x%" PRIx64 " read 0x%" PRIx64,
	    e->exception_status, e->ring_base_address, e->write_pointer_address,
	    e->read_pointer_address);
	say(w,
	    "area 0x%" PRIx64 " id %u gpu %u size %u type %u, area as in the topology %u, "
	    "reserved %u",
	    e->ctx_save_restore_address, e->queue_id, e->gpu_id, e->ring_size, e->queue_type,
	    e->ctx_save_restore_area_size == area, e->reserved);
}

static void contents(struct world *w)
{
	struct session s = attached(w, 0);
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_queue_snapshot_entry *e = arena(w, 8 * sizeof(*e));
	int r;

	add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE);
	add_queue(s.target, KFD_IOC_QUEUE_TYPE_SDMA);
	add_queue(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	args.queue_snapshot.exception_mask = NEW;
	args.queue_snapshot.entry_size = sizeof(*e);
	args.queue_snapshot.num_queues = 8;
	r = take(&s, &args, e);
	say(w, "%s queues %u", text_of(r), args.queue_snapshot.num_queues);
	for (uint32_t i = 0; i < args.queue_snapshot.num_queues; i++)
		say_entry(w, &e[i]);
	take(&s, &args, e);
	say(w, "status of the first after that %" PRIx64, e[0].exception_status);
}

static void order(struct world *w)
{
	struct session s = attached(w, 4);
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_queue_snapshot_entry *e = arena(w, 8 * sizeof(*e));

	destroy_queue(me(s.target), 1);
	add_queues(s.target, 1);
	args.queue_snapshot.entry_size = sizeof(*e);
	args.queue_snapshot.num_queues = 8;
	take(&s, &args, e);
	say(w, "%u queues: %u %u %u %u", args.queue_snapshot.num_queues, e[0].queue_id,
	    e[1].queue_id, e[2].queue_id, e[3].queue_id);
}

static void changed_queue(struct world *w)
{
	struct session s = attached(w, 0);
	struct kfd_ioctl_create_queue_args q = queue_args(s.target, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	struct kfd_ioctl_update_queue_args u = { 0 };
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_queue_snapshot_entry *e = arena(w, sizeof(*e));

	create_queue(s.target, &q);
	u.ring_base_address = map_memory(s.target, 8192, "larger");
	u.ring_size = 8192;
	u.queue_percentage = 100;
	say(w, "update %s", text_of(call(me(s.target), AMDKFD_IOC_UPDATE_QUEUE, &u)));
	args.queue_snapshot.entry_size = sizeof(*e);
	args.queue_snapshot.num_queues = 1;
	take(&s, &args, e);
	say_entry(w, e);
	u.ring_base_address = 0;
	u.ring_size = 0;
	say(w, "update %s", text_of(call(me(s.target), AMDKFD_IOC_UPDATE_QUEUE, &u)));
	args.queue_snapshot.num_queues = 1;
	take(&s, &args, e);
	say_entry(w, e);
}

/* ---- devices ---- */

static int take_devices(struct session *s, struct kfd_ioctl_dbg_trap_args *args, void *buf)
{
	args->device_snapshot.snapshot_buf_ptr = (uintptr_t)buf;
	return dbg(me(s->debugger), s->target->pid, KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT, args);
}

static void device_sizes(struct world *w)
{
	static const uint32_t sizes[] = { 0, 1, 56, 60, 119, 120, 121, 4096 };
	struct session s = attached(w, 0);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kfd_ioctl_dbg_trap_args args = { 0 };
		unsigned char *buf = arena(w, BUFFER_BYTES);
		int r;

		memset(buf, FILL, BUFFER_BYTES);
		args.device_snapshot.entry_size = sizes[i];
		args.device_snapshot.num_devices = 4;
		r = take_devices(&s, &args, buf);
		say(w, "size %u: %s, size then %u, devices %u, bytes %zu", sizes[i], text_of(r),
		    args.device_snapshot.entry_size, args.device_snapshot.num_devices,
		    written(buf));
	}
}

static void device_pointers(struct world *w)
{
	struct session s = attached(w, 0);
	static const uintptr_t bad[] = { 0, BAD_POINTER };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (uint32_t n = 0; n < 2; n++) {
			struct kfd_ioctl_dbg_trap_args args = { 0 };
			int r;

			args.device_snapshot.entry_size = 120;
			args.device_snapshot.num_devices = n;
			r = take_devices(&s, &args, (void *)bad[i]);
			say(w, "%s, room %u: %s devices %u", i ? "bad" : "NULL", n, text_of(r),
			    args.device_snapshot.num_devices);
		}
	}
}

static void device_contents(struct world *w)
{
	struct session s = attached(w, 0);
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_dbg_device_info_entry *e = arena(w, sizeof(*e));

	args.device_snapshot.entry_size = sizeof(*e);
	args.device_snapshot.num_devices = 1;
	take_devices(&s, &args, e);
	say(w, "status %" PRIx64 " gpu %u gfx %u xcc %u vendor %x", e->exception_status, e->gpu_id,
	    e->gfx_target_version, e->num_xcc, e->vendor_id);
	say(w, "lds 0x%" PRIx64 "..0x%" PRIx64 " scratch 0x%" PRIx64 "..0x%" PRIx64, e->lds_base,
	    e->lds_limit, e->scratch_base, e->scratch_limit);
	say(w, "gpuvm 0x%" PRIx64 "..0x%" PRIx64, e->gpuvm_base, e->gpuvm_limit);
	say(w, "capability %x and a silicon revision, debug_prop %x",
	    e->capability & ~ASIC_REVISION_MASK, e->debug_prop);
	say(w,
	    "as in the topology: location %u device %u simds %u waves %u arrays %u per engine %u "
	    "firmware %u",
	    e->location_id == node_property(w, "location_id"),
	    e->device_id == node_property(w, "device_id"),
	    e->simd_count == node_property(w, "simd_count"),
	    e->max_waves_per_simd == node_property(w, "max_waves_per_simd"),
	    e->array_count == node_property(w, "array_count"),
	    e->simd_arrays_per_engine == node_property(w, "simd_arrays_per_engine"),
	    e->fw_version == node_property(w, "fw_version"));
}

static void device_status(struct world *w)
{
	struct session s = attached(w, 1);
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_dbg_device_info_entry *e = arena(w, sizeof(*e));

	destroy_queue(me(s.target), 0);
	args.device_snapshot.entry_size = sizeof(*e);
	args.device_snapshot.num_devices = 1;
	take_devices(&s, &args, e);
	say(w, "after a destroy %" PRIx64, e->exception_status);
	args.device_snapshot.exception_mask = DELETED;
	take_devices(&s, &args, e);
	say(w, "still %" PRIx64, e->exception_status);
	take_devices(&s, &args, e);
	say(w, "cleared %" PRIx64, e->exception_status);
}

const struct conformance_case snapshot_cases[] = {
	{ "snapshot/entry_sizes", entry_sizes },
	{ "snapshot/room", room },
	{ "snapshot/pointers", pointers },
	{ "snapshot/half_a_buffer", half_a_buffer },
	{ "snapshot/contents", contents },
	{ "snapshot/order", order },
	{ "snapshot/changed_queue", changed_queue },
	{ "snapshot/device_sizes", device_sizes },
	{ "snapshot/device_pointers", device_pointers },
	{ "snapshot/device_contents", device_contents },
	{ "snapshot/device_status", device_status },
	{ NULL, NULL },
};
