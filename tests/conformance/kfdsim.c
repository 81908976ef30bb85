/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "tests/conformance/kfdsim.h"

#define PARAMETERS "/sys/module/amdgpu/parameters/"
#define FILES "/sys/kernel/debug/kfdsim/"
#define TIMEOUT PARAMETERS "queue_preemption_timeout_ms"
#define TIMEOUT_MS "9000" /* the driver's own */
#define SHORT_MS "20" /* nobody answers any more: enough to be told so */
#define PATIENCE_MS 2000
#define STUCK_MS "20" /* how long the firmware tries; less than the driver waits */

static FILE *open_file(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		broken("%s: %s", path, strerror(errno));
	return f;
}

static void put(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = open_file(path, "we");

	if (fputs(text, f) < 0 || fflush(f) != 0)
		broken("%s: %s", path, strerror(errno));
}

uint32_t kfdsim_parameter(const char *name)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[96];
	uint32_t value;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = open_file(path, "re");
	if (fscanf(f, "%u", &value) != 1)
		broken("%s has no number", path);
	return value;
}

void kfdsim_scheduler_work(uint32_t gpu, struct scheduler_work *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], name[32];
	unsigned int value;

	snprintf(path, sizeof(path), FILES "%u/counters", gpu);
	f = open_file(path, "re");
	*ret = (struct scheduler_work){ 0 };
	while (fscanf(f, "%31s %i", name, (int *)&value) == 2) {
		if (!strcmp(name, "unmaps"))
			ret->unmaps = value;
		else if (!strcmp(name, "adds"))
			ret->adds = value;
		else if (!strcmp(name, "removes"))
			ret->removes = value;
	}
}

static int read_doorbell(char doorbell[static 24])
{
	_cleanup_fclose_ FILE *f = open_file(FILES "0/queues", "re");
	char line[256];
	int found = 0;

	while (fgets(line, sizeof(line), f))
		found += sscanf(line, "%*s pasid %*s doorbell %23s", doorbell) == 1;
	return found;
}

/* The driver does not wait until the scheduler has put a new queue on the GPU. */
static void make_queue_stuck(bool resettable)
{
	char doorbell[24];
	int found = 0;

	for (int ms = 0; ms < PATIENCE_MS && found != 1; ms++) {
		found = read_doorbell(doorbell);
		if (found != 1)
			poll(NULL, 0, 1);
	}
	if (found != 1)
		broken("%d queues on the GPU, not one", found);
	put(FILES "0/queue_reset_works", resettable ? "Y" : "N");
	put(FILES "0/stuck_ms", STUCK_MS);
	put(FILES "0/stuck_doorbell", doorbell);
}

int kfdsim_break(enum world_fault fault)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (log < 0 || lseek(log, 0, SEEK_END) < 0)
		broken("no kernel log: %s", strerror(errno));
	if (fault == FAULT_DEAD_SCHEDULER) {
		put(TIMEOUT, SHORT_MS);
		put(FILES "0/dead", "Y");
	} else {
		make_queue_stuck(fault == FAULT_RESETTABLE_QUEUE);
	}
	return log;
}

void kfdsim_await_reset(int log, int timeout_ms)
{
	struct pollfd fd = { .fd = log, .events = POLLIN };
	char line[1024];

	do {
		ssize_t n = read(log, line, sizeof(line) - 1);

		line[n < 0 ? 0 : n] = '\0';
		if (n < 0 && poll(&fd, 1, timeout_ms) <= 0)
			broken("the GPU is not reset");
	} while (!strstr(line, "GPU reset done"));
	put(FILES "0/queue_reset_works", "Y");
	put(TIMEOUT, TIMEOUT_MS);
}
