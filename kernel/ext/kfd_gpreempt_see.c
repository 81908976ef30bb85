/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Has a queue work? Told from the pointers, packets and signals in its process's memory, which is
 * the process's to forge: good enough to decide whom to help. Memory that is not there at once is
 * not waited for, or a process could keep the scheduler waiting.
 */
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "abi/aql.h"
#include "kfd_gpreempt_internal.h"
#include "kfd_priv.h"

#define SCAN 4 /* so many packets are looked at for one that is published */
#define RESERVED_BEYOND_RING 4096 /* producers reserve before there is room, but not so many */

static bool read_user(u64 address, void *to, size_t bytes)
{
	return !copy_from_user_nofault(to, u64_to_user_ptr(address), bytes);
}

static bool read_word(u64 address, u64 *to)
{
	return !(address % sizeof(*to)) && read_user(address, to, sizeof(*to));
}

static bool read_packet(const struct gp_seen *s, u64 index, struct aql_barrier *ret)
{
	u64 slots = s->ring_bytes / AQL_PACKET_BYTES;

	return read_user(s->ring + index % slots * AQL_PACKET_BYTES, ret, sizeof(*ret));
}

/* What waits for somebody else needs no GPU. Signals that cannot be read are not met. */
static bool is_blocked(const struct aql_barrier *p, bool any)
{
	bool used = false;
	unsigned int i;
	u64 value;

	for (i = 0; i < AQL_MAX_DEPS; i++) {
		bool met;

		if (!p->dep_signal[i])
			continue;
		used = true;
		met = read_word(p->dep_signal[i] + AQL_SIGNAL_VALUE_OFFSET, &value) && !value;
		if (met == any)
			return !any;
	}
	return used && any;
}

/* The last packet was consumed when it began. */
static enum gp_work last_packet(const struct gp_seen *s)
{
	struct aql_barrier p;
	u64 value;

	if (!s->read)
		return GP_IDLE;
	if (s->write - s->read >= s->ring_bytes / AQL_PACKET_BYTES ||
	    !read_packet(s, s->read - 1, &p) || !p.completion_signal ||
	    !read_word(p.completion_signal + AQL_SIGNAL_VALUE_OFFSET, &value))
		return GP_UNKNOWN;
	return (s64)value > 0 ? GP_BUSY : GP_IDLE;
}

static enum gp_work aql_work(const struct gp_seen *s)
{
	u64 n = min_t(u64, s->write - s->read, SCAN), i;
	struct aql_barrier p;
	u16 type;

	for (i = 0; i < n; i++) {
		if (!read_packet(s, s->read + i, &p))
			return GP_UNKNOWN;
		type = p.header & AQL_TYPE_MASK;
		if (type == AQL_INVALID)
			continue;
		if ((type == AQL_BARRIER_AND || type == AQL_BARRIER_OR) &&
		    is_blocked(&p, type == AQL_BARRIER_OR))
			return GP_IDLE;
		return GP_BUSY;
	}
	return last_packet(s);
}

static u64 ring_units(const struct gp_seen *s)
{
	return s->ring_bytes / (s->aql ? AQL_PACKET_BYTES : sizeof(u32));
}

/* The process's memory is the thread's for now. */
enum gp_work gp_see_queue(struct gp_seen *s)
{
	if (!s->ring_bytes || !is_power_of_2(s->ring_bytes) || !ring_units(s))
		return GP_UNKNOWN;
	if (!read_word(s->read_address, &s->read) || !read_word(s->write_address, &s->write) ||
	    s->write < s->read)
		return GP_UNKNOWN;
	if (s->sdma)
		return s->write > s->read ? GP_BUSY : s->write ? GP_UNKNOWN : GP_IDLE;
	if (s->write - s->read > ring_units(s) + RESERVED_BEYOND_RING)
		return GP_UNKNOWN;
	if (s->aql)
		return aql_work(s);
	return s->write > s->read ? GP_BUSY : s->write ? GP_UNKNOWN : GP_IDLE;
}
