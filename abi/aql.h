/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the packets and signals of an AQL queue look like in user memory: the HSA
 * architected layout and, for the signal, AMD's (the value sits at +8).
 */
#ifndef GPREEMPT_ABI_AQL_H
#define GPREEMPT_ABI_AQL_H

#include "abi/types.h"

#define AQL_PACKET_BYTES 64
#define AQL_TYPE_MASK 0xff
#define AQL_BARRIER_BIT (1u << 8)
#define AQL_MAX_DEPS 5

enum aql_type {
	AQL_VENDOR = 0,
	AQL_INVALID = 1, /* reserved by the producer, not yet published; or already consumed */
	AQL_KERNEL_DISPATCH = 2,
	AQL_BARRIER_AND = 3,
	AQL_AGENT_DISPATCH = 4,
	AQL_BARRIER_OR = 5,
};

struct aql_dispatch {
	uint16_t header;
	uint16_t setup;
	uint16_t workgroup_x, workgroup_y, workgroup_z;
	uint16_t reserved0;
	uint32_t grid_x, grid_y, grid_z; /* work-items */
	uint32_t private_bytes;
	uint32_t group_bytes;
	uint64_t kernel_object;
	uint64_t kernarg;
	uint64_t reserved2;
	uint64_t completion_signal; /* 0: none */
};
ABI_SIZE(struct aql_dispatch, AQL_PACKET_BYTES);
ABI_AT(struct aql_dispatch, completion_signal, 56);

struct aql_barrier {
	uint16_t header;
	uint16_t reserved0;
	uint32_t reserved1;
	uint64_t dep_signal[AQL_MAX_DEPS]; /* 0: not used; met when the value is 0 */
	uint64_t reserved2;
	uint64_t completion_signal;
};
ABI_SIZE(struct aql_barrier, AQL_PACKET_BYTES);
ABI_AT(struct aql_barrier, completion_signal, 56);

#define AQL_SIGNAL_VALUE_OFFSET 8 /* of the int64_t value behind a signal handle */
#define AQL_SIGNAL_BYTES 64

#endif
