/* SPDX-License-Identifier: MIT */
/*
 * What a snapshot with its analysis costs for a hundred queues and for a thousand, on the
 * software device. The two alternate; what counts is the ratio of their medians.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/stopwatch.h"
#include "gpreempt/gpreempt.h"
#include "gpu/model/model.h"
#include "lib/internal.h"

#define PID 1003 /* of the preset: a process without queues, until now */
#define ROUNDS 51
#define FEW 100
#define MANY 1000

struct subject {
	uint32_t queues;
	struct gpreempt_ctx *ctx;
	struct gpreempt_process *process;
	struct gpreempt_monitor *monitor;
	uint64_t ns[ROUNDS];
};

static int add_queues(struct gpreempt_ctx *ctx, uint32_t n)
{
	struct model *m = model_transport_get(ctx->k->data);
	struct model_queue_spec spec = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_packets = 64,
		.priority = 7,
	};
	uint32_t id;
	int r = 0;

	for (uint32_t i = 0; i < n && r >= 0; i++) {
		spec.gpu_index = i % 8;
		r = model_queue_create(m, PID, &spec, &id);
	}
	return r;
}

static int set_up(struct subject *s, uint32_t queues)
{
	int r;

	*s = (struct subject){ .queues = queues };
	r = gpreempt_open("model:mi308x,occupancy=0", &s->ctx, NULL);
	if (r >= 0)
		r = add_queues(s->ctx, queues);
	if (r >= 0)
		r = gpreempt_attach(s->ctx, PID, GPREEMPT_ATTACH_LOOK_ONLY, &s->process);
	if (r >= 0)
		r = gpreempt_monitor_new(s->process, &s->monitor);
	return r;
}

static void tear_down(struct subject *s)
{
	gpreempt_monitor_free(s->monitor);
	gpreempt_detach(s->process);
	gpreempt_unref(s->ctx);
}

static int sample(struct subject *s, size_t round)
{
	struct gpreempt_stats stats = { .size = sizeof(stats) };
	uint64_t began = stopwatch_ns();
	int r = gpreempt_monitor_sample(s->monitor, NULL, NULL);

	if (r < 0)
		return r;
	if ((uint32_t)r != s->queues)
		return -EIO;
	r = gpreempt_monitor_stats(s->monitor, &stats);
	s->ns[round] = stopwatch_ns() - began;
	return r;
}

int main(void)
{
	struct subject few, many;
	int r, r2;

	go_before_others();
	r = set_up(&few, FEW);
	r2 = set_up(&many, MANY);
	r = r < 0 ? r : r2;
	for (size_t i = 0; i < ROUNDS && r >= 0; i++) {
		r = sample(&few, i);
		if (r >= 0)
			r = sample(&many, i);
	}
	tear_down(&few);
	tear_down(&many);
	if (r < 0) {
		fprintf(stderr, "snapshot: %s\n", strerror(-r));
		return 1;
	}
	printf("{\"rounds\": %d, \"few\": %d, \"few_ns\": %llu, \"many\": %d, \"many_ns\": %llu}\n",
	       ROUNDS, FEW, (unsigned long long)median_ns(few.ns, ROUNDS), MANY,
	       (unsigned long long)median_ns(many.ns, ROUNDS));
	return 0;
}
