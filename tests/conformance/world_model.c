/* SPDX-License-Identifier: MIT */
/* The world of the software device: processes are entries of its tables. */
#include <errno.h>
#include <string.h>

#include "gpu/model/model.h"
#include "tests/conformance/world.h"

#define FIRST_PID 2001
#define THREAD_STEP 500 /* from a pid to the id of its other thread */

struct model_world {
	struct model_chip chip;
	uint32_t n_gpus;
	bool old_rule;
	struct model *m;
	pid_t next_pid;
};

static struct model *model_of(struct world *w)
{
	struct model_world *d = w->data;

	return d->m;
}

static struct model_task task_of(struct who who)
{
	return (struct model_task){ who.actor->pid, who.actor->tids[who.thread] };
}

static int start(struct world *w)
{
	struct model_world *d = w->data;
	struct model_config config = {
		.chip = &d->chip,
		.n_gpus = d->n_gpus,
		.no_debugger_clause = d->old_rule,
	};

	d->next_pid = FIRST_PID;
	return model_new(&config, &d->m);
}

static void stop(struct world *w)
{
	struct model_world *d = w->data;

	model_free(d->m);
	d->m = NULL;
}

static void number(struct model_world *d, struct actor *a)
{
	a->pid = d->next_pid++;
	a->tids[0] = a->pid;
	a->tids[1] = a->pid + THREAD_STEP;
}

static int spawn(struct world *w, struct actor *a)
{
	struct model_proc_spec spec = { .uid = a->uid, .comm = "conformance" };

	number(w->data, a);
	spec.pid = a->pid;
	return model_proc_start(model_of(w), &spec);
}

static int fork_actor(struct world *w, struct actor *parent, struct actor *child)
{
	child->uid = parent->uid;
	return spawn(w, child);
}

static int exec_actor(struct world *w, struct actor *a)
{
	return model_proc_exec(model_of(w), a->pid);
}

static void kill_actor(struct world *w, struct actor *a)
{
	model_proc_exit(model_of(w), a->pid);
}

static void end_thread(struct world *w, struct who who)
{
	model_thread_exit(model_of(w), task_of(who));
}

static int seize(struct world *w, struct who by, struct actor *a)
{
	return model_ptrace_seize(model_of(w), task_of(by), a->pid);
}

static int detach(struct world *w, struct who by, struct actor *a)
{
	return model_ptrace_detach(model_of(w), task_of(by), a->pid);
}

static int open_kfd(struct world *w, struct who who)
{
	return model_kfd_open(model_of(w), task_of(who));
}

static int run_ioctl(struct world *w, struct who who, struct actor *owner, unsigned long request,
		     void *arg)
{
	int r = model_ioctl(model_of(w), task_of(who), owner->pid, request, arg);

	return r == MODEL_BLOCKED ? BLOCKED : r;
}

static int result(struct world *w, struct who who)
{
	int r;

	return model_blocked_result(model_of(w), task_of(who), &r) ? r : BLOCKED;
}

static void signal_thread(struct world *w, struct who who)
{
	model_signal(model_of(w), task_of(who));
}

static int acquire_vm(struct world *w, struct actor *a, uint32_t gpu)
{
	return model_vm_acquire(model_of(w), a->pid, gpu);
}

/* What a process has all GPUs see. */
static uint64_t map(struct world *w, struct actor *a, uint32_t gpu, size_t bytes)
{
	(void)gpu;
	return model_mem_map(model_of(w), a->pid, bytes);
}

static int peek(struct world *w, struct actor *a, uint64_t va, void *buf, size_t len)
{
	return model_mem_read(model_of(w), a->pid, va, buf, len);
}

static int poke(struct world *w, struct actor *a, uint64_t va, const void *buf, size_t len)
{
	return model_mem_write(model_of(w), a->pid, va, buf, len);
}

static int read_file(struct world *w, enum gkfd_tree tree, const char *path, char **ret_text)
{
	size_t len;

	return model_read(model_of(w), tree, path, false, ret_text, &len);
}

static int list_dir(struct world *w, enum gkfd_tree tree, const char *path, char **ret_names)
{
	size_t len;

	return model_read(model_of(w), tree, path, true, ret_names, &len);
}

static void scheduler_work(struct world *w, uint32_t gpu, struct scheduler_work *ret)
{
	struct model_gpu_stats stats;

	model_gpu_stats(model_of(w), gpu, &stats);
	*ret = (struct scheduler_work){
		.unmaps = (uint32_t)stats.preemptions,
		.adds = (uint32_t)stats.maps,
		.removes = (uint32_t)stats.unmaps,
	};
}

static void submit(struct world *w, struct actor *a, const struct kfd_ioctl_create_queue_args *q,
		   uint32_t n)
{
	struct model_work work = {
		.workgroups = 1,
		.wg_ns = WORK_MS * NSEC_PER_MSEC,
		.wg_per_cu = 1,
		.barrier = true,
	};

	for (uint32_t i = 0; i < n; i++)
		if (model_submit(model_of(w), a->pid, q->queue_id, &work, NULL) < 0)
			broken("%s: no room in the ring", w->case_name);
}

static void pass(struct world *w, uint32_t ms)
{
	model_advance(model_of(w), ms * NSEC_PER_MSEC);
}

static void break_gpu(struct world *w, enum world_fault fault, struct actor *a, uint32_t id)
{
	struct model_fault f = {
		.kind = fault == FAULT_DEAD_SCHEDULER ? MODEL_FAULT_DEAD_SCHEDULER :
							MODEL_FAULT_STUCK_QUEUE,
		.pid = a->pid,
		.queue_id = id,
		.resettable = fault == FAULT_RESETTABLE_QUEUE,
	};

	model_fault_set(model_of(w), &f);
}

/* It came with the call that asked for it. */
static void await_reset(struct world *w)
{
	struct model_gpu_stats stats;

	model_gpu_stats(model_of(w), 0, &stats);
	if (!stats.resets)
		broken("%s: the GPU is not reset", w->case_name);
}

static void free_world(struct world *w)
{
	free(w->data);
}

static const struct world_ops model_ops = {
	.name = "model",
	.start = start,
	.stop = stop,
	.spawn = spawn,
	.fork = fork_actor,
	.exec = exec_actor,
	.kill = kill_actor,
	.end_thread = end_thread,
	.seize = seize,
	.detach = detach,
	.open = open_kfd,
	.ioctl = run_ioctl,
	.result = result,
	.signal = signal_thread,
	.acquire_vm = acquire_vm,
	.map = map,
	.peek = peek,
	.poke = poke,
	.read_file = read_file,
	.list_dir = list_dir,
	.scheduler_work = scheduler_work,
	.submit = submit,
	.pass = pass,
	.break_gpu = break_gpu,
	.await_reset = await_reset,
	.free = free_world,
};

/* The chips of the comparison, as so many chips of the model with so many XCCs. */
static const struct {
	const char *name, *base;
	uint32_t n_xcc, n_gpus;
} chips[] = {
	{ "gfx900", "mi25", 1, 1 },	{ "gfx908", "mi100", 1, 1 },
	{ "gfx90a", "mi210", 1, 1 },	{ "gfx942x1", "mi308x", 1, 1 },
	{ "gfx942x4", "mi308x", 4, 1 }, { "gfx942x4-2gpu", "mi308x", 4, 2 },
	{ "gfx942x8", "mi300x", 8, 1 }, { "gfx1150", "gfx1150", 1, 1 },
	{ "gfx1200", "gfx1200", 1, 1 },
};

int world_model_open(struct world *w, const char *chip, bool old_rule)
{
	struct model_world *d;

	for (size_t i = 0; i < ARRAY_SIZE(chips); i++) {
		if (strcmp(chips[i].name, chip) || !model_chip_find(chips[i].base))
			continue;
		d = calloc(1, sizeof(*d));
		if (!d)
			return -ENOMEM;
		d->chip = *model_chip_find(chips[i].base);
		d->chip.n_xcc = chips[i].n_xcc;
		d->n_gpus = chips[i].n_gpus;
		d->old_rule = old_rule;
		w->data = d;
		w->ops = &model_ops;
		return 0;
	}
	return -EINVAL;
}
