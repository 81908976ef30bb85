/* SPDX-License-Identifier: MIT */
/*
 * A process with queues on a GPU, made with nothing but the driver's interface, for the guest.
 *
 * Every failure ends the program with a message: what cannot be set up cannot be tested.
 */
#ifndef GPREEMPT_TESTS_VM_MK_H
#define GPREEMPT_TESTS_VM_MK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MK_SLOTS 1024u /* packets in a ring */
#define MK_MAX_USER 64u

#define mk_die(...) \
	do { \
		fprintf(stderr, "mkqueues: " __VA_ARGS__); \
		fprintf(stderr, ": %m\n"); \
		exit(1); \
	} while (0)

struct mk_gpu {
	int kfd, drm;
	bool user_memory; /* gives the GPU anonymous memory instead of buffers of the driver's */
	struct {
		uint64_t at, size;
	} user[MK_MAX_USER]; /* the first of those */
	unsigned int n_user;
	uint32_t gpu_id;
	uint32_t cwsr_size, ctl_stack_size, render_minor, gfx_target_version;
	uint32_t simd_count, simd_per_cu, array_count, arrays_per_engine, n_xcc;
	char *doorbells;
	uint32_t event_id; /* raised when packets complete */
	uint64_t mailbox;
};

/*
 * @index counts GPUs, not nodes. Opens the driver and takes an address space on every GPU, as AMD's
 * runtime does, or only on this one. A target of the latter kind, on a machine with several GPUs,
 * makes SUSPEND_QUEUES of Linux 6.12.115 follow a NULL pointer: kfd_flush_tlb() of the others.
 */
void mk_gpu_open(struct mk_gpu *gpu, unsigned int index);
void mk_gpu_open_only(struct mk_gpu *gpu, unsigned int index);
/* One more GPU of a process that did mk_gpu_open(); its packets raise no event. */
void mk_gpu_also(struct mk_gpu *gpu, const struct mk_gpu *first, unsigned int index);
void mk_gpu_runtime(struct mk_gpu *gpu, bool enable); /* as a debuggable runtime does first */
/* GPU-visible memory, zeroed; with a handle always the driver's. */
void *mk_alloc(struct mk_gpu *gpu, size_t size, uint64_t *ret_handle);
/* Waits for a completion, at most @ms; may return early. */
void mk_wait(struct mk_gpu *gpu, unsigned int ms);

enum mk_kind { MK_AQL, MK_PM4, MK_SDMA };

/*
 * A queue that is given links of a checksum chain (AQL) or a counter to write (others), in order.
 * What memory must hold when all is done is known at each moment.
 */
struct mk_queue {
	struct mk_gpu *gpu;
	enum mk_kind kind;
	uint32_t id, priority;
	volatile uint64_t *doorbell, *write, *read;
	char *ring;
	void *eop, *save_area;
	struct kfdsim_kernarg *args;
	volatile int64_t *signal; /* AQL: counts what is not done */
	volatile uint64_t *word;
	uint64_t submitted; /* packets */
	uint64_t written; /* in units of the write pointer */
	uint64_t expected; /* of *word, when all is done */
};

void mk_queue_create(struct mk_queue *q, struct mk_gpu *gpu, enum mk_kind kind, uint32_t priority);
/* A new queue with the memory of one that was destroyed, its work done. */
void mk_queue_again(struct mk_queue *q);
void mk_queue_destroy(struct mk_queue *q);
/* One packet: @ticks of work for @waves (AQL only). */
void mk_submit(struct mk_queue *q, uint32_t ticks, uint32_t waves);
uint64_t mk_pending(const struct mk_queue *q);
/* With nothing pending: is memory as it must be? */
bool mk_is_right(const struct mk_queue *q);

#endif
