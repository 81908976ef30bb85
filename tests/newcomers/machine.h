/* SPDX-License-Identifier: MIT */
/*
 * A machine with NVIDIA's GPUs of which only the driver is played: its processes, /proc, device
 * nodes and mount namespaces are real, and real readers look into them for a real scheduler. Nodes
 * lie in a /dev of the test's own, and stand for devices of the kernel's that take no notice.
 */
#ifndef GPREEMPT_TESTS_NEWCOMERS_MACHINE_H
#define GPREEMPT_TESTS_NEWCOMERS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct machine;

/* NULL: it may be made. Why not, on this machine or for this user. */
const char *machine_impossible(void);
/* A mount namespace of its own for the caller and whom it starts from now on, with such a /dev. */
void machine_enter(void);
/* The same in a process that is to have nodes of its own, as a container has. */
void machine_unshare(void);

struct machine *machine_start(void);
void machine_end(struct machine *m);

/* So many processes that have nothing to do with it, and sleep. */
void machine_crowd(struct machine *m, size_t n);

/* Lets the scheduler work until that time, or until somebody came. The pid, or 0. */
pid_t machine_run(struct machine *m, uint64_t until_ns, uint64_t *ret_came_ns);

struct machine_cost { /* of the scheduler and all that it started; of processors' time */
	uint64_t own_ns, readers_ns;
	uint64_t turns;
};
struct machine_cost machine_cost(const struct machine *m);
const char *machine_blind(const struct machine *m); /* "": nothing goes unseen */

#define MACHINE_NODES 3u /* nvidiactl, nvidia0 and nvidia1 */
size_t machine_watches(void); /* nodes whose openings are told */

uint64_t machine_now_ns(void);

#endif
