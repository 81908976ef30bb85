/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"

static const struct command *find_command(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

/* Names under which documents know this program, with their positional arguments. */
static const struct historical {
	const char *name;
	const char *command;
	const char *usage;
	int max; /* arguments */
	const char *options[3]; /* what each argument is the value of; NULL: of nothing */
} historical[] = {
	{ "get_queue_info", "queues", "PID", 1, { NULL } },
	{ "queue_monitor",
	  "monitor",
	  "PID [DURATION_S [INTERVAL_S]]",
	  3,
	  { NULL, "--duration", "--interval" } },
	{ "kfd_preemption_poc", "bench", "PID [ROUNDS]", 2, { NULL, "-n" } },
	{ NULL },
};

/*
 * A person may have lost a standard descriptor. What is opened later must not take its place:
 * our output would go into it.
 */
static void keep_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY); /* writing to it fails, as it must */
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Errors must be JSON even when they come before the option was understood. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
	int status = signals_init(cli);

	if (status != EXIT_DONE)
		return status;
	optind = 0; /* getopt starts anew */
	status = cli->command->run(cli, argc, argv);
	gpreempt_daemon_close(cli->daemon);
	cli->ctx = gpreempt_unref(cli->ctx); /* lets go of everything, before anything else */
	return status;
}

static int run_historical(struct cli *cli, const struct historical *h, int argc, char **argv)
{
	char *args[2 * ARRAY_SIZE(h->options) + 2];
	int n = 0, given = 0;

	args[n++] = argv[0];
	for (int i = optind; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			continue; /* seen already */
		if (given == h->max)
			return cli_usage(cli, "too many arguments; usage: %s %s", h->name,
					 h->usage);
		if (h->options[given])
			args[n++] = (char *)h->options[given];
		args[n++] = argv[i];
		given++;
	}
	if (given == 0)
		return cli_usage(cli, "usage: %s %s", h->name, h->usage);
	args[n] = NULL;
	return run_command(cli, n, args);
}

static int run_modern(struct cli *cli, int argc, char **argv)
{
	bool only_help = optind < argc && strcmp(argv[optind], "help") == 0;

	if (only_help && ++optind == argc)
		return print_help(cli);
	if (optind == argc)
		return cli_usage(cli, "no command given");
	cli->command = find_command(argv[optind]);
	if (!cli->command)
		return cli_usage(cli, "no command '%s'", argv[optind]);
	if (only_help)
		return print_help(cli);
	return run_command(cli, argc - optind, argv + optind);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *name = argc > 0 ? basename(argv[0]) : "";
	const struct historical *h = historical;
	int status;

	while (h->name && strcmp(name, h->name))
		h++;
	if (h->name) {
		cli->program = h->name;
		cli->command = find_command(h->command);
	}
	status = take_globals(cli, argc, argv);
	if (status != EXIT_DONE)
		return status;
	return h->name ? run_historical(cli, h, argc, argv) : run_modern(cli, argc, argv);
}

int main(int argc, char **argv)
{
	struct cli cli = { .program = "gpreempt", .signal_fd = -1 };
	int status;

	keep_standard_descriptors();
	cli.inherited[0] = signal(SIGPIPE, SIG_IGN);
	cli.json = wants_json(argc, argv);
	cli.colour = is_terminal(STDOUT_FILENO) && !getenv("NO_COLOR");
	status = run(&cli, argc, argv);
	closep(&cli.signal_fd);
	if (status == HELP_SHOWN)
		status = EXIT_DONE;
	if (!cli_stdout_broken())
		return status;
	fprintf(stderr, "%s: cannot write the output: %s\n", cli.program, strerror(errno));
	return status == EXIT_DONE ? EXIT_FAILED : status;
}
