/* SPDX-License-Identifier: MIT */
/* The scheduler on the backend of NVIDIA's GPUs, and a driver that is played. In real time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/rules.h"
#include "cmd/gpreemptd/scheduler.h"
#include "gpu/nvrm/backend.h"
#include "gpu/nvrm/process.h"
#include "tests/nvrm/fake_rm.h"
#include "util/macros.h"

#define COMPUTE_GROUP 0x5c000015u
#define SERVE 100
#define TRAIN 200
#define TRAINS 4
#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct place {
	struct fake_rm *rm;
	struct gpu_backend *b;
	struct config config;
	struct journal *journal;
	struct events *events;
	struct scheduler *s;
	char path[64];
	uint32_t serve, train[TRAINS]; /* clients */
};

static int set_up(void **state)
{
	struct nvrm_backend_options options = { .untested = true };
	struct place *p = calloc(1, sizeof(*p));
	struct scheduler_parts parts;
	struct config_mistake mistake;
	int fd;

	p->rm = fake_rm_new();
	fake_rm_set_real_time(p->rm, true);
	p->serve = fake_rm_job(p->rm, SERVE);
	for (int i = 0; i < TRAINS; i++)
		p->train[i] = fake_rm_job(p->rm, TRAIN + i);
	assert_int_equal(nvrm_backend_open(fake_rm_nvrm(p->rm), &options, &p->b), 0);
	snprintf(p->path, sizeof(p->path), "/tmp/gpreempt-test-XXXXXX");
	fd = mkstemp(p->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(config_read(NULL, &p->config, &mistake), 0);
	p->config.attach_age_ns = 0;
	p->config.scan_ns = 20 * NSEC_PER_MSEC;
	p->config.rules.fallback.job_class = JOB_OFFLINE;
	assert_int_equal(journal_open(p->path, &p->journal), 0);
	journal_begin(p->journal);
	assert_int_equal(events_new(&p->events), 0);
	parts = (struct scheduler_parts){ p->b, NULL, p->journal, p->events, NULL };
	assert_int_equal(scheduler_new(&parts, &p->config, &p->s), 0);
	*state = p;
	return 0;
}

static uint64_t slice_of(struct place *p, uint32_t client)
{
	return fake_rm_slice(p->rm, client, COMPUTE_GROUP);
}

static int tear_down(void **state)
{
	struct place *p = *state;
	struct fake_sins sins;

	scheduler_free(p->s);
	p->b->ops->close(p->b);
	sins = fake_rm_sins(p->rm);
	assert_int_equal(fake_rm_disabled(p->rm, -1), 0);
	assert_int_equal(slice_of(p, p->serve), NVRM_CUDA_SLICE_US);
	assert_int_equal(slice_of(p, p->train[0]), NVRM_CUDA_SLICE_US);
	assert_int_equal(fake_rm_descriptors(p->rm), 0);
	assert_int_equal(sins.kernel_lines + sins.strangers + sins.shared + sins.misuse, 0);
	fake_rm_free(p->rm);
	events_free(p->events);
	journal_close(p->journal);
	config_done(&p->config);
	unlink(p->path);
	free(p);
	return 0;
}

static void run_until(struct place *p, bool (*is_so)(struct place *p))
{
	uint64_t began_ns = p->b->ops->now_ns(p->b);

	while (!is_so(p)) {
		struct pollfd ready = { .fd = scheduler_fd(p->s), .events = POLLIN };
		uint64_t next_ns = scheduler_turn(p->s), now_ns = p->b->ops->now_ns(p->b);

		assert_true(now_ns - began_ns < PATIENCE_NS);
		poll(&ready, 1, next_ns > now_ns ? 1 : 0);
	}
}

static void make_online(struct place *p)
{
	struct class_request request = {
		.said = { .selector = WIRE_BY_PID, .pid = SERVE, .job_class = JOB_ONLINE },
		.only_uid = (uid_t)-1,
	};

	scheduler_turn(p->s);
	assert_int_equal(scheduler_class(p->s, &request), 1);
}

static size_t trains_on(struct place *p)
{
	size_t n = 0;

	for (int i = 0; i < TRAINS; i++)
		n += !fake_rm_group_off(p->rm, p->train[i], COMPUTE_GROUP);
	return n;
}

static bool one_is_on(struct place *p)
{
	return trains_on(p) == 1;
}

static bool none_is_on(struct place *p)
{
	return trains_on(p) == 0;
}

static bool turns_are_given(struct place *p)
{
	bool given = slice_of(p, p->serve) == NVRM_LONG_SLICE_US;

	for (int i = 0; i < TRAINS; i++)
		given &= slice_of(p, p->train[i]) == NVRM_SHORT_SLICE_US;
	return given;
}

static bool is_idle(struct place *p)
{
	return scheduler_is_idle(p->s);
}

static void one_offline_job_is_on_and_leaves_at_once(void **state)
{
	struct place *p = *state;

	make_online(p);
	run_until(p, turns_are_given);
	run_until(p, one_is_on);
	assert_string_equal(scheduler_policy(p->s)->name, "rotate");
	assert_int_equal(fake_rm_disabled(p->rm, SERVE), 0);
	assert_int_equal(journal_left(p->journal, NULL, 0), 1 + TRAINS);
}

static void a_hint_takes_it_off_until_the_announced_end(void **state)
{
	struct place *p = *state;
	uint64_t began_ns;

	make_online(p);
	run_until(p, turns_are_given);
	run_until(p, one_is_on);
	began_ns = p->b->ops->now_ns(p->b);
	assert_int_equal(scheduler_hint(p->s, SERVE, 0, 150 * NSEC_PER_MSEC), 0);
	scheduler_act(p->s);
	run_until(p, none_is_on);
	run_until(p, one_is_on);
	assert_true(p->b->ops->now_ns(p->b) - began_ns >= 140 * NSEC_PER_MSEC);
	assert_int_equal(fake_rm_disabled(p->rm, SERVE), 0);
}

static void a_pause_gives_everything_back(void **state)
{
	struct place *p = *state;

	make_online(p);
	run_until(p, turns_are_given);
	run_until(p, one_is_on);
	scheduler_pause(p->s);
	run_until(p, is_idle);
	assert_int_equal(trains_on(p), TRAINS);
	assert_int_equal(slice_of(p, p->serve), NVRM_CUDA_SLICE_US);
	assert_int_equal(slice_of(p, p->train[0]), NVRM_CUDA_SLICE_US);
	assert_int_equal(journal_left(p->journal, NULL, 0), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_offline_job_is_on_and_leaves_at_once),
		T(a_hint_takes_it_off_until_the_announced_end),
		T(a_pause_gives_everything_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
