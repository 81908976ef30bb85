/* SPDX-License-Identifier: MIT */
#include "tests/daemon/fake_guard.h"

#include <errno.h>

bool guard_is_possible(void)
{
	return true;
}

int guard_start(struct guard **ret)
{
	return -ENOSYS;
}

void guard_stop(struct guard *g)
{
}

int guard_fd(const struct guard *g)
{
	return g->fd;
}

bool guard_alive(const struct guard *g)
{
	return !g->dead;
}

pid_t guard_pid(const struct guard *g)
{
	return 1;
}

int guard_arm(struct guard *g, pid_t target, uint64_t allow_ns)
{
	if (g->dead)
		return -EOWNERDEAD;
	g->armed = true;
	g->deadline_ns = *g->now_ns + allow_ns;
	return 0;
}

void guard_beat(struct guard *g, int slot, uint64_t allow_ns)
{
	g->beats++;
	g->late += *g->now_ns > g->deadline_ns;
	g->deadline_ns = *g->now_ns + allow_ns;
}

void guard_disarm(struct guard *g, int slot)
{
	g->armed = false;
}

int guard_entrust(struct guard *g, int slot, int fd, int pidfd, const struct guard_undo *undo)
{
	return 0;
}

void guard_set_due(struct guard *g, int slot, uint32_t call, bool due)
{
}
