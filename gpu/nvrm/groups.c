/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

bool nvrm_slice_is_ours(uint64_t us)
{
	return us <= NVRM_SHORT_SLICE_US || us == NVRM_LONG_SLICE_US;
}

void nvrm_groups_free(struct nvrm_group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(groups[i].channels);
	free(groups);
}

static struct nvrm_group *known_group(struct nvrm_process *p, const struct nvrm_group *g)
{
	for (size_t i = 0; i < p->n_groups; i++) {
		struct nvrm_group *known = &p->groups[i];

		if (known->client == g->client && known->handle == g->handle &&
		    known->subdevice == g->subdevice && known->gpu == g->gpu && known->id == g->id)
			return known;
	}
	return NULL;
}

static bool has_channel(const uint32_t *channels, size_t n, uint32_t handle)
{
	for (size_t i = 0; i < n; i++) {
		if (channels[i] == handle)
			return true;
	}
	return false;
}

/*
 * Those that are disabled stay the first. True: there are others than before. Both lists are
 * short: a context has as many as CUDA_DEVICE_MAX_CONNECTIONS, 32 at most.
 */
static bool carry_channels(struct nvrm_group *g, const struct nvrm_group *known,
			   const struct nvrm_found_group *found)
{
	size_t n = 0, n_off = 0;

	for (size_t i = 0; i < known->n_channels; i++) {
		if (!has_channel(found->channels, found->n_channels, known->channels[i]))
			continue;
		g->channels[n++] = known->channels[i];
		n_off += i < known->n_off;
	}
	g->n_off = n_off;
	if (n == found->n_channels)
		return n != known->n_channels;
	for (size_t i = 0; i < found->n_channels; i++) {
		if (!has_channel(known->channels, known->n_channels, found->channels[i]))
			g->channels[n++] = found->channels[i];
	}
	return true;
}

/* A status or -errno. */
static int ask(struct nvrm *n, struct nvrm_group *g)
{
	int r = nvrm_get_gpu(n, g->fd, g->client, g->subdevice, &g->gpu);

	return r == NVRM_OK ? nvrm_get_group_id(n, g->fd, g->client, g->handle, &g->id) : r;
}

static int ask_slice(struct nvrm *n, struct nvrm_group *g)
{
	int r = nvrm_get_timeslice(n, g->fd, g->client, g->handle, &g->slice_us);

	g->own_slice_us = g->slice_us;
	if (r == NVRM_OK && g->compute && nvrm_slice_is_ours(g->slice_us))
		g->own_slice_us = NVRM_CUDA_SLICE_US;
	return r;
}

/* What is known of the group, or what the driver says of a new one. */
static int make_group(struct nvrm_process *p, const struct nvrm_found_group *found,
		      struct nvrm_group *g, bool *changed)
{
	const struct nvrm_group *known;
	int r = ask(p->n, g);

	if (r != NVRM_OK)
		return r;
	g->channels = calloc(found->n_channels, sizeof(*g->channels));
	if (!g->channels)
		return -ENOMEM;
	g->n_channels = found->n_channels;
	known = known_group(p, g);
	if (known) {
		g->own_slice_us = known->own_slice_us;
		g->slice_us = known->slice_us;
		g->sliced = known->sliced;
		g->spared = known->spared;
		g->number = known->number;
		g->checked = known->checked;
		g->undo = known->undo;
		*changed |= carry_channels(g, known, found) || known->compute != g->compute;
		return NVRM_OK;
	}
	*changed = true;
	memcpy(g->channels, found->channels, found->n_channels * sizeof(*g->channels));
	return ask_slice(p->n, g);
}

bool nvrm_group_is_there(struct nvrm *n, const struct nvrm_group *g)
{
	uint32_t class, parent;

	return nvrm_get_object(n, g->fd, g->client, g->handle, &class, &parent) == NVRM_OK &&
	       class == NVRM_CLASS_CHANNEL_GROUP;
}

struct made {
	struct nvrm_group *groups;
	size_t n;
	bool changed;
};

/* Since the objects were listed; @status is what it, or something above it, was refused with. */
static bool has_ended(struct nvrm *n, const struct nvrm_client *c, uint32_t group, int status)
{
	uint32_t class, parent;

	if (status != NVRM_OBJECT_NOT_FOUND && status != NVRM_INVALID_CLIENT)
		return false;
	return nvrm_client_is_there(n, c) == 0 ||
	       nvrm_get_object(n, c->fd, c->handle, group, &class, &parent) ==
		       NVRM_OBJECT_NOT_FOUND;
}

/* One that has ended is none, one without a GPU is of no use. */
static int add_group(struct nvrm_process *p, const struct nvrm_client *c,
		     const struct nvrm_found_group *found, struct made *m, struct nvrm_failure *f)
{
	struct nvrm_group *grown, g = {
		.client = c->handle,
		.fd = c->fd,
		.subdevice = found->subdevice,
		.handle = found->handle,
		.compute = found->compute,
	};
	int r;

	if (!found->subdevice)
		return 0;
	r = make_group(p, found, &g, &m->changed);
	if (r != NVRM_OK) {
		free(g.channels);
		if (has_ended(p->n, c, g.handle, r))
			return 0;
		return nvrm_fail_status(f, r, "asking about its channel groups", g.gpu);
	}
	grown = reallocarray(m->groups, m->n + 1, sizeof(*grown));
	if (!grown) {
		free(g.channels);
		return nvrm_fail(f, -ENOMEM, NVRM_WHY_SYSTEM, NULL);
	}
	m->groups = grown;
	m->groups[m->n++] = g;
	return 0;
}

static int add_groups(struct nvrm_process *p, const struct nvrm_client *c, struct made *m,
		      struct nvrm_failure *f)
{
	struct nvrm_found_group *found;
	int n = nvrm_objects_groups(&c->objects, &found), r = 0;

	if (n < 0)
		return nvrm_fail(f, n, n == -ENOSPC ? NVRM_WHY_TOO_MANY : NVRM_WHY_SYSTEM, NULL);
	for (int i = 0; i < n && r >= 0; i++)
		r = add_group(p, c, &found[i], m, f);
	nvrm_found_free(found, (size_t)n);
	return r;
}

int nvrm_groups_update(struct nvrm_process *p, struct nvrm_failure *ret_failure)
{
	struct made m = { 0 };

	for (size_t i = 0; i < p->n_clients; i++) {
		int r = add_groups(p, &p->clients[i], &m, ret_failure);

		if (r < 0) {
			nvrm_groups_free(m.groups, m.n);
			return r;
		}
	}
	m.changed |= m.n != p->n_groups;
	nvrm_groups_free(p->groups, p->n_groups);
	p->groups = m.groups;
	p->n_groups = m.n;
	if (m.changed)
		p->entrusted = false;
	return m.changed;
}

/* Those that are disabled stay the first. True: some have gone. */
static bool prune_channels(struct nvrm *n, struct nvrm_group *g)
{
	size_t kept = 0, n_off = 0;
	bool gone;

	for (size_t i = 0; i < g->n_channels; i++) {
		uint32_t class, parent;
		int r = nvrm_get_object(n, g->fd, g->client, g->channels[i], &class, &parent);

		if (r == NVRM_OBJECT_NOT_FOUND || (r == NVRM_OK && !NVRM_IS_CHANNEL(class)))
			continue;
		n_off += i < g->n_off;
		g->channels[kept++] = g->channels[i];
	}
	gone = kept != g->n_channels;
	g->n_channels = kept;
	g->n_off = n_off;
	return gone;
}

/* Also where another one has its handle by now. What the driver does not tell is no sign of it. */
static bool has_gone(struct nvrm *n, const struct nvrm_group *g)
{
	uint32_t class, parent, id;
	int r = nvrm_get_object(n, g->fd, g->client, g->handle, &class, &parent);

	if (r != NVRM_OK)
		return r == NVRM_OBJECT_NOT_FOUND;
	return class != NVRM_CLASS_CHANNEL_GROUP ||
	       (nvrm_get_group_id(n, g->fd, g->client, g->handle, &id) == NVRM_OK && id != g->id);
}

void nvrm_process_prune(struct nvrm_process *p)
{
	size_t kept = 0;
	bool gone = false;

	nvrm_process_check(p);
	for (size_t i = 0; i < p->n_groups; i++) {
		struct nvrm_group *g = &p->groups[i];

		gone |= prune_channels(p->n, g);
		if (g->n_channels > 0 && !has_gone(p->n, g))
			p->groups[kept++] = *g;
		else
			free(g->channels);
	}
	gone |= kept != p->n_groups;
	p->n_groups = kept;
	p->doubtful = true;
	if (gone)
		p->entrusted = false;
}
