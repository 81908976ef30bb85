/* SPDX-License-Identifier: MIT */
/*
 * usage: test_daemon_scheduler_chaos [RUNS [FIRST-SEED]]
 *
 * Processes come, work, exec and die, calls take their time and fail, people interfere; all by a
 * seed. What must hold in every instant is judged by the fake and below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/daemon/rig.h"

#define PROCESSES 24
#define STEPS 400

static uint32_t runs = 40, first_seed = 1;

struct chaos {
	struct rig *r;
	uint64_t seed;
	uint64_t idle_since_ns; /* no online work anywhere */
	pid_t next_pid;
};

static uint32_t any(struct chaos *c, uint32_t n)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return (uint32_t)(c->seed >> 11) % n;
}

static struct fake_process *anybody(struct chaos *c)
{
	struct fake_process *p = &c->r->fake.processes[any(c, PROCESSES)];

	return p->used ? p : NULL;
}

static void set_outcomes(struct chaos *c, struct fake_process *p)
{
	for (int verb = GPU_ATTACH; verb <= GPU_SLICE; verb++) {
		p->outcomes[verb] = (struct fake_outcome){ .takes_ns = any(c, 3) * 400000 };
		if (verb == GPU_RELEASE || any(c, 12))
			continue;
		p->outcomes[verb].result = any(c, 2) ? -EPERM : -EIO;
		p->outcomes[verb].gpu_failed = p->outcomes[verb].result == -EIO && !any(c, 3);
		p->outcomes[verb].gpu = any(c, 3);
		p->outcomes[verb].times = 1;
	}
}

static void come(struct chaos *c)
{
	pid_t pid = any(c, 4) ? c->next_pid++ : 100; /* and one that is used again and again */
	struct fake_process *p;
	uint32_t gpu = 1 + any(c, 2);

	if (fake_find(&c->r->fake, pid))
		return;
	switch (any(c, 4)) {
	case 0:
		p = rig_online(c->r, pid, gpu);
		break;
	case 1:
		p = rig_critical(c->r, pid, gpu);
		break;
	default:
		p = rig_offline(c->r, pid, gpu);
		break;
	}
	while (any(c, 2) && p->n_queues < 6)
		fake_add_queue(p, 1 + any(c, 2), (uint32_t)p->n_queues + 1);
	set_outcomes(c, p);
}

static void ask_for_class(struct chaos *c, struct fake_process *p)
{
	struct class_request request = rig_request(WIRE_BY_PID, p->pid, JOB_OFFLINE);

	/* What was asked for online stays online: for the judge. */
	if (p->online || any(c, 2)) {
		request.said.job_class = JOB_ONLINE;
		p->online = true;
	}
	if (!any(c, 3) && !p->online)
		request.only_uid = p->uid;
	scheduler_class(c->r->s, &request);
}

static void interfere(struct chaos *c)
{
	struct scheduler *s = c->r->s;

	switch (any(c, 8)) {
	case 0:
		scheduler_pause(s);
		break;
	case 1:
	case 2:
		scheduler_continue(s);
		break;
	case 3:
		scheduler_rearm(s, 1 + any(c, 2));
		break;
	case 4:
		scheduler_set_policy(s, gpol_all[any(c, 5)]);
		break;
	case 5:
		scheduler_release(s, any(c, 2) ? 0 : 100);
		break;
	case 6:
		scheduler_configure(s, &c->r->config);
		break;
	default:
		c->r->fake.processes_result = any(c, 2) ? 0 : -EIO;
		break;
	}
}

static void change(struct chaos *c, struct fake_process *p)
{
	switch (any(c, 12)) {
	case 0:
		fake_exit(&c->r->fake, p->pid);
		break;
	case 1:
		fake_end_target(&c->r->fake, p, -EBUSY, "taken");
		break;
	case 2:
		ask_for_class(c, p);
		break;
	case 3:
		if (p->n_queues < 8)
			fake_add_queue(p, 1 + any(c, 2), (uint32_t)p->n_queues + 1);
		break;
	case 4:
		p->n_queues -= p->n_queues > 1;
		p->queues_changed = true;
		break;
	case 5:
		if (scheduler_hint(c->r->s, p->pid, 0, any(c, 2) * 20 * MS) == 0)
			scheduler_act(c->r->s);
		break;
	default:
		fake_set_work(p, any(c, 2));
		break;
	}
}

static bool is_idle(struct chaos *c)
{
	for (size_t i = 0; i < c->r->fake.max_processes; i++) {
		struct fake_process *p = &c->r->fake.processes[i];

		for (size_t q = 0; p->used && q < p->n_queues; q++) {
			if (p->queues[q].read != p->queues[q].write)
				return false;
		}
	}
	return true;
}

static void judge(struct chaos *c)
{
	const struct fake_faults *f = &c->r->fake.faults;

	assert_int_equal(f->online_attached, 0);
	assert_int_equal(f->not_written_down, 0);
	assert_int_equal(f->overdue, 0);
	assert_int_equal(f->used_released, 0);
	assert_int_equal(f->double_attached, 0);
	assert_int_equal(f->not_submitted, 0);
	assert_int_equal(c->r->guard.late, 0);
	for (size_t i = 0; i < PROCESSES; i++) {
		struct fake_process *p = &c->r->fake.processes[i];

		assert_false(p->used && p->online && fake_is_held(p) && !p->target);
	}
}

/* Nobody works, so there is no reason to hold anybody: soon nobody is. */
static void calm_down(struct chaos *c)
{
	if (!c->r->fake.base.caps.counts_progress)
		return;
	for (size_t i = 0; i < PROCESSES; i++) {
		if (c->r->fake.processes[i].used)
			fake_set_work(&c->r->fake.processes[i], false);
	}
	assert_true(is_idle(c));
	rig_run(c->r, 2 * S);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_false(c->r->fake.processes[i].used &&
			     fake_is_held(&c->r->fake.processes[i]));
}

static void run(struct rig *r, uint64_t seed)
{
	struct chaos c = { .r = r, .seed = seed * 0x9e3779b97f4a7c15ull | 1, .next_pid = 200 };

	c.r->config.engine.hold_max_ns = 300 * MS;
	scheduler_configure(c.r->s, &c.r->config);
	for (int i = 0; i < STEPS; i++) {
		struct fake_process *p = anybody(&c);

		if (p)
			change(&c, p);
		else
			come(&c);
		if (!any(&c, 10))
			interfere(&c);
		rig_run(c.r, any(&c, 5) ? any(&c, 5) * MS : any(&c, 2000) * MS);
		judge(&c);
		if (!any(&c, 50))
			calm_down(&c);
	}
	c.r->fake.processes_result = 0;
	rig_end(c.r);
}

static void nothing_random_leaves_a_job_held(void **state)
{
	for (uint32_t i = 0; i < runs; i++) {
		print_message("# seed %u\n", first_seed + i);
		run(rig_new(PROCESSES), first_seed + i);
	}
}

/* The end of a rig judges that everybody has its own turns on the GPU again. */
static void nothing_random_leaves_a_context_held_or_with_other_turns(void **state)
{
	for (uint32_t i = 0; i < runs; i++) {
		print_message("# seed %u\n", first_seed + i);
		run(rig_new_contexts(PROCESSES), first_seed + i);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_random_leaves_a_job_held),
		cmocka_unit_test(nothing_random_leaves_a_context_held_or_with_other_turns),
	};

	if (argc > 1)
		runs = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = (uint32_t)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
