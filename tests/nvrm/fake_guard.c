/* SPDX-License-Identifier: MIT */
#include "tests/nvrm/fake_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "util/macros.h"

struct guard *fake_guard_new(struct fake_rm *fake, struct nvrm *n)
{
	struct guard *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->fake = fake;
	g->n = n;
	for (size_t i = 0; i < FAKE_GUARD_SLOTS; i++)
		g->slots[i].fd = g->slots[i].pidfd = -1;
	return g;
}

static void drop(struct guard *g, struct fake_slot *s)
{
	if (s->fd >= 0)
		g->n->transport->close_fd(g->n->data, s->fd);
	closep(&s->pidfd);
	s->fd = s->pidfd = -1;
}

void fake_guard_free(struct guard *g)
{
	for (size_t i = 0; i < FAKE_GUARD_SLOTS; i++)
		drop(g, &g->slots[i]);
	free(g);
}

void fake_guard_freeze(void *guard)
{
	((struct guard *)guard)->frozen = true;
}

void fake_guard_thaw(struct guard *g)
{
	g->frozen = false;
	for (int i = 0; i < FAKE_GUARD_SLOTS; i++)
		if (g->slots[i].late)
			guard_disarm(g, i);
}

static bool has_ended(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	return poll(&end, 1, 0) != 0;
}

static void make_call(struct guard *g, struct fake_slot *s, const struct guard_call *c)
{
	union {
		uint8_t bytes[GUARD_UNDO_ARG_MAX];
		uint64_t align;
	} arg;
	uint8_t data[GUARD_DATA];
	uint64_t address = (uintptr_t)data;

	memcpy(arg.bytes, c->arg, sizeof(arg.bytes));
	if (c->pointer_at != GUARD_NO_POINTER) {
		memcpy(data, s->undo.data + c->data_at, c->data_len);
		memcpy(arg.bytes + c->pointer_at, &address, sizeof(address));
	}
	g->n->transport->ioctl(g->n->data, s->fd, c->request, arg.bytes);
}

void fake_guard_undo(struct guard *g)
{
	for (size_t i = 0; i < FAKE_GUARD_SLOTS; i++) {
		struct fake_slot *s = &g->slots[i];

		for (uint32_t c = 0; s->fd >= 0 && c < s->undo.n_calls; c++)
			if (s->undo.calls[c].due && !has_ended(s->pidfd))
				make_call(g, s, &s->undo.calls[c]);
	}
}

size_t fake_guard_armed(const struct guard *g)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_GUARD_SLOTS; i++)
		n += g->slots[i].armed;
	return n;
}

size_t fake_guard_due(const struct guard *g)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_GUARD_SLOTS; i++)
		for (uint32_t c = 0; g->slots[i].fd >= 0 && c < g->slots[i].undo.n_calls; c++)
			n += g->slots[i].undo.calls[c].due != 0;
	return n;
}

/* ---- gpu/guard.h ---- */

bool guard_alive(const struct guard *g)
{
	return !g->dead;
}

int guard_arm(struct guard *g, pid_t target, uint64_t allow_ns)
{
	if (g->dead || g->frozen)
		return -EOWNERDEAD;
	for (int i = 0; i < FAKE_GUARD_SLOTS; i++) {
		if (g->slots[i].armed)
			continue;
		g->slots[i].armed = true;
		g->slots[i].target = target;
		return i;
	}
	return -ENOSPC;
}

void guard_disarm(struct guard *g, int slot)
{
	g->slots[slot].late = g->frozen;
	if (g->frozen)
		return;
	g->slots[slot].armed = false;
	drop(g, &g->slots[slot]);
}

static bool is_sound(const struct guard_undo *undo)
{
	if (undo->traced || undo->n_calls > GUARD_CALLS)
		return false;
	for (uint32_t i = 0; i < undo->n_calls; i++) {
		const struct guard_call *c = &undo->calls[i];

		if (c->pointer_at == GUARD_NO_POINTER)
			continue;
		if (c->pointer_at > GUARD_UNDO_ARG_MAX - sizeof(uint64_t) ||
		    c->data_at > GUARD_DATA || c->data_len > GUARD_DATA - c->data_at)
			return false;
	}
	return true;
}

int guard_entrust(struct guard *g, int slot, int fd, int pidfd, const struct guard_undo *undo)
{
	struct fake_slot *s = &g->slots[slot];

	if (!s->armed || !is_sound(undo))
		return -EINVAL;
	if (g->dead || g->frozen)
		return -EOWNERDEAD;
	drop(g, s);
	s->fd = fake_rm_dup(g->fake, fd);
	s->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	s->undo = *undo;
	g->entrusted++;
	return 0;
}

void guard_set_due(struct guard *g, int slot, uint32_t call, bool due)
{
	if (!g->slots[slot].armed || call >= g->slots[slot].undo.n_calls)
		abort();
	if (!g->frozen)
		g->slots[slot].undo.calls[call].due = due;
}
