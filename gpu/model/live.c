/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>

#include "gpu/model/driver.h"
#include "gpu/model/live.h"
#include "gpu/model/transport.h"

struct live {
	struct model_device device;
	unsigned int refs; /* under the device's lock */
	unsigned int clients; /* of them, transports */
	void *kernel; /* for the machine's /proc */
	int timer_fd;
	uint64_t armed_ns; /* UINT64_MAX: not */
	bool notify;
	int64_t expected; /* pieces of work that somebody waits for */
};

static struct live *live_of(void *data)
{
	return data; /* begins with its device */
}

/* ---- time ---- */

static void entered(struct model_device *d)
{
	uint64_t now_ns = gkfd_syscall_now_ns(NULL), model_ns = model_now_ns(d->m);

	if (now_ns > model_ns)
		model_advance(d->m, now_ns - model_ns);
}

/* What the model told while it was ahead is for later as well. */
static uint64_t wake_at_ns(const struct live *l)
{
	if (l->notify)
		return model_now_ns(l->device.m);
	return l->expected > 0 ? model_next_ns(l->device.m) : UINT64_MAX;
}

static void leaving(struct model_device *d)
{
	struct live *l = live_of(d);
	uint64_t at_ns = wake_at_ns(l);
	struct itimerspec spec = { 0 };

	if (at_ns == l->armed_ns)
		return;
	if (at_ns != UINT64_MAX)
		spec.it_value = (struct timespec){
			.tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
			.tv_nsec = (long)(at_ns % NSEC_PER_SEC),
		};
	if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
		l->armed_ns = at_ns;
}

static void catch_up(struct model_device *d, uint64_t until_ns)
{
	uint64_t now_ns = gkfd_syscall_now_ns(NULL);

	(void)d;
	if (now_ns < until_ns)
		gkfd_syscall_wait(NULL, NULL, 0, until_ns - now_ns);
}

/* ---- its life ---- */

static void live_free(struct live *l)
{
	if (l->kernel)
		gkfd_transport_syscall.close(l->kernel);
	closep(&l->timer_fd);
	model_device_done(&l->device);
	free(l);
}

static void live_freep(struct live **l)
{
	if (*l)
		live_free(*l);
}

/* The model's own name for us makes room for our real one. */
static int move_in(struct model *m)
{
	struct model_proc_spec self = { .pid = getpid(), .comm = "gpreemptd" };

	model_proc_exit(m, MODEL_SELF_PID);
	return model_proc_start(m, &self);
}

int live_new(const char *spec, struct live **ret, char **ret_why)
{
	_cleanup_(live_freep) struct live *l = NULL;
	struct model *m = NULL;
	int r;

	r = model_new_empty(spec, gkfd_syscall_now_ns(NULL), &m, ret_why);
	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (!l) {
		model_free(m);
		return -ENOMEM;
	}
	model_device_init(&l->device, m, getpid());
	l->device.entered = entered;
	l->device.leaving = leaving;
	l->device.catch_up = catch_up;
	l->refs = 1;
	l->armed_ns = UINT64_MAX;
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->timer_fd < 0)
		return -errno;
	l->kernel = gkfd_syscall_new(NULL);
	if (!l->kernel)
		return -ENOMEM;
	r = move_in(m);
	if (r < 0)
		return r;
	*ret = steal_ptr(&l);
	return 0;
}

void live_unref(struct live *l)
{
	unsigned int left;

	if (!l)
		return;
	pthread_mutex_lock(&l->device.lock);
	left = --l->refs;
	pthread_mutex_unlock(&l->device.lock);
	if (!left)
		live_free(l);
}

void *live_transport(struct live *l)
{
	pthread_mutex_lock(&l->device.lock);
	l->refs++;
	l->clients++;
	pthread_mutex_unlock(&l->device.lock);
	return l;
}

int live_fd(const struct live *l)
{
	return l->timer_fd;
}

struct model *live_lock(struct live *l)
{
	return model_device_enter(l)->m;
}

void live_unlock(struct live *l)
{
	model_device_leave(&l->device, 0);
}

void live_expect(struct live *l, int64_t more)
{
	l->expected += more;
}

void live_notify(struct live *l)
{
	l->notify = true;
}

void live_hush(struct live *l)
{
	uint64_t count;

	l->notify = false;
	if (read(l->timer_fd, &count, sizeof(count)) == sizeof(count))
		l->armed_ns = UINT64_MAX;
}

/* ---- the transport, where it differs ---- */

/* All clients of one device share the extension's file: they are one process. */
static void device_close(void *data)
{
	struct live *l = live_of(data);

	live_lock(l);
	if (--l->clients == 0)
		model_device_close_ext(&l->device);
	live_unlock(l);
	live_unref(data);
}

static bool is_invented(struct live *l, pid_t pid)
{
	struct model_proc *p;
	bool invented;

	pthread_mutex_lock(&l->device.lock);
	p = model_proc_find(l->device.m, pid);
	invented = p && p->invented;
	pthread_mutex_unlock(&l->device.lock);
	return invented;
}

/*
 * Whose business a path below /proc is. The pids that the model's driver knows are those of our
 * own namespace, whichever that is, so nobody is told of it; and what a process has open on the
 * device, its real descriptors do not show.
 */
static bool is_machines(struct live *l, enum gkfd_tree tree, const char *path)
{
	uint64_t pid;

	if (tree != GKFD_TREE_PROC || !strncmp(path, "self/ns/", strlen("self/ns/")))
		return false;
	if (!model_path_take_number(&path, &pid) || pid > INT32_MAX)
		return true;
	if (model_path_take(&path, "fd") && (pid_t)pid != l->device.self)
		return false;
	return !is_invented(l, (pid_t)pid);
}

static int live_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			  size_t *ret_len)
{
	struct live *l = live_of(data);

	if (is_machines(l, tree, path))
		return gkfd_transport_syscall.read_file(l->kernel, tree, path, ret_text, ret_len);
	return model_device_read_file(data, tree, path, ret_text, ret_len);
}

static int live_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct live *l = live_of(data);

	if (is_machines(l, tree, path))
		return gkfd_transport_syscall.list_dir(l->kernel, tree, path, ret_names);
	return model_device_list_dir(data, tree, path, ret_names);
}

/* ---- process control ---- */

/* Tracer threads come and go without telling the model. */
static void forget_dead_threads(struct model *m, pid_t self)
{
	const struct model_proc *p = model_proc_find(m, self);

	for (size_t i = p->n_tids; i > 0; i--) {
		struct model_task task = { .pid = self, .tid = p->tids[i - 1] };

		if (tgkill(self, task.tid, 0) < 0 && errno == ESRCH)
			model_thread_exit(m, task);
	}
}

static int live_seize(void *data, pid_t pid)
{
	struct live *l = live_of(data);

	forget_dead_threads(live_lock(l), l->device.self);
	live_unlock(l);
	return model_trace_seize(data, pid);
}

static int live_pidfd(void *data, pid_t pid)
{
	if (is_invented(live_of(data), pid))
		return -ENOSYS;
	return gkfd_trace_syscall.pidfd(data, pid);
}

static const struct gkfd_trace_ops trace_ops = {
	.seize = live_seize,
	.interrupt = model_trace_nothing,
	.cont = model_trace_cont,
	.listen = model_trace_nothing,
	.detach = model_trace_detach,
	.reap = model_trace_reap,
	.pidfd = live_pidfd,
};

const struct gkfd_transport gkfd_transport_live = {
	.name = "model",
	.modelled = true,
	.trace = &trace_ops,
	.open = model_device_open,
	.close = device_close,
	.ioctl = model_device_ioctl,
	.ext = model_device_ext,
	.borrow = model_device_borrow,
	.ioctl_on = model_device_ioctl_on,
	.read_file = live_read_file,
	.list_dir = live_list_dir,
	.read_mem = model_device_read_mem,
	.now_ns = gkfd_syscall_now_ns,
	.wait = gkfd_syscall_wait,
};
