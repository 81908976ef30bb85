/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>

#include "cmd/gpreempt/bench.h"

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
	if (level_pauses(b->level) && b->options.grace_kclk)
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
	status = bench_report(cli, b);
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
