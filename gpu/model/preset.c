/* SPDX-License-Identifier: MIT */
/* Populated models for people who have no GPU at hand. */
#include <errno.h>
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

struct preset {
	struct model_config config;
	uint32_t occupancy; /* percent */
	bool old_runtime;
};

static int fail(char **ret_why, const char *fmt, const char *what)
{
	if (asprintf(ret_why, fmt, what) < 0)
		return -ENOMEM;
	return -EINVAL;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	uint64_t n;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || n > max)
		return false;
	*ret = n;
	return true;
}

static int parse_option(struct preset *p, char *option, char **ret_why)
{
	char *value = strchr(option, '=');
	uint64_t n = 0;

	if (!value)
		return fail(ret_why, "'%s' is not of the form key=value", option);
	*value++ = '\0';
	if (!strcmp(option, "runtime")) {
		if (strcmp(value, "old") && strcmp(value, "new"))
			return fail(ret_why, "runtime is 'old' or 'new', not '%s'", value);
		p->old_runtime = !strcmp(value, "old");
	} else if (!strcmp(option, "gpus")) {
		if (!parse_number(value, MODEL_MAX_GPUS, &n) || !n)
			return fail(ret_why, "gpus is 1 to 8, not '%s'", value);
		p->config.n_gpus = (uint32_t)n;
	} else if (!strcmp(option, "occupancy")) {
		if (!parse_number(value, 100, &n))
			return fail(ret_why, "occupancy is 0 to 100 percent, not '%s'", value);
		p->occupancy = (uint32_t)n;
	} else if (!strcmp(option, "seed")) {
		if (!parse_number(value, UINT64_MAX, &p->config.seed))
			return fail(ret_why, "seed is a number, not '%s'", value);
	} else if (!strcmp(option, "kfd_minor")) {
		if (!parse_number(value, KFD_IOCTL_MINOR_VERSION, &n) || !n)
			return fail(ret_why, "kfd_minor is 1 to 17, not '%s'", value);
		p->config.kfd_minor = (uint32_t)n;
	} else if (!strcmp(option, "log")) {
		if (!parse_number(value, 1, &n))
			return fail(ret_why, "log is 0 or 1, not '%s'", value);
		p->config.log_packets = n;
	} else {
		return fail(ret_why,
			    "no option '%s' (gpus, occupancy, seed, kfd_minor, runtime, log)",
			    option);
	}
	return 0;
}

static int parse_spec(const char *spec, struct preset *p, char **ret_why)
{
	_cleanup_free_ char *copy = strdup(spec && *spec ? spec : "mi308x");
	char *rest = copy, *part;
	int r;

	if (!copy)
		return -ENOMEM;
	part = strsep(&rest, ",");
	p->config.chip = model_chip_find(part);
	if (!p->config.chip)
		return fail(ret_why, "no chip '%s' in the model", part);
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
	model_proc_find(m, spec->pid)->kproc->pdds[0].vram_bytes = vram_bytes;
	if (p->old_runtime || p->config.kfd_minor < 13)
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
	static const struct model_proc_spec train = {
		.pid = TRAIN_PID, .uid = 1000, .comm = "train", .cgroup = "/offline.slice",
	};
	static const struct model_proc_spec infer = {
		.pid = INFER_PID, .uid = 1000, .comm = "infer", .cgroup = "/online.slice",
	};
	static const struct model_proc_spec idle = {
		.pid = IDLE_PID, .uid = 1000, .comm = "idle",
	};
	int r;

	r = add_process(m, p, &train, 64 * GIB);
	if (r == 0)
		r = add_process(m, p, &infer, 16 * GIB);
	if (r == 0)
		r = add_process(m, p, &idle, 0);
	if (r == 0)
		r = add_queues(m, TRAIN_PID, TRAIN_QUEUES, TRAIN_PRIORITY);
	if (r == 0)
		r = add_queues(m, INFER_PID, INFER_QUEUES, INFER_PRIORITY);
	if (r == 0)
		r = add_history(m);
	if (r == 0)
		r = add_training(m, p->occupancy);
	return r;
}

int model_new_preset(const char *spec, struct model **ret, char **ret_why)
{
	_cleanup_(model_freep) struct model *m = NULL;
	struct preset p = {
		.config = { .n_gpus = 8, .kfd_minor = KFD_IOCTL_MINOR_VERSION },
		.occupancy = 100,
	};
	int r;

	r = parse_spec(spec, &p, ret_why);
	if (r < 0)
		return r;
	r = model_new(&p.config, &m);
	if (r < 0)
		return r;
	r = populate(m, &p);
	if (r < 0)
		return r;
	*ret = steal_ptr(&m);
	return 0;
}
