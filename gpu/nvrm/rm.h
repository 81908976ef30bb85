/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's resource manager, call by call. One wrapper per control or escape; each returns a
 * status (abi/nvrm.h, NVRM_OK is 0) or -errno where the driver was not reached.
 */
#ifndef GPREEMPT_GPU_NVRM_RM_H
#define GPREEMPT_GPU_NVRM_RM_H

#include "abi/nvrm.h"
#include "gpu/nvrm/transport.h"

struct nvrm {
	const struct nvrm_transport *transport;
	void *data;
	unsigned int more_refs;
};

/* Owns @data, also on failure. */
int nvrm_new(const struct nvrm_transport *transport, void *data, struct nvrm **ret);
struct nvrm *nvrm_ref(struct nvrm *n); /* one more who frees it; by its owner's thread */
void nvrm_free(struct nvrm *n); /* accepts NULL */
void nvrm_freep(struct nvrm **n);

uint64_t nvrm_now_ns(const struct nvrm *n); /* CLOCK_MONOTONIC */

/* A client of one's own on a control descriptor of one's own; it ends with the descriptor. */
int nvrm_new_client(struct nvrm *n, int fd, uint32_t *ret_client);

enum nvrm_whose {
	NVRM_NOBODYS, /* no such client */
	NVRM_SOMEBODYS, /* there, but not made through this descriptor */
	NVRM_THIS, /* made through this descriptor: it may be used on it */
};

/* Asks whose a client is. Changes nothing, and leaves no line in the kernel's log. -errno. */
int nvrm_whose(struct nvrm *n, int fd, uint32_t client);

/* What a handle of the client is, and whose child. NVRM_OBJECT_NOT_FOUND: nothing. */
int nvrm_get_object(struct nvrm *n, int fd, uint32_t client, uint32_t object, uint32_t *ret_class,
		    uint32_t *ret_parent);
int nvrm_get_gpu(struct nvrm *n, int fd, uint32_t client, uint32_t subdevice, uint32_t *ret_gpu);
int nvrm_get_group_id(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint32_t *ret_id);
int nvrm_get_timeslice(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint64_t *ret_us);
int nvrm_set_timeslice(struct nvrm *n, int fd, uint32_t client, uint32_t group, uint64_t us);
/* @call is used as it is; returns when what it disables is off the GPU. */
int nvrm_disable_channels(struct nvrm *n, int fd, uint32_t client, uint32_t subdevice,
			  struct nvrm_disable_channels *call);

#endif
