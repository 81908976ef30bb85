/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_TOP_JOBS_H
#define GPREEMPT_CMD_TOP_JOBS_H

#include "cmd/gpreempt-top/lines.h"

#define JOBS_COLUMNS 16
#define JOBS_HISTORY (GPREEMPT_JOB_HISTORY + 1)

struct jobs_layout {
	bool shown[JOBS_COLUMNS];
	unsigned int note; /* its width; 0: there is no room for it */
};

void jobs_layout(unsigned int width, struct jobs_layout *ret);
void jobs_heading(struct lines *l, const struct jobs_layout *layout);
void jobs_line(struct lines *l, const struct jobs_layout *layout,
	       const struct gpreempt_daemon_job *j, bool utf8);
/* By GPU and then as wanted, ended by NULL; the caller's to free. NULL: no memory. */
const struct gpreempt_daemon_job **jobs_sort(const struct snapshot *s, enum view_sort sort);

#endif
