/* SPDX-License-Identifier: MIT */
#include "tests/core/engine_chaos.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t chaos_random(struct chaos *c, uint64_t below)
{
	return mix(c->random += 0x9e3779b97f4a7c15ull) % below;
}

static bool chance(struct chaos *c, uint64_t permille)
{
	return chaos_random(c, 1000) < permille;
}

/* ---- policies ---- */

/* Anything, but the same for the same question. */
static uint64_t mad(const void *state, const struct gpol_input *in, struct gpol_verdict *ret)
{
	uint64_t z = mix(in->now_ns);

	for (size_t i = 0; i < in->n; i++) {
		z = mix(z + i);
		ret[i].hold = z % 3;
		ret[i].because = (uint32_t)(z % 7 ? in->jobs[z % in->n].id : z >> 20);
	}
	return z % 5 ? in->now_ns + z % 5000000 : z;
}

static const struct gpol_ops mad_policy = { .name = "mad", .decide = mad };

static const struct gpol_ops *some_policy(struct chaos *c)
{
	switch (chaos_random(c, 8)) {
	case 0:
		return &gpol_none;
	case 1:
		return &gpol_share;
	case 2:
		return &gpol_rotate;
	case 3:
		return &gpol_deadline;
	case 4:
		return &mad_policy;
	case 5:
		return &rig_hold_all;
	default:
		return &gpol_priority;
	}
}

/* ---- the world ---- */

static void choose_config(struct chaos *c)
{
	static const uint32_t budgets[] = { 0, 3, 10, 100, 1000 };

	c->config = engine_config_default;
	c->config.policy = some_policy(c);
	c->config.hold_max_ns = MS * (20 + chaos_random(c, 300));
	c->config.min_run_ns = MS * chaos_random(c, 10);
	c->config.cycles_per_s = budgets[chaos_random(c, 5)];
	c->config.low_water = (uint32_t)chaos_random(c, 4);
	c->config.slot_turn_ns = MS * (1 + chaos_random(c, 50));
	c->config.idle_queue_ns = MS * chaos_random(c, 50);
	c->config.costs.counts_progress = !chance(c, 100);
	c->config.costs.disturbs_all = chance(c, 500);
}

void chaos_open(struct chaos *c, uint64_t seed)
{
	const struct engine_limits limits = {
		.gpus = CHAOS_GPUS,
		.jobs = CHAOS_JOBS,
		.queues = CHAOS_JOBS * CHAOS_QUEUES - 6,
	};
	static const uint32_t slots[] = { 0, 4, 10, 24 };

	memset(c, 0, sizeof(*c));
	c->seed = c->random = seed;
	c->now_ns = SEC;
	c->fails_permille = chance(c, 500) ? 0 : chaos_random(c, 50);
	c->lost_permille = chance(c, 700) ? 0 : chaos_random(c, 50);
	choose_config(c);
	c->memory = malloc(engine_bytes(&limits));
	assert_non_null(c->memory);
	c->e = engine_init(c->memory, &limits, &c->config);
	c->gpus = 1 + (uint32_t)chaos_random(c, CHAOS_GPUS);
	for (uint32_t i = 0; i < c->gpus; i++) {
		c->gpu[i].slots = slots[chaos_random(c, 4)];
		assert_int_equal(engine_add_gpu(c->e, i, c->gpu[i].slots), 0);
	}
}

void chaos_close(struct chaos *c)
{
	free(c->memory);
}

struct chaos_job *chaos_find(struct chaos *c, uint32_t id)
{
	for (int i = 0; i < CHAOS_JOBS; i++) {
		if (c->jobs[i].alive && c->jobs[i].id == id)
			return &c->jobs[i];
	}
	return NULL;
}

/* ---- what happens ---- */

static struct engine_job_config some_config(struct chaos *c)
{
	return (struct engine_job_config){
		.gpu = (uint32_t)chaos_random(c, c->gpus),
		.gang = chance(c, 300) ? 1 + (uint32_t)chaos_random(c, 2) : ENGINE_NO_GANG,
		.flags = (uint32_t)chaos_random(c, 16) |
			 (chance(c, 700) ? ENGINE_JOB_PREEMPTIBLE : 0),
		.class = chance(c, 300) ? JOB_ONLINE : JOB_OFFLINE,
		.priority = (uint8_t)chaos_random(c, 3),
		.weight = (uint32_t)chaos_random(c, 3),
		.min_permille = chance(c, 200) ? (uint32_t)chaos_random(c, 1200) : 0,
		.target_ns = chance(c, 300) ? chaos_random(c, 20 * MS) : 0,
		.wait_bound_ns = chance(c, 500) ? MS + chaos_random(c, 200 * MS) : 0,
	};
}

static void come(struct chaos *c, struct chaos_job *j)
{
	struct engine_job_config config = some_config(c);
	int id = engine_add_job(c->e, c->now_ns, &config);

	assert_true(id >= 0);
	*j = (struct chaos_job){ .alive = true, .id = (uint32_t)id, .config = config };
	j->n_queues = (uint32_t)chaos_random(c, CHAOS_QUEUES + 1);
	for (uint32_t i = 0; i < CHAOS_QUEUES; i++)
		j->queues[i] = (struct engine_sample){ .job = j->id, .queue = i * 7 };
}

static void change(struct chaos *c, struct chaos_job *j)
{
	struct engine_job_config config = some_config(c);

	config.gpu = j->config.gpu;
	assert_int_equal(engine_change_job(c->e, j->id, &config), 0);
	j->config = config;
	j->waits = false; /* where progress is not counted, the class says whether it has work */
}

static void happen_to(struct chaos *c, struct chaos_job *j)
{
	if (!j->alive) {
		if (chance(c, 100))
			come(c, j);
		return;
	}
	if (chance(c, 5)) {
		assert_int_equal(engine_remove_job(c->e, j->id), 0);
		j->alive = false;
	} else if (chance(c, 5)) {
		change(c, j);
	} else if (chance(c, 30)) {
		uint64_t for_ns = chance(c, 500) ? chaos_random(c, 20 * MS) : 0;
		int r = engine_hint(c->e, c->now_ns, j->id, c->now_ns + chaos_random(c, 5 * MS),
				    for_ns);

		assert_int_equal(r, j->config.class == JOB_ONLINE ? 0 : -EPERM);
	} else if (chance(c, 10)) {
		j->n_queues = (uint32_t)chaos_random(c, CHAOS_QUEUES + 1);
	}
}

static void write_counters(struct chaos *c, struct engine_sample *q)
{
	switch (chaos_random(c, 12)) {
	case 0:
		q->write += chaos_random(c, 5);
		break;
	case 1:
		q->read = q->write;
		break;
	case 2:
		q->read = q->write += chaos_random(c, 3);
		break;
	case 3:
		q->busy = chance(c, 200);
		break;
	case 4:
		if (chance(c, 50))
			q->write = mix(c->random);
		break;
	default:
		break;
	}
}

/* ---- reports ---- */

static int some_result(struct chaos *c)
{
	if (!chance(c, c->fails_permille))
		return 0;
	return chance(c, 300) ? -ESRCH : -EIO;
}

static void tell(struct chaos *c, struct chaos_job *j, struct chaos_ticket *t)
{
	int result = some_result(c);

	assert_int_equal(engine_report(c->e, c->now_ns, t->number, result, t->took_ns), 0);
	assert_int_equal(engine_report(c->e, c->now_ns, t->number, result, t->took_ns), -ENOENT);
	t->number = 0;
	j->gone |= result == -ESRCH;
	c->gpu[j->config.gpu].tripped |= result == -EIO;
	if (t == &j->resume && result != -EIO)
		j->suspend.number = 0;
	if (result == -ESRCH && !(t == &j->suspend && j->resume.number))
		j->held = false;
	if (t == &j->resume && result == -EIO)
		j->held = true;
	j->waits &= j->held;
}

static void tell_what_is_done(struct chaos *c, struct chaos_job *j)
{
	if (j->alive && j->suspend.number && j->suspend.comes_ns <= c->now_ns)
		tell(c, j, &j->suspend);
	if (j->alive && j->resume.number && j->resume.comes_ns <= c->now_ns)
		tell(c, j, &j->resume);
}

/* ---- one step ---- */

static void pass_time(struct chaos *c)
{
	uint64_t left_ns = c->step.wake_ns > c->now_ns ? c->step.wake_ns - c->now_ns : 0;

	if (chance(c, 500))
		c->now_ns += left_ns;
	else if (chance(c, 800))
		c->now_ns += chaos_random(c, left_ns + 1);
	else
		c->now_ns += left_ns + chaos_random(c, chance(c, 50) ? SEC : 30 * MS);
}

void chaos_go_on(struct chaos *c)
{
	static struct engine_sample samples[CHAOS_JOBS * CHAOS_QUEUES];
	size_t n = 0;

	pass_time(c);
	for (int i = 0; i < CHAOS_JOBS; i++)
		tell_what_is_done(c, &c->jobs[i]);
	for (int i = 0; i < CHAOS_JOBS; i++) {
		struct chaos_job *j = &c->jobs[i];

		happen_to(c, j);
		for (uint32_t q = 0; j->alive && q < j->n_queues; q++) {
			write_counters(c, &j->queues[q]);
			samples[n++] = j->queues[q];
		}
	}
	for (uint32_t i = 0; i < c->gpus; i++) {
		if (c->gpu[i].tripped && chance(c, 30)) {
			assert_int_equal(engine_rearm(c->e, i), 0);
			c->gpu[i].tripped = false;
		}
	}
	if (chance(c, 10)) {
		c->config.policy = some_policy(c);
		engine_configure(c->e, &c->config);
	}
	c->step = (struct engine_step){
		.now_ns = c->now_ns,
		.samples = samples,
		.n_samples = n,
		.complete = chance(c, 900),
		.actions = c->actions,
		.max = chance(c, 50) ? chaos_random(c, 4) : 64,
	};
	engine_step(c->e, &c->step);
}
