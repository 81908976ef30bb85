/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/reader.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "gpu/helpers/helper.h"
#include "util/clock.h"
#include "util/macros.h"
#include "util/send_fds.h"

#define ALIGN 8u

_Static_assert(READER_FILE == HELPER_FILE + 1, "the first is the memory that both have");

int reader_put(struct reader_room *room, const void *data, size_t len)
{
	if (len > room->max - room->len)
		return -ENOSPC;
	memcpy(room->at + room->len, data, len);
	room->len += len;
	return 0;
}

/* One byte, and descriptors, which are closed here. */
static int tell(const int *fds, uint32_t n)
{
	int r = send_fds(HELPER_SOCKET, "", 1, fds, n, 0);

	for (uint32_t i = 0; i < n; i++)
		close(fds[i]);
	return r;
}

/* False: the owner is gone. */
static bool await_request(void)
{
	char byte;
	ssize_t r;

	do {
		r = recv(HELPER_SOCKET, &byte, 1, 0);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

static int serve_one(const struct reader_services *services, struct reader_shared *s,
		     const struct reader_task *t, struct reader_room *room)
{
	int r;

	if (t->service >= READER_SERVICES || !services->serve[t->service])
		return -ENOSYS;
	r = services->serve[t->service](services->user, t->pid, s->request + t->at, t->len, room);
	if (r < 0)
		room->len = 0;
	return r;
}

/* How many descriptors came with the answers. */
static uint32_t serve_all(const struct reader_services *services, struct reader_shared *s,
			  int fds[READER_FDS])
{
	size_t used = 0;
	uint32_t n_fds = 0;

	for (uint32_t i = 0; i < s->n_tasks; i++) {
		struct reader_room room = { .at = s->answer + used,
					    .max = sizeof(s->answer) - used };
		int r = serve_one(services, s, &s->tasks[i], &room);

		s->answers[i] = (struct reader_answer){
			.result = r, .at = (uint32_t)used, .len = (uint32_t)room.len
		};
		used = MIN((used + room.len + ALIGN - 1) / ALIGN * ALIGN, sizeof(s->answer));
		n_fds = room.n_fds;
		memcpy(fds, room.fds, sizeof(room.fds));
		__atomic_store_n(&s->n_answers, i + 1, __ATOMIC_RELEASE);
	}
	s->spent_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return n_fds;
}

int reader_serve(const struct reader_services *services)
{
	struct reader_shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED,
				       HELPER_FILE, 0);
	int fds[READER_FDS], r;

	if (s == MAP_FAILED)
		return -errno;
	close(HELPER_FILE);
	prctl(PR_SET_NAME, READER_PROGRAM);
	prctl(PR_SET_DUMPABLE, 0);
	r = tell(NULL, 0); /* it stands */
	while (r >= 0 && await_request())
		r = tell(fds, serve_all(services, s, fds));
	return r;
}
