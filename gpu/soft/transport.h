/* SPDX-License-Identifier: MIT */
/*
 * The driver of a software GPU that runs as a program of its own (gpreempt-softgpu) and that others
 * use too, in real time. /proc is the machine's own, but for processes that the device invented.
 */
#ifndef GPREEMPT_GPU_SOFT_TRANSPORT_H
#define GPREEMPT_GPU_SOFT_TRANSPORT_H

#include "gpu/kfd/transport.h"

extern const struct gkfd_transport gkfd_transport_soft;

/* What gkfd_new() takes with it. Errors as of soft_link_open(). */
int soft_new(const char *socket, void **ret_data);
/* How long all saves to memory took so far, on all its GPUs; 0: it does not say. */
uint64_t soft_save_ns(void *data);

#endif
