/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/daemon.h"
#include "cmd/gpreempt/table.h"

#define PATIENCE_NS NSEC_PER_SEC /* for something that is nice to know */

static int get_processes(void *of, void *list, size_t room)
{
	return gpreempt_list_processes(of, list, room);
}

static void take_class(struct gpreempt_process_info *ps, size_t n,
		       const struct gpreempt_daemon_job *job)
{
	for (size_t i = 0; i < n; i++)
		if (ps[i].pid == job->pid && job->job_class != GPREEMPT_CLASS_UNKNOWN)
			ps[i].job_class = job->job_class;
}

/* What a running daemon knows better than the priorities of queues tell. */
static void ask_daemon(struct cli *cli, struct gpreempt_process_info *ps, size_t n)
{
	_cleanup_free_ struct gpreempt_daemon_job *jobs = NULL;
	int n_jobs;

	/* The processes of a model of our own are nobody else's. */
	if (cli_is_alone(cli) || gpreempt_daemon_open(cli->socket, &cli->daemon, NULL) < 0)
		return;
	gpreempt_daemon_set_timeout(cli->daemon, PATIENCE_NS);
	n_jobs = read_daemon_jobs(cli->daemon, &jobs);
	for (int i = 0; i < n_jobs; i++)
		take_class(ps, n, &jobs[i]);
}

static bool wanted(const struct gpreempt_process_info *p, enum gpreempt_class job_class)
{
	return (p->queues > 0 || p->hidden) &&
	       (job_class == GPREEMPT_CLASS_UNKNOWN || job_class == p->job_class);
}

static struct json_object *process_to_json(const struct gpreempt_process_info *p)
{
	struct json_object *o = json_object_new_object();
	struct json_object *gpus;

	json_add(o, "pid", json_object_new_int((int)p->pid));
	if (p->valid & GPREEMPT_PROC_COMM) {
		json_add_string(o, "comm", p->comm);
		json_add_uint(o, "uid", p->uid);
		json_add_string(o, "state", p->state);
		if (p->tracer_pid)
			json_add_uint(o, "tracer_pid", (uint64_t)p->tracer_pid);
	}
	if (p->job_class != GPREEMPT_CLASS_UNKNOWN)
		json_add_string(o, "class", gpreempt_class_name(p->job_class));
	if (!p->hidden) {
		json_add_uint(o, "queues", p->queues);
		gpus = json_object_new_array();
		for (uint32_t i = 0; i < p->n_gpus; i++)
			json_object_array_add(gpus, json_object_new_uint64(p->gpus[i]));
		json_add(o, "gpus", gpus);
	}
	if (p->valid & GPREEMPT_PROC_VRAM)
		json_add_uint(o, "vram_bytes", p->vram_bytes);
	return o;
}

static int print_json(struct cli *cli, const struct gpreempt_process_info *ps, size_t n,
		      enum gpreempt_class job_class)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		if (wanted(&ps[i], job_class))
			json_object_array_add(list, process_to_json(&ps[i]));
	return cli_print_json(cli, json_of("processes", list));
}

static void print_row(struct libscols_table *t, const struct gpreempt_process_info *p)
{
	bool known = p->valid & GPREEMPT_PROC_COMM;
	char buf[UNIT_TEXT_SIZE], gpus[256] = "";

	for (uint32_t i = 0, at = 0; i < p->n_gpus && at < sizeof(gpus); i++)
		at += (uint32_t)snprintf(gpus + at, sizeof(gpus) - at, "%s%u", i ? "," : "",
					 p->gpus[i]);
	table_row(t);
	table_cell(t, 0, "%d", (int)p->pid);
	table_cell(t, 1, "%s", known ? p->comm : "-");
	table_cell(t, 2, "%s",
		   p->job_class == GPREEMPT_CLASS_UNKNOWN ? "-"
							  : gpreempt_class_name(p->job_class));
	table_cell(t, 3, p->hidden ? "-" : "%u", p->queues);
	table_cell(t, 4, "%s", known ? p->state : "-");
	table_cell(t, 5, "%s",
		   p->valid & GPREEMPT_PROC_VRAM ? text_bytes(p->vram_bytes, buf) : "-");
	table_cell(t, 6, "%s", p->hidden ? "-" : gpus);
}

static int print_text(const struct gpreempt_process_info *ps, size_t n,
		      enum gpreempt_class job_class)
{
	static const struct column columns[] = {
		{ "PID", true },    { "COMMAND", false }, { "CLASS", false }, { "QUEUES", true },
		{ "STATE", false }, { "VRAM", true },	  { "GPUS", false },
	};
	struct libscols_table *t = table_new(columns, ARRAY_SIZE(columns));
	size_t shown = 0, unknown = 0, hidden = 0;

	for (size_t i = 0; i < n; i++) {
		if (ps[i].queues > 0 && ps[i].job_class == GPREEMPT_CLASS_UNKNOWN)
			unknown++;
		if (!wanted(&ps[i], job_class))
			continue;
		print_row(t, &ps[i]);
		shown++;
		hidden += ps[i].hidden;
	}
	table_print(t);
	if (!shown)
		printf("no %s%sprocess has GPU queues\n",
		       job_class == GPREEMPT_CLASS_UNKNOWN ? "" : gpreempt_class_name(job_class),
		       job_class == GPREEMPT_CLASS_UNKNOWN ? "" : " ");
	if (unknown && job_class != GPREEMPT_CLASS_UNKNOWN)
		printf("(%zu more of unknown class: see gpreempt list)\n", unknown);
	if (hidden)
		printf("(%zu could not be looked into: try sudo, or gpreempt queues PID for the "
		       "reason)\n",
		       hidden);
	return EXIT_DONE;
}

int cmd_list(struct cli *cli, int argc, char **argv)
{
	enum gpreempt_class job_class = GPREEMPT_CLASS_UNKNOWN;
	const struct command_option options[] = { { "class", 0, option_class, &job_class } };
	struct gpreempt_process_info *ps = NULL;
	size_t n = 0;
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status == EXIT_DONE)
		status = cli_read_list(cli, get_processes, cli->ctx, sizeof(*ps), &ps, &n);
	if (status == EXIT_DONE) {
		ask_daemon(cli, ps, n);
		status = cli->json ? print_json(cli, ps, n, job_class) :
				     print_text(ps, n, job_class);
	}
	free(ps);
	return status;
}
