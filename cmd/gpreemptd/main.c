/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/gpreemptd/config.h"
#include "cmd/gpreemptd/daemon.h"
#include "cmd/gpreemptd/events.h"
#include "util/macros.h"
#include "util/slice.h"

#define SLICE_NS (300 * NSEC_PER_USEC)
#define LARGE_BYTES (256 << 10)

#define WITH_VALUE 256 /* of an option: this and its place among the values */

struct command_line {
	struct daemon_options daemon;
	int check, clean_up;
	bool verbose, help, version;
};

static const char help_text[] =
	"usage: gpreemptd [--device DEV] [--level LEVEL] [--config FILE] [--run-dir DIR]\n"
	"                 [--verbose]\n"
	"       gpreemptd --check-config [FILE]\n"
	"       gpreemptd --clean-up [--device DEV] [--run-dir DIR]\n"
	"\n"
	"Lets online jobs have the GPU first, and gives it back to offline jobs.\n"
	"\n"
	"  --device DEV     auto (default), kfd (AMD), nvrm (NVIDIA), model[:PRESET]: a software\n"
	"                   GPU that ends with it, soft:SOCKET: gpreempt-softgpu, which runs "
	"there\n"
	"  --level LEVEL    on AMD GPUs: K3, through the driver's extension, or K2, through its\n"
	"                   debug interface; default: K3 where it is there\n"
	"  --config FILE    instead of " CONFIG_FILE "\n"
	"  --run-dir DIR    for the control socket, the journal and the metrics; default\n"
	"                   /run/gpreempt, or gpreempt in $XDG_RUNTIME_DIR for other users\n"
	"  --check-config   say whether the configuration makes sense, and nothing more\n"
	"  --clean-up       after a daemon that was killed: let go of what it held\n"
	"  -v, --verbose    log what is only for debugging, too\n"
	"  -V, --version    print the version\n"
	"  -h, --help       print this\n"
	"\n"
	"Exit: 0 done, 1 failed, 2 usage, 3 no such device, 4 refused. See gpreemptd(8).\n";

static enum status usage(const char *what, const char *which)
{
	log_line(LOG_LEVEL_ERROR, "%s%s%s%s; hint: see gpreemptd --help", what, which ? " '" : "",
		 which ? which : "", which ? "'" : "");
	return STATUS_USAGE;
}

/* STATUS_DONE: *ret is what was meant. */
static enum status parse(int argc, char **argv, struct command_line *ret)
{
	const char **const values[] = { &ret->daemon.device, &ret->daemon.level,
					&ret->daemon.config_file, &ret->daemon.run_dir };
	const struct option options[] = {
		{ "device", required_argument, NULL, WITH_VALUE },
		{ "level", required_argument, NULL, WITH_VALUE + 1 },
		{ "config", required_argument, NULL, WITH_VALUE + 2 },
		{ "run-dir", required_argument, NULL, WITH_VALUE + 3 },
		{ "check-config", no_argument, &ret->check, true },
		{ "clean-up", no_argument, &ret->clean_up, true },
		{ "verbose", no_argument, NULL, 'v' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":vVh", options, NULL)) != -1) {
		ret->verbose |= c == 'v';
		ret->version |= c == 'V';
		ret->help |= c == 'h';
		if (c >= WITH_VALUE)
			*values[c - WITH_VALUE] = optarg;
		if (c == ':')
			return usage("a value is missing for option", argv[optind - 1]);
		if (c == '?')
			return usage("unknown option", argv[optind - 1]);
	}
	return STATUS_DONE;
}

static enum status check_config(const struct command_line *line, int argc, char **argv)
{
	const char *file = line->daemon.config_file ? line->daemon.config_file : CONFIG_FILE;

	if (argc - optind > 1)
		return usage("too many arguments from", argv[optind + 1]);
	return daemon_check_config(optind < argc ? argv[optind] : file);
}

/* NULL: there is no place for it. */
static char *default_run_dir(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (geteuid() == 0)
		return strdup("/run/gpreempt");
	if (!dir || dir[0] != '/' || asprintf(&path, "%s/gpreempt", dir) < 0)
		return NULL;
	return path;
}

static enum status run(struct command_line *line)
{
	_cleanup_free_ char *run_dir = NULL;

	if (!line->daemon.run_dir) {
		run_dir = default_run_dir();
		if (!run_dir)
			return usage("there is no run directory: XDG_RUNTIME_DIR is not set; give "
				     "--run-dir DIR",
				     NULL);
		line->daemon.run_dir = run_dir;
	}
	if (!line->daemon.run_dir[0])
		return usage("a run directory has a name", NULL);
	return line->clean_up ? daemon_clean_up(&line->daemon) : daemon_run(&line->daemon);
}

/* What is opened later must not take the place of a standard descriptor. */
static void keep_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Each job takes a few descriptors. */
static void raise_limit_of_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * The driver's lists of queues are megabytes of text, read now and then: what that took is given
 * back at once. Left to itself malloc(3) would learn to keep it: M_MMAP_THRESHOLD of mallopt(3).
 */
static void keep_little_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
}

int main(int argc, char **argv)
{
	struct command_line line = { .daemon = { .device = "auto" } };
	enum status status;

	keep_standard_descriptors();
	signal(SIGPIPE, SIG_IGN);
	raise_limit_of_files();
	ask_for_slices(SLICE_NS);
	keep_little_memory();
	status = parse(argc, argv, &line);
	if (status != STATUS_DONE)
		return status;
	if (line.verbose)
		log_set_verbose();
	if (line.help || line.version) {
		fputs(line.help ? help_text : "gpreemptd " GPREEMPT_VERSION "\n", stdout);
		return fflush(stdout) == 0 ? STATUS_DONE : STATUS_FAILED;
	}
	if (line.check)
		return check_config(&line, argc, argv);
	if (optind < argc)
		return usage("an argument nobody expects:", argv[optind]);
	return run(&line);
}
