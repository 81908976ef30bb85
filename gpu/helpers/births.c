/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/births.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "util/macros.h"

/* Where the process of a pid is in /proc, for lseek(2): Linux 6.12 fs/proc/base.c, TGID_OFFSET. */
#define OFFSET 258

struct births {
	int proc, loadavg;
	pid_t newest; /* pid that was given, when it was asked last */
	pid_t before; /* the same of the time before: what lies between is told again */
};

/* As the kernel has it, getdents(2): the C library keeps the struct to itself. */
struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
};

static pid_t pid_of(const char *name)
{
	unsigned long number = strtoul(name, NULL, 10);

	return number > 0 && number <= INT32_MAX ? (pid_t)number : 0;
}

/* Processes, not threads, of pids above @pid, ascending. -ERANGE: they are more than @max. */
static int list_behind(const struct births *b, pid_t pid, pid_t *ret, size_t max)
{
	_Alignas(struct entry) char buf[4096];
	size_t count = 0;
	long n;

	if (lseek(b->proc, (off_t)pid + 1 + OFFSET, SEEK_SET) < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, b->proc, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);
			pid_t found = pid_of(e->name);

			at += e->len;
			if (found <= pid)
				continue;
			if (count == max)
				return -ERANGE;
			ret[count++] = found;
		}
	}
	return n < 0 ? -errno : (int)count;
}

/* The last word of "0.00 0.01 0.05 1/80 4711": of the pid namespace that we are in. */
static int read_newest(const struct births *b, pid_t *ret)
{
	char text[128];
	ssize_t n = pread(b->loadavg, text, sizeof(text) - 1, 0);
	const char *word;

	if (n <= 0)
		return n < 0 ? -errno : -EBADMSG;
	text[n] = '\0';
	word = strrchr(text, ' ');
	*ret = word ? pid_of(word + 1) : 0;
	return *ret ? 0 : -EBADMSG;
}

/* Of another pid namespace it would list other pids than are given here. */
static bool is_ours(const struct births *b)
{
	char text[32] = "";

	return readlinkat(b->proc, "self", text, sizeof(text) - 1) > 0 && pid_of(text) == getpid();
}

/* Both files are the kernel's own: does each say of us what it should? */
static int try_out(struct births *b)
{
	pid_t own[64] = { 0 };
	int r = list_behind(b, getpid() - 1, own, ARRAY_SIZE(own));

	if (r < 0 && r != -ERANGE)
		return r;
	if (own[0] != getpid() || !is_ours(b))
		return -ENOSYS;
	return read_newest(b, &b->newest);
}

static int open_below(const char *proc, const char *name, int flags)
{
	char path[128];
	int fd;

	if (snprintf(path, sizeof(path), "%s%s", proc, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void births_freep(struct births **b)
{
	births_free(*b);
}

int births_new(const char *proc, struct births **ret)
{
	_cleanup_(births_freep) struct births *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->proc = open_below(proc, "", O_RDONLY | O_DIRECTORY);
	b->loadavg = open_below(proc, "/loadavg", O_RDONLY);
	if (b->proc < 0 || b->loadavg < 0)
		return MIN(b->proc, b->loadavg);
	r = try_out(b);
	if (r < 0)
		return r;
	b->before = b->newest;
	*ret = steal_ptr(&b);
	return 0;
}

void births_free(struct births *b)
{
	if (!b)
		return;
	closep(&b->proc);
	closep(&b->loadavg);
	free(b);
}

int births_take(struct births *b, pid_t *ret, size_t max)
{
	pid_t newest, from = b->before, last = b->newest;
	int r = read_newest(b, &newest);

	if (r < 0)
		return r;
	b->before = last;
	b->newest = newest;
	if (newest == from)
		return 0;
	return newest < MAX(last, from) ? -ERANGE : list_behind(b, from, ret, max);
}
