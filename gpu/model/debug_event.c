/* SPDX-License-Identifier: MIT */
/* Exceptions: who has which pending, and the debugger's descriptor (Linux 6.12 kfd_debug.c). */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "gpu/model/driver.h"

/* Writing to a pipe without reader must not end this process. */
static void write_quietly(int fd)
{
	const struct timespec now = { 0 };
	sigset_t pipe_signal, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	/* The driver always writes at offset 0; pipes and sockets have none. */
	if (pwrite(fd, ".", 1, 0) < 0 && errno == ESPIPE && write(fd, ".", 1) < 0 &&
	    errno == EPIPE && !sigismember(&before, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * One '.'. An eventfd takes no single byte and so never fires, as with the driver. Where the
 * driver would block on a full pipe, the byte is dropped.
 */
static void notify(struct model_kproc *k)
{
	struct pollfd p = { .fd = k->dbg_fd, .events = POLLOUT };

	if (k->dbg_fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
		write_quietly(k->dbg_fd);
}

void model_dbg_raise(struct model_kproc *k, uint64_t mask, struct model_gpu *gpu, uint32_t queue_id)
{
	struct model_queue *q;

	if (!k->debug_enabled)
		return;
	if (mask & KFD_EC_MASK_DEVICE) {
		k->pdds[gpu->index].exception_status |= mask & KFD_EC_MASK_DEVICE;
	} else if (mask & KFD_EC_MASK_PROCESS) {
		k->exception_status |= mask & KFD_EC_MASK_PROCESS;
	} else {
		q = model_queue_find(k, queue_id);
		if (q && q->gpu == gpu)
			q->exception_status |= mask;
	}
	if (k->exception_enable & mask)
		notify(k);
}

static int report(uint64_t *status, struct kfd_ioctl_dbg_trap_query_debug_event_args *a,
		  uint32_t gpu_id, uint32_t queue_id)
{
	uint64_t clear = a->exception_mask;

	a->exception_mask = *status;
	a->gpu_id = gpu_id;
	a->queue_id = queue_id;
	*status &= ~clear;
	return 0;
}

int model_query_debug_event(struct model *m, struct model_kproc *k,
			    struct kfd_ioctl_dbg_trap_query_debug_event_args *a)
{
	for (struct model_queue *q = k->queues; q; q = q->next)
		if (q->exception_status & k->exception_enable)
			return report(&q->exception_status, a, q->gpu->id, q->id);
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		if (k->pdds[i].exception_status & k->exception_enable)
			return report(&k->pdds[i].exception_status, a, m->gpus[i].id, 0);
	if (k->exception_status & k->exception_enable)
		return report(&k->exception_status, a, 0, 0);
	*a = (struct kfd_ioctl_dbg_trap_query_debug_event_args){ 0 };
	return -EAGAIN;
}

void model_set_exceptions_enabled(struct model *m, struct model_kproc *k, uint64_t mask)
{
	uint64_t found = k->exception_status;

	for (struct model_queue *q = k->queues; q; q = q->next)
		found |= q->exception_status;
	for (uint32_t i = 0; i < m->config.n_gpus; i++)
		found |= k->pdds[i].exception_status;
	if (found & mask)
		notify(k);
	k->exception_enable = mask;
}

static int exception_source(struct model *m, struct model_kproc *k, uint32_t code, uint32_t source,
			    uint64_t **ret)
{
	uint64_t mask = code >= 1 && code <= 63 ? KFD_EC_MASK(code) : 0;
	struct model_queue *q;
	struct model_pdd *pdd;

	if (mask & KFD_EC_MASK_QUEUE) {
		q = model_queue_find(k, source);
		*ret = q ? &q->exception_status : NULL;
	} else if (mask & KFD_EC_MASK_DEVICE) {
		pdd = model_pdd_by_id(m, k, source);
		*ret = pdd ? &pdd->exception_status : NULL;
	} else if (mask & KFD_EC_MASK_PROCESS) {
		*ret = &k->exception_status;
	} else {
		return -EINVAL;
	}
	return *ret ? 0 : -EINVAL;
}

int model_query_exception_info(struct model *m, struct model_kproc *k,
			       struct kfd_ioctl_dbg_trap_query_exception_info_args *a)
{
	uint32_t size = 0;
	uint64_t *status;
	int r;

	if (!a->info_ptr)
		return -EINVAL;
	r = exception_source(m, k, a->exception_code, a->source_id, &status);
	if (r < 0)
		return r;
	if (!(*status & KFD_EC_MASK(a->exception_code)))
		return -ENODATA;
	if (a->exception_code == EC_PROCESS_RUNTIME) {
		size = sizeof(k->runtime);
		r = model_copy_to_user(m, a->info_ptr, &k->runtime, MIN(a->info_size, size));
		if (r < 0)
			return r;
	}
	a->info_size = size;
	if (a->clear_exception)
		*status &= ~KFD_EC_MASK(a->exception_code);
	return 0;
}

/* What the runtime would see: bits in its error payload, which the save area points to. */
static void send_to_runtime(struct model_kproc *k, uint32_t queue_id, uint64_t reason)
{
	struct model_queue *q = model_queue_find(k, queue_id);
	struct kfd_context_save_area_header header;
	struct mem_space *mm = k->proc->mm;
	uint64_t payload;

	if (!q || mem_read(mm, q->cwsr_base, &header, sizeof(header)) < 0)
		return;
	if (mem_read(mm, header.err_payload_addr, &payload, sizeof(payload)) < 0)
		return;
	payload |= reason;
	mem_write(mm, header.err_payload_addr, &payload, sizeof(payload));
}

int model_send_runtime_event(struct model *m, struct model_kproc *k,
			     const struct kfd_ioctl_dbg_trap_send_runtime_event_args *a)
{
	uint64_t reason = a->exception_mask;

	if (reason & KFD_EC_MASK(EC_DEVICE_MEMORY_VIOLATION)) {
		struct model_pdd *pdd = model_pdd_by_id(m, k, a->gpu_id);

		if (!pdd)
			return -ENODEV;
		reason &= ~KFD_EC_MASK(EC_DEVICE_MEMORY_VIOLATION);
	}
	if (reason & KFD_EC_MASK(EC_PROCESS_RUNTIME)) {
		model_runtime_up(m, k);
		reason &= ~KFD_EC_MASK(EC_PROCESS_RUNTIME);
	}
	if (reason)
		send_to_runtime(k, a->queue_id, reason);
	return 0;
}
