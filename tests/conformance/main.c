/* SPDX-License-Identifier: MIT */
/*
 * conformance --world WORLD [--old-rule] [--list] [CASE]...
 *
 * Runs the cases and prints what the driver answered, one or a few lines each. WORLD is "driver"
 * for the real one, or "model:CHIP". --old-rule: the model without the debugger_process clause.
 * A CASE is a name or the begin of names.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "tests/conformance/actor.h"
#include "tests/conformance/topics.h"

static const struct {
	const struct conformance_case *cases;
	uint32_t n_gpus; /* at least */
} topics[] = {
	{ entry_cases, 1 },	   { debug_state_cases, 1 },  { debug_caller_cases, 1 },
	{ runtime_cases, 1 },	   { new_rule_cases, 1 },     { suspend_cases, 1 },
	{ resume_cases, 1 },	   { snapshot_cases, 1 },     { events_cases, 1 },
	{ create_queue_cases, 1 }, { update_queue_cases, 1 }, { destroy_cases, 1 },
	{ criu_cases, 1 },	   { gws_cumask_cases, 1 },   { lifetime_cases, 1 },
	{ hijack_cases, 1 },	   { files_cases, 1 },	      { costs_cases, 1 },
	{ user_event_cases, 1 },   { work_cases, 1 },	      { fault_cases, 1 },
	{ two_gpu_cases, 2 },
};

static bool wanted(const char *name, char *const *chosen)
{
	if (!*chosen)
		return true;
	for (; *chosen; chosen++)
		if (!strncmp(name, *chosen, strlen(*chosen)))
			return true;
	return false;
}

/* They are the same in every case. */
static void introduce_gpus(struct world *w)
{
	if (!w->n_gpus)
		find_gpus(w);
	world_name(w, NAME_GPU, w->gpu_ids[0], 0, "gpu");
	for (uint32_t i = 1; i < w->n_gpus; i++)
		world_name(w, NAME_GPU, w->gpu_ids[i], 0, "gpu%u", i + 1);
}

static void run_case(struct world *w, const struct conformance_case *c, uint32_t n_gpus)
{
	int r = world_begin(w, c->name);

	if (r < 0)
		broken("%s cannot begin: %s", c->name, strerror(-r));
	introduce_gpus(w);
	if (w->n_gpus >= n_gpus)
		c->run(w);
	world_end(w);
}

/* A NULL world: only their names. */
static size_t each_case(struct world *w, char *const *chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(topics); i++) {
		for (const struct conformance_case *c = topics[i].cases; c->name; c++) {
			if (!wanted(c->name, chosen))
				continue;
			n++;
			if (w)
				run_case(w, c, topics[i].n_gpus);
			else
				puts(c->name);
		}
	}
	return n;
}

static int usage(void)
{
	fputs("usage: conformance --world driver|model:CHIP [--old-rule] [--list] [CASE]...\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "world", required_argument, NULL, 'w' },
		{ "old-rule", no_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'l' },
		{ 0 },
	};
	const char *spec = NULL;
	bool old_rule = false, list = false;
	static struct world w;
	int c, r;

	if (argc > 1 && !strcmp(argv[1], "--actor"))
		actor_main(argv + 2);
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == '?')
			return usage();
		spec = c == 'w' ? optarg : spec;
		old_rule |= c == 'o';
		list |= c == 'l';
	}
	if (list)
		return each_case(NULL, argv + optind) ? 0 : 1;
	if (!spec)
		return usage();
	r = world_open(spec, old_rule, &w);
	if (r < 0)
		broken("no world '%s': %s", spec, strerror(-r));
	if (!each_case(&w, argv + optind))
		broken("no such case");
	world_close(&w);
	return 0;
}
