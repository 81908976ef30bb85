/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "gpu/guard.h"
#include "gpu/guard_watch.h"
#include "util/bare.h"
#include "util/clock.h"
#include "util/send_fds.h"

/* The kernel's own timer comes after the guard had its chance, which looks every GUARD_LOOK_NS. */
#define TIMER_AFTER_NS (GUARD_LOOK_NS * 3)
#define TIMER_EARLY_NS (GUARD_LOOK_NS / 2)
#define ANSWER_S 1 /* a guard that is well answers within a look */
#define GUARD_STACK (64u << 10)

struct guard {
	struct guard_holder holder; /* as the guard knows us */
	char *stack; /* its own */
	struct guard_page *page;
	int page_fd;
	int pidfd; /* of the guard process */
	int life_fd; /* closed by our end and by exec: both end the guard; messages go through it */
	pid_t pid;
	timer_t timer;
	uint64_t timer_ns; /* what it is set to; 0: off */
	bool has_timer;
	pthread_mutex_t lock; /* slots being taken, timer being set */
	pthread_mutex_t talk; /* one message and its answer */
	bool deaf; /* an answer did not come: what comes now may be for another question */
};

static void set_timer(struct guard *g, uint64_t at_ns)
{
	struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(at_ns % NSEC_PER_SEC) },
	};

	if (g->has_timer)
		timer_settime(g->timer, TIMER_ABSTIME, &spec, NULL);
}

/*
 * The timer follows the earliest deadline of all threads; without one it is off. It is not set
 * anew for less than it may come too early.
 */
static void follow_deadlines(struct guard *g)
{
	uint64_t first = guard_earliest(g->page), at = first ? first + TIMER_AFTER_NS : 0;

	if (at >= g->timer_ns && at - g->timer_ns < TIMER_EARLY_NS)
		return;
	g->timer_ns = at;
	set_timer(g, at);
}

static int make_page(struct guard *g)
{
	g->page_fd = memfd_create(GUARD_MEMFD_NAME, MFD_CLOEXEC);
	if (g->page_fd < 0)
		return -errno;
	if (ftruncate(g->page_fd, sizeof(*g->page)) < 0)
		return -errno;
	g->page = mmap(NULL, sizeof(*g->page), PROT_READ | PROT_WRITE, MAP_SHARED, g->page_fd, 0);
	if (g->page == MAP_FAILED) {
		g->page = NULL;
		return -errno;
	}
	g->page->magic = GUARD_MAGIC;
	g->page->holder = getpid();
	return 0;
}

static int make_timer(struct guard *g)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };

	if (timer_create(CLOCK_MONOTONIC, &event, &g->timer) < 0)
		return -errno;
	g->has_timer = true;
	return 0;
}

BARE static int run_guard(void *user)
{
	struct guard *g = user;

	guard_watch(g->page, &g->holder);
}

/*
 * A bare clone without an exit signal: no SIGCHLD for a program that merely uses the library,
 * and no fork handlers. The child may use nothing but system calls.
 */
static pid_t clone_guard(struct guard *g)
{
	long pid;

	if (BARE_MAY_SHARE_MEMORY)
		return clone(run_guard, g->stack + GUARD_STACK, CLONE_VM, g);
	pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		run_guard(g);
	return (pid_t)pid;
}

static int make_stack(struct guard *g)
{
	void *stack = mmap(NULL, GUARD_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		return -errno;
	g->stack = stack;
	return 0;
}

static int make_process(struct guard *g)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	_cleanup_close_ int stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int settled = -1, life = -1;
	int fds[2];
	char none;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	life = fds[0];
	g->life_fd = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	settled = fds[0];
	g->holder.pid = getpid();
	g->holder.pidfd = pidfd;
	g->holder.stat_fd = stat_fd;
	g->holder.life_fd = life;
	pid = clone_guard(g);
	close(fds[1]);
	if (pid < 0)
		return -errno;
	g->pid = pid;
	g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
	/* The guard closes all it inherited once it stands; nothing is ever written. */
	while (read(settled, &none, 1) < 0 && errno == EINTR)
		;
	return guard_alive(g) ? 0 : -EOWNERDEAD;
}

bool guard_is_possible(void)
{
	return getpid() != 1;
}

int guard_start(struct guard **ret)
{
	return guard_start_with(&(struct guard_rescue){ .program = -1 }, ret);
}

int guard_start_with(const struct guard_rescue *rescue, struct guard **ret)
{
	struct guard *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->holder.rescue = *rescue;
	g->page_fd = g->pidfd = g->life_fd = -1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->talk, NULL);

	r = make_page(g);
	if (r >= 0)
		r = make_timer(g);
	if (r >= 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r >= 0)
		r = make_stack(g);
	if (r >= 0)
		r = make_process(g);
	if (r < 0) {
		guard_stop(g);
		return r;
	}
	*ret = g;
	return 0;
}

static void end_process(struct guard *g)
{
	if (g->pid <= 0)
		return;
	kill(g->pid, SIGKILL); /* our own unreaped child: the pid is still its */
	while (waitpid(g->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

void guard_stop(struct guard *g)
{
	if (!g)
		return;
	if (g->has_timer)
		timer_delete(g->timer);
	end_process(g);
	if (g->page)
		munmap(g->page, sizeof(*g->page));
	if (g->stack)
		munmap(g->stack, GUARD_STACK);
	closep(&g->page_fd);
	closep(&g->pidfd);
	closep(&g->life_fd);
	pthread_mutex_destroy(&g->talk);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

int guard_fd(const struct guard *g)
{
	return g->pidfd;
}

pid_t guard_pid(const struct guard *g)
{
	return g->pid;
}

bool guard_alive(const struct guard *g)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)g->pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return false;
	return info.si_pid == 0;
}

static int take_slot(struct guard *g, pid_t target, uint64_t allow_ns)
{
	for (int i = target ? 1 : 0; i < GUARD_SLOTS; i++) {
		struct guard_slot *s = &g->page->slots[i];

		if (s->deadline_ns)
			continue;
		__atomic_store_n(&s->target, target, __ATOMIC_RELAXED);
		__atomic_store_n(&s->deadline_ns, monotonic_ns() + allow_ns, __ATOMIC_RELEASE);
		if ((uint32_t)i >= g->page->used)
			__atomic_store_n(&g->page->used, (uint32_t)i + 1, __ATOMIC_RELEASE);
		return i;
	}
	return -ENOSPC;
}

static void set_deadline(struct guard *g, int slot, uint64_t at_ns)
{
	pthread_mutex_lock(&g->lock);
	__atomic_store_n(&g->page->slots[slot].deadline_ns, at_ns, __ATOMIC_RELEASE);
	follow_deadlines(g);
	pthread_mutex_unlock(&g->lock);
}

void guard_beat(struct guard *g, int slot, uint64_t allow_ns)
{
	set_deadline(g, slot, monotonic_ns() + allow_ns);
}

static int send_message(struct guard *g, int slot, const int *fds, size_t n_fds)
{
	struct guard_message message = { .slot = slot };
	struct timeval wait = { .tv_sec = ANSWER_S };
	ssize_t r;

	setsockopt(g->life_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	setsockopt(g->life_fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (send_fds(g->life_fd, &message, sizeof(message), fds, n_fds, 0) < 0)
		return -EOWNERDEAD;
	do {
		r = recv(g->life_fd, &message, sizeof(message), 0);
	} while (r < 0 && errno == EINTR);
	return r == sizeof(message) ? message.slot : -EOWNERDEAD;
}

/* Tells the guard about a slot and hears that it has understood. */
static int tell(struct guard *g, int slot, const int *fds, size_t n_fds)
{
	int r = -EOWNERDEAD;

	pthread_mutex_lock(&g->talk);
	if (!g->deaf)
		r = send_message(g, slot, fds, n_fds);
	g->deaf = r == -EOWNERDEAD;
	pthread_mutex_unlock(&g->talk);
	return r < 0 ? r : 0;
}

/* The guard must know: what it does about being stopped itself, it does only while it has to. */
int guard_arm(struct guard *g, pid_t target, uint64_t allow_ns)
{
	int slot;

	if (!guard_alive(g))
		return -EOWNERDEAD;
	pthread_mutex_lock(&g->lock);
	slot = take_slot(g, target, allow_ns);
	follow_deadlines(g);
	pthread_mutex_unlock(&g->lock);
	if (slot >= 0 && tell(g, GUARD_ARMED, NULL, 0) == -EOWNERDEAD) {
		set_deadline(g, slot, 0);
		return -EOWNERDEAD;
	}
	return slot;
}

static bool call_makes_sense(const struct guard_call *c)
{
	if (c->pointer_at == GUARD_NO_POINTER)
		return true;
	return c->pointer_at <= GUARD_UNDO_ARG_MAX - sizeof(uint64_t) &&
	       c->data_len <= GUARD_DATA && c->data_at <= GUARD_DATA - c->data_len;
}

/* What is not used is not touched: the page is large, and its memory there only where needed. */
static int copy_undo(struct guard_undo *to, const struct guard_undo *undo)
{
	if (undo->n_calls > GUARD_CALLS)
		return -EINVAL;
	for (uint32_t i = 0; i < undo->n_calls; i++)
		if (!call_makes_sense(&undo->calls[i]))
			return -EINVAL;
	to->traced = undo->traced;
	to->n_calls = undo->n_calls;
	for (uint32_t i = 0; i < undo->n_calls; i++) {
		const struct guard_call *c = &undo->calls[i];

		to->calls[i] = *c;
		if (c->pointer_at != GUARD_NO_POINTER)
			memcpy(to->data + c->data_at, undo->data + c->data_at, c->data_len);
	}
	return 0;
}

int guard_entrust(struct guard *g, int slot, int fd, int pidfd, const struct guard_undo *undo)
{
	const int fds[GUARD_MESSAGE_FDS] = { fd, pidfd };
	struct guard_slot *s = &g->page->slots[slot];
	uint32_t next = !s->undo;
	int r = copy_undo(&g->page->undo[slot][next], undo);

	if (r < 0)
		return r;
	__atomic_store_n(&s->undo, next, __ATOMIC_SEQ_CST);
	return tell(g, slot, fds, ARRAY_SIZE(fds));
}

void guard_set_due(struct guard *g, int slot, uint32_t call, bool due)
{
	struct guard_undo *undo = &g->page->undo[slot][g->page->slots[slot].undo];

	__atomic_store_n(&undo->calls[call].due, due, __ATOMIC_SEQ_CST);
}

static void forget(struct guard *g, int slot)
{
	struct guard_undo *undo = &g->page->undo[slot][g->page->slots[slot].undo];

	if (!undo->n_calls)
		return;
	__atomic_store_n(&undo->n_calls, 0, __ATOMIC_SEQ_CST);
	tell(g, slot, NULL, 0);
}

void guard_disarm(struct guard *g, int slot)
{
	forget(g, slot);
	__atomic_store_n(&g->page->slots[slot].target, 0, __ATOMIC_RELAXED);
	set_deadline(g, slot, 0);
}
