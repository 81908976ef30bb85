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

static const struct conformance_case *const topics[] = {
	entry_cases,	debug_state_cases,  debug_caller_cases, runtime_cases,
	new_rule_cases, suspend_cases,	    resume_cases,	snapshot_cases,
	events_cases,	create_queue_cases, update_queue_cases, destroy_cases,
	criu_cases,	gws_cumask_cases,   lifetime_cases,	hijack_cases,
	files_cases,	costs_cases,	    user_event_cases,
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

static void introduce_gpu(struct world *w)
{
	world_name(w, NAME_GPU, gpu_id(w), 0, "gpu");
}

static void run_case(struct world *w, const struct conformance_case *c)
{
	int r = world_begin(w, c->name);

	if (r < 0)
		broken("%s cannot begin: %s", c->name, strerror(-r));
	introduce_gpu(w);
	c->run(w);
	world_end(w);
}

/* A NULL world: only their names. */
static size_t each_case(struct world *w, char *const *chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(topics); i++) {
		for (const struct conformance_case *c = topics[i]; c->name; c++) {
			if (!wanted(c->name, chosen))
				continue;
			n++;
			if (w)
				run_case(w, c);
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
