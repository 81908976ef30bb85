/* SPDX-License-Identifier: MIT */
/* The guard of a scheduler under test: what was promised to it, in the fake's time. */
#ifndef GPREEMPT_TESTS_DAEMON_FAKE_GUARD_H
#define GPREEMPT_TESTS_DAEMON_FAKE_GUARD_H

#include "gpu/guard.h"

struct guard {
	bool dead, armed;
	int fd;
	uint64_t deadline_ns;
	const uint64_t *now_ns;
	uint32_t beats, late; /* late: beats after the deadline */
};

#endif
