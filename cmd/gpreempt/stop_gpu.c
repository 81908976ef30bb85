/* SPDX-License-Identifier: MIT */
/* The brake. */
#include <poll.h>
#include <stdio.h>

#include "cmd/gpreempt/cli.h"

/* A command that is stopped or killed lets the GPU run again after the first of these. */
#define STOP_NS (1400 * NSEC_PER_MSEC)
#define RENEW_NS (350 * NSEC_PER_MSEC)

const char help_stop_gpu[] =
	"  --for SECONDS       how long; it has to be said\n"
	"  --yes               it stops the work of everybody on that GPU: say that it is meant\n"
	"\n"
	"GPU is an id as gpreempt doctor shows it. Nothing of any process runs on it, nothing\n"
	"that is started meanwhile either, until the time is over, on Ctrl-C, or when this\n"
	"command ends in any other way. No work is lost. Needs the kernel extension (level K3)\n"
	"and root.\n";

struct stop {
	uint32_t gpu_id;
	uint64_t for_ns; /* 0: not said */
	bool yes;
};

static int parse(struct cli *cli, int argc, char **argv, struct stop *s)
{
	const struct command_option options[] = {
		{ "for", 0, option_seconds, &s->for_ns },
		{ "yes", 0, NULL, &s->yes },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));
	uint64_t id = 0;

	if (status == EXIT_DONE)
		status = parse_number(cli, "GPU", argv[optind], 0, UINT32_MAX, &id);
	s->gpu_id = (uint32_t)id;
	if (status == EXIT_DONE && s->for_ns == 0)
		return cli_usage(cli, "for how long? say --for SECONDS");
	if (status == EXIT_DONE && !s->yes)
		return cli_usage(cli, "this stops all work on GPU %u: say --yes if it is meant",
				 s->gpu_id);
	return status;
}

/* Until the time is over or a person ends it. */
static int keep_stopped(struct cli *cli, struct stop *s, uint64_t began)
{
	struct pollfd fd = { .fd = cli->signal_fd, .events = POLLIN };
	struct progress progress;
	int sig;

	progress_begin(&progress);
	while ((sig = signals_take(cli)) == 0) {
		uint64_t passed = gpreempt_now_ns(cli->ctx) - began, left;

		if (passed >= s->for_ns)
			break;
		left = s->for_ns - passed;
		if (gpreempt_stop_gpu(cli->ctx, s->gpu_id, MIN(left, STOP_NS)) < 0 ||
		    gpreempt_wait(cli->ctx, &fd, 1, MIN(left, RENEW_NS)) < 0)
			return cli_fail_ctx(cli);
		progress_show(&progress, "GPU %u has been stopped for %llu s", s->gpu_id,
			      (unsigned long long)(passed / NSEC_PER_SEC));
	}
	progress_end(&progress);
	if (sig && !cli->json)
		printf("%s: starting it again\n", signal_word(sig));
	return EXIT_DONE;
}

static int report(struct cli *cli, uint32_t gpu_id, uint64_t ns)
{
	bool modelled = cli_is_modelled(cli);
	char buf[UNIT_TEXT_SIZE];
	struct json_object *o = json_of("gpu_id", json_object_new_uint64(gpu_id));

	json_add(o, "stopped_us", json_us(ns));
	json_add(o, "modelled", json_object_new_boolean(modelled));
	return cli_answer(cli, o, "GPU %u runs again after %s%s\n", gpu_id, text_duration(ns, buf),
			  modelled ? " (modelled)" : "");
}

int cmd_stop_gpu(struct cli *cli, int argc, char **argv)
{
	struct stop s = { 0 };
	uint64_t began;
	int status = parse(cli, argc, argv, &s);

	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status != EXIT_DONE)
		return status;
	if (gpreempt_stop_gpu(cli->ctx, s.gpu_id, MIN(s.for_ns, STOP_NS)) < 0)
		return cli_fail_ctx(cli);
	began = gpreempt_now_ns(cli->ctx);
	if (!cli->json)
		printf("GPU %u is STOPPED: nothing of anybody runs on it until Ctrl-C\n", s.gpu_id);
	if (!cli->json && cli_stdout_broken())
		return EXIT_FAILED; /* main says why, and it runs again */
	status = keep_stopped(cli, &s, began);
	gpreempt_start_gpu(cli->ctx, s.gpu_id); /* its time may just have been over */
	if (status != EXIT_DONE)
		return status;
	return report(cli, s.gpu_id, gpreempt_now_ns(cli->ctx) - began);
}
