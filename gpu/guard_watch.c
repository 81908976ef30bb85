/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "gpu/guard_undo.h"
#include "gpu/guard_watch.h"
#include "util/macros.h"

BARE uint64_t guard_earliest(const struct guard_page *page)
{
	uint64_t first = 0;

	for (int i = 0; i < GUARD_SLOTS; i++) {
		uint64_t at = __atomic_load_n(&page->slots[i].deadline_ns, __ATOMIC_ACQUIRE);

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

BARE static uint64_t now_ns(void)
{
	struct timespec ts = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Out of the holder's terminal, its signals and its files; only the holder's end ends us. */
BARE static void settle(const struct guard_holder *h)
{
	int last = MAX(1023, MAX(h->pidfd, MAX(h->stat_fd, h->life_fd)));
	uint64_t all = ~0ull;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	syscall(SYS_setsid);
	syscall(SYS_prctl, PR_SET_NAME, GUARD_MEMFD_NAME, 0, 0, 0);
	syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (int fd = 0; fd <= last; fd++)
		if (fd != h->pidfd && fd != h->stat_fd && fd != h->life_fd)
			syscall(SYS_close, fd);
#ifdef SYS_close_range
	syscall(SYS_close_range, last + 1, ~0u, 0);
#endif
}

/*
 * True when the holder has ended or runs another program; else after GUARD_LOOK_NS or a
 * message.
 */
BARE static bool holder_gone(const struct guard_holder *h, struct guard_lent *lent)
{
	struct pollfd ends[] = { { .fd = h->life_fd, .events = POLLIN },
				 { .fd = h->pidfd, .events = POLLIN } };
	struct timespec look = { .tv_nsec = (long)GUARD_LOOK_NS };
	long n = syscall(SYS_ppoll, ends, 2, &look, NULL, 0);

	if (n > 0 && ends[0].revents == POLLIN && !ends[1].revents) {
		guard_hear(h->life_fd, lent);
		return false;
	}
	if (n > 0)
		return true;
	return syscall(SYS_getppid) != h->pid; /* our parent: when it ends we get another */
}

BARE static void kill_holder(const struct guard_holder *h)
{
	if (h->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0);
	else if (syscall(SYS_getppid) == h->pid)
		syscall(SYS_kill, h->pid, SIGKILL);
}

BARE bool guard_reads_stopped(const char *stat, size_t n)
{
	size_t end = n;

	/* "PID (NAME) STATE ...": a name may be anything, what follows has no parenthesis */
	while (end > 0 && stat[end - 1] != ')')
		end--;
	return end > 0 && end + 1 < n && (stat[end + 1] == 'T' || stat[end + 1] == 't');
}

BARE static bool is_stopped(const struct guard_holder *h)
{
	char stat[128];
	long n = syscall(SYS_pread64, h->stat_fd, stat, sizeof(stat), 0);

	return n > 0 && guard_reads_stopped(stat, (size_t)n);
}

struct stopped {
	uint64_t looked_ns; /* at the last look */
	uint64_t for_ns;
};

/*
 * A thread that is stopped on its way out of a driver call has all the time of that call left,
 * but will not use it. A look counts for two at most: we may be the one who slept.
 */
BARE static bool stays_stopped(const struct guard_holder *h, uint64_t at_ns, struct stopped *s)
{
	uint64_t since = MIN(at_ns - s->looked_ns, GUARD_LOOK_NS * 2);

	s->looked_ns = at_ns;
	s->for_ns = is_stopped(h) ? s->for_ns + since : 0;
	return s->for_ns > GUARD_SILENCE_NS;
}

BARE bool guard_must_kill(uint64_t first_ns, uint64_t at_ns, bool *late)
{
	bool was_late = *late;

	*late = first_ns && first_ns < at_ns;
	return *late && was_late;
}

BARE void guard_watch(struct guard_page *page, const struct guard_holder *holder)
{
	struct guard_lent lent[GUARD_SLOTS];
	struct stopped stopped = { 0 };
	bool late = false;

	for (int i = 0; i < GUARD_SLOTS; i++)
		lent[i] = (struct guard_lent){ .fd = -1, .pidfd = -1 };
	settle(holder);
	while (!holder_gone(holder, lent)) {
		uint64_t first = guard_earliest(page), now = now_ns();
		bool must = guard_must_kill(first, now, &late);

		if (stays_stopped(holder, now, &stopped) && first)
			must = true;
		if (must)
			kill_holder(holder);
	}
	guard_undo_all(page, lent);
	for (;;)
		syscall(SYS_exit_group, 0);
}
