/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/job_text.h"
#include "cmd/gpreempt/table.h"

static void print_head(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	uint64_t up = s->now_ns > s->started_ns ? (s->now_ns - s->started_ns) / NSEC_PER_SEC : 0;
	char age[UNIT_TEXT_SIZE], head[64];

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
	if (s->unwatched[0])
		printf("  unwatched %s\n", s->unwatched);
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
	printf("  seen      %llu by watch, %llu by look, %llu by hint, %llu late\n",
	       (unsigned long long)s->seen_by_watch, (unsigned long long)s->seen_by_look,
	       (unsigned long long)s->seen_by_hint, (unsigned long long)s->seen_late);
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

static void number_cell(struct libscols_table *t, size_t column, bool known, uint64_t n)
{
	if (known)
		table_cell(t, column, "%llu", (unsigned long long)n);
	else
		table_cell(t, column, "-");
}

static const char *preemption_of(const struct snapshot *s, const struct gpreempt_daemon_gpu *g)
{
	if (g->tripped)
		return "off: tripped";
	for (size_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i].gpu_id == g->gpu_id && s->jobs[i].blind)
			return "on, blind";
	return "on";
}

/* Where the driver does not tell how many slots there are, nobody counts who has them. */
static void print_gpus(const struct snapshot *s)
{
	static const struct column columns[] = {
		{ "GPU", true },	 { "NAME", false },  { "SLOTS", true }, { "ONLINE", true },
		{ "OFFLINE", true },	 { "CYCLES", true }, { "TRIPS", true }, { "DENIED", true },
		{ "PREEMPTION", false },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct gpreempt_daemon_gpu *g = &s->gpus[i];
		bool all = s->status.privileged, counted = all && g->slots;

		table_row(t);
		number_cell(t, 0, true, g->gpu_id);
		table_cell(t, 1, "%s", g->name);
		number_cell(t, 2, g->slots, g->slots);
		number_cell(t, 3, counted, g->slots_online);
		number_cell(t, 4, counted, g->slots_offline);
		number_cell(t, 5, all, g->cycles);
		number_cell(t, 6, all, g->trips);
		number_cell(t, 7, all, g->denied_by_budget + g->denied_by_cost);
		table_cell(t, 8, "%s", preemption_of(s, g));
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

static void print_tripped(struct cli *cli, const struct snapshot *s)
{
	char head[64];

	for (size_t i = 0; i < s->n_gpus; i++) {
		const char *why = s->gpus[i].tripped_by;

		if (!s->gpus[i].tripped)
			continue;
		printf("%s: GPU %u: nothing is held on it any more%s%s\n"
		       "  hint: look at dmesg, then gpreempt rearm %u\n",
		       bold(cli, "tripped", head, sizeof(head)), s->gpus[i].gpu_id,
		       why[0] ? ": " : "", why, s->gpus[i].gpu_id);
		print_trip(s->trips[i]);
	}
}

static void print_blind(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	char head[64];

	if (s->blind[0])
		printf("%s: work goes unseen: %s\n  hint: see gpreempt doctor\n",
		       bold(cli, "blind", head, sizeof(head)), s->blind);
}

static const char *duration_or_none(uint64_t ns, char buf[UNIT_TEXT_SIZE])
{
	return ns ? text_duration(ns, buf) : "0";
}

static void print_jobs(const struct snapshot *s)
{
	static const struct column columns[] = {
		{ "PID", true, "pid" },
		{ "COMMAND", false, "comm" },
		{ "GPU", true, "gpu_id" },
		{ "CLASS", false, "job_class" },
		{ "PRIORITY", true, "priority" },
		{ "STATE", false, "state" },
		{ "QUEUES", true, "queues" },
		{ "PREEMPTED", true, "preempted" },
		{ "HELD", true, "held_ns" },
		{ "MAX WAIT", true, "longest_wait_ns" },
		{ "SHARE", true, "share_permille" },
		{ "CLASS BY", false, "source" },
		{ "NOTE", false, "why" },
	};
	struct libscols_table *t;
	char buf[UNIT_TEXT_SIZE];

	if (s->n_jobs == 0) {
		printf("\nno process%s uses a GPU\n", s->status.processes ? " of yours" : "");
		return;
	}
	t = table_new(columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < s->n_jobs; i++) {
		table_row(t);
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
			table_cell(t, c, "%s",
				   job_cell(&s->jobs[i], columns[c].field, duration_or_none, buf));
	}
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
static int read_trips(struct cli *cli, struct snapshot *s)
{
	s->trips = calloc(s->n_gpus + 1, sizeof(*s->trips));
	if (!s->trips)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	for (size_t i = 0; i < s->n_gpus && s->status.privileged; i++) {
		const struct gpreempt_daemon_gpu *g = &s->gpus[i];
		int r = g->tripped ?
				gpreempt_daemon_get_trip(cli->daemon, g->gpu_id, &s->trips[i]) :
				0;

		if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
			return daemon_failed(cli, cli->daemon);
	}
	return EXIT_DONE;
}

static int print_text(struct cli *cli, const struct snapshot *s)
{
	print_tripped(cli, s);
	print_blind(cli, &s->status);
	print_head(cli, &s->status);
	if (s->status.privileged)
		print_latencies(&s->status);
	print_gpus(s);
	print_jobs(s);
	if (!s->status.privileged)
		printf("\nthe rest is for root and the daemon's group\n");
	return EXIT_DONE;
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
	struct snapshot s = { 0 };
	int status = daemon_begin(cli, argc, argv);

	if (status != EXIT_DONE)
		return status;
	if (snapshot_read(&s, cli->socket, &cli->daemon) < 0)
		return daemon_fail_error(cli, &s.error);
	text_clean(s.status.blind);
	text_clean(s.status.unwatched);
	for (size_t i = 0; i < s.n_gpus; i++)
		text_clean(s.gpus[i].tripped_by);
	qsort(s.gpus, s.n_gpus, sizeof(*s.gpus), tripped_first);
	status = read_trips(cli, &s);
	if (status == EXIT_DONE)
		status = cli->json ? status_print_json(cli, &s) : print_text(cli, &s);
	snapshot_done(&s);
	return status;
}
