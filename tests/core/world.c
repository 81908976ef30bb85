/* SPDX-License-Identifier: MIT */
#include "tests/core/world.h"

static const char *program;
static uint64_t only_seed;

/* splitmix64 */
uint64_t world_random(struct world *w, uint64_t below)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % below;
}

/* Mostly sensible; where anything goes also the ends of what there is. */
static uint64_t duration(struct world *w, uint64_t usual_ns)
{
	if (w->rules.odd && world_random(w, 8) == 0)
		return world_random(w, 2) ? 0 : UINT64_MAX - world_random(w, 3);
	return usual_ns / 2 + world_random(w, usual_ns);
}

static struct gpol_job new_job(struct world *w, uint32_t id, bool online)
{
	bool odd = w->rules.odd;

	return (struct gpol_job){
		.id = id,
		.class = online ? JOB_ONLINE : JOB_OFFLINE,
		.priority = (uint8_t)world_random(w, 3),
		.preemptible = online ? world_random(w, 2) : !odd || world_random(w, 5),
		.latency_critical = world_random(w, 3) == 0,
		.weight = (uint32_t)(odd ? world_random(w, 3) * world_random(w, UINT32_MAX) :
					   1 + world_random(w, 4)),
		.min_permille =
			(uint32_t)(world_random(w, 2) ? world_random(w, odd ? 2000 : 150) : 0),
		.has_work = !online && (w->rules.steady || world_random(w, 2)),
		.work_since_ns = w->now_ns,
		.service_ns = world_random(w, 4) ? duration(w, 5 * WORLD_MS) : 0,
		.target_ns = world_random(w, 4) ? duration(w, 30 * WORLD_MS) : 0,
		.wait_bound_ns = w->rules.bounds ? duration(w, 300 * WORLD_MS) : 0,
	};
}

void world_init(struct world *w, const struct gpol_ops *ops, const struct world_rules *rules,
		uint64_t seed)
{
	uint32_t online;

	*w = (struct world){ .ops = ops, .rules = *rules, .seed = seed, .random = seed };
	w->now_ns = rules->odd && world_random(w, 4) == 0 ? world_random(w, 3) : 1000 * WORLD_MS;
	w->params = (struct gpol_params){
		.linger_ns = duration(w, WORLD_MS),
		.turn_ns = duration(w, 100 * WORLD_MS),
		.ceiling_ns = duration(w, 10 * WORLD_MS),
		.margin_ns = duration(w, WORLD_MS),
	};
	w->gpu = (struct gpol_gpu){ duration(w, WORLD_MS / 2), duration(w, WORLD_MS / 2) };
	online = (uint32_t)world_random(w, rules->online + 1);
	w->n = 1 + (uint32_t)world_random(w, rules->offline) + online;
	for (uint32_t i = 0, id = 0; i < w->n; i++) {
		id += 1 + (uint32_t)world_random(w, 3);
		w->jobs[i] = new_job(w, id, online && world_random(w, w->n - i) < online);
		online -= w->jobs[i].class == JOB_ONLINE;
	}
	w->again_ns = GPOL_NEVER;
}

struct gpol_input world_input(const struct world *w)
{
	return (struct gpol_input){
		.now_ns = w->now_ns,
		.params = &w->params,
		.gpu = &w->gpu,
		.jobs = w->jobs,
		.n = w->n,
	};
}

void world_pass(struct world *w, uint64_t longest_ns)
{
	uint64_t ns = longest_ns;

	if (w->again_ns > w->now_ns && w->again_ns - w->now_ns < ns)
		ns = w->again_ns - w->now_ns;
	w->now_ns += ns;
	for (uint32_t i = 0; i < w->n; i++) {
		struct gpol_job *job = &w->jobs[i];

		w->on_ns[i] = job->held ? 0 : w->on_ns[i] + ns;
		w->waiting_ns[i] = job->held && job->has_work ? w->waiting_ns[i] + ns : 0;
		job->wanted_ns += job->has_work ? ns : 0;
		job->ran_ns += job->has_work && !job->held ? ns : 0;
	}
}

static void remove_job(struct world *w, uint32_t i)
{
	w->n--;
	memmove(&w->jobs[i], &w->jobs[i + 1], (w->n - i) * sizeof(w->jobs[0]));
	memmove(&w->waiting_ns[i], &w->waiting_ns[i + 1], (w->n - i) * sizeof(uint64_t));
	memmove(&w->on_ns[i], &w->on_ns[i + 1], (w->n - i) * sizeof(uint64_t));
}

void world_happen(struct world *w)
{
	uint32_t i = (uint32_t)world_random(w, w->n);
	struct gpol_job *job = &w->jobs[i];
	uint64_t what = world_random(w, 40);

	if (job->class == JOB_OFFLINE && w->rules.steady)
		return;
	if (what == 0 && w->n > 1) {
		remove_job(w, i);
	} else if (what < 4 && job->class == JOB_ONLINE) {
		job->announced = !job->announced;
	} else if (what < 20) {
		job->has_work = !job->has_work;
		job->work_since_ns = w->now_ns;
		job->announced = false;
		w->waiting_ns[i] = 0;
	}
}

void world_ask(struct world *w)
{
	struct gpol_input in = world_input(w);

	if (w->ops->observe)
		w->ops->observe(w->state, &in);
	w->again_ns = w->ops->decide(w->state, &in, w->verdicts);
}

void world_obey(struct world *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct gpol_job *job = &w->jobs[i];

		if (job->held == w->verdicts[i].hold || !job->preemptible ||
		    (w->rules.disobedient && world_random(w, 4) == 0))
			continue;
		job->held = w->verdicts[i].hold;
		job->held_since_ns = w->now_ns;
		w->on_ns[i] = 0;
		w->waiting_ns[i] = 0;
	}
}

bool world_is_victim(const struct world *w, const struct gpol_job *job)
{
	struct gpol_input in = world_input(w);

	return job->class == JOB_OFFLINE && job->preemptible && gpol_needs_gpu(job, &in);
}

void world_check_at(const struct world *w, bool what, const char *text, const char *file, int line)
{
	if (what)
		return;
	print_message("# policy %s, seed %" PRIu64 ", at %" PRIu64 " ns: not so: %s\n",
		      w->ops->name, w->seed, w->now_ns, text);
	print_message("# again with: %s %" PRIu64 "\n", program, w->seed);
	_fail(file, line);
}

void world_seeds(uint64_t n, void (*test)(uint64_t seed))
{
	if (only_seed)
		test(only_seed);
	else
		for (uint64_t seed = 1; seed <= n; seed++)
			test(seed);
}

void world_arguments(int argc, char **argv)
{
	program = argv[0];
	only_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
}
