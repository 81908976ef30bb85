/* SPDX-License-Identifier: MIT */
/* The whole story on a software GPU, in plain words. */
#include "cmd/gpreempt/demo.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/gpreempt/table.h"

#define DEFAULT_SECONDS 5u

const char help_demo[] =
	"  --seconds N         how long each of the three parts takes; 5 unless told\n";

enum { ALONE, SHARED, PREEMPTED, N_PARTS };

struct story {
	struct demo_part parts[N_PARTS];
	uint64_t seconds;
};

/* Only a model will do, and of the person's choice. */
static int choose_device(struct cli *cli, const char **ret)
{
	const char *device = cli->device;

	if (!device || !strcmp(device, "auto"))
		device = "model";
	if (strcmp(device, "model") && strncmp(device, "model:", strlen("model:")))
		return cli_usage(cli, "the demonstration runs on a model, not on '%s'", device);
	*ret = device;
	return EXIT_DONE;
}

/* From part @first on. */
static int act(struct demo *d, struct story *s, size_t first)
{
	static const struct demo_part parts[N_PARTS] = {
		[ALONE] = { .policy = "none", .train_gpu = 0, .infer_gpu = 1 },
		[SHARED] = { .policy = "none" },
		[PREEMPTED] = { .policy = "priority" },
	};
	static const char *const what[] = { "each job on a GPU of its own",
					    "both on one GPU, without gpreempt",
					    "both on one GPU, with gpreempt" };
	unsigned int requests = (unsigned int)(s->seconds * 1000 / DEMO_EVERY_MS);
	struct gpreempt_daemon_gpu gpu = { .size = sizeof(gpu) };
	struct progress progress;
	int status = EXIT_DONE;

	if (gpreempt_daemon_get_gpus(d->asking, &gpu, 1) < 2)
		return cli_usage(d->cli, "the demonstration needs a model with two GPUs");
	progress_begin(&progress);
	for (size_t i = first; i < N_PARTS && status == EXIT_DONE; i++) {
		progress_now(&progress, "%zu of %d: %s", i + 1, N_PARTS, what[i]);
		s->parts[i] = parts[i];
		status = demo_run_part(d, requests, &s->parts[i]);
	}
	progress_end(&progress);
	return status;
}

/* ---- for people ---- */

static const char *us_text(double us, char buf[UNIT_TEXT_SIZE])
{
	return text_duration((uint64_t)(us * 1000), buf);
}

static void print_row(struct libscols_table *t, const char *name, const struct story *s, int which)
{
	const struct demo_part *p = &s->parts[which];
	char buf[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", us_text(p->infer.mean_us, buf));
	table_cell(t, 2, "%s", us_text(p->infer.p50_us, buf));
	table_cell(t, 3, "%s", us_text(p->infer.p99_us, buf));
	table_cell(t, 4, "%.1f %%", p->train.goodput_pct);
	table_cell(t, 5, "%llu of %llu", (unsigned long long)p->train.complete,
		   (unsigned long long)p->train.kernels);
	table_cell(t, 6, "%llu", (unsigned long long)p->train.saves);
}

static void print_table(const struct story *s)
{
	static const struct column columns[] = {
		{ "modelled times", false }, { "REQUEST, MEAN", true },
		{ "MEDIAN", true },	     { "99 %", true },
		{ "TRAINING HAS", true },    { "COMPLETE", true },
		{ "INTERRUPTED", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	print_row(t, "each alone", s, ALONE);
	print_row(t, "both, without gpreempt", s, SHARED);
	print_row(t, "both, with gpreempt", s, PREEMPTED);
	table_print(t);
}

static void print_trace(const struct demo *d)
{
	size_t first = d->n_trace > DEMO_MAX_TRACE ? d->n_trace - DEMO_MAX_TRACE : 0;

	printf("The last preemptions, as the daemon told them:\n");
	for (size_t i = first; i < d->n_trace; i++) {
		struct gpreempt_event e = d->trace[i % DEMO_MAX_TRACE];
		time_t seconds = (time_t)(e.time_ns / NSEC_PER_SEC);
		char when[16] = "";
		struct tm tm;

		text_clean(e.text);
		if (localtime_r(&seconds, &tm))
			strftime(when, sizeof(when), "%H:%M:%S", &tm);
		printf("  %s.%06u  %s\n", when,
		       (unsigned int)(e.time_ns % NSEC_PER_SEC / NSEC_PER_USEC), e.text);
	}
}

static double times(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static int print_text(const struct demo *d, const struct story *s)
{
	const struct demo_part *shared = &s->parts[SHARED], *held = &s->parts[PREEMPTED];
	char heading[64], a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE];

	printf("%s\n\n", bold(d->cli, "One GPU, two programs, no change to either", heading,
			      sizeof(heading)));
	printf("A training job keeps the GPU full with kernels of %s. An inference service gets a\n"
	       "request about every %s, worth %s of work. Both are processes of this machine, and\n"
	       "gpreemptd ran beside them; the GPU is a software GPU that behaves like the AMD\n"
	       "driver, in real time: no GPU and no root needed, and all times are modelled, not\n"
	       "measured.\n\n",
	       us_text(DEMO_KERNEL_US, a), us_text(DEMO_EVERY_MS * 1000.0, b),
	       us_text(DEMO_REQUEST_US, c));
	print_table(s);
	printf("\nWithout gpreempt a request waits for the kernels that run: its queue has the\n"
	       "highest priority, but the hardware never displaces what runs by itself. With\n"
	       "gpreempt the daemon sees the request, takes the training off the GPU (what runs "
	       "is\n"
	       "saved to memory), and gives the GPU back when the request is done: requests are\n"
	       "answered %.1f times faster on average.\n",
	       times(shared->infer.mean_us, held->infer.mean_us));
	printf("No work is lost: %llu times a kernel was interrupted, and all %llu ran every\n"
	       "workgroup exactly once and in order.\n\n",
	       (unsigned long long)held->train.saves, (unsigned long long)held->train.complete);
	print_trace(d);
	printf("\nNow try:   gpreemptd --device model --run-dir DIR, and beside it gpreempt load\n"
	       "           and gpreempt top, with --socket DIR/control.sock\n"
	       "On a GPU:  sudo gpreempt doctor\n");
	return EXIT_DONE;
}

/* ---- for programs ---- */

static struct json_object *job_to_json(const struct demo_job *j)
{
	struct json_object *o = json_object_new_object(), *latency;

	json_add_uint(o, "kernels", j->kernels);
	json_add_uint(o, "complete", j->complete);
	json_add(o, "in_order", json_object_new_boolean(j->in_order));
	json_add_uint(o, "saves", j->saves);
	json_add(o, "goodput_pct", json_decimal(j->goodput_pct, 1));
	if (!j->requests)
		return o;
	latency = json_object_new_object();
	json_add(latency, "avg", json_decimal(j->mean_us, 3));
	json_add(latency, "p50", json_decimal(j->p50_us, 3));
	json_add(latency, "p99", json_decimal(j->p99_us, 3));
	json_add(latency, "max", json_decimal(j->max_us, 3));
	json_add_uint(o, "requests", j->requests);
	json_add(o, "request_us", latency);
	return o;
}

static struct json_object *part_to_json(const struct demo_part *p)
{
	struct json_object *o = json_object_new_object();

	json_add_string(o, "policy", p->policy);
	json_add(o, "online", job_to_json(&p->infer));
	json_add(o, "offline", job_to_json(&p->train));
	return o;
}

static struct json_object *trace_to_json(const struct demo *d)
{
	size_t first = d->n_trace > DEMO_MAX_TRACE ? d->n_trace - DEMO_MAX_TRACE : 0;
	struct json_object *list = json_object_new_array();

	for (size_t i = first; i < d->n_trace; i++) {
		const struct gpreempt_event *e = &d->trace[i % DEMO_MAX_TRACE];
		struct json_object *o = json_object_new_object();

		json_add_uint(o, "time_ns", e->time_ns);
		json_add_string(o, "event", gpreempt_event_name(e->kind));
		json_add_uint(o, "pid", (uint64_t)e->pid);
		json_add_uint(o, "other_pid", (uint64_t)e->other_pid);
		if (e->kind == GPREEMPT_EVENT_LET_GO)
			json_add(o, "duration_us", json_us(e->duration_ns));
		json_object_array_add(list, o);
	}
	return list;
}

static uint64_t lost(const struct story *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < N_PARTS; i++) {
		const struct demo_part *p = &s->parts[i];

		n += p->train.kernels - p->train.complete + p->train.unfinished;
		n += p->infer.kernels - p->infer.complete + p->infer.unfinished;
	}
	return n;
}

static int print_json(const struct demo *d, const struct story *s)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "modelled", json_object_new_boolean(true));
	json_add(o, "alone", part_to_json(&s->parts[ALONE]));
	json_add(o, "shared", part_to_json(&s->parts[SHARED]));
	json_add(o, "preempted", part_to_json(&s->parts[PREEMPTED]));
	json_add_uint(o, "lost", lost(s));
	json_add(o, "trace", trace_to_json(d));
	return cli_print_json(d->cli, o);
}

/* ---- the verdict ---- */

static bool is_faster(const struct story *s)
{
	return s->parts[PREEMPTED].infer.p50_us < s->parts[SHARED].infer.p50_us;
}

static int judge(struct cli *cli, const struct story *s)
{
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < N_PARTS; i++)
		if (!s->parts[i].train.in_order || !s->parts[i].infer.in_order)
			return cli_fail(cli, EXIT_FAILED, "please report it",
					"work was done out of order");
	if (lost(s))
		return cli_fail(cli, EXIT_FAILED, "please report it",
				"work was lost: %llu kernels are not complete",
				(unsigned long long)lost(s));
	if (!is_faster(s))
		return cli_fail(cli, EXIT_FAILED,
				"give it a free core; if it stays so, please report it",
				"requests were no faster: median %s, and without gpreempt %s",
				us_text(s->parts[PREEMPTED].infer.p50_us, a),
				us_text(s->parts[SHARED].infer.p50_us, b));
	return EXIT_DONE;
}

int cmd_demo(struct cli *cli, int argc, char **argv)
{
	struct demo d = { .cli = cli, .alive_fd = -1, .daemon = { .pid_fd = -1, .out_fd = -1 } };
	struct story s = { .seconds = DEFAULT_SECONDS };
	const struct command_option options[] = {
		{ "seconds", 0, option_number, &s.seconds, 1, 600 },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = choose_device(cli, &d.device);
	if (status != EXIT_DONE)
		return status;
	status = demo_begin(&d);
	if (status == EXIT_DONE)
		status = act(&d, &s, ALONE);
	if (status == EXIT_DONE && !is_faster(&s))
		status = act(&d, &s, SHARED); /* this machine did something else meanwhile */
	demo_end(&d);
	if (status == EXIT_DONE)
		status = judge(cli, &s);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(&d, &s) : print_text(&d, &s);
	return status;
}
