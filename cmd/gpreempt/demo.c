/* SPDX-License-Identifier: MIT */
/* The whole story on a modelled GPU, in plain words. */
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/demo.h"
#include "cmd/gpreempt/table.h"

struct story {
	struct demo_run alone, training, shared, preempted;
};

/* Only a model will do, and of the person's choice. */
static int choose_device(struct cli *cli, char *buf, size_t size)
{
	const char *preset = "mi308x";

	if (cli->device && strncmp(cli->device, "model:", strlen("model:")) == 0)
		preset = cli->device + strlen("model:");
	else if (cli->device && strcmp(cli->device, "model") && strcmp(cli->device, "auto"))
		return cli_usage(cli, "the demonstration runs on a model, not on '%s'",
				 cli->device);
	snprintf(buf, size, "model:%s,occupancy=0,log=1", preset);
	return EXIT_DONE;
}

static int act(struct cli *cli, const char *device, struct story *s)
{
	int status = demo_run(cli, device, DEMO_REQUESTS_ALONE, &s->alone);

	if (status == EXIT_DONE)
		status = demo_run(cli, device, DEMO_TRAINING_ALONE, &s->training);
	if (status == EXIT_DONE)
		status = demo_run(cli, device, DEMO_SHARED, &s->shared);
	if (status == EXIT_DONE)
		status = demo_run(cli, device, DEMO_PREEMPTED, &s->preempted);
	return status;
}

static void print_row(struct libscols_table *t, const char *name, struct demo_run *run)
{
	struct summary s = figures_sum_up(&run->latency);
	char buf[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", run->latency.n ? text_duration(s.avg, buf) : "");
	table_cell(t, 2, "%s", run->latency.n ? text_duration(s.max, buf) : "");
	table_cell(t, 3, "%s", run->kernels ? text_duration(run->trained_ns, buf) : "");
	if (run->kernels)
		table_cell(t, 4, "%u of %u", run->complete, run->kernels);
}

static void print_table(struct story *s)
{
	static const struct column columns[] = {
		{ "modelled times", false },  { "REQUEST, MEAN", true },    { "WORST", true },
		{ "TRAINING DONE IN", true }, { "KERNELS COMPLETE", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	print_row(t, "requests alone", &s->alone);
	print_row(t, "training alone", &s->training);
	print_row(t, "both, as they come", &s->shared);
	print_row(t, "both, with gpreempt", &s->preempted);
	table_print(t);
}

static double times(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static int print_text(struct cli *cli, struct story *s)
{
	struct summary shared = figures_sum_up(&s->shared.latency);
	struct summary preempted = figures_sum_up(&s->preempted.latency);
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE], heading[64];

	printf("%s\n\n",
	       bold(cli, "One GPU, two programs, no change to either", heading, sizeof(heading)));
	printf("A training job (pid %d) keeps the GPU full: %u queues, %u kernels of %s each.\n"
	       "An inference service (pid %d) gets a request about every %s, worth %s of work.\n"
	       "This is a software GPU that behaves like the AMD driver: no GPU and no root "
	       "needed,\n"
	       "and all times are modelled, not measured.\n\n",
	       DEMO_TRAIN_PID, DEMO_TRAIN_QUEUES, s->training.kernels,
	       text_duration(DEMO_KERNEL_NS, a), DEMO_INFER_PID,
	       text_duration(DEMO_REQUEST_EVERY_NS, b), text_duration(DEMO_REQUEST_NS, c));
	print_table(s);
	printf("\nAs they come, a request waits behind the training. The model serves queues in "
	       "turn;\n"
	       "hardware that favours the request's queue by priority still makes it wait for the\n"
	       "kernels that run, here up to %s, because it never displaces them by itself.\n",
	       text_duration(DEMO_KERNEL_NS, a));
	printf("With gpreempt each request suspends the training's queues (running work is saved\n"
	       "to memory), runs, and resumes them: requests are answered %.1f times faster on\n"
	       "average, the worst %.1f times.\n",
	       times(shared.avg, preempted.avg), times(shared.max, preempted.max));
	printf("Nothing is lost: %u kernels were interrupted and continued where they stopped\n"
	       "(%s saved), and %u of %u ran every workgroup exactly once. The training took %.1f "
	       "%%\n"
	       "longer than alone.\n\n",
	       s->preempted.saves, text_bytes(s->preempted.saved_bytes, a), s->preempted.complete,
	       s->preempted.kernels,
	       100 * times(s->preempted.trained_ns, s->training.trained_ns) - 100);
	printf("Now try:   gpreempt --device model list\n"
	       "           gpreempt --device model bench 1001 -n 100\n"
	       "On a GPU:  sudo gpreempt doctor\n");
	return EXIT_DONE;
}

static struct json_object *run_to_json(struct demo_run *run)
{
	struct json_object *o = json_object_new_object();
	struct json_object *latency = figures_to_json(&run->latency);

	if (latency)
		json_add(o, "request_us", latency);
	if (run->kernels) {
		json_object_object_add(o, "training_us", json_us(run->trained_ns));
		json_add_uint(o, "kernels", run->kernels);
		json_add_uint(o, "complete", run->complete);
		json_add_uint(o, "saves", run->saves);
	}
	return o;
}

static int print_json(struct cli *cli, struct story *s)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "modelled", json_object_new_boolean(true));
	json_add_uint(o, "requests", DEMO_REQUESTS);
	json_add(o, "requests_alone", run_to_json(&s->alone));
	json_add(o, "training_alone", run_to_json(&s->training));
	json_add(o, "shared", run_to_json(&s->shared));
	json_add(o, "preempted", run_to_json(&s->preempted));
	json_add_uint(o, "lost", s->preempted.kernels - s->preempted.complete);
	return cli_print_json(cli, o);
}

static bool all_is_well(const struct story *s)
{
	return s->preempted.latency.n == DEMO_REQUESTS && s->preempted.kernels &&
	       s->preempted.complete == s->preempted.kernels;
}

int cmd_demo(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS };
	struct story s = { 0 };
	char device[256];
	int status = EXIT_DONE;

	if (option_next(cli, argc, argv, ":h", options, &status) != OPTIONS_DONE)
		return status;
	status = check_arguments(cli, argc - optind, 0, 0);
	if (status == EXIT_DONE)
		status = choose_device(cli, device, sizeof(device));
	if (status == EXIT_DONE)
		status = act(cli, device, &s);
	if (status == EXIT_DONE && !all_is_well(&s))
		status = cli_fail(cli, EXIT_FAILED, "please report it",
				  "work was lost: %u of %u kernels are complete",
				  s.preempted.complete, s.preempted.kernels);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(cli, &s) : print_text(cli, &s);
	figures_done(&s.alone.latency);
	figures_done(&s.training.latency);
	figures_done(&s.shared.latency);
	figures_done(&s.preempted.latency);
	return status;
}
