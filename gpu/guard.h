/* SPDX-License-Identifier: MIT */
/*
 * The guard: a small process beside every process that holds queues.
 *
 * With the stock KFD driver the death of the holder is what makes the driver resume a job; a
 * holder that is merely stopped or deadlocked leaves it frozen for ever. So every thread that
 * matters to a hold keeps a deadline in a page shared with the guard and pushes it on while it
 * is alive. When one passes, the guard kills the holder. Behind it stands a kernel timer of the
 * holder's own that delivers SIGKILL a little later, so that a holder is gone even when its
 * guard was killed first; and the holder watches the guard (guard_fd) and lets go when it dies.
 *
 * Where the holder's death would not end the hold, the guard has to: before such a hold it is
 * entrusted with what undoes it (guard_entrust), and does that when the holder is gone. And where
 * it should end it but may be kept from that, the guard starts a program that does (guard_rescue).
 *
 * The guard shares the holder's memory, so that this is not given up while the holder ends. Amdkfd
 * does its part when it is (Linux 6.12 kfd_process_notifier_release), and waits for others there,
 * which any process can make last for ever; and a thread that waits there still traces its target,
 * so that nobody else could help it. So the guard must not be there for ever either: a timer of its
 * own kills it when it is stopped.
 *
 * The page is a memfd named GUARD_MEMFD_NAME: it marks a process as a holder of ours and lists
 * what it holds, for whoever has to clean up after it (release.h).
 */
#ifndef GPREEMPT_GPU_GUARD_H
#define GPREEMPT_GPU_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GUARD_MEMFD_NAME "gpreempt-guard"
#define GUARD_SLOTS 1024
/*
 * A thread that says nothing for so long is dead. With the looks of the guard, or the timer behind
 * it, and the driver's time to resume, a job runs again within two seconds.
 */
#define GUARD_SILENCE_NS 1400000000ull
#define GUARD_BEAT_NS (GUARD_SILENCE_NS / 8) /* between two beats of a thread that is well */
/* A driver call may wait for the hardware: queue_preemption_timeout_ms is 9000 in Linux 6.12. */
#define GUARD_DRIVER_CALL_NS 12000000000ull

struct guard;

/*
 * False in the first process of a pid namespace (pid 1 of a container), which ignores even
 * SIGKILL from inside it. It must hold nothing real.
 */
bool guard_is_possible(void);

/* A program that is run when the holder is gone and was still attached to something. */
struct guard_rescue {
	int program; /* a descriptor; -1: none */
	const char *const *argv; /* with what it needs to know; must stay where it is */
};

/*
 * Starts the guard of this process. Also makes the process undumpable, because writing a core
 * can delay its death for minutes. The guard's end raises no SIGCHLD and is invisible to
 * wait(2) without __WALL.
 */
int guard_start(struct guard **ret);
int guard_start_with(const struct guard_rescue *rescue, struct guard **ret);
/* Nothing may be armed any more. A program that execs loses its guard. Accepts NULL. */
void guard_stop(struct guard *g);

int guard_fd(const struct guard *g); /* readable when the guard has died; -1: kernel has no pidfd */
bool guard_alive(const struct guard *g);
pid_t guard_pid(const struct guard *g);

/*
 * Promises to push the deadline on within @allow_ns, again and again, until guard_disarm().
 * @target is noted in the page as attached by this process; 0: this is the owner itself, for
 * whom there is always a slot. A slot number, or -ENOSPC,
 * -EOWNERDEAD when the guard is dead.
 */
int guard_arm(struct guard *g, pid_t target, uint64_t allow_ns);
void guard_beat(struct guard *g, int slot, uint64_t allow_ns);
void guard_disarm(struct guard *g, int slot); /* what was entrusted for it is forgotten */

/*
 * What a holder's death leaves undone: ioctls on a descriptor of the target's. Where an argument
 * points to more, that lies in the undo's data, and the guard puts in the address.
 */
#define GUARD_UNDO_ARG_MAX 64
#define GUARD_CALLS 32
#define GUARD_DATA 12288
#define GUARD_NO_POINTER UINT32_MAX

struct guard_call {
	uint64_t request; /* of ioctl(2) */
	uint8_t arg[GUARD_UNDO_ARG_MAX];
	uint32_t pointer_at; /* where in arg the address of its data goes; GUARD_NO_POINTER */
	uint32_t data_at, data_len; /* in the undo's data; passed over without a pointer */
	uint32_t due; /* to be made when the holder is gone */
};

struct guard_undo {
	uint32_t traced; /* the calls are accepted only from a thread that traces the target */
	uint32_t n_calls;
	struct guard_call calls[GUARD_CALLS]; /* made in this order */
	uint8_t data[GUARD_DATA];
};

/*
 * Hands the guard copies of @fd and of the target's @pidfd, and @undo, for an armed slot. It takes
 * the place of what was entrusted for the slot before at once and as a whole: whenever the holder
 * is killed, either what was due in the old one is undone or what is due in the new one. -EINVAL:
 * an undo that contradicts itself; -EOWNERDEAD: the guard does not answer.
 */
int guard_entrust(struct guard *g, int slot, int fd, int pidfd, const struct guard_undo *undo);
/*
 * Of one call of what is entrusted. Before that is done which it undoes: true; once it is undone:
 * false. A store to memory, no more.
 */
void guard_set_due(struct guard *g, int slot, uint32_t call, bool due);

/* The page, as read by others. */
#define GUARD_MAGIC 0x67726475u
struct guard_slot {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: not armed */
	int32_t target;
	uint32_t undo; /* which of the two holds */
};
struct guard_page {
	uint32_t magic;
	int32_t holder;
	uint32_t used; /* slots below it, at some time: no other one needs to be looked at */
	uint32_t pad;
	struct guard_slot slots[GUARD_SLOTS];
	struct guard_undo undo[GUARD_SLOTS][2]; /* by slot: the one that holds, and the next */
};

#endif
