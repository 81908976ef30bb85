/* SPDX-License-Identifier: MIT */
/*
 * sysfs knows the ids of a process's queues, debugfs "mqds" their contents, and neither says which
 * is which. Queues of one process on one GPU with rings of one size are of one kind.
 */
#ifndef GPREEMPT_GPU_KFD_MATCH_H
#define GPREEMPT_GPU_KFD_MATCH_H

#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/progress.h"

bool gkfd_type_is_compute(uint32_t type);
/* Where to look for a queue's progress. */
struct gkfd_queue_addr gkfd_mqd_addr(const struct gkfd_mqd *mqd);

/* The descriptors of one process, of @m as it was read (they stand together); how many. */
size_t gkfd_mqds_of_process(const struct gkfd_mqds *m, pid_t pid,
			    const struct gkfd_mqd **ret_first);

/*
 * The descriptor of @q, a queue of @proc, or NULL: of its kind there are not as many descriptors as
 * ids, or it is none of compute. Within a kind they are given out by age, which is exact while
 * no id was used twice; afterwards two queues of one kind may be taken for each other.
 */
const struct gkfd_mqd *gkfd_match_queue(const struct gkfd_proc *proc,
					const struct gkfd_proc_queue *q,
					const struct gkfd_mqd *mqds, size_t n);

#endif
