/* SPDX-License-Identifier: MIT */
/*
 * A machine that does not do what we claim must fail the check that says so. The library is
 * replaced by one whose GPU can misbehave.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/gpreempt/accept.h"

#define QUEUES 4
#define AREA 4096
#define GPU_ID 77

static struct machine {
	uint64_t now_ns, packets, rounds;
	bool held, interrupted, interrupted_while_held, modelled;
	/* misbehaviour */
	bool works_while_held, stands_after, idle;
	uint64_t per_queue_ns, per_byte_ns, grace_ns;
	uint64_t saved[2]; /* by turns */
	int suspend_fails, check;
	size_t processes;
} gpu;

int gpreempt_wait(struct gpreempt_ctx *ctx, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	gpu.now_ns += timeout_ns;
	if (gpu.held ? gpu.works_while_held : !gpu.idle && !(gpu.stands_after && gpu.rounds))
		gpu.packets++;
	return gpu.interrupted || (gpu.held && gpu.interrupted_while_held);
}

uint64_t gpreempt_now_ns(struct gpreempt_ctx *ctx)
{
	return gpu.now_ns;
}

int gpreempt_snapshot(struct gpreempt_process *p, struct gpreempt_queue *ret, size_t max,
		      uint64_t *ret_time_ns)
{
	for (size_t i = 0; i < MIN(max, (size_t)QUEUES); i++)
		ret[i] = (struct gpreempt_queue){
			.size = sizeof(*ret),
			.valid = GPREEMPT_QUEUE_INDICES | GPREEMPT_QUEUE_CWSR_BYTES,
			.queue_id = (uint32_t)i,
			.gpu_id = GPU_ID,
			.type = GPREEMPT_QUEUE_COMPUTE_AQL,
			.cwsr_bytes = AREA,
			.read_index = i == 0 ? gpu.packets : 0,
		};
	return QUEUES;
}

int gpreempt_suspend_queues(struct gpreempt_process *p, const uint32_t *ids, size_t n,
			    const struct gpreempt_suspend_options *options,
			    struct gpreempt_timing *ret)
{
	uint64_t bytes = gpu.saved[gpu.rounds++ % 2];
	size_t queues = ids ? n : QUEUES;

	if (gpu.suspend_fails)
		return gpu.suspend_fails;
	gpu.held = true;
	if (!ret)
		return 0;
	ret->queues = (uint32_t)queues;
	ret->call_ns = 10000 + queues * gpu.per_queue_ns + bytes * gpu.per_byte_ns +
		       (options->grace_kclk == GPREEMPT_GRACE_MAX ? gpu.grace_ns : 0);
	ret->has_saved = true;
	ret->saved_bytes = bytes;
	return 0;
}

int gpreempt_resume_queues(struct gpreempt_process *p, struct gpreempt_timing *ret)
{
	gpu.held = false;
	if (ret)
		ret->call_ns = 5000;
	return 0;
}

int gpreempt_list_processes(struct gpreempt_ctx *ctx, struct gpreempt_process_info *ret, size_t max)
{
	for (size_t i = 0; i < MIN(max, gpu.processes); i++)
		ret[i] = (struct gpreempt_process_info){ .size = sizeof(*ret),
							 .gpus = { GPU_ID },
							 .n_gpus = 1 };
	return (int)gpu.processes;
}

void gpreempt_get_error(const struct gpreempt_ctx *ctx, struct gpreempt_error *ret)
{
	ret->kind = gpu.suspend_fails == -ESRCH ? GPREEMPT_ERROR_ABSENT : GPREEMPT_ERROR_FAILED;
	snprintf(ret->message, sizeof(ret->message), "as told");
}

int gpreempt_process_check(struct gpreempt_process *p)
{
	return gpu.check;
}

int gpreempt_attach(struct gpreempt_ctx *ctx, pid_t pid, unsigned int flags,
		    struct gpreempt_process **ret)
{
	gpu.now_ns += 1000;
	*ret = (struct gpreempt_process *)&gpu;
	return 0;
}

struct gpreempt_process *gpreempt_detach(struct gpreempt_process *p)
{
	gpu.now_ns += 4000;
	return NULL;
}

int gpreempt_keepalive(struct gpreempt_ctx *ctx)
{
	return 0;
}

const char *gpreempt_backend(const struct gpreempt_ctx *ctx)
{
	return "kfd";
}

unsigned int gpreempt_abilities(const struct gpreempt_ctx *ctx)
{
	return GPREEMPT_HAS_QUEUES | GPREEMPT_HAS_HOLDS;
}

bool gpreempt_is_modelled(const struct gpreempt_ctx *ctx)
{
	return gpu.modelled;
}

int gpreempt_open(const char *device, struct gpreempt_ctx **ret, struct gpreempt_error *ret_error)
{
	return -ENODEV;
}

int gpreempt_get_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *ret)
{
	return -ENODEV;
}

int signals_take(struct cli *cli)
{
	return gpu.interrupted || gpu.interrupted_while_held ? SIGINT : 0;
}

int host_mapping(pid_t pid, uint64_t addr, char *ret, size_t size)
{
	return -ENOENT;
}

void check_killed(struct accept *a, struct outcome *o)
{
}

/* ---- one check on one machine ---- */

static struct accept accepted;
static struct gpreempt_queue queues[QUEUES];

static struct outcome run_check(const char *name)
{
	const struct check *c = accept_checks;
	struct outcome o = { 0 };

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	assert_non_null(c->name);
	c->run(&accepted, &o);
	assert_false(gpu.held);
	assert_string_not_equal(o.detail, "");
	return o;
}

static int set_up(void **state)
{
	static struct cli cli;

	gpu = (struct machine){ .saved = { 1000, 1000 } };
	accepted = (struct accept){ .cli = &cli,
				    .pid = 1,
				    .wanted = 9,
				    .process = (struct gpreempt_process *)&gpu,
				    .queues = queues,
				    .n_queues = QUEUES };
	return gpreempt_snapshot(NULL, queues, QUEUES, NULL) != QUEUES;
}

static int tear_down(void **state)
{
	rounds_done(&accepted.all);
	return 0;
}

static void a_queue_that_works_while_held_is_noticed(void **state)
{
	struct outcome o = run_check("stops");

	assert_int_equal(o.result, RESULT_PASS);
	assert_true(o.figure == 0);
	gpu.works_while_held = true;
	o = run_check("stops");
	assert_int_equal(o.result, RESULT_FAIL);
	assert_true(o.has_figure && o.figure == 1);
}

static void a_job_that_stands_still_afterwards_is_noticed(void **state)
{
	assert_int_equal(run_check("continues").result, RESULT_PASS);
	set_up(state);
	gpu.stands_after = true;
	assert_int_equal(run_check("continues").result, RESULT_FAIL);
}

static void an_idle_job_proves_nothing(void **state)
{
	gpu.idle = true;
	assert_int_equal(run_check("stops").result, RESULT_SKIP);
	assert_int_equal(run_check("continues").result, RESULT_SKIP);
	assert_int_equal(gpu.rounds, 0);
}

static void a_cost_that_grows_with_the_queues_is_noticed(void **state)
{
	struct outcome o = run_check("queues");

	assert_int_equal(o.result, RESULT_PASS);
	assert_true(o.figure == 1);
	gpu.per_queue_ns = 10000;
	o = run_check("queues");
	assert_int_equal(o.result, RESULT_FAIL);
	assert_true(o.figure == 2.5);
}

static void times_of_an_emulated_gpu_refute_nothing(void **state)
{
	gpu.per_queue_ns = 10000;
	accepted.not_hardware = true;
	assert_int_equal(run_check("queues").result, RESULT_SKIP);
	gpu.modelled = true;
	assert_int_equal(run_check("queues").result, RESULT_FAIL);
}

static void more_saved_than_there_is_room_for_is_noticed(void **state)
{
	run_check("suspend");
	assert_int_equal(run_check("saved").result, RESULT_PASS);
	accepted.all.saves[0].bytes = QUEUES * AREA;
	assert_int_equal(run_check("saved").result, RESULT_PASS);
	accepted.all.saves[0].bytes = QUEUES * AREA + 1;
	assert_int_equal(run_check("saved").result, RESULT_FAIL);
}

static void nothing_saved_is_no_proof_of_saving(void **state)
{
	gpu.saved[0] = gpu.saved[1] = 0;
	run_check("suspend");
	assert_int_equal(run_check("saved").result, RESULT_SKIP);
	assert_int_equal(run_check("save-cost").result, RESULT_SKIP);
}

static void the_cost_of_a_byte_is_that_of_the_difference(void **state)
{
	struct outcome o;

	gpu.saved[0] = 1 << 20;
	gpu.saved[1] = 3 << 20;
	gpu.per_byte_ns = 1;
	run_check("suspend");
	o = run_check("save-cost");
	assert_int_equal(o.result, RESULT_PASS);
	assert_true(o.figure > 1048 && o.figure < 1049); /* 1 ns a byte, in us per MiB */
}

static void the_first_suspension_is_compared_with_the_others(void **state)
{
	run_check("suspend");
	accepted.first_ns *= 7;
	assert_true(run_check("first-suspend").figure == 7);
}

static void grace_is_told_apart(void **state)
{
	gpu.grace_ns = 3000;
	assert_true(run_check("grace").figure == 3);
}

static void a_crowd_is_more_than_there_are_vmids(void **state)
{
	gpu.processes = 13;
	assert_int_equal(run_check("crowd").result, RESULT_SKIP);
	gpu.processes = 14;
	assert_true(run_check("crowd").figure == 14);
}

static void ending_a_session_is_measured(void **state)
{
	assert_true(run_check("detach").figure == 4);
	assert_non_null(accepted.process);
}

static void a_failed_preemption_is_a_failure_and_a_job_that_ended_is_not(void **state)
{
	gpu.suspend_fails = -EIO;
	gpu.check = -EIO;
	assert_int_equal(run_check("suspend").result, RESULT_FAIL);
	assert_true(accepted.gone);
	tear_down(state);
	set_up(state);
	gpu.suspend_fails = gpu.check = -ESRCH;
	assert_int_equal(run_check("suspend").result, RESULT_SKIP);
	assert_true(accepted.gone);
	assert_int_equal(run_check("resume").result, RESULT_SKIP);
}

static void a_signal_ends_a_check_and_nothing_is_held(void **state)
{
	static const char *const names[] = { "suspend", "queues", "grace", "stops", "detach" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		set_up(state);
		gpu.interrupted = true;
		assert_int_equal(run_check(names[i]).result, RESULT_SKIP);
		assert_int_equal(accepted.signal, SIGINT);
		tear_down(state);
	}
}

static void a_signal_in_the_middle_of_a_hold_ends_it(void **state)
{
	gpu.interrupted_while_held = true;
	assert_int_equal(run_check("stops").result, RESULT_SKIP);
	assert_int_equal(gpu.rounds, 1);
	assert_int_equal(accepted.signal, SIGINT);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_queue_that_works_while_held_is_noticed),
		CASE(a_job_that_stands_still_afterwards_is_noticed),
		CASE(an_idle_job_proves_nothing),
		CASE(a_cost_that_grows_with_the_queues_is_noticed),
		CASE(times_of_an_emulated_gpu_refute_nothing),
		CASE(more_saved_than_there_is_room_for_is_noticed),
		CASE(nothing_saved_is_no_proof_of_saving),
		CASE(the_cost_of_a_byte_is_that_of_the_difference),
		CASE(the_first_suspension_is_compared_with_the_others),
		CASE(grace_is_told_apart),
		CASE(a_crowd_is_more_than_there_are_vmids),
		CASE(ending_a_session_is_measured),
		CASE(a_failed_preemption_is_a_failure_and_a_job_that_ended_is_not),
		CASE(a_signal_ends_a_check_and_nothing_is_held),
		CASE(a_signal_in_the_middle_of_a_hold_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
