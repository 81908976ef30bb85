/* SPDX-License-Identifier: MIT */
/* The machine: its driver's version, its GPUs, and which processes use them. Touches nobody. */
#ifndef GPREEMPT_GPU_NVRM_MACHINE_H
#define GPREEMPT_GPU_NVRM_MACHINE_H

#include "gpu/nvrm/failure.h"
#include "gpu/nvrm/rm.h"

struct nvrm_version {
	unsigned int major, minor, patch; /* 580.159.04 */
	bool open; /* the open kernel module; else the proprietary one */
	char text[32];
};

/* From /proc/driver/nvidia/version. -ENOENT: no driver; -EBADMSG: not to be made sense of. */
int nvrm_read_version(struct nvrm *n, struct nvrm_version *ret);
/*
 * Versions whose interface was compared with abi/nvrm.h: major 515 to 595 of the open module. A
 * newer one, or the proprietary one, is refused unless $GPREEMPT_NVRM_ANY_DRIVER is set.
 */
int nvrm_check_version(const struct nvrm_version *v, struct nvrm_failure *ret);

struct nvrm_gpu {
	uint32_t gpu; /* the driver's id: bus and slot */
	uint32_t domain, bus, slot;
	char name[64]; /* "NVIDIA H200" */
	char uuid[48];
	bool mig; /* cut into instances: left alone */
};

/* How many there are, of which @max at most are written; ascending by id. */
int nvrm_list_gpus(struct nvrm *n, struct nvrm_gpu *ret, size_t max);

/* By its executable, which anybody can name as he likes: what follows from it is in shared.c. */
bool nvrm_is_mps_server(struct nvrm *n, pid_t pid);

/* The processes that have a GPU open. */
struct nvrm_finder;
int nvrm_finder_new(struct nvrm *n, struct nvrm_finder **ret);
void nvrm_finder_free(struct nvrm_finder *f); /* accepts NULL */

struct nvrm_finder_budget {
	unsigned int processes; /* that are listed */
	unsigned int descriptors; /* that are read, and processes that are looked at */
};

/*
 * 0: all that is due has been looked at; 1: there is more. Whoever is known stays so until it was
 * looked at again. -errno: the processes could not be listed.
 */
int nvrm_finder_step(struct nvrm_finder *f, const struct nvrm_finder_budget *budget);
/*
 * The same, a little, for who asks again and again and must not wait, or, where nothing is asked of
 * others, everything there is.
 */
int nvrm_finder_look(struct nvrm_finder *f);
int nvrm_finder_look_at_all(struct nvrm_finder *f);
/* Processes of which nobody could find out, the last time, whether they have one open. */
size_t nvrm_finder_unseen(const struct nvrm_finder *f);

/* ---- for who hears of births, and has a transport that tells of openings ---- */

/* From now on, before anybody is looked for: instead of steps and looks there are these. */
void nvrm_finder_follow(struct nvrm_finder *f);
void nvrm_finder_born(struct nvrm_finder *f, const pid_t *pids, size_t n); /* some maybe known */
void nvrm_finder_list_again(struct nvrm_finder *f); /* too many, or nobody knows */
/*
 * Does what is due, and takes what was answered. To be called when something is told or heard, and
 * after the time it says.
 */
int nvrm_finder_go_on(struct nvrm_finder *f, uint64_t *ret_wait_ns);
/* Others are known to use a GPU than were listed last. */
bool nvrm_finder_has_changed(const struct nvrm_finder *f);
/* -errno: why some nodes are not watched, so that who opens one is seen late. 0: all are. */
int nvrm_finder_blind(const struct nvrm_finder *f);

/*
 * The pids that are known by now, ascending: how many, of which @max at most are written. Where
 * these are not all, no user has more than another who has some left out. -ENOMEM.
 */
int nvrm_finder_list(struct nvrm_finder *f, pid_t *ret, size_t max);

#endif
