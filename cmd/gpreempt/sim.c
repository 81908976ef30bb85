/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/sim.h"

const char help_sim[] =
	"  --list              scenarios and policies\n"
	"  --policy POLICY     who gets the GPU; default: the scenario's\n"
	"  --seed N            of all that is random, default 1\n"
	"  --trace FILE        write what happened there, for chrome://tracing or Perfetto\n"
	"  --duration S        seconds to simulate\n"
	"  --detect HOW        how work is seen: watch, trap, or look:5ms; default watch\n"
	"  --announce WHEN     of requests: none, submission, or so long before it (100us)\n"
	"  --costs NAME        what acting costs: kfd-stock, kfd-extension, nvrm\n"
	"  --cycle-us US       how long a scheduling cycle takes instead\n"
	"  --save-area PLACE   of what is preempted: hbm or host\n"
	"  --kernel-scale X    makes every kernel X times as long\n"
	"  --calibrate         how near the baselines come to what was measured\n"
	"\n"
	"SCENARIO is one of --list, or a file. Runs it in virtual time with gpreempt and,\n"
	"with the same requests, without: online work alone, everybody at once, stream\n"
	"priorities, one after the other. All figures are modelled. --device model:CHIP\n"
	"takes another chip.\n";

#define CYCLE_US_MAX 1000000
#define MAX_SETTINGS 8

/* What the command line has for the key of the scenario that an option is named like. */
struct setting {
	const char *option;
	char value[64];
};

struct arguments {
	const char *scenario, *policy, *trace;
	uint64_t seed;
	bool list, calibrate;
	struct setting settings[MAX_SETTINGS];
	size_t n_settings;
};

/* ---- arguments ---- */

/* The scenario checks the value. Of one that is said twice the last counts. */
static int option_setting(struct cli *cli, const struct command_option *o, const char *text)
{
	struct arguments *a = o->ret;
	struct setting *s = a->settings;

	while (s < &a->settings[a->n_settings] && strcmp(s->option, o->name) != 0)
		s++;
	if (s == &a->settings[a->n_settings])
		a->n_settings++;
	s->option = o->name;
	snprintf(s->value, sizeof(s->value), "%s", text);
	return EXIT_DONE;
}

static int option_cycle(struct cli *cli, const struct command_option *o, const char *text)
{
	char with_unit[64];
	uint64_t us;
	int status = parse_number(cli, "--cycle-us", text, 1, CYCLE_US_MAX, &us);

	snprintf(with_unit, sizeof(with_unit), "%sus", text);
	return status == EXIT_DONE ? option_setting(cli, o, with_unit) : status;
}

static int option_duration(struct cli *cli, const struct command_option *o, const char *text)
{
	bool plain = text[strspn(text, "0123456789.")] == '\0';
	char with_unit[64];

	snprintf(with_unit, sizeof(with_unit), "%s%s", text, plain ? "s" : "");
	return option_setting(cli, o, with_unit);
}

static int parse(struct cli *cli, int argc, char **argv, struct arguments *a)
{
	const struct command_option options[] = {
		{ "list", 0, NULL, &a->list },
		{ "policy", 0, option_text, &a->policy },
		{ "seed", 0, option_number, &a->seed, 0, UINT64_MAX },
		{ "trace", 0, option_text, &a->trace },
		{ "duration", 0, option_duration, a },
		{ "detect", 0, option_setting, a },
		{ "announce", 0, option_setting, a },
		{ "costs", 0, option_setting, a },
		{ "cycle-us", 0, option_cycle, a },
		{ "save-area", 0, option_setting, a },
		{ "kernel-scale", 0, option_setting, a },
		{ "calibrate", 0, NULL, &a->calibrate },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options)), wanted;

	if (status != EXIT_DONE)
		return status;
	wanted = !a->list && !a->calibrate;
	if (!wanted && (a->policy || a->trace || a->n_settings))
		return cli_usage(cli, "%s runs no scenario: it takes no options of one",
				 a->list ? "--list" : "--calibrate");
	status = check_arguments(cli, argc - optind, wanted, wanted);
	if (status == EXIT_DONE && wanted)
		a->scenario = argv[optind];
	return status;
}

/* ---- the scenario ---- */

int sim_fail(struct cli *cli, int error, const struct inifile_mistake *m)
{
	int status = error == -EINVAL || error == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
	char hint[sizeof(m->names) + 16];

	if (error == -ENOMEM && !m->text[0])
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	snprintf(hint, sizeof(hint), "there are: %s", m->names);
	if (!m->names[0])
		snprintf(hint, sizeof(hint), "see: gpreempt sim --help");
	if (m->line)
		return cli_fail(cli, status, hint, "%s:%u:%u: %s", m->file, m->line, m->column,
				m->text);
	return cli_fail(cli, status, hint, "%s%s%s", m->file, m->file[0] ? ": " : "", m->text);
}

static int fail_option(struct cli *cli, const char *option, const struct inifile_mistake *m)
{
	struct inifile_mistake said = *m;

	snprintf(said.text, sizeof(said.text), "--%s: %.200s", option, m->text);
	return sim_fail(cli, -EINVAL, &said);
}

/* Another chip than the scenario's, if one was asked for. */
static int choose_chip(struct cli *cli, struct sim_scenario *s)
{
	struct inifile_mistake m;

	if (!cli->device || !strcmp(cli->device, "auto") || !strcmp(cli->device, "model"))
		return EXIT_DONE;
	if (strncmp(cli->device, "model:", strlen("model:")) != 0)
		return cli_usage(cli, "a simulation runs on a model, not on '%s'", cli->device);
	if (sim_scenario_set(s, "chip", cli->device + strlen("model:"), &m) < 0)
		return fail_option(cli, "device", &m);
	return EXIT_DONE;
}

static const char *key_of(const char *option)
{
	return strcmp(option, "cycle-us") ? option : "cycle";
}

static int prepare(struct cli *cli, const struct arguments *a, struct sim_report *report)
{
	struct inifile_mistake m = { 0 };
	int r;

	r = sim_scenario_read(a->scenario, &report->s, &m);
	if (r < 0)
		return sim_fail(cli, r, &m);
	for (size_t i = 0; i < a->n_settings; i++) {
		const struct setting *set = &a->settings[i];

		if (sim_scenario_set(report->s, key_of(set->option), set->value, &m) < 0)
			return fail_option(cli, set->option, &m);
	}
	if (a->policy && sim_scenario_set(report->s, "policy", a->policy, &m) < 0)
		return fail_option(cli, "policy", &m);
	report->policy = sim_scenario_policy(report->s);
	snprintf(report->s->policy, sizeof(report->s->policy), "%s", report->policy->name);
	report->seed = a->seed;
	return choose_chip(cli, report->s);
}

/* ---- runs ---- */

void sim_outcome_done(struct sim_outcome *o)
{
	for (size_t i = 0; i < SIM_MODES; i++)
		sim_result_done(&o->of[i]);
}

int sim_run_modes(struct cli *cli, const struct sim_scenario *s, struct sim_options options,
		  unsigned int modes, struct sim_outcome *ret)
{
	struct sim_trace *trace = options.trace;
	int r = 0;

	for (unsigned int mode = 0; !r && mode < SIM_MODES; mode++) {
		if (!(modes & 1u << mode))
			continue;
		options.mode = mode;
		options.trace = mode == SIM_ENGINE ? trace : NULL;
		r = sim_run(s, &options, &ret->of[mode]);
	}
	if (r == -ENOMEM)
		return cli_fail(cli, EXIT_FAILED, "a shorter --duration needs less",
				"out of memory");
	if (r < 0)
		return cli_fail(cli, EXIT_FAILED, "see: gpreempt sim --help", "cannot run '%s': %s",
				s->name, strerror(-r));
	return EXIT_DONE;
}

#define ALL_MODES ((1u << SIM_MODES) - 1)

static int run_traced(struct cli *cli, struct sim_report *report, const char *path)
{
	struct sim_options options = { .policy = report->policy, .seed = report->seed };
	int status, r;

	if (path) {
		options.trace = sim_trace_open(path, report->s);
		if (!options.trace)
			return cli_fail(cli, EXIT_FAILED, "choose another place",
					"cannot write '%s': %s", path, strerror(errno));
	}
	status = sim_run_modes(cli, report->s, options, ALL_MODES, &report->outcomes[0]);
	r = path ? sim_trace_close(options.trace) : 0;
	if (status == EXIT_DONE && r < 0)
		return cli_fail(cli, EXIT_FAILED, "choose another place", "cannot write '%s': %s",
				path, strerror(-r));
	return status;
}

static int run_all(struct cli *cli, struct sim_report *report, const char *trace)
{
	struct sim_options options = { .policy = report->policy, .seed = report->seed };
	struct progress progress;
	int status;

	report->n = 1 + report->s->n_sweep;
	report->written = *report->s;
	report->outcomes = calloc(report->n, sizeof(*report->outcomes));
	if (!report->outcomes)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	progress_begin(&progress);
	status = run_traced(cli, report, trace);
	for (size_t i = 0; status == EXIT_DONE && i < report->s->n_sweep; i++) {
		progress_show(&progress, "run %zu of %zu", i + 1, report->s->n_sweep);
		if (sim_scenario_sweep(report->s, i) < 0)
			status = cli_usage(cli, "'%s' makes too many queues", report->s->sweep_key);
		else
			status = sim_run_modes(cli, report->s, options, ALL_MODES,
					       &report->outcomes[1 + i]);
	}
	progress_end(&progress);
	return status;
}

static int simulate(struct cli *cli, const struct arguments *a)
{
	struct sim_report report = { 0 };
	int status = prepare(cli, a, &report);

	if (status == EXIT_DONE)
		status = run_all(cli, &report, a->trace);
	if (status == EXIT_DONE)
		status = cli->json ? sim_report_json(cli, &report) : sim_report_text(cli, &report);
	for (size_t i = 0; report.outcomes && i < report.n; i++)
		sim_outcome_done(&report.outcomes[i]);
	free(report.outcomes);
	sim_scenario_free(report.s);
	return status;
}

int cmd_sim(struct cli *cli, int argc, char **argv)
{
	struct arguments a = { .seed = 1 };
	int status = parse(cli, argc, argv, &a);

	if (status != EXIT_DONE)
		return status;
	signals_let_through(); /* nothing is held that would have to be let go of */
	if (a.list)
		return sim_list(cli);
	return a.calibrate ? sim_calibrate(cli, a.seed) : simulate(cli, &a);
}
