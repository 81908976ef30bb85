/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreempt/report.h"

const char help_report[] =
	"  -o, --output FILE   write the page there; otherwise to standard output\n"
	"\n"
	"RUN is a file with what was recorded: the answers of gpreempt --json sim, bench and\n"
	"status, the lines of gpreempt --json events, a trace of sim --trace, the results of\n"
	"the benchmarks. The page has all that it shows in itself: it loads nothing and runs\n"
	"no scripts. A file that is replaced is whole or as it was.\n";

struct text {
	char *bytes;
	size_t len;
};

/* ---- where it goes ---- */

static int write_all(int fd, const struct text *t)
{
	for (size_t done = 0; done < t->len;) {
		ssize_t n = write(fd, t->bytes + done, t->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* What is no file, a pipe or a terminal, cannot be replaced. */
static int write_into(const char *path, const struct text *t)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY), r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, t);
	if (close(fd) < 0 && !r)
		r = -errno;
	return r;
}

static int write_beside(const char *path, const struct text *t)
{
	_cleanup_free_ char *beside = NULL;
	mode_t mask = umask(0);
	int fd, r;

	umask(mask);
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, t);
	if (!r && fchmod(fd, 0666 & ~mask) < 0)
		r = -errno;
	if (close(fd) < 0 && !r)
		r = -errno;
	if (!r && rename(beside, path) < 0)
		r = -errno;
	if (r)
		unlink(beside);
	return r;
}

/* Nothing interrupts it: a page is whole, and no half of one is left lying about. */
static int write_file(const char *path, const struct text *t)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	struct stat st;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (real && stat(real, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : write_into(real, t);
	return write_beside(real ? real : path, t);
}

static int told_json(struct cli *cli, const struct recordings *r, const char *path, size_t bytes)
{
	struct json_object *o = json_object_new_object(), *all = json_object_new_array();

	json_add_string(o, "report", path);
	json_add_uint(o, "bytes", bytes);
	for (size_t i = 0; i < r->n; i++) {
		struct json_object *one = json_object_new_object();

		json_add_string(one, "file", r->of[i].file);
		json_add_string(one, "kind", recording_word(&r->of[i]));
		json_add_string(one, "ground", ground_word(recording_ground(&r->of[i])));
		json_object_array_add(all, one);
	}
	json_add(o, "recordings", all);
	return cli_print_json(cli, o);
}

static int deliver(struct cli *cli, const struct recordings *r, const char *path,
		   const struct text *t)
{
	int error;

	if (!path) {
		fwrite(t->bytes, 1, t->len, stdout);
		return EXIT_DONE; /* main says what became of it */
	}
	error = write_file(path, t);
	if (error < 0)
		return cli_fail(cli, EXIT_FAILED, "choose another place", "cannot write '%s': %s",
				path, strerror(-error));
	if (cli->json)
		return told_json(cli, r, path, t->len);
	printf("the report on %zu recording%s is in %s\n", r->n, r->n == 1 ? "" : "s", path);
	return EXIT_DONE;
}

/* ---- the command ---- */

static int parse(struct cli *cli, int argc, char **argv, const char **ret_path)
{
	const struct command_option options[] = { { "output", 'o', option_text, ret_path } };
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status != EXIT_DONE)
		return status;
	if (*ret_path && !(*ret_path)[0])
		return cli_usage(cli, "-o needs a name");
	if (!*ret_path && cli->json)
		return cli_usage(cli, "--json tells of a page in a file: say which with -o FILE");
	if (!*ret_path && argc > optind && is_terminal(STDOUT_FILENO))
		return cli_usage(cli, "a page is not for a terminal: say where with -o FILE");
	return check_arguments(cli, argc - optind, 1, REPORT_MAX_FILES);
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
	_cleanup_(recordings_done) struct recordings r = { 0 };
	struct text page = { 0 };
	const char *path = NULL;
	int status = parse(cli, argc, argv, &path);

	if (status != EXIT_DONE)
		return status;
	signals_let_through(); /* a file may be a pipe that nobody writes to */
	for (int i = optind; status == EXIT_DONE && i < argc; i++)
		status = recordings_read(cli, &r, argv[i]);
	if (status == EXIT_DONE && report_page(&r, &page.bytes, &page.len) < 0)
		status = cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (status == EXIT_DONE)
		status = deliver(cli, &r, path, &page);
	free(page.bytes);
	return status;
}
