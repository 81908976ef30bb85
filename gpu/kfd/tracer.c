/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "gpu/acting.h"
#include "gpu/kfd/tracer.h"
#include "util/macros.h"

/* How long a target may take to stop for a clean detach before its tracer just ends. */
#define DETACH_WAIT_MS 200
/* How long a stop may go unnoticed that the host program's own wait(2) has taken. */
#define LOOK_MS 250

struct tracer {
	struct gkfd *k;
	pid_t pid;
	const struct tracer_ops *ops;
	void *user;

	pthread_t thread, waiter;
	bool has_thread, has_waiter;
	struct mailbox orders;
	struct tracer_order leave;
	int stop_fd; /* the waiter has seen a stop */
	int pid_fd; /* -1: kernel has none, the waiter tells */
	sem_t look_again; /* the waiter may look for the next stop */

	/* the tracer thread's */
	bool leaving;
	bool seized;
	bool ended;
};

static const struct gkfd_trace_ops *trace_of(const struct tracer *tr)
{
	return tr->k->transport->trace;
}

static void *waiter_main(void *arg)
{
	struct tracer *tr = arg;
	int r;

	do {
		r = trace_of(tr)->peek(tr->k->data, tr->pid);
		eventfd_write(tr->stop_fd, 1);
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

static void run_orders(struct tracer *tr)
{
	struct mail *mail;

	while ((mail = mailbox_take(&tr->orders))) {
		struct tracer_order *order = mail_of(mail, struct tracer_order, mail);

		order->run(order);
	}
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
	while (!tr->leaving) {
		struct pollfd fds[3 + TRACER_MAX_FDS] = {
			{ .fd = tr->orders.fd, .events = POLLIN },
			{ .fd = is_tracing(tr) ? tr->stop_fd : -1, .events = POLLIN },
			{ .fd = is_tracing(tr) ? tr->pid_fd : -1, .events = POLLIN },
		};
		size_t n = tr->ops ? tr->ops->watch(tr->user, &fds[3]) : 0;
		eventfd_t stops;

		if (poll(fds, 3 + n, next_look_ms(tr)) < 0)
			continue; /* EINTR: the host program's signal, not for us */
		/* Somebody may wait for the GPU: before all else. */
		if (fds[0].revents)
			run_orders(tr);
		if (tr->ops)
			tr->ops->orders(tr->user, &fds[3]);
		if (fds[1].revents || fds[2].revents || tr->has_waiter)
			take_stops(tr);
		if (fds[1].revents) {
			eventfd_read(tr->stop_fd, &stops);
			sem_post(&tr->look_again);
		}
		if (tr->ops)
			tr->ops->turn(tr->user, &fds[3], n);
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
	mailbox_destroy(&tr->orders);
	closep(&tr->stop_fd);
	closep(&tr->pid_fd);
	sem_destroy(&tr->look_again);
	free(tr);
}

int tracer_new(struct gkfd *k, pid_t pid, const struct tracer_ops *ops, void *user,
	       struct tracer **ret)
{
	struct tracer *tr = calloc(1, sizeof(*tr));
	int r;

	if (!tr)
		return -ENOMEM;
	*tr = (struct tracer){ .k = k, .pid = pid, .ops = ops, .user = user };
	sem_init(&tr->look_again, 0, 0);
	tr->pid_fd = k->transport->trace->pidfd(k->data, pid);
	r = mailbox_init(&tr->orders);
	tr->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r >= 0 && tr->stop_fd < 0)
		r = -errno;
	if (r < 0)
		tracer_free(tr);
	else
		*ret = tr;
	return r;
}

/* A thread that takes no signals: those are for the host program's own. */
int tracer_launch(struct tracer *tr)
{
	int r = acting_thread(&tr->thread, NULL, thread_main, tr);

	tr->has_thread = r == 0;
	return r;
}

void tracer_post(struct tracer *tr, struct tracer_order *order)
{
	mailbox_put(&tr->orders, &order->mail);
}

struct call {
	struct tracer_order order;
	int (*fn)(void *arg);
	void *arg;
	int result;
	sem_t done;
};

static void run_call(struct tracer_order *order)
{
	struct call *call = (struct call *)order;

	call->result = call->fn(call->arg);
	sem_post(&call->done);
}

int tracer_call(struct tracer *tr, int (*fn)(void *arg), void *arg)
{
	struct call call = { .order.run = run_call, .fn = fn, .arg = arg };

	sem_init(&call.done, 0, 0);
	tracer_post(tr, &call.order);
	while (sem_wait(&call.done) < 0)
		; /* EINTR */
	sem_destroy(&call.done);
	return call.result;
}

static void run_leave(struct tracer_order *order)
{
	container_of(order, struct tracer, leave)->leaving = true;
}

void tracer_leave(struct tracer *tr)
{
	if (tr->leave.run)
		return;
	tr->leave.run = run_leave;
	tracer_post(tr, &tr->leave);
}

void tracer_stop(struct tracer *tr)
{
	tracer_leave(tr);
	if (tr->has_thread)
		pthread_join(tr->thread, NULL);
	tracer_free(tr);
}
