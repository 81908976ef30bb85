/* SPDX-License-Identifier: MIT */
#include "gpu/soft/started.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "gpu/helpers/helper.h"
#include "util/macros.h"

#define READY_MS 10000
#define FEWEST_FILES 16 /* with less it could not even start, nor say so */

struct softgpu_child {
	struct helper helper;
	char *path;
};

static int fail(int error, const char *why, char *ret_why, size_t size)
{
	snprintf(ret_why, size, "cannot make a software GPU: %s", why);
	return error;
}

static bool has_files(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FEWEST_FILES;
}

static int wait_until_ready(int socket, char *ret_why, size_t size)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };
	struct softgpu_started told;
	int r;

	do {
		r = poll(&p, 1, READY_MS);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return fail(-ETIMEDOUT, "it does not answer", ret_why, size);
	if (recv(socket, &told, sizeof(told), 0) != sizeof(told) || told.error > 0)
		return fail(-EIO, SOFTGPU_PROGRAM " has ended", ret_why, size);
	told.why[sizeof(told.why) - 1] = '\0';
	if (told.error == -EINVAL)
		snprintf(ret_why, size, "%s", told.why);
	else if (told.error < 0)
		fail(told.error, told.why, ret_why, size);
	return told.error;
}

int softgpu_start(const char *preset, const char *path, struct softgpu_child **ret, char *ret_why,
		  size_t size)
{
	_cleanup_close_ int program = has_files() ? helper_open(SOFTGPU_PROGRAM) : -EMFILE;
	const char *argv[] = { SOFTGPU_PROGRAM, "--parent", "3", path, NULL, NULL, NULL };
	struct softgpu_child *c;
	int r;

	_Static_assert(HELPER_SOCKET == 3, "what --parent says");
	if (program == -ENOENT)
		return fail(-ENOPKG, "the program " SOFTGPU_PROGRAM " is not installed", ret_why,
			    size);
	if (program < 0)
		return fail(program, strerror(-program), ret_why, size);
	if (preset) {
		argv[4] = "--preset";
		argv[5] = preset;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return fail(-ENOMEM, strerror(ENOMEM), ret_why, size);
	c->helper = HELPER_NONE;
	c->path = strdup(path);
	r = c->path ? helper_start(program, argv, NULL, true, &c->helper) : -ENOMEM;
	if (r < 0)
		fail(r, strerror(-r), ret_why, size);
	else
		r = wait_until_ready(c->helper.socket, ret_why, size);
	if (r < 0) {
		softgpu_end(c);
		return r;
	}
	*ret = c;
	return 0;
}

void softgpu_end(struct softgpu_child *c)
{
	if (!c)
		return;
	if (c->helper.pid > 0) {
		kill(c->helper.pid, SIGKILL); /* our own unburied child: the pid is still its */
		waitpid(c->helper.pid, NULL, __WALL);
	}
	closep(&c->helper.pidfd);
	closep(&c->helper.socket);
	if (c->path)
		unlink(c->path);
	free(c->path);
	free(c);
}
