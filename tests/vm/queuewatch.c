/* SPDX-License-Identifier: MIT */
/*
 * usage: queuewatch PID[,PID]... running N MS [COMMAND...]
 *        queuewatch PID[,PID]... off MS [COMMAND...]
 *
 * Runs COMMAND and looks at the software GPU until N queues of the processes are on it and each has
 * gone on with its packets, or until none of their queues is on it. Prints the milliseconds since
 * before COMMAND; exit status 1 when MS are over first, or when COMMAND fails or does not end.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUEUES "/sys/kernel/debug/kfdsim/0/queues"
#define MAX_QUEUES 256
#define MAX_PROCESSES 64
#define LOOK_MS 1
#define COMMAND_MS 30000 /* for it to end in, once the queues are as they should be */

struct queue {
	uint32_t doorbell;
	uint64_t first;
	int has_advanced;
};

struct watch {
	uint32_t pasids[MAX_PROCESSES];
	unsigned int n_pasids;
	struct queue queues[MAX_QUEUES];
	unsigned int n, advanced, there;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

_Noreturn static void die(const char *what)
{
	perror(what);
	exit(2);
}

static uint32_t pasid_of(const char *pid)
{
	uint32_t pasid = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%s/pasid", pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%u", &pasid) != 1)
		die(path);
	fclose(f);
	return pasid;
}

/* Takes the list to pieces. */
static void watch_processes(struct watch *w, char *pids)
{
	char *pid;

	while ((pid = strsep(&pids, ",")) && w->n_pasids < MAX_PROCESSES)
		w->pasids[w->n_pasids++] = pasid_of(pid);
}

static int is_watched(const struct watch *w, uint32_t pasid)
{
	for (unsigned int i = 0; i < w->n_pasids; i++) {
		if (w->pasids[i] == pasid)
			return 1;
	}
	return 0;
}

static void note(struct watch *w, uint32_t doorbell, uint64_t read)
{
	unsigned int i = 0;

	while (i < w->n && w->queues[i].doorbell != doorbell)
		i++;
	if (i == MAX_QUEUES)
		return;
	if (i == w->n)
		w->queues[w->n++] = (struct queue){ .doorbell = doorbell, .first = read };
	if (w->queues[i].has_advanced || w->queues[i].first == read)
		return;
	w->queues[i].has_advanced = 1;
	w->advanced++;
}

static void look(struct watch *w)
{
	FILE *f = fopen(QUEUES, "re");
	unsigned long long read;
	unsigned int pasid, doorbell;
	char line[256];

	if (!f)
		die(QUEUES);
	w->there = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s pasid %x doorbell %x read %llu", &pasid, &doorbell, &read) !=
			    3 ||
		    !is_watched(w, pasid))
			continue;
		w->there++;
		note(w, doorbell, read);
	}
	fclose(f);
}

/* 0: there is no command. */
static pid_t start(char **command)
{
	pid_t pid = *command ? fork() : 0;

	if (pid < 0)
		die("fork");
	if (pid || !*command)
		return pid;
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(*command, command);
	die(*command);
}

/* What it began may have been seen before it has ended; what it leaves is of interest after. */
static int has_ended_well(pid_t pid)
{
	uint64_t until = now_ms() + COMMAND_MS;
	int status = 0;

	while (pid && waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() > until) {
			fprintf(stderr, "the command does not end\n");
			return 0;
		}
		poll(NULL, 0, LOOK_MS);
	}
	if (status)
		fprintf(stderr, "the command ended with status 0x%x\n", (unsigned int)status);
	return !status;
}

static long number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 0);

	if (*text && !*end && n >= 0)
		return n;
	fprintf(stderr, "queuewatch: '%s' is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	static struct watch w;
	int is_running = argc > 4 && !strcmp(argv[2], "running");
	unsigned int n = is_running ? (unsigned int)number(argv[3]) : 0;
	uint64_t limit, began, took;
	pid_t command;

	if (!is_running && (argc < 4 || strcmp(argv[2], "off"))) {
		fprintf(stderr, "usage: queuewatch PID[,PID]... running N|off MS [COMMAND...]\n");
		return 2;
	}
	limit = (uint64_t)number(argv[is_running ? 4 : 3]);
	watch_processes(&w, argv[1]);
	began = now_ms();
	command = start(argv + (is_running ? 5 : 4));
	for (look(&w); is_running ? w.advanced < n : w.there > 0; look(&w)) {
		if (now_ms() - began > limit) {
			fprintf(stderr, "after %llu ms %u queues are on the GPU, %u went on\n",
				(unsigned long long)limit, w.there, w.advanced);
			return 1;
		}
		poll(NULL, 0, LOOK_MS);
	}
	took = now_ms() - began;
	if (!has_ended_well(command))
		return 1;
	printf("%llu\n", (unsigned long long)took);
	return 0;
}
