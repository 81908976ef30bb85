/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "gpu/kfd/tracer.h"
#include "util/macros.h"

/* How long a target may take to stop for a clean detach before its tracer just ends. */
#define DETACH_WAIT_MS 200
/* How long a stop may go unnoticed that the host program's own wait(2) has taken. */
#define LOOK_MS 250

struct call {
	int (*fn)(void *arg);
	void *arg;
	int result;
	bool done;
};

struct tracer {
	struct gkfd *k;
	pid_t pid;
	const struct tracer_ops *ops;
	void *user;

	pthread_t thread, waiter;
	bool has_thread, has_waiter;
	int wake_fd; /* a call is waiting, or it is time to go */
	int stop_fd; /* the waiter has seen a stop */
	int pid_fd; /* -1: kernel has none, the waiter tells */
	sem_t look_again; /* the waiter may look for the next stop */

	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct call *call;
	STAILQ_HEAD(, tracer_order) orders;
	bool leaving;

	/* the tracer thread's */
	bool seized;
	bool ended;
};

static const struct gkfd_trace_ops *trace_of(const struct tracer *tr)
{
	return tr->k->transport->trace;
}

static void ring(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void hush(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static void *waiter_main(void *arg)
{
	struct tracer *tr = arg;
	int r;

	do {
		r = trace_of(tr)->peek(tr->k->data, tr->pid);
		ring(tr->stop_fd);
		while (sem_wait(&tr->look_again) < 0 && errno == EINTR)
			;
	} while (r >= 0);
	return NULL;
}

static void set_ended(struct tracer *tr, enum tracer_end how)
{
	if (tr->ended)
		return;
	tr->ended = true;
	if (tr->ops)
		tr->ops->ended(tr->user, how);
}

static bool still_there(struct tracer *tr)
{
	struct pollfd p = { .fd = tr->pid_fd, .events = POLLIN };

	if (tr->pid_fd >= 0)
		return poll(&p, 1, 0) == 0;
	return kill(tr->pid, 0) == 0 || errno == EPERM;
}

/*
 * A stop of a seized process: PTRACE_EVENT_STOP with a stopping signal is job control, and
 * PTRACE_LISTEN lets it stay stopped until SIGCONT; with SIGTRAP it is over. Everything else
 * is a signal on its way, which we hand on.
 */
static void pass_on(struct tracer *tr, int status)
{
	const struct gkfd_trace_ops *trace = trace_of(tr);
	int sig = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_EXEC:
		/* Let go here and now: nobody would pass the new program's signals on. */
		trace->detach(tr->k->data, tr->pid, 0);
		set_ended(tr, TRACER_EXECED);
		break;
	case PTRACE_EVENT_STOP:
		if (sig == SIGTRAP)
			trace->cont(tr->k->data, tr->pid, 0);
		else
			trace->listen(tr->k->data, tr->pid);
		break;
	default:
		trace->cont(tr->k->data, tr->pid, sig);
	}
}

static void take_stops(struct tracer *tr)
{
	int status, r = 0;

	while (!tr->ended && (r = trace_of(tr)->reap(tr->k->data, tr->pid, &status)) > 0) {
		if (WIFSTOPPED(status))
			pass_on(tr, status);
		else
			set_ended(tr, TRACER_EXITED);
	}
	/* Gone without an exit: a thread other than the leader has called exec. */
	if (r == -ECHILD)
		set_ended(tr, still_there(tr) ? TRACER_EXECED : TRACER_EXITED);
}

static bool take_call(struct tracer *tr)
{
	struct call *call;
	bool leaving;
	int result;

	pthread_mutex_lock(&tr->lock);
	call = tr->call;
	leaving = tr->leaving && STAILQ_EMPTY(&tr->orders);
	pthread_mutex_unlock(&tr->lock);
	if (!call)
		return leaving;

	result = call->fn(call->arg);
	pthread_mutex_lock(&tr->lock);
	call->result = result;
	call->done = true;
	tr->call = NULL;
	pthread_cond_signal(&tr->answered);
	pthread_mutex_unlock(&tr->lock);
	return leaving;
}

static struct tracer_order *next_order(struct tracer *tr)
{
	struct tracer_order *order;

	pthread_mutex_lock(&tr->lock);
	order = STAILQ_FIRST(&tr->orders);
	if (order)
		STAILQ_REMOVE_HEAD(&tr->orders, link);
	pthread_mutex_unlock(&tr->lock);
	return order;
}

static void run_orders(struct tracer *tr)
{
	struct tracer_order *order;

	while ((order = next_order(tr)))
		order->run(order);
}

static bool is_tracing(const struct tracer *tr)
{
	return tr->seized && !tr->ended;
}

static int next_look_ms(const struct tracer *tr)
{
	int ms = tr->ops ? tr->ops->timeout_ms(tr->user) : -1;

	if (tr->ended || !tr->has_waiter)
		return ms;
	return ms < 0 ? LOOK_MS : MIN(ms, LOOK_MS);
}

static void loop(struct tracer *tr)
{
	bool leaving = false;

	while (!leaving) {
		struct pollfd fds[3 + TRACER_MAX_FDS] = {
			{ .fd = tr->wake_fd, .events = POLLIN },
			{ .fd = is_tracing(tr) ? tr->stop_fd : -1, .events = POLLIN },
			{ .fd = is_tracing(tr) ? tr->pid_fd : -1, .events = POLLIN },
		};
		size_t n = tr->ops ? tr->ops->watch(tr->user, &fds[3]) : 0;

		if (poll(fds, 3 + n, next_look_ms(tr)) < 0)
			continue; /* EINTR: the host program's signal, not for us */
		if (fds[0].revents) {
			hush(tr->wake_fd);
			run_orders(tr); /* somebody may wait for the GPU: before all else */
		}
		if (fds[1].revents || fds[2].revents || tr->has_waiter)
			take_stops(tr);
		if (fds[1].revents) {
			hush(tr->stop_fd);
			sem_post(&tr->look_again);
		}
		if (tr->ops)
			tr->ops->turn(tr->user, &fds[3], n);
		if (fds[0].revents)
			leaving = take_call(tr);
	}
}

/* One stop to leave by, if it comes in time; a signal on its way goes along. */
static void detach(struct tracer *tr)
{
	const struct gkfd_trace_ops *trace = trace_of(tr);
	struct pollfd stop = { .fd = tr->stop_fd, .events = POLLIN };
	int status, sig = 0;

	if (!is_tracing(tr))
		return;
	if (!tr->has_waiter) {
		trace->detach(tr->k->data, tr->pid, 0);
		return;
	}
	if (trace->interrupt(tr->k->data, tr->pid) < 0)
		return;
	poll(&stop, 1, DETACH_WAIT_MS);
	if (trace->reap(tr->k->data, tr->pid, &status) <= 0 || !WIFSTOPPED(status))
		return; /* stuck in the kernel: the end of this thread will detach it */
	if (status >> 16 == 0)
		sig = WSTOPSIG(status);
	trace->detach(tr->k->data, tr->pid, sig);
}

static void end_waiter(struct tracer *tr)
{
	if (!tr->has_waiter)
		return;
	pthread_cancel(tr->waiter);
	pthread_join(tr->waiter, NULL);
	tr->has_waiter = false;
}

/* pthread_cancel() loads this when first used, and ends the program where it cannot. */
static int load_unwinder(void)
{
	errno = 0;
	if (dlopen("libgcc_s.so.1", RTLD_NOW))
		return 0;
	return errno ? -errno : -ELIBACC;
}

int tracer_seize(struct tracer *tr)
{
	int r = trace_of(tr)->peek ? load_unwinder() : 0;

	if (r >= 0)
		r = trace_of(tr)->seize(tr->k->data, tr->pid);
	if (r < 0)
		return r;
	if (trace_of(tr)->peek) {
		r = pthread_create(&tr->waiter, NULL, waiter_main, tr);
		if (r != 0)
			return -r; /* the end of this thread undoes the seizure */
		tr->has_waiter = true;
	}
	tr->seized = true;
	/* The pid may have passed on since the tracer was made, and this be somebody else. */
	return tr->pid_fd < 0 || still_there(tr) ? 0 : -ESRCH;
}

void tracer_let_go(struct tracer *tr)
{
	detach(tr);
	end_waiter(tr);
	tr->seized = false;
}

void tracer_run(struct tracer *tr)
{
	loop(tr);
	if (tr->ops)
		tr->ops->leave(tr->user);
	tracer_let_go(tr);
	if (tr->ops && tr->ops->gone)
		tr->ops->gone(tr->user);
}

static void *thread_main(void *arg)
{
	tracer_run(arg);
	return NULL;
}

static void tracer_free(struct tracer *tr)
{
	closep(&tr->wake_fd);
	closep(&tr->stop_fd);
	closep(&tr->pid_fd);
	sem_destroy(&tr->look_again);
	pthread_cond_destroy(&tr->answered);
	pthread_mutex_destroy(&tr->lock);
	free(tr);
}

int tracer_new(struct gkfd *k, pid_t pid, const struct tracer_ops *ops, void *user,
	       struct tracer **ret)
{
	struct tracer *tr = calloc(1, sizeof(*tr));

	if (!tr)
		return -ENOMEM;
	*tr = (struct tracer){ .k = k, .pid = pid, .ops = ops, .user = user };
	pthread_mutex_init(&tr->lock, NULL);
	pthread_cond_init(&tr->answered, NULL);
	sem_init(&tr->look_again, 0, 0);
	STAILQ_INIT(&tr->orders);
	tr->pid_fd = k->transport->trace->pidfd(k->data, pid);
	tr->wake_fd = eventfd(0, EFD_CLOEXEC);
	tr->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (tr->wake_fd < 0 || tr->stop_fd < 0) {
		int r = -errno;

		tracer_free(tr);
		return r;
	}
	*ret = tr;
	return 0;
}

/* Waits until the thread has answered @call; the lock is held. */
static int await(struct tracer *tr, const struct call *call)
{
	while (!call->done)
		pthread_cond_wait(&tr->answered, &tr->lock);
	return call->result;
}

/* A thread that takes no signals: those are for the host program's own. */
int tracer_launch(struct tracer *tr)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&tr->thread, NULL, thread_main, tr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	tr->has_thread = r == 0;
	return -r;
}

static int do_seize(void *arg)
{
	return tracer_seize(arg);
}

int tracer_start(struct gkfd *k, pid_t pid, const struct tracer_ops *ops, void *user,
		 struct tracer **ret)
{
	struct tracer *tr = NULL;
	int r = tracer_new(k, pid, ops, user, &tr);

	if (r < 0)
		return r;
	r = tracer_launch(tr);
	if (r >= 0)
		r = tracer_call(tr, do_seize, tr);
	if (r < 0) {
		tracer_stop(tr);
		return r;
	}
	*ret = tr;
	return 0;
}

int tracer_call(struct tracer *tr, int (*fn)(void *arg), void *arg)
{
	struct call call = { .fn = fn, .arg = arg };
	int r;

	pthread_mutex_lock(&tr->lock);
	tr->call = &call;
	ring(tr->wake_fd);
	r = await(tr, &call);
	pthread_mutex_unlock(&tr->lock);
	return r;
}

void tracer_post(struct tracer *tr, struct tracer_order *order)
{
	pthread_mutex_lock(&tr->lock);
	STAILQ_INSERT_TAIL(&tr->orders, order, link);
	pthread_mutex_unlock(&tr->lock);
	ring(tr->wake_fd);
}

void tracer_leave(struct tracer *tr)
{
	pthread_mutex_lock(&tr->lock);
	tr->leaving = true;
	ring(tr->wake_fd);
	pthread_mutex_unlock(&tr->lock);
}

void tracer_join(struct tracer *tr)
{
	if (tr->has_thread)
		pthread_join(tr->thread, NULL);
	tracer_free(tr);
}

void tracer_stop(struct tracer *tr)
{
	tracer_leave(tr);
	tracer_join(tr);
}
