/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_TESTS_DAEMON_FAKE_PROC_H
#define GPREEMPT_TESTS_DAEMON_FAKE_PROC_H

#include "tests/daemon/fake_backend.h"

void fake_proc_init(struct fake *f);
int fake_owner(struct gpu_backend *b, pid_t pid, uid_t *ret);
int fake_ask(struct gpu_backend *b, pid_t pid, uint32_t files);
bool fake_answer(struct gpu_backend *b, struct proc_files *ret);

#endif
