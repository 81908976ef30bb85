/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_TESTS_DAEMON_FAKE_FIGURES_H
#define GPREEMPT_TESTS_DAEMON_FAKE_FIGURES_H

#include "cmd/gpreemptd/control.h"
#include "cmd/gpreemptd/scheduler.h"

#define FAKE_GPUS 3
#define FAKE_JOBS 150 /* more than are asked for at once */

struct scheduler *fake_scheduler(void);
const struct control *fake_control(void);

#endif
