/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"
#include "util/array.h"

#define DURATION_DEFAULT_NS (10 * NSEC_PER_SEC)
#define INTERVAL_DEFAULT_NS NSEC_PER_SEC
#define SAMPLES_MAX 1000000

const char help_monitor[] =
	"  --duration SECONDS  how long, default 10; Ctrl-C ends it early\n"
	"  --interval SECONDS  between samples, default 1\n"
	"\n"
	"Shows each sample, the queues of the first one, statistics and what to make of them.\n"
	"The process stays attached meanwhile: nobody else can debug it.\n";

struct watch {
	pid_t pid;
	uint64_t duration_ns, interval_ns;

	struct gpreempt_process *process;
	struct gpreempt_monitor *monitor;
	uint64_t began_ns;
	struct json_object *samples, *first; /* JSON only */
	uint32_t *ids; /* of the last sample, sorted; NULL: there was none */
	size_t n_ids;
};

static int parse(struct cli *cli, int argc, char **argv, struct watch *w)
{
	const struct command_option options[] = {
		{ "duration", 0, option_seconds, &w->duration_ns },
		{ "interval", 0, option_seconds, &w->interval_ns },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = parse_pid(cli, argv[optind], &w->pid);
	if (status == EXIT_DONE && w->duration_ns / w->interval_ns > SAMPLES_MAX)
		status = cli_usage(cli, "that would be more than %d samples", SAMPLES_MAX);
	return status;
}

static uint32_t *sorted_ids(const struct gpreempt_queue *queues, size_t n)
{
	uint32_t *ids = calloc(n ? n : 1, sizeof(*ids));

	for (size_t i = 0; ids && i < n; i++)
		ids[i] = queues[i].queue_id;
	if (ids && n)
		qsort(ids, n, sizeof(*ids), compare_u32);
	return ids;
}

/* How many of @a are not in @b; both sorted. */
static size_t count_missing(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b)
{
	size_t missing = 0;

	for (size_t i = 0; i < n_a; i++)
		if (!n_b || !bsearch(&a[i], b, n_b, sizeof(*b), compare_u32))
			missing++;
	return missing;
}

static size_t count_busy(const struct gpreempt_queue *queues, size_t n)
{
	size_t busy = 0;

	for (size_t i = 0; i < n; i++)
		busy += (queues[i].valid & GPREEMPT_QUEUE_STATE) &&
			strcmp(queues[i].state, "idle") != 0;
	return busy;
}

static void show_text(struct watch *w, const struct gpreempt_queue *queues, size_t n,
		      const uint32_t *ids, uint64_t time_ns)
{
	bool first = !w->ids;
	size_t came = count_missing(ids, n, w->ids, w->n_ids);
	size_t went = count_missing(w->ids, w->n_ids, ids, n);

	printf("%9.3f s  %4zu queues  %4zu with work", (double)(time_ns - w->began_ns) / 1e9, n,
	       count_busy(queues, n));
	if (!first && (came || went))
		printf("  %zu new, %zu gone", came, went);
	printf("\n");
	if (first && n) {
		printf("\n");
		print_queue_table(queues, n, false);
		printf("\n");
	}
	fflush(stdout);
}

static struct json_object *ids_to_json(const uint32_t *ids, size_t n)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, json_object_new_uint64(ids[i]));
	return list;
}

static void note_json(struct watch *w, const struct gpreempt_queue *queues, size_t n,
		      const uint32_t *ids, uint64_t time_ns)
{
	struct json_object *sample = json_of("time_ns", json_object_new_uint64(time_ns));

	json_add_uint(sample, "count", n);
	json_add(sample, "ids", ids_to_json(ids, n));
	json_object_array_add(w->samples, sample);
	for (size_t i = 0; !w->ids && i < n; i++)
		json_object_array_add(w->first, queue_to_json(&queues[i]));
}

static int sample(struct cli *cli, struct watch *w)
{
	const struct gpreempt_queue *queues;
	uint64_t time_ns = 0;
	uint32_t *ids;
	int n;

	n = gpreempt_monitor_sample(w->monitor, &queues, &time_ns);
	if (n < 0)
		return cli_fail_ctx(cli);
	ids = sorted_ids(queues, (size_t)n);
	if (!ids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (cli->json)
		note_json(w, queues, (size_t)n, ids, time_ns);
	else
		show_text(w, queues, (size_t)n, ids, time_ns);
	free(w->ids);
	w->ids = ids;
	w->n_ids = (size_t)n;
	return EXIT_DONE;
}

/* Samples until the time is over, a person has seen enough or the process has gone. */
static int watch(struct cli *cli, struct watch *w)
{
	uint64_t next = 0;
	int status = EXIT_DONE, sig;

	sig = signals_take(cli);
	if (sig)
		return cli_fail(cli, EXIT_FAILED, "nothing was seen yet", "interrupted: %s",
				signal_word(sig));
	w->began_ns = gpreempt_now_ns(cli->ctx);
	while (status == EXIT_DONE && next <= w->duration_ns) {
		struct pollfd fds[] = {
			{ .fd = cli->signal_fd, .events = POLLIN },
			{ .fd = gpreempt_process_fd(w->process), .events = POLLIN },
		};
		uint64_t passed;

		status = sample(cli, w);
		if (status != EXIT_DONE || cli_stdout_broken())
			break;
		passed = gpreempt_now_ns(cli->ctx) - w->began_ns;
		next += w->interval_ns;
		while (next < passed)
			next += w->interval_ns; /* a sample that took too long is not made up for */
		if (next > w->duration_ns)
			break;
		if (gpreempt_wait(cli->ctx, fds, ARRAY_SIZE(fds), next - passed) < 0)
			status = cli_fail_ctx(cli);
		if (signals_take(cli))
			break;
	}
	return status;
}

static const char *key_text(const struct gpreempt_count *c, bool type, char buf[UNIT_TEXT_SIZE])
{
	if (type)
		return gpreempt_queue_type_name((enum gpreempt_queue_type)c->key);
	snprintf(buf, UNIT_TEXT_SIZE, "%u", c->key);
	return buf;
}

static struct json_object *counts_to_json(const struct gpreempt_count *counts, size_t n, bool types)
{
	struct json_object *o = json_object_new_object();
	char buf[UNIT_TEXT_SIZE];

	for (size_t i = 0; i < n; i++)
		json_add_uint(o, key_text(&counts[i], types, buf), counts[i].count);
	return o;
}

static int report_json(struct cli *cli, struct watch *w, const struct gpreempt_stats *s)
{
	struct json_object *o = json_of("pid", json_object_new_int((int)w->pid));
	struct json_object *stats = json_object_new_object();

	json_add(o, "samples", json_object_get(w->samples));
	json_add(o, "queues", json_object_get(w->first));
	json_add_uint(stats, "samples", s->samples);
	json_add_uint(stats, "min", s->min);
	json_add_uint(stats, "max", s->max);
	json_add(stats, "avg", json_decimal(s->avg, 2));
	json_add(stats, "stable", json_object_new_boolean(s->stable));
	json_add(stats, "id_frequency", counts_to_json(s->ids, s->n_ids, false));
	json_add(stats, "by_gpu", counts_to_json(s->gpus, s->n_gpus, false));
	json_add(stats, "by_type", counts_to_json(s->types, s->n_types, true));
	json_add(o, "stats", stats);
	json_add(o, "ids", ids_to_json(w->ids, w->n_ids));
	json_add_string(o, "advice", s->advice);
	return cli_print_json(cli, o);
}

static void print_counts(const char *what, const struct gpreempt_stats *s,
			 const struct gpreempt_count *counts, size_t n, bool types)
{
	char buf[UNIT_TEXT_SIZE];

	printf("%-10s", what);
	for (size_t i = 0; i < n; i++)
		printf("%s%s: %.1f", i ? ", " : "", key_text(&counts[i], types, buf),
		       (double)counts[i].count / (double)s->samples);
	printf(" on average\n");
}

static int report_text(struct cli *cli, struct watch *w, const struct gpreempt_stats *s)
{
	size_t always = 0;
	char buf[32];

	for (size_t i = 0; i < s->n_ids; i++)
		always += s->ids[i].count == s->samples;
	printf("\n%llu samples: %u to %u queues, %.1f on average; %zu ids seen, %zu of them "
	       "always\n",
	       (unsigned long long)s->samples, s->min, s->max, s->avg, s->n_ids, always);
	if (s->n_ids) {
		print_counts("by gpu", s, s->gpus, s->n_gpus, false);
		print_counts("by type", s, s->types, s->n_types, true);
	}
	printf("%s: %s\n\n", bold(cli, "verdict", buf, sizeof(buf)), s->advice);
	print_id_array(w->ids, w->n_ids);
	return EXIT_DONE;
}

static int monitor(struct cli *cli, struct watch *w)
{
	struct gpreempt_stats stats = { .size = sizeof(stats) };
	int status = cli_open(cli);

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_attach(cli->ctx, w->pid, GPREEMPT_ATTACH_LOOK_ONLY, &w->process) < 0 ||
	    gpreempt_monitor_new(w->process, &w->monitor) < 0)
		return cli_fail_ctx(cli);
	w->samples = json_object_new_array();
	w->first = json_object_new_array();
	status = watch(cli, w);
	if (status == EXIT_DONE && gpreempt_monitor_stats(w->monitor, &stats) < 0)
		status = cli_fail_ctx(cli);
	if (status == EXIT_DONE)
		status = cli->json ? report_json(cli, w, &stats) : report_text(cli, w, &stats);
	json_object_put(w->samples);
	json_object_put(w->first);
	return status;
}

int cmd_monitor(struct cli *cli, int argc, char **argv)
{
	struct watch w = { .duration_ns = DURATION_DEFAULT_NS, .interval_ns = INTERVAL_DEFAULT_NS };
	int status = parse(cli, argc, argv, &w);

	if (status == EXIT_DONE)
		status = monitor(cli, &w);
	gpreempt_monitor_free(w.monitor);
	gpreempt_detach(w.process);
	free(w.ids);
	return status;
}
