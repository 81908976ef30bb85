/* SPDX-License-Identifier: MIT */
/* The extension's calls. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define DEVICE "/dev/" KFD_GPREEMPT_DEVICE

struct ext_args {
	unsigned long request;
	void *arg;
	pid_t pid;
	int fd;
};

static int own_fd = -1; /* each process's own */

static int do_ioctl(int fd, unsigned long request, void *arg)
{
	int r = ioctl(fd, request, arg);

	return r < 0 ? -errno : r;
}

int open_ext(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		mk_die(DEVICE);
	return fd;
}

void close_ext(int fd)
{
	close(fd);
	check_books();
}

int ext(int fd, unsigned long request, void *arg)
{
	int r = do_ioctl(fd, request, arg);

	check_books();
	return r;
}

static int do_open(void *arg)
{
	(void)arg;
	own_fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	return own_fd < 0 ? -errno : 0;
}

static int do_ext(void *arg)
{
	struct ext_args *a = arg;

	return do_ioctl(own_fd, a->request, a->arg);
}

void open_ext_by(struct actor *a)
{
	expect_is("open", in(a, do_open, NULL), 0);
}

int ext_by(struct actor *a, unsigned long request, void *arg)
{
	struct ext_args *args = shared(sizeof(*args));

	*args = (struct ext_args){ .request = request, .arg = arg };
	return in(a, do_ext, args);
}

static int do_bind(void *arg)
{
	const struct ext_args *a = arg;
	struct kfd_gpreempt_bind b = { 0 };
	int r, pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);

	if (pidfd < 0)
		return -errno;
	b.fd = (int)syscall(SYS_pidfd_getfd, pidfd, a->fd, 0);
	r = b.fd < 0 ? -errno : 0;
	close(pidfd);
	if (r)
		return r;
	r = do_ioctl(own_fd, KFD_GPREEMPT_BIND, &b);
	close(b.fd);
	return r < 0 || b.pid == (uint32_t)a->pid ? r : -EINVAL;
}

int bind_by(struct actor *a, struct actor *target)
{
	struct ext_args *args = shared(sizeof(*args));

	*args = (struct ext_args){ .pid = target->pid, .fd = kfd_of(target) };
	return in(a, do_bind, args);
}

/* ---- arguments ---- */

struct kfd_gpreempt_entry *entries(unsigned int n)
{
	return shared(n * sizeof(struct kfd_gpreempt_entry));
}

struct kfd_gpreempt_entry *entry_of(struct actor *a, uint32_t queue, uint32_t gpu)
{
	struct kfd_gpreempt_entry *e = entries(1);

	*e = (struct kfd_gpreempt_entry){
		.pid = (uint32_t)a->pid,
		.queue_id = queue,
		.gpu_id = gpu,
		.result = 77,
		.queues = 77,
	};
	return e;
}

struct kfd_gpreempt_batch *batch(struct kfd_gpreempt_entry *e, uint32_t n_unmap, uint32_t n_map)
{
	struct kfd_gpreempt_batch *b = shared(sizeof(*b));

	*b = (struct kfd_gpreempt_batch){
		.entries = (uintptr_t)e,
		.n_unmap = n_unmap,
		.n_map = n_map,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = 20000,
	};
	return b;
}

struct kfd_gpreempt_one *one(struct actor *a, uint32_t queue)
{
	struct kfd_gpreempt_one *o = shared(sizeof(*o));

	*o = (struct kfd_gpreempt_one){
		.pid = (uint32_t)a->pid,
		.queue_id = queue,
		.gpu_id = ANY,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = 20000,
	};
	return o;
}

static int result(const char *call, int r, const struct kfd_gpreempt_entry *e)
{
	if (r < 0)
		return r;
	expect(r == (e->result == 0), "%s says %d entries are done, the entry says %s", call, r,
	       result_name(e->result));
	return e->result;
}

int hold_for(int fd, struct actor *a, uint32_t ms)
{
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	struct kfd_gpreempt_batch *b = batch(e, 1, 0);

	b->hold_ms = ms;
	return result("unmap", ext(fd, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, b), e);
}

int hold(int fd, struct actor *a)
{
	return hold_for(fd, a, 20000);
}

int let_go(int fd, struct actor *a)
{
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);

	return result("remap", ext(fd, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 1)), e);
}

int hold_self(struct actor *a)
{
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);

	e->pid = 0;
	return result("unmap", kfd_call(a, KFD_GPREEMPT_BATCH_UNMAP_QUEUES, batch(e, 1, 0)), e);
}

int let_go_self(struct actor *a)
{
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);

	return result("remap", kfd_call(a, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 1)), e);
}

/* ---- looking ---- */

struct kfd_gpreempt_hqd hqd(unsigned int gpu)
{
	static int watcher = -1;
	struct kfd_gpreempt_hqd h = { .gpu_id = machine.gpu_ids[gpu] };

	if (watcher < 0)
		watcher = open_ext();
	if (ioctl(watcher, KFD_GPREEMPT_GET_HQD_STATUS, &h))
		mk_die("GET_HQD_STATUS");
	return h;
}

struct kfd_gpreempt_queue queue_stats(int fd, struct actor *a, unsigned int i)
{
	static struct kfd_gpreempt_queue queues[MAX_JOB_QUEUES];
	struct kfd_gpreempt_stats s = {
		.pid = (uint32_t)a->pid,
		.n = MAX_JOB_QUEUES,
		.queues = (uintptr_t)queues,
	};
	uint32_t id = queue_id(a, i);

	expect_is("GET_STATS", ext(fd, KFD_GPREEMPT_GET_STATS, &s), 0);
	for (uint32_t k = 0; k < s.n; k++) {
		if (queues[k].queue_id == id)
			return queues[k];
	}
	fail_case("GET_STATS does not know queue %u", id);
}
