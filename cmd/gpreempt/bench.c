/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "cmd/gpreempt/figures.h"
#include "cmd/gpreempt/table.h"

#define ROUNDS_DEFAULT 10
#define ROUNDS_MAX 10000000
#define WORK_MS_DEFAULT 10
#define WORK_MS_MAX 3600000
#define RUN_MIN_NS NSEC_PER_MSEC
#define FAILURES_IN_A_ROW 3

const char help_bench[] =
	"  -n, --rounds N      default 10\n"
	"  --work MS           how long the urgent work of each round takes, default 10\n"
	"  --grace KCLK        thousands of GPU clocks running work gets to end by itself,\n"
	"                      1 (default) to 255; not on NVIDIA GPUs\n"
	"  --level LEVEL       insist on one way to do it; see gpreempt doctor\n"
	"\n"
	"Each round lets the process run, suspends all its queues, waits as long as the urgent\n"
	"work would take, and resumes. Three failed rounds in a row end it. 'total' is suspend\n"
	"and resume together, without the work.\n";

struct bench {
	pid_t pid;
	uint64_t wanted, work_ns;
	const char *level;
	struct gpreempt_suspend_options options;

	struct gpreempt_process *process;
	uint64_t open_ns, attach_ns;
	struct figures snapshot, suspend, resume, total, save;
	uint64_t ok, failed;
	uint64_t saved_bytes; /* of all rounds */
	bool has_saved, modelled;
	uint32_t queues;
	const char *unit; /* of which there are so many */
	int signal; /* that ended it; 0: none */
	struct gpreempt_error error; /* the last failed round's */
};

static int parse(struct cli *cli, int argc, char **argv, struct bench *b)
{
	uint64_t work_ms = WORK_MS_DEFAULT;
	const struct command_option options[] = {
		{ "rounds", 'n', option_number, &b->wanted, 1, ROUNDS_MAX },
		{ "work", 0, option_number, &work_ms, 0, WORK_MS_MAX },
		{ "grace", 0, option_grace, &b->options.grace_kclk },
		{ "level", 0, option_text, &b->level },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status != EXIT_DONE)
		return status;
	b->work_ns = work_ms * NSEC_PER_MSEC;
	if (level_flags(b->level) == GPREEMPT_ATTACH_PAUSE && b->options.grace_kclk)
		return cli_usage(cli, "--grace does not go with level K1");
	status = check_arguments(cli, argc - optind, 1, 1);
	return status == EXIT_DONE ? parse_pid(cli, argv[optind], &b->pid) : status;
}

static int make_room(struct cli *cli, struct bench *b)
{
	if (figures_init(&b->snapshot, b->wanted) < 0 || figures_init(&b->suspend, b->wanted) < 0 ||
	    figures_init(&b->resume, b->wanted) < 0 || figures_init(&b->total, b->wanted) < 0 ||
	    figures_init(&b->save, b->wanted) < 0)
		return cli_fail(cli, EXIT_FAILED, "fewer rounds need less", "out of memory");
	return EXIT_DONE;
}

static int attach(struct cli *cli, struct bench *b)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };
	uint64_t began = gpreempt_now_ns(cli->ctx);

	if (gpreempt_get_device_info(cli->ctx, &info) < 0)
		return cli_fail_ctx(cli);
	b->open_ns = gpreempt_now_ns(cli->ctx) - began;
	b->modelled = cli_is_modelled(cli);
	b->unit = cli_unit(cli);
	began = gpreempt_now_ns(cli->ctx);
	if (gpreempt_attach(cli->ctx, b->pid, level_flags(b->level), &b->process) < 0)
		return cli_fail_ctx(cli);
	b->attach_ns = gpreempt_now_ns(cli->ctx) - began;
	gpreempt_keepalive(cli->ctx);
	return EXIT_DONE;
}

/* Lets the job run before it is suspended again, or there would be nothing to save. */
static int let_run(struct cli *cli, const struct bench *b)
{
	struct pollfd fd = { .fd = cli->signal_fd, .events = POLLIN };
	int r = gpreempt_wait(cli->ctx, &fd, 1, MAX(b->work_ns, RUN_MIN_NS));

	return r > 0 ? -EINTR : r;
}

/* 0, or -errno; -EINTR: a signal has come. */
static int round_of(struct cli *cli, struct bench *b)
{
	struct pollfd fd = { .fd = cli->signal_fd, .events = POLLIN };
	struct gpreempt_timing down = { .size = sizeof(down) }, up = { .size = sizeof(up) };
	uint64_t began = gpreempt_now_ns(cli->ctx), snapshot_ns;
	int r, waited;

	r = gpreempt_snapshot(b->process, NULL, 0, NULL);
	if (r < 0)
		return r;
	snapshot_ns = gpreempt_now_ns(cli->ctx) - began;
	r = gpreempt_suspend_queues(b->process, NULL, 0, &b->options, &down);
	if (r < 0)
		return r;
	waited = gpreempt_wait(cli->ctx, &fd, 1, b->work_ns);
	r = gpreempt_resume_queues(b->process, &up);
	if (r < 0 || waited < 0)
		return r < 0 ? r : waited;

	b->queues = down.queues;
	figures_add(&b->snapshot, snapshot_ns);
	figures_add(&b->suspend, down.call_ns);
	figures_add(&b->resume, up.call_ns);
	figures_add(&b->total, down.call_ns + up.call_ns);
	if (down.has_save_ns)
		figures_add(&b->save, down.save_ns);
	if (down.has_saved)
		b->saved_bytes += down.saved_bytes;
	b->has_saved = down.has_saved;
	b->ok++;
	return waited > 0 ? -EINTR : 0;
}

static bool gave_up(struct cli *cli, struct bench *b, int r, unsigned int *in_a_row)
{
	if (r >= 0) {
		*in_a_row = 0;
		return false;
	}
	b->failed++;
	gpreempt_get_error(cli->ctx, &b->error);
	return ++*in_a_row == FAILURES_IN_A_ROW || gpreempt_process_check(b->process) < 0;
}

static void run_rounds(struct cli *cli, struct bench *b)
{
	unsigned int in_a_row = 0;
	struct progress progress;

	progress_begin(&progress);
	while (b->ok + b->failed < b->wanted) {
		int r;

		b->signal = signals_take(cli);
		if (b->signal || cli_stdout_broken())
			break;
		r = let_run(cli, b);
		if (r >= 0)
			r = round_of(cli, b);
		if (r == -EINTR)
			continue; /* the signal waits to be taken */
		if (gave_up(cli, b, r, &in_a_row))
			break;
		progress_show(&progress, "round %llu of %llu, %llu failed",
			      (unsigned long long)(b->ok + b->failed),
			      (unsigned long long)b->wanted, (unsigned long long)b->failed);
	}
	progress_end(&progress);
}

/* ---- what came of it ---- */

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

/* ---- entry ---- */

static int bench(struct cli *cli, struct bench *b)
{
	int status = cli_open(cli);

	if (status == EXIT_DONE)
		status = check_level(cli, b->level);
	if (status == EXIT_DONE)
		status = make_room(cli, b);
	if (status == EXIT_DONE)
		status = attach(cli, b);
	if (status != EXIT_DONE)
		return status;
	run_rounds(cli, b);
	b->process = gpreempt_detach(b->process);
	if (b->ok == 0 && b->failed)
		return cli_fail_error(cli, &b->error);
	status = cli->json ? print_json(cli, b) : print_text(cli, b);
	return status == EXIT_DONE && (b->failed || b->signal) ? EXIT_FAILED : status;
}

int cmd_bench(struct cli *cli, int argc, char **argv)
{
	struct bench b = {
		.wanted = ROUNDS_DEFAULT,
		.options = { .size = sizeof(b.options), .want_saved = true },
		.error = { .size = sizeof(b.error) },
	};
	int status = parse(cli, argc, argv, &b);

	if (status == EXIT_DONE)
		status = bench(cli, &b);
	figures_done(&b.snapshot);
	figures_done(&b.suspend);
	figures_done(&b.resume);
	figures_done(&b.total);
	figures_done(&b.save);
	return status;
}
