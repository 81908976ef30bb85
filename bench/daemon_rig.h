/* SPDX-License-Identifier: MIT */
/* A whole daemon in a thread of the benchmark, on a software GPU, and what is asked of it. */
#ifndef GPREEMPT_BENCH_DAEMON_RIG_H
#define GPREEMPT_BENCH_DAEMON_RIG_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cmd/gpreemptd/daemon.h"
#include "wire/wire.h"

struct place { /* its files */
	char dir[64], config[96], run_dir[96], notify[96], socket[128], device[128];
};

bool place_make(struct place *p);
void place_remove(const struct place *p);

struct rig_daemon {
	const struct place *place;
	pthread_t thread;
	int notify;
};

/* SIGTERM is blocked. True when it answers. */
bool rig_start(struct rig_daemon *d, const struct place *p);
void rig_stop(struct rig_daemon *d);

int rig_connect(const struct place *p); /* the descriptor, or -1 */
bool rig_subscribe(int fd);
bool rig_make_online(int fd, pid_t pid);
bool rig_status(int fd, struct gpreempt_daemon_status *ret);
bool rig_take_answer(int fd, uint32_t type);
/* The next event of that kind. */
bool rig_wait_for_event(int fd, uint32_t kind);

#endif
