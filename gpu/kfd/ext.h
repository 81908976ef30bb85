/* SPDX-License-Identifier: MIT */
/*
 * Level K3: queues of any processes, held through the driver's extension in one call. Nobody is
 * traced; what is held belongs to the open device of @k and comes back when that is closed, when we
 * die, or when the hold's time is over.
 *
 * Calls may come from several threads at once. Each returns 0 or a count, or -errno as
 * abi/kfd_gpreempt.h tells; -ENODEV: the driver has no extension.
 */
#ifndef GPREEMPT_GPU_KFD_EXT_H
#define GPREEMPT_GPU_KFD_EXT_H

#include "abi/kfd_gpreempt.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/failure.h"

/*
 * KFD_GPREEMPT_*, as it is: what has no function here needs none. Of a process: gkfd_ext_bind()
 * first. -ENOTTY: it has no such call, as one without a scheduler.
 */
int gkfd_ext_call(struct gkfd *k, unsigned long request, void *arg);
/* Opens the device when it is not open. -EACCES: no right to; -EPROTO: another version. */
int gkfd_ext_open(struct gkfd *k, struct kfd_gpreempt_version *ret);

/*
 * Gets the right to name @pid in calls, where we are not its administrator: 0 also when that needs
 * nothing. -EPERM: it may not be traced by us; -ESRCH: it is gone or has the driver not open.
 */
int gkfd_ext_bind(struct gkfd *k, pid_t pid);
/* The same by a descriptor of its own: 1, or 0: it has that one from somebody else. */
int gkfd_ext_bind_fd(struct gkfd *k, pid_t pid, int fd);

/* The entry for @queue (KFD_GPREEMPT_ALL_QUEUES: all) of a process on any GPU. */
struct kfd_gpreempt_entry gkfd_ext_entry(pid_t pid, uint64_t start_ticks, uint32_t queue);

/*
 * Takes the first @n_unmap of the entries off and puts the @n_map behind them back, in one call;
 * the answer is in the entries and in *b. Returns entries with result 0.
 */
int gkfd_ext_batch(struct gkfd *k, struct kfd_gpreempt_entry *entries, uint32_t n_unmap,
		   uint32_t n_map, struct kfd_gpreempt_batch *b);

/* All queues of @pid, the highest id first; *ret is to be freed. How many, or -errno. */
int gkfd_ext_queues(struct gkfd *k, pid_t pid, uint64_t start_ticks,
		    struct kfd_gpreempt_queue **ret);
/*
 * As gkfd_mqds_read(), without what the extension does not tell; of processes it does not tell of
 * from there, as far as it can be read. An error only where nothing at all could be found.
 */
int gkfd_ext_mqds(struct gkfd *k, pid_t own_pid, struct gkfd_mqds *ret);
/*
 * Who keeps queues of @pid off the GPU through the extension, but for ourselves and @pid itself: 1
 * and *ret_holder, which is 0 when it cannot be seen from here; 0: nobody does.
 */
int gkfd_ext_holder(struct gkfd *k, pid_t pid, uint64_t start_ticks, pid_t *ret_holder);
/* Whether the scheduler in the driver does: 1 or 0. */
int gkfd_ext_is_scheduled_off(struct gkfd *k, pid_t pid, uint64_t start_ticks);
/*
 * What the result of an entry, or of a call about the process it names, means. 0 only for 0; what
 * it was to be mapped for is another matter.
 */
int gkfd_ext_explain(struct gkfd *k, const struct kfd_gpreempt_entry *entry, int result,
		     struct gkfd_failure *ret_failure);
/* As gkfd_release_pid(), for holds of this kind only; 0 also where there is no extension. */
int gkfd_ext_release(struct gkfd *k, pid_t pid, struct gkfd_failure *ret_failure);

#endif
