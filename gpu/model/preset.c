/* SPDX-License-Identifier: MIT */
/* Populated models for people who have no GPU at hand. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "gpu/model/driver.h"

#define TRAIN_PID 1001
#define INFER_PID 1002
#define IDLE_PID 1003
#define TRAIN_QUEUES 10u
#define INFER_QUEUES 2u
#define TRAIN_PRIORITY 0 /* HIP's low */
#define INFER_PRIORITY 11 /* HIP's high */
#define RING_PACKETS 64
#define WG_PER_CU 32u /* one wave each: cu_occupancy shows the true share */
#define WG_NS (200 * NSEC_PER_USEC)
#define WG_STEP_NS (7 * NSEC_PER_USEC) /* queues must not end their work in step */
#define GIB (1ull << 30)
#define MAX_US 1000000 /* of a cost */

struct preset {
	struct model_chip chip;
	uint64_t gpus, occupancy /* percent */, jobs, kfd_minor, log, scheduler;
	uint64_t seed; /* of nothing now: it may be said, and nothing is random */
	uint64_t old_runtime, save_in_host;
	uint64_t ext; /* enum model_ext_kind */
};

struct option {
	const char *key;
	uint64_t *value;
	uint64_t min, max, scale;
	const char *said; /* which words it may be; NULL: it is a number */
	const char *words[3]; /* that stand for 0, 1, 2 */
};

_printf_(2, 3) static int fail(char **ret_why, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(ret_why, fmt, ap);
	va_end(ap);
	return r < 0 ? -ENOMEM : -EINVAL;
}

static int parse_value(const struct option *o, const char *text, char **ret_why)
{
	uint64_t n;
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(o->words) && o->words[i]; i++) {
		if (!strcmp(text, o->words[i])) {
			*o->value = i;
			return 0;
		}
	}
	if (o->said)
		return fail(ret_why, "%s is %s, not '%s'", o->key, o->said, text);
	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno || *end || n < o->min || n > o->max)
		return fail(ret_why, "%s is %llu to %llu, not '%s'", o->key,
			    (unsigned long long)o->min, (unsigned long long)o->max, text);
	*o->value = n * o->scale;
	return 0;
}

static int parse_option(struct preset *p, char *option, char **ret_why)
{
	struct model_costs *costs = &p->chip.costs;
	const struct option options[] = {
		{ "gpus", &p->gpus, 1, MODEL_MAX_GPUS, 1 },
		{ "occupancy", &p->occupancy, 0, 100, 1 },
		{ "jobs", &p->jobs, 0, 1, 1 },
		{ "seed", &p->seed, 0, UINT64_MAX, 1 },
		{ "kfd_minor", &p->kfd_minor, 1, KFD_IOCTL_MINOR_VERSION, 1 },
		{ "runtime", &p->old_runtime, .said = "'new' or 'old'", .words = { "new", "old" } },
		{ "log", &p->log, 0, 1, 1 },
		{ "save_area", &p->save_in_host, .said = "'hbm' or 'host'",
		  .words = { "hbm", "host" } },
		{ "unmap_us", &costs->unmap_ns, 0, MAX_US, NSEC_PER_USEC },
		{ "map_us", &costs->map_ns, 0, MAX_US, NSEC_PER_USEC },
		{ "quantum_us", &costs->quantum_ns, 1, MAX_US, NSEC_PER_USEC },
		{ "ext", &p->ext, .said = "'0', '1' or 'victims'",
		  .words = { "0", "1", "victims" } },
		{ "scheduler", &p->scheduler, 0, 1, 1 },
	};
	char *value = strchr(option, '=');

	if (!value)
		return fail(ret_why, "'%s' is not of the form key=value", option);
	*value++ = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(option, options[i].key))
			return parse_value(&options[i], value, ret_why);
	return fail(ret_why,
		    "no option '%s' (gpus, occupancy, jobs, seed, kfd_minor, runtime, log, "
		    "save_area, unmap_us, map_us, quantum_us, ext, scheduler)",
		    option);
}

static int parse_spec(const char *spec, struct preset *p, char **ret_why)
{
	_cleanup_free_ char *copy = strdup(spec && *spec ? spec : "mi308x");
	const struct model_chip *chip;
	char *rest = copy, *part;
	int r;

	if (!copy)
		return -ENOMEM;
	part = strsep(&rest, ",");
	chip = model_chip_find(part);
	if (!chip)
		return fail(ret_why, "no chip '%s' in the model", part);
	p->chip = *chip;
	while ((part = strsep(&rest, ","))) {
		r = parse_option(p, part, ret_why);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_process(struct model *m, const struct preset *p,
		       const struct model_proc_spec *spec, uint64_t vram_bytes)
{
	struct model_task task = { .pid = spec->pid, .tid = spec->pid };
	int r;

	r = model_proc_start(m, spec);
	if (r < 0)
		return r;
	r = model_kfd_open(m, task);
	if (r < 0)
		return r;
	model_proc_find(m, spec->pid)->invented = true;
	model_proc_find(m, spec->pid)->kproc->pdds[0].vram_bytes = vram_bytes;
	if (p->old_runtime || p->kfd_minor < 13)
		return 0;
	return model_runtime_enable(m, spec->pid);
}

static int add_queues(struct model *m, pid_t pid, uint32_t n, uint32_t priority)
{
	struct model_queue_spec spec = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_packets = RING_PACKETS,
		.priority = priority,
	};
	uint32_t id;
	int r;

	for (uint32_t i = 0; i < n; i++) {
		r = model_queue_create(m, pid, &spec, &id);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A few requests, long answered. */
static int add_history(struct model *m)
{
	struct model_work work = {
		.workgroups = 16,
		.wg_ns = 20 * NSEC_PER_USEC,
		.wg_per_cu = 1,
		.signal = true,
	};
	int r;

	for (uint32_t id = 0; id < INFER_QUEUES; id++) {
		for (uint32_t i = 0; i < 8; i++) {
			r = model_submit(m, INFER_PID, id, &work, NULL);
			if (r < 0)
				return r;
		}
	}
	model_advance(m, NSEC_PER_MSEC);
	return 0;
}

/*
 * Each queue keeps its share of the room taken. With room to spare a barrier holds the next
 * packet back until the last is done; at full occupancy the backlog presses on.
 */
static int add_training(struct model *m, uint32_t occupancy)
{
	const struct model_chip *chip = m->config.chip;
	uint32_t room = chip->n_xcc * chip->cu_per_xcc * WG_PER_CU;
	struct model_work work = {
		.workgroups = (uint32_t)((uint64_t)room * occupancy / 100 / TRAIN_QUEUES),
		.wg_per_cu = WG_PER_CU,
		.barrier = occupancy < 100,
		.signal = true,
	};
	int r;

	if (!work.workgroups)
		return 0;
	for (uint32_t id = 0; id < TRAIN_QUEUES; id++) {
		work.wg_ns = WG_NS + id * WG_STEP_NS;
		r = model_loop(m, TRAIN_PID, id, &work, occupancy < 100 ? 2 : 4);
		if (r < 0)
			return r;
	}
	model_advance(m, NSEC_PER_MSEC);
	return 0;
}

static int populate(struct model *m, const struct preset *p)
{
	static const struct {
		struct model_proc_spec spec;
		uint64_t vram_bytes;
		uint32_t queues, priority;
	} jobs[] = {
		{ { TRAIN_PID, 1000, .comm = "train", .cgroup = "/offline.slice" },
		  64 * GIB,
		  TRAIN_QUEUES,
		  TRAIN_PRIORITY },
		{ { INFER_PID, 1000, .comm = "infer", .cgroup = "/online.slice" },
		  16 * GIB,
		  INFER_QUEUES,
		  INFER_PRIORITY },
		{ { IDLE_PID, 1000, .comm = "idle" }, 0, 0, 0 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(jobs); i++)
		r = add_process(m, p, &jobs[i].spec, jobs[i].vram_bytes);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(jobs); i++)
		r = add_queues(m, jobs[i].spec.pid, jobs[i].queues, jobs[i].priority);
	if (r == 0)
		r = add_history(m);
	if (r == 0)
		r = add_training(m, (uint32_t)p->occupancy);
	return r;
}

static int make(const char *spec, uint64_t now_ns, bool jobs, struct model **ret, char **ret_why)
{
	_cleanup_(model_freep) struct model *m = NULL;
	struct preset p = {
		.gpus = 8,
		.kfd_minor = KFD_IOCTL_MINOR_VERSION,
		.occupancy = 100,
		.jobs = jobs,
	};
	struct model_config config = { .chip = &p.chip };
	int r;

	r = parse_spec(spec, &p, ret_why);
	if (r < 0)
		return r;
	if (p.scheduler && !p.ext)
		return fail(ret_why, "the scheduler is the extension's: scheduler=1 needs ext=1");
	p.chip.save_in_host = p.save_in_host;
	config.n_gpus = (uint32_t)p.gpus;
	config.kfd_minor = (uint32_t)p.kfd_minor;
	config.log_packets = p.log;
	config.ext = (enum model_ext_kind)p.ext;
	r = model_new(&config, &m);
	if (r < 0)
		return r;
	timeline_run(&m->time, now_ns);
	if (p.scheduler)
		model_ext_scheduler_on(m);
	if (p.jobs) {
		r = populate(m, &p);
		if (r < 0)
			return r;
	}
	*ret = steal_ptr(&m);
	return 0;
}

int model_new_preset(const char *spec, struct model **ret, char **ret_why)
{
	return make(spec, 0, true, ret, ret_why);
}

int model_new_empty(const char *spec, uint64_t now_ns, struct model **ret, char **ret_why)
{
	int r = make(spec, now_ns, false, ret, ret_why);

	/* Not of the preset's jobs: they run for ever, and nobody drops their records. */
	if (r == 0)
		(*ret)->config.log_packets = true;
	return r;
}
