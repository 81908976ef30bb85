/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/load.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define CONTROL_SOCKET "/run/gpreempt/control.sock"
#define MAX_US 10000000u

const char help_load[] =
	"  --offline           kernels in a row, as training makes them (the default)\n"
	"  --online            requests that come by themselves, as inference gets them\n"
	"  --gpu N             on which GPU; 0 unless told, as all below\n"
	"  --queues N          1; with --online they take requests in turn\n"
	"  --priority N        of the queues, 0 to 15; 7\n"
	"  --kernel-us US      how long a kernel or request runs; 20000, or online 2000\n"
	"  --fill PERCENT      of the GPU that it takes; 100\n"
	"  --depth N           kernels in each queue; 2\n"
	"  --every-ms MS       between requests, about; 50\n"
	"  --requests N        so many, then end; otherwise until Ctrl-C\n"
	"  --duration S        end after so many seconds\n"
	"  --name NAME         what the process is called in lists\n"
	"\n"
	"A job on a software GPU: that of a daemon, gpreemptd --device model, whose socket\n"
	"lies beside the control socket (--socket), or --device soft:SOCKET. Online and\n"
	"offline are shapes here; its class is what the daemon's rules or gpreempt run say.\n";

enum {
	OPTION_OFFLINE = 2201,
	OPTION_ONLINE,
	OPTION_GPU,
	OPTION_QUEUES,
	OPTION_QUEUE_PRIORITY,
	OPTION_KERNEL,
	OPTION_FILL,
	OPTION_DEPTH,
	OPTION_EVERY,
	OPTION_REQUESTS,
	OPTION_DURATION,
	OPTION_NAME,
};

static int take_number(struct cli *cli, int c, struct load_plan *p)
{
	const struct {
		int option;
		const char *what;
		uint64_t min, max, *value, scale;
	} numbers[] = {
		{ OPTION_GPU, "--gpu", 0, 7, &p->gpu, 1 },
		{ OPTION_QUEUES, "--queues", 1, DEVICE_MAX_PROCESS_QUEUES, &p->queues, 1 },
		{ OPTION_QUEUE_PRIORITY, "--priority", 0, DEVICE_MAX_PRIORITY, &p->priority, 1 },
		{ OPTION_KERNEL, "--kernel-us", 1, MAX_US, &p->kernel_ns, NSEC_PER_USEC },
		{ OPTION_FILL, "--fill", 1, 1000, &p->fill_percent, 1 },
		{ OPTION_DEPTH, "--depth", 1, DEVICE_MAX_PENDING, &p->depth, 1 },
		{ OPTION_EVERY, "--every-ms", 1, 60000, &p->every_ns, NSEC_PER_MSEC },
		{ OPTION_REQUESTS, "--requests", 1, LOAD_MAX_REQUESTS, &p->requests, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int status;

		if (numbers[i].option != c)
			continue;
		status = parse_number(cli, numbers[i].what, optarg, numbers[i].min, numbers[i].max,
				      numbers[i].value);
		*numbers[i].value *= numbers[i].scale;
		return status;
	}
	return parse_seconds(cli, "--duration", optarg, &p->duration_ns);
}

static int parse_options(struct cli *cli, int argc, char **argv, struct load_plan *p)
{
	static const struct option options[] = {
		{ "offline", no_argument, NULL, OPTION_OFFLINE },
		{ "online", no_argument, NULL, OPTION_ONLINE },
		{ "gpu", required_argument, NULL, OPTION_GPU },
		{ "queues", required_argument, NULL, OPTION_QUEUES },
		{ "priority", required_argument, NULL, OPTION_QUEUE_PRIORITY },
		{ "kernel-us", required_argument, NULL, OPTION_KERNEL },
		{ "fill", required_argument, NULL, OPTION_FILL },
		{ "depth", required_argument, NULL, OPTION_DEPTH },
		{ "every-ms", required_argument, NULL, OPTION_EVERY },
		{ "requests", required_argument, NULL, OPTION_REQUESTS },
		{ "duration", required_argument, NULL, OPTION_DURATION },
		{ "name", required_argument, NULL, OPTION_NAME },
		COMMON_OPTIONS
	};
	int c, status = EXIT_DONE;

	while ((c = option_next(cli, argc, argv, ":h", options, &status)) >= 0) {
		if (c == OPTION_OFFLINE || c == OPTION_ONLINE)
			p->online = c == OPTION_ONLINE;
		else if (c == OPTION_NAME)
			prctl(PR_SET_NAME, optarg);
		else
			status = take_number(cli, c, p);
		if (status != EXIT_DONE)
			return status;
	}
	if (c == OPTIONS_STOP)
		return status;
	return check_arguments(cli, argc - optind, 0, 0);
}

/* Beside the control socket, unless it is named. */
static void find_socket(const struct cli *cli, char *buf, size_t size)
{
	static const char soft[] = "soft:";
	const char *control = cli->socket ? cli->socket : getenv("GPREEMPT_SOCKET");
	const char *slash;

	if (cli->device && !strncmp(cli->device, soft, strlen(soft))) {
		snprintf(buf, size, "%s", cli->device + strlen(soft));
		return;
	}
	if (!control)
		control = CONTROL_SOCKET;
	slash = strrchr(control, '/');
	snprintf(buf, size, "%.*s%s", slash ? (int)(slash + 1 - control) : 0, control,
		 DEVICE_SOCKET);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static int print_json(struct cli *cli, const struct load_plan *p, struct load_result *r)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "modelled", json_object_new_boolean(true));
	json_add_string(o, "chip", r->chip);
	json_add(o, "pid", json_object_new_int(getpid()));
	json_add_uint(o, "gpu", p->gpu);
	json_add_uint(o, "queues", p->queues);
	json_add(o, "kernel_us", json_us(p->kernel_ns));
	json_add(o, "elapsed_us", json_us(r->elapsed_ns));
	json_add_uint(o, "kernels", r->kernels);
	json_add_uint(o, "complete", r->complete);
	json_add(o, "in_order", json_object_new_boolean(!r->disorder));
	json_add_uint(o, "unfinished", r->unfinished);
	json_add_uint(o, "saves", r->saves);
	json_add(o, "busy_us", json_us(r->busy_ns));
	json_add(o, "goodput_pct", json_decimal(percent(r->busy_ns, r->elapsed_ns), 1));
	if (p->online) {
		json_add_uint(o, "requests", r->latency.n);
		json_add(o, "latency_us", figures_to_json(&r->latency));
	}
	return cli_print_json(cli, o);
}

static int print_text(const struct load_plan *p, struct load_result *r)
{
	struct summary s = figures_sum_up(&r->latency);
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE];

	if (p->online && r->latency.n)
		printf("%zu requests of %s: mean %s, ", r->latency.n,
		       text_duration(p->kernel_ns, a), text_duration(s.avg, b));
	if (p->online && r->latency.n)
		printf("median %s, 99 %% within %s, worst %s\n", text_duration(s.p50, a),
		       text_duration(s.p99, b), text_duration(s.max, c));
	printf("%llu kernels in %s, %.1f %% of the GPU's time, %llu times interrupted\n",
	       (unsigned long long)r->kernels, text_duration(r->elapsed_ns, a),
	       percent(r->busy_ns, r->elapsed_ns), (unsigned long long)r->saves);
	printf("%llu complete, %s%s; all times are modelled\n", (unsigned long long)r->complete,
	       r->disorder ? "not in order" : "in order",
	       r->unfinished ? ", some not finished at the end" : "");
	return EXIT_DONE;
}

int cmd_load(struct cli *cli, int argc, char **argv)
{
	struct load_plan plan = {
		.queues = 1,
		.priority = 7,
		.depth = 2,
		.fill_percent = 100,
		.every_ns = 50 * NSEC_PER_MSEC,
	};
	struct load_result result = { 0 };
	char path[PATH_MAX];
	int status = parse_options(cli, argc, argv, &plan);

	if (status != EXIT_DONE)
		return status;
	if (!plan.kernel_ns)
		plan.kernel_ns = (plan.online ? 2 : 20) * NSEC_PER_MSEC;
	find_socket(cli, path, sizeof(path));
	status = load_run(cli, path, &plan, &result);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(cli, &plan, &result) : print_text(&plan, &result);
	if (status == EXIT_DONE && (result.complete != result.kernels || result.disorder))
		status = EXIT_FAILED;
	figures_done(&result.latency);
	return status;
}
