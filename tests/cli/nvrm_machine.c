/* SPDX-License-Identifier: MIT */
/*
 * A machine with two NVIDIA GPUs for the command, in the place of the one it runs on:
 *
 *     1001  one context         1002  a context on each GPU
 *     1003  no context yet      1004  uses a GPU, but not as CUDA does
 *
 * $NVRM_MACHINE changes it: "none" has no driver, "old" one that nobody knows; with "blind" nobody
 * may be traced, with "left" somebody who died has left 1001 off the GPU. When anything is off at
 * the end, or was done that must never be, the exit status is 99.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/kfd/driver.h"
#include "gpu/nvrm/driver.h"
#include "lib/internal.h"
#include "tests/nvrm/fake_rm.h"
#include "util/apart.h"

#define TRAIN 1001
#define BOTH 1002
#define IDLE 1003
#define SCREEN 1004
#define COMPUTE_GROUP 0x5c000015u /* of the first context */

static struct fake_rm *machine;

static void judge(void)
{
	struct fake_sins sins = fake_rm_sins(machine);

	if (fake_rm_disabled(machine, -1) || fake_rm_descriptors(machine) || sins.kernel_lines ||
	    sins.strangers || sins.shared || sins.misuse)
		_exit(99);
	fake_rm_free(machine);
}

/* In place of the one that forks: what a child did to its copy would not be seen. */
int apart_run(const struct apart *a, void *results, int *errors)
{
	memset(results, 0, a->n * a->result_size);
	for (size_t i = 0; i < a->n; i++) {
		a->run(a->user, i, (char *)results + i * a->result_size);
		errors[i] = 0;
	}
	return 0;
}

static void people(struct fake_rm *f, bool left)
{
	uint32_t client = fake_rm_job(f, TRAIN);

	if (left)
		fake_rm_leave_disabled(f, client, COMPUTE_GROUP, 1);
	client = fake_rm_job(f, BOTH);
	fake_rm_context(f, client, FAKE_GPU_2, FAKE_CONNECTIONS);
	fake_rm_spawn(f, IDLE, 1000, "idle");
	fake_rm_open_file(f, IDLE, "/dev/nvidia0");
	fake_rm_memory(f, fake_rm_client(f, IDLE, fake_rm_open_file(f, IDLE, "/dev/nvidiactl")), 1);
	fake_rm_spawn(f, SCREEN, 0, "Xorg");
	fake_rm_open_file(f, SCREEN, "/dev/nvidia0");
	fake_rm_open_file(f, SCREEN, "/dev/nvidiactl");
}

static void change(struct fake_rm *f, const char *how)
{
	if (strcmp(how, "old") == 0)
		fake_rm_set_version(f, "NVRM version: NVIDIA UNIX x86_64 Module  470.1  x\n");
	if (strcmp(how, "blind") == 0)
		fake_rm_fault(f, &(struct fake_fault){ .op = FAKE_BORROW,
						       .times = 1000,
						       .error = EPERM });
}

static int open_machine(const char *argument, void **ret, struct gpu_why *ret_why)
{
	const char *how = getenv("NVRM_MACHINE");

	how = how ? how : "";
	if (strcmp(how, "none") == 0) {
		nvrm_failure_describe(-ENODEV, 0,
				      &(struct nvrm_failure){ .why = NVRM_WHY_NO_DRIVER }, ret_why);
		return -ENODEV;
	}
	if (!machine) {
		machine = fake_rm_new();
		fake_rm_set_real_time(machine, true);
		fake_rm_add_gpu(machine, FAKE_GPU_2, "NVIDIA H100");
		people(machine, strcmp(how, "left") == 0);
		change(machine, how);
		atexit(judge);
	}
	*ret = fake_rm_nvrm(machine);
	return 0;
}

static int open_nothing(const char *argument, void **ret, struct gpu_why *ret_why)
{
	gpu_why_set(ret_why, GPU_WHY_ABSENT, "load amdgpu", "no AMD GPU driver");
	return -ENODEV;
}

/* The drivers of that machine. */
static struct gpu_driver nvrm, kfd;
const struct gpu_driver *const gpu_drivers[] = { &kfd, &nvrm, NULL };

static void __attribute__((constructor)) make_drivers(void)
{
	kfd = gkfd_driver;
	kfd.open = open_nothing;
	nvrm = nvrm_driver;
	nvrm.open = open_machine;
}
