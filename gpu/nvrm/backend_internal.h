/* SPDX-License-Identifier: MIT */
/*
 * The backend as its own files see it.
 *
 * Two threads: the owner's, which calls the table, and one worker, which alone talks to the driver
 * about processes and so waits for its firmware. Orders go to the worker in a queue and come back
 * in the list of what is done; what a watch shows is handed over as a copy.
 *
 * Looking into processes takes as long as they like, and ending holds must not wait for it. So the
 * worker looks a step of a few milliseconds at a time, and between two of them sees to holds whose
 * time is over and to every order that has come. Users take turns with their steps. What lies in
 * /proc the worker does not touch: it asks, and goes on with others until the answer comes.
 */
#ifndef GPREEMPT_GPU_NVRM_BACKEND_INTERNAL_H
#define GPREEMPT_GPU_NVRM_BACKEND_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <sys/queue.h>

#include "gpu/nvrm/backend.h"
#include "gpu/nvrm/machine.h"
#include "gpu/nvrm/process.h"
#include "gpu/acting.h"

#define NEVER_NS UINT64_MAX
#define OWN_POLLS 3 /* besides those of processes: woken, the guard dies, answers */
/*
 * What no job of libcuda's comes near. So long a look goes on slowly, and nobody waits for it to be
 * attached.
 */
#define LONG_STEPS 1024u

struct gpu_target {
	struct target_base base; /* ended: the worker's */

	/* with the lock, for the owner: what is off */
	bool holds;
	uint32_t *off_ids;
	size_t n_off;

	/* the worker's */
	struct proc *proc; /* NULL: not attached, and why */
	int refused;
	struct nvrm_failure refusal;
	uint64_t round; /* in which an order of it was seen */
	bool all; /* is held, whatever it creates */
	uint32_t held; /* else on these GPUs: bits by their index, as all sets of them */
	bool named; /* and there only what was: nothing that it creates */
	uint64_t until_ns; /* then it is let go */
	enum gpu_slice slice;

	/* of the order that the worker runs */
	bool waits; /* an attach, for a look */
	uint32_t want; /* GPUs */
	struct nvrm_failure failure;
	size_t off; /* groups, before */
};

struct gpu_watch {
	LIST_ENTRY(gpu_watch) link; /* changed with the lock */
	struct backend *b;
	pid_t pid;

	/* the owner's */
	struct gpu_queue *queues;
	size_t n;

	/* with the lock */
	struct gpu_queue *fresh; /* to become queues, where there is news */
	size_t n_fresh;
	bool news, ended;
	int unanswered; /* as the process has it */
	bool left; /* by the owner: it is the worker's to free */

	struct proc *proc; /* the worker's; NULL: not seen by it yet */
};

/* Who takes turns: the worker's. */
struct user {
	LIST_ENTRY(user) link;
	uid_t uid;
	size_t n_procs;
	uint64_t looked; /* the last step for him */
};

/* A process somebody watches or has attached; the worker's. */
struct proc {
	LIST_ENTRY(proc) link;
	struct backend *b;
	struct user *user;
	pid_t pid;
	int pidfd;
	bool ended;
	bool owing; /* what was done to it the driver would not undo: it is kept and tried again */
	struct nvrm_quest quest;
	struct nvrm_process *p; /* NULL: could not be opened, for now */
	struct nvrm_process *opening; /* is being looked into for the first time */
	struct gpu_target *t;
	struct order *attach; /* that waits until it is open */
	unsigned int n_watches;
	uint64_t look_ns, look_after_ns; /* when its contexts are looked at next */
	uint64_t looked; /* the last step for it */
	unsigned int steps; /* of the look that is under way */
	bool asks; /* it goes on when there is an answer */
	int unanswered; /* of the last look, as nvrm_process has it */
	uint32_t numbers; /* of groups, so far */
};

struct backend {
	struct acting_backend base;
	struct nvrm *n;
	struct guard *guard;

	/* the owner's */
	struct nvrm *finder_n; /* NULL: the same as the worker's, which then asks nobody */
	struct nvrm_finder *finder; /* its thread's, where that follows */
	struct follow *follow; /* NULL: nobody tells of newcomers */
	int deaf; /* and why */
	int blind; /* -errno: so that some may be seen late */
	bool came; /* somebody, since they were listed */
	char problem[192];
	struct order_list kept; /* of this turn, until they are submitted */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	struct order_list orders; /* to the worker */
	LIST_HEAD(, gpu_watch) watches;
	bool watches_changed;
	bool stop;
	int wake_fd;

	/* the worker's */
	struct order_list queue;
	LIST_HEAD(, proc) procs;
	LIST_HEAD(, user) users;
	uint64_t steps;
	uint32_t gpus[NVRM_MAX_GPUS]; /* that groups were seen on */
	uint32_t n_gpus;
	size_t n_procs;
	struct pollfd *polls; /* these arrays are as long as they can have to be */
	struct nvrm_process **batch;
	size_t polls_room, batch_room;
	uint64_t round;
	uint64_t hear_ns; /* by then the transport is heard again */
	int slot; /* of the guard; -1: nobody is attached */
	bool guard_died;
};

/* ---- backend_follow.c ---- */

int nvrm_follow_begin(struct backend *b); /* where that is possible */
void nvrm_follow_end(struct backend *b);
int nvrm_follow_came(struct gpu_backend *base);
int nvrm_follow_processes(struct gpu_backend *base, pid_t *ret, size_t max);
const char *nvrm_follow_problem(struct gpu_backend *base);

/* ---- backend_work.c ---- */

int nvrm_work_start(struct backend *b);
void nvrm_work_stop(struct backend *b); /* undoes everything and waits for it */
void nvrm_work_wake(struct backend *b);

/* On the worker. Around calls of the driver, which may wait for the hardware. */
void nvrm_work_enter(struct backend *b);
void nvrm_work_leave(struct backend *b);
/* Says what came of it and hands it back. */
void nvrm_work_finish(struct order *o, int r, const struct nvrm_failure *failure);
/* The target is attached no more, by itself; what was done to it has been undone. */
void nvrm_work_lost(struct gpu_target *t, int r, const struct nvrm_failure *failure);

/* ---- backend_proc.c, on the worker ---- */

/* Whoever has this pid now. -ENOMEM, -ESRCH or what else there is. */
int nvrm_proc_get(struct backend *b, pid_t pid, struct proc **ret);
void nvrm_proc_put(struct proc *x); /* frees it if nobody needs it */
/* A step of looking into it. 1: its groups are others than before; 0; -EINPROGRESS. */
int nvrm_proc_look(struct proc *x, struct nvrm_failure *ret_failure);
/* Lets looks go on that have their answers. True: there are some. */
bool nvrm_proc_go_on(struct backend *b);
/* Takes back all that was done to it; what the driver refuses it owes, and the guard knows. */
void nvrm_proc_undo(struct proc *x);
void nvrm_proc_close(struct proc *x);
/* Numbers for groups that have none: unique within the process, also of those that are gone. */
void nvrm_proc_number_groups(struct proc *x);
/* The bit of the GPU of a group of that number; 0: there was none. */
uint32_t nvrm_proc_gpu_of(const struct proc *x, uint32_t number);
uint32_t nvrm_proc_gpus(const struct proc *x);
uint32_t nvrm_gpu_bit(struct backend *b, uint32_t gpu);

/* ---- backend_hold.c, on the worker ---- */

/* Orders of one verb, each of another target; suspends and resumes together, others alone. */
void nvrm_hold_run(struct backend *b, struct order_list *batch);
/* The same for contexts that came later. */
int nvrm_hold_again(struct proc *x, struct nvrm_failure *ret_failure);
/* Shows the owner what is off of it by now. */
void nvrm_hold_publish(struct gpu_target *t);
/* Lets go those whose time is over; when the next one's is. */
uint64_t nvrm_hold_expire(struct backend *b);
/* The look that an attach waited for came to this. */
void nvrm_hold_attach(struct proc *x, int r, const struct nvrm_failure *failure);

/* ---- backend_watch.c ---- */

int nvrm_watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret);
void nvrm_watch_leave(struct gpu_watch *w);
int nvrm_watch_refresh(struct gpu_watch *w);
const struct gpu_queue *nvrm_watch_queues(const struct gpu_watch *w, size_t *ret_n);
void nvrm_watch_look(struct gpu_backend *base, struct gpu_watch *const *watches, size_t n);
int nvrm_watch_looked(struct gpu_watch *w, const struct gpu_sample **ret);
const char *nvrm_watch_blind(const struct gpu_watch *w);
void nvrm_watch_free_all(struct backend *b); /* once there is no worker */

/* On the worker. */
void nvrm_watch_sweep(struct backend *b); /* some came or left */
void nvrm_watch_show(struct proc *x); /* to all who watch it */
/* A step for one process whose time it is; when the next one's is. */
uint64_t nvrm_watch_look_around(struct backend *b);

#endif
