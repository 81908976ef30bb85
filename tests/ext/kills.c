/* SPDX-License-Identifier: MIT */
/*
 * usage: extkills KILLS STOPS [SEED]
 *
 * A holder that takes all queues of all targets off and puts them on again is killed, or stopped,
 * at moments of all kinds: before a call, in the middle of it, while it holds, on its way back.
 * Each time every queue must go on with its packets within a second; one who is stopped keeps his
 * file, and it is the hold's own time that ends it. Prints
 *
 *     kills N inside N calls N maps N worst_ms N stops N stopped_inside N worst_stop_ms N late N
 *
 * inside: the driver said that queues were held, right before the signal; calls and maps: the
 * holder was in a call of that kind by its own account. Exit status 0 when nobody was late. As
 * root; $SLOWNESS stretches the times.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/kfd_gpreempt.h"
#include "tests/vm/mk.h"

#define DEVICE "/dev/" KFD_GPREEMPT_DEVICE
#define TARGETS 4u
#define QUEUES 2u /* of each */
#define MAX_GPUS 8u
#define HOLD_MS 10000u /* far too long */
#define STOP_HOLD_MS 500u
#define LIMIT_MS 1000u
#define PATIENCE_MS 30000u
#define LOOK_US 100u
#define LONGEST_US 6000u /* of a hold, and of a part of one */

enum phase { IDLE, CALLING, HOLDING, MAPPING };

struct shared {
	_Atomic enum phase phase;
	atomic_ulong done[TARGETS][QUEUES]; /* packets */
	atomic_uint ready;
	uint32_t gpu_ids[MAX_GPUS];
	unsigned int n_gpus;
	uint32_t hold_ms;
};

struct tally {
	unsigned long kills, inside, calls, maps, late;
	uint64_t worst_ms;
};

static struct shared *s;
static pid_t targets[TARGETS];
static int device;
static unsigned int seed, slowness = 1;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

static void pass_us(unsigned int us)
{
	struct timespec t = { .tv_nsec = us * 1000L };

	ppoll(NULL, 0, &t, NULL);
}

/* ---- who is held ---- */

_Noreturn static void target(unsigned int index)
{
	struct mk_queue qs[QUEUES];
	struct mk_gpu gpu;

	mk_gpu_open(&gpu, index % s->n_gpus);
	for (unsigned int i = 0; i < QUEUES; i++)
		mk_queue_create(&qs[i], &gpu, MK_AQL, 7);
	atomic_fetch_add(&s->ready, 1);
	for (;;) {
		for (unsigned int i = 0; i < QUEUES; i++) {
			while (mk_pending(&qs[i]) < 4)
				mk_submit(&qs[i], 2, 4);
			atomic_store(&s->done[index][i], qs[i].submitted - mk_pending(&qs[i]));
		}
		mk_wait(&gpu, 5);
	}
}

/* ---- who holds ---- */

static void call(int fd, unsigned long request, enum phase phase, uint32_t flags)
{
	struct kfd_gpreempt_entry es[TARGETS];
	struct kfd_gpreempt_batch b = {
		.entries = (uintptr_t)es,
		.n_unmap = phase == CALLING ? TARGETS : 0,
		.n_map = phase == CALLING ? 0 : TARGETS,
		.flags = flags,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = s->hold_ms,
	};

	memset(es, 0, sizeof(es));
	for (unsigned int i = 0; i < TARGETS; i++) {
		es[i].pid = (uint32_t)targets[i];
		es[i].queue_id = KFD_GPREEMPT_ALL_QUEUES;
		es[i].gpu_id = KFD_GPREEMPT_ANY_GPU;
	}
	atomic_store(&s->phase, phase);
	if (ioctl(fd, request, &b) < 0)
		mk_die("call %lx", request & 0xff);
}

_Noreturn static void holder(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		mk_die(DEVICE);
	for (;;) {
		call(fd, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, CALLING,
		     (below(3) ? 0 : KFD_GPREEMPT_VICTIMS_ONLY) |
			     (below(4) ? 0 : KFD_GPREEMPT_ASYNC));
		atomic_store(&s->phase, HOLDING);
		pass_us(LONGEST_US / 2 + below(LONGEST_US));
		call(fd, KFD_GPREEMPT_FAST_REMAP, MAPPING, 0);
		atomic_store(&s->phase, IDLE);
		pass_us(below(LONGEST_US / 4));
	}
}

/* ---- who strikes ---- */

static unsigned int count_held(void)
{
	unsigned int held = 0;

	for (unsigned int i = 0; i < s->n_gpus; i++) {
		struct kfd_gpreempt_hqd hqd = { .gpu_id = s->gpu_ids[i] };

		if (ioctl(device, KFD_GPREEMPT_GET_HQD_STATUS, &hqd))
			mk_die("GET_HQD_STATUS");
		if (hqd.active != hqd.active_sum) {
			errno = EIO;
			mk_die("%u active, counted %u", hqd.active_sum, hqd.active);
		}
		held += hqd.held;
	}
	return held;
}

/* Of eight: five while it holds, one in each kind of call, one at any time. */
static void await_moment(unsigned int round)
{
	static const enum phase wanted[] = { HOLDING, HOLDING, CALLING, HOLDING,
					     HOLDING, MAPPING, HOLDING, IDLE };
	enum phase phase = wanted[round % 8];
	uint64_t until = now_us() + PATIENCE_MS * 1000ull;

	if (phase == IDLE)
		pass_us(below(4 * LONGEST_US));
	while (phase != IDLE && atomic_load(&s->phase) != phase && now_us() < until)
		pass_us(LOOK_US);
	pass_us(below(phase == HOLDING ? LONGEST_US / 4 : LONGEST_US));
}

/* The driver answers when no call is going on, so it is not asked in the middle of one. */
static void note_moment(struct tally *t)
{
	enum phase phase = atomic_load(&s->phase);

	t->calls += phase == CALLING;
	t->maps += phase == MAPPING;
	if (phase == HOLDING || phase == IDLE)
		t->inside += count_held() > 0;
	t->kills++;
}

static bool all_go_on(unsigned long before[TARGETS][QUEUES])
{
	for (unsigned int i = 0; i < TARGETS; i++) {
		for (unsigned int q = 0; q < QUEUES; q++) {
			if (atomic_load(&s->done[i][q]) <= before[i][q])
				return false;
		}
	}
	return true;
}

/* Until nothing is held and, after that, each queue has done something. */
static uint64_t await_all(uint64_t began)
{
	unsigned long before[TARGETS][QUEUES];

	while (count_held() && now_us() - began < PATIENCE_MS * 1000ull)
		poll(NULL, 0, 1);
	for (unsigned int i = 0; i < TARGETS; i++) {
		for (unsigned int q = 0; q < QUEUES; q++)
			before[i][q] = atomic_load(&s->done[i][q]);
	}
	while (!all_go_on(before) && now_us() - began < PATIENCE_MS * 1000ull)
		poll(NULL, 0, 1);
	return (now_us() - began) / 1000;
}

static pid_t start(void (*child)(void), unsigned int index)
{
	pid_t pid = fork();

	if (pid < 0)
		mk_die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(device);
	seed += 1000 * (index + 1);
	if (child)
		child();
	target(index);
}

static void strike(struct tally *t, unsigned int round, int sig)
{
	pid_t pid;
	uint64_t began, ms;

	atomic_store(&s->phase, IDLE);
	pid = start(holder, round);
	await_moment(round);
	note_moment(t);
	began = now_us();
	kill(pid, sig);
	ms = await_all(began);
	if (ms > t->worst_ms)
		t->worst_ms = ms;
	if (ms > LIMIT_MS * slowness) {
		t->late++;
		printf("# round %u, signal %d: after %llu ms\n", round, sig,
		       (unsigned long long)ms);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	await_all(now_us());
}

static struct tally strike_often(unsigned int n, int sig, uint32_t hold_ms)
{
	struct tally t = { 0 };

	s->hold_ms = hold_ms;
	for (unsigned int i = 0; i < n; i++)
		strike(&t, i, sig);
	return t;
}

static void find_gpus(void)
{
	char path[128];
	uint32_t id;
	FILE *f;

	for (unsigned int node = 0; s->n_gpus < MAX_GPUS; node++) {
		snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/gpu_id", node);
		f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%u", &id) == 1 && id)
			s->gpu_ids[s->n_gpus++] = id;
		fclose(f);
	}
}

static void set_up(void)
{
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (s == MAP_FAILED || device < 0)
		mk_die(DEVICE);
	find_gpus();
	for (unsigned int i = 0; i < TARGETS; i++)
		targets[i] = start(NULL, i);
	while (atomic_load(&s->ready) < TARGETS)
		poll(NULL, 0, 5);
}

static unsigned int number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text && !*end)
		return (unsigned int)n;
	fprintf(stderr, "extkills: '%s' is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct tally killed, stopped;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: extkills KILLS STOPS [SEED]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 3 ? number(argv[3]) : 1;
	if (getenv("SLOWNESS"))
		slowness = number(getenv("SLOWNESS"));
	set_up();
	killed = strike_often(number(argv[1]), SIGKILL, HOLD_MS);
	stopped = strike_often(number(argv[2]), SIGSTOP, STOP_HOLD_MS);
	printf("kills %lu inside %lu calls %lu maps %lu worst_ms %llu stops %lu stopped_inside %lu "
	       "worst_stop_ms %llu late %lu\n",
	       killed.kills, killed.inside, killed.calls, killed.maps,
	       (unsigned long long)killed.worst_ms, stopped.kills, stopped.inside,
	       (unsigned long long)stopped.worst_ms, killed.late + stopped.late);
	for (unsigned int i = 0; i < TARGETS; i++)
		kill(targets[i], SIGKILL);
	for (unsigned int i = 0; i < TARGETS; i++)
		waitpid(targets[i], NULL, 0);
	return killed.late || stopped.late;
}
