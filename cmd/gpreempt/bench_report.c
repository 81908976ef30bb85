/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/bench.h"
#include "cmd/gpreempt/table.h"

/* What a scheduler needs: 5 ms each way for a 50 ms answer, a tenth of that to go unnoticed. */
#define GOOD_NS (500 * NSEC_PER_USEC)
#define USABLE_NS (5 * NSEC_PER_MSEC)

static const char *advice(struct bench *b)
{
	struct summary total;

	if (b->failed)
		return "some rounds failed: look at dmesg before relying on preemption here";
	if (b->queues == 0)
		return "the process has no queues: there was nothing to suspend";
	total = figures_sum_up(&b->total);
	if (total.p99 < 2 * GOOD_NS)
		return "fast enough to preempt for single requests";
	if (total.p99 < 2 * USABLE_NS)
		return "fast enough for online work with deadlines above 20 ms; hold for several "
		       "requests at a time";
	return "slow: hold for longer periods rather than per request";
}

static void add_figures(struct json_object *o, const char *key, struct figures *f)
{
	struct json_object *value = figures_to_json(f);

	if (value)
		json_add(o, key, value);
}

static struct json_object *curves(struct bench *b)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "suspend", figures_curve(&b->suspend));
	json_add(o, "resume", figures_curve(&b->resume));
	json_add(o, "total", figures_curve(&b->total));
	return o;
}

static int print_json(struct cli *cli, struct bench *b)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "rounds", b->ok + b->failed);
	json_add_uint(o, "ok", b->ok);
	json_add_uint(o, "failed", b->failed);
	json_object_object_add(o, "modelled", json_object_new_boolean(b->modelled));
	if (b->signal)
		json_object_object_add(o, "interrupted", json_object_new_boolean(true));
	json_add_uint(o, "queues", b->queues);
	json_object_object_add(o, "open_us", json_us(b->open_ns));
	json_object_object_add(o, "attach_us", json_us(b->attach_ns));
	add_figures(o, "snapshot_us", &b->snapshot);
	add_figures(o, "suspend_us", &b->suspend);
	add_figures(o, "resume_us", &b->resume);
	add_figures(o, "total_us", &b->total);
	add_figures(o, "save_us", &b->save);
	if (b->total.n)
		json_add(o, "cdf", curves(b));
	if (b->has_saved && b->ok)
		json_add_uint(o, "saved_bytes", b->saved_bytes / b->ok);
	json_add_string(o, "advice", advice(b));
	return cli_print_json(cli, o);
}

static void print_row(struct libscols_table *t, const char *name, struct figures *f)
{
	struct summary s = figures_sum_up(f);
	char buf[UNIT_TEXT_SIZE];

	if (f->n == 0)
		return;
	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", text_duration(s.min, buf));
	table_cell(t, 2, "%s", text_duration(s.avg, buf));
	table_cell(t, 3, "%s", text_duration(s.p50, buf));
	table_cell(t, 4, "%s", text_duration(s.p99, buf));
	table_cell(t, 5, "%s", text_duration(s.max, buf));
}

static void print_figures(struct bench *b)
{
	static const struct column columns[] = {
		{ "", false },	 { "MIN", true }, { "AVERAGE", true },
		{ "P50", true }, { "P99", true }, { "MAX", true },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));

	print_row(t, "snapshot", &b->snapshot);
	print_row(t, "suspend", &b->suspend);
	print_row(t, "  of it, save", &b->save);
	print_row(t, "resume", &b->resume);
	print_row(t, "total", &b->total);
	table_print(t);
}

static int print_text(struct cli *cli, struct bench *b)
{
	const char *modelled = b->modelled ? " (times are modelled)" : "";
	char buf[UNIT_TEXT_SIZE], open[UNIT_TEXT_SIZE], verdict[32];

	printf("process %d: %u %ss, %llu of %llu rounds succeeded%s\n", (int)b->pid, b->queues,
	       b->unit, (unsigned long long)b->ok, (unsigned long long)(b->ok + b->failed),
	       modelled);
	if (b->failed)
		printf("last failure: %s\n", b->error.message);
	if (b->signal)
		printf("%s: ended after %llu of %llu rounds; nothing is held\n",
		       signal_word(b->signal), (unsigned long long)(b->ok + b->failed),
		       (unsigned long long)b->wanted);
	printf("open %s, attach %s", text_duration(b->open_ns, open),
	       text_duration(b->attach_ns, buf));
	if (b->has_saved && b->ok)
		printf(", %s saved per round", text_bytes(b->saved_bytes / b->ok, buf));
	printf("\n\n");
	if (b->ok) {
		print_figures(b);
		printf("\n");
	}
	printf("%s: %s\n", bold(cli, "verdict", verdict, sizeof(verdict)), advice(b));
	return EXIT_DONE;
}

int bench_report(struct cli *cli, struct bench *b)
{
	return cli->json ? print_json(cli, b) : print_text(cli, b);
}
