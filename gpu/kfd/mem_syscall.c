/* SPDX-License-Identifier: MIT */
/*
 * process_vm_readv(2) takes many spans in one call but refuses mappings of GPU buffers with
 * EFAULT (VM_IO | VM_PFNMAP); reading /proc/PID/mem goes through the driver and works on them.
 * So: the fast call for all, and where it stops, the file for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>

#include "gpu/kfd/transport.h"
#include "util/macros.h"

#define BATCH ((size_t)IOV_MAX)

struct reader {
	pid_t pid;
	/* Of /proc/PID/mem; the fast path is not in this kernel, filtered, or was refused. */
	struct gkfd_mem *mem;
	bool file_helped; /* where the fast path refused even the first span */
};

static int open_mem(struct reader *rd)
{
	char path[sizeof("/proc//mem") + 3 * sizeof(pid_t)];

	if (rd->mem->fd >= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", rd->pid);
	rd->mem->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (rd->mem->fd >= 0)
		return 0;
	switch (errno) {
	case ENOENT:
		return -ESRCH;
	case EACCES:
		return -EPERM;
	default:
		return -errno;
	}
}

static bool read_whole(int fd, struct gkfd_span *span)
{
	for (size_t done = 0; done < span->len;) {
		ssize_t r = pread(fd, (char *)span->buf + done, span->len - done,
				  (off_t)(span->addr + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		done += (size_t)r;
	}
	return true;
}

/* How many bytes came, from the first span on; -EFAULT: none, the first is unreadable. */
static ssize_t read_fast(const struct reader *rd, const struct gkfd_span *spans, size_t n)
{
	struct iovec local[BATCH], remote[BATCH];
	ssize_t r;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){ spans[i].buf, spans[i].len };
		remote[i] = (struct iovec){ (void *)(uintptr_t)spans[i].addr, spans[i].len };
	}
	r = process_vm_readv(rd->pid, local, n, remote, n, 0);
	return r < 0 ? -errno : r;
}

/* Marks the spans that @bytes cover wholly; how many they are. */
static size_t mark_read(struct gkfd_span *spans, size_t n, size_t bytes)
{
	size_t i;

	for (i = 0; i < n && spans[i].len <= bytes; i++) {
		bytes -= spans[i].len;
		spans[i].ok = true;
	}
	return i;
}

/* How many spans, from the first on, are read; 0: try the first by itself. */
static int try_batch(struct reader *rd, struct gkfd_span *spans, size_t n)
{
	ssize_t r;

	if (rd->mem->file_only)
		return 0;
	r = read_fast(rd, spans, MIN(n, BATCH));
	if (r == -ESRCH)
		return -ESRCH;
	if (r == -EPERM || r == -ENOSYS)
		rd->mem->file_only = true;
	return (int)mark_read(spans, MIN(n, BATCH), r < 0 ? 0 : (size_t)r);
}

static int read_all(struct reader *rd, struct gkfd_span *spans, size_t n)
{
	for (size_t i = 0; i < n;) {
		int r = try_batch(rd, spans + i, n - i);

		if (r < 0)
			return i ? 0 : r;
		i += (size_t)r;
		if (i == n || (r == (int)BATCH))
			continue;
		r = open_mem(rd);
		if (r < 0)
			return i ? 0 : r;
		spans[i].ok = read_whole(rd->mem->fd, &spans[i]);
		rd->file_helped |= i == 0 && spans[i].ok;
		i++;
	}
	return 0;
}

int gkfd_syscall_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			  size_t n)
{
	struct reader rd = { .pid = pid, .mem = mem };
	int r;

	for (size_t i = 0; i < n; i++)
		spans[i].ok = false;
	r = read_all(&rd, spans, n);
	/* GPU buffers do not turn into ordinary memory: what was of use will be again. */
	mem->file_only |= rd.file_helped;
	return r;
}
