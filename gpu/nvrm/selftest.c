/* SPDX-License-Identifier: MIT */
/* The two sides of the self-test: a child with a CUDA context, and who holds it. */
#include "gpu/nvrm/selftest.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "gpu/nvrm/internal.h"
#include "util/clock.h"

#define PAGE_BYTES 4096u
#define START_NS (30 * NSEC_PER_SEC) /* eight GPUs take a while to be initialised */
#define BEATS_ENOUGH 8u
/* Others that use the GPU have their turns too. */
#define TURN_NS (2 * NSEC_PER_SEC)
#define SETTLE_NS (5 * NSEC_PER_MSEC) /* what was written before lands */
#define QUIET_NS (20 * NSEC_PER_MSEC)

/* In a page of both, and of the GPU: its parts are cache lines apart. */
struct selftest_page {
	_Atomic uint32_t beat; /* counted by the GPU */
	uint8_t pad[60];
	_Atomic uint32_t stop; /* ends the kernel and, after it, the child */
	uint8_t pad2[60];
	_Atomic uint64_t changed_ns; /* when the beat was seen to change last, CLOCK_MONOTONIC */
	_Atomic uint64_t again_ns; /* the same, after SELFTEST_SILENCE_NS without a beat */
	_Atomic int32_t error; /* a CUresult: why the kernel was not started */
};

#define SELFTEST_SILENCE_NS 10000000ull

/* What the child says once: the kernel was started, or it cannot be. */
enum selftest_said {
	SELFTEST_STARTED = 1,
	SELFTEST_NO_LIBRARY,
	SELFTEST_NO_CONTEXT, /* no such GPU, no memory left, no right */
	SELFTEST_NO_KERNEL,
};

/* ---- the child ---- */

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
static void watch_beats(struct selftest_page *page)
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

/* Says how it went to @fd, watches the beat, and does not return. */
static _Noreturn void be_child(struct selftest_page *page, size_t size, unsigned int gpu, int fd)
{
	uint8_t said;

	become_ordinary(fd);
	said = (uint8_t)start_kernel(page, size, gpu);
	if (write(STDERR_FILENO + 1, &said, sizeof(said)) == sizeof(said) &&
	    said == SELFTEST_STARTED)
		watch_beats(page);
	_exit(0);
}

/* ---- who holds it ---- */

struct test {
	struct nvrm *n;
	struct selftest_page *page;
	pid_t child;
	int said; /* the child's end of it is closed by its end */
	struct nvrm_process *process;
	uint32_t beat; /* when it was held */
	uint64_t began_ns; /* the call that is waited for */
};

/* The process is let go before it is ended: no channel of it stays disabled. */
static void test_done(struct test *t)
{
	nvrm_process_close(t->process);
	if (t->page)
		atomic_store(&t->page->stop, 1);
	if (t->child > 0) {
		kill(t->child, SIGKILL);
		while (waitpid(t->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	closep(&t->said);
	if (t->page)
		munmap(t->page, PAGE_BYTES);
}

static int start_child(struct test *t, unsigned int gpu)
{
	_cleanup_close_ int theirs = -1;
	int ends[2];

	t->page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->page == MAP_FAILED) {
		t->page = NULL;
		return -errno;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	t->said = ends[0];
	theirs = ends[1];
	t->child = fork();
	if (t->child < 0)
		return -errno;
	if (t->child == 0)
		be_child(t->page, PAGE_BYTES, gpu, theirs);
	return 0;
}

/* 1: @until is so; 0: not within @ns; -ECHILD: the child has ended. */
static int watch(const struct test *t, uint64_t ns, bool (*until)(const struct test *t))
{
	uint64_t end = monotonic_ns() + ns;

	for (;;) {
		struct pollfd fd = { .fd = t->said, .events = POLLIN };

		if (until && until(t))
			return 1;
		if (monotonic_ns() >= end)
			return 0;
		if (poll(&fd, 1, 1) > 0)
			return -ECHILD;
	}
}

static bool beats(const struct test *t)
{
	return atomic_load(&t->page->beat) >= BEATS_ENOUGH;
}

static bool beats_again(const struct test *t)
{
	return atomic_load(&t->page->beat) != t->beat &&
	       atomic_load(&t->page->again_ns) >= t->began_ns;
}

/* Whatever keeps the test from being made says nothing about the driver. */
static int wait_until_it_runs(struct test *t, struct nvrm_failure *ret)
{
	static const char *const steps[] = {
		[SELFTEST_NO_LIBRARY] = "loading libcuda.so.1",
		[SELFTEST_NO_CONTEXT] = "making a context of our own",
		[SELFTEST_NO_KERNEL] = "starting a kernel of our own",
	};
	struct pollfd fd = { .fd = t->said, .events = POLLIN };
	const char *step = NULL;
	uint8_t said = 0;

	if (poll(&fd, 1, START_NS / NSEC_PER_MSEC) <= 0 || read(t->said, &said, sizeof(said)) <= 0)
		step = steps[SELFTEST_NO_CONTEXT];
	else if (said != SELFTEST_STARTED)
		step = said < ARRAY_SIZE(steps) ? steps[said] : steps[SELFTEST_NO_KERNEL];
	else if (watch(t, TURN_NS, beats) <= 0)
		step = steps[SELFTEST_NO_KERNEL];
	if (!step)
		return 0;
	*ret = (struct nvrm_failure){
		.why = NVRM_WHY_SELF_TEST,
		.step = step,
		.status = atomic_load(&t->page->error),
	};
	return -EOPNOTSUPP;
}

static int hold(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	uint64_t began = monotonic_ns(), changed, off_ns;
	int r = nvrm_hold(&t->process, 1, NVRM_ALL_GPUS, &off_ns, ret);

	if (r < 0)
		return r;
	figures->suspend_ns = monotonic_ns() - began;
	r = watch(t, SETTLE_NS, NULL);
	t->beat = atomic_load(&t->page->beat);
	changed = atomic_load(&t->page->changed_ns);
	if (r == 0)
		r = watch(t, QUIET_NS, NULL);
	if (r < 0)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "it ended when it was suspended");
	if (atomic_load(&t->page->beat) != t->beat)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "what was suspended went on");
	figures->frozen_ns = changed > began ? changed - began : 0;
	return 0;
}

static int let_go(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	int r;

	t->began_ns = monotonic_ns();
	r = nvrm_let_go(&t->process, 1, NVRM_ALL_GPUS, ret);
	if (r < 0)
		return r;
	figures->resume_ns = monotonic_ns() - t->began_ns;
	if (watch(t, TURN_NS, beats_again) <= 0)
		return nvrm_fail(ret, -EIO, NVRM_WHY_SELF_TEST, "what was resumed did not go on");
	figures->running_ns = atomic_load(&t->page->again_ns) - t->began_ns;
	return 0;
}

/* Found, held and let go as a stranger's would be; only that a stranger would have a guard. */
static int try_it(struct test *t, struct nvrm_selftest *figures, struct nvrm_failure *ret)
{
	const char *step = "finding its channel groups";
	int r = nvrm_process_open(t->n, t->child, &t->process, ret);

	if (r >= 0) {
		step = "suspending it";
		r = hold(t, figures, ret);
	}
	if (r >= 0) {
		step = "resuming it";
		r = let_go(t, figures, ret);
	}
	if (r >= 0)
		return 0;
	ret->why = NVRM_WHY_SELF_TEST;
	if (!ret->step)
		ret->step = step;
	return -EIO;
}

int nvrm_selftest(struct nvrm *n, unsigned int gpu, struct nvrm_selftest *ret,
		  struct nvrm_failure *ret_failure)
{
	_cleanup_(test_done) struct test t = { .n = n, .said = -1 };
	struct nvrm_selftest figures = { 0 };
	struct nvrm_failure failure = { 0 };
	int r = start_child(&t, gpu);

	if (r < 0)
		r = nvrm_fail(&failure, r, NVRM_WHY_SYSTEM, "starting a child for the self-test");
	if (r >= 0)
		r = wait_until_it_runs(&t, &failure);
	if (r >= 0)
		r = try_it(&t, &figures, &failure);
	if (r < 0) {
		*ret_failure = failure;
		return r;
	}
	*ret = figures;
	return 0;
}
