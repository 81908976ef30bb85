/* SPDX-License-Identifier: MIT */
/*
 * A driver with the extension, played: processes with queues, holds with their deadlines, rights.
 * It counts what is asked, and who traces anybody or asks for anything else has failed the test.
 */
#ifndef GPREEMPT_TESTS_KFD_FAKE_EXT_H
#define GPREEMPT_TESTS_KFD_FAKE_EXT_H

#include "gpu/kfd/ext.h"

#define FAKE_START_TICKS 7u
#define FAKE_GPU 1u /* the one there is */

struct fake_ext;

struct fake_ext_counts {
	unsigned int unmaps, maps, switches, looks, binds;
	unsigned int sins; /* traced somebody, or made a call that is none of the extension's */
};

struct fake_ext *fake_ext_new(void);
struct gkfd *fake_ext_gkfd(struct fake_ext *f); /* owns it from then on */

/* Its queues are 1 to @queues. */
void fake_ext_add(struct fake_ext *f, pid_t pid, uint32_t queues);
void fake_ext_exit(struct fake_ext *f, pid_t pid);
void fake_ext_exec(struct fake_ext *f, pid_t pid); /* lives, but has left the driver */
/* One queue is destroyed, or created, which may get the id of one that was. */
void fake_ext_destroy(struct fake_ext *f, pid_t pid, uint32_t queue);
void fake_ext_create(struct fake_ext *f, pid_t pid, uint32_t queue);
/* @pid has a descriptor of @owner, before its own ones, from birth. */
void fake_ext_inherit(struct fake_ext *f, pid_t pid, pid_t owner);
/* Somebody else's file; where @holder is a process of this machine, until it ends. */
void fake_ext_hold_by(struct fake_ext *f, pid_t pid, pid_t holder);
void fake_ext_schedule_off(struct fake_ext *f, pid_t pid); /* its first queue, by the driver */

void fake_ext_open_with(struct fake_ext *f, int error); /* what opening the device answers */
void fake_ext_set_version(struct fake_ext *f, uint32_t version);
void fake_ext_set_admin(struct fake_ext *f, bool admin); /* at first so */
void fake_ext_set_modelled(struct fake_ext *f); /* a software GPU's */
void fake_ext_forbid(struct fake_ext *f, pid_t pid); /* its descriptors are not lent */
/* Entries of @pid that are to be unmapped have this result; 0: as it should be. */
void fake_ext_fail(struct fake_ext *f, pid_t pid, int result);
void fake_ext_fail_calls(struct fake_ext *f, int error); /* all batches, from now on */
void fake_ext_sleep(struct fake_ext *f, uint64_t ns); /* so much time has passed at once */

uint32_t fake_ext_held(struct fake_ext *f, pid_t pid); /* queues */
uint32_t fake_ext_stops(struct fake_ext *f, uint64_t *ret_left_ns); /* of the GPU, not undone */
struct fake_ext_counts fake_ext_counts(struct fake_ext *f);
struct kfd_gpreempt_batch fake_ext_last(struct fake_ext *f); /* unmapping call */

#endif
