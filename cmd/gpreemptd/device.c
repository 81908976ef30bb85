/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/device.h"

#include <errno.h>
#include <string.h>

#include "abi/device_wire.h"
#include "cmd/gpreemptd/events.h"
#include "gpu/helpers/readers.h"
#include "gpu/kfd/backend.h"
#include "gpu/kfd/kfd.h"
#include "gpu/kfd/procs.h"
#include "gpu/nvrm/backend.h"
#include "gpu/nvrm/machine.h"
#include "gpu/soft/started.h"
#include "gpu/soft/transport.h"
#include "util/macros.h"

#define NO_KFD "no AMD GPU driver on this machine (no /dev/kfd)"

enum kind { KIND_AUTO, KIND_KFD, KIND_NVRM, KIND_SOFT };

struct device {
	enum kind kind;
	enum gkfd_ext_use ext;
	bool leveled; /* somebody wants a level, which only one driver has */
	struct gpu_backend *backend;
	struct guard *guard;
	char *socket; /* of a software GPU */
	struct softgpu_child *model; /* NULL: it is not ours */
	char tested[sizeof(((struct nvrm_version *)0)->text)]; /* version of NVIDIA's driver */
	char why[GPU_WHY_SIZE]; /* it failed last */
};

static int out_of_memory(struct device *d)
{
	snprintf(d->why, sizeof(d->why), "out of memory");
	return -ENOMEM;
}

/* A software GPU of our own, in the run directory, where jobs look for it. */
static int start_model(struct device *d, const char *preset, const char *run_dir)
{
	if (asprintf(&d->socket, "%s/%s", run_dir, DEVICE_SOCKET) < 0) {
		d->socket = NULL;
		return out_of_memory(d);
	}
	return softgpu_start(preset, d->socket, &d->model, d->why, sizeof(d->why));
}

/* K1 would outlive its owner and is for single holds. */
static int choose_level(struct device *d, const char *level)
{
	d->leveled = level;
	d->ext = GKFD_EXT_IF_PRESENT;
	if (!level)
		return 0;
	d->ext = strcasecmp(level, "K3") == 0 ? GKFD_EXT_ONLY : GKFD_EXT_NEVER;
	if (d->kind != KIND_NVRM && (d->ext == GKFD_EXT_ONLY || !strcasecmp(level, "K2")))
		return 0;
	snprintf(d->why, sizeof(d->why), "no level '%s' for a daemon; AMD's driver has K3 and K2",
		 level);
	return -EINVAL;
}

static int choose(struct device *d, const char *name, const char *run_dir)
{
	static const char model[] = "model:", soft[] = "soft:";

	d->kind = KIND_SOFT;
	if (!strcmp(name, "auto"))
		d->kind = KIND_AUTO;
	else if (!strcmp(name, "kfd"))
		d->kind = KIND_KFD;
	else if (!strcmp(name, "nvrm"))
		d->kind = KIND_NVRM;
	if (d->kind != KIND_SOFT)
		return 0;
	if (!strncmp(name, soft, strlen(soft))) {
		d->socket = strdup(name + strlen(soft));
		return d->socket ? 0 : out_of_memory(d);
	}
	if (!strcmp(name, "model"))
		return start_model(d, NULL, run_dir);
	if (!strncmp(name, model, strlen(model)))
		return start_model(d, name + strlen(model), run_dir);
	snprintf(d->why, sizeof(d->why),
		 "no such device '%s'; there are auto, kfd, nvrm, model[:PRESET] and soft:SOCKET",
		 name);
	return -EINVAL;
}

static int open_gkfd(struct device *d, struct gkfd **ret)
{
	void *data = NULL;
	int r;

	if (d->kind == KIND_SOFT) {
		r = soft_new(d->socket, &data);
		return r < 0 ? r : gkfd_new(&gkfd_transport_soft, data, ret);
	}
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

static int fail(struct device *d, int error, const char *why)
{
	if (error == -ENODEV)
		snprintf(d->why, sizeof(d->why), "%s", why);
	else
		snprintf(d->why, sizeof(d->why), "cannot open the GPUs: %s",
			 why[0] ? why : strerror(-error));
	return error;
}

/* -ENODEV: there is no such driver. */
static int take_up_kfd(struct device *d)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	char why[GPU_WHY_SIZE] = "";
	struct gkfd_backend_options options = {
		.ext = d->ext,
		.by_readers = d->kind != KIND_SOFT,
		.by_holders = d->kind != KIND_SOFT,
		.guard = d->guard,
		.why = why,
	};
	int r;

	r = open_gkfd(d, &k);
	if (r == -ENOENT || r == -ECONNREFUSED) {
		snprintf(why, sizeof(why), "no software GPU at %s", d->socket);
		return fail(d, -ENODEV, why);
	}
	if (r >= 0 && !is_present(k))
		return fail(d, -ENODEV, NO_KFD);
	if (r >= 0)
		r = gkfd_backend_open(steal_ptr(&k), &options, &d->backend);
	if (r < 0)
		return fail(d, r, why);
	if (why[0])
		log_line(LOG_LEVEL_WARNING, "level %s, not K3: %s", d->backend->caps.level, why);
	return 0;
}

/* What it asks of processes readers ask, its own and on one thread. */
static int open_nvrm(struct nvrm **ret, char *why, size_t size)
{
	_cleanup_(nvrm_freep) struct nvrm *n = NULL;
	void *data = nvrm_syscall_new(NULL);
	int r = data ? nvrm_new(&nvrm_transport_syscall, data, &n) : -ENOMEM;

	if (r >= 0)
		r = nvrm_syscall_by_readers(data);
	if (r == -ENOPKG)
		snprintf(why, size, "%s", "the program " READER_PROGRAM " is not installed");
	if (r < 0)
		return r;
	*ret = steal_ptr(&n);
	return 0;
}

/* The same. A driver that was tried on a context of our own is not tried again. */
static int take_up_nvrm(struct device *d)
{
	_cleanup_(nvrm_freep) struct nvrm *n = NULL;
	char why[GPU_WHY_SIZE] = "";
	struct nvrm_backend_options options = { .guard = d->guard, .by_readers = true, .why = why };
	struct nvrm_version version = { 0 };
	int r = open_nvrm(&n, why, sizeof(why));

	if (r >= 0)
		r = open_nvrm(&options.finder, why, sizeof(why));
	if (r >= 0 && nvrm_read_version(n, &version) >= 0)
		options.untested = !strcmp(version.text, d->tested);
	if (r >= 0)
		r = nvrm_backend_open(steal_ptr(&n), &options, &d->backend);
	if (r < 0)
		return fail(d, r, why);
	if (why[0])
		log_line(LOG_LEVEL_WARNING,
			 "the driver could not be tried on a context of our own first: %s", why);
	else
		memcpy(d->tested, version.text, sizeof(d->tested));
	return 0;
}

/* Of two vendors' GPUs in one machine a daemon has AMD's. */
static void tell_others(void)
{
	_cleanup_(nvrm_freep) struct nvrm *n = NULL;
	struct nvrm_version version;
	void *data = nvrm_syscall_new(NULL);

	if (data && nvrm_new(&nvrm_transport_syscall, data, &n) >= 0 &&
	    nvrm_read_version(n, &version) >= 0)
		log_line(LOG_LEVEL_WARNING,
			 "NVIDIA's GPUs are left alone: they need a daemon of their own, started "
			 "with --device nvrm and another --run-dir");
}

int device_take_up(struct device *d)
{
	int r = -ENODEV;

	if (d->backend)
		return 0;
	if (d->kind == KIND_NVRM)
		return take_up_nvrm(d);
	r = take_up_kfd(d);
	if (d->kind == KIND_AUTO && r >= 0)
		tell_others();
	if (d->kind != KIND_AUTO || r != -ENODEV || d->leveled)
		return r;
	r = take_up_nvrm(d);
	if (r == -ENODEV)
		return fail(d, r,
			    "no GPU driver on this machine: neither AMD's (/dev/kfd) nor NVIDIA's "
			    "(/dev/nvidiactl)");
	return r;
}

void device_let_go(struct device *d)
{
	if (d->backend)
		d->backend->ops->close(d->backend);
	d->backend = NULL;
}

bool device_counts_ended(struct device *d)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;
	uid_t user;

	if (d->kind == KIND_SOFT || d->kind == KIND_NVRM || open_gkfd(d, &k) < 0 ||
	    gkfd_proc_list(k, &pids, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (readers_user_of(pids[i], &user) == -ESRCH)
			return true;
	}
	return false;
}

int device_new(const struct daemon_options *options, struct guard *guard, struct device **ret)
{
	struct device *d = calloc(1, sizeof(*d));
	int r;

	*ret = d;
	if (!d)
		return -ENOMEM;
	d->guard = guard;
	r = choose(d, options->device, options->run_dir);
	return r < 0 ? r : choose_level(d, options->level);
}

const char *device_why(const struct device *d)
{
	return d ? d->why : "out of memory";
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
	softgpu_end(d->model);
	free(d->socket);
	free(d);
}
