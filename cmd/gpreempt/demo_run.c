/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "cmd/gpreempt/demo.h"
#include "gpreempt/model.h"

#define STEP_NS (10 * NSEC_PER_USEC)
#define PATIENCE_NS (10 * NSEC_PER_SEC)

struct stage {
	struct gpreempt_ctx *ctx;
	struct gpreempt_process *train; /* attached when it is to be held */
	uint32_t cus;
	uint64_t began_ns;
};

static int set_up(struct stage *s, enum demo_kind kind)
{
	struct gpreempt_model_work kernel = { .size = sizeof(kernel), .wg_per_cu = 1 };
	struct gpreempt_gpu gpu = { .size = sizeof(gpu) };
	int r;

	r = gpreempt_get_gpus(s->ctx, &gpu, 1);
	if (r < 0)
		return r;
	s->cus = gpu.cu;
	if (kind == DEMO_PREEMPTED) {
		r = gpreempt_attach(s->ctx, DEMO_TRAIN_PID, 0, &s->train);
		if (r < 0)
			return r;
	}
	s->began_ns = gpreempt_now_ns(s->ctx);
	if (kind == DEMO_REQUESTS_ALONE)
		return 0;
	kernel.workgroups = s->cus; /* one fills the GPU */
	kernel.wg_ns = DEMO_KERNEL_NS;
	for (uint32_t i = 0; i < DEMO_KERNELS_PER_QUEUE && r >= 0; i++)
		for (uint32_t q = 0; q < DEMO_TRAIN_QUEUES && r >= 0; q++)
			r = gpreempt_model_submit(s->ctx, DEMO_TRAIN_PID, q, &kernel, NULL);
	return r;
}

static int wait_done(struct stage *s, uint64_t index, uint64_t *ret_done_ns)
{
	uint64_t until = gpreempt_now_ns(s->ctx) + PATIENCE_NS;

	while (gpreempt_now_ns(s->ctx) < until) {
		struct gpreempt_model_packet packet = { .size = sizeof(packet) };
		int r;

		r = gpreempt_wait(s->ctx, NULL, 0, STEP_NS);
		if (r < 0)
			return r;
		r = gpreempt_model_get_packets(s->ctx, DEMO_INFER_PID, 0, index, &packet, 1);
		if (r < 0)
			return r;
		if (r == 1 && packet.done_ns) {
			*ret_done_ns = packet.done_ns;
			return 0;
		}
	}
	return -ETIMEDOUT;
}

/* One request: it fills the GPU too, but only for a moment. */
static int request(struct stage *s, uint64_t arrived, struct demo_run *run)
{
	struct gpreempt_model_work work = {
		.size = sizeof(work),
		.workgroups = s->cus,
		.wg_per_cu = 1,
		.wg_ns = DEMO_REQUEST_NS,
	};
	struct gpreempt_suspend_options options = { .size = sizeof(options) };
	uint64_t index, done;
	int r = 0;

	if (s->train)
		r = gpreempt_suspend_queues(s->train, NULL, 0, &options, NULL);
	if (r >= 0)
		r = gpreempt_model_submit(s->ctx, DEMO_INFER_PID, 0, &work, &index);
	if (r >= 0)
		r = wait_done(s, index, &done);
	if (r >= 0 && s->train)
		r = gpreempt_resume_queues(s->train, NULL);
	if (r >= 0)
		figures_add(&run->latency, done - arrived);
	return r;
}

/* Out of step with the training's kernels, as requests are. */
static uint64_t arrival_ns(uint32_t i)
{
	return (i + 1) * DEMO_REQUEST_EVERY_NS + i * 7 % DEMO_REQUESTS * NSEC_PER_MSEC / 4;
}

static int serve(struct stage *s, struct demo_run *run)
{
	for (uint32_t i = 0; i < DEMO_REQUESTS; i++) {
		uint64_t due = s->began_ns + arrival_ns(i);
		uint64_t now = gpreempt_now_ns(s->ctx);
		int r = 0;

		if (now < due)
			r = gpreempt_wait(s->ctx, NULL, 0, due - now);
		if (r >= 0)
			r = request(s, due, run);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_queue(struct stage *s, uint32_t queue, struct demo_run *run)
{
	struct gpreempt_model_packet packets[DEMO_KERNELS_PER_QUEUE] = {
		{ .size = sizeof(packets[0]) },
	};
	int n = gpreempt_model_get_packets(s->ctx, DEMO_TRAIN_PID, queue, 0, packets,
					   ARRAY_SIZE(packets));

	for (int i = 0; i < n; i++) {
		const struct gpreempt_model_packet *p = &packets[i];

		run->kernels++;
		run->saves += p->saves;
		run->complete += p->done_ns && p->finished == p->workgroups &&
				 p->executed_ns == p->workgroups * DEMO_KERNEL_NS;
		if (p->done_ns && p->done_ns - s->began_ns > run->trained_ns)
			run->trained_ns = p->done_ns - s->began_ns;
	}
	return n < 0 ? n : 0;
}

/* The training runs to its end; then every kernel of it is looked at. */
static int finish(struct stage *s, struct demo_run *run)
{
	uint64_t all_ns = DEMO_TRAIN_QUEUES * DEMO_KERNELS_PER_QUEUE * DEMO_KERNEL_NS;
	struct gpreempt_model_gpu gpu = { .size = sizeof(gpu) };
	int r = gpreempt_wait(s->ctx, NULL, 0, 2 * all_ns);

	for (uint32_t q = 0; q < DEMO_TRAIN_QUEUES && r >= 0; q++)
		r = check_queue(s, q, run);
	if (r >= 0)
		r = gpreempt_model_get_gpu(s->ctx, 0, &gpu);
	run->saved_bytes = gpu.saved_bytes;
	return r;
}

int demo_run(struct cli *cli, const char *device, enum demo_kind kind, struct demo_run *ret)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct stage s = { 0 };
	int r;

	*ret = (struct demo_run){ 0 };
	if (figures_init(&ret->latency, DEMO_REQUESTS) < 0)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (gpreempt_open(device, &s.ctx, &e) < 0)
		return cli_fail_error(cli, &e);
	r = set_up(&s, kind);
	if (r >= 0 && kind != DEMO_TRAINING_ALONE)
		r = serve(&s, ret);
	if (r >= 0)
		r = finish(&s, ret);
	gpreempt_get_error(s.ctx, &e);
	gpreempt_unref(s.ctx);
	if (r >= 0)
		return EXIT_DONE;
	if (e.kind == GPREEMPT_ERROR_NONE)
		return cli_fail(cli, EXIT_FAILED, "please report it",
				"the modelled GPU did not answer a request");
	return cli_fail_error(cli, &e);
}
