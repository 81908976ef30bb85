/* SPDX-License-Identifier: MIT */
/*
 * usage: mkqueues [OPTION]...
 *
 * Makes processes with queues and keeps them busy with work that can be checked. Each process says
 * "ready PID" when its queues have work, goes on until SIGTERM or the end of its packets, lets what
 * is submitted finish and says
 *
 *     done PID packets N wrong Q
 *
 * where Q is the number of queues whose memory is not what the packets, each done once and in
 * order, must leave. Exit status 0 when no process found anything wrong.
 *
 *     --aql N, --pm4 N, --sdma N   queues of each process (default: 1 AQL)
 *     --processes N      default 1             --gpu N         default 0
 *     --packets N        a queue; 0: endless   --depth N       packets ahead, default 4
 *     --ticks N          of a dispatch, 20     --waves N       of a dispatch, 1
 *     --priority N       0 to 15, default 7    --old-runtime   no RUNTIME_ENABLE
 *     --stall-ms N       no progress at the end for so long is wrong, default 20000
 *     --user-memory      anonymous memory instead of the driver's buffers
 *     --only             takes no address space on GPUs it does not use
 */
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/vm/mk.h"

#define MAX_QUEUES 256
#define MAX_PROCESSES 64
#define WAIT_MS 50

struct options {
	unsigned int kinds[3];
	unsigned int processes, gpu, depth, ticks, waves, priority, stall_ms;
	uint64_t packets;
	bool old_runtime, user_memory, only;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool feed(struct mk_queue *q, const struct options *o)
{
	while (mk_pending(q) < o->depth) {
		if (o->packets && q->submitted >= o->packets)
			return false;
		mk_submit(q, o->ticks, o->waves);
	}
	return true;
}

static void work(struct mk_gpu *gpu, struct mk_queue *qs, unsigned int n, const struct options *o)
{
	bool more = true;

	while (more && !stop) {
		more = false;
		for (unsigned int i = 0; i < n; i++)
			more |= feed(&qs[i], o);
		if (more)
			mk_wait(gpu, WAIT_MS);
	}
}

static uint64_t pending(const struct mk_queue *qs, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += mk_pending(&qs[i]);
	return sum;
}

static void drain(struct mk_gpu *gpu, struct mk_queue *qs, unsigned int n, unsigned int stall_ms)
{
	uint64_t left = pending(qs, n), since = now_ms();

	while (left && now_ms() - since < stall_ms) {
		mk_wait(gpu, WAIT_MS);
		if (pending(qs, n) != left) {
			left = pending(qs, n);
			since = now_ms();
		}
	}
}

static int report(const struct mk_queue *qs, unsigned int n)
{
	uint64_t packets = 0;
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct mk_queue *q = &qs[i];

		packets += q->submitted - mk_pending(q);
		if (!mk_pending(q) && mk_is_right(q))
			continue;
		wrong++;
		printf("wrong %d queue %u submitted %llu pending %lld read %llu word %#llx for "
		       "%#llx\n",
		       getpid(), q->id, (unsigned long long)q->submitted, (long long)mk_pending(q),
		       (unsigned long long)*q->read, (unsigned long long)*q->word,
		       (unsigned long long)q->expected);
	}
	printf("done %d packets %llu wrong %u\n", getpid(), (unsigned long long)packets, wrong);
	fflush(stdout);
	return wrong != 0;
}

static int one_process(const struct options *o)
{
	static struct mk_queue qs[MAX_QUEUES];
	struct mk_gpu gpu;
	unsigned int n = 0;
	int status;

	if (o->only)
		mk_gpu_open_only(&gpu, o->gpu);
	else
		mk_gpu_open(&gpu, o->gpu);
	gpu.user_memory = o->user_memory;
	if (!o->old_runtime)
		mk_gpu_runtime(&gpu, true);
	for (int kind = 0; kind < 3; kind++) {
		for (unsigned int i = 0; i < o->kinds[kind] && n < MAX_QUEUES; i++)
			mk_queue_create(&qs[n++], &gpu, (enum mk_kind)kind, o->priority);
	}
	for (unsigned int i = 0; i < n; i++)
		feed(&qs[i], o);
	printf("ready %d\n", getpid());
	fflush(stdout);
	work(&gpu, qs, n, o);
	drain(&gpu, qs, n, o->stall_ms);
	status = report(qs, n);
	for (unsigned int i = 0; i < n; i++)
		mk_queue_destroy(&qs[i]);
	if (!o->old_runtime)
		mk_gpu_runtime(&gpu, false);
	return status;
}

static int many_processes(const struct options *o)
{
	pid_t pids[MAX_PROCESSES];
	int status, worst = 0;

	for (unsigned int i = 0; i < o->processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			mk_die("fork");
		if (!pids[i])
			exit(one_process(o));
	}
	for (unsigned int left = o->processes; left;) {
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0) { /* interrupted: pass it on */
			for (unsigned int i = 0; i < o->processes; i++)
				kill(pids[i], SIGTERM);
			continue;
		}
		left--;
		if (status)
			worst = 1;
	}
	return worst;
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "mkqueues: '%s' is not a number\n", text);
		exit(2);
	}
	return n;
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "aql", 1, NULL, 'a' },
		{ "pm4", 1, NULL, 'p' },
		{ "sdma", 1, NULL, 's' },
		{ "processes", 1, NULL, 'n' },
		{ "gpu", 1, NULL, 'g' },
		{ "packets", 1, NULL, 'c' },
		{ "depth", 1, NULL, 'd' },
		{ "ticks", 1, NULL, 't' },
		{ "waves", 1, NULL, 'w' },
		{ "priority", 1, NULL, 'i' },
		{ "stall-ms", 1, NULL, 'l' },
		{ "old-runtime", 0, NULL, 'o' },
		{ "user-memory", 0, NULL, 'u' },
		{ "only", 0, NULL, 'y' },
		{ 0 },
	};
	unsigned int *const to[] = {
		['a'] = &o->kinds[MK_AQL], ['p'] = &o->kinds[MK_PM4], ['s'] = &o->kinds[MK_SDMA],
		['n'] = &o->processes,	   ['g'] = &o->gpu,	      ['d'] = &o->depth,
		['t'] = &o->ticks,	   ['w'] = &o->waves,	      ['i'] = &o->priority,
		['l'] = &o->stall_ms,
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == '?')
			exit(2);
		else if (c == 'o')
			o->old_runtime = true;
		else if (c == 'y')
			o->only = true;
		else if (c == 'u')
			o->user_memory = true;
		else if (c == 'c')
			o->packets = number(optarg);
		else
			*to[c] = (unsigned int)number(optarg);
	}
	if (!o->kinds[0] && !o->kinds[1] && !o->kinds[2])
		o->kinds[MK_AQL] = 1;
	if (!o->processes || o->processes > MAX_PROCESSES || !o->depth || o->depth > MK_SLOTS / 2) {
		fprintf(stderr, "mkqueues: 1 to %u processes, 1 to %u packets ahead\n",
			MAX_PROCESSES, MK_SLOTS / 2);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.processes = 1,
		.depth = 4,
		.ticks = 20,
		.waves = 1,
		.priority = 7,
		.stall_ms = 20000,
	};
	struct sigaction act = { .sa_handler = on_signal };

	parse(argc, argv, &o);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	return o.processes == 1 ? one_process(&o) : many_processes(&o);
}
