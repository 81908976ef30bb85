/* SPDX-License-Identifier: MIT */
#include "gpu/watchpoints/points.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/macros.h"

#define LENGTH 8u /* bytes that are watched */
/* Threads that take each other's place, so that their number stays the same, are seen so late. */
#define LIST_NS (100 * NSEC_PER_MSEC)

struct thread {
	pid_t tid;
	int fds[POINTS_ADDRESSES]; /* -1: not watched, or it has told */
	bool is_there;
};

struct points {
	pid_t pid;
	struct points_owner owner;
	DIR *tasks;
	nlink_t links; /* of it: two more than there are threads */
	uint64_t listed_ns;
	uint64_t addresses[POINTS_ADDRESSES];
	struct thread *threads; /* by tid, ascending as they are listed */
	size_t n, room;
};

/* ---- one watchpoint ---- */

static int open_point(pid_t tid, uint64_t address)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = address,
		.bp_len = LENGTH,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * It tells once: what has told is not armed again but closed and opened anew. Kernels of 2025 and
 * 2026 (6.18 tried) arm an event on a breakpoint a second time without ever running it.
 */
static int arm_point(int fd, const struct points_owner *owner)
{
	const struct f_owner_ex to = { .type = F_OWNER_TID, .pid = owner->tid };

	if (fcntl(fd, F_SETOWN_EX, &to) < 0 || fcntl(fd, F_SETSIG, owner->signal) < 0 ||
	    fcntl(fd, F_SETFL, O_ASYNC) < 0 || ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) < 0)
		return -errno;
	return 0;
}

static int add_point(pid_t tid, uint64_t address, const struct points_owner *owner)
{
	_cleanup_close_ int fd = open_point(tid, address);
	int r = fd < 0 ? fd : arm_point(fd, owner);

	return r < 0 ? r : steal_fd(&fd);
}

static void close_points(struct thread *t)
{
	for (size_t i = 0; i < POINTS_ADDRESSES; i++) {
		closep(&t->fds[i]);
		t->fds[i] = -1;
	}
}

/* ---- threads ---- */

/* From @at on, where it stands unless threads came or went since. */
static struct thread *find_thread(struct points *p, pid_t tid, size_t at)
{
	for (size_t i = 0; i < p->n; i++) {
		struct thread *t = &p->threads[(at + i) % p->n];

		if (t->tid == tid)
			return t;
	}
	return NULL;
}

static int add_thread(struct points *p, pid_t tid)
{
	struct thread *t;

	if (p->n == POINTS_THREADS)
		return -E2BIG;
	if (array_reserve(&p->threads, p->n + 1, &p->room, sizeof(*p->threads)) < 0)
		return -ENOMEM;
	t = &p->threads[p->n++];
	*t = (struct thread){ .tid = tid, .is_there = true };
	memset(t->fds, -1, sizeof(t->fds));
	return 0;
}

static void forget_gone(struct points *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (p->threads[i].is_there)
			p->threads[kept++] = p->threads[i];
		else
			close_points(&p->threads[i]);
	}
	p->n = kept;
}

/* -ESRCH: the process is gone; -E2BIG, -ENOMEM: not all are known. */
static int list_threads(struct points *p)
{
	struct dirent *entry;
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < p->n; i++)
		p->threads[i].is_there = false;
	rewinddir(p->tasks);
	while ((entry = readdir(p->tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct thread *t = tid > 0 ? find_thread(p, tid, at++) : NULL;

		if (t)
			t->is_there = true;
		else if (tid > 0)
			r = MIN(r, add_thread(p, tid));
	}
	forget_gone(p);
	return p->n ? r : -ESRCH;
}

/* The same where something may have changed. */
static int follow_threads(struct points *p)
{
	uint64_t now_ns = monotonic_ns();
	struct stat st;

	if (fstat(dirfd(p->tasks), &st) < 0)
		return -ESRCH;
	if (p->n && st.st_nlink == p->links && now_ns - p->listed_ns < LIST_NS)
		return 0;
	p->links = st.st_nlink;
	p->listed_ns = now_ns;
	return list_threads(p);
}

/* ---- all of them ---- */

static void forget_told(struct points *p, int32_t number)
{
	for (size_t i = 0; i < p->n * POINTS_ADDRESSES; i++) {
		int *fd = &p->threads[i / POINTS_ADDRESSES].fds[i % POINTS_ADDRESSES];

		if (*fd == number) {
			closep(fd);
			*fd = -1;
		}
	}
}

static void set_addresses(struct points *p, const uint64_t *addresses, size_t n)
{
	for (size_t i = 0; i < POINTS_ADDRESSES; i++) {
		uint64_t address = i < n ? addresses[i] : 0;

		if (address == p->addresses[i])
			continue;
		p->addresses[i] = address;
		for (size_t t = 0; t < p->n; t++) {
			closep(&p->threads[t].fds[i]);
			p->threads[t].fds[i] = -1;
		}
	}
}

struct arming {
	struct point *ret;
	size_t n, max;
	uint32_t unarmed;
	int error;
};

static void arm_thread(struct points *p, struct thread *t, struct arming *a)
{
	for (uint32_t i = 0; i < POINTS_ADDRESSES; i++) {
		int fd;

		if (!p->addresses[i] || t->fds[i] >= 0)
			continue;
		fd = a->n < a->max ? add_point(t->tid, p->addresses[i], &p->owner) : -ENOBUFS;
		if (fd == -ESRCH)
			return; /* it ends, and writes no more */
		if (fd < 0) {
			a->unarmed |= 1u << i;
			a->error = fd;
			continue;
		}
		t->fds[i] = fd;
		a->ret[a->n++] = (struct point){ .number = fd, .address = i };
	}
}

static uint32_t all_addresses(const struct points *p)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < POINTS_ADDRESSES; i++)
		bits |= p->addresses[i] ? 1u << i : 0;
	return bits;
}

int points_arm(struct points *p, const uint64_t *addresses, size_t n, const int32_t *told,
	       size_t n_told, struct point *ret, size_t max, uint32_t *ret_unarmed, int *ret_error)
{
	struct arming a = { .ret = ret, .max = max };
	int r;

	for (size_t i = 0; i < n_told; i++)
		forget_told(p, told[i]);
	set_addresses(p, addresses, MIN(n, POINTS_ADDRESSES));
	r = follow_threads(p);
	if (r == -ESRCH)
		return r;
	if (r < 0) {
		a.unarmed = all_addresses(p);
		a.error = r;
	}
	for (size_t i = 0; i < p->n; i++)
		arm_thread(p, &p->threads[i], &a);
	*ret_unarmed = a.unarmed;
	*ret_error = a.error;
	return (int)a.n;
}

int points_new(pid_t pid, const struct points_owner *owner, struct points **ret)
{
	char path[sizeof("/proc//task") + 3 * sizeof(pid_t)];
	struct points *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->owner = *owner;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	p->tasks = opendir(path);
	if (!p->tasks) {
		int r = errno == ENOENT ? -ESRCH : -errno;

		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void points_free(struct points *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		close_points(&p->threads[i]);
	closedir(p->tasks);
	free(p->threads);
	free(p);
}

int points_try(void)
{
	static _Alignas(LENGTH) uint64_t here;
	_cleanup_close_ int fd = open_point((pid_t)syscall(SYS_gettid), (uintptr_t)&here);

	return MIN(fd, 0);
}
