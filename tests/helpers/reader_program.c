/* SPDX-License-Identifier: MIT */
/*
 * A reader that does what a test says: a request for READER_MQDS is a letter and what to do with
 * it. Files of /proc it reads like the real one, but hangs at environments.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpu/helpers/proc_files.h"
#include "tests/helpers/reader_program.h"

static void burn(double seconds)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while ((double)used.tv_sec + (double)used.tv_nsec / 1e9 < seconds);
}

static int pass_descriptors(struct reader_room *room)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -errno;
	room->fds[room->n_fds++] = ends[0];
	room->fds[room->n_fds++] = ends[1];
	return 2;
}

static int obey(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	const char *order = request;

	switch (len ? *order : ECHO) {
	case HANG:
		for (;;)
			pause();
	case CRASH:
		abort();
	case BURN:
		burn(0.5);
		return reader_put(room, request, len);
	case PASS:
		return pass_descriptors(room);
	case FAIL:
		return -EXDEV;
	case MUCH:
		while (reader_put(room, order, len) == 0)
			;
		return -ENOSPC;
	default:
		return reader_put(room, request, len);
	}
}

static int read_files(void *user, pid_t pid, const void *request, size_t len,
		      struct reader_room *room)
{
	uint32_t bits;

	memcpy(&bits, request, sizeof(bits));
	while (bits & PROC_BIT(PROC_ENVIRON))
		pause();
	return proc_files_serve(user, pid, request, len, room);
}

int main(void)
{
	const struct reader_services services = {
		.serve = { [READER_PROC_FILES] = read_files, [READER_MQDS] = obey },
	};
	const struct rlimit none = { 0 };

	setrlimit(RLIMIT_CORE, &none);
	return reader_serve(&services) < 0;
}
