/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The part of the ioctl interface of /dev/nvidiactl that taking a context off the GPU needs.
 *
 * Undocumented, and written from the facts of the published kernel modules: numbers and structs
 * are the same in 515, 525, 535, 550, 560, 570, 580, 590 and 595; run on 580.159.04 only. The
 * driver compares every size, so a struct that has grown is refused and not misread.
 *
 * Handles name objects of a client; a client belongs to the open file it was made through and is
 * refused on any other (NVRM_INVALID_CLIENT).
 */
#ifndef GPREEMPT_ABI_NVRM_H
#define GPREEMPT_ABI_NVRM_H

#include "abi/types.h"
#include <sys/ioctl.h>

#define NVRM_IOCTL_BASE 'F'

/* ---- escapes ---- */

struct nvrm_control { /* NVOS54 */
	uint32_t client;
	uint32_t object;
	uint32_t cmd;
	uint32_t flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status; /* out */
};
ABI_SIZE(struct nvrm_control, 32);
#define NVRM_IOC_CONTROL _IOWR(NVRM_IOCTL_BASE, 0x2a, struct nvrm_control)

struct nvrm_alloc { /* NVOS21 */
	uint32_t root;
	uint32_t parent;
	uint32_t object; /* in and out */
	uint32_t class;
	uint64_t params;
	uint32_t params_size;
	uint32_t status; /* out */
};
ABI_SIZE(struct nvrm_alloc, 32);
#define NVRM_IOC_ALLOC _IOWR(NVRM_IOCTL_BASE, 0x2b, struct nvrm_alloc)

struct nvrm_free { /* NVOS00 */
	uint32_t root;
	uint32_t parent;
	uint32_t object;
	uint32_t status; /* out */
};
ABI_SIZE(struct nvrm_free, 16);
#define NVRM_IOC_FREE _IOWR(NVRM_IOCTL_BASE, 0x29, struct nvrm_free)

/*
 * Who may share an object. Of an object that does not exist it changes nothing and, unlike a
 * control, writes nothing to the kernel's log when the client does not exist either: the way to
 * ask whose client a handle is.
 */
struct nvrm_share { /* NVOS57 */
	uint32_t client;
	uint32_t object;
	uint32_t target;
	uint32_t mask;
	uint16_t type;
	uint8_t action;
	uint8_t pad;
	uint32_t status; /* out */
};
ABI_SIZE(struct nvrm_share, 24);
#define NVRM_IOC_SHARE _IOWR(NVRM_IOCTL_BASE, 0x35, struct nvrm_share)

#define NVRM_SHARE_TYPE_NONE 0

/* ---- statuses ---- */

#define NVRM_OK 0x00u
#define NVRM_GPU_IS_LOST 0x0fu
#define NVRM_INSUFFICIENT_PERMISSIONS 0x1bu
#define NVRM_INVALID_ARGUMENT 0x1fu
#define NVRM_INVALID_CLIENT 0x23u /* there, but made through another open file */
#define NVRM_INVALID_OBJECT_HANDLE 0x33u /* to NVRM_IOC_SHARE: no such client */
#define NVRM_INVALID_STATE 0x40u
#define NVRM_NOT_SUPPORTED 0x56u
#define NVRM_OBJECT_NOT_FOUND 0x57u
#define NVRM_TIMEOUT 0x65u

/* ---- classes ---- */

#define NVRM_CLASS_CLIENT 0x0041u
#define NVRM_CLASS_DEVICE 0x0080u
#define NVRM_CLASS_SUBDEVICE 0x2080u
#define NVRM_CLASS_CHANNEL_GROUP 0xa06cu
/* Of every generation; the upper byte says which. */
#define NVRM_IS_CHANNEL(class) (((class) & 0xffu) == 0x6fu)
#define NVRM_IS_COMPUTE(class) (((class) & 0xffu) == 0xc0u)
#define NVRM_IS_COPY(class) (((class) & 0xffu) == 0xb5u)

/* Handles are handed out upwards: clients by the driver, a client's objects by libcuda. */
#define NVRM_FIRST_CLIENT 0xc1d00001u
#define NVRM_FIRST_OBJECT 0x5c000000u

/* ---- controls ---- */

/* On the client: what an object of it is. Nothing is logged for one that does not exist. */
#define NVRM_CTRL_GET_HANDLE_INFO 0x00000d02u
#define NVRM_HANDLE_PARENT 1u
#define NVRM_HANDLE_CLASS 2u
struct nvrm_handle_info {
	uint32_t object;
	uint32_t index; /* NVRM_HANDLE_* */
	uint64_t result; /* out */
};
ABI_SIZE(struct nvrm_handle_info, 16);

/* On a client: GPUs the driver knows, the end marked by NVRM_NO_GPU. */
#define NVRM_CTRL_GET_PROBED_IDS 0x00000214u
#define NVRM_MAX_GPUS 32
#define NVRM_NO_GPU 0xffffffffu
struct nvrm_probed_ids {
	uint32_t gpus[NVRM_MAX_GPUS];
	uint32_t excluded[NVRM_MAX_GPUS];
	uint32_t flags[NVRM_MAX_GPUS];
};
ABI_SIZE(struct nvrm_probed_ids, 384);

#define NVRM_CTRL_GET_PCI_INFO 0x0000021bu
struct nvrm_pci_info {
	uint32_t gpu;
	uint32_t domain; /* out, and so is the rest */
	uint16_t bus;
	uint16_t slot;
};
ABI_SIZE(struct nvrm_pci_info, 12);

/* On a subdevice: which GPU it is. */
#define NVRM_CTRL_GET_GPU_ID 0x20800142u
struct nvrm_gpu_id {
	uint32_t gpu; /* out */
};
ABI_SIZE(struct nvrm_gpu_id, 4);

/*
 * On a subdevice: takes channels off the GPU, in the middle of what they do, or lets them back.
 * Channels of any client can be named, and the driver does not ask whose they are. It counts: as
 * many enables as disables; more are harmless. A channel takes its whole group with it.
 */
#define NVRM_CTRL_DISABLE_CHANNELS 0x2080110bu
#define NVRM_MAX_CHANNELS 64
struct nvrm_disable_channels {
	uint8_t disable;
	uint8_t pad[3];
	uint32_t n;
	uint8_t only_scheduling; /* what runs goes on until it is preempted otherwise */
	uint8_t rewind_put;
	uint8_t pad2[6];
	uint64_t event; /* 0: return when they are off */
	uint32_t clients[NVRM_MAX_CHANNELS];
	uint32_t channels[NVRM_MAX_CHANNELS];
};
ABI_SIZE(struct nvrm_disable_channels, 536);

/* On a channel group. */
#define NVRM_CTRL_SET_TIMESLICE 0xa06c0103u
#define NVRM_CTRL_GET_TIMESLICE 0xa06c0104u /* asks the kernel module only, not the firmware */
struct nvrm_timeslice {
	uint64_t us;
};
ABI_SIZE(struct nvrm_timeslice, 8);

#define NVRM_CTRL_PREEMPT 0xa06c0105u
struct nvrm_preempt {
	uint8_t wait;
	uint8_t manual_timeout;
	uint8_t pad[2];
	uint32_t timeout_us;
};
ABI_SIZE(struct nvrm_preempt, 8);

#define NVRM_CTRL_GET_GROUP_INFO 0xa06c0106u
struct nvrm_group_info {
	uint32_t id; /* out: of the hardware; the same for all who share it */
};
ABI_SIZE(struct nvrm_group_info, 4);

#endif
