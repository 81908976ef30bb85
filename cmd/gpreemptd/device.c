/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/device.h"

#include <errno.h>
#include <string.h>

#include "abi/device_wire.h"
#include "cmd/gpreemptd/device_jobs.h"
#include "gpu/kfd/backend.h"
#include "gpu/kfd/kfd.h"
#include "gpu/model/live.h"
#include "util/macros.h"

struct device {
	struct gpu_backend *backend;
	struct guard *guard;
	struct live *live; /* NULL: the kernel's */
	struct device_jobs *jobs;
	bool opened;
};

static void devicep(struct device **d)
{
	device_close(*d);
}

static int open_model(struct device *d, const char *spec, sd_event *loop, const char *run_dir,
		      char *ret_why, size_t size)
{
	_cleanup_free_ char *why = NULL, *path = NULL;
	int r;

	r = live_new(spec, &d->live, &why);
	if (r < 0) {
		snprintf(ret_why, size, "no such model '%s': %s", spec ? spec : "",
			 why ? why : strerror(-r));
		return r;
	}
	if (asprintf(&path, "%s/%s", run_dir, DEVICE_SOCKET) < 0) {
		path = NULL;
		snprintf(ret_why, size, "out of memory");
		return -ENOMEM;
	}
	r = device_jobs_new(d->live, loop, path, &d->jobs);
	if (r < 0)
		snprintf(ret_why, size, "%s: %s", path, strerror(-r));
	return r;
}

static int choose(struct device *d, const char *name, sd_event *loop, const char *run_dir,
		  char *ret_why, size_t size)
{
	static const char model[] = "model:";

	if (!strcmp(name, "auto") || !strcmp(name, "kfd"))
		return 0;
	if (!strcmp(name, "model"))
		return open_model(d, NULL, loop, run_dir, ret_why, size);
	if (!strncmp(name, model, strlen(model)))
		return open_model(d, name + strlen(model), loop, run_dir, ret_why, size);
	snprintf(ret_why, size, "no such device '%s'; there are auto, kfd and model[:PRESET]",
		 name);
	return -EINVAL;
}

static int open_gkfd(struct device *d, struct gkfd **ret)
{
	void *data;

	if (d->live)
		return gkfd_new(&gkfd_transport_live, live_transport(d->live), ret);
	data = gkfd_syscall_new(NULL);
	if (!data)
		return -ENOMEM;
	return gkfd_new(&gkfd_transport_syscall, data, ret);
}

/* The driver makes this tree and its device node together. */
static bool is_present(struct gkfd *k)
{
	_cleanup_free_ char *names = NULL;

	return gkfd_list_dir(k, GKFD_TREE_SYSFS, "topology", &names) >= 0;
}

int device_take_up(struct device *d, char *ret_why, size_t size)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	char why[GPU_WHY_SIZE] = "";
	struct gkfd_backend_options options = { .guard = d->guard, .why = why };
	int r;

	if (d->backend)
		return 0;
	r = open_gkfd(d, &k);
	if (r >= 0 && !is_present(k)) {
		snprintf(ret_why, size, "no AMD GPU driver on this machine (no /dev/kfd)");
		return -ENODEV;
	}
	d->opened = !d->live;
	if (r >= 0)
		r = gkfd_backend_open(steal_ptr(&k), &options, &d->backend);
	if (r < 0)
		snprintf(ret_why, size, "cannot open the GPUs: %s", why[0] ? why : strerror(-r));
	return r;
}

void device_let_go(struct device *d)
{
	if (d->backend)
		d->backend->ops->close(d->backend);
	d->backend = NULL;
}

bool device_was_opened(const struct device *d)
{
	return d->opened;
}

bool device_counts_us(struct device *d)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	_cleanup_free_ char *names = NULL;
	char path[32];

	if (d->live || open_gkfd(d, &k) < 0)
		return false;
	snprintf(path, sizeof(path), "proc/%d", getpid());
	return gkfd_list_dir(k, GKFD_TREE_SYSFS, path, &names) >= 0;
}

int device_new(const char *name, struct guard *guard, sd_event *loop, const char *run_dir,
	       struct device **ret, char *ret_why, size_t size)
{
	_cleanup_(devicep) struct device *d = calloc(1, sizeof(*d));
	int r;

	if (!d) {
		snprintf(ret_why, size, "out of memory");
		return -ENOMEM;
	}
	d->guard = guard;
	r = choose(d, name, loop, run_dir, ret_why, size);
	if (r < 0)
		return r;
	*ret = steal_ptr(&d);
	return 0;
}

struct gpu_backend *device_backend(struct device *d)
{
	return d->backend;
}

void device_close(struct device *d)
{
	if (!d)
		return;
	device_let_go(d);
	device_jobs_free(d->jobs);
	live_unref(d->live);
	free(d);
}
