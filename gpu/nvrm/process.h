/* SPDX-License-Identifier: MIT */
/*
 * One process with CUDA contexts, opened for acting on it: its clients, through descriptors
 * borrowed from it, and its channel groups.
 *
 * A borrowed descriptor keeps the client alive, and so the memory of a job that has ended: it is
 * closed as soon as the pidfd tells of the end (nvrm_process_ended). It also is what makes a
 * handle safe to use: as long as we have it nobody else can be given the client's number.
 *
 * One thread at a time.
 */
#ifndef GPREEMPT_GPU_NVRM_PROCESS_H
#define GPREEMPT_GPU_NVRM_PROCESS_H

#include "gpu/guard.h"
#include "gpu/nvrm/failure.h"
#include "gpu/nvrm/objects.h"
#include "gpu/nvrm/rm.h"

#define NVRM_CLIENTS 4 /* of a process, with channels */

struct nvrm_undo { /* of a group: bits of the guard's calls that */
	uint32_t enable; /* enable its channels */
	uint32_t slice; /* give its slice back */
};

struct nvrm_group {
	uint32_t gpu;
	uint32_t client, subdevice, handle;
	int fd; /* of the client; the process's */
	uint32_t id; /* of the hardware */
	bool compute; /* else its engine only copies */
	bool spared; /* the owner's to set: a hold leaves it on */
	uint32_t number; /* the owner's to set: by which he knows it */
	bool checked; /* it is nobody else's, too; until then it is left alone */
	uint64_t own_slice_us; /* what it had before us */
	uint64_t slice_us; /* what it has now */
	bool sliced; /* by us: to be given back */
	uint32_t *channels;
	size_t n_channels;
	size_t n_off; /* the first so many are disabled by us, once; others came after the hold */
	struct nvrm_undo undo;
};

struct nvrm_client {
	int fd;
	struct borrowed name; /* its number in the process, and what that points to */
	uint32_t handle;
	struct nvrm_objects objects;
	uint32_t swept; /* handles below this were looked at once more */
	int guard_slot; /* -1: none */
	unsigned int looked, seen; /* in that look: at it, and through a descriptor */
};

/*
 * What a search that found no context has learnt: the next one asks for what is newer, and not for
 * tens of thousands of numbers again. Zeroed before the first.
 */
#define NVRM_QUEST_CLIENTS 8
struct nvrm_quest {
	uint32_t newest; /* number that was asked for; 0: all are to be */
	uint32_t clients[NVRM_QUEST_CLIENTS]; /* of the process's, without channels then */
	size_t n_clients;
};

struct nvrm_look;

struct nvrm_process {
	struct nvrm *n;
	pid_t pid;
	int pidfd;
	struct guard *guard; /* NULL: nobody undoes what we leave */
	struct nvrm_client clients[NVRM_CLIENTS];
	size_t n_clients;
	struct nvrm_group *groups; /* by client and handle */
	size_t n_groups;
	uint64_t found_ns; /* when its descriptors were looked at last */
	bool doubtful; /* the driver knew less than we: all handles are to be looked at again */
	uint32_t floor; /* none of its clients was below this; 0: not known */
	bool spares_copies; /* the owner's to set: a hold leaves groups that only copy on */
	struct nvrm_quest
		*quest; /* the owner's to set, for who is tried again and again, or NULL */
	bool entrusted; /* the guard knows how to undo all that can be done to the groups */
	struct nvrm_look *look; /* that is under way, or NULL */
	unsigned int looks;
	bool opened; /* one has come to its end */
	int unanswered; /* -errno: in the newest nobody could say what it has open; or 0 */
	bool plain; /* the owner's to set: whom it shares groups with is not asked */
	bool serves; /* others compute in its context, or it looks so: MPS */
};

/* Finds its clients and groups. Refuses who shares a group with another process (MPS). */
int nvrm_process_open(struct nvrm *n, pid_t pid, struct nvrm_process **ret,
		      struct nvrm_failure *ret_failure);
/* Contexts come and go. 1: there are others than before; 0: the same. */
int nvrm_process_refresh(struct nvrm_process *p, struct nvrm_failure *ret_failure);

/*
 * The same in steps, for who has other things to do: a process can have so much to be looked at
 * that it takes minutes.
 */
int nvrm_process_begin(struct nvrm *n, pid_t pid, struct nvrm_process **ret,
		       struct nvrm_failure *ret_failure);
#define NVRM_STEP_ASKS 512u /* a millisecond or two; with less a step may come to nothing */
/*
 * Looks into it, for the first time or once more, and asks about *left times, which are counted
 * down. -EINPROGRESS: call it again; until then groups are what they were, and all may be done to
 * them. Else as nvrm_process_refresh(); who could not be opened is only good for being closed.
 */
int nvrm_process_look(struct nvrm_process *p, unsigned int *left, struct nvrm_failure *ret_failure);
/* The look that is under way cannot go on before an answer comes (nvrm_transport.hear). */
bool nvrm_process_waits(const struct nvrm_process *p);
/*
 * Forgets groups and channels that have gone, without looking for others: for who has to go on at
 * once.
 */
void nvrm_process_prune(struct nvrm_process *p);
/*
 * A group's name among those of its process: as the driver's handle, whose upper byte is the same
 * for all, with the rank of its client's handle in that one's place. Whoever knows the same clients
 * knows it by the same name.
 */
uint32_t nvrm_group_id(const struct nvrm_process *p, const struct nvrm_group *g);
struct nvrm_group *nvrm_group_find(struct nvrm_process *p, uint32_t id); /* NULL: none */
bool nvrm_process_ended(const struct nvrm_process *p);
/* Undoes what was done to it, unless it has ended, and gives everything back. Accepts NULL. */
void nvrm_process_close(struct nvrm_process *p);

/* ---- hold.c ---- */

#define NVRM_ALL_GPUS 0u

/*
 * Takes the processes off a GPU: with as few calls as there can be, compute groups of all of them
 * first; *ret_off_ns is when those are off. What is off already stays so and is not counted
 * twice. Whoever has ended is left out. Of a call of the driver that fails all whom it names are on
 * again, though it may be the fault of one.
 */
int nvrm_hold(struct nvrm_process *const *procs, size_t n, uint32_t gpu, uint64_t *ret_off_ns,
	      struct nvrm_failure *ret_failure);
/* Lets them back. */
int nvrm_let_go(struct nvrm_process *const *procs, size_t n, uint32_t gpu,
		struct nvrm_failure *ret_failure);
size_t nvrm_groups_off(const struct nvrm_process *p, uint32_t gpu);

#define NVRM_SHORT_SLICE_US 1u /* a best-effort context leaves at once when another has work */
#define NVRM_LONG_SLICE_US 50000u /* an online one stays until it is done */
#define NVRM_CUDA_SLICE_US 2048u /* what libcuda gives its compute groups */
/* How long its compute groups run before others get their turn; 0: as before us. */
int nvrm_slice(struct nvrm_process *p, uint32_t gpu, uint64_t us,
	       struct nvrm_failure *ret_failure);

/*
 * Ends whatever anybody of us left on the process: enables all its channels a few times, which
 * does no harm to those that are enabled, and gives back slices of NVRM_SHORT_SLICE_US. How many
 * groups, or -errno. Whether any was off nobody can tell.
 */
int nvrm_release_pid(struct nvrm *n, pid_t pid, struct nvrm_failure *ret_failure);

/* ---- entrust.c ---- */

/* From now on what is done to the process is undone when this one dies. Not on failure. */
int nvrm_entrust_to(struct nvrm_process *p, struct guard *guard, struct nvrm_failure *ret);
void nvrm_distrust(struct nvrm_process *p); /* no longer */

#endif
