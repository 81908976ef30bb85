/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/job_text.h"

const char help_class[] =
	"  --priority N        within the class, 0 to 255; otherwise as it is\n"
	"  --latency-critical  make room for it at once, not when it has waited\n"
	"  --target-us N       the latency it should have, for policies that heed it\n"
	"  --lazy              attach to it only when somebody waits for it\n"
	"\n"
	"SELECTOR is a pid (its descendants too, also before they use a GPU), cgroup:PATH,\n"
	"name:GLOB (the command's name), or 12 or more digits of a container id. CLASS is\n"
	"'online', 'offline', 'none' for jobs the daemon shall leave alone, or 'default': what\n"
	"was asked with this selector is forgotten, and gpreempt.conf counts. Counts for the jobs\n"
	"there are and those to come, until another request or the end of process or cgroup; but\n"
	"a name, which any program can take, makes only those there are online.\n"
	"Without a daemon the scheduler inside the driver is told, where it is on: it knows\n"
	"single processes that use a GPU, by their pid.\n";

static int parse_word(struct cli *cli, const char *word, struct gpreempt_class_request *request)
{
	request->withdraw = strcmp(word, "default") == 0;
	if (strcmp(word, "online") == 0)
		request->job_class = GPREEMPT_CLASS_ONLINE;
	else if (strcmp(word, "offline") == 0)
		request->job_class = GPREEMPT_CLASS_OFFLINE;
	else if (!request->withdraw && strcmp(word, "none"))
		return cli_usage(cli,
				 "a class is 'online', 'offline', 'none' or 'default', "
				 "not '%s'",
				 word);
	return EXIT_DONE;
}

static int parse(struct cli *cli, int argc, char **argv, struct gpreempt_class_request *request)
{
	const struct command_option options[] = { CLASS_OPTIONS(request) };
	struct gpreempt_error e = { .size = sizeof(e) };
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_check_selector(argv[optind], &e) < 0)
		return cli_fail(cli, EXIT_USAGE, e.hint, "%s", e.message);
	return parse_word(cli, argv[optind + 1], request);
}

/* Whether those to come are meant too; see help_class. */
static bool counts_later(const char *selector, const struct gpreempt_class_request *request)
{
	return strncmp(selector, "name:", strlen("name:")) != 0 ||
	       request->job_class == GPREEMPT_CLASS_OFFLINE;
}

static struct json_object *answer(int n, const char *scheduler)
{
	struct json_object *o = json_of("classed", json_object_new_int(n));

	json_add_string(o, "scheduler", scheduler);
	return o;
}

static int report(struct cli *cli, int n, const char *selector,
		  const struct gpreempt_class_request *request)
{
	const char *remark = "";

	if (n == 0 && !request->withdraw)
		remark = counts_later(selector, request) ?
				 "nobody matches yet: it counts for those to come\n" :
				 "nobody matches; by name, only those there are are taken\n";
	return cli_answer(cli, answer(n, "gpreemptd"), "%s: %s; %d process%s classed now\n%s",
			  selector,
			  request->withdraw ? "default" : job_class_word(request->job_class), n,
			  n == 1 ? "" : "es", remark);
}

/* It knows neither descendants nor those to come. */
static int class_by_kernel(struct cli *cli, const char *selector,
			   const struct gpreempt_class_request *request)
{
	pid_t pid = 0;
	int status;

	if (request->withdraw || selector[strspn(selector, "0123456789")])
		return cli_fail(cli, EXIT_ABSENT, "start it with: systemctl start gpreemptd",
				"no daemon is running, and the kernel's scheduler %s",
				request->withdraw ? "has no default" : "knows pids only");
	status = parse_pid(cli, selector, &pid);
	if (status != EXIT_DONE)
		return status;
	if (gpreempt_kernel_set_class(cli->ctx, pid, request) < 0)
		return cli_fail_ctx(cli);
	return cli_answer(cli, answer(1, "kernel"),
			  "%s: %s; of this process alone, for the kernel's scheduler\n", selector,
			  job_class_word(request->job_class));
}

int cmd_class(struct cli *cli, int argc, char **argv)
{
	struct gpreempt_class_request request = { .size = sizeof(request), .priority = -1 };
	int status = parse(cli, argc, argv, &request), n;

	if (status == EXIT_DONE)
		status = scheduler_connect(cli);
	if (status != EXIT_DONE)
		return status;
	if (!cli->daemon)
		return class_by_kernel(cli, argv[optind], &request);
	n = gpreempt_daemon_set_class(cli->daemon, argv[optind], &request);
	return n < 0 ? daemon_failed(cli, cli->daemon) : report(cli, n, argv[optind], &request);
}
