/* SPDX-License-Identifier: MIT */
/* The software device behind the transport table: one lock around the model. */
#include <errno.h>

#include "gpu/model/driver.h"
#include "gpu/model/transport.h"

void model_device_init(struct model_device *d, struct model *m, pid_t self)
{
	*d = (struct model_device){ .m = m, .self = self };
	pthread_mutex_init(&d->lock, NULL);
}

void model_device_done(struct model_device *d)
{
	model_free(d->m);
	pthread_mutex_destroy(&d->lock);
}

void *model_transport_new(struct model *m)
{
	struct model_device *d = calloc(1, sizeof(*d));

	if (!d) {
		model_free(m);
		return NULL;
	}
	model_device_init(d, m, MODEL_SELF_PID);
	return d;
}

struct model *model_transport_get(void *data)
{
	struct model_device *d = data;

	return d->m;
}

struct model *model_transport_lock(void *data)
{
	return model_device_enter(data)->m;
}

void model_transport_unlock(void *data)
{
	model_device_leave(data, 0);
}

struct model_device *model_device_enter(void *data)
{
	struct model_device *d = data;

	pthread_mutex_lock(&d->lock);
	if (d->entered)
		d->entered(d);
	return d;
}

int model_device_leave(struct model_device *d, int r)
{
	if (d->leaving)
		d->leaving(d);
	pthread_mutex_unlock(&d->lock);
	return r;
}

static int leave_waited(struct model_device *d, int r)
{
	uint64_t until_ns = model_now_ns(d->m);

	model_device_leave(d, r);
	if (d->catch_up)
		d->catch_up(d, until_ns);
	return r;
}

static struct model_task self(const struct model_device *d)
{
	return (struct model_task){ .pid = d->self, .tid = gettid() };
}

int model_device_open(void *data)
{
	struct model_device *d = model_device_enter(data);

	return model_device_leave(d, model_kfd_open(d->m, self(d)));
}

static void device_close(void *data)
{
	model_device_done(data);
	free(data);
}

/*
 * A call of ours that would sleep until another of our calls wakes it is given up as by a
 * signal: -EDEADLK.
 */
int model_device_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	struct model_device *d = model_device_enter(data);
	int r = model_ioctl(d->m, self(d), pid, request, arg);

	(void)fd;
	if (r == MODEL_BLOCKED) {
		model_signal(d->m, self(d));
		(void)model_blocked_result(d->m, self(d), &r);
		r = -EDEADLK;
	}
	return leave_waited(d, r);
}

int model_device_ioctl(void *data, unsigned long request, void *arg)
{
	const struct model_device *d = data;

	return model_device_ioctl_on(data, d->self, -1, request, arg);
}

int model_device_ext(void *data, unsigned long request, void *arg)
{
	struct model_device *d = model_device_enter(data);
	int r = d->ext ? 0 : model_ext_open(d->m, self(d), &d->ext);

	if (r == 0)
		r = model_ext_ioctl(d->m, self(d), d->ext, request, arg);
	return leave_waited(d, r);
}

void model_device_close_ext(struct model_device *d)
{
	model_ext_close(d->m, d->ext);
	d->ext = 0;
}

/* As ptrace(2) would. */
static bool may_borrow(const struct model_device *d, const struct model_proc *p)
{
	const struct model_proc *by = model_proc_find(d->m, d->self);

	return by && (by->uid == 0 || by->uid == p->uid);
}

int model_device_borrow(void *data, pid_t pid, unsigned int nth)
{
	struct model_device *d = model_device_enter(data);
	struct model_proc *p = model_proc_find(d->m, pid);
	int fd = -ENOENT;

	if (p && p->has_fd && nth == 0)
		fd = may_borrow(d, p) ? model_ext_descriptor(p->kproc) : -EPERM;
	return model_device_leave(d, fd);
}

int model_device_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			   size_t *ret_len)
{
	struct model_device *d = model_device_enter(data);

	return model_device_leave(d, model_read_file(d->m, tree, path, ret_text, ret_len));
}

int model_device_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct model_device *d = model_device_enter(data);

	return model_device_leave(d, model_list_dir(d->m, tree, path, ret_names));
}

int model_device_read_mem(void *data, pid_t pid, struct gkfd_span *spans, size_t n)
{
	struct model_device *d = model_device_enter(data);

	if (!model_proc_find(d->m, pid))
		return model_device_leave(d, -ESRCH);
	for (size_t i = 0; i < n; i++)
		spans[i].ok = model_mem_read(d->m, pid, spans[i].addr, spans[i].buf,
					     spans[i].len) == 0;
	return model_device_leave(d, 0);
}

static uint64_t device_now_ns(void *data)
{
	struct model_device *d = model_device_enter(data);
	uint64_t now = model_now_ns(d->m);

	model_device_leave(d, 0);
	return now;
}

static int poll_fds(struct pollfd *fds, size_t n, int timeout_ms)
{
	int r = poll(fds, n, timeout_ms);

	return r < 0 ? -errno : r;
}

static int device_wait(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	struct model_device *d;
	int r;

	if (timeout_ns == UINT64_MAX)
		return poll_fds(fds, n, -1);
	r = poll_fds(fds, n, 0);
	if (r != 0)
		return r;
	d = model_device_enter(data);
	model_advance(d->m, timeout_ns);
	model_device_leave(d, 0);
	return poll_fds(fds, n, 0);
}

/* ---- process control ---- */

int model_trace_seize(void *data, pid_t pid)
{
	struct model_device *d = model_device_enter(data);

	return model_device_leave(d, model_ptrace_seize(d->m, self(d), pid));
}

int model_trace_detach(void *data, pid_t pid, int sig)
{
	struct model_device *d = model_device_enter(data);

	(void)sig;
	return model_device_leave(d, model_ptrace_detach(d->m, self(d), pid));
}

static bool is_our_tracee(struct model_device *d, pid_t pid)
{
	struct model_proc *p = model_proc_find(d->m, pid);

	return p && p->tracer.pid == d->self && p->tracer.tid == gettid();
}

/* Modelled processes never stop: there is nothing to interrupt or to let go on. */
int model_trace_nothing(void *data, pid_t pid)
{
	struct model_device *d = model_device_enter(data);

	return model_device_leave(d, is_our_tracee(d, pid) ? 0 : -ESRCH);
}

int model_trace_cont(void *data, pid_t pid, int sig)
{
	(void)sig;
	return model_trace_nothing(data, pid);
}

int model_trace_reap(void *data, pid_t pid, int *ret_status)
{
	struct model_device *d = model_device_enter(data);

	(void)ret_status;
	return model_device_leave(d, is_our_tracee(d, pid) ? 0 : -ECHILD);
}

static int trace_pidfd(void *data, pid_t pid)
{
	(void)data;
	(void)pid;
	return -ENOSYS;
}

static const struct gkfd_trace_ops trace_ops = {
	.seize = model_trace_seize,
	.interrupt = model_trace_nothing,
	.cont = model_trace_cont,
	.listen = model_trace_nothing,
	.detach = model_trace_detach,
	.reap = model_trace_reap,
	.pidfd = trace_pidfd,
};

const struct gkfd_transport gkfd_transport_model = {
	.name = "model",
	.modelled = true,
	.made_up_time = true,
	.trace = &trace_ops,
	.open = model_device_open,
	.close = device_close,
	.ioctl = model_device_ioctl,
	.ext = model_device_ext,
	.borrow = model_device_borrow,
	.ioctl_on = model_device_ioctl_on,
	.read_file = model_device_read_file,
	.list_dir = model_device_list_dir,
	.read_mem = model_device_read_mem,
	.now_ns = device_now_ns,
	.wait = device_wait,
};
