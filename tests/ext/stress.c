/* SPDX-License-Identifier: MIT */
/*
 * usage: extstress [--lossy] SECONDS [SEED]
 *
 * For so long, on all GPUs: targets that create and destroy queues, fork, exec and are killed,
 * holders that take their queues off and are killed or stopped in the middle of it, debuggers, and
 * the scheduler in the driver, which is set anew all the time. At every moment the driver's count
 * of active queues must be the sum of them, and the module cannot be unloaded. Then no holder is
 * left and the scheduler is off: within a second nothing is held, and every target finishes what it
 * submitted. The scheduler is left on, with nothing to do.
 *
 * With --lossy GPUs die in between and are reset, and jobs are lost; nothing stays held then.
 *
 * Prints what was done, as "name N" pairs, and what was not as it must be. Exit status 0 when
 * nothing was. As root; $SLOWNESS stretches the times.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/ext/stress.h"

#define HOLDERS 4u
#define OWNER (STRESS_TARGETS + HOLDERS)
#define DEBUGGER (OWNER + 1)
#define CHILDREN (DEBUGGER + 1)
#define STROKE_MS 15 /* between what happens to somebody */
#define CHECK_MS 1
#define RELEASED_MS 1000
#define DRAIN_MS 20000
#define START_MS 30000
#define DEAD_MS 30000
#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define MAX_NODES 64
#define DEAD "/sys/kernel/debug/kfdsim/%u/dead"
#define ALIVE (-1)

struct director {
	struct world *w;
	int memory, device;
	unsigned int seed, slowness;
	pid_t children[CHILDREN]; /* targets, holders, the owner, a debugger */
	bool stopped[CHILDREN];
	int dead; /* GPU, or ALIVE */
	unsigned long kills, stops, debuggers, unloads, deaths;
	atomic_ulong checks;
};

uint64_t stress_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void find_gpus(struct world *w)
{
	char path[128];

	for (unsigned int node = 0; node < MAX_NODES && w->n_gpus < STRESS_MAX_GPUS; node++) {
		uint32_t *id = &w->gpu_ids[w->n_gpus];
		FILE *f;

		snprintf(path, sizeof(path), NODES "/%u/gpu_id", node);
		f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%u", id) == 1 && *id)
			w->n_gpus++;
		fclose(f);
	}
}

/* ---- looking ---- */

static struct kfd_gpreempt_hqd look(struct director *d, unsigned int gpu)
{
	struct kfd_gpreempt_hqd hqd = { .gpu_id = d->w->gpu_ids[gpu] };

	if (ioctl(d->device, KFD_GPREEMPT_GET_HQD_STATUS, &hqd))
		stress_broken(d->w, "GET_HQD_STATUS: %s", strerrorname_np(errno));
	if (hqd.active != hqd.active_sum)
		stress_broken(d->w, "GPU %u: %u active queues, counted %u", gpu, hqd.active_sum,
			      hqd.active);
	if (hqd.active + hqd.held > hqd.queues || hqd.active_compute > hqd.active)
		stress_broken(d->w, "GPU %u: of %u queues %u active (%u compute), %u held", gpu,
			      hqd.queues, hqd.active, hqd.active_compute, hqd.held);
	if (hqd.flags & KFD_GPREEMPT_HQD_HANG && !d->w->lossy)
		stress_broken(d->w, "GPU %u hangs", gpu);
	atomic_fetch_add(&d->checks, 1);
	return hqd;
}

static void *check(void *arg)
{
	struct director *d = arg;

	while (!atomic_load(&d->w->stop)) {
		for (unsigned int i = 0; i < d->w->n_gpus; i++)
			look(d, i);
		poll(NULL, 0, CHECK_MS);
	}
	return NULL;
}

/* ---- children ---- */

static void start(struct director *d, unsigned int i)
{
	unsigned int seed = (unsigned int)rand_r(&d->seed);

	d->stopped[i] = false;
	if (i < STRESS_TARGETS) {
		atomic_store(&d->w->targets[i].pid, 0);
		atomic_store(&d->w->targets[i].door, DOOR_OPEN);
	}
	d->children[i] = fork();
	if (d->children[i] < 0) {
		perror("fork");
		exit(1);
	}
	if (d->children[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(d->device);
	if (i < STRESS_TARGETS)
		stress_target(d->w, d->memory, i, seed);
	else if (i < OWNER)
		stress_holder(d->w, seed);
	else if (i == OWNER)
		stress_owner(d->w, seed);
	else
		stress_debugger(d->w, seed);
}

/* Which child of ours it was; others' children that we inherited are nobody. */
static unsigned int index_of(const struct director *d, pid_t pid)
{
	unsigned int i = 0;

	while (i < CHILDREN && d->children[i] != pid)
		i++;
	return i;
}

static void judge_end(struct director *d, unsigned int i, int status)
{
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || (d->w->lossy && i < STRESS_TARGETS)))
		return;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		stress_broken(d->w, "child %u ended with %#x", i, status);
}

/* Whoever has ended; as long as it goes on, another comes. */
static void reap(struct director *d, bool replace)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		unsigned int i = index_of(d, pid);

		if (i == CHILDREN)
			continue;
		judge_end(d, i, status);
		d->children[i] = 0;
		if (replace && i != DEBUGGER)
			start(d, i);
	}
}

/* In use as it is, and now more than ever. */
static void try_to_unload(struct director *d)
{
	if (!syscall(SYS_delete_module, "amdgpu", O_NONBLOCK))
		stress_broken(d->w, "the module was unloaded");
	else if (errno != EWOULDBLOCK)
		stress_broken(d->w, "delete_module: %s", strerrorname_np(errno));
	d->unloads++;
}

static void kill_target(struct director *d)
{
	unsigned int i = stress_below(&d->seed, STRESS_TARGETS);

	if (!stress_enter(d->w, i, DOOR_END))
		return;
	d->kills += !kill(d->children[i], SIGKILL);
	atomic_store(&d->w->targets[i].pid, 0);
}

static void kill_helper(struct director *d, unsigned int i)
{
	d->kills += !kill(d->children[i], SIGKILL);
}

static void stop_or_continue(struct director *d, unsigned int i)
{
	kill(d->children[i], d->stopped[i] ? SIGCONT : SIGSTOP);
	d->stops += !d->stopped[i];
	d->stopped[i] = !d->stopped[i];
}

static void debug(struct director *d)
{
	if (d->children[DEBUGGER] || d->w->lossy)
		return;
	start(d, DEBUGGER);
	d->debuggers++;
}

static void strike(struct director *d)
{
	unsigned int holder = STRESS_TARGETS + stress_below(&d->seed, HOLDERS);

	switch (stress_below(&d->seed, 20)) {
	case 0 ... 1:
		kill_target(d);
		break;
	case 2 ... 5:
		kill_helper(d, holder);
		break;
	case 6:
		kill_helper(d, OWNER);
		break;
	case 7 ... 9:
		stop_or_continue(d, holder);
		break;
	case 10 ... 13:
		debug(d);
		break;
	case 14:
		try_to_unload(d);
		break;
	default:
		break;
	}
}

/* So many targets have queues. */
static unsigned int working(struct world *w)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < STRESS_TARGETS; i++)
		n += atomic_load(&w->targets[i].pid) != 0;
	return n;
}

/* ---- GPUs that die ---- */

static void die(struct director *d)
{
	char path[64];
	FILE *f;

	d->dead = (int)stress_below(&d->seed, d->w->n_gpus);
	snprintf(path, sizeof(path), DEAD, (unsigned int)d->dead);
	f = fopen(path, "we");
	if (!f || fputs("Y", f) < 0 || fclose(f))
		stress_broken(d->w, "%s: %s", path, strerrorname_np(errno));
	d->deaths++;
}

/* It was noticed, and the GPU was reset. */
static bool lives_again(struct director *d)
{
	char path[64];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), DEAD, (unsigned int)d->dead);
	f = fopen(path, "re");
	if (!f)
		return false;
	c = getc(f);
	fclose(f);
	return c == 'N';
}

/* A reset leaves all processes evicted for ever, on all GPUs: others take their place. */
static void replace_targets(struct director *d)
{
	for (unsigned int i = 0; i < STRESS_TARGETS; i++) {
		atomic_store(&d->w->targets[i].pid, 0);
		if (d->children[i])
			kill(d->children[i], SIGKILL);
	}
}

/* One death at a time: when half of them work again, the next. */
static void let_die(struct director *d, bool again)
{
	if (d->dead == ALIVE && again && working(d->w) >= STRESS_TARGETS / 2) {
		die(d);
	} else if (d->dead != ALIVE && lives_again(d)) {
		d->dead = ALIVE;
		replace_targets(d);
	}
}

/* Where GPUs die, not before the last of them was reset and somebody new works. */
static bool is_over(struct director *d, uint64_t end)
{
	uint64_t now = stress_now_ms();

	if (now < end)
		return false;
	if (!d->w->lossy || (d->dead == ALIVE && working(d->w)))
		return true;
	if (now < end + (uint64_t)DEAD_MS * d->slowness)
		return false;
	stress_broken(d->w, "a GPU is dead for ever");
	return true;
}

static void direct(struct director *d, unsigned int seconds)
{
	uint64_t end = stress_now_ms() + seconds * 1000ull;

	while (working(d->w) < STRESS_TARGETS && stress_now_ms() < end + START_MS)
		poll(NULL, 0, CHECK_MS);
	for (unsigned int i = STRESS_TARGETS; i < DEBUGGER; i++)
		start(d, i);
	end = stress_now_ms() + seconds * 1000ull;
	while (!is_over(d, end)) {
		bool again = stress_now_ms() < end;

		reap(d, true);
		if (again)
			strike(d);
		if (d->w->lossy)
			let_die(d, again);
		poll(NULL, 0, (int)(STROKE_MS * d->slowness));
	}
}

/* ---- the end ---- */

static bool anybody(const struct director *d, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		if (d->children[i])
			return true;
	}
	return false;
}

static bool wait_for(struct director *d, unsigned int from, unsigned int to, uint64_t ms)
{
	uint64_t end = stress_now_ms() + ms;

	while (anybody(d, from, to) && stress_now_ms() < end) {
		reap(d, false);
		poll(NULL, 0, CHECK_MS);
	}
	return !anybody(d, from, to);
}

static bool is_free(struct director *d)
{
	for (unsigned int i = 0; i < d->w->n_gpus; i++) {
		struct kfd_gpreempt_hqd hqd = look(d, i);

		if (hqd.held || hqd.flags & KFD_GPREEMPT_HQD_STOPPED)
			return false;
	}
	return true;
}

static void set_scheduler(struct director *d, uint32_t flags)
{
	struct kfd_gpreempt_monitor m = { .gpu_id = KFD_GPREEMPT_ANY_GPU, .flags = flags };

	if (ioctl(d->device, KFD_GPREEMPT_SET_MONITOR, &m))
		stress_broken(d->w, "SET_MONITOR: %s", strerrorname_np(errno));
}

/* What targets hold of their own queues they do not hold for long. */
static uint64_t release_all(struct director *d)
{
	uint64_t began;

	atomic_store(&d->w->calm, true);
	for (unsigned int i = STRESS_TARGETS; i < CHILDREN; i++) {
		if (d->children[i])
			kill(d->children[i], SIGKILL);
	}
	began = stress_now_ms();
	if (!wait_for(d, STRESS_TARGETS, CHILDREN, 10000ull * d->slowness))
		stress_broken(d->w, "holders do not end");
	set_scheduler(d, 0);
	while (!is_free(d) && stress_now_ms() - began < 10000)
		poll(NULL, 0, CHECK_MS);
	if (stress_now_ms() - began > RELEASED_MS * d->slowness)
		stress_broken(d->w, "queues are held without holders");
	return stress_now_ms() - began;
}

static void finish(struct director *d)
{
	atomic_store(&d->w->stop, true);
	if (!wait_for(d, 0, STRESS_TARGETS, 3ull * DRAIN_MS * d->slowness))
		stress_broken(d->w, "targets do not end");
	for (unsigned int i = 0; i < d->w->n_gpus; i++) {
		uint64_t end = stress_now_ms() + DRAIN_MS;
		struct kfd_gpreempt_hqd hqd;

		do {
			hqd = look(d, i);
		} while ((hqd.queues || hqd.processes) && stress_now_ms() < end &&
			 poll(NULL, 0, CHECK_MS) == 0);
		if (hqd.queues || hqd.active || hqd.held)
			stress_broken(d->w, "GPU %u: %u queues are left, %u active", i, hqd.queues,
				      hqd.active);
	}
}

static void report(struct director *d, uint64_t released_ms)
{
	struct world *w = d->w;
	const struct {
		const char *name;
		unsigned long n;
	} said[] = {
		{ "gpus", w->n_gpus },	  { "checks", d->checks },
		{ "kills", d->kills },	  { "stopped", d->stops },
		{ "batches", w->batches },  { "entries", w->entries },
		{ "taken_off", w->taken_off }, { "tickets", w->tickets },
		{ "singles", w->singles },  { "brakes", w->stops },
		{ "binds", w->binds },	  { "looks", w->looks },
		{ "queues", w->queues },  { "forks", w->forks },
		{ "execs", w->execs },	  { "evictions", w->evictions },
		{ "sessions", w->sessions }, { "suspends", w->suspends },
		{ "own_holds", w->own_holds }, { "settings", w->settings },
		{ "classes", w->classes }, { "policies", w->policies },
		{ "reservations", w->reservations }, { "hints", w->hints },
		{ "events", w->events },  { "unloads", d->unloads },
		{ "deaths", d->deaths },  { "packets", w->packets },
		{ "right", w->right },	  { "released_ms", released_ms },
		{ "broken", w->broken },
	};

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		printf("%s%s %lu", i ? " " : "", said[i].name, said[i].n);
	putchar('\n');
}

static struct world *map_world(int memory)
{
	void *p = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static unsigned int number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text && !*end)
		return (unsigned int)n;
	fprintf(stderr, "extstress: '%s' is not a number\n", text);
	exit(2);
}

static int run(unsigned int seconds, unsigned int seed, bool lossy)
{
	const char *slowness = getenv("SLOWNESS");
	struct director d = {
		.memory = memfd_create("world", 0),
		.device = open(STRESS_DEVICE, O_RDWR | O_CLOEXEC),
		.seed = seed,
		.dead = ALIVE,
		.slowness = slowness ? number(slowness) : 1,
	};
	uint64_t released_ms;
	pthread_t checker;

	if (d.device < 0 || d.memory < 0 || ftruncate(d.memory, sizeof(struct world))) {
		perror(STRESS_DEVICE);
		return 1;
	}
	d.w = map_world(d.memory);
	d.w->lossy = lossy;
	find_gpus(d.w);
	atomic_store(&d.w->drain_ms, DRAIN_MS * d.slowness);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned int i = 0; i < STRESS_TARGETS; i++)
		start(&d, i);
	if (pthread_create(&checker, NULL, check, &d))
		return 1;
	direct(&d, seconds);
	released_ms = release_all(&d);
	finish(&d);
	pthread_join(checker, NULL);
	set_scheduler(&d, KFD_GPREEMPT_MONITOR_ON);
	report(&d, released_ms);
	return d.w->broken || !d.w->right;
}

int main(int argc, char **argv)
{
	bool lossy;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && !strcmp(argv[1], "--target"))
		stress_target(map_world((int)number(argv[2])), (int)number(argv[2]),
			      number(argv[3]), number(argv[4]));
	lossy = argc > 1 && !strcmp(argv[1], "--lossy");
	argc -= lossy;
	argv += lossy;
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: extstress [--lossy] SECONDS [SEED]\n");
		return 2;
	}
	return run(number(argv[1]), argc > 2 ? number(argv[2]) : 1, lossy);
}
