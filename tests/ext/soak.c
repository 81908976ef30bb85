/* SPDX-License-Identifier: MIT */
/*
 * usage: extsoak SECONDS [SEED]
 *
 * The scheduler in the driver, alone, among offline jobs each of which may wait for so long and no
 * longer: requests of an online one come at random, some longer than any of these bounds; others
 * are held by somebody else, killed and born again; the policy changes. Whoever waits is judged by
 * the software GPU's own account ("waits"): from when a queue's last work was done until some is
 * done again, and what is not over yet counts as far as it goes. Prints figures, and of each bound
 *
 *     # bound 100 ms: longest wait 112 ms, 321 periods with a wait of at least half of it
 *
 * Exit status 0 when no wait was longer than its bound and SLACK_MS, every bound was put to the
 * test, and all packets were done once and in order. As root. The time is the guest's, whose clock
 * must count its instructions: so that it does not idle, for then it has the host's, somebody who
 * gives way to everybody is always busy.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
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
#define WAITS "/sys/kernel/debug/kfdsim/0/waits"
#define SLACK_MS 40u
#define PERIOD_MS 500u
#define QUEUES 2u /* of a job */
#define DEPTH 4u
#define TICKS 15u /* of an offline packet */
#define REQUEST_TICKS 4u
#define WAVES 2u
#define WAIT_MS 10u
#define READY_MS 20000u
#define DRAIN_MS 20000u
#define LONGEST_HOLD_MS 60u

static const uint32_t bounds_ms[] = { 100, 200, 400, 900, 1500 };
#define BOUNDED (sizeof(bounds_ms) / sizeof(bounds_ms[0]))

enum { HELD = BOUNDED, DOOMED, ONLINE, JOBS }; /* after those with a bound of their own */

static const char *const policies[] = { "priority", "rotate", "share", "deadline" };

struct job {
	pid_t pid;
	atomic_bool ready, stop;
	atomic_ulong packets, requests;
	atomic_uint wrong; /* queues, at its end */
};

struct judged {
	uint64_t longest_ms;
	unsigned long pressed; /* periods with a wait of at least half the bound */
	unsigned long late;
};

static struct job *jobs; /* shared by all processes */
static struct judged judged[BOUNDED];
static unsigned long kills, holds, switches, hints, wrong;
static unsigned int seed;
static int device;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void let_pass(unsigned int ms)
{
	uint64_t now = now_ms(), until = now + ms;

	for (; now < until; now = now_ms())
		poll(NULL, 0, (int)(until - now));
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* ---- jobs ---- */

static uint64_t pending(const struct mk_queue *qs, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += mk_pending(&qs[i]);
	return sum;
}

_Noreturn static void end_job(struct job *j, struct mk_gpu *gpu, struct mk_queue *qs)
{
	uint64_t until = now_ms() + DRAIN_MS;

	while (pending(qs, QUEUES) && now_ms() < until)
		mk_wait(gpu, WAIT_MS);
	for (unsigned int i = 0; i < QUEUES; i++) {
		j->packets += qs[i].submitted;
		if (mk_pending(&qs[i]) || !mk_is_right(&qs[i]))
			j->wrong++;
	}
	exit(0);
}

/* Has work at every moment. */
static void work(struct job *j, struct mk_gpu *gpu, struct mk_queue *qs)
{
	while (!j->stop) {
		for (unsigned int i = 0; i < QUEUES; i++) {
			while (mk_pending(&qs[i]) < DEPTH)
				mk_submit(&qs[i], TICKS, WAVES);
		}
		j->ready = true;
		mk_wait(gpu, WAIT_MS);
	}
}

/* Requests of all lengths, some in close succession; one in six is longer than any bound. */
static void serve(struct job *j, struct mk_gpu *gpu, struct mk_queue *qs)
{
	const uint32_t longest = 2 * bounds_ms[BOUNDED - 1];

	j->ready = true;
	while (!j->stop) {
		uint64_t until = now_ms() + (below(6) ? 5 + below(150) : below(longest));

		do {
			for (unsigned int i = 0; i < QUEUES; i++) {
				while (mk_pending(&qs[i]) < 2)
					mk_submit(&qs[i], REQUEST_TICKS, WAVES);
			}
			mk_wait(gpu, WAIT_MS);
		} while (now_ms() < until);
		while (pending(qs, QUEUES))
			mk_wait(gpu, WAIT_MS);
		j->requests++;
		let_pass(5 + below(200));
	}
}

_Noreturn static void live(unsigned int which)
{
	struct mk_queue qs[QUEUES];
	struct job *j = &jobs[which];
	struct mk_gpu gpu;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mk_gpu_open(&gpu, 0);
	for (unsigned int i = 0; i < QUEUES; i++)
		mk_queue_create(&qs[i], &gpu, MK_AQL, 7);
	if (which == ONLINE)
		serve(j, &gpu, qs);
	else
		work(j, &gpu, qs);
	end_job(j, &gpu, qs);
}

/* A bound of its own, or for others the longest of them. */
static uint32_t bound_of(unsigned int which)
{
	return bounds_ms[which < BOUNDED ? which : BOUNDED - 1];
}

static void set_class(unsigned int which)
{
	struct kfd_gpreempt_class c = {
		.pid = (uint32_t)jobs[which].pid,
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.class = which == ONLINE ? KFD_GPREEMPT_ONLINE : KFD_GPREEMPT_OFFLINE,
		.wait_bound_ns = which == ONLINE ? 0 : bound_of(which) * 1000000ull,
	};

	if (ioctl(device, KFD_GPREEMPT_SET_CLASS, &c))
		mk_die("SET_CLASS");
}

static void start_job(unsigned int which)
{
	struct job *j = &jobs[which];
	uint64_t until = now_ms() + READY_MS;
	unsigned int child_seed = seed + which + (unsigned int)kills;

	pid_t pid;

	j->ready = false;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		mk_die("fork");
	if (!pid) {
		seed = child_seed;
		live(which);
	}
	j->pid = pid;
	while (!j->ready) {
		if (now_ms() > until)
			mk_die("job %u does not get ready", which);
		let_pass(1);
	}
	set_class(which);
}

/* ---- the scheduler, and what happens to jobs ---- */

static void set_scheduler(uint32_t flags, const char *policy)
{
	struct kfd_gpreempt_monitor m = {
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.flags = flags,
		.interval_us = 2000,
		.critical_interval_us = 1000,
	};

	snprintf(m.policy, sizeof(m.policy), "%s", policy);
	if (ioctl(device, KFD_GPREEMPT_SET_MONITOR, &m))
		mk_die("SET_MONITOR");
}

static void switch_policy(void)
{
	set_scheduler(KFD_GPREEMPT_MONITOR_ON, policies[below(4)]);
	switches++;
}

static void kill_and_bear(unsigned int which)
{
	kill(jobs[which].pid, SIGKILL);
	waitpid(jobs[which].pid, NULL, 0);
	kills++;
	start_job(which);
}

/* Ends by itself. */
static void hold_for_others(void)
{
	struct kfd_gpreempt_entry e = {
		.pid = (uint32_t)jobs[HELD].pid,
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
	};
	struct kfd_gpreempt_batch b = {
		.entries = (uintptr_t)&e,
		.n_unmap = 1,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = 1 + below(LONGEST_HOLD_MS),
	};

	if (ioctl(device, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, &b) != 1)
		mk_die("BATCH_UNMAP_QUEUES: %d", e.result);
	holds++;
}

static void hint(void)
{
	struct kfd_gpreempt_hint h = {
		.pid = (uint32_t)jobs[ONLINE].pid,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.ahead_ns = below(20) * 1000000ull,
		.for_ns = below(100) * 1000000ull,
	};

	if (ioctl(device, KFD_GPREEMPT_HINT, &h))
		mk_die("HINT");
	hints++;
}

static void something_happens(void)
{
	switch (below(8)) {
	case 0:
		kill_and_bear(below(4) ? DOOMED : ONLINE);
		break;
	case 1:
		switch_policy();
		break;
	case 2:
	case 3:
		hint();
		break;
	default:
		hold_for_others();
	}
}

/* ---- judging ---- */

static void judge_wait(unsigned int which, uint64_t wait_ms, const char *state)
{
	struct judged *w = &judged[which];
	uint32_t bound_ms = bounds_ms[which];

	if (wait_ms > w->longest_ms)
		w->longest_ms = wait_ms;
	w->pressed += wait_ms >= bound_ms / 2;
	if (wait_ms <= bound_ms + SLACK_MS)
		return;
	w->late++;
	printf("# a wait of %llu ms, bound %u ms, %s, at %llu ms\n", (unsigned long long)wait_ms,
	       bound_ms, state, (unsigned long long)now_ms());
}

static int bounded_job(int pid)
{
	for (unsigned int i = 0; i < BOUNDED; i++) {
		if (jobs[i].pid == pid)
			return (int)i;
	}
	return -1;
}

/* The period ends: waits that ended in it, and those that go on. */
static void judge_period(void)
{
	unsigned long long waits_ns, longest_ns;
	unsigned int seen[BOUNDED] = { 0 };
	FILE *f = fopen(WAITS, "r+e");
	char line[256];
	int pid, which;

	if (!f || fputs("1\n", f) < 0 || fflush(f))
		mk_die(WAITS);
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "pid %d doorbell %*x waits_ns %llu longest_ns %llu", &pid,
			   &waits_ns, &longest_ns) != 3)
			mk_die("%s says '%s'", WAITS, line);
		which = bounded_job(pid);
		if (which < 0)
			continue;
		seen[which]++;
		judge_wait((unsigned int)which, waits_ns / 1000000, "not over");
		judge_wait((unsigned int)which, longest_ns / 1000000, "over");
	}
	fclose(f);
	for (unsigned int i = 0; i < BOUNDED; i++) {
		if (seen[i] != QUEUES)
			mk_die("the GPU knows %u queues of job %u", seen[i], i);
	}
}

static void soak(uint64_t until)
{
	uint64_t period_ends = now_ms() + PERIOD_MS;

	while (now_ms() < until) {
		let_pass(10 + below(150));
		something_happens();
		if (now_ms() < period_ends)
			continue;
		judge_period();
		period_ends = now_ms() + PERIOD_MS;
	}
	judge_period();
}

static void end_all(void)
{
	set_scheduler(0, "");
	for (unsigned int i = 0; i < JOBS; i++)
		jobs[i].stop = true;
	for (unsigned int i = 0; i < JOBS; i++) {
		int status = 0;

		waitpid(jobs[i].pid, &status, 0);
		wrong += jobs[i].wrong + (status != 0);
	}
}

/* ---- */

static pid_t keep_busy(void)
{
	const struct sched_param none = { 0 };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		mk_die("SCHED_IDLE");
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static bool report(void)
{
	bool good = wrong == 0;
	unsigned long packets = 0;

	for (unsigned int i = 0; i < BOUNDED; i++) {
		printf("# bound %u ms: longest wait %llu ms, %lu periods with a wait of at least "
		       "half of it\n", bounds_ms[i], (unsigned long long)judged[i].longest_ms,
		       judged[i].pressed);
		good &= judged[i].pressed && !judged[i].late;
		packets += jobs[i].packets;
	}
	printf("# packets %lu wrong %lu requests %lu kills %lu holds %lu hints %lu switches %lu\n",
	       packets, wrong, jobs[ONLINE].requests, kills, holds, hints, switches);
	return good && packets && jobs[ONLINE].requests && kills && holds && switches;
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	pid_t busy;

	if (!seconds) {
		fprintf(stderr, "usage: extsoak SECONDS [SEED]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : 1;
	device = open(DEVICE, O_RDWR | O_CLOEXEC);
	jobs = mmap(NULL, JOBS * sizeof(*jobs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	if (device < 0 || jobs == MAP_FAILED)
		mk_die("the extension");
	busy = keep_busy();
	set_scheduler(KFD_GPREEMPT_MONITOR_ON, policies[0]);
	for (unsigned int i = 0; i < JOBS; i++)
		start_job(i);
	soak(now_ms() + seconds * 1000);
	end_all();
	kill(busy, SIGKILL);
	return !report();
}
