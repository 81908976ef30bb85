/* SPDX-License-Identifier: MIT */
/* gpreempt-top: what the daemon does, live. It only looks. */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt-top/screen.h"
#include "cmd/gpreempt-top/view.h"
#include "util/macros.h"

#define WIDTH_OF_TEXT 132 /* where nothing else says how wide */
#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 3600.0

static const char usage[] =
	"usage: gpreempt-top [OPTIONS]\n"
	"\n"
	"Shows what gpreemptd does: GPUs, jobs, who is held, how long who waits.\n"
	"\n"
	"  --once              print it once, as text\n"
	"  --interval SECONDS  between looks; 1 unless told\n"
	"  --socket PATH       of the daemon, otherwise $GPREEMPT_SOCKET or\n"
	"                      /run/gpreempt/control.sock\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 no daemon.\n";

static int fail(enum gpreempt_error_kind kind, const char *message, const char *hint)
{
	fprintf(stderr, "gpreempt-top: %s\n  hint: %s\n", message, hint);
	return (int)kind;
}

static int complain(const char *message)
{
	return fail(GPREEMPT_ERROR_USAGE, message, "see: gpreempt-top --help");
}

static int take_interval(const char *text, uint64_t *ret_ns)
{
	bool plain = text[0] && text[strspn(text, "0123456789.")] == '\0';
	char *end = NULL;
	double seconds = plain ? strtod(text, &end) : 0;

	if (!plain || *end || seconds < INTERVAL_MIN_S || seconds > INTERVAL_MAX_S)
		return complain("--interval must be 0.1 to 3600 seconds");
	*ret_ns = (uint64_t)(seconds * (double)NSEC_PER_SEC);
	return 0;
}

#define STOP (-1)

/* 0: go on; STOP: done; else an exit status. */
static int parse(int argc, char **argv, struct screen_options *ret)
{
	static const struct option options[] = {
		{ "once", no_argument, NULL, 'o' },
		{ "interval", required_argument, NULL, 'i' },
		{ "socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c, status = 0;

	opterr = 0;
	while (status == 0 && (c = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			ret->once = true;
			break;
		case 'i':
			status = take_interval(optarg, &ret->interval_ns);
			break;
		case 's':
			ret->socket = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return STOP;
		case 'V':
			printf("gpreempt-top %s\n", GPREEMPT_VERSION);
			return STOP;
		default:
			return complain("unknown option, or one without its value");
		}
	}
	if (status == 0 && optind < argc)
		status = complain("there are no arguments");
	return status;
}

static unsigned int text_width(void)
{
	const char *columns = getenv("COLUMNS");
	long n = columns ? strtol(columns, NULL, 10) : 0;
	unsigned int width = terminal_width();

	if (n > 0 && n <= VIEW_COLUMNS_MAX)
		return (unsigned int)n;
	return width > 0 ? width : WIDTH_OF_TEXT;
}

static void print_trimmed(const char *text)
{
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == ' ')
		n--;
	printf("%.*s\n", (int)n, text);
}

static int print_once(const struct screen_options *args)
{
	struct view_options options = { .width = text_width(), .utf8 = args->utf8 };
	struct gpreempt_daemon *d = NULL;
	struct snapshot s = { 0 };
	struct view v;
	int r = snapshot_read(&s, args->socket, &d);

	gpreempt_daemon_close(d);
	if (r < 0)
		return fail(s.error.kind, s.error.message, s.error.hint);
	r = view_make(&s, &options, &v);
	if (r >= 0) {
		for (size_t i = 0; i < v.n; i++)
			print_trimmed(v.lines[i].text);
		view_done(&v);
	}
	snapshot_done(&s);
	return r < 0 ? GPREEMPT_ERROR_FAILED : 0;
}

static int show(const struct screen_options *args)
{
	int r = screen_run(args);

	if (r == -ENOTTY)
		return fail(GPREEMPT_ERROR_USAGE, "this is no terminal that could show it",
			    "as text: gpreempt-top --once");
	if (r < 0) {
		fprintf(stderr, "gpreempt-top: %s\n", strerror(-r));
		return GPREEMPT_ERROR_FAILED;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct screen_options args = { .interval_ns = NSEC_PER_SEC };
	int status;

	setlocale(LC_ALL, "");
	signal(SIGPIPE, SIG_IGN);
	args.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	status = parse(argc, argv, &args);
	if (status == 0)
		status = args.once ? print_once(&args) : show(&args);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "gpreempt-top: cannot write the output: %s\n", strerror(errno));
		return GPREEMPT_ERROR_FAILED;
	}
	return status == STOP ? 0 : status;
}
