/* SPDX-License-Identifier: MIT */
/* A GPU, an address space and programs that fill rings, for the tests of the hardware half. */
#ifndef GPREEMPT_TESTS_MODEL_HW_RIG_H
#define GPREEMPT_TESTS_MODEL_HW_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/model/hw.h"
#include "util/macros.h"

#define RIG_TIMEOUT_NS (9 * NSEC_PER_SEC)
#define RIG_FOREVER_NS (3600 * NSEC_PER_SEC)

struct rig {
	struct timeline time;
	struct mem_space *vm;
	struct hw_gpu *gpu;
	const struct model_chip *chip;
};

struct rig_queue {
	struct rig *rig;
	struct hw_queue *hw;
	struct hw_queue_config config;
	uint64_t written; /* packets */
};

void rig_open(struct rig *rig, const char *chip);
void rig_open_chip(struct rig *rig, const struct model_chip *chip);
void rig_close(struct rig *rig);
void rig_run(struct rig *rig, uint64_t ns);

void rig_queue_open(struct rig *rig, struct rig_queue *q, enum hw_ring ring, uint32_t slots);
void rig_queue_close(struct rig_queue *q);

uint64_t rig_kernel(struct rig *rig, uint64_t wg_ns, uint32_t wg_units);
uint64_t rig_signal(struct rig *rig, int64_t value);
int64_t rig_signal_value(struct rig *rig, uint64_t signal);

uint64_t rig_slot_va(const struct rig_queue *q, uint64_t index);
void rig_put(struct rig_queue *q, const void *packet); /* 64 bytes; moves the write pointer */
void rig_dispatch(struct rig_queue *q, uint64_t kernel, uint32_t workgroups, uint16_t header_bits,
		  uint64_t signal);
void rig_barrier(struct rig_queue *q, enum aql_type type, uint64_t dep0, uint64_t dep1,
		 uint64_t signal);
void rig_timed(struct rig_queue *q, uint64_t busy_ns, uint64_t signal);

void rig_map(struct rig *rig, struct hw_queue *const *qs, size_t n); /* and until it is live */
void rig_map_one(struct rig_queue *q);
struct hw_unmap rig_unmap(struct rig *rig, uint32_t grace_kclk);

struct hw_queue_seen rig_stats(const struct rig_queue *q);
struct model_packet rig_packet(const struct rig_queue *q, uint64_t index);

#endif
