/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "gpu/guard_watch.h"
#include "util/bare.h"
#include "util/macros.h"

BARE static uint32_t used(const struct guard_page *page)
{
	return MIN(__atomic_load_n(&page->used, __ATOMIC_ACQUIRE), (uint32_t)GUARD_SLOTS);
}

BARE uint64_t guard_earliest(const struct guard_page *page)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < used(page); i++) {
		uint64_t at = __atomic_load_n(&page->slots[i].deadline_ns, __ATOMIC_ACQUIRE);

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

BARE static uint64_t now_ns(void)
{
	struct timespec ts = { 0 };

	bare_call(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Out of the holder's terminal, its signals and its files; only the holder's end ends us. */
BARE static void settle(const struct guard_holder *h)
{
	const int kept[] = { h->pidfd, h->stat_fd, h->life_fd, h->rescue.program };
	uint64_t all = ~0ull;
	int last = 0;

	bare_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	bare_call(SYS_setsid);
	bare_call(SYS_prctl, PR_SET_NAME, GUARD_MEMFD_NAME, 0, 0, 0);
	bare_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		last = MAX(last, kept[i]);
	for (int fd = 0; fd <= last; fd++)
		if (fd != kept[0] && fd != kept[1] && fd != kept[2] && fd != kept[3])
			bare_call(SYS_close, fd);
	bare_close_from(last + 1);
}

/*
 * We share the holder's memory, which is not given up while we are there. Stopped or frozen we
 * could not let go of it, so a timer kills us then, as one of its own kills the holder. But not
 * where we are to undo something: nobody else would.
 */
BARE static void make_timer(int *ret)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };

	if (bare_call(SYS_timer_create, CLOCK_MONOTONIC, &event, ret) < 0)
		*ret = -1;
}

BARE static void set_timer(int timer, uint64_t at_ns)
{
	const struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(at_ns % NSEC_PER_SEC) },
	};

	if (timer >= 0)
		bare_call(SYS_timer_settime, timer, TIMER_ABSTIME, &spec, NULL);
}

BARE static bool is_any_lent(const struct guard_page *page, const struct guard_lent *lent)
{
	for (uint32_t i = 0; i < used(page); i++)
		if (lent[i].fd >= 0)
			return true;
	return false;
}

/* True when the holder has ended or runs another program; else after @ns or a message. */
BARE static bool holder_gone(const struct guard_holder *h, int timer, struct guard_lent *lent,
			     uint64_t ns)
{
	struct pollfd ends[] = { { .fd = h->life_fd, .events = POLLIN },
				 { .fd = h->pidfd, .events = POLLIN } };
	struct timespec look = { .tv_nsec = (long)ns };
	long n = bare_call(SYS_ppoll, ends, 2, &look, NULL, 0);

	if (n > 0 && ends[0].revents == POLLIN && !ends[1].revents) {
		set_timer(timer, now_ns() + GUARD_OWN_NS); /* something is armed from now on */
		guard_hear(h->life_fd, lent);
		return false;
	}
	if (n > 0)
		return true;
	return bare_call(SYS_getppid) != h->pid; /* our parent: when it ends we get another */
}

BARE static void kill_holder(const struct guard_holder *h)
{
	if (h->pidfd >= 0)
		bare_call(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0);
	else if (bare_call(SYS_getppid) == h->pid)
		bare_call(SYS_kill, h->pid, SIGKILL);
}

BARE char guard_read_state(const char *stat, size_t n)
{
	size_t end = n;

	/* "PID (NAME) STATE ...": a name may be anything, what follows has no parenthesis */
	while (end > 0 && stat[end - 1] != ')')
		end--;
	return end > 0 && end + 1 < n ? stat[end + 1] : '\0';
}

BARE static bool is_stopped(const struct guard_holder *h)
{
	char stat[128], state;
	long n = bare_call(SYS_pread64, h->stat_fd, stat, sizeof(stat), 0);

	state = n > 0 ? guard_read_state(stat, (size_t)n) : '\0';
	return state == 'T' || state == 't'; /* by a signal, or by a debugger */
}

struct stopped {
	uint64_t looked_ns; /* at the last look */
	uint64_t for_ns;
};

/*
 * A thread that is stopped on its way out of a driver call has all the time of that call left,
 * but will not use it. A look counts for what was meant to be between two, and one more: we may be
 * the one who slept.
 */
BARE static bool stays_stopped(const struct guard_holder *h, uint64_t at_ns, uint64_t meant_ns,
			       struct stopped *s)
{
	uint64_t since = MIN(at_ns - s->looked_ns, meant_ns + GUARD_LOOK_NS);

	s->looked_ns = at_ns;
	s->for_ns = is_stopped(h) ? s->for_ns + since : 0;
	return s->for_ns > GUARD_SILENCE_NS;
}

struct ending { /* of a holder that was killed */
	uint64_t killed_ns; /* 0: it was not */
	bool undone;
};

BARE bool guard_must_kill(uint64_t first_ns, uint64_t at_ns, bool *late)
{
	bool was_late = *late;

	*late = first_ns && first_ns < at_ns;
	return *late && was_late;
}

/* A driver call may last longer than silence may: then it is seen to that nobody is stopped. */
BARE uint64_t guard_next_look(uint64_t first_ns, uint64_t at_ns, bool stopped)
{
	uint64_t left = first_ns - at_ns;

	if (!first_ns)
		return GUARD_SELDOM_NS;
	if (stopped || first_ns <= at_ns || left > GUARD_SILENCE_NS)
		return GUARD_LOOK_NS;
	return MIN(left + 1, GUARD_SELDOM_NS);
}

/* In a process with memory of its own: what the driver does with ours need not be waited for. */
BARE static void rescue(const struct guard_rescue *r)
{
	const char *const none[] = { NULL };
	uint64_t no_signals = 0;

	if (bare_call(SYS_clone, 0, 0, 0, 0, 0) != 0)
		return;
	bare_call(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
	bare_call(SYS_execveat, r->program, "", r->argv, none, AT_EMPTY_PATH);
	for (;;)
		bare_call(SYS_exit_group, 127);
}

/*
 * Kills the holder. One of its threads may be where SIGKILL does not reach it; what it holds is let
 * go without it then, and once more when it has ended, as it may have been in the midst of a call.
 */
BARE static void end_holder(const struct guard_holder *h, struct guard_page *page,
			    struct guard_lent *lent, struct ending *e, uint64_t at_ns)
{
	kill_holder(h);
	if (!e->killed_ns)
		e->killed_ns = at_ns;
	if (e->undone || at_ns - e->killed_ns < GUARD_STUCK_NS)
		return;
	e->undone = true;
	guard_undo_all(page, lent);
}

BARE void guard_watch(struct guard_page *page, const struct guard_holder *holder)
{
	struct guard_lent lent[GUARD_SLOTS];
	struct stopped stopped = { 0 };
	struct ending ending = { 0 };
	uint64_t look_ns = GUARD_LOOK_NS;
	bool late = false;
	int timer;

	for (int i = 0; i < GUARD_SLOTS; i++)
		lent[i] = (struct guard_lent){ .fd = -1, .pidfd = -1 };
	make_timer(&timer);
	settle(holder);
	while (!holder_gone(holder, timer, lent, look_ns)) {
		uint64_t first = guard_earliest(page), now = now_ns();
		bool must = guard_must_kill(first, now, &late);

		set_timer(timer, first && !is_any_lent(page, lent) ? now + GUARD_OWN_NS : 0);
		if (stays_stopped(holder, now, look_ns, &stopped) && first)
			must = true;
		if (must || ending.killed_ns)
			end_holder(holder, page, lent, &ending, now);
		look_ns = guard_next_look(first, now, stopped.for_ns > 0 || ending.killed_ns);
	}
	if (holder->rescue.program >= 0 && guard_earliest(page))
		rescue(&holder->rescue);
	set_timer(timer, 0);
	guard_undo_all(page, lent);
	for (;;)
		bare_call(SYS_exit_group, 0);
}
