/* SPDX-License-Identifier: MIT */
/*
 * usage: startup ROUNDS COMMAND [ARG]...
 *
 * How long a whole run of a command takes beside one of /bin/true. The two alternate, so that
 * whatever else the machine does hits both; what counts is the ratio of their medians. Where it
 * is allowed they go before everything else: a command of several threads would wait more often.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stopwatch.h"
#include "util/macros.h"

extern char **environ;

#define MAX_ROUNDS 10000

/* Runs @argv with its output thrown away; its time, or -errno. */
static int64_t run_once(char *const argv[], const posix_spawn_file_actions_t *quiet)
{
	uint64_t began = stopwatch_ns();
	int r, status;
	pid_t pid;

	r = posix_spawn(&pid, argv[0], quiet, NULL, argv, environ);
	if (r)
		return -r;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return -EIO;
	return (int64_t)(stopwatch_ns() - began);
}

/* @times: @rounds of the first command, then @rounds of the second. */
static int alternate(char *const *const commands[2], size_t rounds, uint64_t *times)
{
	posix_spawn_file_actions_t quiet;
	int64_t t = 0;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; i < 2 * rounds && t >= 0; i++) {
		t = run_once(commands[i % 2], &quiet);
		times[(i % 2) * rounds + i / 2] = (uint64_t)t;
	}
	posix_spawn_file_actions_destroy(&quiet);
	return t < 0 ? (int)t : 0;
}

int main(int argc, char *argv[])
{
	char *const base[] = { (char *)"/bin/true", NULL };
	char *const *const commands[2] = { base, argv + 2 };
	_cleanup_free_ uint64_t *times = NULL;
	bool before_others;
	size_t rounds;
	int r;

	if (argc < 3) {
		fprintf(stderr, "usage: startup ROUNDS COMMAND [ARG]...\n");
		return 2;
	}
	rounds = strtoul(argv[1], NULL, 10);
	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	times = calloc(2 * rounds, sizeof(*times));
	if (!times)
		return 1;
	before_others = go_before_others();
	r = alternate(commands, rounds, times);
	if (r < 0) {
		fprintf(stderr, "startup: %s: %s\n", argv[2], strerror(-r));
		return 1;
	}
	printf("{\"rounds\": %zu, \"before_others\": %s, \"true_ns\": %llu, "
	       "\"command_ns\": %llu}\n",
	       rounds, before_others ? "true" : "false",
	       (unsigned long long)median_ns(times, rounds),
	       (unsigned long long)median_ns(times + rounds, rounds));
	return 0;
}
