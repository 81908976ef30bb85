/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"
#include "util/apart.h"

#define MAX_PIDS 4096
#define AT_ONCE 32u
#define LIST_NS (2 * NSEC_PER_SEC)
#define ONE_NS (8 * NSEC_PER_SEC) /* a holder that is well lets go at once */
#define ALL_NS (60 * NSEC_PER_SEC)

static int parse(struct cli *cli, int argc, char **argv, pid_t *pids, size_t *ret_n)
{
	bool all = false;
	const struct command_option options[] = { { "all", 0, NULL, &all } };
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status != EXIT_DONE)
		return status;
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
	struct json_object *list = json_object_new_array(), *o = json_of("released", list);

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, json_object_new_int((int)pids[i]));
	if (!certain)
		json_add(o, "certain", json_object_new_boolean(false));
	return cli_print_json(cli, o);
}

static int report(struct cli *cli, const pid_t *pids, size_t n)
{
	bool certain = cli_has(cli, GPREEMPT_HAS_HOLDS);

	if (cli->json)
		return print_json(cli, pids, n, certain);
	for (size_t i = 0; i < n; i++)
		printf(certain ? "process %d runs again\n" :
				 "process %d: its contexts are let go\n",
		       (int)pids[i]);
	if (!certain)
		printf("contexts of %zu process%s let go%s\n", n, n == 1 ? "" : "es",
		       n ? "; whether they were held, this driver does not tell" : "");
	else if (n == 0)
		printf("nothing was held\n");
	return EXIT_DONE;
}

/* ---- apart: each may hang, whatever is done to it ---- */

struct listing {
	int n; /* or -errno */
	pid_t pids[MAX_PIDS];
};

static void list(void *user, size_t i, void *ret)
{
	struct cli *cli = user;
	struct listing *l = ret;

	l->n = MIN(gpreempt_list_pids(cli->ctx, l->pids, MAX_PIDS), MAX_PIDS);
}

static int list_all(struct cli *cli, pid_t *pids, size_t *ret_n)
{
	const struct apart a = {
		.n = 1,
		.at_once = 1,
		.limit_ns = LIST_NS,
		.all_ns = LIST_NS,
		.run = list,
		.user = cli,
		.result_size = sizeof(struct listing),
	};
	_cleanup_free_ struct listing *l = calloc(1, sizeof(*l));
	int error = 0, r = l ? apart_run(&a, l, &error) : -ENOMEM;

	if (r >= 0)
		r = error < 0 ? error : MIN(l->n, 0);
	if (r < 0)
		return cli_fail(cli, EXIT_FAILED, "name the pids",
				"the processes that use the GPU cannot be listed: %s",
				strerror(-r));
	memcpy(pids, l->pids, (size_t)l->n * sizeof(*pids));
	*ret_n = (size_t)l->n;
	return EXIT_DONE;
}

struct outcome {
	int r; /* gpreempt_release()'s */
	struct gpreempt_error error;
};

struct work {
	struct cli *cli;
	const pid_t *pids;
};

static void release_one(void *user, size_t i, void *ret)
{
	const struct work *w = user;
	struct outcome *o = ret;
	pid_t released;

	o->error.size = sizeof(o->error);
	o->r = gpreempt_release(w->cli->ctx, &w->pids[i], 1, &released, 1);
	gpreempt_get_error(w->cli->ctx, &o->error);
}

static void say_too_late(pid_t pid, struct gpreempt_error *ret)
{
	*ret = (struct gpreempt_error){ .kind = GPREEMPT_ERROR_FAILED, .hint = "end it" };
	snprintf(ret->message, sizeof(ret->message),
		 "process %d keeps the driver from answering, and was not let go", (int)pid);
}

/*
 * Of all processes: one that ended is let go, and somebody's debugger is no hold. Where nobody
 * knows who is held, those of others are passed over.
 */
static bool is_nothing(struct cli *cli, const struct outcome *o)
{
	return o->r == -ESRCH || o->r == -EBUSY || o->error.kind == GPREEMPT_ERROR_ABSENT ||
	       (!cli_has(cli, GPREEMPT_HAS_HOLDS) && o->error.kind == GPREEMPT_ERROR_REFUSED);
}

/* How many were let go; the first failure, if there was one, in *ret_error. */
static int release_apart(struct cli *cli, const pid_t *pids, size_t n, bool all, pid_t *released,
			 struct gpreempt_error *ret_error)
{
	struct work work = { cli, pids };
	const struct apart a = {
		.n = n,
		.at_once = AT_ONCE,
		.limit_ns = ONE_NS,
		.all_ns = ALL_NS,
		.run = release_one,
		.user = &work,
		.result_size = sizeof(struct outcome),
	};
	_cleanup_free_ struct outcome *outcomes = calloc(n + 1, sizeof(*outcomes));
	_cleanup_free_ int *errors = calloc(n + 1, sizeof(*errors));
	int count = 0, r = outcomes && errors ? apart_run(&a, outcomes, errors) : -ENOMEM;

	for (size_t i = 0; i < n && r >= 0; i++) {
		struct outcome *o = &outcomes[i];

		if (errors[i] == 0 && o->r > 0)
			released[count++] = pids[i];
		if (errors[i] < 0)
			say_too_late(pids[i], &o->error);
		else if (o->r >= 0 || (all && is_nothing(cli, o)))
			continue;
		if (ret_error->kind == GPREEMPT_ERROR_NONE)
			*ret_error = o->error;
	}
	return r < 0 ? r : count;
}

/* ---- the command ---- */

static int release(struct cli *cli, pid_t *pids, size_t n, pid_t *released)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct progress progress;
	bool all = n == 0, here = cli_is_alone(cli); /* then it is this process's own */
	int r, status = all && !here ? list_all(cli, pids, &n) : EXIT_DONE;

	if (status != EXIT_DONE)
		return status;
	progress_begin(&progress);
	progress_now(&progress, "asking the holders to let go");
	r = here ? gpreempt_release(cli->ctx, all ? NULL : pids, n, released, MAX_PIDS) :
		   release_apart(cli, pids, n, all, released, &e);
	if (here)
		gpreempt_get_error(cli->ctx, &e);
	progress_end(&progress);
	if (r < 0 && e.kind == GPREEMPT_ERROR_NONE)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "%s", strerror(-r));
	if (e.kind == GPREEMPT_ERROR_NONE)
		return report(cli, released, MIN((size_t)r, MAX_PIDS));
	/* Some, but not all: in JSON there is room for one answer only, and it is the failure. */
	if (!cli->json && r > 0)
		report(cli, released, MIN((size_t)r, MAX_PIDS));
	return cli_fail_error(cli, &e);
}

int cmd_release(struct cli *cli, int argc, char **argv)
{
	_cleanup_free_ pid_t *pids = calloc(2 * MAX_PIDS, sizeof(*pids));
	size_t n = 0;
	int status;

	if (!pids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	status = parse(cli, argc, argv, pids, &n);
	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status != EXIT_DONE)
		return status;
	if (cli->socket)
		setenv("GPREEMPT_SOCKET", cli->socket, 1); /* where the library looks for it */
	return release(cli, pids, n, pids + MAX_PIDS);
}
