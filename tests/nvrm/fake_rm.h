/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's resource manager and the processes of a machine, played for tests: as strict as the
 * driver, and stricter where it would let pass what must never happen.
 *
 * A client lives as long as any copy of the descriptor it was made through is open. What the
 * caller is given are real descriptors, of nothing. May be used by several threads.
 */
#ifndef GPREEMPT_TESTS_NVRM_FAKE_RM_H
#define GPREEMPT_TESTS_NVRM_FAKE_RM_H

#include "gpu/nvrm/objects.h"
#include "gpu/nvrm/rm.h"

#define FAKE_GPU 0x100u /* the first GPU's id: bus 1, slot 0 */
#define FAKE_GPU_2 0x4100u
#define FAKE_CONNECTIONS 8u /* of a context; CUDA_DEVICE_MAX_CONNECTIONS may say more */
#define FAKE_COPY_SLICE_US 1024u

struct fake_rm;

/* One H200, asked by root; driver 580.159.04. */
struct fake_rm *fake_rm_new(void);
void fake_rm_free(struct fake_rm *f);
/* To be freed before the fake. */
struct nvrm *fake_rm_nvrm(struct fake_rm *f);
/* From the next one on questions about processes are answered when they are heard. */
void fake_rm_answer_later(struct fake_rm *f);
/* And those that come of looking into that process are not answered at all; 0: all are. */
void fake_rm_silence(struct fake_rm *f, pid_t pid);
size_t fake_rm_unanswered(struct fake_rm *f);
/* Those fail with -ETIMEDOUT from now on. */
void fake_rm_give_up(struct fake_rm *f);

struct fake_given_up {
	size_t n; /* that did */
	uid_t user; /* whose reader the last one was asked of, */
	bool apart; /* and whether that was a second one */
};

struct fake_given_up fake_rm_given_up(struct fake_rm *f);
/* A copy of the first descriptor of the driver that the process has. */
int fake_rm_borrow(struct fake_rm *f, pid_t pid);
/* Another descriptor of the same file, as one sent to another process; to be closed as others. */
int fake_rm_dup(struct fake_rm *f, int fd);

/* ---- the machine ---- */

void fake_rm_add_gpu(struct fake_rm *f, uint32_t gpu, const char *name);
void fake_rm_set_version(struct fake_rm *f, const char *text); /* NULL: no driver */
void fake_rm_set_mig(struct fake_rm *f, uint32_t gpu);
void fake_rm_set_caller(struct fake_rm *f, uid_t uid);
/* From now on a client is given the lowest number that is free, not the next. */
void fake_rm_recycle_numbers(struct fake_rm *f);
/* So many clients come and go: the next number is as much higher. */
void fake_rm_pass_clients(struct fake_rm *f, uint32_t n);
/* Stands still but for calls of the driver. With @real it is the clock of the machine. */
void fake_rm_advance(struct fake_rm *f, uint64_t ns);
void fake_rm_set_real_time(struct fake_rm *f, bool real);

/* ---- processes ---- */

void fake_rm_spawn(struct fake_rm *f, pid_t pid, uid_t uid, const char *comm);
/* Its file is /usr/bin/@comm unless said otherwise. */
void fake_rm_set_exe(struct fake_rm *f, pid_t pid, const char *path);
/* Its number there. "/dev/nvidiactl": a file of the driver that clients can be made through. */
int fake_rm_open_file(struct fake_rm *f, pid_t pid, const char *path);
/* So many sockets, beside all else. */
void fake_rm_open_sockets(struct fake_rm *f, pid_t pid, unsigned int n);
void fake_rm_close_file(struct fake_rm *f, pid_t pid, int number);
/* The same file has another number from now on. */
void fake_rm_move_file(struct fake_rm *f, pid_t pid, int number);
void fake_rm_set_owner(struct fake_rm *f, pid_t pid, uid_t uid);
/* The new process has all files its parent has. */
void fake_rm_fork(struct fake_rm *f, pid_t parent, pid_t pid);
/* The process's new client, made through that descriptor. */
uint32_t fake_rm_client(struct fake_rm *f, pid_t pid, int number);
/* A CUDA context: four groups. The handle of the first, the compute one. */
uint32_t fake_rm_context(struct fake_rm *f, uint32_t client, uint32_t gpu,
			 unsigned int connections);
/* The process frees the client itself; its number is free, though the descriptor is open. */
void fake_rm_free_client(struct fake_rm *f, uint32_t client);
/* The context whose compute group it is goes. */
void fake_rm_drop_context(struct fake_rm *f, uint32_t client, uint32_t group);
void fake_rm_memory(struct fake_rm *f, uint32_t client, unsigned int n);
/* The client's next objects take the numbers from @handle on, which are free again. */
void fake_rm_reuse(struct fake_rm *f, uint32_t client, uint32_t handle);
/* All of the above: a process of root with one context. Its client. */
uint32_t fake_rm_job(struct fake_rm *f, pid_t pid);
/* The group of one client is, to the hardware, that of another: MPS. */
void fake_rm_share_group(struct fake_rm *f, uint32_t client, uint32_t group, uint32_t with_client,
			 uint32_t with_group);
void fake_rm_exit(struct fake_rm *f, pid_t pid);

/* A client's objects as they are; to be given back with nvrm_objects_done(). */
void fake_rm_table(struct fake_rm *f, uint32_t client, struct nvrm_objects *ret);

/* ---- what goes wrong ---- */

enum fake_op {
	FAKE_ANY,
	FAKE_OPEN,
	FAKE_IOCTL,
	FAKE_PIDFD,
	FAKE_BORROW,
	FAKE_READ,
	FAKE_LIST,
	FAKE_OWNER,
};

/* What the driver is asked with other escapes than controls, where a control's number goes. */
#define FAKE_CMD_ALLOC 0x2bu
#define FAKE_CMD_FREE 0x29u
#define FAKE_CMD_SHARE 0x35u

struct fake_fault {
	enum fake_op op;
	uint32_t cmd; /* 0: any */
	unsigned int after; /* so many go well first */
	unsigned int times; /* 0: once */
	int error; /* an errno, or */
	int status;
	bool applied; /* the driver did it all the same */
	pid_t exits; /* who does, just before */
	void (*then)(void *arg); /* called just before; must not ask the fake anything */
	void *arg;
};

void fake_rm_fault(struct fake_rm *f, const struct fake_fault *fault);
void fake_rm_mend(struct fake_rm *f); /* no more faults */

/* Calls of @cmd wait in the driver until they are let go. */
void fake_rm_block(struct fake_rm *f, uint32_t cmd);
void fake_rm_wait_blocked(struct fake_rm *f); /* until somebody waits there */
void fake_rm_unblock(struct fake_rm *f);

/* ---- what happened ---- */

struct fake_call {
	enum fake_op op;
	uint32_t cmd, client, object;
	int result; /* -errno or a status */
	/* DISABLE_CHANNELS */
	bool disable;
	uint32_t n;
	/* SET_TIMESLICE */
	uint64_t us;
};

/* The first million since they were forgotten. Borrowed until the next call. */
const struct fake_call *fake_rm_calls(struct fake_rm *f, size_t *ret_n);
size_t fake_rm_count(struct fake_rm *f, enum fake_op op, uint32_t cmd); /* 0: any */
/* Calls before the first one of @cmd; SIZE_MAX: there was none. */
size_t fake_rm_count_before(struct fake_rm *f, uint32_t cmd);
void fake_rm_forget_calls(struct fake_rm *f);

struct fake_sins {
	unsigned int kernel_lines; /* in the kernel's log */
	unsigned int strangers; /* channels named of clients the caller has no descriptor of */
	unsigned int shared; /* channels disabled that are somebody else's too */
	unsigned int misuse; /* of descriptors; of SHARE, on an object that exists */
};

struct fake_sins fake_rm_sins(struct fake_rm *f);
size_t fake_rm_descriptors(struct fake_rm *f); /* that the caller has open on the driver */
size_t fake_rm_pinned(struct fake_rm *f); /* clients whose process has ended */
/* Of the channels of a process or, -1, of all: disabled ones, and the highest count. */
size_t fake_rm_disabled(struct fake_rm *f, pid_t pid);
unsigned int fake_rm_highest(struct fake_rm *f, pid_t pid);
bool fake_rm_group_off(struct fake_rm *f, uint32_t client, uint32_t group);
uint64_t fake_rm_slice(struct fake_rm *f, uint32_t client, uint32_t group);
/* Somebody else, long gone, did this. */
void fake_rm_leave_disabled(struct fake_rm *f, uint32_t client, uint32_t group, unsigned int times);
void fake_rm_leave_slice(struct fake_rm *f, uint32_t client, uint32_t group, uint64_t us);

#endif
