/* SPDX-License-Identifier: MIT */
/*
 * gpreempt-reader reads what other processes control, for gpreempt and gpreemptd, which start it
 * (gpu/helpers/readers.h). Nobody depends on it, so it may hang.
 */
#include <stdlib.h>

#include "gpu/helpers/borrow.h"
#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/look.h"
#include "gpu/nvrm/transport.h"
#include "gpu/watchpoints/points.h"
#include "util/resident.h"

struct reader {
	struct gkfd *k;
	struct gkfd_lookers *lookers;
	void *nvrm;
	struct points_all *points;
};

static int look(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	struct reader *r = user;

	return gkfd_look_serve(r->lookers, pid, request, len, room);
}

static int mqds(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	struct reader *r = user;

	return gkfd_mqds_serve(r->k, request, len, room);
}

static int nvrm(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	struct reader *r = user;

	return nvrm_question_serve(r->nvrm, pid, request, len, room);
}

static int points(void *user, pid_t pid, const void *request, size_t len, struct reader_room *room)
{
	struct reader *r = user;

	return points_serve(r->points, pid, request, len, room);
}

int main(void)
{
	struct reader r = { 0 };
	const struct reader_services services = {
		.serve = {
			[READER_PROC_FILES] = proc_files_serve,
			[READER_BORROW] = borrow_serve,
			[READER_LOOK] = look,
			[READER_MQDS] = mqds,
			[READER_NVRM] = nvrm,
			[READER_POINTS] = points,
		},
		.user = &r,
	};
	void *data;

	stay_in_memory();
	data = gkfd_syscall_new(NULL);
	r.nvrm = nvrm_syscall_new(NULL);
	if (!data || !r.nvrm)
		return EXIT_FAILURE;
	nvrm_syscall_watch_by(r.nvrm, READER_FILE);
	gkfd_syscall_may_hang(data);
	if (gkfd_new(&gkfd_transport_syscall, data, &r.k) < 0 ||
	    gkfd_lookers_new(r.k, &r.lookers) < 0 || points_all_new(&r.points) < 0)
		return EXIT_FAILURE;
	return reader_serve(&services) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
