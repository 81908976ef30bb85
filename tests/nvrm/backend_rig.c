/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/kfd/counts.h"
#include "tests/nvrm/backend_rig.h"
#include "util/macros.h"

#define PATIENCE_MS 20000

static void make(struct bed *bed, bool guarded, bool later)
{
	struct nvrm_backend_options options = { .untested = true };

	*bed = (struct bed){ .fds = count_fds() };
	bed->fake = fake_rm_new();
	if (later) {
		options.finder = fake_rm_nvrm(bed->fake);
		fake_rm_answer_later(bed->fake);
	}
	fake_rm_set_real_time(bed->fake, true);
	fake_rm_job(bed->fake, JOB);
	if (guarded)
		assert_int_equal(guard_start(&bed->guard), 0);
	options.guard = bed->guard;
	assert_int_equal(nvrm_backend_open(fake_rm_nvrm(bed->fake), &options, &bed->b), 0);
}

void bed_make(struct bed *bed, bool guarded)
{
	make(bed, guarded, false);
}

void bed_make_later(struct bed *bed)
{
	make(bed, false, true);
}

void bed_unmake(struct bed *bed)
{
	struct fake_sins sins;
	size_t left;

	if (bed->b)
		bed->b->ops->close(bed->b);
	guard_stop(bed->guard);
	sins = fake_rm_sins(bed->fake);
	left = fake_rm_descriptors(bed->fake) + fake_rm_disabled(bed->fake, -1) +
	       fake_rm_pinned(bed->fake);
	fake_rm_free(bed->fake);
	assert_int_equal(left, 0);
	assert_int_equal(sins.kernel_lines, 0);
	assert_int_equal(sins.strangers, 0);
	assert_int_equal(sins.shared, 0);
	assert_int_equal(sins.misuse, 0);
	assert_int_equal(count_fds(), bed->fds);
}

static int set_up(void **state, bool guarded)
{
	struct bed *bed = malloc(sizeof(*bed));

	assert_non_null(bed);
	bed_make(bed, guarded);
	*state = bed;
	return 0;
}

int bed_setup(void **state)
{
	return set_up(state, false);
}

int bed_setup_later(void **state)
{
	struct bed *bed = malloc(sizeof(*bed));

	assert_non_null(bed);
	bed_make_later(bed);
	*state = bed;
	return 0;
}

int bed_setup_guarded(void **state)
{
	return set_up(state, true);
}

int bed_teardown(void **state)
{
	_cleanup_free_ struct bed *bed = *state;

	fake_rm_unblock(bed->fake); /* a test that failed has left whoever waits there */
	bed_unmake(bed);
	return 0;
}

const struct gpu_ops *bed_ops(const struct bed *bed)
{
	return bed->b->ops;
}

struct gpu_done bed_next(struct bed *bed)
{
	struct pollfd p = { .fd = bed_ops(bed)->fd(bed->b), .events = POLLIN };
	struct gpu_done done;

	bed_ops(bed)->submit(bed->b);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(bed_ops(bed)->take(bed->b, &done), 1);
	return done;
}

bool bed_is_quiet(struct bed *bed)
{
	struct pollfd p = { .fd = bed_ops(bed)->fd(bed->b), .events = POLLIN };

	bed_ops(bed)->submit(bed->b);
	return poll(&p, 1, 0) == 0;
}

void bed_expect(struct bed *bed, enum gpu_verb verb, int result, uint32_t queues)
{
	struct gpu_done done = bed_next(bed);

	assert_int_equal(done.verb, verb);
	assert_int_equal(done.result, result);
	assert_int_equal(done.queues, queues);
	assert_int_equal(done.why.message[0] != '\0', result < 0);
	assert_true(done.done_ns >= done.began_ns);
	assert_true(done.began_ns > 0);
}

struct gpu_target *bed_attach(struct bed *bed, pid_t pid)
{
	struct gpu_target *t;

	assert_int_equal(bed_ops(bed)->attach(bed->b, &(struct gpu_attach){ pid }, 1, &t), 0);
	bed_expect(bed, GPU_ATTACH, 0, 0);
	return t;
}

size_t bed_disables(struct bed *bed)
{
	return fake_rm_count(bed->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS);
}

void bed_await(struct bed *bed, bool (*is_so)(struct bed *bed, size_t what), size_t what)
{
	uint64_t began_ns = bed_ops(bed)->now_ns(bed->b);
	struct pollfd nothing = { .fd = -1 };

	bed_ops(bed)->submit(bed->b);
	while (!is_so(bed, what)) {
		assert_true(bed_ops(bed)->now_ns(bed->b) - began_ns < PATIENCE_MS * NSEC_PER_MSEC);
		poll(&nothing, 1, 2);
	}
}

bool bed_time_is(struct bed *bed, size_t at_ns)
{
	return bed_ops(bed)->now_ns(bed->b) >= at_ns;
}

void bed_await_refresh(struct bed *bed, struct gpu_watch *w, int answer)
{
	uint64_t until_ns = bed_ops(bed)->now_ns(bed->b) + PATIENCE_MS * NSEC_PER_MSEC;
	struct pollfd nothing = { .fd = -1 };

	bed_ops(bed)->submit(bed->b);
	while (bed_ops(bed)->refresh(w) != answer) {
		assert_false(bed_time_is(bed, until_ns));
		poll(&nothing, 1, 2);
	}
}

bool bed_job_off(struct bed *bed, size_t channels)
{
	return fake_rm_disabled(bed->fake, JOB) == channels;
}

bool bed_other_off(struct bed *bed, size_t channels)
{
	return fake_rm_disabled(bed->fake, OTHER) == channels;
}
