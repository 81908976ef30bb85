/* SPDX-License-Identifier: MIT */
/*
 * From a client's objects, as they were listed, to its channel groups. Nothing here talks to a
 * driver: the same code reads recorded tables.
 */
#ifndef GPREEMPT_GPU_NVRM_OBJECTS_H
#define GPREEMPT_GPU_NVRM_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvrm_object {
	uint32_t handle, class, parent;
};

struct nvrm_objects { /* ascending by handle */
	struct nvrm_object *all;
	size_t n, room;
};

/* Keeps the order; the same handle again replaces what it was. -ENOMEM. */
int nvrm_objects_add(struct nvrm_objects *o, const struct nvrm_object *object);
const struct nvrm_object *nvrm_objects_find(const struct nvrm_objects *o, uint32_t handle);
void nvrm_objects_done(struct nvrm_objects *o);

struct nvrm_found_group {
	uint32_t handle; /* the first: it is searched for by it */
	uint32_t subdevice; /* the first child of the group's device that is one; 0: none */
	bool compute; /* one of its channels has a compute object */
	uint32_t *channels; /* handles, ascending */
	size_t n_channels;
};

/*
 * A context has four groups on each GPU and up to 128 channels. Each group costs a few questions
 * whenever it is looked at, and 64 channels a call of the firmware whenever they are held.
 */
#define NVRM_GROUPS 256u
#define NVRM_CHANNELS 2048u

/*
 * The groups that have channels, ascending by handle; *ret is freed with nvrm_found_free(). An
 * object whose parents are missing or go round in a circle belongs to nothing. How many, or
 * -ENOMEM; -ENOSPC: more of either than anybody's contexts have.
 */
int nvrm_objects_groups(const struct nvrm_objects *o, struct nvrm_found_group **ret);
void nvrm_found_free(struct nvrm_found_group *groups, size_t n);

#endif
