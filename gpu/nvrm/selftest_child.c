/* SPDX-License-Identifier: MIT */
#include "gpu/nvrm/selftest_child.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util/clock.h"

/* Of libcuda's interface, what is used; types and numbers are those of its stable C ABI. */
struct cuda {
	int (*init)(unsigned int flags);
	int (*device_get)(int *ret, int index);
	int (*ctx_create)(void **ret, unsigned int flags, int device);
	int (*host_register)(void *p, size_t size, unsigned int flags);
	int (*host_pointer)(uint64_t *ret, void *p, unsigned int flags);
	int (*module_load)(void **ret, const void *image);
	int (*module_function)(void **ret, void *module, const char *name);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		      unsigned int block_x, unsigned int block_y, unsigned int block_z,
		      unsigned int shared, void *stream, void **params, void **extra);
};

#define HOST_REGISTER_MAPPED 2u
#define WATCH_NS (20 * NSEC_PER_SEC) /* twice as long as the kernel beats */

/*
 * One thread counts, with a pause of some microseconds after each beat: hard traffic to host memory
 * slows the firmware that is to preempt it. Ends by itself after ten seconds, whatever becomes of
 * us. The open kernel module drives nothing older than sm_75.
 */
static const char kernel[] = ".version 6.3\n"
			     ".target sm_75\n"
			     ".address_size 64\n"
			     ".visible .entry beat(.param .u64 page)\n"
			     "{\n"
			     "	.reg .pred %again, %stopped, %young;\n"
			     "	.reg .b32 %count, %stop;\n"
			     "	.reg .b64 %at, %began, %now, %from, %passed;\n"
			     "	ld.param.u64 %at, [page];\n"
			     "	cvta.to.global.u64 %at, %at;\n"
			     "	mov.u32 %count, 0;\n"
			     "	mov.u64 %began, %globaltimer;\n"
			     "BEAT:\n"
			     "	add.u32 %count, %count, 1;\n"
			     "	st.volatile.global.u32 [%at], %count;\n"
			     "	ld.volatile.global.u32 %stop, [%at+64];\n"
			     "	setp.ne.u32 %stopped, %stop, 0;\n"
			     "	@%stopped bra END;\n"
			     "	mov.u64 %from, %clock64;\n"
			     "PAUSE:\n"
			     "	mov.u64 %now, %clock64;\n"
			     "	sub.u64 %passed, %now, %from;\n"
			     "	setp.lt.u64 %again, %passed, 8192;\n"
			     "	@%again bra PAUSE;\n"
			     "	mov.u64 %now, %globaltimer;\n"
			     "	sub.u64 %passed, %now, %began;\n"
			     "	setp.lt.u64 %young, %passed, 10000000000;\n"
			     "	@%young bra BEAT;\n"
			     "END:\n"
			     "	ret;\n"
			     "}\n";

static_assert(offsetof(struct selftest_page, stop) == 64, "where the kernel looks");

static bool find_functions(void *library, struct cuda *ret)
{
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{ "cuInit", &ret->init },
		{ "cuDeviceGet", &ret->device_get },
		{ "cuCtxCreate_v2", &ret->ctx_create },
		{ "cuMemHostRegister_v2", &ret->host_register },
		{ "cuMemHostGetDevicePointer_v2", &ret->host_pointer },
		{ "cuModuleLoadData", &ret->module_load },
		{ "cuModuleGetFunction", &ret->module_function },
		{ "cuLaunchKernel", &ret->launch },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		*(void **)wanted[i].to = dlsym(library, wanted[i].name);
		if (!*(void **)wanted[i].to)
			return false;
	}
	return true;
}

static enum selftest_said start_kernel(struct selftest_page *page, size_t size, unsigned int gpu)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *context, *module, *function;
	struct cuda cuda;
	uint64_t at;
	void *params[] = { &at };
	int device, r;

	if (!library || !find_functions(library, &cuda))
		return SELFTEST_NO_LIBRARY;
	r = cuda.init(0);
	if (!r)
		r = cuda.device_get(&device, (int)gpu);
	if (!r)
		r = cuda.ctx_create(&context, 0, device);
	atomic_store(&page->error, r);
	if (r)
		return SELFTEST_NO_CONTEXT;
	r = cuda.host_register(page, size, HOST_REGISTER_MAPPED);
	if (!r)
		r = cuda.host_pointer(&at, page, 0);
	if (!r)
		r = cuda.module_load(&module, kernel);
	if (!r)
		r = cuda.module_function(&function, module, "beat");
	if (!r)
		r = cuda.launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	atomic_store(&page->error, r);
	return r ? SELFTEST_NO_KERNEL : SELFTEST_STARTED;
}

/*
 * It is to be found as any other program is: with nothing inherited, one that may be traced, not a
 * client of a server that shares its context, and leaving no file behind.
 */
static void become_ordinary(int fd)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_NAME, "gpreempt-test");
	dup2(fd, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0u, 0);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	setenv("CUDA_CACHE_DISABLE", "1", 1);
}

/* Nobody else has the time to see to the microsecond when a beat comes. */
static void watch(struct selftest_page *page)
{
	uint32_t last = atomic_load(&page->beat);
	uint64_t end = monotonic_ns() + WATCH_NS, now = 0, changed = 0;

	while (!atomic_load(&page->stop) && now < end) {
		uint32_t beat = atomic_load(&page->beat);

		now = monotonic_ns();
		if (beat == last)
			continue;
		if (now - changed >= SELFTEST_SILENCE_NS)
			atomic_store(&page->again_ns, now);
		atomic_store(&page->changed_ns, now);
		changed = now;
		last = beat;
	}
}

_Noreturn void selftest_child(struct selftest_page *page, size_t size, unsigned int gpu, int fd)
{
	uint8_t said;

	become_ordinary(fd);
	said = (uint8_t)start_kernel(page, size, gpu);
	if (write(STDERR_FILENO + 1, &said, sizeof(said)) == sizeof(said) &&
	    said == SELFTEST_STARTED)
		watch(page);
	_exit(0);
}
