/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/cli.h"

#define MAX_PIDS 4096

enum { OPTION_ALL = 2001 };

static int parse(struct cli *cli, int argc, char **argv, pid_t *pids, size_t *ret_n)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, OPTION_ALL },
		COMMON_OPTIONS,
	};
	int status = EXIT_DONE, c;
	bool all = false;

	while ((c = option_next(cli, argc, argv, ":h", options, &status)) != OPTIONS_DONE) {
		if (c == OPTIONS_STOP)
			return status;
		all = true;
	}
	if (all && optind < argc)
		return cli_usage(cli, "give pids or --all, not both");
	status = check_arguments(cli, argc - optind, 0, MAX_PIDS);
	*ret_n = 0;
	for (int i = optind; i < argc && status == EXIT_DONE; i++)
		status = parse_pid(cli, argv[i], &pids[(*ret_n)++]);
	return status;
}

static int print_json(struct cli *cli, const pid_t *pids, size_t n, bool certain)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, json_object_new_int((int)pids[i]));
	json_add(o, "released", list);
	if (!certain)
		json_add(o, "certain", json_object_new_boolean(false));
	return cli_print_json(cli, o);
}

/* NVIDIA's driver does not tell what was off. */
static void print_let_go(const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("process %d: its contexts are let go\n", (int)pids[i]);
	printf("contexts of %zu process%s let go%s\n", n, n == 1 ? "" : "es",
	       n ? "; whether they were held, this driver does not tell" : "");
}

static int report(struct cli *cli, const pid_t *pids, size_t n)
{
	bool certain = !cli_is_nvidia(cli);

	if (cli->json)
		return print_json(cli, pids, n, certain);
	if (!certain) {
		print_let_go(pids, n);
		return EXIT_DONE;
	}
	if (n == 0)
		printf("nothing was held\n");
	for (size_t i = 0; i < n; i++)
		printf("process %d runs again\n", (int)pids[i]);
	return EXIT_DONE;
}

int cmd_release(struct cli *cli, int argc, char **argv)
{
	_cleanup_free_ pid_t *pids = calloc(2 * MAX_PIDS, sizeof(*pids));
	struct gpreempt_error e = { .size = sizeof(e) };
	pid_t *released = pids + MAX_PIDS;
	struct progress progress;
	size_t n = 0;
	int status, r;

	if (!pids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	status = parse(cli, argc, argv, pids, &n);
	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status != EXIT_DONE)
		return status;
	if (cli->socket)
		setenv("GPREEMPT_SOCKET", cli->socket, 1); /* where the library looks for it */
	progress_begin(&progress);
	progress_now(&progress, "asking the holders to let go");
	r = gpreempt_release(cli->ctx, n ? pids : NULL, n, released, MAX_PIDS);
	progress_end(&progress);
	if (r < 0)
		return cli_fail_ctx(cli);
	gpreempt_get_error(cli->ctx, &e);
	if (e.kind == GPREEMPT_ERROR_NONE)
		return report(cli, released, MIN((size_t)r, MAX_PIDS));
	/* Some, but not all: in JSON there is room for one answer only, and it is the failure. */
	if (!cli->json)
		report(cli, released, MIN((size_t)r, MAX_PIDS));
	return cli_fail_error(cli, &e);
}
