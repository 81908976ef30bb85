/* SPDX-License-Identifier: MIT */
/* What kfdsim tells about itself and how it is broken, by its files (tests/vm/README.md). */
#ifndef GPREEMPT_TESTS_CONFORMANCE_KFDSIM_H
#define GPREEMPT_TESTS_CONFORMANCE_KFDSIM_H

#include "tests/conformance/world.h"

uint32_t kfdsim_parameter(const char *name); /* of the module */
void kfdsim_scheduler_work(uint32_t gpu, struct scheduler_work *ret);
/* GPU 0; a queue that does not yield is the only one there. The kernel's log from now on. */
int kfdsim_break(enum world_fault fault);
/* Until @log says so; what was set for the fault is undone. */
void kfdsim_await_reset(int log, int timeout_ms);

#endif
