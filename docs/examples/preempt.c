/* SPDX-License-Identifier: MIT */
/*
 * Takes the GPU from one process for as long as something urgent takes, and gives it back.
 *
 *   cc preempt.c $(pkg-config --cflags --libs libgpreempt) -o preempt
 *   sudo ./preempt PID MILLISECONDS
 *   ./preempt 1001 10 model         on a software GPU
 *
 * Nothing here has to clean up when it fails: gpreempt_unref() resumes and detaches, and if this
 * program crashes or hangs, its guard and the driver do.
 */
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const struct gpreempt_error *e)
{
	fprintf(stderr, "preempt: %s (%s)\n", e->message, e->hint);
	return (int)e->kind;
}

static int fail_ctx(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	return fail(&e);
}

static int preempt(struct gpreempt_ctx *ctx, struct gpreempt_process *job, uint64_t urgent_ns)
{
	struct gpreempt_suspend_options options = { .size = sizeof(options), .grace_kclk = 1 };
	struct gpreempt_timing down = { .size = sizeof(down) }, up = { .size = sizeof(up) };

	/* All its queues, all or none; also those it creates meanwhile. */
	if (gpreempt_suspend_queues(job, NULL, 0, &options, &down) < 0)
		return fail_ctx(ctx);

	/*
	 * Here the urgent work would run. gpreempt_wait() keeps the promise made below; a
	 * program that is busy with other things calls gpreempt_keepalive() now and then.
	 */
	if (gpreempt_wait(ctx, NULL, 0, urgent_ns) < 0)
		return fail_ctx(ctx);

	if (gpreempt_resume_queues(job, &up) < 0)
		return fail_ctx(ctx);
	printf("%u queues off the GPU in %.0f us and back in %.0f us%s\n", down.queues,
	       (double)down.call_ns / 1000, (double)up.call_ns / 1000,
	       gpreempt_is_modelled(ctx) ? " (modelled)" : "");
	return 0;
}

int main(int argc, char **argv)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_process *job;
	struct gpreempt_ctx *ctx;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: preempt PID MILLISECONDS [DEVICE]\n");
		return GPREEMPT_ERROR_USAGE;
	}
	if (gpreempt_open(argc > 3 ? argv[3] : "auto", &ctx, &e) < 0)
		return fail(&e);

	/* Attaching costs more than preempting: do it once, and preempt often. */
	if (gpreempt_attach(ctx, (pid_t)strtol(argv[1], NULL, 10), 0, &job) < 0) {
		status = fail_ctx(ctx);
	} else {
		/* From now on: a second of silence while the job is suspended is our end. */
		gpreempt_keepalive(ctx);
		status = preempt(ctx, job, strtoull(argv[2], NULL, 10) * 1000000);
	}
	gpreempt_unref(ctx);
	return status;
}
