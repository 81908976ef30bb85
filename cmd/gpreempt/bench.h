/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_CMD_BENCH_H
#define GPREEMPT_CMD_BENCH_H

#include "cmd/gpreempt/figures.h"

struct bench {
	pid_t pid;
	uint64_t wanted, work_ns;
	const char *level;
	struct gpreempt_suspend_options options;

	struct gpreempt_process *process;
	uint64_t open_ns, attach_ns;
	struct figures snapshot, suspend, resume, total, save;
	uint64_t ok, failed;
	uint64_t saved_bytes; /* of all rounds */
	bool has_saved, modelled;
	uint32_t queues;
	const char *unit; /* of which there are so many */
	int signal; /* that ended it; 0: none */
	struct gpreempt_error error; /* the last failed round's */
};

int bench_report(struct cli *cli, struct bench *b);

#endif
