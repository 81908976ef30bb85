/* SPDX-License-Identifier: MIT */
/*
 * usage: mkopens ROUNDS DEVICE [NODE]
 *
 * Processes that open the device, one after the other, each for some tenths of a second; its pid
 * and the time of day just before it does, in nanoseconds:
 *
 *     opens 4711 1732060800000000000
 *
 * With NODE they open that one: it is made for each anew, as a container has a node of its own.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STAYS_MS 400
#define GAP_MS 150 /* at most, between two */

static void wait_ms(long ms)
{
	const struct itimerspec t = { .it_value = { ms / 1000, ms % 1000 * 1000000 + 1 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t ticks;

	if (timer < 0 || timerfd_settime(timer, 0, &t, NULL) < 0 ||
	    read(timer, &ticks, sizeof(ticks)) < 0)
		perror("mkopens: timerfd");
	close(timer);
}

static void open_it(const char *path)
{
	struct timespec t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	clock_gettime(CLOCK_REALTIME, &t);
	if (open(path, O_RDWR | O_CLOEXEC) < 0) {
		perror(path);
		_exit(1);
	}
	printf("opens %d %llu\n", getpid(),
	       (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec);
	fflush(stdout);
	for (;;)
		pause();
}

static int make_node(const char *device, const char *node)
{
	struct stat st;

	unlink(node);
	return stat(device, &st) < 0 ? -1 : mknod(node, S_IFCHR | 0600, st.st_rdev);
}

int main(int argc, char **argv)
{
	char *end = NULL;
	long rounds = argc > 2 ? strtol(argv[1], &end, 10) : 0;
	const char *path = argc > 3 ? argv[3] : argv[2];
	unsigned int seed = 1;
	int status;

	if (rounds <= 0 || *end)
		return 2;
	while (rounds--) {
		pid_t pid;

		if (argc > 3 && make_node(argv[2], path) < 0) {
			perror(path);
			return 1;
		}
		pid = fork();
		if (pid == 0)
			open_it(path);
		wait_ms(STAYS_MS);
		if (pid < 0 || kill(pid, SIGKILL) < 0 || waitpid(pid, &status, 0) != pid ||
		    !WIFSIGNALED(status))
			return 1;
		wait_ms(rand_r(&seed) % GAP_MS);
	}
	return 0;
}
