/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "sim/sim.h"
#include "tests/fuzz/fuzz.h"
#include "util/macros.h"

#define MAX_QUEUES 64 /* of what is run */
#define RUN_NS (2 * NSEC_PER_MSEC)

static void check_mistake(const struct inifile_mistake *m)
{
	PROMISE(m->line >= 1 && m->column >= 1);
	PROMISE(m->text[0] && memchr(m->text, '\0', sizeof(m->text)));
	PROMISE(memchr(m->names, '\0', sizeof(m->names)));
}

static void check_scenario(const struct sim_scenario *s)
{
	PROMISE(s->gpus >= 1 && s->gpus <= SIM_MAX_GPUS && s->duration_ns);
	PROMISE(sim_scenario_policy(s));
	for (size_t i = 0; i < s->n_jobs; i++) {
		PROMISE(s->jobs[i].model < s->n_models && s->jobs[i].gpu < s->gpus);
		PROMISE(s->jobs[i].queues >= 1 && s->jobs[i].name[0]);
	}
	for (size_t i = 1; i < s->n_trace; i++)
		PROMISE(s->trace_ns[i] >= s->trace_ns[i - 1]);
}

static bool is_small(const struct sim_scenario *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_jobs; i++)
		n += (uint64_t)s->jobs[i].copies * s->jobs[i].queues * s->gpus;
	return n <= MAX_QUEUES;
}

static void run(struct sim_scenario *s)
{
	struct sim_options options = { .seed = 1 };

	s->duration_ns = MIN(s->duration_ns, RUN_NS);
	for (unsigned int mode = 0; mode <= SIM_SEQUENTIAL; mode++) {
		struct sim_result result;

		options.mode = mode;
		PROMISE(sim_run(s, &options, &result) == 0);
		PROMISE(result.n_jobs == 0 || result.jobs);
		sim_result_done(&result);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct sim_scenario *s = NULL;
	struct inifile_mistake mistake = { 0 };
	char text[64];
	int r;

	r = sim_scenario_parse("fuzz", (const char *)bytes, len, &s, &mistake);
	PROMISE(r == 0 || r == -EINVAL);
	if (r < 0) {
		check_mistake(&mistake);
		return 0;
	}
	check_scenario(s);
	if (is_small(s))
		run(s);
	for (size_t i = 0; i < s->n_sweep; i++) {
		PROMISE(sim_scenario_sweep_text(s, i, text, sizeof(text))[0]);
		sim_scenario_sweep(s, i);
	}
	sim_scenario_free(s);
	return 0;
}
