/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/device.h"

#include <errno.h>
#include <string.h>

#include "abi/device_wire.h"
#include "cmd/gpreemptd/events.h"
#include "gpu/driver.h"
#include "gpu/soft/driver.h"
#include "gpu/soft/started.h"
#include "util/macros.h"

/* A software GPU of our own. */
static const struct gpu_driver model = { .name = "model", .argument = "[:PRESET]" };

struct device {
	const struct gpu_driver *driver; /* NULL: the first that is there */
	const struct gpu_driver *taken; /* the one that was taken up last */
	const char *argument;
	const char *level; /* NULL: the best there is */
	struct gpu_backend *backend;
	struct guard *guard;
	char *socket; /* of a software GPU of our own */
	struct softgpu_child *child; /* the same */
	char tried[GPU_TRIED_SIZE];
	struct gpu_why why; /* it failed last */
};

static int start_model(struct device *d, const char *preset, const char *run_dir)
{
	d->driver = &soft_driver;
	if (asprintf(&d->socket, "%s/%s", run_dir, DEVICE_SOCKET) < 0) {
		d->socket = NULL;
		return gpu_why_fail(&d->why, -ENOMEM, NULL);
	}
	d->argument = d->socket;
	return softgpu_start(preset, d->socket, &d->child, d->why.message, sizeof(d->why.message));
}

static int choose(struct device *d, const char *name, const char *run_dir)
{
	const char *preset;
	char names[128];

	if (!strcmp(name, "auto"))
		return 0;
	if (gpu_driver_is(&model, name, &preset))
		return start_model(d, preset, run_dir);
	d->driver = gpu_driver_named(name, &d->argument);
	if (d->driver)
		return 0;
	gpu_driver_list(names, sizeof(names));
	gpu_why_set(&d->why, GPU_WHY_USAGE, NULL, "no such device '%s'; there are auto, %s%s, %s",
		    name, model.name, model.argument, names);
	return -EINVAL;
}

/* The driver is left alone again when the backend is closed: that has all it needs. */
static int take_up(struct device *d, const struct gpu_driver *driver, void *data)
{
	const struct gpu_way way = {
		.level = d->level,
		.guard = d->guard,
		.serves = true,
		.tried = d->tried,
	};
	int r;

	d->why = (struct gpu_why){ 0 };
	d->taken = driver;
	r = driver->act(data, &way, &d->backend, &d->why);
	driver->close(data);
	if (r >= 0 && d->why.kind)
		log_line(LOG_LEVEL_WARNING, "level %s: %s", d->backend->caps.level, d->why.message);
	return r;
}

/* Of several vendors' GPUs in one machine a daemon has the first's. */
static void tell_others(const struct gpu_driver *taken)
{
	for (const struct gpu_driver *const *d = gpu_drivers; *d; d++) {
		struct gpu_why why;
		void *data;

		if (*d == taken || !(*d)->module || (*d)->open(NULL, &data, &why) < 0)
			continue;
		(*d)->close(data);
		log_line(LOG_LEVEL_WARNING,
			 "%s GPUs are left alone: they need a daemon of their own, started with "
			 "--device %s and another --run-dir",
			 (*d)->whose, (*d)->name);
	}
}

int device_take_up(struct device *d)
{
	const struct gpu_driver *driver = d->driver;
	void *data;
	int r;

	if (d->backend)
		return 0;
	if (driver)
		r = driver->open(d->argument, &data, &d->why);
	else
		r = gpu_driver_open_any(d->level, &driver, &data, &d->why);
	if (r >= 0)
		r = take_up(d, driver, data);
	if (r >= 0 && !d->driver)
		tell_others(driver);
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
	struct gpu_why why;
	bool counts;
	void *data;

	if (!d->taken || !d->taken->counts_ended || d->taken->open(d->argument, &data, &why) < 0)
		return false;
	counts = d->taken->counts_ended(data);
	d->taken->close(data);
	return counts;
}

int device_new(const struct daemon_options *options, struct guard *guard, struct device **ret)
{
	struct device *d = calloc(1, sizeof(*d));
	int r;

	*ret = d;
	if (!d)
		return -ENOMEM;
	d->guard = guard;
	d->level = options->level;
	r = choose(d, options->device, options->run_dir);
	return r < 0 || !d->level ? r : gpu_driver_check_level(d->driver, d->level, &d->why);
}

const char *device_why(const struct device *d)
{
	return d ? d->why.message : "out of memory";
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
	softgpu_end(d->child);
	free(d->socket);
	free(d);
}
