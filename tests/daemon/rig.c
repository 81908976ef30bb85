/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "tests/daemon/rig.h"

#define TURNS_AT_ONCE 1000 /* more of them without time passing is a loop without end */

static void note_event(void *user, const struct gpreempt_event *e)
{
	struct rig *r = user;

	r->told[e->kind]++;
	r->last[e->kind] = *e;
}

static void set_rules(struct rig *r)
{
	static const struct verdict online = { .job_class = JOB_ONLINE, .source = "rule online" };
	static const struct verdict critical = {
		.job_class = JOB_ONLINE, .critical = true, .source = "rule critical"
	};
	static const struct verdict gang = {
		.job_class = JOB_OFFLINE, .gang = "gang", .source = "rule gang"
	};
	static const struct verdict none = { .job_class = JOB_UNMANAGED, .source = "rule none" };
	static char names[][10] = { "/online", "/critical", "/gang", "/none" };

	r->rules[0] = (struct rule){ .name = "online", .cgroup = names[0], .verdict = online };
	r->rules[1] = (struct rule){ .name = "critical", .cgroup = names[1], .verdict = critical };
	r->rules[2] = (struct rule){ .name = "gang", .cgroup = names[2], .verdict = gang };
	r->rules[3] = (struct rule){ .name = "none", .cgroup = names[3], .verdict = none };
	r->config.rules = (struct rules){
		.rules = r->rules,
		.n = 4,
		.fallback = { .job_class = JOB_OFFLINE, .priority = 5, .source = "default" },
	};
}

static void make_journal(struct rig *r)
{
	int fd;

	snprintf(r->path, sizeof(r->path), "/tmp/gpreempt-test-XXXXXX");
	fd = mkstemp(r->path);
	assert_true(fd >= 0);
	close(fd);
	unlink(r->path);
	assert_int_equal(journal_open(r->path, &r->journal), 0);
	journal_begin(r->journal);
	r->fake.journal = r->journal;
}

static void make_dirs(struct rig *r)
{
	snprintf(r->run_dir, sizeof(r->run_dir), "/tmp/gpreempt-test-XXXXXX");
	assert_non_null(mkdtemp(r->run_dir));
	snprintf(r->cgroups, sizeof(r->cgroups), "/tmp/gpreempt-test-XXXXXX");
	assert_non_null(mkdtemp(r->cgroups));
}

static struct rig *make(size_t processes, bool contexts)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct scheduler_parts parts;

	assert_non_null(r);
	fake_init(&r->fake, processes);
	if (contexts)
		fake_make_contexts(&r->fake);
	r->guard = (struct guard){ .fd = eventfd(0, EFD_CLOEXEC), .now_ns = &r->fake.now_ns };
	r->config = (struct config){
		.engine = engine_config_default,
		.scan_ns = S,
		.watch = true,
		.look_permille = 100,
		.attach_age_ns = 0,
	};
	set_rules(r);
	make_journal(r);
	make_dirs(r);
	assert_int_equal(events_new(&r->events), 0);
	events_set_sink(r->events, note_event, r);
	parts = (struct scheduler_parts){
		.backend = &r->fake.base,
		.guard = &r->guard,
		.journal = r->journal,
		.events = r->events,
		.run_dir = r->run_dir,
		.cgroup_root = r->cgroups,
	};
	assert_int_equal(scheduler_new(&parts, &r->config, &r->s), 0);
	return r;
}

struct rig *rig_new(size_t processes)
{
	return make(processes, false);
}

struct rig *rig_new_contexts(size_t processes)
{
	return make(processes, true);
}

static void remove_trips(const struct rig *r)
{
	char path[96];

	for (int gpu = 1; gpu <= 2; gpu++) {
		snprintf(path, sizeof(path), "%s/trip-%d", r->run_dir, gpu);
		unlink(path);
	}
	assert_int_equal(rmdir(r->run_dir), 0);
}

void rig_kill_guard(struct rig *r)
{
	r->guard.dead = true;
	eventfd_write(r->guard.fd, 1);
}

void rig_free(struct rig *r)
{
	scheduler_free(r->s);
	fake_done(&r->fake);
	events_free(r->events);
	journal_close(r->journal);
	unlink(r->path);
	rmdir(r->cgroups);
	remove_trips(r);
	close(r->guard.fd);
	free(r);
}

static void judge(const struct rig *r)
{
	const struct fake_faults *f = &r->fake.faults;

	assert_int_equal(f->online_attached, 0);
	assert_int_equal(f->not_written_down, 0);
	assert_int_equal(f->overdue, 0);
	assert_int_equal(f->used_released, 0);
	assert_int_equal(f->double_attached, 0);
	assert_int_equal(f->not_submitted, 0);
	assert_int_equal(r->guard.late, 0);
}

void rig_end(struct rig *r)
{
	judge(r);
	scheduler_pause(r->s);
	rig_run(r, 30 * S);
	assert_true(scheduler_is_idle(r->s));
	assert_int_equal(r->fake.targets, 0);
	assert_int_equal(r->fake.watches, 0);
	assert_int_equal(journal_left(r->journal, NULL, 0), 0);
	assert_false(r->guard.armed);
	for (size_t i = 0; i < r->fake.max_processes; i++) {
		struct fake_process *p = &r->fake.processes[i];

		assert_false(p->used && fake_is_held(p));
		assert_false(p->used && p->slice != GPU_SLICE_OWN);
	}
	rig_free(r);
}

static uint64_t one_turn(struct rig *r)
{
	uint64_t next_ns = scheduler_turn(r->s);

	r->turns++;
	r->fake.faults.not_submitted += r->fake.kept > 0;
	return next_ns;
}

static uint64_t turn(struct rig *r)
{
	uint64_t next_ns = one_turn(r);

	for (int i = 0; next_ns <= r->fake.now_ns; i++) {
		assert_true(i < TURNS_AT_ONCE);
		next_ns = one_turn(r);
	}
	return next_ns;
}

void rig_turn(struct rig *r)
{
	turn(r);
}

void rig_run(struct rig *r, uint64_t ns)
{
	uint64_t end_ns = r->fake.now_ns + ns;

	for (;;) {
		uint64_t next_ns = turn(r);

		next_ns = MIN(next_ns, fake_next_ns(&r->fake));
		if (next_ns > end_ns)
			break;
		fake_set_time(&r->fake, MAX(next_ns, r->fake.now_ns));
	}
	fake_set_time(&r->fake, end_ns);
	turn(r);
}

static struct fake_process *add(struct rig *r, pid_t pid, const char *cgroup, uint32_t gpu)
{
	struct fake_process *p = fake_add(&r->fake, pid, cgroup + 1, cgroup);

	assert_non_null(p);
	fake_add_queue(p, gpu, 1);
	return p;
}

struct fake_process *rig_online(struct rig *r, pid_t pid, uint32_t gpu)
{
	struct fake_process *p = add(r, pid, "/online", gpu);

	p->online = true;
	return p;
}

struct fake_process *rig_critical(struct rig *r, pid_t pid, uint32_t gpu)
{
	struct fake_process *p = add(r, pid, "/critical", gpu);

	p->online = true;
	return p;
}

struct fake_process *rig_offline(struct rig *r, pid_t pid, uint32_t gpu)
{
	struct fake_process *p = add(r, pid, "/offline", gpu);

	p->uid = USER;
	fake_set_work(p, true);
	return p;
}

void rig_pair(struct rig *r, struct fake_process **ret_online, struct fake_process **ret_offline)
{
	*ret_online = rig_online(r, ONLINE_PID, 1);
	*ret_offline = rig_offline(r, OFFLINE_PID, 1);
	rig_run(r, 2 * S);
	assert_int_equal(r->told[GPREEMPT_EVENT_ATTACHED], 1);
}

void rig_held(struct rig *r, struct fake_process **ret_online, struct fake_process **ret_offline)
{
	rig_pair(r, ret_online, ret_offline);
	fake_set_work(*ret_online, true);
	rig_run(r, 20 * MS);
	assert_true(fake_is_held(*ret_offline));
}

bool rig_job(struct rig *r, pid_t pid, uint32_t gpu, struct gpreempt_daemon_job *ret)
{
	struct gpreempt_daemon_job jobs[16];
	uint64_t from = 0;
	uint32_t total;
	size_t n;

	while ((n = scheduler_jobs(r->s, &from, SCHEDULER_ANYBODY, jobs, ARRAY_SIZE(jobs),
				   &total)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (jobs[i].pid == pid && jobs[i].gpu_id == gpu) {
				*ret = jobs[i];
				return true;
			}
		}
	}
	return false;
}

struct class_request rig_request(uint32_t selector, pid_t pid, enum job_class job_class)
{
	return (struct class_request){
		.said = { .selector = selector,
			  .pid = pid,
			  .job_class = job_class,
			  .priority = WIRE_KEEP },
		.only_uid = (uid_t)-1,
	};
}
