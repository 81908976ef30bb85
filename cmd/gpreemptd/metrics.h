/* SPDX-License-Identifier: MIT */
/* Everything counted, as Prometheus text: names, units and types by its conventions. */
#ifndef GPREEMPT_CMD_GPREEMPTD_METRICS_H
#define GPREEMPT_CMD_GPREEMPTD_METRICS_H

#include "cmd/gpreemptd/control.h"
#include "cmd/gpreemptd/scheduler.h"

/* *ret_text is the caller's to free. @control may be NULL. -ENOMEM. */
int metrics_write(struct scheduler *s, const struct control *control, char **ret_text,
		  size_t *ret_len);

#endif
