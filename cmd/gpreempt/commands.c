/* SPDX-License-Identifier: MIT */
/* The command table, and the help that is made from it. */
#include <stdio.h>

#include "cmd/gpreempt/cli.h"

const struct command commands[] = {
	{ "doctor", "[--self-test]", "what this machine can do, and why not more",
	  "  --self-test         also hold and free a context of our own; NVIDIA GPUs only, takes\n"
	  "                      libcuda and a few seconds\n",
	  cmd_doctor },
	{ "list", "[--class CLASS]", "processes that use the GPU",
	  "  --class CLASS       only 'online' or 'offline' ones\n"
	  "\n"
	  "The class is what a running daemon says. Without one it is told by the priority of\n"
	  "the queues, which only root can read, and only on AMD GPUs.\n",
	  cmd_list },
	{ "queues", "PID | --all", "the queues of a process, or of all", help_queues, cmd_queues,
	  .max = ANY_NUMBER },
	{ "monitor", "PID", "watch the queues of a process for a while", help_monitor, cmd_monitor,
	  1, 1 },
	{ "hold", "PID...", "keep processes off the GPU until Ctrl-C", help_hold, cmd_hold, 1,
	  HOLD_MAX_PIDS },
	{ "bench", "PID", "how long suspending and resuming takes", help_bench, cmd_bench,
	  .max = ANY_NUMBER },
	{ "release", "[PID... | --all]", "end every hold, whoever made it",
	  "  --all               of all processes; the same as naming none\n"
	  "\n"
	  "Asks the holder to let go and kills it when it does not: the holder's death makes the\n"
	  "job run again. Works when the holder hangs or is long dead.\n"
	  "On NVIDIA GPUs, where nobody can tell whether anything is held, everything the caller\n"
	  "may trace is let go.\n",
	  cmd_release, .max = ANY_NUMBER },
	{ "hqd", "", "hardware queue slots in use", NULL, cmd_hqd },
	{ "stop-gpu", "GPU --for S --yes", "stop everybody's work on a GPU for a while",
	  help_stop_gpu, cmd_stop_gpu, 1, 1 },
	{ "kernel", "[on | off | ...]", "the scheduler inside the driver: on, off, its state",
	  help_kernel, cmd_kernel, 0, 2 },
	{ "accept", "PID", "hold what we claim against this machine; a report", help_accept,
	  cmd_accept, .max = ANY_NUMBER },
	{ "demo", "", "the whole story on a software GPU; no GPU, no root", help_demo, cmd_demo },
	{ "sim", "SCENARIO | --list", "policies on workloads of the field, modelled", help_sim,
	  cmd_sim, .max = ANY_NUMBER },
	{ "report", "RUN...", "a page with pictures of what was recorded", help_report, cmd_report,
	  .max = ANY_NUMBER },

	{ "status", "", "its policy, figures, GPUs and jobs", NULL, cmd_status,
	  .heading = "With the daemon, gpreemptd:" },
	{ "top", "", "the same, live",
	  "  --once              print it once, as text\n"
	  "  --interval SECONDS  between looks; 1 unless told\n",
	  cmd_top },
	{ "run", "--class C -- CMD...", "start a program in a class", help_run, cmd_run,
	  .max = ANY_NUMBER, .leading = true },
	{ "class", "SELECTOR CLASS", "put jobs into a class", help_class, cmd_class, 2, 2 },
	{ "policy", "[NAME]", "who waits for whom: show or set",
	  "Without a name: the policy in force, and those there are.\n", cmd_policy, 0, 1 },
	{ "hint", "PID", "say that work of an online job comes",
	  "  --ahead DURATION    it comes in so long, as 500us; otherwise now\n"
	  "  --for DURATION      it takes so long: others come back when it ends\n"
	  "\n"
	  "Without a daemon the scheduler inside the driver is told, where it is on.\n"
	  "For trying out; a program uses gpreempt_hint_now() of libgpreempt(3).\n",
	  cmd_hint, 1, 1 },
	{ "events", "", "what the daemon does, as it happens, until Ctrl-C",
	  "With --json: one object per line.\n", cmd_events },
	{ "metrics", "", "everything counted, as Prometheus text", NULL, cmd_metrics },
	{ "pause", "", "make the daemon let go of every GPU",
	  "So that GPUs can be partitioned or drivers upgraded. Returns when that is done; the\n"
	  "daemon stays, and gpreempt continue makes it take up again.\n",
	  cmd_pause },
	{ "continue", "", "take up again after a pause", NULL, cmd_continue },
	{ "rearm", "GPU", "allow preemption on a GPU where one failed",
	  "GPU is an id as gpreempt status shows it.\n", cmd_rearm, 1, 1 },
	{ "load", "", "be a job on a software GPU", help_load, cmd_load },
	{ NULL },
};

static const char global_help[] =
	"  --device DEVICE     kfd (AMD), nvrm (NVIDIA), auto (default: whichever is there),\n"
	"                      soft:SOCKET for a software GPU that others use too\n"
	"                      (gpreempt-softgpu), or model[:PRESET] for one of its own;\n"
	"                      presets: mi308x, mi300x, mi100, mi210, mi25, gfx1150, gfx1200\n"
	"  --socket PATH       of the daemon, otherwise $GPREEMPT_SOCKET or\n"
	"                      /run/gpreempt/control.sock\n"
	"  --json              one JSON object on stdout, errors too\n"
	"  -h, --help          this text\n";

static const char exit_help[] =
	"Exit status: 0 done, 1 failed, 2 usage, 3 no such device, daemon or\n"
	"process, 4 refused.\n";

static void write_program_help(FILE *f)
{
	fprintf(f, "usage: gpreempt [--device DEVICE] [--socket PATH] [--json] COMMAND ...\n\n"
		   "Takes the GPU from a job that can wait for one that cannot, and gives it\n"
		   "back.\n\n");
	for (const struct command *c = commands; c->name; c++) {
		if (c->heading)
			fprintf(f, "\n%s\n", c->heading);
		fprintf(f, "  %-8s %-19s %s\n", c->name, c->arguments, c->summary);
	}
	fprintf(f,
		"\n%s  -V, --version       the version\n\n%s"
		"Help on one: gpreempt COMMAND --help. Try: gpreempt demo\n",
		global_help, exit_help);
}

static void write_help(FILE *f, const struct command *c)
{
	fprintf(f, "usage: gpreempt %s%s%s\n\ngpreempt %s: %s.\n\n", c->name,
		c->arguments[0] ? " [OPTIONS] " : " [OPTIONS]", c->arguments, c->name, c->summary);
	if (c->help)
		fprintf(f, "%s\n", c->help);
	fprintf(f, "%s\n%s", global_help, exit_help);
}

int print_help(struct cli *cli)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int status;

	if (!f)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (cli->command)
		write_help(f, cli->command);
	else
		write_program_help(f);
	fclose(f);
	status = cli_answer(cli, json_of("help", json_object_new_string(text)), "%s", text);
	return status == EXIT_DONE ? HELP_SHOWN : status;
}

int print_version(struct cli *cli)
{
	int status = cli_answer(cli, json_of("version", json_object_new_string(GPREEMPT_VERSION)),
				"gpreempt %s\n", GPREEMPT_VERSION);

	return status == EXIT_DONE ? HELP_SHOWN : status;
}
