/* SPDX-License-Identifier: MIT */
/* The backend and its guard, which has to end what we do should we end first. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "gpu/nvrm/process.h"
#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define COMPUTE_GROUP 0x5c000015u /* of the first context */

static void without_its_guard_nobody_is_held(void **state)
{
	struct bed *bed = *state;
	uint32_t client = fake_rm_job(bed->fake, OTHER);
	struct gpu_target *t = bed_attach(bed, JOB), *u = bed_attach(bed, OTHER), *late;

	bed_ops(bed)->slice(u, GPU_SLICE_SHORT, 0);
	bed_expect(bed, GPU_SLICE, 0, 0);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	kill(guard_pid(bed->guard), SIGKILL);
	for (int i = 0; i < 2; i++) {
		struct gpu_done done = bed_next(bed);

		assert_int_equal(done.verb, GPU_ENDED);
		assert_int_equal(done.result, -EOWNERDEAD);
		assert_true(done.why.message[0] != '\0');
	}
	assert_int_equal(fake_rm_disabled(bed->fake, -1), 0);
	assert_int_equal(fake_rm_slice(bed->fake, client, COMPUTE_GROUP), NVRM_CUDA_SLICE_US);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, -EOWNERDEAD, 0);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ JOB }, 0, &late);
	bed_expect(bed, GPU_ATTACH, -EOWNERDEAD, 0);
}

/* The worker has to say that it is alive, also while it waits, for longer than it may be silent. */
static void a_long_hold_is_not_taken_for_a_dead_holder(void **state)
{
	struct bed *bed = *state;
	struct gpu_target *t = bed_attach(bed, JOB);

	bed_ops(bed)->suspend(
		t, &(struct gpu_hold){ .longest_ns = GUARD_SILENCE_NS + 500 * NSEC_PER_MSEC }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	fake_rm_block(bed->fake, NVRM_CTRL_DISABLE_CHANNELS);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	bed_await(bed, bed_job_off, 0);
	assert_true(guard_alive(bed->guard));
}

static const struct guard_page *map_page(void)
{
	const char name[] = "/memfd:" GUARD_MEMFD_NAME;

	for (int fd = 0; fd < 1024; fd++) {
		char path[32], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, link, sizeof(link) - 1) > 0 &&
		    strncmp(link, name, sizeof(name) - 1) == 0)
			return mmap(NULL, sizeof(struct guard_page), PROT_READ, MAP_SHARED, fd, 0);
	}
	return NULL;
}

/* Until when the worker may be silent, from now; 0: for ever. */
static uint64_t allowance(struct bed *bed, const struct guard_page *page)
{
	uint64_t now_ns = bed_ops(bed)->now_ns(bed->b);

	for (int i = 0; i < GUARD_SLOTS; i++) {
		uint64_t at_ns = __atomic_load_n(&page->slots[i].deadline_ns, __ATOMIC_ACQUIRE);

		if (at_ns && !__atomic_load_n(&page->slots[i].target, __ATOMIC_ACQUIRE))
			return at_ns - now_ns;
	}
	return 0;
}

static bool is_unguarded(struct bed *bed, size_t page)
{
	return allowance(bed, (const struct guard_page *)page) == 0;
}

static void the_worker_is_guarded_while_somebody_is_attached(void **state)
{
	struct bed *bed = *state;
	const struct guard_page *page = map_page();
	struct gpu_target *t;

	assert_non_null(page);
	assert_int_equal(allowance(bed, page), 0);
	t = bed_attach(bed, JOB);
	fake_rm_block(bed->fake, NVRM_CTRL_DISABLE_CHANNELS);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_ops(bed)->submit(bed->b);
	fake_rm_wait_blocked(bed->fake);
	assert_true(allowance(bed, page) > GUARD_DRIVER_CALL_NS - 5 * NSEC_PER_SEC);
	bed_ops(bed)->submit(bed->b);
	fake_rm_unblock(bed->fake);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
	assert_true(allowance(bed, page) <= GUARD_SILENCE_NS);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	bed_await(bed, is_unguarded, (size_t)page);
	assert_int_equal(munmap((void *)(uintptr_t)page, sizeof(*page)), 0);
}

/* Calls that the guard would make for the job; -1: it was entrusted with none. */
static int calls_due(const struct guard_page *page)
{
	int due = -1;

	for (int i = 0; i < GUARD_SLOTS; i++) {
		const struct guard_undo *undo = &page->undo[i][page->slots[i].undo];

		if (!page->slots[i].deadline_ns || page->slots[i].target != JOB)
			continue;
		due = MAX(due, 0);
		for (uint32_t k = 0; k < undo->n_calls; k++)
			due += undo->calls[k].due != 0;
	}
	return due;
}

static void the_guard_knows_what_to_undo(void **state)
{
	struct bed *bed = *state;
	const struct guard_page *page = map_page();
	struct gpu_watch *w;
	struct gpu_target *t;

	assert_non_null(page);
	assert_int_equal(bed_ops(bed)->watch(bed->b, JOB, &w), 0);
	bed_await_refresh(bed, w, 1);
	assert_int_equal(calls_due(page), -1); /* of whom one only looks at */
	t = bed_attach(bed, JOB);
	assert_int_equal(calls_due(page), 0);
	bed_ops(bed)->slice(t, GPU_SLICE_SHORT, 0);
	bed_expect(bed, GPU_SLICE, 0, 0);
	assert_int_equal(calls_due(page), 1);
	bed_ops(bed)->suspend(t, &(struct gpu_hold){ 0 }, 0);
	bed_expect(bed, GPU_SUSPEND, 0, HELD);
	assert_int_equal(calls_due(page), 2);
	bed_ops(bed)->resume(t, NULL, 0, 0);
	bed_expect(bed, GPU_RESUME, 0, HELD);
	assert_int_equal(calls_due(page), 1);
	bed_ops(bed)->release(t, 0);
	bed_expect(bed, GPU_RELEASE, 0, 0);
	assert_int_equal(calls_due(page), -1);
	bed_ops(bed)->unwatch(w);
	assert_int_equal(munmap((void *)(uintptr_t)page, sizeof(*page)), 0);
}

#define G(f) cmocka_unit_test_setup_teardown(f, bed_setup_guarded, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		G(without_its_guard_nobody_is_held),
		G(a_long_hold_is_not_taken_for_a_dead_holder),
		G(the_worker_is_guarded_while_somebody_is_attached),
		G(the_guard_knows_what_to_undo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
