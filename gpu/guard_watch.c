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
BARE static void settle(int holder_fd, int life_fd)
{
	int last = MAX(1023, MAX(holder_fd, life_fd));
	uint64_t all = ~0ull;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	syscall(SYS_setsid);
	syscall(SYS_prctl, PR_SET_NAME, GUARD_MEMFD_NAME, 0, 0, 0);
	syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (int fd = 0; fd <= last; fd++)
		if (fd != holder_fd && fd != life_fd)
			syscall(SYS_close, fd);
#ifdef SYS_close_range
	syscall(SYS_close_range, last + 1, ~0u, 0);
#endif
}

/*
 * True when the holder has ended or runs another program; else after GUARD_LOOK_NS or a
 * message.
 */
BARE static bool holder_gone(pid_t holder, int holder_fd, int life_fd, struct guard_lent *lent)
{
	struct pollfd ends[] = { { .fd = life_fd, .events = POLLIN },
				 { .fd = holder_fd, .events = POLLIN } };
	struct timespec look = { .tv_nsec = (long)GUARD_LOOK_NS };
	long n = syscall(SYS_ppoll, ends, 2, &look, NULL, 0);

	if (n > 0 && ends[0].revents == POLLIN && !ends[1].revents) {
		guard_hear(life_fd, lent);
		return false;
	}
	if (n > 0)
		return true;
	return syscall(SYS_getppid) != holder; /* our parent: when it ends we get another */
}

BARE static void kill_holder(pid_t holder, int holder_fd)
{
	if (holder_fd >= 0)
		syscall(SYS_pidfd_send_signal, holder_fd, SIGKILL, NULL, 0);
	else if (syscall(SYS_getppid) == holder)
		syscall(SYS_kill, holder, SIGKILL);
}

BARE bool guard_must_kill(uint64_t first_ns, uint64_t at_ns, bool *late)
{
	bool was_late = *late;

	*late = first_ns && first_ns < at_ns;
	return *late && was_late;
}

BARE void guard_watch(struct guard_page *page, pid_t holder, int holder_fd, int life_fd)
{
	struct guard_lent lent[GUARD_SLOTS];
	bool late = false;

	for (int i = 0; i < GUARD_SLOTS; i++)
		lent[i] = (struct guard_lent){ .fd = -1, .pidfd = -1 };
	settle(holder_fd, life_fd);
	while (!holder_gone(holder, holder_fd, life_fd, lent)) {
		if (guard_must_kill(guard_earliest(page), now_ns(), &late))
			kill_holder(holder, holder_fd);
	}
	guard_undo_all(page, lent);
	for (;;)
		syscall(SYS_exit_group, 0);
}
