/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

#define TIMES 4 /* each of ours that died may have left one */

struct enabling {
	struct nvrm_disable_channels call;
	const struct nvrm_group *g; /* the first in the call */
	int status; /* the first that was not NVRM_OK */
	uint32_t gpu; /* of that */
};

static void flush(struct nvrm *n, struct enabling *e)
{
	for (int i = 0; e->call.n > 0 && i < TIMES; i++) {
		int status = nvrm_disable_channels(n, e->g->fd, e->g->client, e->g->subdevice,
						   &e->call);

		if (status != NVRM_OK && e->status == NVRM_OK) {
			e->status = status;
			e->gpu = e->g->gpu;
		}
	}
	e->call.n = 0;
}

static void enable_group(struct nvrm *n, struct enabling *e, const struct nvrm_group *g)
{
	if (e->call.n > 0 && (e->g->client != g->client || e->g->subdevice != g->subdevice))
		flush(n, e);
	for (size_t i = 0; i < g->n_channels; i++) {
		if (e->call.n == NVRM_MAX_CHANNELS)
			flush(n, e);
		e->g = g;
		e->call.clients[e->call.n] = g->client;
		e->call.channels[e->call.n++] = g->channels[i];
	}
}

int nvrm_release_pid(struct nvrm *n, pid_t pid, struct nvrm_failure *ret_failure)
{
	struct enabling e = { .status = NVRM_OK };
	struct nvrm_process *p;
	int groups, slices, r = nvrm_process_begin(n, pid, &p, ret_failure);

	if (r < 0)
		return r;
	p->plain = true;
	r = nvrm_process_refresh(p, ret_failure);
	if (r < 0) {
		nvrm_process_close(p);
		return r;
	}
	groups = (int)p->n_groups;
	for (size_t i = 0; i < p->n_groups; i++)
		enable_group(n, &e, &p->groups[i]);
	flush(n, &e);
	slices = nvrm_slice(p, NVRM_ALL_GPUS, 0, ret_failure); /* theirs is what libcuda gives */
	nvrm_process_close(p);
	if (e.status != NVRM_OK)
		return nvrm_fail_status(ret_failure, e.status, "resuming its channels", e.gpu);
	return slices < 0 ? slices : groups;
}
