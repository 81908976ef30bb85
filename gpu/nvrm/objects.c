/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvrm.h"
#include "gpu/nvrm/objects.h"
#include "util/array.h"
#include "util/macros.h"

#define DEEPEST 16 /* an object of a channel is four below the client */
#define GROUP NVRM_CLASS_CHANNEL_GROUP
#define CHANNEL 0u /* in the place of a class: of any generation */

/* Where @handle is, or would be. */
static size_t position(const struct nvrm_objects *o, uint32_t handle)
{
	size_t low = 0, high = o->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->all[middle].handle < handle)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int nvrm_objects_add(struct nvrm_objects *o, const struct nvrm_object *object)
{
	size_t at = position(o, object->handle);

	if (at < o->n && o->all[at].handle == object->handle) {
		o->all[at] = *object;
		return 0;
	}
	if (array_reserve(&o->all, o->n + 1, &o->room, sizeof(*o->all)) < 0)
		return -ENOMEM;
	memmove(&o->all[at + 1], &o->all[at], (o->n - at) * sizeof(*o->all));
	o->all[at] = *object;
	o->n++;
	return 0;
}

const struct nvrm_object *nvrm_objects_find(const struct nvrm_objects *o, uint32_t handle)
{
	size_t at = position(o, handle);

	return at < o->n && o->all[at].handle == handle ? &o->all[at] : NULL;
}

void nvrm_objects_done(struct nvrm_objects *o)
{
	free(o->all);
	*o = (struct nvrm_objects){ 0 };
}

static bool is_of(const struct nvrm_object *object, uint32_t class)
{
	return class == CHANNEL ? NVRM_IS_CHANNEL(object->class) : object->class == class;
}

/* The nearest above @object that is of @class; NULL where the way up is broken or has no end. */
static const struct nvrm_object *above(const struct nvrm_objects *o,
				       const struct nvrm_object *object, uint32_t class)
{
	for (int depth = 0; object && depth < DEEPEST; depth++) {
		object = nvrm_objects_find(o, object->parent);
		if (object && is_of(object, class))
			return object;
	}
	return NULL;
}

static uint32_t subdevice_of(const struct nvrm_objects *o, const struct nvrm_object *group)
{
	const struct nvrm_object *device = above(o, group, NVRM_CLASS_DEVICE);

	for (size_t i = 0; device && i < o->n; i++) {
		if (o->all[i].class == NVRM_CLASS_SUBDEVICE && o->all[i].parent == device->handle)
			return o->all[i].handle;
	}
	return 0;
}

static struct nvrm_found_group *found_group(struct nvrm_found_group *groups, size_t n,
					    const struct nvrm_object *group)
{
	return group ? bsearch(&group->handle, groups, n, sizeof(*groups), compare_u32) : NULL;
}

static int add_channel(struct nvrm_found_group *g, uint32_t handle)
{
	uint32_t *grown = reallocarray(g->channels, g->n_channels + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	g->channels = grown;
	g->channels[g->n_channels++] = handle;
	return 0;
}

/* Channels are added to their groups, and what they compute with is noted. */
static int sort_in(const struct nvrm_objects *o, struct nvrm_found_group *groups, size_t n)
{
	size_t channels = 0;

	for (size_t i = 0; i < o->n; i++) {
		const struct nvrm_object *object = &o->all[i], *channel;
		struct nvrm_found_group *g;

		if (is_of(object, CHANNEL)) {
			g = found_group(groups, n, above(o, object, GROUP));
			if (g && ++channels > NVRM_CHANNELS)
				return -ENOSPC;
			if (g && add_channel(g, object->handle) < 0)
				return -ENOMEM;
		} else if (NVRM_IS_COMPUTE(object->class)) {
			channel = above(o, object, CHANNEL);
			g = found_group(groups, n, above(o, channel, GROUP));
			if (g)
				g->compute = true;
		}
	}
	return 0;
}

static size_t without_empty(struct nvrm_found_group *groups, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (groups[i].n_channels > 0)
			groups[kept++] = groups[i];
	}
	return kept;
}

int nvrm_objects_groups(const struct nvrm_objects *o, struct nvrm_found_group **ret)
{
	struct nvrm_found_group *groups;
	size_t n = 0, room = 1;
	int r;

	for (size_t i = 0; i < o->n; i++)
		room += is_of(&o->all[i], GROUP);
	if (room > NVRM_GROUPS + 1)
		return -ENOSPC;
	groups = calloc(room, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		if (!is_of(&o->all[i], GROUP))
			continue;
		groups[n].handle = o->all[i].handle;
		groups[n++].subdevice = subdevice_of(o, &o->all[i]);
	}
	r = sort_in(o, groups, n);
	if (r < 0) {
		nvrm_found_free(groups, n);
		return r;
	}
	*ret = groups;
	return (int)without_empty(groups, n);
}

void nvrm_found_free(struct nvrm_found_group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(groups[i].channels);
	free(groups);
}
