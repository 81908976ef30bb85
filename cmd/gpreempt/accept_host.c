/* SPDX-License-Identifier: MIT */
/* The machine, as far as it matters to somebody who reads a report of it elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cmd/gpreempt/accept.h"

static const char *basis(const struct accept *a)
{
	if (gpreempt_is_modelled(a->cli->ctx))
		return "modelled: all times are those of a model, none of a GPU";
	if (a->not_hardware)
		return "modelled: a software GPU is behind the driver, as in a virtual machine";
	return "measured on this machine's GPU";
}

static void print_gpu(FILE *f, const struct gpreempt_gpu *g)
{
	fprintf(f, "GPU %u: id %u", g->index, g->gpu_id);
	if (g->valid & GPREEMPT_GPU_GFX)
		fprintf(f, ", %s", g->gfx);
	if (g->valid & GPREEMPT_GPU_XCC)
		fprintf(f, ", %u XCC", g->xcc);
	if (g->valid & GPREEMPT_GPU_CU)
		fprintf(f, ", %u CU", g->cu);
	if (g->valid & GPREEMPT_GPU_HQD_TOTAL)
		fprintf(f, ", %u slots", g->hqd_total);
	if (g->valid & GPREEMPT_GPU_SCHEDULER)
		fprintf(f, ", %s", g->scheduler);
	if (g->valid & GPREEMPT_GPU_FIRMWARE)
		fprintf(f, ", MEC firmware %u", g->fw_version);
	fprintf(f, "\n");
}

void host_print(const struct accept *a, FILE *f)
{
	const struct gpreempt_device_info *info = &a->device;
	struct utsname name = { 0 };

	fprintf(f, "basis: %s\n", basis(a));
	if (uname(&name) == 0)
		fprintf(f, "kernel: %s %s, %s\n", name.sysname, name.release, name.machine);
	fprintf(f, "device: %s", info->name);
	if (info->valid & GPREEMPT_DEVICE_VERSION)
		fprintf(f, ", interface %u.%u", info->kfd_major, info->kfd_minor);
	if (info->valid & GPREEMPT_DEVICE_DRIVER)
		fprintf(f, ", amdgpu %s", info->driver_version);
	fprintf(f, "\n");
	for (size_t i = 0; i < a->n_gpus; i++)
		print_gpu(f, &a->gpus[i]);
}

static struct json_object *gpu_to_json(const struct gpreempt_gpu *g)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "gpu_id", g->gpu_id);
	if (g->valid & GPREEMPT_GPU_GFX)
		json_add_string(o, "gfx", g->gfx);
	if (g->valid & GPREEMPT_GPU_XCC)
		json_add_uint(o, "xcc", g->xcc);
	if (g->valid & GPREEMPT_GPU_CU)
		json_add_uint(o, "cu", g->cu);
	if (g->valid & GPREEMPT_GPU_FIRMWARE)
		json_add_uint(o, "fw_version", g->fw_version);
	return o;
}

struct json_object *host_to_json(const struct accept *a)
{
	const struct gpreempt_device_info *info = &a->device;
	struct json_object *o = json_object_new_object(), *gpus = json_object_new_array();
	struct utsname name = { 0 };
	char version[32];

	if (uname(&name) == 0)
		json_add_string(o, "kernel", name.release);
	json_add_string(o, "backend", info->backend);
	if (info->valid & GPREEMPT_DEVICE_VERSION) {
		snprintf(version, sizeof(version), "%u.%u", info->kfd_major, info->kfd_minor);
		json_add_string(o, "kfd_version", version);
	}
	if (info->valid & GPREEMPT_DEVICE_DRIVER)
		json_add_string(o, "amdgpu_version", info->driver_version);
	for (size_t i = 0; i < a->n_gpus; i++)
		json_object_array_add(gpus, gpu_to_json(&a->gpus[i]));
	json_add(o, "gpus", gpus);
	return o;
}

int host_mapping(pid_t pid, uint64_t addr, char *ret, size_t size)
{
	char path[32], line[512];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t start, end;
		int at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &start, &end, &at) <
			    2 ||
		    addr < start || addr >= end)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(ret, size, "%s", at ? line + at : "");
		return 0;
	}
	return -ENOENT;
}
