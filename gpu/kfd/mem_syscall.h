/* SPDX-License-Identifier: MIT */
/* Reading a process's memory without stopping it; needs the right to ptrace it. */
#ifndef GPREEMPT_GPU_KFD_MEM_SYSCALL_H
#define GPREEMPT_GPU_KFD_MEM_SYSCALL_H

#include "gpu/kfd/transport.h"

/*
 * The read_mem of gkfd_transport_syscall. @pid is one of the caller's pid namespace, whatever
 * root the transport's trees have. -ESRCH, -EPERM; no descriptor outlives the call.
 */
int gkfd_syscall_read_mem(void *data, pid_t pid, struct gkfd_span *spans, size_t n);
/* Its read_mem_again: only @mem's descriptor outlives the call. */
int gkfd_syscall_read_mem_again(void *data, pid_t pid, struct gkfd_mem *mem,
				struct gkfd_span *spans, size_t n);

#endif
