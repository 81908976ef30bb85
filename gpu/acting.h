/* SPDX-License-Identifier: MIT */
/*
 * Targets and the orders to them, of a backend that has others do what is ordered: a thread, or
 * processes. An order goes to whoever does it, and comes back with what came of it for the owner to
 * take.
 */
#ifndef GPREEMPT_GPU_ACTING_H
#define GPREEMPT_GPU_ACTING_H

#include "gpu/backend.h"
#include "gpu/helpers/asks.h"
#include "gpu/mailbox.h"

struct order {
	STAILQ_ENTRY(order) link; /* on its way to who does it */
	struct mail mail; /* and back */
	struct gpu_target *t;
	struct gpu_done done;
	struct gpu_hold what; /* its ids are behind the order */
	enum gpu_slice slice;
	uint64_t called_ns;
};

STAILQ_HEAD(order_list, order);

struct backend; /* the implementation's own; begins with an acting_backend */

struct target_base { /* what a struct gpu_target begins with */
	LIST_ENTRY(target_base) link;
	struct backend *b;
	pid_t pid;
	/* There from the beginning: they cannot fail. NULL: told, or on its way. */
	struct order *ended, *release;
};

/* How it is acted on targets. */
struct acting {
	size_t target_size, order_size; /* of what begins with a target_base, and a struct order */
	/* A target that has nothing but its base is to be attached. */
	int (*begin)(struct gpu_target *t, const struct gpu_attach *request);
	void (*end)(struct gpu_target *t); /* also where that failed; NULL: nothing is to be done */
	/* Takes the order over unless it fails, as a release does not. The first one attaches. */
	int (*post)(struct gpu_target *t, struct order *o);
	void (*close)(struct backend *b); /* lets everybody go, and waits for it */
};

struct acting_backend {
	struct gpu_backend base;
	const struct acting *acting;
	LIST_HEAD(, target_base) targets;
	struct mailbox done; /* orders */
	int fd; /* that, and what readers have to say */
	struct readers *readers; /* NULL: whatever is read cannot hang, and is read here */
	struct asks *asks;
};

/* ---- gpu_ops ---- */

int acting_attach(struct gpu_backend *base, const struct gpu_attach *request, uint64_t cookie,
		  struct gpu_target **ret);
int acting_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie);
int acting_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie);
int acting_slice(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie);
int acting_release(struct gpu_target *t, uint64_t cookie);
/* Frees the target with its release. */
int acting_take(struct gpu_backend *base, struct gpu_done *ret);
int acting_fd(struct gpu_backend *base);
int acting_owner(struct gpu_backend *base, pid_t pid, uid_t *ret);
int acting_ask(struct gpu_backend *base, pid_t pid, uint32_t files);
bool acting_answer(struct gpu_backend *base, struct proc_files *ret);

/* ---- for the implementation ---- */

/*
 * What is read of processes, by readers or here, from @source, and fd. Both descriptors are -1
 * before.
 */
int acting_open(struct acting_backend *b, bool by_readers, const struct proc_source *source,
		struct gpu_why *ret_why);
void acting_done(struct acting_backend *b); /* the reverse, also of a failed one */
/* fd is readable, with that as its data, also when @fd is. */
enum acting_part { ACTING_ORDERS, ACTING_READERS, ACTING_OTHERS };
int acting_poll(const struct acting_backend *b, uint32_t part, int fd);
/* A thread that acts. All signals are for others. @name: what people see, or NULL. */
int acting_thread(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg);

void acting_deliver(struct order *o); /* what came of it is for the owner to take */
void acting_forget(struct order_list *list);
/* Closes, and frees all targets and what was not taken. */
void acting_end(struct acting_backend *b);

#endif
