/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/accept.h"

#define ROUNDS_DEFAULT 30
#define ROUNDS_MAX 100000
#define MAX_CHECKS 32

const char help_accept[] =
	"  -o, --output FILE   the report; default gpreempt-accept-PID-TIME.txt, here. A file\n"
	"                      that exists is never written over\n"
	"  -n, --rounds N      of each series, default 30\n"
	"  --online PID        also see how a neighbour on the same GPU fares; it is looked at,\n"
	"                      never suspended\n"
	"\n"
	"Holds what gpreempt says of the driver and the hardware against this machine, with a\n"
	"process of yours that keeps its GPU busy, and leaves a report to keep or to send. The\n"
	"process is suspended and resumed a few hundred times and loses a few seconds, no work.\n"
	"Exit status 1 when a check fails.\n";

static int take_file(struct cli *cli, const struct command_option *o, const char *text)
{
	return text[0] ? option_text(cli, o, text) : cli_usage(cli, "-o needs the name of a file");
}

static int parse(struct accept *a, int argc, char **argv)
{
	const struct command_option options[] = {
		{ "output", 'o', take_file, &a->file },
		{ "rounds", 'n', option_number, &a->wanted, 1, ROUNDS_MAX },
		{ "online", 0, option_pid, &a->online_pid },
	};
	int status = take_options(a->cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = check_arguments(a->cli, argc - optind, 1, 1);
	if (status == EXIT_DONE)
		status = parse_pid(a->cli, argv[optind], &a->pid);
	if (status == EXIT_DONE && a->pid == a->online_pid)
		return cli_usage(a->cli, "--online is another process than %d", (int)a->pid);
	return status;
}

static int find_gpus(struct accept *a)
{
	int n;

	a->device.size = sizeof(a->device);
	if (gpreempt_get_device_info(a->cli->ctx, &a->device) < 0)
		return cli_fail_ctx(a->cli);
	if (!cli_has(a->cli, GPREEMPT_HAS_HOLDS))
		return cli_fail(a->cli, EXIT_REFUSED, "measure one with: gpreempt bench PID",
				"these checks are for AMD GPUs");
	a->not_hardware = cli_is_modelled(a->cli);
	a->gpus[0].size = sizeof(a->gpus[0]);
	n = gpreempt_get_gpus(a->cli->ctx, a->gpus, ARRAY_SIZE(a->gpus));
	if (n < 0)
		return cli_fail_ctx(a->cli);
	a->n_gpus = MIN((size_t)n, ARRAY_SIZE(a->gpus));
	return EXIT_DONE;
}

static int find_queues(struct accept *a)
{
	int status = cli_read_list(a->cli, accept_get_queues, a->process, sizeof(*a->queues),
				   &a->queues, &a->n_queues);

	if (status == EXIT_DONE && a->n_queues == 0)
		return cli_fail(a->cli, EXIT_ABSENT, "name one that keeps its GPU busy",
				"process %d has no queues: there is nothing to check", (int)a->pid);
	return status;
}

static int attach(struct accept *a)
{
	struct gpreempt_ctx *ctx = a->cli->ctx;

	if (accept_attach(a, 0) < 0)
		return cli_fail_ctx(a->cli);
	if (a->online_pid &&
	    gpreempt_attach(ctx, a->online_pid, GPREEMPT_ATTACH_LOOK_ONLY, &a->online) < 0)
		return cli_fail_ctx(a->cli);
	return find_queues(a);
}

/* Why nothing more can be asked, or NULL. */
static const char *over(struct accept *a)
{
	if (!a->signal)
		a->signal = signals_take(a->cli);
	if (a->signal)
		return "interrupted";
	if (!a->process && !a->gone)
		a->gone = accept_attach(a, 0) < 0;
	return a->gone ? "the process cannot be asked any more" : NULL;
}

static void run_checks(struct accept *a, struct outcome *outcomes)
{
	for (size_t i = 0; accept_checks[i].name; i++) {
		const char *why = over(a);

		report_check(a, &accept_checks[i], &outcomes[i]);
		if (why)
			outcome_skip(&outcomes[i], "%s", why);
		else
			accept_checks[i].run(a, &outcomes[i]);
		report_check(a, &accept_checks[i], &outcomes[i]);
	}
}

static int accept_process(struct accept *a)
{
	struct outcome outcomes[MAX_CHECKS] = { 0 };
	int status = cli_open(a->cli);

	if (status == EXIT_DONE)
		status = find_gpus(a);
	if (status == EXIT_DONE)
		status = report_open(a);
	if (status != EXIT_DONE)
		return status;
	status = attach(a);
	if (status != EXIT_DONE) {
		report_discard(a);
		return status;
	}
	report_begin(a);
	run_checks(a, outcomes);
	a->process = gpreempt_detach(a->process);
	a->online = gpreempt_detach(a->online);
	return report_end(a, outcomes);
}

int cmd_accept(struct cli *cli, int argc, char **argv)
{
	struct accept a = { .cli = cli, .wanted = ROUNDS_DEFAULT };
	int status = parse(&a, argc, argv);

	if (status == EXIT_DONE)
		status = accept_process(&a);
	rounds_done(&a.all);
	free(a.queues);
	return status;
}
