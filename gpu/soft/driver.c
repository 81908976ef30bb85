/* SPDX-License-Identifier: MIT */
#include "gpu/soft/driver.h"

#include <errno.h>
#include <string.h>

#include "gpu/kfd/driver.h"
#include "gpu/soft/transport.h"

static int fail(int error, const char *socket, struct gpu_why *ret_why)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		gpu_why_set(ret_why, GPU_WHY_ABSENT, "start one: gpreempt-softgpu SOCKET",
			    "no software GPU at %s: %s", socket, strerror(-error));
		return -ENODEV;
	case -EACCES:
	case -EUSERS:
	case -EOPNOTSUPP:
		gpu_why_set(ret_why, GPU_WHY_REFUSED, NULL, "the software GPU at %s: %s", socket,
			    error == -EOPNOTSUPP ? "it is in another pid namespace" :
						   strerror(-error));
		return error;
	default:
		return gpu_why_fail(ret_why, error, NULL);
	}
}

static int driver_open(const char *socket, void **ret, struct gpu_why *ret_why)
{
	struct gkfd *k;
	void *data;
	int r;

	if (!socket) {
		gpu_why_set(ret_why, GPU_WHY_USAGE, "soft:SOCKET",
			    "the software GPU's socket is missing");
		return -EINVAL;
	}
	r = soft_new(socket, &data);
	if (r >= 0)
		r = gkfd_new(&gkfd_transport_soft, data, &k);
	if (r < 0)
		return fail(r, socket, ret_why);
	*ret = k;
	return 0;
}

const struct gpu_driver soft_driver = {
	.name = "soft",
	.argument = ":SOCKET",
	.whose = "the software GPU's",
	.levels = "K3 K2",
	.open = driver_open,
	.close = gkfd_driver_close,
	.act = gkfd_driver_act,
	.undo = gkfd_driver_undo,
};
