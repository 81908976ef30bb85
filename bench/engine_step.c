/* SPDX-License-Identifier: MIT */
/*
 * What a step of the engine costs over a thousand queues, against one plain pass over the same
 * samples that counts what is pending. The two alternate; what counts is the ratio of medians.
 *
 * Steps are as they come on a machine: counters move all the time, and now and then an online job
 * gets work or is done with it, so that the policy is asked and a plan is made. What a step costs
 * in which everything changes on every GPU is told beside it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/stopwatch.h"
#include "core/engine/engine.h"
#include "util/macros.h"

#define QUEUES 1000
#define GPUS 8
#define JOBS 40 /* five a GPU, of 25 queues each */
#define ROUNDS 2001
#define WARM 200
#define CHANGES 20 /* every so many steps something changes on one GPU */

struct subject {
	struct engine *e;
	struct engine_sample samples[QUEUES];
	struct engine_action actions[JOBS];
	uint64_t now_ns;
	uint32_t round;
	size_t n_actions;
};

struct totals {
	uint64_t pending;
	uint32_t with_work;
};

__attribute__((noinline)) static struct totals plain_pass(const struct engine_sample *s, size_t n)
{
	struct totals t = { 0 };

	for (size_t i = 0; i < n; i++) {
		t.pending += s[i].write - s[i].read;
		t.with_work += s[i].busy || s[i].write != s[i].read;
	}
	return t;
}

static bool is_online(uint32_t job)
{
	return job % 5 == 0;
}

static int set_up(struct subject *s, void *memory, const struct engine_limits *limits)
{
	*s = (struct subject){
		.e = engine_init(memory, limits, &engine_config_default),
		.now_ns = NSEC_PER_SEC,
	};
	for (uint32_t g = 0; g < GPUS; g++)
		engine_add_gpu(s->e, g, 24);
	for (uint32_t j = 0; j < JOBS; j++) {
		const struct engine_job_config config = {
			.gpu = j / 5,
			.class = is_online(j) ? JOB_ONLINE : JOB_OFFLINE,
			.flags = is_online(j) ? ENGINE_JOB_CRITICAL : ENGINE_JOB_PREEMPTIBLE,
		};
		int id = engine_add_job(s->e, s->now_ns, &config);

		if (id < 0)
			return id;
		for (uint32_t q = 0; q < QUEUES / JOBS; q++)
			s->samples[j * (QUEUES / JOBS) + q] =
				(struct engine_sample){ .job = (uint32_t)id, .queue = q };
	}
	return 0;
}

/* Offline queues always have work; an online job has some in every other of its periods. */
static void go_on(struct subject *s, uint32_t period)
{
	s->round++;
	s->now_ns += NSEC_PER_MSEC;
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct engine_sample *q = &s->samples[i];
		uint32_t job = i / (QUEUES / JOBS), turn = s->round + job / 5 * (period / GPUS);
		bool work = !is_online(job) || turn / period % 2;

		q->write += 3;
		q->read = q->write - (work ? 2 : 0);
		if (is_online(job) && !work)
			q->write = q->read -= 3;
	}
}

static uint64_t timed_step(struct subject *s)
{
	struct engine_step step = {
		.now_ns = s->now_ns,
		.samples = s->samples,
		.n_samples = QUEUES,
		.complete = true,
		.actions = s->actions,
		.max = JOBS,
	};
	uint64_t began = stopwatch_ns(), took;

	engine_step(s->e, &step);
	took = stopwatch_ns() - began;
	for (size_t i = 0; i < step.n_actions; i++)
		engine_report(s->e, s->now_ns, s->actions[i].ticket, 0, 100 * NSEC_PER_USEC);
	s->n_actions += step.n_actions;
	return took;
}

static uint64_t timed_pass(const struct subject *s, uint64_t *sink)
{
	uint64_t began = stopwatch_ns(), took;
	struct totals t = plain_pass(s->samples, QUEUES);

	took = stopwatch_ns() - began;
	*sink += t.pending + t.with_work;
	return took;
}

static uint64_t mean_ns(const uint64_t *ns, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ns[i];
	return sum / n;
}

int main(void)
{
	static const struct engine_limits limits = { .gpus = GPUS, .jobs = JOBS, .queues = QUEUES };
	static uint64_t step_ns[ROUNDS], pass_ns[ROUNDS], busy_ns[ROUNDS];
	_cleanup_free_ void *memory = malloc(engine_bytes(&limits));
	static struct subject s;
	uint64_t sink = 0;

	go_before_others();
	if (!memory || set_up(&s, memory, &limits) < 0)
		return 1;
	for (int i = -WARM; i < ROUNDS; i++) {
		uint64_t a, b;

		go_on(&s, CHANGES * GPUS);
		a = timed_pass(&s, &sink);
		b = timed_step(&s);
		if (i >= 0) {
			pass_ns[i] = a;
			step_ns[i] = b;
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		go_on(&s, 1);
		busy_ns[i] = timed_step(&s);
	}
	printf("{\"rounds\": %d, \"queues\": %d, \"jobs\": %d, \"pass_ns\": %llu, "
	       "\"step_ns\": %llu, \"step_mean_ns\": %llu, \"all_change_ns\": %llu}\n",
	       ROUNDS, QUEUES, JOBS, (unsigned long long)median_ns(pass_ns, ROUNDS),
	       (unsigned long long)median_ns(step_ns, ROUNDS),
	       (unsigned long long)mean_ns(step_ns, ROUNDS),
	       (unsigned long long)median_ns(busy_ns, ROUNDS));
	return sink == 0 || s.n_actions == 0;
}
