/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cmd/gpreempt-softgpu/softgpu.h"
#include "gpu/soft/started.h"
#include "util/macros.h"

#define NOBODY 65534

enum status { STATUS_DONE, STATUS_FAILED, STATUS_USAGE };

enum { OPTION_PRESET = 256, OPTION_PARENT };

static const char help_text[] =
	"usage: gpreempt-softgpu [--preset PRESET] SOCKET\n"
	"\n"
	"A software GPU behind a modelled AMD driver, in real time: gpreempt and gpreemptd reach "
	"it\n"
	"with --device soft:SOCKET, and jobs with gpreempt load. Runs until it is told to end.\n"
	"\n"
	"  --preset PRESET  mi308x (default), mi300x, ..., with ,key=value as for --device model\n"
	"  --parent FD      tell there that it is ready, or why not, and end with its other end\n"
	"  -V, --version    print the version\n"
	"  -h, --help       print this\n"
	"\n"
	"Exit: 0 done, 1 failed, 2 usage. See gpreempt-softgpu(1).\n";

struct command_line {
	const char *preset, *path;
	int parent; /* -1: none */
	bool help, version;
};

/* One line for people, or for who started it. */
static enum status fail(const struct command_line *line, int error, const char *what,
			const char *why)
{
	struct softgpu_started told = { .error = error };

	snprintf(told.why, sizeof(told.why), "%s%s%s", what, why ? ": " : "", why ? why : "");
	if (line->parent >= 0)
		send(line->parent, &told, sizeof(told), MSG_NOSIGNAL);
	else
		fprintf(stderr, "gpreempt-softgpu: %s\n", told.why);
	return error == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

static enum status parse(int argc, char **argv, struct command_line *ret)
{
	static const struct option options[] = {
		{ "preset", required_argument, NULL, OPTION_PRESET },
		{ "parent", required_argument, NULL, OPTION_PARENT },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":Vh", options, NULL)) != -1) {
		if (c == OPTION_PRESET)
			ret->preset = optarg;
		else if (c == OPTION_PARENT)
			ret->parent = (int)strtol(optarg, NULL, 10);
		else if (c == 'V')
			ret->version = true;
		else if (c == 'h')
			ret->help = true;
		else
			return fail(ret, -EINVAL, "an option that is not known, or lacks its value",
				    argv[optind - 1]);
	}
	if (ret->help || ret->version)
		return STATUS_DONE;
	if (argc - optind != 1)
		return fail(ret, -EINVAL, "one argument is wanted, the socket", NULL);
	ret->path = argv[optind];
	return STATUS_DONE;
}

/*
 * Whom it serves may be anybody, and it needs no rights for that. Where this is not possible, as in
 * some containers, root is not much either.
 */
static void drop_rights(void)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return;
}

static int on_parent(sd_event_source *source, int fd, uint32_t events, void *user)
{
	return sd_event_exit(user, STATUS_DONE);
}

static int end_by(sd_event *loop, int parent)
{
	int r = sd_event_add_signal(loop, NULL, SIGTERM, NULL, NULL);

	if (r >= 0)
		r = sd_event_add_signal(loop, NULL, SIGINT, NULL, NULL);
	if (r >= 0 && parent >= 0)
		r = sd_event_add_io(loop, NULL, parent, EPOLLIN, on_parent, loop);
	return r;
}

static enum status serve(const struct command_line *line, sd_event *loop)
{
	const struct softgpu_started ready = { 0 };
	_cleanup_free_ char *why = NULL;
	struct softgpu *s = NULL;
	int r = end_by(loop, line->parent);

	if (r >= 0)
		r = softgpu_new(line->preset, loop, line->path, &s, &why);
	if (r < 0 && why)
		return fail(line, r, "no such model", why);
	if (r < 0)
		return fail(line, r == -EINVAL ? -EIO : r, line->path, strerror(-r));
	drop_rights();
	if (line->parent >= 0)
		send(line->parent, &ready, sizeof(ready), MSG_NOSIGNAL);
	r = sd_event_loop(loop);
	softgpu_free(s);
	return r < 0 ? fail(line, r, "the event loop failed", strerror(-r)) : STATUS_DONE;
}

static void prepare(void)
{
	struct rlimit limit;
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	struct command_line line = { .parent = -1 };
	enum status status = parse(argc, argv, &line);
	sd_event *loop = NULL;
	int r;

	if (status != STATUS_DONE)
		return status;
	if (line.help || line.version) {
		fputs(line.help ? help_text : "gpreempt-softgpu " GPREEMPT_VERSION "\n", stdout);
		return fflush(stdout) == 0 ? STATUS_DONE : STATUS_FAILED;
	}
	prepare();
	r = sd_event_new(&loop);
	if (r < 0)
		return fail(&line, r, "cannot begin", strerror(-r));
	status = serve(&line, loop);
	sd_event_unref(loop);
	return status;
}
