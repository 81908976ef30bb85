/* SPDX-License-Identifier: MIT */
/*
 * usage: mkjob [QUEUES [TICKS [WAVES]]]
 *        mkjob --churn ROUNDS
 *
 * One process with AQL queues and steady, checked work, that does at any moment what a line of its
 * standard input says, as programs under a debugger do:
 *
 *     create     one more queue                   destroy   the newest queue goes
 *     exec       becomes another program          leave     the main thread ends, the others go on
 *     shutdown   its runtime ends, queues go on   fork      a child that does nothing, for as long
 *                                                           as this process lives
 *     stop       lets what is submitted finish, checks it, ends
 *
 * It says "ready PID" when its queues have work, the command's name when it was done and, at its
 * end, "done PID packets N wrong Q". With --churn its runtime starts and ends ROUNDS times, with
 * a queue and checked work in each. Exit status 0 when nothing was wrong.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/vm/mk.h"

#define MAX_QUEUES 64
#define DEPTH 4
#define WAIT_MS 20
#define STALL_MS 20000
#define CHURN_PACKETS 3

struct job {
	pthread_mutex_t lock; /* all below, but for the gpu */
	struct mk_gpu gpu;
	struct mk_queue qs[MAX_QUEUES];
	unsigned int n;
	unsigned int ticks, waves;
	bool stop, is_off;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

static uint64_t pending(const struct job *j)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < j->n; i++)
		sum += mk_pending(&j->qs[i]);
	return sum;
}

static void drain(struct job *j)
{
	uint64_t left = pending(j), since = now_ms();

	while (left && now_ms() - since < STALL_MS) {
		mk_wait(&j->gpu, WAIT_MS);
		if (pending(j) == left)
			continue;
		left = pending(j);
		since = now_ms();
	}
}

static unsigned int count_wrong(const struct job *j)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < j->n; i++) {
		const struct mk_queue *q = &j->qs[i];

		if (!mk_pending(q) && mk_is_right(q))
			continue;
		wrong++;
		printf("wrong queue %u submitted %llu pending %lld word %#llx for %#llx\n", q->id,
		       (unsigned long long)q->submitted, (long long)mk_pending(q),
		       (unsigned long long)*q->word, (unsigned long long)q->expected);
	}
	return wrong;
}

static _Noreturn void end(struct job *j)
{
	unsigned long long packets = 0;
	unsigned int wrong;

	drain(j);
	wrong = count_wrong(j);
	for (unsigned int i = 0; i < j->n; i++) {
		packets += j->qs[i].submitted;
		mk_queue_destroy(&j->qs[i]);
	}
	if (!j->is_off)
		mk_gpu_runtime(&j->gpu, false);
	printf("done %d packets %llu wrong %u\n", getpid(), packets, wrong);
	fflush(stdout);
	exit(wrong != 0);
}

static void feed(struct job *j)
{
	for (unsigned int i = 0; i < j->n; i++) {
		while (mk_pending(&j->qs[i]) < DEPTH)
			mk_submit(&j->qs[i], j->ticks, j->waves);
	}
}

static void *work(void *arg)
{
	struct job *j = arg;

	for (;;) {
		pthread_mutex_lock(&j->lock);
		if (j->stop)
			end(j);
		feed(j);
		pthread_mutex_unlock(&j->lock);
		mk_wait(&j->gpu, WAIT_MS);
	}
	return NULL;
}

static void create(struct job *j)
{
	if (j->n == MAX_QUEUES)
		return;
	mk_queue_create(&j->qs[j->n], &j->gpu, MK_AQL, 7);
	j->n++;
}

/* Without the lock: the driver keeps the caller until the queue is resumed, the others go on. */
static void destroy(struct job *j)
{
	struct mk_queue q;

	pthread_mutex_lock(&j->lock);
	q = j->qs[--j->n];
	pthread_mutex_unlock(&j->lock);
	mk_queue_destroy(&q);
}

static void *take_commands(void *arg);

static void leave(struct job *j)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_commands, j))
		mk_die("pthread_create");
	pthread_exit(NULL);
}

/* As a loader of data would be: with copies of all we have, and no queue. */
static void beget(void)
{
	pid_t child = fork();

	if (child < 0)
		mk_die("fork");
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	for (;;)
		pause();
}

static void obey(struct job *j, const char *command)
{
	if (!strcmp(command, "create")) {
		pthread_mutex_lock(&j->lock);
		create(j);
		pthread_mutex_unlock(&j->lock);
	} else if (!strcmp(command, "destroy")) {
		destroy(j);
	} else if (!strcmp(command, "exec")) {
		execlp("tail", "tail", "-f", "/dev/null", (char *)NULL);
		mk_die("exec");
	} else if (!strcmp(command, "fork")) {
		beget();
	} else if (!strcmp(command, "shutdown")) {
		mk_gpu_runtime(&j->gpu, false);
		pthread_mutex_lock(&j->lock);
		j->is_off = true;
		pthread_mutex_unlock(&j->lock);
	} else if (!strcmp(command, "stop")) {
		pthread_mutex_lock(&j->lock);
		j->stop = true;
		pthread_mutex_unlock(&j->lock);
	} else if (strcmp(command, "leave")) {
		mk_die("'%s' is no command", command);
	}
	say(command);
	if (!strcmp(command, "leave"))
		leave(j);
}

static void *take_commands(void *arg)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		obey(arg, line);
	}
	pause();
	return NULL;
}

static int churn(struct job *j, unsigned long rounds)
{
	unsigned int wrong = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		mk_gpu_runtime(&j->gpu, true);
		if (j->n)
			mk_queue_again(&j->qs[0]);
		else
			create(j);
		if (i == 0)
			printf("ready %d\n", getpid());
		fflush(stdout);
		for (int k = 0; k < CHURN_PACKETS; k++)
			mk_submit(&j->qs[0], j->ticks, j->waves);
		drain(j);
		wrong += count_wrong(j);
		mk_queue_destroy(&j->qs[0]);
		mk_gpu_runtime(&j->gpu, false);
	}
	printf("done %d packets %lu wrong %u\n", getpid(), rounds * CHURN_PACKETS, wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	static struct job j = { .lock = PTHREAD_MUTEX_INITIALIZER, .ticks = 60, .waves = 8 };
	pthread_t worker;
	unsigned long n;

	mk_gpu_open(&j.gpu, 0);
	if (argc > 2 && !strcmp(argv[1], "--churn"))
		return churn(&j, strtoul(argv[2], NULL, 0));
	n = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	j.ticks = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 0) : j.ticks;
	j.waves = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 0) : j.waves;
	mk_gpu_runtime(&j.gpu, true);
	while (n--)
		create(&j);
	feed(&j);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (pthread_create(&worker, NULL, work, &j))
		mk_die("pthread_create");
	take_commands(&j);
	return 0;
}
