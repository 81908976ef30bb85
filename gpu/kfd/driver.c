/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/driver.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gpu/helpers/readers.h"
#include "gpu/kfd/backend.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "util/macros.h"

static int driver_open(const char *argument, void **ret, struct gpu_why *ret_why)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	_cleanup_free_ char *names = NULL;
	int r = gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(NULL), &k);

	if (r < 0)
		return gpu_why_fail(ret_why, r, NULL);
	/* The driver makes this tree and its device node together. */
	if (gkfd_list_dir(k, GKFD_TREE_SYSFS, "topology", &names) < 0) {
		gpu_why_set(ret_why, GPU_WHY_ABSENT,
			    "load amdgpu, or try without a GPU: --device model",
			    "no AMD GPU driver on this machine (no /dev/kfd)");
		return -ENODEV;
	}
	*ret = steal_ptr(&k);
	return 0;
}

void gkfd_driver_close(void *data)
{
	gkfd_free(data);
}

static bool is_level(const struct gpu_way *way, const char *level)
{
	return way->level && !strcasecmp(way->level, level);
}

static enum gkfd_ext_use use_of_ext(const struct gpu_way *way)
{
	if (!way->level)
		return GKFD_EXT_IF_PRESENT;
	return is_level(way, "K3") ? GKFD_EXT_ONLY : GKFD_EXT_NEVER;
}

/* On a software device nobody can hang: no helpers. */
int gkfd_driver_act(void *data, const struct gpu_way *way, struct gpu_backend **ret,
		    struct gpu_why *ret_why)
{
	struct gkfd *k = data;
	bool by_helpers = way->serves && !k->transport->modelled;
	const struct gkfd_backend_options options = {
		.ext = use_of_ext(way),
		.way = is_level(way, "K1") ? GKFD_BY_PAUSE : GKFD_BY_DEBUG,
		.by_readers = by_helpers,
		.by_holders = by_helpers,
		.guard = way->guard,
		.named_only = !way->serves,
		.follows = way->serves,
		.why = ret_why,
	};

	return gkfd_backend_open(gkfd_ref(k), &options, ret);
}

/* Whoever traces it is a holder that is letting go, or no process of ours. */
static int release(struct gkfd *k, const struct gkfd_proc_ident *ident)
{
	struct gkfd_failure failure = { 0 };
	int r = gkfd_open_device(k);

	if (r == -ENOENT || r == -ENODEV || r == -ENXIO)
		return 0; /* what it held is held no more */
	if (r < 0)
		return r;
	if (ident->tracer_pid)
		return 0;
	r = gkfd_release_pid(k, ident->pid, &failure);
	if (r == -ESRCH ||
	    (r < 0 && (failure.why == GKFD_WHY_TRACED || failure.why == GKFD_WHY_NO_KFD_PROCESS)))
		return 0;
	return r;
}

int gkfd_driver_undo(void *data, const struct gpu_leftover *left)
{
	struct gkfd_proc_ident ident;

	if (!strcmp(left->level, "K3")) /* what was held by an open device ended with it */
		return -ESRCH;
	if (gkfd_proc_identify(data, left->pid, &ident) < 0 ||
	    ident.start_ticks != left->start_ticks || ident.state == 'Z' || ident.state == 'X')
		return -ESRCH;
	return release(data, &ident);
}

/* From when it first opens the device until some time after its memory is gone. */
static bool counts_ended(void *data)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	uid_t user;

	if (gkfd_proc_list(data, &pids, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (readers_user_of(pids[i], &user) == -ESRCH)
			return true;
	}
	return false;
}

const struct gpu_driver gkfd_driver = {
	.name = "kfd",
	.argument = "",
	.whose = "AMD's",
	.node = "kfd",
	.module = "amdgpu",
	.levels = "K3 K2",
	.open = driver_open,
	.close = gkfd_driver_close,
	.act = gkfd_driver_act,
	.undo = gkfd_driver_undo,
	.counts_ended = counts_ended,
};
