/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "cmd/gpreemptd/handover.h"
#include "util/macros.h"

#define SELF "/proc/self/exe" /* also when the file is deleted or another by now */
#define VARIABLE "GPREEMPTD_HANDOVER" /* "PID FD": the pid, lest a child believes it */
#define MAGIC "gpreemptd hands over"

struct handover {
	FILE *file;
	int *fds;
	size_t n_fds;
	int error; /* the first there was */
};

static int set_close_on_exec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int handover_new(struct handover **ret)
{
	struct handover *h = calloc(1, sizeof(*h));
	int fd, r;

	if (!h)
		return -ENOMEM;
	fd = memfd_create("gpreemptd-handover", MFD_CLOEXEC);
	h->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!h->file) {
		r = -errno;
		closep(&fd);
		free(h);
		return r;
	}
	handover_put(h, MAGIC, sizeof(MAGIC));
	*ret = h;
	return 0;
}

void handover_put(struct handover *h, const void *data, size_t len)
{
	if (len && fwrite(data, len, 1, h->file) != 1 && !h->error)
		h->error = -EIO;
}

void handover_put_fd(struct handover *h, int fd)
{
	int *fds = reallocarray(h->fds, h->n_fds + 1, sizeof(*fds));

	if (!fds) {
		h->error = -ENOMEM;
		return;
	}
	h->fds = fds;
	fds[h->n_fds++] = fd;
	handover_put(h, &fd, sizeof(fd));
}

static int keep_open(const struct handover *h)
{
	int r = set_close_on_exec(fileno(h->file), false);

	for (size_t i = 0; i < h->n_fds && r >= 0; i++)
		r = set_close_on_exec(h->fds[i], false);
	return r;
}

int handover_exec(struct handover *h, char **argv)
{
	char value[32];
	int r;

	if (fflush(h->file) != 0 || lseek(fileno(h->file), 0, SEEK_SET) < 0)
		return -errno;
	if (h->error)
		return h->error;
	r = keep_open(h);
	if (r < 0)
		return r;
	snprintf(value, sizeof(value), "%d %d", getpid(), fileno(h->file));
	if (setenv(VARIABLE, value, 1) < 0)
		return -errno;
	execv(SELF, argv);
	r = -errno;
	unsetenv(VARIABLE);
	return r;
}

/* -1: none */
static int find_fd(void)
{
	const char *value = getenv(VARIABLE);
	int pid = 0, fd = -1;

	if (!value || sscanf(value, "%d %d", &pid, &fd) != 2 || pid != getpid())
		fd = -1;
	unsetenv(VARIABLE);
	return fd >= 0 && set_close_on_exec(fd, true) == 0 ? fd : -1;
}

struct handover *handover_find(void)
{
	int fd = find_fd();
	struct handover *h;
	char magic[sizeof(MAGIC)];

	if (fd < 0)
		return NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->file = fdopen(fd, "r");
	if (!h->file || handover_get(h, magic, sizeof(magic)) < 0 ||
	    memcmp(magic, MAGIC, sizeof(MAGIC)) != 0) {
		handover_free(h);
		return NULL;
	}
	prctl(PR_SET_NAME, program_invocation_short_name); /* else it is that of SELF */
	return h;
}

int handover_get(struct handover *h, void *ret, size_t len)
{
	return len && fread(ret, len, 1, h->file) != 1 ? -EBADMSG : 0;
}

int handover_get_fd(struct handover *h, int *ret)
{
	int fd, r = handover_get(h, &fd, sizeof(fd));

	if (r >= 0)
		r = set_close_on_exec(fd, true);
	if (r >= 0)
		*ret = fd;
	return r;
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_fds; i++)
		set_close_on_exec(h->fds[i], true);
	if (h->file)
		fclose(h->file);
	free(h->fds);
	free(h);
}
