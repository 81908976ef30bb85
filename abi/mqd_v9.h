/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Dwords of a gfx9 compute queue descriptor (MQD) that the driver's debugfs file "mqds" dumps,
 * as laid out by Linux 6.12. HQD register k of the file "hqds" is dword MQD9_HQD_FIRST + k.
 */
#ifndef GPREEMPT_ABI_MQD_V9_H
#define GPREEMPT_ABI_MQD_V9_H

enum mqd9_dword {
	MQD9_HQD_FIRST = 0x80,
	MQD9_ACTIVE = 0x82,
	MQD9_VMID = 0x83,
	MQD9_PIPE_PRIORITY = 0x85, /* 0 low, 1 medium, 2 high */
	MQD9_QUEUE_PRIORITY = 0x86, /* as given at creation, 0..15 */
	MQD9_RING_BASE_LO = 0x88, /* address >> 8 */
	MQD9_RING_BASE_HI = 0x89,
	MQD9_RPTR = 0x8a,
	MQD9_RPTR_ADDR_LO = 0x8b,
	MQD9_RPTR_ADDR_HI = 0x8c,
	MQD9_WPTR_ADDR_LO = 0x8d,
	MQD9_WPTR_ADDR_HI = 0x8e,
	MQD9_DOORBELL = 0x8f,
	MQD9_PQ_CONTROL = 0x91, /* bits 0-5: log2(ring dwords) - 1 */
	MQD9_CTX_SAVE_LO = 0xab,
	MQD9_CTX_SAVE_HI = 0xac,
	MQD9_CTL_STACK_OFFSET = 0xae,
	MQD9_CTL_STACK_SIZE = 0xaf,
	MQD9_WG_STATE_OFFSET = 0xb0,
	MQD9_CTX_SAVE_SIZE = 0xb1, /* per XCC */
	MQD9_WPTR_LO = 0xb6,
	MQD9_WPTR_HI = 0xb7,
};

#define MQD9_BYTES 2048
#define MQD9_DWORDS (MQD9_BYTES / 4)
#define MQD_SDMA_BYTES 512

#endif
