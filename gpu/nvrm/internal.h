/* SPDX-License-Identifier: MIT */
/* What the files of this folder share among themselves. */
#ifndef GPREEMPT_GPU_NVRM_INTERNAL_H
#define GPREEMPT_GPU_NVRM_INTERNAL_H

#include "gpu/helpers/proc_files.h"
#include "gpu/nvrm/failure.h"
#include "gpu/nvrm/process.h"
#include "gpu/nvrm/rm.h"

/* ---- rm.c ---- */

/* Any control: a status or -errno. */
int nvrm_control(struct nvrm *n, int fd, uint32_t client, uint32_t object, uint32_t cmd,
		 void *params, uint32_t size);

/* ---- failure.c; @ret may be NULL; both return the -errno ---- */

int nvrm_fail(struct nvrm_failure *ret, int r, enum nvrm_why why, const char *step);
/* @status: of the driver, not NVRM_OK, or -errno where it was not reached. */
int nvrm_fail_status(struct nvrm_failure *ret, int status, const char *step, uint32_t gpu);

/* ---- question.c ---- */

int nvrm_read_stat(struct nvrm *n, pid_t pid, struct proc_stat *ret);

/* ---- process.c ---- */

/* It has ended, or these have: gives back what keeps their memory, and forgets their groups. */
void nvrm_process_drop(struct nvrm_process *p);
void nvrm_client_drop(struct nvrm_process *p, size_t i);
/* 1, 0 or, where the driver does not tell, -errno. */
int nvrm_client_is_there(struct nvrm *n, const struct nvrm_client *c);
/*
 * Just before clients are named in a call that does not look whose they are: drops the process if
 * it has ended, and a client it has freed, whose number may be a stranger's by now. -errno: it is
 * not known of all of them; then they may be named only through themselves.
 */
int nvrm_process_check(struct nvrm_process *p);
/* As far as that can be done; false: something is left. */
bool nvrm_undo_all(struct nvrm_process *p);

/* ---- groups.c ---- */

/*
 * Makes the groups anew from the clients' objects; what was done to those that are still there
 * stays known. 1: they are others than before; 0: the same.
 */
int nvrm_groups_update(struct nvrm_process *p, struct nvrm_failure *ret_failure);
void nvrm_groups_free(struct nvrm_group *groups, size_t n);
bool nvrm_group_is_there(struct nvrm *n, const struct nvrm_group *g);
/* Nobody but us gives a group such a slice: whoever did died before giving it back. */
bool nvrm_slice_is_ours(uint64_t us);

/* ---- entrust.c ---- */

/* Tells the guard, if there is one, how to undo: before anything is done to new groups. */
int nvrm_entrust(struct nvrm_process *p, struct nvrm_failure *ret);
/* Something is about to be done to the group that the guard has to undo, by these calls. */
void nvrm_due(struct nvrm_process *p, const struct nvrm_group *g, uint32_t calls);
/* What is due is what the groups say was done. */
void nvrm_settle_due(struct nvrm_process *p);

#endif
