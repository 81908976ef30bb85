/* SPDX-License-Identifier: MIT */
/*
 * Three vectored reads for all queues together: the pointers, the packets between them, the
 * signals those packets name. Everything read is the target's to forge: each value is checked
 * before it becomes an address or a count.
 */
#include <errno.h>
#include <string.h>

#include "abi/aql.h"
#include "gpu/kfd/progress.h"
#include "util/macros.h"

/*
 * Producers reserve packets before there is room and then wait for it, so a full queue may
 * have a few more reserved than it has slots. More than so many is nonsense.
 */
#define RESERVED_BEYOND_RING 4096

#define SPANS_PER_QUEUE MAX(3, AQL_MAX_DEPS)

struct look { /* at one queue */
	const struct gkfd_queue_addr *queue;
	struct gkfd_progress *out;
	uint64_t write_before, read, write;
	struct aql_barrier *packets; /* from the read index on; any kind, the barrier fits all */
	size_t n_packets;
	bool packets_known;
	uint64_t last_handle; /* signal of the last packet consumed */
	int64_t values[AQL_MAX_DEPS];
	/* What was asked of the target this round. */
	const struct gkfd_span *spans[SPANS_PER_QUEUE];
	size_t n_spans;
};

struct round { /* what is read at once, and from where */
	struct gkfd *k;
	pid_t pid;
	struct gkfd_mem *mem;
	struct gkfd_span *spans;
	size_t n;
};

struct gkfd_progress_room {
	size_t scan;
	struct look *looks;
	struct gkfd_span *spans;
	struct aql_barrier *packets; /* @scan for each look */
};

static void ask(struct round *rd, struct look *l, uint64_t addr, void *buf, size_t len)
{
	struct gkfd_span *span = &rd->spans[rd->n++];

	*span = (struct gkfd_span){ .addr = addr, .buf = buf, .len = len };
	l->spans[l->n_spans++] = span;
}

static bool none_refused(const struct look *l)
{
	for (size_t i = 0; i < l->n_spans; i++) {
		if (!l->spans[i]->ok)
			return false;
	}
	return true;
}

static bool all_answered(const struct look *l)
{
	return l->n_spans > 0 && none_refused(l);
}

/* Before the spans are used again every look must have taken its answers. */
static void begin_round(struct round *rd, struct look *looks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		looks[i].n_spans = 0;
	rd->n = 0;
}

/* What one step of a pointer is worth; 0: a kind of queue we know nothing of. */
static uint32_t unit_bytes(uint32_t type)
{
	switch (type) {
	case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
		return AQL_PACKET_BYTES;
	case KFD_IOC_QUEUE_TYPE_COMPUTE:
		return sizeof(uint32_t);
	case KFD_IOC_QUEUE_TYPE_SDMA:
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
	case KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID:
		return 1;
	default:
		return 0;
	}
}

static uint64_t ring_units(const struct gkfd_queue_addr *q)
{
	return q->ring_bytes / unit_bytes(q->type);
}

static bool is_aligned_address(uint64_t addr)
{
	return addr != 0 && addr % sizeof(uint64_t) == 0;
}

static bool makes_sense(const struct gkfd_queue_addr *q)
{
	uint32_t unit = unit_bytes(q->type);
	uint64_t end;

	if (unit == 0 || q->ring_bytes < unit || (q->ring_bytes & (q->ring_bytes - 1)) != 0)
		return false;
	if (q->ring_base == 0 || q->ring_base % unit != 0 ||
	    __builtin_add_overflow(q->ring_base, q->ring_bytes, &end))
		return false;
	return is_aligned_address(q->read_ptr_addr) && is_aligned_address(q->write_ptr_addr);
}

/* The writer moves meanwhile: read in this order, the second value is no less than @read. */
static void ask_pointers(struct round *rd, struct look *l)
{
	if (!makes_sense(l->queue))
		return;
	ask(rd, l, l->queue->write_ptr_addr, &l->write_before, sizeof(uint64_t));
	ask(rd, l, l->queue->read_ptr_addr, &l->read, sizeof(uint64_t));
	ask(rd, l, l->queue->write_ptr_addr, &l->write, sizeof(uint64_t));
}

static void take_pointers(struct look *l, size_t scan)
{
	if (l->read > l->write ||
	    l->write - l->read > ring_units(l->queue) + RESERVED_BEYOND_RING)
		return;
	l->out->pointers_known = true;
	l->out->read_index = l->read;
	l->out->write_index = l->write;
	if (l->queue->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) {
		l->n_packets = MIN(l->write - l->read, ring_units(l->queue));
		l->n_packets = MIN(l->n_packets, scan);
		return;
	}
	/* No packet of these can be followed: consumed is not finished. */
	l->out->pending = l->write - l->read;
	if (l->out->pending > 0)
		l->out->state = GKFD_QUEUE_PENDING;
	else if (l->write == 0)
		l->out->state = GKFD_QUEUE_IDLE;
}

static bool is_followed(const struct look *l)
{
	return l->out->pointers_known && l->queue->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
}

/* A slot keeps its packet until the producer comes round to it. */
static bool last_is_there(const struct look *l)
{
	return l->read > 0 && l->write - l->read < ring_units(l->queue);
}

static void ask_packets(struct round *rd, struct look *l)
{
	uint64_t slots = ring_units(l->queue), first = l->read % slots;
	size_t before_wrap = MIN(l->n_packets, slots - first);

	if (before_wrap > 0)
		ask(rd, l, l->queue->ring_base + first * AQL_PACKET_BYTES, l->packets,
		    before_wrap * AQL_PACKET_BYTES);
	if (l->n_packets > before_wrap)
		ask(rd, l, l->queue->ring_base, l->packets + before_wrap,
		    (l->n_packets - before_wrap) * AQL_PACKET_BYTES);
	if (last_is_there(l))
		ask(rd, l,
		    l->queue->ring_base + (l->read - 1) % slots * AQL_PACKET_BYTES +
			    offsetof(struct aql_barrier, completion_signal),
		    &l->last_handle, sizeof(l->last_handle));
}

static enum aql_type type_of(const struct aql_barrier *packet)
{
	return packet->header & AQL_TYPE_MASK;
}

/* The first published packet; one before it may be consumed already, or still be written. */
static const struct aql_barrier *front(const struct look *l)
{
	for (size_t i = 0; i < l->n_packets; i++) {
		if (type_of(&l->packets[i]) != AQL_INVALID)
			return &l->packets[i];
	}
	return NULL;
}

static uint64_t count_published(const struct look *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->n_packets; i++)
		n += type_of(&l->packets[i]) != AQL_INVALID;
	return n;
}

static void ask_signal(struct round *rd, struct look *l, uint64_t handle)
{
	ask(rd, l, handle + AQL_SIGNAL_VALUE_OFFSET, &l->values[l->n_spans], sizeof(int64_t));
}

/* Decides what needs no signal, asks for the signals where it does. */
static void ask_signals(struct round *rd, struct look *l)
{
	const struct aql_barrier *packet;

	if (!l->packets_known)
		return;
	l->out->pending = count_published(l);
	packet = front(l);
	if (!packet) {
		if (l->read == 0)
			l->out->state = GKFD_QUEUE_IDLE; /* nothing was ever consumed */
		else if (last_is_there(l) && is_aligned_address(l->last_handle))
			ask_signal(rd, l, l->last_handle);
		return;
	}
	l->out->state = GKFD_QUEUE_PENDING;
	if (type_of(packet) != AQL_BARRIER_AND && type_of(packet) != AQL_BARRIER_OR)
		return;
	for (size_t i = 0; i < AQL_MAX_DEPS; i++) {
		if (packet->dep_signal[i] != 0)
			ask_signal(rd, l, packet->dep_signal[i]);
	}
}

/* Does the barrier wait? AND: for all its signals to be 0, OR: for one. */
static enum gkfd_queue_state barrier_state(const struct look *l, bool any_is_enough)
{
	bool met = false, unmet = false;

	for (size_t i = 0; i < l->n_spans; i++) {
		if (!l->spans[i]->ok)
			continue;
		met |= l->values[i] == 0;
		unmet |= l->values[i] != 0;
	}
	if (any_is_enough ? met : unmet)
		return any_is_enough ? GKFD_QUEUE_PENDING : GKFD_QUEUE_BLOCKED;
	if (!all_answered(l))
		return GKFD_QUEUE_UNKNOWN;
	return any_is_enough ? GKFD_QUEUE_BLOCKED : GKFD_QUEUE_PENDING;
}

static void take_signals(struct look *l)
{
	const struct aql_barrier *packet;

	if (l->n_spans == 0)
		return;
	packet = front(l);
	if (packet)
		l->out->state = barrier_state(l, type_of(packet) == AQL_BARRIER_OR);
	else if (all_answered(l))
		l->out->state = l->values[0] > 0 ? GKFD_QUEUE_RUNNING : GKFD_QUEUE_IDLE;
}

static int read_round(const struct round *rd)
{
	return gkfd_read_mem(rd->k, rd->pid, rd->mem, rd->spans, rd->n);
}

/* The rounds after the pointers. A target that dies meanwhile leaves what is known so far. */
static void follow(struct look *looks, size_t n, struct round *rd)
{
	begin_round(rd, looks, n);
	for (size_t i = 0; i < n; i++) {
		if (is_followed(&looks[i]))
			ask_packets(rd, &looks[i]);
	}
	if (read_round(rd) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		looks[i].packets_known = is_followed(&looks[i]) && none_refused(&looks[i]);

	begin_round(rd, looks, n);
	for (size_t i = 0; i < n; i++)
		ask_signals(rd, &looks[i]);
	if (read_round(rd) < 0) {
		for (size_t i = 0; i < rd->n; i++)
			rd->spans[i].ok = false;
	}
	for (size_t i = 0; i < n; i++)
		take_signals(&looks[i]);
}

int gkfd_progress_room_new(size_t queues, size_t scan, struct gkfd_progress_room **ret)
{
	struct gkfd_progress_room *room = calloc(1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	room->scan = scan;
	/* Never of size 0: NULL means ENOMEM. */
	room->looks = calloc(queues + 1, sizeof(*room->looks));
	room->spans = calloc(queues + 1, SPANS_PER_QUEUE * sizeof(*room->spans));
	room->packets = calloc(queues + 1, scan * sizeof(*room->packets));
	if (!room->looks || !room->spans || !room->packets) {
		gkfd_progress_room_free(room);
		return -ENOMEM;
	}
	*ret = room;
	return 0;
}

void gkfd_progress_room_free(struct gkfd_progress_room *room)
{
	if (!room)
		return;
	free(room->looks);
	free(room->spans);
	free(room->packets);
	free(room);
}

static void room_freep(struct gkfd_progress_room **room)
{
	gkfd_progress_room_free(*room);
}

/* The indices of @ret, where the caller has read them, are the pointers to begin with. */
static void begin(struct gkfd_progress_room *room, const struct gkfd_queue_addr *queues, size_t n,
		  struct gkfd_progress *ret)
{
	for (size_t i = 0; i < n; i++) {
		room->looks[i] = (struct look){
			.queue = &queues[i],
			.out = &ret[i],
			.packets = room->packets + i * room->scan,
			.read = ret[i].read_index,
			.write = ret[i].write_index,
		};
		ret[i] = (struct gkfd_progress){ .state = GKFD_QUEUE_UNKNOWN };
	}
}

void gkfd_progress_follow(struct gkfd *k, pid_t pid, struct gkfd_mem *mem,
			  struct gkfd_progress_room *room, const struct gkfd_queue_addr *queues,
			  size_t n, struct gkfd_progress *ret)
{
	struct round rd = { .k = k, .pid = pid, .mem = mem, .spans = room->spans };

	begin(room, queues, n, ret);
	for (size_t i = 0; i < n; i++) {
		if (makes_sense(&queues[i]))
			take_pointers(&room->looks[i], room->scan);
	}
	follow(room->looks, n, &rd);
}

int gkfd_progress_read(struct gkfd *k, pid_t pid, const struct gkfd_queue_addr *queues, size_t n,
		       struct gkfd_progress *ret)
{
	_cleanup_(room_freep) struct gkfd_progress_room *room = NULL;
	struct gkfd_mem mem = GKFD_MEM_NONE;
	struct round rd = { .k = k, .pid = pid, .mem = &mem };
	int r = gkfd_progress_room_new(n, GKFD_PROGRESS_SCAN, &room);

	if (r < 0)
		return r;
	rd.spans = room->spans;
	if (n > 0)
		memset(ret, 0, n * sizeof(*ret));
	begin(room, queues, n, ret);
	for (size_t i = 0; i < n; i++)
		ask_pointers(&rd, &room->looks[i]);
	r = read_round(&rd);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct look *l = &room->looks[i];

		if (all_answered(l) && l->write >= l->write_before)
			take_pointers(l, room->scan);
	}
	if (r >= 0)
		follow(room->looks, n, &rd);
	closep(&mem.fd);
	return r < 0 ? r : 0;
}

const char *gkfd_queue_state_name(enum gkfd_queue_state state)
{
	static const char *const names[] = {
		[GKFD_QUEUE_UNKNOWN] = "unknown",
		[GKFD_QUEUE_IDLE] = "idle",
		[GKFD_QUEUE_RUNNING] = "running",
		[GKFD_QUEUE_PENDING] = "pending",
		[GKFD_QUEUE_BLOCKED] = "blocked",
	};

	return (size_t)state < ARRAY_SIZE(names) ? names[state] : names[GKFD_QUEUE_UNKNOWN];
}

/* ---- save areas ---- */

#define MAX_XCC 64

int gkfd_saved_read(struct gkfd *k, pid_t pid, uint64_t cwsr_base, uint32_t cwsr_bytes,
		    uint32_t n_xcc, uint64_t *ret_bytes)
{
	struct kfd_context_save_area_header headers[MAX_XCC];
	struct gkfd_span spans[MAX_XCC];
	struct gkfd_mem mem = GKFD_MEM_NONE;
	uint64_t end, bytes = 0;
	int r;

	if (n_xcc == 0 || n_xcc > MAX_XCC || cwsr_base == 0 || cwsr_bytes < sizeof(headers[0]) ||
	    __builtin_add_overflow(cwsr_base, (uint64_t)cwsr_bytes * n_xcc, &end))
		return -EINVAL;
	for (uint32_t i = 0; i < n_xcc; i++) {
		spans[i] = (struct gkfd_span){
			.addr = cwsr_base + (uint64_t)i * cwsr_bytes,
			.buf = &headers[i],
			.len = sizeof(headers[i]),
		};
	}
	r = gkfd_read_mem(k, pid, &mem, spans, n_xcc);
	closep(&mem.fd);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n_xcc; i++) {
		if (!spans[i].ok)
			return -EFAULT;
		if (headers[i].wave_state.wave_state_size > cwsr_bytes ||
		    headers[i].wave_state.control_stack_size > cwsr_bytes)
			return -EBADMSG;
		bytes += headers[i].wave_state.wave_state_size;
	}
	*ret_bytes = bytes;
	return 0;
}
