/* SPDX-License-Identifier: MIT */
/*
 * Who uses the GPU, and what are their queues doing? Attaches to nobody.
 *
 *   cc look.c $(pkg-config --cflags --libs libgpreempt) -o look
 *   ./look          the machine's GPUs
 *   ./look model    a software GPU
 */
#include <gpreempt/gpreempt.h>
#include <stdio.h>

#define MAX_PROCESSES 64
#define MAX_QUEUES 1024

static int fail(struct gpreempt_ctx *ctx)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(ctx, &e);
	fprintf(stderr, "look: %s (%s)\n", e.message, e.hint);
	return (int)e.kind;
}

static int show_processes(struct gpreempt_ctx *ctx)
{
	/* Of an array the first entry's size counts for all. */
	static struct gpreempt_process_info procs[MAX_PROCESSES] = { { .size = sizeof(procs[0]) } };
	int n = gpreempt_list_processes(ctx, procs, MAX_PROCESSES);

	if (n < 0)
		return fail(ctx);
	for (int i = 0; i < n && i < MAX_PROCESSES; i++) {
		printf("process %d: %u queues, class %s", (int)procs[i].pid, procs[i].queues,
		       gpreempt_class_name(procs[i].job_class));
		/* What the machine does not tell is not 0: its bit is missing. */
		if (procs[i].valid & GPREEMPT_PROC_COMM)
			printf(", command %s, %s", procs[i].comm, procs[i].state);
		printf("\n");
	}
	return 0;
}

static int show_busy_queues(struct gpreempt_ctx *ctx)
{
	static struct gpreempt_queue queues[MAX_QUEUES] = { { .size = sizeof(queues[0]) } };
	int n = gpreempt_get_all_queues(ctx, NULL, queues, MAX_QUEUES);

	if (n < 0)
		return fail(ctx);
	for (int i = 0; i < n && i < MAX_QUEUES; i++) {
		const struct gpreempt_queue *q = &queues[i];

		if (!(q->valid & GPREEMPT_QUEUE_STATE))
			continue;
		printf("queue %u of process %d on GPU %u: %s, %llu packets wait\n", q->queue_id,
		       (int)q->pid, q->gpu_id, q->state, (unsigned long long)q->pending);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_ctx *ctx;
	int status;

	if (gpreempt_open(argc > 1 ? argv[1] : "auto", &ctx, &e) < 0) {
		fprintf(stderr, "look: %s (%s)\n", e.message, e.hint);
		return (int)e.kind;
	}
	status = show_processes(ctx);
	if (status == 0)
		status = show_busy_queues(ctx);
	gpreempt_unref(ctx);
	return status;
}
