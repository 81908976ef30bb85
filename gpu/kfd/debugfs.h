/* SPDX-License-Identifier: MIT */
/*
 * The driver's debugfs files: what only they know is a queue's priority, and where the queues
 * of a process that is not attached have their pointers. Root only; absent under lockdown.
 */
#ifndef GPREEMPT_GPU_KFD_DEBUGFS_H
#define GPREEMPT_GPU_KFD_DEBUGFS_H

#include "gpu/helpers/readers.h"
#include "gpu/kfd/kfd.h"

/* One queue of "mqds". The file prints no queue id: match by process, GPU and ring base. */
struct gkfd_mqd {
	pid_t pid;
	uint32_t gpu_id;
	bool sdma; /* then nothing below is known */
	uint32_t priority; /* 0..15 */
	uint64_t ring_base, ring_bytes;
	uint64_t read_ptr_addr, write_ptr_addr;
	uint64_t cwsr_base;
	uint32_t cwsr_bytes; /* per XCC */
};

struct gkfd_mqds {
	size_t n;
	struct gkfd_mqd *mqds;
};

/* One hardware queue slot of "hqds". */
struct gkfd_hqd {
	uint32_t node; /* topology index */
	uint32_t gpu_id;
	uint32_t xcc;
	uint32_t pipe, queue;
	bool hiq; /* the driver's own queue, not one of the slots */
	bool active;
};

struct gkfd_hqds {
	size_t n;
	struct gkfd_hqd *hqds;
};

/* -EACCES, -ENOENT as the file system says; -EBADMSG. */
int gkfd_mqds_read(struct gkfd *k, struct gkfd_mqds *ret);
int gkfd_hqds_read(struct gkfd *k, struct gkfd_hqds *ret);

/* -EBADMSG with *ret_line (from 1) set. */
int gkfd_mqds_parse(const char *text, size_t len, struct gkfd_mqds *ret, uint32_t *ret_line);
int gkfd_hqds_parse(const char *text, size_t len, struct gkfd_hqds *ret, uint32_t *ret_line);

/*
 * By a reader: reading "mqds" takes the lock of every process in turn (Linux 6.12
 * kfd_debugfs_mqds_by_process), which a process can keep for as long as it likes. A request says
 * whether the driver's extension is to be asked instead, as far as it can tell; the answer is this,
 * and the queues behind it.
 */
struct gkfd_mqds_request {
	uint32_t by_ext;
};
struct gkfd_mqds_answer {
	int64_t error; /* of reading, as above */
	uint64_t n;
};
int gkfd_mqds_serve(struct gkfd *k, const void *request, size_t len, struct reader_room *room);

/* For its owner, who posts the task. */
struct gkfd_mqds_question {
	struct readers_task task;
	struct gkfd_mqds_request request;
	unsigned int left; /* the owner sets it to 1; 0: it is answered */
	int result;
	struct gkfd_mqds list; /* empty after a failure */
};
void gkfd_mqds_question_init(struct gkfd_mqds_question *q, bool by_ext);
/* What it came to; takes *list over. */
void gkfd_mqds_answer_is(struct gkfd_mqds_question *q, int result, struct gkfd_mqds *list);
/*
 * Has "mqds" read by a reader and waits for it, but not for ever: -ETIMEDOUT. Where the program is
 * not installed, or the driver is a made-up one, it is read here.
 */
int gkfd_mqds_ask(struct gkfd *k, struct gkfd_mqds *ret);

/* For people: what an error of reading it means. */
const char *gkfd_mqds_problem(int error);

void gkfd_mqds_done(struct gkfd_mqds *m);
void gkfd_hqds_done(struct gkfd_hqds *h);

#endif
