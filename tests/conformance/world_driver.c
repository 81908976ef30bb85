/* SPDX-License-Identifier: MIT */
/*
 * The world of the real driver: an actor is a child of ours that serves one channel per thread.
 * What calls point to lies in the arena, which all of them have at the same address.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "abi/aql.h"
#include "abi/kfd_memory.h"
#include "tests/conformance/actor.h"
#include "tests/conformance/kfdsim.h"

#define STEP_MS 2
#define DRIVER_STEP_MS 1
#define PATIENCE_MS 60000 /* a call that neither returns nor sleeps for so long is a fault */
#define MAX_PACKETS 64u
#define ASLEEP_STEPS 3 /* found sleeping so often in a row, it will not return by itself */
#define READY_PROCESSES 2 /* made while the driver lets go of those of the last case */

struct process {
	pid_t pid;
	int slot; /* of its channels */
	bool busy[ACTOR_THREADS];
	int kfd, render[WORLD_GPUS];
	struct actor *parent; /* whose descriptors it inherited */
	struct who tracer;
};

struct driver_world {
	void *files; /* a transport's, for its file readers */
	uint32_t render_minors[WORLD_GPUS];
	bool slots[ACTOR_SLOTS]; /* that are taken */
	struct process *ready[READY_PROCESSES]; /* the oldest first: pids rise */
	size_t n_ready;
	int log; /* of the kernel, since GPU 0 was broken */
};

/* ---- orders ---- */

static struct channel *channel_of(struct who who)
{
	return actor_channel(who.actor->process->slot, who.thread);
}

static bool file_begins(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[256] = "";

	return f && fgets(line, sizeof(line), f) && !strncmp(line, text, strlen(text));
}

/* In ioctl(2), and waiting for what only a signal or another process brings. */
static bool asleep_in_ioctl(struct who who)
{
	pid_t pid = who.actor->pid, tid = who.actor->tids[who.thread];
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], call[16], state = 'X';

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || strchr("XZ", state))
		broken("%s is gone", who.actor->name);
	if (state != 'S')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	snprintf(call, sizeof(call), "%d ", SYS_ioctl);
	return file_begins(path, call);
}

/* The only call that sleeps and comes back by itself. */
static bool has_timeout(const struct world *w, const struct order *o)
{
	const struct kfd_ioctl_wait_events_args *args = (const void *)(uintptr_t)o->arg;

	return o->kind == ORDER_IOCTL && o->request == AMDKFD_IOC_WAIT_EVENTS &&
	       in_arena(w, args) && args->timeout != UINT32_MAX;
}

static int64_t await(struct who who)
{
	struct process *p = who.actor->process;
	struct channel *c = channel_of(who);
	bool returns = has_timeout(who.actor->w, &c->order);
	int asleep = 0;

	for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
		if (channel_await(c, TURN_DIRECTOR, STEP_MS)) {
			p->busy[who.thread] = false;
			return c->answer;
		}
		asleep = asleep_in_ioctl(who) ? asleep + 1 : 0;
		if (asleep >= ASLEEP_STEPS && !returns) {
			p->busy[who.thread] = true;
			return BLOCKED;
		}
	}
	broken("%s: an order to %s takes too long", who.actor->w->case_name, who.actor->name);
}

static void tell(struct who who, const struct order *o)
{
	struct channel *c = channel_of(who);

	c->order = *o;
	channel_pass(c, TURN_ACTOR);
}

static int64_t order(struct who who, const struct order *o)
{
	if (!who.actor->alive || who.actor->process->busy[who.thread])
		broken("%s: %s cannot take orders", who.actor->w->case_name, who.actor->name);
	tell(who, o);
	return await(who);
}

/* A thread that is free to do something for its process. */
static struct who helper(struct actor *a)
{
	return (struct who){ a, a->process->busy[0] ? 1 : 0 };
}

static void hear_tids(struct actor *a)
{
	for (int i = 0; i < ACTOR_THREADS; i++) {
		struct channel *c = channel_of((struct who){ a, i });

		if (!channel_await(c, TURN_DIRECTOR, PATIENCE_MS))
			broken("%s does not start", a->name);
		a->tids[i] = (pid_t)c->answer;
	}
}

/* ---- processes ---- */

static void reset_channels(int slot)
{
	for (int i = 0; i < ACTOR_THREADS; i++)
		channel_reset(actor_channel(slot, i));
}

static int take_slot(struct driver_world *d)
{
	for (size_t i = 0; i < ACTOR_SLOTS; i++) {
		if (d->slots[i])
			continue;
		d->slots[i] = true;
		reset_channels((int)i);
		return (int)i;
	}
	broken("too many processes");
}

static struct process *new_process(struct driver_world *d)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		broken("out of memory");
	p->slot = take_slot(d);
	p->kfd = -1;
	memset(p->render, 0xff, sizeof(p->render));
	return p;
}

static struct process *start_process(struct driver_world *d)
{
	struct process *p = new_process(d);

	p->pid = fork();
	if (p->pid < 0)
		broken("no process: %s", strerror(errno));
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		actor_serve(p->slot);
	}
	return p;
}

static void make_ready(struct driver_world *d)
{
	while (d->n_ready < READY_PROCESSES)
		d->ready[d->n_ready++] = start_process(d);
}

static struct process *take_ready(struct driver_world *d)
{
	struct process *p = d->ready[0];

	if (!d->n_ready)
		return start_process(d);
	d->n_ready--;
	memmove(d->ready, d->ready + 1, d->n_ready * sizeof(d->ready[0]));
	return p;
}

static int spawn(struct world *w, struct actor *a)
{
	struct order o = { .kind = ORDER_BECOME, .arg = a->uid };

	a->process = take_ready(w->data);
	a->pid = a->process->pid;
	hear_tids(a);
	if (!a->uid)
		return 0;
	tell((struct who){ a, 0 }, &o);
	return (int)await((struct who){ a, 0 });
}

static int fork_actor(struct world *w, struct actor *parent, struct actor *child)
{
	struct order o = { .kind = ORDER_FORK };
	int64_t pid;

	child->process = new_process(w->data);
	child->process->parent = parent;
	o.fd = child->process->slot;
	pid = order(helper(parent), &o);
	if (pid < 0)
		return (int)pid;
	child->pid = child->process->pid = (pid_t)pid;
	hear_tids(child);
	return 0;
}

static int exec_actor(struct world *w, struct actor *a)
{
	struct order o = { .kind = ORDER_EXEC, .fd = w->arena_fd };

	/* Not the first thread's: it may only now come to wait, and must find the order there. */
	channel_reset(actor_channel(a->process->slot, 1));
	tell((struct who){ a, 0 }, &o);
	a->process->kfd = -1;
	memset(a->process->render, 0xff, sizeof(a->process->render));
	a->process->busy[0] = a->process->busy[1] = false;
	hear_tids(a);
	return 0;
}

/* The driver lets go of a process in a work item; its directory is the last thing to go. */
static void wait_for_driver(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", pid);
	for (int ms = 0; ms < PATIENCE_MS; ms += DRIVER_STEP_MS) {
		if (access(path, F_OK) < 0)
			return;
		poll(NULL, 0, DRIVER_STEP_MS);
	}
	broken("the driver keeps process %d", pid);
}

static void free_process(struct actor *a)
{
	struct driver_world *d = a->w->data;

	d->slots[a->process->slot] = false;
	free(a->process);
	a->process = NULL;
}

static void untrace(struct world *w, const struct actor *tracer)
{
	for (size_t i = 0; i < w->n_actors; i++)
		if (w->actors[i].process && w->actors[i].process->tracer.actor == tracer)
			w->actors[i].process->tracer.actor = NULL;
}

/* A child that inherited the descriptor keeps what the driver has of its parent. */
static bool outlived(const struct world *w, const struct actor *parent)
{
	for (size_t i = 0; i < w->n_actors; i++)
		if (w->actors[i].alive && w->actors[i].process->parent == parent)
			return true;
	return false;
}

/* Who traces it hears of its end first, then its parent. */
static void reap(struct actor *a)
{
	struct who tracer = a->process->tracer;
	struct actor *parent = a->process->parent;
	struct order o = { .kind = ORDER_REAP, .pid = a->pid };

	if (tracer.actor && !tracer.actor->process->busy[tracer.thread])
		order(tracer, &o);
	if (parent && parent->alive)
		order(helper(parent), &o);
	else if (waitpid(a->pid, NULL, __WALL) != a->pid)
		broken("%s does not die: %s", a->name, strerror(errno));
}

static void kill_actor(struct world *w, struct actor *a)
{
	kill(a->pid, SIGKILL);
	reap(a);
	if (!outlived(w, a))
		wait_for_driver(a->pid);
	untrace(w, a);
	free_process(a);
}

static void end_thread(struct world *w, struct who who)
{
	struct order o = { .kind = ORDER_END_THREAD };
	char path[64];

	tell(who, &o);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", who.actor->pid,
		 who.actor->tids[who.thread]);
	for (int ms = 0; ms < PATIENCE_MS && access(path, F_OK) == 0; ms += DRIVER_STEP_MS)
		poll(NULL, 0, DRIVER_STEP_MS);
	for (size_t i = 0; i < w->n_actors; i++) {
		struct process *q = w->actors[i].process;

		if (q && q->tracer.actor == who.actor && q->tracer.thread == who.thread)
			q->tracer.actor = NULL;
	}
}

static int start(struct world *w)
{
	(void)w;
	return 0;
}

/*
 * All at once, which is what most of the time at the end of a case goes into: each waits for a
 * grace period that goes by the clock, and while they do those of the next case are made.
 */
static void stop(struct world *w)
{
	for (size_t i = 0; i < w->n_actors; i++)
		if (w->actors[i].alive)
			kill(w->actors[i].pid, SIGKILL);
	make_ready(w->data);
	for (size_t i = 0; i < w->n_actors; i++) {
		struct actor *a = &w->actors[i];

		if (!a->alive)
			continue;
		if (waitpid(a->pid, NULL, __WALL) != a->pid)
			broken("%s does not die: %s", a->name, strerror(errno));
		free_process(a);
		a->alive = false;
	}
	for (size_t i = 0; i < w->n_actors; i++)
		wait_for_driver(w->actors[i].pid);
}

/* ---- tracing ---- */

static int seize(struct world *w, struct who by, struct actor *a)
{
	struct order o = { .kind = ORDER_SEIZE, .pid = a->pid };
	int r = (int)order(by, &o);

	(void)w;
	if (r == 0)
		a->process->tracer = by;
	return r;
}

static int detach(struct world *w, struct who by, struct actor *a)
{
	struct order o = { .kind = ORDER_DETACH, .pid = a->pid };
	int r = (int)order(by, &o);

	(void)w;
	if (r == 0)
		a->process->tracer.actor = NULL;
	return r;
}

static void signal_thread(struct world *w, struct who who)
{
	struct who tracer = who.actor->process->tracer;
	struct order o = { .kind = ORDER_PASS_SIGNAL, .pid = who.actor->pid };

	(void)w;
	if (syscall(SYS_tgkill, who.actor->pid, who.actor->tids[who.thread], SIGUSR1) < 0)
		broken("cannot signal %s: %s", who.actor->name, strerror(errno));
	if (tracer.actor && who.thread == 0)
		order(tracer, &o);
}

/* ---- the driver ---- */

static int open_file(struct who who, const char *path)
{
	size_t len = strlen(path) + 1;
	char *name = arena(who.actor->w, len);
	struct order o = { .kind = ORDER_OPEN, .arg = (uintptr_t)name };

	memcpy(name, path, len);
	return (int)order(who, &o);
}

static int open_kfd(struct world *w, struct who who)
{
	int fd = open_file(who, "/dev/kfd");

	(void)w;
	if (fd < 0)
		return fd;
	who.actor->process->kfd = fd;
	return 0;
}

static int run_ioctl(struct world *w, struct who who, struct actor *owner, unsigned long request,
		     void *arg)
{
	bool has_it = owner == who.actor || owner == who.actor->process->parent;
	struct order o = {
		.kind = ORDER_IOCTL,
		.fd = owner->process->kfd,
		.pid = has_it ? 0 : owner->pid,
		.request = request,
		.arg = (uintptr_t)arg,
	};

	(void)w;
	return (int)order(who, &o);
}

static int result(struct world *w, struct who who)
{
	(void)w;
	return who.actor->process->busy[who.thread] ? (int)await(who) : -EINVAL;
}

/* ---- memory ---- */

static int acquire_vm(struct world *w, struct actor *a, uint32_t gpu)
{
	struct driver_world *d = w->data;
	struct kfd_ioctl_acquire_vm_args *args = arena(w, sizeof(*args));
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", d->render_minors[gpu]);
	fd = open_file(helper(a), path);
	if (fd < 0)
		return fd;
	a->process->render[gpu] = fd;
	*args = (struct kfd_ioctl_acquire_vm_args){ (uint32_t)fd, w->gpu_ids[gpu] };
	return run_ioctl(w, helper(a), a, AMDKFD_IOC_ACQUIRE_VM, args);
}

static uint64_t map(struct world *w, struct actor *a, uint32_t gpu, size_t bytes)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *args = arena(w, sizeof(*args));
	struct order o = {
		.kind = ORDER_MAP,
		.fd = a->process->kfd,
		.fd2 = a->process->render[gpu],
		.arg = (uintptr_t)args,
		.len = (bytes + 4095) & ~(size_t)4095,
	};
	int64_t at;

	*args = (struct kfd_ioctl_alloc_memory_of_gpu_args){
		.size = o.len,
		.gpu_id = w->gpu_ids[gpu],
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	at = order(helper(a), &o);
	return at < 0 ? 0 : (uint64_t)at;
}

static int peek(struct world *w, struct actor *a, uint64_t va, void *buf, size_t len)
{
	void *copy = arena(w, len);
	struct order o = { .kind = ORDER_PEEK, .arg = (uintptr_t)copy, .va = va, .len = len };
	int r = (int)order(helper(a), &o);

	memcpy(buf, copy, len);
	return r;
}

static int poke(struct world *w, struct actor *a, uint64_t va, const void *buf, size_t len)
{
	void *copy = arena(w, len);
	struct order o = { .kind = ORDER_POKE, .arg = (uintptr_t)copy, .va = va, .len = len };

	memcpy(copy, buf, len);
	return (int)order(helper(a), &o);
}

/* ---- files ---- */

static int read_file(struct world *w, enum gkfd_tree tree, const char *path, char **ret_text)
{
	struct driver_world *d = w->data;
	size_t len;

	return gkfd_transport_syscall.read_file(d->files, tree, path, ret_text, &len);
}

static int list_dir(struct world *w, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct driver_world *d = w->data;

	return gkfd_transport_syscall.list_dir(d->files, tree, path, ret_names);
}

/* ---- work ---- */

/* By how much this guest is slower than usual: work and waiting for it take as much longer. */
static uint32_t slowness(void)
{
	const char *text = getenv("SLOWNESS");
	uint32_t value = text ? (uint32_t)strtoul(text, NULL, 10) : 1;

	return value ? value : 1;
}

static uint32_t ticks_of_work(void)
{
	uint32_t tick_us = kfdsim_parameter("tick_us");
	uint32_t work_us = WORK_MS * 1000 * slowness();

	return tick_us < work_us ? work_us / tick_us : 1;
}

/* At once, as far as the ring's end: each order takes its time. */
static void write_packets(struct world *w, struct actor *a,
			  const struct kfd_ioctl_create_queue_args *q, uint64_t index,
			  const struct aql_dispatch *packet, uint32_t n)
{
	struct aql_dispatch packets[MAX_PACKETS] = {0};
	uint32_t room = q->ring_size / (uint32_t)sizeof(*packet);
	uint32_t at = (uint32_t)(index % room), first = MIN(n, room - at);

	if (n > MAX_PACKETS || n > room)
		broken("%s: more packets than a ring holds", w->case_name);
	for (uint32_t i = 0; i < n; i++)
		packets[i] = *packet;
	poke(w, a, q->ring_base_address + at * sizeof(*packet), packets, first * sizeof(*packet));
	if (first < n)
		poke(w, a, q->ring_base_address, packets, (n - first) * sizeof(*packet));
}

static void submit(struct world *w, struct actor *a, const struct kfd_ioctl_create_queue_args *q,
		   uint32_t n)
{
	struct aql_dispatch packet = {
		.header = AQL_KERNEL_DISPATCH | AQL_BARRIER_BIT,
		.setup = 3,
		.workgroup_x = 1,
		.workgroup_y = 64,
		.workgroup_z = 1,
		.grid_x = ticks_of_work(),
		.grid_y = 64,
		.grid_z = 1,
	};
	struct order o = {
		.kind = ORDER_RING,
		.fd = a->process->kfd,
		.va = q->doorbell_offset,
	};
	uint64_t index;

	peek(w, a, q->write_pointer_address, &index, sizeof(index));
	write_packets(w, a, q, index, &packet, n);
	index += n;
	poke(w, a, q->write_pointer_address, &index, sizeof(index));
	o.arg = index;
	if (order(helper(a), &o) < 0)
		broken("%s: no doorbell", w->case_name);
}

static void pass(struct world *w, uint32_t ms)
{
	(void)w;
	poll(NULL, 0, (int)(ms * slowness()));
}

static void scheduler_work(struct world *w, uint32_t gpu, struct scheduler_work *ret)
{
	(void)w;
	kfdsim_scheduler_work(gpu, ret);
}

static void break_gpu(struct world *w, enum world_fault fault, struct actor *a, uint32_t id)
{
	struct driver_world *d = w->data;

	(void)a;
	(void)id;
	closep(&d->log);
	d->log = kfdsim_break(fault);
}

static void await_reset(struct world *w)
{
	struct driver_world *d = w->data;

	kfdsim_await_reset(d->log, PATIENCE_MS);
	closep(&d->log);
	d->log = -1;
}

static void free_world(struct world *w)
{
	struct driver_world *d = w->data;

	for (size_t i = 0; i < d->n_ready; i++) {
		kill(d->ready[i]->pid, SIGKILL);
		waitpid(d->ready[i]->pid, NULL, 0);
		free(d->ready[i]);
	}
	gkfd_transport_syscall.close(d->files);
	free(d);
}

static const struct world_ops driver_ops = {
	.name = "driver",
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

/* As udev says: ordinary users may open them. */
static int open_to_all(struct world *w)
{
	struct driver_world *d = w->data;

	if (chmod("/dev/kfd", 0666) < 0)
		return -errno;
	for (uint32_t gpu = 0; gpu < WORLD_GPUS; gpu++) {
		_cleanup_free_ char *text = NULL;
		const char *at, *key = "drm_render_minor ";
		char path[64];

		snprintf(path, sizeof(path), "topology/nodes/%u/properties", gpu + 1);
		if (read_file(w, GKFD_TREE_SYSFS, path, &text) < 0)
			return gpu ? 0 : -ENODEV;
		at = strstr(text, key);
		if (!at)
			return -ENODEV;
		d->render_minors[gpu] = (uint32_t)strtoul(at + strlen(key), NULL, 10);
		snprintf(path, sizeof(path), "/dev/dri/renderD%u", d->render_minors[gpu]);
		if (chmod(path, 0666) < 0)
			return -errno;
	}
	return 0;
}

int world_driver_open(struct world *w)
{
	struct driver_world *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->log = -1;
	d->files = gkfd_syscall_new(NULL);
	if (!d->files) {
		free(d);
		return -ENOMEM;
	}
	w->data = d;
	w->ops = &driver_ops;
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* forked actors outlive their parents */
	return open_to_all(w);
}
