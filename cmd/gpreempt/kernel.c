/* SPDX-License-Identifier: MIT */
/* The scheduler inside the driver: on, off, and how it is. */
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/table.h"

const char help_kernel[] =
	"  status              how it is on each GPU; the same as saying nothing\n"
	"  on                  turn it on, or set it anew where it is on\n"
	"  off                 turn it off: everybody it holds runs again\n"
	"  rearm GPU           allow preemption on a GPU where one failed\n"
	"\n"
	"  --gpu GPU           on and off: only this one, an id as gpreempt doctor shows it\n"
	"  --policy NAME       who waits for whom; the names: gpreempt sim --list\n"
	"  --interval-us N     between looks, 100 to 1000000; otherwise 5000\n"
	"  --critical-interval-us N  where a latency-critical job is; otherwise 1000\n"
	"  --turn-ms N         of policies that take turns, 1 to 60000; otherwise 100\n"
	"  --hold-max-ms N     a hold ends by itself after so long, 1 to 60000; otherwise 10000\n"
	"  --reserve ONLINE:OFFLINE  percent of the hardware queue slots that are kept for\n"
	"                      online queues, and that offline ones have at most\n"
	"\n"
	"It does what gpreemptd does, with the same policies, inside the driver, and goes on\n"
	"when nobody is there any more. Jobs are what gpreempt class says; others are left\n"
	"alone. Needs the kernel extension (level K3), and CAP_SYS_ADMIN to change anything.\n";

struct request {
	uint32_t gpu_id;
	struct gpreempt_kernel_options options; /* that only "on" takes */
};

static bool has_options(const struct gpreempt_kernel_options *o)
{
	return o->policy || o->interval_us || o->critical_interval_us || o->turn_ms ||
	       o->hold_max_ms || o->reserve;
}

static int take_policy(struct cli *cli, const struct command_option *o, const char *text)
{
	return text[0] ? option_text(cli, o, text) : cli_usage(cli, "--policy needs a name");
}

static int take_reserve(struct cli *cli, const struct command_option *option, const char *text)
{
	struct gpreempt_kernel_options *o = option->ret;
	unsigned int online, offline;
	int end = 0;

	if (text[strspn(text, "0123456789:")] ||
	    sscanf(text, "%3u:%3u%n", &online, &offline, &end) != 2 || text[end])
		return cli_usage(cli, "--reserve is ONLINE:OFFLINE in percent, as 10:80, not '%s'",
				 text);
	if (online + offline > 100)
		return cli_usage(cli, "--reserve %s is more than 100 %% together", text);
	o->reserve = true;
	o->online_percent = online;
	o->offline_percent = offline;
	return EXIT_DONE;
}

static int parse(struct cli *cli, int argc, char **argv, struct request *q)
{
	struct gpreempt_kernel_options *o = &q->options;
	const struct command_option options[] = {
		{ "gpu", 0, option_u32, &q->gpu_id, 0, UINT32_MAX - 1 },
		{ "policy", 0, take_policy, &o->policy },
		{ "interval-us", 0, option_u32, &o->interval_us, 100, 1000000 },
		{ "critical-interval-us", 0, option_u32, &o->critical_interval_us, 100, 1000000 },
		{ "turn-ms", 0, option_u32, &o->turn_ms, 1, 60000 },
		{ "hold-max-ms", 0, option_u32, &o->hold_max_ms, 1, 60000 },
		{ "reserve", 0, take_reserve, o },
	};

	return take_options(cli, argc, argv, options, ARRAY_SIZE(options));
}

/* ---- how it is ---- */

static const char *state_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	const struct gpreempt_kernel_gpu *g = record;

	return !g->on ? "off" : g->tripped ? "TRIPPED" : "on";
}

static const char *reserved_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	const struct gpreempt_kernel_gpu *g = record;

	snprintf(buf, UNIT_TEXT_SIZE, "%u:%u %%", g->online_permille / 10,
		 g->offline_permille / 10);
	return buf;
}

#define GPU(member) FIELD(struct gpreempt_kernel_gpu, member)

static const struct field fields[] = {
	{ "gpu_id", "GPU", FIELD_NUMBER, GPU(gpu_id) },
	{ "on", NULL, FIELD_FLAG, GPU(on) },
	{ NULL, "SCHEDULER", FIELD_WORD, .word = state_word },
	{ "slots", NULL, FIELD_NUMBER, GPU(slots), GPREEMPT_KERNEL_SLOTS },
	{ "queues", NULL, FIELD_NUMBER, GPU(queues), GPREEMPT_KERNEL_SLOTS },
	{ "held_queues", NULL, FIELD_NUMBER, GPU(held_queues), GPREEMPT_KERNEL_SLOTS },
	{ "policy", "POLICY", FIELD_TEXT, GPU(policy), GPREEMPT_KERNEL_POLICY },
	{ "interval_us", "EVERY", FIELD_US, GPU(interval_us), GPREEMPT_KERNEL_INTERVALS },
	{ "critical_interval_us", NULL, FIELD_NUMBER, GPU(critical_interval_us),
	  GPREEMPT_KERNEL_INTERVALS },
	{ "turn_ms", NULL, FIELD_NUMBER, GPU(turn_ms), GPREEMPT_KERNEL_TURN },
	{ "hold_max_ms", NULL, FIELD_NUMBER, GPU(hold_max_ms), GPREEMPT_KERNEL_HOLD_MAX },
	{ "online_permille", NULL, FIELD_NUMBER, GPU(online_permille), GPREEMPT_KERNEL_RESERVED },
	{ "offline_permille", NULL, FIELD_NUMBER, GPU(offline_permille), GPREEMPT_KERNEL_RESERVED },
	{ "online", "ONLINE", FIELD_NUMBER, GPU(online), GPREEMPT_KERNEL_JOBS },
	{ "offline", "OFFLINE", FIELD_NUMBER, GPU(offline), GPREEMPT_KERNEL_JOBS },
	{ "held", "HELD", FIELD_NUMBER, GPU(held), GPREEMPT_KERNEL_JOBS },
	{ "looks", NULL, FIELD_NUMBER, GPU(looks), GPREEMPT_KERNEL_LOOKS },
	{ "busy_us", NULL, FIELD_NS, GPU(busy_ns), GPREEMPT_KERNEL_LOOKS },
	{ "holds", "HOLDS", FIELD_NUMBER, GPU(holds), GPREEMPT_KERNEL_ACTIONS },
	{ "resumes", NULL, FIELD_NUMBER, GPU(resumes), GPREEMPT_KERNEL_ACTIONS },
	{ "failures", "FAILURES", FIELD_NUMBER, GPU(failures), GPREEMPT_KERNEL_ACTIONS },
	{ "tripped", NULL, FIELD_FLAG, GPU(tripped), GPREEMPT_KERNEL_ACTIONS },
	{ NULL, "RESERVED", FIELD_FIGURES, .needs = GPREEMPT_KERNEL_RESERVED,
	  .word = reserved_word },
};

static int print_text(const struct gpreempt_kernel_gpu *gpus, size_t n)
{
	size_t on = 0;

	for (size_t i = 0; i < n; i++)
		on += gpus[i].on;
	print_records(fields, ARRAY_SIZE(fields), NULL, gpus, n, sizeof(*gpus));
	if (on == 0)
		printf("\nthe kernel's scheduler is off; turn it on with: gpreempt kernel on\n");
	for (size_t i = 0; i < n; i++)
		if (gpus[i].tripped)
			printf("\na preemption failed on GPU %u: it is left alone until gpreempt "
			       "kernel rearm %u\n",
			       gpus[i].gpu_id, gpus[i].gpu_id);
	return EXIT_DONE;
}

/* Of all GPUs: it takes no --gpu. */
static int kernel_status(struct cli *cli, const struct request *q)
{
	struct gpreempt_kernel_gpu gpus[GPREEMPT_MAX_GPUS] = { { .size = sizeof(gpus[0]) } };
	int n = gpreempt_kernel_get_gpus(cli->ctx, gpus, ARRAY_SIZE(gpus));

	if (n < 0)
		return cli_fail_ctx(cli);
	n = MIN(n, (int)ARRAY_SIZE(gpus));
	if (!cli->json)
		return print_text(gpus, (size_t)n);
	return cli_print_json(cli, json_of("gpus", json_of_records(fields, ARRAY_SIZE(fields), gpus,
								   (size_t)n, sizeof(gpus[0]))));
}

/* ---- what is asked for ---- */

/* @r: what came of it. */
static int report(struct cli *cli, int r, const char *done, const char *text,
		  const struct request *q)
{
	char who[32] = "all GPUs";
	struct json_object *o;

	if (r < 0)
		return cli_fail_ctx(cli);
	o = json_of("done", json_object_new_string(done));
	if (q->gpu_id != GPREEMPT_ALL_GPUS) {
		json_add_uint(o, "gpu_id", q->gpu_id);
		snprintf(who, sizeof(who), "GPU %u", q->gpu_id);
	}
	return cli_answer(cli, o, "%s: %s\n%s", who, text,
			  gpreempt_is_modelled(cli->ctx) ? "a software device only keeps what is "
							   "set: nothing schedules on it\n" :
							   "");
}

/* Two that decide for the same jobs would undo each other's work. */
static int check_nobody_else(struct cli *cli)
{
	struct gpreempt_daemon_status s = { .size = sizeof(s) };

	if (cli_is_alone(cli) || gpreempt_daemon_open(cli->socket, &cli->daemon, NULL) < 0 ||
	    gpreempt_daemon_get_status(cli->daemon, &s) < 0 ||
	    strcmp(s.backend, gpreempt_backend(cli->ctx)) != 0 || s.kernel)
		return EXIT_DONE;
	return cli_fail(cli, EXIT_REFUSED,
			"let it hand over ([kernel] scheduler = yes in gpreempt.conf), or stop it: "
			"systemctl stop gpreemptd",
			"gpreemptd, process %d, schedules these GPUs already", (int)s.pid);
}

static int turn_on(struct cli *cli, const struct request *q)
{
	int status = check_nobody_else(cli);

	if (status != EXIT_DONE)
		return status;
	return report(cli, gpreempt_kernel_on(cli->ctx, q->gpu_id, &q->options), "on",
		      "the kernel's scheduler is on", q);
}

static int turn_off(struct cli *cli, const struct request *q)
{
	return report(cli, gpreempt_kernel_off(cli->ctx, q->gpu_id), "off",
		      "the kernel's scheduler is off", q);
}

static int rearm(struct cli *cli, const struct request *q)
{
	return report(cli, gpreempt_kernel_rearm(cli->ctx, q->gpu_id), "rearm",
		      "may be preempted on again", q);
}

/* ---- entry ---- */

static const struct verb {
	const char *name;
	bool gpu, options; /* takes them */
	int (*run)(struct cli *cli, const struct request *q);
} verbs[] = {
	{ "status", false, false, kernel_status },
	{ "on", true, true, turn_on },
	{ "off", true, false, turn_off },
	{ "rearm", false, false, rearm },
};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int check_request(struct cli *cli, const struct verb *v, int arguments, char **argv,
			 struct request *q)
{
	uint64_t id = GPREEMPT_ALL_GPUS;
	int status;

	if (has_options(&q->options) && !v->options)
		return cli_usage(cli, "kernel %s takes no such option: they are for kernel on",
				 v->name);
	if (q->gpu_id != GPREEMPT_ALL_GPUS && !v->gpu)
		return cli_usage(cli, "kernel %s takes no --gpu", v->name);
	if (v->run != rearm)
		return arguments > 1 ?
			       cli_usage(cli, "too many arguments; usage: gpreempt kernel %s",
					 v->name) :
			       EXIT_DONE;
	if (arguments != 2)
		return cli_usage(cli, "usage: gpreempt kernel rearm GPU");
	status = parse_number(cli, "GPU", argv[1], 0, UINT32_MAX - 1, &id);
	q->gpu_id = (uint32_t)id;
	return status;
}

int cmd_kernel(struct cli *cli, int argc, char **argv)
{
	struct request q = {
		.gpu_id = GPREEMPT_ALL_GPUS,
		.options = { .size = sizeof(q.options) },
	};
	int status = parse(cli, argc, argv, &q);
	const struct verb *v;

	if (status != EXIT_DONE)
		return status;
	v = find_verb(optind < argc ? argv[optind] : "status");
	if (!v)
		return cli_usage(cli,
				 "kernel is followed by status, on, off or rearm GPU, not '%s'",
				 argv[optind]);
	status = check_request(cli, v, argc - optind, argv + optind, &q);
	if (status == EXIT_DONE)
		status = cli_open(cli);
	return status == EXIT_DONE ? v->run(cli, &q) : status;
}
