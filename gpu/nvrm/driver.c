/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/driver.h"

#include <errno.h>
#include <string.h>

#include "gpu/helpers/readers.h"
#include "gpu/nvrm/backend.h"
#include "gpu/nvrm/machine.h"
#include "gpu/nvrm/process.h"
#include "util/macros.h"

static int driver_open(const char *argument, void **ret, struct gpu_why *ret_why)
{
	const struct nvrm_failure absent = { .why = NVRM_WHY_NO_DRIVER };
	_cleanup_(nvrm_freep) struct nvrm *n = NULL;
	struct nvrm_version version;
	void *data = nvrm_syscall_new(NULL);
	int r = data ? nvrm_new(&nvrm_transport_syscall, data, &n) : -ENOMEM;

	if (r < 0)
		return gpu_why_fail(ret_why, r, NULL);
	if (nvrm_read_version(n, &version) == -ENOENT) {
		nvrm_failure_describe(-ENODEV, 0, &absent, ret_why);
		return -ENODEV;
	}
	*ret = steal_ptr(&n);
	return 0;
}

static void driver_close(void *data)
{
	nvrm_free(data);
}

/* What it asks of processes readers ask, its own and on one thread. */
static int open_by_readers(bool watches, struct nvrm **ret, struct gpu_why *ret_why)
{
	_cleanup_(nvrm_freep) struct nvrm *n = NULL;
	void *data = nvrm_syscall_new(NULL);
	int r = data ? nvrm_new(&nvrm_transport_syscall, data, &n) : -ENOMEM;

	if (r >= 0 && watches)
		nvrm_syscall_watch(data);
	if (r >= 0)
		r = nvrm_syscall_by_readers(data);
	if (r < 0)
		return gpu_why_fail(
			ret_why, r,
			r == -ENOPKG ? "the program " READER_PROGRAM " is not installed" : NULL);
	*ret = steal_ptr(&n);
	return 0;
}

/* A driver that was tried on a context of our own is not tried again. */
static int serve(struct nvrm *n, const struct gpu_way *way, struct gpu_backend **ret,
		 struct gpu_why *ret_why)
{
	_cleanup_(nvrm_freep) struct nvrm *worker = NULL;
	struct nvrm_backend_options options = {
		.guard = way->guard,
		.by_readers = true,
		.why = ret_why,
	};
	struct nvrm_version version = { 0 };
	int r = open_by_readers(false, &worker, ret_why);

	if (r >= 0)
		r = open_by_readers(true, &options.finder, ret_why);
	if (r < 0)
		return r;
	if (nvrm_read_version(n, &version) >= 0)
		options.untested = !strcmp(version.text, way->tried);
	r = nvrm_backend_open(steal_ptr(&worker), &options, ret);
	if (r >= 0 && !ret_why->kind)
		snprintf(way->tried, GPU_TRIED_SIZE, "%s", version.text);
	return r;
}

static int driver_act(void *data, const struct gpu_way *way, struct gpu_backend **ret,
		      struct gpu_why *ret_why)
{
	struct nvrm_backend_options options = {
		.guard = way->guard,
		.untested = true,
		.why = ret_why,
	};

	if (way->serves)
		return serve(data, way, ret, ret_why);
	return nvrm_backend_open(nvrm_ref(data), &options, ret);
}

static bool lives(struct nvrm *n, const struct gpu_leftover *left)
{
	_cleanup_free_ char *text = NULL;
	struct proc_stat stat;
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%d/stat", left->pid);
	return n->transport->read_proc(n->data, path, &text, &len) >= 0 &&
	       proc_stat_parse(text, len, &stat) >= 0 && stat.start_ticks == left->start_ticks;
}

static int driver_undo(void *data, const struct gpu_leftover *left)
{
	struct nvrm_failure failure = { 0 };
	int r;

	if (!lives(data, left))
		return -ESRCH;
	r = nvrm_release_pid(data, left->pid, &failure);
	if (r == -ESRCH ||
	    (r < 0 && (failure.why == NVRM_WHY_NO_DRIVER || failure.why == NVRM_WHY_EXITED ||
		       failure.why == NVRM_WHY_NO_CONTEXT)))
		return 0;
	return r;
}

const struct gpu_driver nvrm_driver = {
	.name = "nvrm",
	.argument = "",
	.whose = "NVIDIA's",
	.node = "nvidiactl",
	.module = "nvidia",
	.levels = "N2",
	.open = driver_open,
	.close = driver_close,
	.act = driver_act,
	.undo = driver_undo,
};
