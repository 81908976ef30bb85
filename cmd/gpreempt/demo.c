/* SPDX-License-Identifier: MIT */
/* The whole story on a software GPU, in plain words. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/demo.h"
#include "cmd/gpreempt/table.h"

#define DEFAULT_SECONDS 5u
#define KERNEL_US 40000u
#define REQUEST_US 3000u
#define EVERY_MS 150u
#define TRAIN_QUEUES 2u
#define MAX_ARGS 24
#define OUTPUT_BYTES 8192

const char help_demo[] =
	"  --seconds N         how long each of the three parts takes; 5 unless told\n";

enum { ALONE, SHARED, PREEMPTED, N_PARTS };

/* Of jobs, what gpreempt load --json said at their end. */
struct part {
	const char *policy;
	int train_gpu, infer_gpu;
	struct json_object *train, *infer;
};

struct story {
	struct part parts[N_PARTS];
	uint64_t seconds;
};

static double figure(const struct json_object *o, const char *key)
{
	return json_object_get_double(json_object_object_get(o, key));
}

static double request_us(const struct part *p, const char *key)
{
	return figure(json_object_object_get(p->infer, "latency_us"), key);
}

/* ---- jobs ---- */

/* Starts what @line says, which is cut up at its blanks, and tells the daemon what it is. */
static int start_job(struct demo *d, char *line, enum gpreempt_class job_class,
		     struct demo_child *ret)
{
	struct gpreempt_class_request request = {
		.size = sizeof(request),
		.job_class = job_class,
		.priority = -1,
	};
	char *argv[MAX_ARGS] = { NULL }, selector[16];
	const struct demo_start how = {
		.program = "/proc/self/exe",
		.argv = argv,
		.output = STDOUT_FILENO,
		.death = SIGKILL,
	};
	size_t n = 0;
	int r;

	while ((argv[n] = strsep(&line, " ")))
		n++;
	argv[n++] = (char *)"--socket";
	argv[n] = d->control;
	r = demo_start(d, &how, ret);
	if (r < 0)
		return cli_fail(d->cli, EXIT_FAILED, "look at free memory and processes",
				"no process for a job: %s", strerror(-r));
	snprintf(selector, sizeof(selector), "%d", (int)ret->pid);
	if (gpreempt_daemon_set_class(d->asking, selector, &request) < 0)
		return daemon_failed(d->cli, d->asking);
	return EXIT_DONE;
}

/* Asks it to end and reads what it says. */
static int finish_job(struct demo *d, struct demo_child *c, struct json_object **ret)
{
	struct pollfd end = { .fd = c->pid_fd, .events = POLLIN };
	char text[OUTPUT_BYTES];
	ssize_t len;

	kill(c->pid, SIGTERM);
	while (poll(&end, 1, -1) < 0)
		; /* EINTR */
	len = pread(c->out_fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	demo_stop(c, SIGTERM);
	json_object_put(*ret);
	*ret = json_tokener_parse(text);
	if (json_object_object_get(*ret, "kernels"))
		return EXIT_DONE;
	/* It is one object with its error, if anything. */
	return cli_fail(d->cli, EXIT_FAILED, "please report it",
			"a job of the demonstration failed: %s", text);
}

static int run_part(struct demo *d, uint64_t requests, struct part *part)
{
	struct demo_child train = { 0 }, infer = { 0 };
	char train_line[128], infer_line[128];
	int status;

	snprintf(train_line, sizeof(train_line),
		 "gpreempt --json load --name train --gpu %d --kernel-us %u --queues %u "
		 "--priority 0",
		 part->train_gpu, KERNEL_US, TRAIN_QUEUES);
	snprintf(infer_line, sizeof(infer_line),
		 "gpreempt --json load --name infer --gpu %d --kernel-us %u --online "
		 "--every-ms %u --requests %u --priority 11",
		 part->infer_gpu, REQUEST_US, EVERY_MS, (unsigned int)requests);
	if (gpreempt_daemon_set_policy(d->asking, part->policy) < 0)
		return daemon_failed(d->cli, d->asking);
	status = start_job(d, train_line, GPREEMPT_CLASS_OFFLINE, &train);
	if (status == EXIT_DONE)
		status = start_job(d, infer_line, GPREEMPT_CLASS_ONLINE, &infer);
	if (status == EXIT_DONE)
		status = demo_wait(d, &infer, &train); /* who ends first is the service */
	if (status == EXIT_DONE)
		status = finish_job(d, &infer, &part->infer);
	if (status == EXIT_DONE)
		status = finish_job(d, &train, &part->train);
	demo_take_events(d);
	demo_stop(&infer, SIGKILL);
	demo_stop(&train, SIGKILL);
	return status;
}

/* ---- the story ---- */

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
	static const char *const what[] = { "each job on a GPU of its own",
					    "both on one GPU, without gpreempt",
					    "both on one GPU, with gpreempt" };
	struct gpreempt_daemon_gpu gpu = { .size = sizeof(gpu) };
	struct progress progress;
	int status = EXIT_DONE;

	if (gpreempt_daemon_get_gpus(d->asking, &gpu, 1) < 2)
		return cli_usage(d->cli, "the demonstration needs a model with two GPUs");
	progress_begin(&progress);
	for (size_t i = first; i < N_PARTS && status == EXIT_DONE; i++) {
		progress_now(&progress, "%zu of %d: %s", i + 1, N_PARTS, what[i]);
		status = run_part(d, s->seconds * 1000 / EVERY_MS, &s->parts[i]);
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
	const struct json_object *train = s->parts[which].train;
	const struct part *p = &s->parts[which];
	char buf[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", us_text(request_us(p, "avg"), buf));
	table_cell(t, 2, "%s", us_text(request_us(p, "p50"), buf));
	table_cell(t, 3, "%s", us_text(request_us(p, "p99"), buf));
	table_cell(t, 4, "%.1f %%", figure(train, "goodput_pct"));
	table_cell(t, 5, "%.0f of %.0f", figure(train, "complete"), figure(train, "kernels"));
	table_cell(t, 6, "%.0f", figure(train, "saves"));
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
		char when[UNIT_TEXT_SIZE];

		text_clean(e.text);
		printf("  %s.%06u  %s\n", text_clock(e.time_ns, when),
		       (unsigned int)(e.time_ns % NSEC_PER_SEC / NSEC_PER_USEC), e.text);
	}
}

static int print_text(const struct demo *d, const struct story *s)
{
	const struct part *held = &s->parts[PREEMPTED];
	double faster = request_us(&s->parts[SHARED], "avg") / request_us(held, "avg");
	char heading[64], a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE];

	printf("%s\n\n", bold(d->cli, "One GPU, two programs, no change to either", heading,
			      sizeof(heading)));
	printf("A training job keeps the GPU full with kernels of %s. An inference service gets a\n"
	       "request about every %s, worth %s of work. Both are processes of this machine, and\n"
	       "gpreemptd ran beside them; the GPU is a software GPU that behaves like the AMD\n"
	       "driver, in real time: no GPU and no root needed, and all times are modelled, not\n"
	       "measured.\n\n",
	       us_text(KERNEL_US, a), us_text(EVERY_MS * 1000.0, b), us_text(REQUEST_US, c));
	print_table(s);
	printf("\nWithout gpreempt a request waits for the kernels that run: its queue has the\n"
	       "highest priority, but the hardware never displaces what runs by itself. With\n"
	       "gpreempt the daemon sees the request, takes the training off the GPU (what runs "
	       "is\n"
	       "saved to memory), and gives the GPU back when the request is done: requests are\n"
	       "answered %.1f times faster on average.\n",
	       faster);
	printf("No work is lost: %.0f times a kernel was interrupted, and all %.0f ran every\n"
	       "workgroup exactly once and in order.\n\n",
	       figure(held->train, "saves"), figure(held->train, "complete"));
	print_trace(d);
	printf("\nNow try:   gpreemptd --device model --run-dir DIR, and beside it gpreempt load\n"
	       "           and gpreempt top, with --socket DIR/control.sock\n"
	       "On a GPU:  sudo gpreempt doctor\n");
	return EXIT_DONE;
}

/* ---- for programs ---- */

static void copy_keys(struct json_object *to, struct json_object *from, const char *const *keys)
{
	for (; *keys; keys++)
		json_add(to, *keys, json_object_get(json_object_object_get(from, *keys)));
}

static struct json_object *job_to_json(struct json_object *job)
{
	static const char *const keys[] = { "kernels", "complete",    "in_order",
					    "saves",   "goodput_pct", NULL };
	static const char *const request_keys[] = { "avg", "p50", "p99", "max", NULL };
	struct json_object *o = json_object_new_object(), *latency;

	copy_keys(o, job, keys);
	if (!figure(job, "requests"))
		return o;
	latency = json_object_new_object();
	copy_keys(latency, json_object_object_get(job, "latency_us"), request_keys);
	json_add(o, "requests", json_object_get(json_object_object_get(job, "requests")));
	json_add(o, "request_us", latency);
	return o;
}

static struct json_object *part_to_json(const struct part *p)
{
	struct json_object *o = json_object_new_object();

	json_add_string(o, "policy", p->policy);
	json_add(o, "online", job_to_json(p->infer));
	json_add(o, "offline", job_to_json(p->train));
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

static uint64_t lost_of(const struct json_object *job)
{
	return (uint64_t)(figure(job, "kernels") - figure(job, "complete") +
			  figure(job, "unfinished"));
}

static uint64_t lost(const struct story *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < N_PARTS; i++)
		n += lost_of(s->parts[i].train) + lost_of(s->parts[i].infer);
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
	return request_us(&s->parts[PREEMPTED], "p50") < request_us(&s->parts[SHARED], "p50");
}

static bool in_order(struct json_object *job)
{
	return json_object_get_boolean(json_object_object_get(job, "in_order"));
}

static int judge(struct cli *cli, const struct story *s)
{
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < N_PARTS; i++)
		if (!in_order(s->parts[i].train) || !in_order(s->parts[i].infer))
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
				us_text(request_us(&s->parts[PREEMPTED], "p50"), a),
				us_text(request_us(&s->parts[SHARED], "p50"), b));
	return EXIT_DONE;
}

int cmd_demo(struct cli *cli, int argc, char **argv)
{
	struct demo d = { .cli = cli, .alive_fd = -1 };
	struct story s = {
		.parts[ALONE] = { .policy = "none", .infer_gpu = 1 },
		.parts[SHARED] = { .policy = "none" },
		.parts[PREEMPTED] = { .policy = "priority" },
		.seconds = DEFAULT_SECONDS,
	};
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
	for (size_t i = 0; i < N_PARTS; i++) {
		json_object_put(s.parts[i].train);
		json_object_put(s.parts[i].infer);
	}
	return status;
}
