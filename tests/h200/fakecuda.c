/* SPDX-License-Identifier: MIT */
/*
 * As much of libcuda as the self-test uses, without a GPU: a "kernel" is a thread that counts as
 * the one of the test would. $FAKE_CUDA names the call that fails.
 */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int cuInit(unsigned int flags);
int cuDeviceGet(int *ret, int index);
int cuCtxCreate_v2(void **ret, unsigned int flags, int device);
int cuMemHostRegister_v2(void *p, size_t size, unsigned int flags);
int cuMemHostGetDevicePointer_v2(uint64_t *ret, void *p, unsigned int flags);
int cuModuleLoadData(void **ret, const void *image);
int cuModuleGetFunction(void **ret, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y, unsigned int block_z,
		   unsigned int shared, void *stream, void **params, void **extra);

static int fails(const char *call)
{
	const char *which = getenv("FAKE_CUDA");

	return which && !strcmp(which, call) ? 999 : 0;
}

static void *beat(void *arg)
{
	volatile uint32_t *page = arg;

	while (!page[16]) {
		page[0]++;
		poll(NULL, 0, 1);
	}
	return NULL;
}

EXPORT int cuInit(unsigned int flags)
{
	return fails("init");
}

EXPORT int cuDeviceGet(int *ret, int index)
{
	*ret = index;
	return index == 0 ? 0 : 101;
}

EXPORT int cuCtxCreate_v2(void **ret, unsigned int flags, int device)
{
	*ret = NULL;
	return fails("context");
}

EXPORT int cuMemHostRegister_v2(void *p, size_t size, unsigned int flags)
{
	return flags == 2 && size == 4096 ? 0 : 1;
}

EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *ret, void *p, unsigned int flags)
{
	*ret = (uintptr_t)p;
	return 0;
}

EXPORT int cuModuleLoadData(void **ret, const void *image)
{
	*ret = NULL;
	return strstr(image, ".entry beat(") ? fails("module") : 1;
}

EXPORT int cuModuleGetFunction(void **ret, void *module, const char *name)
{
	*ret = NULL;
	return strcmp(name, "beat") ? 1 : 0;
}

EXPORT int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y,
			  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int shared, void *stream, void **params,
			  void **extra)
{
	pthread_t thread;

	if (fails("launch"))
		return 0; /* as a kernel that never gets its turn */
	return pthread_create(&thread, NULL, beat, (void *)*(uintptr_t *)params[0]);
}
