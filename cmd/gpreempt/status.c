/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/job_text.h"
#include "cmd/gpreempt/status.h"
#include "cmd/gpreempt/table.h"

static void print_head(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	uint64_t up = s->now_ns > s->started_ns ? (s->now_ns - s->started_ns) / NSEC_PER_SEC : 0;
	char age[AGE_TEXT_SIZE], head[64];

	printf("%s: pid %d, up %s%s\n", bold(cli, "gpreemptd", head, sizeof(head)), (int)s->pid,
	       text_age(up, age), s->paused ? ", PAUSED (gpreempt continue takes up again)" : "");
	printf("  version   %s\n", s->version);
	if (s->config[0])
		printf("  config    %s\n", s->config);
	printf("  policy    %s%s\n", s->policy,
	       s->kernel ? "; the kernel's scheduler decides: gpreempt kernel" : "");
	printf("  backend   %s%s%s%s%s\n", s->backend, s->level[0] ? ", level " : "", s->level,
	       s->modelled ? "; all times are modelled" : "",
	       s->guarded || s->modelled || s->paused ? "" : "; NO GUARD stands beside it");
	printf("  running   %u online and %u offline process%s with %u queue%s on %u GPU%s\n",
	       s->online, s->offline, s->online + s->offline == 1 ? "" : "es", s->queues,
	       s->queues == 1 ? "" : "s", s->gpus, s->gpus == 1 ? "" : "s");
	if (!s->privileged)
		return;
	printf("  now       %u held, %u attached\n", s->held, s->attached);
	printf("  so far    %llu preemption%s, %llu trip%s; online work waited for offline %llu "
	       "time%s, resolved %llu; %llu hint%s, %llu refused\n",
	       (unsigned long long)s->preemptions, s->preemptions == 1 ? "" : "s",
	       (unsigned long long)s->trips, s->trips == 1 ? "" : "s",
	       (unsigned long long)s->inversions, s->inversions == 1 ? "" : "s",
	       (unsigned long long)s->resolved, (unsigned long long)s->hints,
	       s->hints == 1 ? "" : "s", (unsigned long long)s->hints_refused);
}

static void latency_row(struct libscols_table *t, const char *what,
			const struct gpreempt_latency *l)
{
	char buf[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%s", what);
	table_cell(t, 1, "%llu", (unsigned long long)l->count);
	table_cell(t, 2, "%s", l->count ? text_duration(l->p50_ns, buf) : "-");
	table_cell(t, 3, "%s", l->count ? text_duration(l->p99_ns, buf) : "-");
	table_cell(t, 4, "%s", l->count ? text_duration(l->max_ns, buf) : "-");
}

static void print_latencies(const struct gpreempt_daemon_status *s)
{
	const struct column columns[] = {
		{ s->modelled ? "LATENCY (MODELLED)" : "LATENCY", false },
		{ "COUNT", true },
		{ "P50", true },
		{ "P99", true },
		{ "MAX", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	latency_row(t, "detection", &s->detection);
	latency_row(t, "suspend", &s->suspend);
	latency_row(t, "resume", &s->resume);
	printf("\n");
	table_print(t);
}

/* Where the driver does not tell how many there are, nobody counts who has them. */
static void slots_cell(struct libscols_table *t, size_t column, bool known, uint32_t n)
{
	if (known)
		table_cell(t, column, "%u", n);
	else
		table_cell(t, column, "-");
}

static const char *preemption_of(const struct daemon_view *v, const struct gpreempt_daemon_gpu *g)
{
	if (g->tripped)
		return "off: tripped";
	for (size_t i = 0; i < v->n_jobs; i++)
		if (v->jobs[i].gpu_id == g->gpu_id && v->jobs[i].blind)
			return "on, blind";
	return "on";
}

static void print_gpus(const struct daemon_view *v)
{
	static const struct column columns[] = {
		{ "GPU", true },	 { "NAME", false },  { "SLOTS", true }, { "ONLINE", true },
		{ "OFFLINE", true },	 { "CYCLES", true }, { "TRIPS", true }, { "DENIED", true },
		{ "PREEMPTION", false },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < v->n_gpus; i++) {
		const struct gpreempt_daemon_gpu *g = &v->gpus[i];
		uint64_t denied = g->denied_by_budget + g->denied_by_cost;

		table_row(t);
		table_cell(t, 0, "%u", g->gpu_id);
		table_cell(t, 1, "%s", g->name);
		slots_cell(t, 2, g->slots, g->slots);
		for (size_t c = 3; !v->status.privileged && c < 8; c++)
			table_cell(t, c, "-");
		table_cell(t, 8, "%s", preemption_of(v, g));
		if (!v->status.privileged)
			continue;
		slots_cell(t, 3, g->slots, g->slots_online);
		slots_cell(t, 4, g->slots, g->slots_offline);
		table_cell(t, 5, "%llu", (unsigned long long)g->cycles);
		table_cell(t, 6, "%llu", (unsigned long long)g->trips);
		table_cell(t, 7, "%llu", (unsigned long long)denied);
	}
	printf("\n");
	table_print(t);
}

static void print_trip(const char *trip)
{
	char *line;

	while ((line = text_next_line(&trip))) {
		printf("  | %s\n", line);
		free(line);
	}
}

static void print_tripped(struct cli *cli, const struct daemon_view *v)
{
	char head[64];

	for (size_t i = 0; i < v->n_gpus; i++) {
		char why[sizeof(v->gpus[i].tripped_by)];

		if (!v->gpus[i].tripped)
			continue;
		memcpy(why, v->gpus[i].tripped_by, sizeof(why));
		text_clean(why);
		printf("%s: GPU %u: nothing is held on it any more%s%s\n"
		       "  hint: look at dmesg, then gpreempt rearm %u\n",
		       bold(cli, "tripped", head, sizeof(head)), v->gpus[i].gpu_id,
		       why[0] ? ": " : "", why, v->gpus[i].gpu_id);
		print_trip(v->trips[i]);
	}
}

static void print_blind(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	char head[64], why[sizeof(s->blind)];

	if (!s->blind[0])
		return;
	memcpy(why, s->blind, sizeof(why));
	text_clean(why);
	printf("%s: work goes unseen: %s\n  hint: see gpreempt doctor\n",
	       bold(cli, "blind", head, sizeof(head)), why);
}

static const char *duration_or_none(uint64_t ns, char buf[UNIT_TEXT_SIZE])
{
	return ns ? text_duration(ns, buf) : "0";
}

static void job_row(struct libscols_table *t, const struct gpreempt_daemon_job *j)
{
	char buf[UNIT_TEXT_SIZE];

	table_row(t);
	table_cell(t, 0, "%d", (int)j->pid);
	table_cell(t, 1, "%s", j->comm);
	table_cell(t, 2, j->gpu_id ? "%u" : "-", j->gpu_id);
	table_cell(t, 3, "%s", job_class_word(j->job_class));
	table_cell(t, 5, "%s", job_state(j));
	table_cell(t, 6, "%u", j->queues);
	if (!j->detailed) {
		for (size_t c = 7; c < 11; c++)
			table_cell(t, c, "-");
		table_cell(t, 4, "-");
		return;
	}
	table_cell(t, 4, "%u%s", j->priority, j->critical ? "!" : "");
	table_cell(t, 7, "%llu", (unsigned long long)j->preempted);
	table_cell(t, 8, "%s", duration_or_none(j->held_ns, buf));
	table_cell(t, 9, "%s",
		   j->unseen && !j->longest_wait_ns ? "-" :
						      duration_or_none(j->longest_wait_ns, buf));
	table_cell(t, 10, j->unseen ? "-" : "%u %%", (j->share_permille + 5) / 10);
	table_cell(t, 11, "%s", j->source);
	table_cell(t, 12, "%s", j->why);
}

static void print_jobs(const struct daemon_view *v)
{
	static const struct column columns[] = {
		{ "PID", true },      { "COMMAND", false },  { "GPU", true },
		{ "CLASS", false },   { "PRIORITY", true },  { "STATE", false },
		{ "QUEUES", true },   { "PREEMPTED", true }, { "HELD", true },
		{ "MAX WAIT", true }, { "SHARE", true },     { "CLASS BY", false },
		{ "NOTE", false },
	};
	struct libscols_table *t;

	if (v->n_jobs == 0) {
		printf("\nno process%s uses a GPU\n", v->status.processes ? " of yours" : "");
		return;
	}
	t = table_new(columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < v->n_jobs; i++)
		job_row(t, &v->jobs[i]);
	printf("\n");
	table_print(t);
}

static int tripped_first(const void *a, const void *b)
{
	const struct gpreempt_daemon_gpu *x = a, *y = b;

	if (x->tripped != y->tripped)
		return x->tripped ? -1 : 1;
	return (x->gpu_id > y->gpu_id) - (x->gpu_id < y->gpu_id);
}

/* Of a GPU that is rearmed meanwhile, or by a daemon of before, there is nothing to tell. */
static int read_trips(struct cli *cli, struct gpreempt_daemon *d, struct daemon_view *v)
{
	v->trips = calloc(v->n_gpus + 1, sizeof(*v->trips));
	if (!v->trips)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	for (size_t i = 0; i < v->n_gpus && v->status.privileged; i++) {
		int r = v->gpus[i].tripped ?
				gpreempt_daemon_get_trip(d, v->gpus[i].gpu_id, &v->trips[i]) :
				0;

		if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
			return daemon_failed(cli, d);
	}
	return EXIT_DONE;
}

static void free_view(struct daemon_view *v)
{
	for (size_t i = 0; v->trips && i < v->n_gpus; i++)
		free(v->trips[i]);
	free(v->trips);
	free(v->gpus);
	free(v->jobs);
}

static int read_view(struct cli *cli, struct gpreempt_daemon *d, struct daemon_view *v)
{
	int status;

	v->status.size = sizeof(v->status);
	if (gpreempt_daemon_get_status(d, &v->status) < 0)
		return daemon_failed(cli, d);
	status = daemon_read_gpus(cli, d, &v->gpus, &v->n_gpus);
	if (status == EXIT_DONE)
		status = daemon_read_jobs(cli, d, &v->jobs, &v->n_jobs);
	if (status == EXIT_DONE)
		qsort(v->gpus, v->n_gpus, sizeof(*v->gpus), tripped_first);
	return status == EXIT_DONE ? read_trips(cli, d, v) : status;
}

static int print_text(struct cli *cli, const struct daemon_view *v)
{
	print_tripped(cli, v);
	print_blind(cli, &v->status);
	print_head(cli, &v->status);
	if (v->status.privileged)
		print_latencies(&v->status);
	print_gpus(v);
	print_jobs(v);
	if (!v->status.privileged)
		printf("\nthe rest is for root and the daemon's group\n");
	return EXIT_DONE;
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
	_cleanup_daemon_ struct gpreempt_daemon *d = NULL;
	struct daemon_view v = { 0 };
	int status = daemon_begin(cli, argc, argv, &d);

	if (status == EXIT_DONE)
		status = read_view(cli, d, &v);
	if (status == EXIT_DONE)
		status = cli->json ? status_print_json(cli, &v) : print_text(cli, &v);
	free_view(&v);
	return status;
}
