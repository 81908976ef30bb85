/* SPDX-License-Identifier: MIT */
/*
 * usage: extsched on [POLICY [INTERVAL-US [HOLD-MAX-MS]]]
 *        extsched off | rearm
 *        extsched class online|critical|offline|none PID...
 *        extsched reserve ONLINE-PERMILLE OFFLINE-PERMILLE
 *        extsched says KEY [GPU]
 *
 * The scheduler in the driver, for scripts in the guest: on all GPUs, with nothing but its calls.
 * "says" prints what debugfs tells of GPU number GPU (0). Exit status 1 when the driver refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "abi/kfd_gpreempt.h"

#define STATE "/sys/kernel/debug/" KFD_GPREEMPT_DEVICE

static int call(unsigned long request, void *arg, const char *what)
{
	int fd = open("/dev/" KFD_GPREEMPT_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, request, arg) >= 0)
		return 0;
	fprintf(stderr, "extsched: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint32_t number(const char *text)
{
	return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

static int set_scheduler(uint32_t flags, char **args)
{
	struct kfd_gpreempt_monitor m = { .gpu_id = KFD_GPREEMPT_ANY_GPU, .flags = flags };

	if (args[0]) {
		snprintf(m.policy, sizeof(m.policy), "%s", args[0]);
		m.interval_us = number(args[1]);
		m.critical_interval_us = m.interval_us;
		m.hold_max_ms = args[1] ? number(args[2]) : 0;
	}
	return call(KFD_GPREEMPT_SET_MONITOR, &m, "SET_MONITOR");
}

static int set_class(const char *name, char **pids)
{
	bool critical = !strcmp(name, "critical");
	struct kfd_gpreempt_class c = {
		.queue_id = KFD_GPREEMPT_ALL_QUEUES,
		.flags = critical ? KFD_GPREEMPT_CLASS_CRITICAL : 0,
	};
	int worst = 0;

	if (critical || !strcmp(name, "online"))
		c.class = KFD_GPREEMPT_ONLINE;
	else if (!strcmp(name, "offline"))
		c.class = KFD_GPREEMPT_OFFLINE;
	for (; *pids; pids++) {
		c.pid = number(*pids);
		worst |= call(KFD_GPREEMPT_SET_CLASS, &c, *pids);
	}
	return worst;
}

static int reserve(char **args)
{
	struct kfd_gpreempt_reservation r = {
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.online_permille = number(args[0]),
		.offline_permille = number(args[1]),
	};

	return call(KFD_GPREEMPT_SET_HQD_RESERVATION, &r, "SET_HQD_RESERVATION");
}

static int say(const char *key, unsigned int gpu)
{
	char name[32], value[32];
	FILE *f = fopen(STATE, "re");
	unsigned int gpus = 0;

	if (!f) {
		perror(STATE);
		return 1;
	}
	while (fscanf(f, "%31s %31s", name, value) == 2) {
		gpus += !strcmp(name, "gpu");
		if (gpus == gpu + 1 && !strcmp(name, key)) {
			puts(value);
			fclose(f);
			return 0;
		}
	}
	fclose(f);
	fprintf(stderr, "extsched: GPU %u says nothing of '%s'\n", gpu, key);
	return 1;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (!strcmp(verb, "on"))
		return set_scheduler(KFD_GPREEMPT_MONITOR_ON, argv + 2);
	if (!strcmp(verb, "off"))
		return set_scheduler(0, argv + argc);
	if (!strcmp(verb, "rearm"))
		return set_scheduler(KFD_GPREEMPT_MONITOR_REARM, argv + argc);
	if (!strcmp(verb, "class") && argc > 3)
		return set_class(argv[2], argv + 3);
	if (!strcmp(verb, "reserve") && argc == 4)
		return reserve(argv + 2);
	if (!strcmp(verb, "says") && argc > 2)
		return say(argv[2], argc > 3 ? number(argv[3]) : 0);
	fprintf(stderr, "usage: extsched on|off|rearm|class|reserve|says ...\n");
	return 2;
}
