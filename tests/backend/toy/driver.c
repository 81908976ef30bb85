/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "tests/backend/toy/toy.h"

struct toy *toy_machine;

struct toy_proc *toy_find(struct toy *d, pid_t pid)
{
	for (struct toy_proc *p = d->procs; p < d->procs + TOY_PROCS; p++)
		if (pid > 0 && p->pid == pid)
			return p;
	return NULL;
}

void toy_exit(struct toy *d, pid_t pid)
{
	*toy_find(d, pid) = (struct toy_proc){ 0 };
	if (d->ended)
		d->ended(d->user, pid);
}

void toy_advance(struct toy *d, uint64_t ns)
{
	d->now_ns += ns;
	for (struct toy_proc *p = d->procs; p < d->procs + TOY_PROCS; p++)
		if (d->now_ns >= p->until_ns)
			p->off = 0;
}

uint32_t toy_count_off(const struct toy_proc *p)
{
	return p ? (uint32_t)__builtin_popcount(p->off & ((1u << p->n) - 1)) : 0;
}

int toy_move(struct toy *d, pid_t pid, uint32_t off, uint64_t until_ns)
{
	struct toy_proc *p = toy_find(d, pid);
	uint32_t moved;

	if (!p)
		return -ESRCH;
	if (d->stuck && off) {
		p->off = 0;
		return -EIO;
	}
	moved = (p->off ^ off) & ((1u << p->n) - 1);
	d->calls += moved != 0;
	p->off = off;
	p->until_ns = until_ns;
	return __builtin_popcount(moved);
}
