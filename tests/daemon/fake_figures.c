/* SPDX-License-Identifier: MIT */
/* A scheduler and a control socket that only have figures, for the tests of what is written. */
#include "tests/daemon/fake_figures.h"

#include <stdio.h>
#include <string.h>

#include "util/macros.h"

struct scheduler {
	struct scheduler_figures figures;
};

struct scheduler *fake_scheduler(void)
{
	static struct scheduler s;

	s.figures = (struct scheduler_figures){
		.status = { .steps = 1000,
			    .preemptions = 7,
			    .inversions = 8,
			    .resolved = 6,
			    .trips = 1,
			    .hints = 50,
			    .hints_refused = 4 },
		.scans = 900,
	};
	histogram_add(&s.figures.suspend, 1500);
	histogram_add(&s.figures.suspend, 300 * NSEC_PER_USEC);
	histogram_add(&s.figures.suspend, 20 * NSEC_PER_SEC);
	return &s;
}

const struct control *fake_control(void)
{
	static const char nothing;

	return (const struct control *)&nothing;
}

const struct scheduler_figures *scheduler_figures(const struct scheduler *s)
{
	return &s->figures;
}

const struct control_figures *control_figures(const struct control *c)
{
	static const struct control_figures figures = { .connections = 12, .clients = 3 };

	return &figures;
}

void scheduler_status(struct scheduler *s, struct gpreempt_daemon_status *ret)
{
	*ret = s->figures.status;
	ret->modelled = true;
	ret->gpus = FAKE_GPUS;
	ret->jobs = FAKE_JOBS;
	ret->online = 2;
	ret->offline = 5;
	ret->queues = 40;
	ret->attached = 4;
	ret->held = 3;
	snprintf(ret->policy, sizeof(ret->policy), "share");
	snprintf(ret->backend, sizeof(ret->backend), "model");
	snprintf(ret->level, sizeof(ret->level), "K2");
}

size_t scheduler_gpus(struct scheduler *s, uint64_t from, struct gpreempt_daemon_gpu *ret,
		      size_t max, uint32_t *ret_total)
{
	size_t n = 0;

	for (; from + n < FAKE_GPUS && n < max; n++) {
		ret[n] = (struct gpreempt_daemon_gpu){
			.gpu_id = (uint32_t)(1000 + from + n),
			.slots = 32,
			.slots_online = 4,
			.slots_reserved = 6,
			.cycles = 7,
			.denied_by_budget = 8,
			.denied_by_cost = 9,
			.trips = from + n,
		};
		snprintf(ret[n].name, sizeof(ret[n].name), "AMD \"Instinct\" \\ %zu", n);
		ret[n].tripped = from + n == 1;
	}
	*ret_total = FAKE_GPUS;
	return n;
}

static struct gpreempt_daemon_job job(uint64_t key)
{
	static const enum gpreempt_class classes[] = { GPREEMPT_CLASS_UNKNOWN,
						       GPREEMPT_CLASS_OFFLINE,
						       GPREEMPT_CLASS_ONLINE };
	struct gpreempt_daemon_job j = {
		.pid = (int32_t)(2000 + key),
		.gpu_id = 1000,
		.job_class = classes[key % 3],
		.held = key == 2,
		.waiting = key == 2,
		.unseen = key == 3,
		.queues = 3,
		.preempted = 11,
		.made_room = 12,
		.held_ns = 1234567890,
		.stolen_ns = 1000000000,
		.ran_ns = 13000000001,
		.longest_wait_ns = 14,
		.detect_ns = 15000,
		.target_us = 20000,
		.share_permille = 125,
	};

	/* All of the field, without an end. */
	memcpy(j.comm, key == 1 ? "\"\\\n\x01\xff\xc3\xa4\xe2\x82\xac....." : "python3\0........",
	       16);
	snprintf(j.container, sizeof(j.container), "pod%d", (int)key);
	return j;
}

/* Keys are 1 to FAKE_JOBS, and asked for above one. */
size_t scheduler_jobs(struct scheduler *s, uint64_t *from, uid_t of,
		      struct gpreempt_daemon_job *ret, size_t max, uint32_t *ret_total)
{
	size_t n = 0;

	for (; *from < FAKE_JOBS && n < max; n++)
		ret[n] = job(++*from);
	*ret_total = FAKE_JOBS;
	return n;
}
