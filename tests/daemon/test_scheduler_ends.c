/* SPDX-License-Identifier: MIT */
/* What may happen to a job, its target, its GPU and the guard at each moment of a hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/rig.h"

static bool is_tripped(struct rig *r, uint32_t index, struct gpreempt_daemon_gpu *ret)
{
	uint32_t total;

	assert_int_equal(scheduler_gpus(r->s, index, ret, 1, &total), 1);
	assert_int_equal(total, 2);
	return ret->tripped;
}

/* ---- the GPU ---- */

/* A pair whose first hold failed with GPU 1: the offline one. */
static struct fake_process *trip_gpu(struct rig *r)
{
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	offline->outcomes[GPU_SUSPEND] = (struct fake_outcome){
		.result = -ETIME, .gpu_failed = true, .gpu = 1, .times = 1
	};
	fake_set_work(online, true);
	rig_run(r, S);
	return offline;
}

static void a_failed_suspend_trips_its_gpu(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = trip_gpu(r);
	struct gpreempt_daemon_gpu gpu;

	rig_run(r, 4 * S);
	assert_int_equal(offline->suspends, 1);
	assert_int_equal(offline->resumes, 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_TRIPPED], 1);
	assert_int_equal(r->last[GPREEMPT_EVENT_TRIPPED].gpu_id, 1);
	assert_non_null(strstr(r->last[GPREEMPT_EVENT_TRIPPED].text, "gpreempt rearm 1"));
	assert_true(is_tripped(r, 0, &gpu));
	assert_non_null(strstr(gpu.tripped_by, "the test says"));
	assert_false(is_tripped(r, 1, &gpu));
	assert_int_equal(scheduler_figures(r->s)->status.trips, 1);
	rig_end(r);
}

static bool says(const char *text, const char *wanted)
{
	return text && strstr(text, wanted);
}

static void a_trip_tells_what_happened(void **state)
{
	char path[96], *text = NULL, where[64];
	struct rig *r = rig_new(8);
	size_t room = 0;
	FILE *file;

	rig_offline(r, 300, 2);
	trip_gpu(r);
	snprintf(where, sizeof(where), "asked: suspend process %d (", OFFLINE_PID);
	assert_true(says(scheduler_trip(r->s, 1), where));
	snprintf(where, sizeof(where), "for: process %d (", ONLINE_PID);
	assert_true(says(scheduler_trip(r->s, 1), where));
	assert_true(says(scheduler_trip(r->s, 1), "by policy priority"));
	assert_true(says(scheduler_trip(r->s, 1), "queues: all"));
	assert_true(says(scheduler_trip(r->s, 1), "result: -62 (Timer expired)"));
	assert_true(says(scheduler_trip(r->s, 1), "because: the test says"));
	assert_true(says(scheduler_trip(r->s, 1), "on it: 1 online and 1 offline"));
	assert_true(says(scheduler_trip(r->s, 1), "online, 1 queue, working"));
	assert_true(says(scheduler_trip(r->s, 1), "offline, 1 queue, being held, attached"));
	assert_false(says(scheduler_trip(r->s, 1), "    process 300 ("));
	assert_true(says(scheduler_trip(r->s, 1), "job-attached: "));
	assert_true(says(scheduler_trip(r->s, 1), "-0 us tripped: GPU 1: "));
	assert_null(scheduler_trip(r->s, 2));
	assert_null(scheduler_trip(r->s, 9));

	snprintf(path, sizeof(path), "%s/trip-1", r->run_dir);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(getdelim(&text, &room, '\0', file) > 0);
	fclose(file);
	assert_string_equal(text, scheduler_trip(r->s, 1));
	free(text);
	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	assert_null(scheduler_trip(r->s, 1));
	assert_int_equal(access(path, F_OK), 0); /* for who comes later */
	rig_end(r);
}

/* However many there are, one packet has room for it. */
static void a_trip_among_many_is_told_in_one_packet(void **state)
{
	struct rig *r = rig_new(64);

	for (pid_t pid = 300; pid < 350; pid++)
		rig_online(r, pid, 1);
	trip_gpu(r);
	assert_true(says(scheduler_trip(r->s, 1), "    and 32 others\n"));
	assert_true(strlen(scheduler_trip(r->s, 1)) < WIRE_TEXT_MAX);
	rig_end(r);
}

static void a_rearmed_gpu_sees_preemptions_again(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = trip_gpu(r);
	struct gpreempt_daemon_gpu gpu;

	assert_int_equal(scheduler_rearm(r->s, 9), -ENOENT);
	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	rig_run(r, S);
	assert_int_equal(offline->suspends, 2);
	assert_true(fake_is_held(offline));
	assert_false(is_tripped(r, 0, &gpu));
	assert_int_equal(gpu.trips, 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_REARMED], 1);
	rig_end(r);
}

static void a_trip_lets_go_of_everybody_on_that_gpu_only(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *a = rig_offline(r, 300, 1), *b = rig_offline(r, 301, 1);
	struct fake_process *c = rig_offline(r, 302, 2);
	struct fake_process *one = rig_online(r, 100, 1), *two = rig_online(r, 101, 2);

	rig_run(r, 2 * S);
	b->outcomes[GPU_SUSPEND] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 1
	};
	fake_set_work(one, true);
	fake_set_work(two, true);
	rig_run(r, 100 * MS);
	assert_false(fake_is_held(a));
	assert_false(fake_is_held(b));
	assert_true(fake_is_held(c));
	rig_end(r);
}

static void a_failure_on_one_gpu_of_a_process_trips_that_one(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online = rig_online(r, ONLINE_PID, 1);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	struct gpreempt_daemon_gpu gpu;

	fake_add_queue(offline, 2, 2);
	rig_run(r, 2 * S);
	offline->outcomes[GPU_SUSPEND] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 2
	};
	fake_set_work(online, true);
	rig_run(r, S);
	assert_false(is_tripped(r, 0, &gpu));
	assert_true(is_tripped(r, 1, &gpu));
	assert_false(fake_is_held(offline));
	assert_int_equal(offline->suspends, 1);
	rig_end(r);
}

static void a_failed_resume_is_asked_for_again(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	offline->outcomes[GPU_RESUME] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 1, .times = 3
	};
	fake_set_work(online, false);
	rig_run(r, S);
	assert_false(fake_is_held(offline));
	assert_int_equal(offline->resumes, 4);
	assert_int_equal(r->told[GPREEMPT_EVENT_TRIPPED], 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	rig_end(r);
}

static void an_attach_that_fails_the_gpu_trips_it(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
	struct gpreempt_daemon_gpu gpu;

	offline->outcomes[GPU_ATTACH] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 1
	};
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 30 * S);
	assert_true(is_tripped(r, 0, &gpu));
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_NOT_ATTACHED], 1);
	assert_non_null(
		strstr(r->last[GPREEMPT_EVENT_NOT_ATTACHED].text, "until gpreempt rearm 1:"));
	assert_null(strstr(r->last[GPREEMPT_EVENT_NOT_ATTACHED].text, "again in"));
	rig_end(r);
}

/* Attaching would be work for that GPU too, whichever the online job is on. */
static void nobody_on_a_tripped_gpu_is_attached_until_it_is_rearmed(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = trip_gpu(r), *both;
	struct gpreempt_daemon_gpu gpu;

	rig_online(r, 101, 2);
	assert_true(is_tripped(r, 0, &gpu));
	both = rig_offline(r, 300, 1);
	fake_add_queue(both, 2, 2);
	rig_run(r, 30 * S);
	assert_int_equal(both->attaches, 0);
	assert_int_equal(offline->attaches, 1);
	assert_int_equal(offline->releases, 1);
	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	rig_run(r, 2 * S);
	assert_int_equal(both->attaches, 1);
	assert_int_equal(offline->attaches, 2);
	rig_end(r);
}

/* Not when its next try would have come, which was put off again and again. */
static void who_was_refused_by_a_tripped_gpu_is_attached_when_it_is_rearmed(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	offline->outcomes[GPU_ATTACH] = (struct fake_outcome){
		.result = -EIO, .gpu_failed = true, .gpu = 1, .times = 1
	};
	rig_online(r, ONLINE_PID, 1);
	rig_run_until(r, r->told[GPREEMPT_EVENT_TRIPPED] == 1);
	assert_int_equal(scheduler_rearm(r->s, 1), 0);
	rig_run(r, 100 * MS);
	assert_int_equal(offline->attaches, 2);
	rig_end(r);
}

/* ---- the target ---- */

static void a_call_that_fails_without_the_gpu_trips_nothing(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_gpu gpu;

	rig_pair(r, &online, &offline);
	offline->outcomes[GPU_SUSPEND] = (struct fake_outcome){ .result = -EPERM, .times = 1 };
	fake_set_work(online, true);
	rig_run(r, 100 * MS);
	assert_false(is_tripped(r, 0, &gpu));
	assert_int_equal(offline->releases, 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_NOT_ATTACHED], 1);
	rig_run(r, 10 * S); /* and it is tried again */
	assert_int_equal(offline->attaches, 2);
	assert_int_equal(offline->suspends >= 2, true);
	rig_end(r);
}

static void a_job_that_exits_while_held_is_forgotten(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_gpu gpu;
	struct gpreempt_daemon_job job;

	rig_held(r, &online, &offline);
	fake_exit(&r->fake, OFFLINE_PID);
	rig_run(r, 10 * MS);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_WENT], 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	assert_false(rig_job(r, OFFLINE_PID, 1, &job));
	assert_int_equal(r->fake.targets, 0);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	assert_false(is_tripped(r, 0, &gpu));
	rig_end(r);
}

/* Each verb takes long, and the job is gone before it is done. */
static void a_job_may_exit_in_the_middle_of_any_call(void **state)
{
	for (int verb = GPU_ATTACH; verb <= GPU_RELEASE; verb++) {
		struct rig *r = rig_new(8);
		struct fake_process *online = rig_online(r, ONLINE_PID, 1);
		struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);
		struct gpreempt_daemon_gpu gpu;

		offline->outcomes[verb].takes_ns = 500 * MS;
		rig_run(r, verb == GPU_ATTACH ? 100 * MS : 2 * S);
		if (verb != GPU_ATTACH)
			fake_set_work(online, true);
		rig_run(r, 100 * MS);
		if (verb == GPU_RESUME)
			fake_set_work(online, false);
		if (verb == GPU_RELEASE)
			scheduler_pause(r->s);
		rig_run(r, 100 * MS);
		fake_exit(&r->fake, OFFLINE_PID);
		rig_run(r, 2 * S);
		assert_int_equal(r->fake.targets, 0);
		assert_false(is_tripped(r, 0, &gpu));
		assert_int_equal(journal_left(r->journal, NULL, 0), 0);
		rig_end(r);
	}
}

static void an_exit_is_noticed_before_the_next_scan(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	fake_exit(&r->fake, ONLINE_PID);
	rig_run(r, 20 * MS);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_WENT], 1);
	assert_false(fake_is_held(offline));
	rig_end(r);
}

static void a_job_taken_by_another_debugger_is_tried_again_later(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	fake_end_target(&r->fake, offline, -EBUSY, "another debugger has it");
	rig_run(r, S);
	assert_int_equal(r->told[GPREEMPT_EVENT_NOT_ATTACHED], 1);
	assert_non_null(strstr(r->last[GPREEMPT_EVENT_NOT_ATTACHED].text, "another debugger"));
	assert_int_equal(r->told[GPREEMPT_EVENT_LET_GO], 1);
	assert_int_equal(offline->attaches, 1);
	rig_run(r, 6 * S);
	assert_int_equal(offline->attaches, 2);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

static void a_job_that_execs_is_another_program(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_held(r, &online, &offline);
	snprintf(offline->comm, sizeof(offline->comm), "another");
	snprintf(offline->cgroup, sizeof(offline->cgroup), "/online");
	offline->online = true;
	fake_end_target(&r->fake, offline, 0, "");
	rig_run(r, 10 * MS);
	assert_true(rig_job(r, OFFLINE_PID, 1, &job));
	assert_string_equal(job.comm, "another");
	assert_int_equal(job.job_class, GPREEMPT_CLASS_ONLINE);
	rig_run(r, 20 * S);
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

static void a_program_that_changes_its_name_is_judged_again(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpreempt_daemon_job job;

	rig_pair(r, &online, &offline);
	snprintf(online->comm, sizeof(online->comm), "shell");
	snprintf(online->cgroup, sizeof(online->cgroup), "/other");
	online->online = false;
	rig_run(r, 2 * S);
	assert_true(rig_job(r, ONLINE_PID, 1, &job));
	assert_int_equal(job.job_class, GPREEMPT_CLASS_OFFLINE);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CLASSED], 1);
	rig_end(r);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline, *again;

	rig_held(r, &online, &offline);
	offline->outcomes[GPU_RELEASE].takes_ns = 3 * S;
	fake_exit(&r->fake, OFFLINE_PID);
	again = rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_WENT], 1);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_CAME], 3);
	assert_int_equal(again->attaches, 1);
	assert_true(fake_is_held(again));
	rig_run(r, 5 * S);
	assert_int_equal(r->fake.targets, 1);
	rig_end(r);
}

static void a_pid_that_passed_on_unseen_is_not_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline, *again;

	rig_pair(r, &online, &offline);
	scheduler_pause(r->s);
	rig_run(r, S);
	fake_exit(&r->fake, OFFLINE_PID);
	again = rig_online(r, OFFLINE_PID, 1);
	r->fake.processes_result = -EIO;
	scheduler_continue(r->s);
	rig_run(r, 10 * S);
	assert_int_equal(again->attaches, 0);
	rig_end(r);
}

static void a_pid_that_passes_on_as_it_is_attached_is_let_go(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline;

	rig_online(r, ONLINE_PID, 1);
	offline = rig_offline(r, OFFLINE_PID, 1);
	offline->passes_on = offline->queues[0].queue.unseen = true;
	rig_run_until(r, offline->attaches == 1);
	assert_int_equal(offline->releases, 1); /* at once, not when somebody looks */
	offline->passes_on = false;
	rig_run(r, 500 * MS);
	assert_int_equal(offline->suspends, 0);
	rig_end(r);
}

static void queues_that_vanish_while_held_are_let_go_all_the_same(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	offline->n_queues = 0;
	offline->queues_changed = true;
	rig_run(r, 2 * S);
	fake_set_work(online, false);
	rig_run(r, 2 * S);
	assert_int_equal(offline->resumes, 1);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	rig_end(r);
}

static void a_queue_that_comes_is_looked_at_soon(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	fake_add_queue(online, 1, 2);
	rig_run(r, S);
	online->queues[1].write = 1;
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

static void a_list_that_cannot_be_read_changes_nothing(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	r->fake.processes_result = -EIO;
	rig_run(r, 5 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_JOB_WENT], 0);
	fake_set_work(online, true);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(offline));
	rig_end(r);
}

/* ---- the guard ---- */

static void the_guard_hears_of_us_in_time_while_anything_is_attached(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_online(r, 99, 2);
	rig_run(r, S);
	assert_false(r->guard.armed);
	rig_pair(r, &online, &offline);
	assert_true(r->guard.armed);
	r->config.scan_ns = 30 * S; /* no other reason to wake */
	scheduler_pause(r->s);
	offline->outcomes[GPU_RELEASE].takes_ns = 20 * S;
	scheduler_continue(r->s);
	rig_run(r, S);
	scheduler_pause(r->s);
	r->guard.beats = 0;
	rig_run(r, 15 * S);
	assert_true(r->guard.armed);
	assert_in_range(r->guard.beats, 15 * S / GUARD_SILENCE_NS, 2 + 15 * S / GUARD_BEAT_NS);
	rig_run(r, 20 * S);
	assert_false(r->guard.armed);
	rig_end(r);
}

/* A machine with many processes, and so busy that each takes long to be looked at. */
static const struct gpu_ops *fast_ops;

static int refresh_for_long(struct gpu_watch *w)
{
	struct fake *f = *(struct fake **)w;

	f->now_ns += 5 * MS;
	return fast_ops->refresh(w);
}

static void the_guard_hears_of_us_during_a_long_scan(void **state)
{
	struct rig *r = rig_new(1024);
	struct fake_process *online, *offline;
	struct gpu_ops slow = *r->fake.base.ops;

	rig_pair(r, &online, &offline);
	for (int i = 0; i < 500; i++)
		rig_offline(r, 1000 + i, 2);
	rig_run(r, 2 * S);
	fast_ops = r->fake.base.ops;
	slow.refresh = refresh_for_long;
	r->fake.base.ops = &slow;
	r->fake.now_ns += S;
	scheduler_turn(r->s);
	r->fake.base.ops = fast_ops;
	assert_int_equal(r->guard.late, 0);
	assert_true(r->guard.deadline_ns > r->fake.now_ns + S);
	scheduler_will_be_late(r->s);
	assert_int_equal(r->guard.deadline_ns, r->fake.now_ns + GUARD_DRIVER_CALL_NS);
	rig_end(r);
}

static void a_dead_guard_lets_everybody_go_and_ends_us(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_held(r, &online, &offline);
	assert_int_equal(scheduler_failed(r->s), 0);
	rig_kill_guard(r);
	rig_turn(r);
	assert_int_equal(scheduler_failed(r->s), -EOWNERDEAD);
	assert_int_equal(offline->releases, 1);
	rig_run(r, MS);
	assert_false(fake_is_held(offline));
	rig_run(r, 20 * S);
	assert_true(scheduler_is_idle(r->s));
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

/* Somebody else's session was ended by mistake, and the driver has miscounted ours since. */
static void a_hold_that_would_outlive_us_ends_us(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;

	rig_pair(r, &online, &offline);
	offline->outcomes[GPU_SUSPEND] = (struct fake_outcome){ .result = -EUCLEAN };
	fake_set_work(online, true);
	rig_run(r, S);
	assert_int_equal(scheduler_failed(r->s), -EUCLEAN);
	assert_int_equal(offline->releases, 1);
	rig_run(r, 20 * S);
	assert_true(scheduler_is_idle(r->s));
	assert_int_equal(offline->attaches, 1);
	rig_end(r);
}

/* Looking takes longer than the job may be held for. */
static const struct gpu_ops *fake_ops;

static void look_for_long(struct gpu_backend *b, struct gpu_watch *const *watches, size_t n)
{
	((struct fake *)b)->now_ns += 30 * MS;
	fake_ops->look(b, watches, n);
}

static void a_hold_has_an_end_however_late_it_is_asked_for(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *online, *offline;
	struct gpu_ops slow = *r->fake.base.ops;

	r->config.engine.hold_max_ns = 20 * MS;
	scheduler_configure(r->s, &r->config);
	rig_pair(r, &online, &offline);
	fake_ops = r->fake.base.ops;
	slow.look = look_for_long;
	r->fake.base.ops = &slow;
	fake_set_work(online, true);
	for (int i = 0; i < 100 && !offline->suspends; i++) {
		r->fake.now_ns += 5 * MS;
		scheduler_turn(r->s);
	}
	r->fake.base.ops = fake_ops;
	assert_int_equal(offline->suspends, 1);
	assert_in_range(offline->longest_ns, 1, 20 * MS);
	rig_free(r);
}

static void nobody_is_attached_without_a_guard_to_arm(void **state)
{
	struct rig *r = rig_new(8);
	struct fake_process *offline = rig_offline(r, OFFLINE_PID, 1);

	rig_kill_guard(r);
	rig_online(r, ONLINE_PID, 1);
	rig_run(r, 5 * S);
	assert_int_equal(offline->attaches, 0);
	rig_end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_suspend_trips_its_gpu),
		cmocka_unit_test(a_trip_tells_what_happened),
		cmocka_unit_test(a_trip_among_many_is_told_in_one_packet),
		cmocka_unit_test(a_rearmed_gpu_sees_preemptions_again),
		cmocka_unit_test(a_trip_lets_go_of_everybody_on_that_gpu_only),
		cmocka_unit_test(a_failure_on_one_gpu_of_a_process_trips_that_one),
		cmocka_unit_test(a_failed_resume_is_asked_for_again),
		cmocka_unit_test(an_attach_that_fails_the_gpu_trips_it),
		cmocka_unit_test(nobody_on_a_tripped_gpu_is_attached_until_it_is_rearmed),
		cmocka_unit_test(who_was_refused_by_a_tripped_gpu_is_attached_when_it_is_rearmed),
		cmocka_unit_test(a_call_that_fails_without_the_gpu_trips_nothing),
		cmocka_unit_test(a_job_that_exits_while_held_is_forgotten),
		cmocka_unit_test(a_job_may_exit_in_the_middle_of_any_call),
		cmocka_unit_test(an_exit_is_noticed_before_the_next_scan),
		cmocka_unit_test(a_job_taken_by_another_debugger_is_tried_again_later),
		cmocka_unit_test(a_job_that_execs_is_another_program),
		cmocka_unit_test(a_program_that_changes_its_name_is_judged_again),
		cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
		cmocka_unit_test(a_pid_that_passed_on_unseen_is_not_attached),
		cmocka_unit_test(a_pid_that_passes_on_as_it_is_attached_is_let_go),
		cmocka_unit_test(queues_that_vanish_while_held_are_let_go_all_the_same),
		cmocka_unit_test(a_queue_that_comes_is_looked_at_soon),
		cmocka_unit_test(a_list_that_cannot_be_read_changes_nothing),
		cmocka_unit_test(the_guard_hears_of_us_in_time_while_anything_is_attached),
		cmocka_unit_test(the_guard_hears_of_us_during_a_long_scan),
		cmocka_unit_test(a_dead_guard_lets_everybody_go_and_ends_us),
		cmocka_unit_test(a_hold_that_would_outlive_us_ends_us),
		cmocka_unit_test(a_hold_has_an_end_however_late_it_is_asked_for),
		cmocka_unit_test(nobody_is_attached_without_a_guard_to_arm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
