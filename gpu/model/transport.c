/* SPDX-License-Identifier: MIT */
/* The software device behind the transport table: one lock around the model. */
#include <errno.h>
#include <pthread.h>

#include "gpu/model/driver.h"

struct device { /* @data */
	pthread_mutex_t lock;
	struct model *m;
	uint64_t ext; /* our file of the extension's device; 0: not open */
};

void *model_transport_new(struct model *m)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d) {
		model_free(m);
		return NULL;
	}
	d->m = m;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

struct model *model_transport_get(void *data)
{
	struct device *d = data;

	return d->m;
}

static struct device *enter(void *data)
{
	struct device *d = data;

	pthread_mutex_lock(&d->lock);
	return d;
}

static int leave(struct device *d, int r) /* returns @r */
{
	pthread_mutex_unlock(&d->lock);
	return r;
}

static struct model_task self(void)
{
	return (struct model_task){ .pid = MODEL_SELF_PID, .tid = gettid() };
}

struct model *model_transport_lock(void *data)
{
	return enter(data)->m;
}

void model_transport_unlock(void *data)
{
	leave(data, 0);
}

static int device_open(void *data)
{
	struct device *d = enter(data);

	return leave(d, model_kfd_open(d->m, self()));
}

static void device_close(void *data)
{
	struct device *d = data;

	model_free(d->m);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static int device_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	struct device *d = enter(data);

	return leave(d, model_ioctl_now(d->m, self(), pid, request, arg));
}

static int device_ioctl(void *data, unsigned long request, void *arg)
{
	return device_ioctl_on(data, MODEL_SELF_PID, -1, request, arg);
}

static int device_ext(void *data, unsigned long request, void *arg)
{
	struct device *d = enter(data);
	int r = d->ext ? 0 : model_ext_open(d->m, self(), &d->ext);

	if (r == 0)
		r = model_ext_ioctl(d->m, self(), d->ext, request, arg);
	return leave(d, r);
}

static int device_borrow(void *data, pid_t pid, unsigned int nth)
{
	struct device *d = enter(data);
	uint64_t what;
	int r = leave(d, model_borrow(d->m, MODEL_SELF_PID, pid, nth, &what));

	return r < 0 ? r : model_descriptor(what);
}

static int device_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			    size_t *ret_len)
{
	struct device *d = enter(data);

	return leave(d, model_read(d->m, tree, path, false, ret_text, ret_len));
}

static int device_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct device *d = enter(data);
	size_t len;

	return leave(d, model_read(d->m, tree, path, true, ret_names, &len));
}

static int device_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			   size_t n)
{
	struct device *d = enter(data);

	if (!model_proc_find(d->m, pid))
		return leave(d, -ESRCH);
	for (size_t i = 0; i < n; i++)
		spans[i].ok = model_mem_read(d->m, pid, spans[i].addr, spans[i].buf,
					     spans[i].len) == 0;
	return leave(d, 0);
}

static uint64_t device_now_ns(void *data)
{
	struct device *d = enter(data);
	uint64_t now = model_now_ns(d->m);

	leave(d, 0);
	return now;
}

static int poll_fds(struct pollfd *fds, size_t n, int timeout_ms)
{
	int r = poll(fds, n, timeout_ms);

	return r < 0 ? -errno : r;
}

static int device_wait(void *data, struct pollfd *fds, size_t n, uint64_t timeout_ns)
{
	struct device *d;
	int r;

	r = poll_fds(fds, n, timeout_ns == UINT64_MAX ? -1 : 0);
	if (r != 0)
		return r;
	d = enter(data);
	model_advance(d->m, timeout_ns);
	leave(d, 0);
	return poll_fds(fds, n, 0);
}

/* ---- process control ---- */

static int trace_seize(void *data, pid_t pid)
{
	struct device *d = enter(data);

	return leave(d, model_ptrace_seize(d->m, self(), pid));
}

static int trace_detach(void *data, pid_t pid, int sig)
{
	struct device *d = enter(data);

	return leave(d, model_ptrace_detach(d->m, self(), pid));
}

/* Modelled processes never stop: there is nothing to interrupt or to let go on. */
static int trace_nothing(void *data, pid_t pid)
{
	struct device *d = enter(data);

	return leave(d, model_check_tracee(d->m, self(), pid));
}

static int trace_cont(void *data, pid_t pid, int sig)
{
	return trace_nothing(data, pid);
}

static int trace_reap(void *data, pid_t pid, int *ret_status)
{
	return trace_nothing(data, pid) < 0 ? -ECHILD : 0;
}

static int trace_pidfd(void *data, pid_t pid)
{
	return -ENOSYS;
}

static const struct gkfd_trace_ops trace_ops = {
	.seize = trace_seize,
	.interrupt = trace_nothing,
	.cont = trace_cont,
	.listen = trace_nothing,
	.detach = trace_detach,
	.reap = trace_reap,
	.pidfd = trace_pidfd,
};

const struct gkfd_transport gkfd_transport_model = {
	.modelled = true,
	.made_up_time = true,
	.alone = true,
	.trace = &trace_ops,
	.open = device_open,
	.close = device_close,
	.ioctl = device_ioctl,
	.ext = device_ext,
	.borrow = device_borrow,
	.ioctl_on = device_ioctl_on,
	.read_file = device_read_file,
	.list_dir = device_list_dir,
	.read_mem = device_read_mem,
	.now_ns = device_now_ns,
	.wait = device_wait,
};
