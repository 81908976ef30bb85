/* SPDX-License-Identifier: MIT */
/* The backend as its own files see it: backend.c and backend_*.c. */
#ifndef GPREEMPT_GPU_KFD_BACKEND_INTERNAL_H
#define GPREEMPT_GPU_KFD_BACKEND_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "gpu/acting.h"
#include "gpu/helpers/asks.h"
#include "gpu/helpers/drop.h"
#include "gpu/helpers/readers.h"
#include "gpu/kfd/backend.h"
#include "gpu/kfd/debugfs.h"
#include "gpu/kfd/look.h"
#include "gpu/kfd/tracer.h"
#include "gpu/scout.h"
#include "gpu/watchpoints/alerts.h"

struct mqds { /* every process's, as they were read last */
	struct readers *readers; /* their own, as in struct backend */
	struct gkfd_mqds_question q;
	bool asked; /* it was read at least once, or is being read */
	uint64_t asked_ns; /* since when */
	bool used; /* what it came to */
	uint64_t fresh_ns; /* since when */
};

struct backend {
	/* By threads of ours, by holders, or by the worker; fd tells of all helpers. */
	struct acting_backend base;
	struct gkfd *k;
	enum gkfd_way way;
	struct ext *ext; /* level K3, and no way; NULL: not */
	struct guard *guard;
	pid_t own_pid; /* as the device knows this process */
	LIST_HEAD(, gpu_watch) watches;

	/* new processes */
	struct scout *scout; /* NULL: nobody tells of them */
	int deaf; /* and why */
	int opens; /* -1: nobody tells */
	uint64_t stamp; /* the scout's */
	bool came; /* since processes were listed last */

	int holder_program; /* -1: targets have threads of ours */
	int holders_fd;
	LIST_HEAD(, former) former; /* holders */
	struct drops sockets; /* theirs */

	/* looking */
	struct gkfd_look_room *room; /* where there are no readers */
	bool look_ids[GKFD_LOOKS]; /* that are taken */
	unsigned int awaited; /* looks that the owner waits for */
	struct mqds mqds;
	struct alerts *alerts; /* NULL: alerts_error says why */
	int alerts_error;
};

/* Who else has something to say, in the owner's descriptor. */
enum part { PART_MQDS = ACTING_OTHERS, PART_HOLDERS, PART_SCOUT, PART_ALERTS, PARTS };

/* ---- backend_follow.c: new processes at once ---- */

void follow_begin(struct backend *b); /* where that is possible */
void follow_end(struct backend *b);
int follow_came(struct gpu_backend *base);
void follow_listed(struct backend *b); /* processes were */

/* ---- backend_mqds.c: where queues have their pointers ---- */

int mqds_init(struct backend *b);
void mqds_done(struct backend *b);
/* Has it read anew unless that was a moment ago; may wait for a short time. */
void mqds_refresh(struct backend *b);
bool mqds_is_known(const struct backend *b); /* else it is still being read, and empty */
const struct gkfd_mqds *mqds_list(const struct backend *b);
/* Why it cannot be read, for people; NULL: it can be, or it is not known yet. */
const char *mqds_problem(const struct backend *b);

/* "mqds" holds every process's queues and is long: within this time one reading is for all. */
#define MQDS_FRESH_NS (50 * NSEC_PER_MSEC)

struct watched { /* queues of a process, and where they are */
	struct gpu_queue *queues;
	struct gkfd_look_queue *known; /* those whose pointers are known */
	struct gpu_sample *samples; /* of the known, then of the unseen */
	struct gpu_sample *found; /* of the known, as a look has them */
	uint64_t *used; /* of the known: the use of it that was the last */
	size_t n, n_known, n_unseen;
	bool kept; /* something as it was before, as nobody could tell anew */
};

struct gpu_watch {
	LIST_ENTRY(gpu_watch) link;
	struct backend *b;
	pid_t pid;
	char *names; /* of its queues, as sysfs lists them */
	struct watched q;
	bool stale; /* some pointers are not known, or not where they were */
	int error; /* of the last refresh: what is known of its queues is older */
	uint64_t retry_ns, retry_at_ns; /* when to look for them again */

	/* looking */
	struct gkfd_look *look; /* without readers */
	struct readers_task task;
	uint32_t id;
	uint32_t told; /* the reader that knows where to look; 0: none does */
	bool awaited, looked; /* until that was told */
	int result; /* of the last look */

	/* being told at once */
	bool wants_alert, has_alert;
	int alert_error; /* why it has none */
	struct alert alert;
	uint32_t alert_queues[POINTS_ADDRESSES]; /* of its addresses: indices of q.known */
	uint32_t struck; /* addresses, as bits; what a look found before says nothing of them */
	uint64_t uses; /* of its queues */
	uint64_t missed_ns; /* when a queue was used last that is not watched; 0: never */
	bool alert_told; /* something was, since it was armed last */
};

#define for_each_target(b, t) \
	for (struct gpu_target *t = (struct gpu_target *)LIST_FIRST(&(b)->base.targets); t; \
	     t = (struct gpu_target *)LIST_NEXT((struct target_base *)t, link))

/* ---- backend_act.c ---- */

extern const struct acting acting_by_threads;
bool act_holds(struct gpu_target *t);
int act_held(struct gpu_target *t, uint32_t *ret, size_t max);
struct gkfd_target *act_target(struct gpu_target *t);

/* ---- backend_holders.c ---- */

extern const struct acting acting_by_holders;
/* Asks the driver, too, which version it is. -ENOENT: the program is not installed. */
int holders_open(struct backend *b);
void holders_free(struct backend *b);
/* Takes what came back, if any has something to say, and gives up who hangs. */
void holders_run(struct backend *b, bool speak);
bool holders_hold(struct gpu_target *t);
bool holders_own(const struct backend *b, pid_t pid); /* is it one of the processes? */

/* ---- backend_watch.c ---- */

int watch_new(struct gpu_backend *base, pid_t pid, struct gpu_watch **ret);
void watch_free(struct gpu_watch *w);
int watch_refresh(struct gpu_watch *w);
const struct gpu_queue *watch_queues(const struct gpu_watch *w, size_t *ret_n);

/* ---- backend_look.c ---- */

int look_init(struct gpu_watch *w);
void look_done(struct gpu_watch *w);
void look_changed(struct gpu_watch *w); /* other queues, or where they are */
void look_at(struct gpu_backend *base, struct gpu_watch *const *watches, size_t n);
int look_result(struct gpu_watch *w, const struct gpu_sample **ret);
const char *look_blind(const struct gpu_watch *w);

/* ---- backend_alert.c ---- */

void alert_open(struct backend *b); /* where that fails nobody has one, and it is told why */
int alert_fd(struct gpu_backend *base);
void alert_set(struct gpu_watch *w, bool on);
pid_t alert_next(struct gpu_backend *base);
int alert_state(const struct gpu_watch *w, const char **ret_why);
void alert_done(struct gpu_watch *w);
void alert_changed(struct gpu_watch *w); /* other queues, or where they are */
void alert_note_use(struct gpu_watch *w, uint32_t queue); /* of the known */
/* After a look, whose samples are there. */
void alert_looked(struct gpu_watch *w);

#endif
