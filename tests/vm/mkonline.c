/* SPDX-License-Identifier: MIT */
/*
 * usage: mkonline [OPTION]...
 *
 * An online job: requests that arrive one by one, each a dispatch on every one of its queues. Says
 * "ready PID pasid N" and, of each request, when the first doorbell was rung and when all of it was
 * found done (CLOCK_MONOTONIC, as the software GPU's log has it):
 *
 *     request NS NS
 *
 * and at the end, after SIGTERM or its last request,
 *
 *     done PID requests N wrong Q
 *
 * as mkqueues does. Exit status 0 when nothing was wrong.
 *
 *     --queues N     default 1        --gpu N       default 0
 *     --requests N   0: endless       --every-ms N  between arrivals, about: default 200
 *     --ticks N      of each, 20      --waves N     default 1
 *     --seed N       of the arrivals  --priority N  0 to 15, default 15
 */
#include <getopt.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/vm/mk.h"

#define MAX_QUEUES 64
#define WAIT_MS 20
#define PATIENCE_MS 60000

struct options {
	unsigned int queues, gpu, requests, every_ms, ticks, waves, priority, seed;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t pending(const struct mk_queue *qs, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += mk_pending(&qs[i]);
	return sum;
}

/* Half to one and a half times the usual gap: out of step with everything else. */
static void await_arrival(int timer, const struct options *o, unsigned int *seed)
{
	uint64_t ns = (uint64_t)o->every_ms * 1000000, ticks;
	uint64_t gap = ns / 2 + ns * ((unsigned int)rand_r(seed) % 1000) / 1000 + 1;
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(gap / 1000000000),
					      .tv_nsec = (long)(gap % 1000000000) } };

	timerfd_settime(timer, 0, &t, NULL);
	while (!stop && read(timer, &ticks, sizeof(ticks)) < 0)
		continue;
}

static bool request(struct mk_gpu *gpu, struct mk_queue *qs, const struct options *o)
{
	uint64_t began = now_ns();

	for (unsigned int i = 0; i < o->queues; i++)
		mk_submit(&qs[i], o->ticks, o->waves);
	while (pending(qs, o->queues)) {
		if (now_ns() - began > PATIENCE_MS * 1000000ull)
			return false;
		mk_wait(gpu, WAIT_MS);
	}
	printf("request %llu %llu\n", (unsigned long long)began, (unsigned long long)now_ns());
	fflush(stdout);
	return true;
}

static int report(const struct mk_queue *qs, const struct options *o, unsigned int served)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < o->queues; i++)
		wrong += mk_pending(&qs[i]) || !mk_is_right(&qs[i]);
	printf("done %d requests %u wrong %u\n", getpid(), served, wrong);
	return wrong != 0;
}

static unsigned int own_pasid(void)
{
	unsigned int pasid = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/pasid", getpid());
	f = fopen(path, "re");
	if (!f || fscanf(f, "%u", &pasid) != 1)
		mk_die("%s", path);
	fclose(f);
	return pasid;
}

static int serve(const struct options *o)
{
	static struct mk_queue qs[MAX_QUEUES];
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	unsigned int served = 0, seed = o->seed;
	struct mk_gpu gpu;
	int status;

	mk_gpu_open(&gpu, o->gpu);
	mk_gpu_runtime(&gpu, true);
	for (unsigned int i = 0; i < o->queues; i++)
		mk_queue_create(&qs[i], &gpu, MK_AQL, o->priority);
	printf("ready %d pasid %u\n", getpid(), own_pasid());
	fflush(stdout);
	while (!stop && (!o->requests || served < o->requests)) {
		await_arrival(timer, o, &seed);
		if (stop || !request(&gpu, qs, o))
			break;
		served++;
	}
	status = report(qs, o, served);
	for (unsigned int i = 0; i < o->queues; i++)
		mk_queue_destroy(&qs[i]);
	mk_gpu_runtime(&gpu, false);
	return status;
}

static unsigned int number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*text && !*end)
		return (unsigned int)n;
	fprintf(stderr, "mkonline: '%s' is not a number\n", text);
	exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "queues", 1, NULL, 0 },   { "gpu", 1, NULL, 0 },   { "requests", 1, NULL, 0 },
		{ "every-ms", 1, NULL, 0 }, { "ticks", 1, NULL, 0 }, { "waves", 1, NULL, 0 },
		{ "priority", 1, NULL, 0 }, { "seed", 1, NULL, 0 },  { 0 },
	};
	unsigned int *const to[] = { &o->queues, &o->gpu,      &o->requests, &o->every_ms,
				     &o->ticks,	 &o->waves,    &o->priority, &o->seed };
	int which, c;

	while ((c = getopt_long(argc, argv, "", names, &which)) != -1) {
		if (c == '?')
			exit(2);
		*to[which] = number(optarg);
	}
	if (o->queues && o->queues <= MAX_QUEUES)
		return;
	fprintf(stderr, "mkonline: 1 to %u queues\n", MAX_QUEUES);
	exit(2);
}

int main(int argc, char **argv)
{
	struct options o = { .queues = 1, .every_ms = 200, .ticks = 20, .waves = 1,
			     .priority = 15, .seed = 1 };
	struct sigaction act = { .sa_handler = on_signal };

	parse(argc, argv, &o);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	return serve(&o);
}
