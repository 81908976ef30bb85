/* SPDX-License-Identifier: MIT */
/*
 * The extension of the driver, tried call by call in the guest: processes that do what a case tells
 * them, the extension's calls, and what the software GPU says about it.
 *
 * A case that sees something wrong ends at once with expect(); what it made is cleared away by who
 * runs it. After each call the driver's books are looked at: the queues it counts as active are
 * those that are, and the GPU has as many.
 */
#ifndef GPREEMPT_TESTS_EXT_EXT_H
#define GPREEMPT_TESTS_EXT_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/kfd_gpreempt.h"
#include "tests/vm/mk.h"

#define MAX_GPUS 8u
#define MAX_JOB_QUEUES 128u
#define ALL KFD_GPREEMPT_ALL_QUEUES
#define ANY KFD_GPREEMPT_ANY_GPU
#define SOMEBODY 1000u /* a user who is not root */
#define SOMEBODY_ELSE 1001u

/* Where a case makes sense; several: all of them. */
enum {
	ON_CP = 1, /* chips whose scheduler takes run lists */
	ON_MES = 2,
	ON_TWO = 4, /* machines with several GPUs, and only there */
};

struct ext_case { /* a table of them ends with a NULL name */
	const char *name; /* a sentence */
	void (*run)(void);
	unsigned int where;
};

extern const struct ext_case argument_cases[], right_cases[], hold_cases[], file_cases[],
	life_cases[], switch_cases[], victim_cases[], ticket_cases[], stop_cases[], look_cases[],
	fault_cases[], interplay_cases[], gpu_cases[], scheduler_cases[];

/* ---- what is expected ---- */

_Noreturn void fail_case(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define expect(condition, ...) \
	do { \
		if (!(condition)) \
			fail_case(__VA_ARGS__); \
	} while (0)
void expect_is(const char *what, long got, long wanted); /* numbers, or results of calls */
const char *result_name(long r); /* "-EBUSY" */

/* ---- time ---- */

uint64_t now_ms(void);
void let_pass(unsigned int ms); /* time itself, where it is what matters */
extern unsigned int slowness; /* of this kernel */
/* @ms, or where the kernel watches itself so much longer as calls take then. */
uint32_t lasting(uint32_t ms);

/* ---- the machine ---- */

struct machine {
	unsigned int n_gpus;
	uint32_t gpu_ids[MAX_GPUS];
	bool is_mes;
	bool may_be_off; /* the books and the GPU need not agree: one is broken, or at work */
};
extern struct machine machine;

void find_machine(void);
uint64_t counter(unsigned int gpu, const char *name); /* of the software GPU */
/* What it did for one process. */
void process_counters(unsigned int gpu, pid_t pid, uint64_t *ret_maps, uint64_t *ret_unmaps);
void set_knob(unsigned int gpu, const char *name, const char *value);
void set_parameter(const char *name, const char *value);
uint32_t doorbell_of_only_queue(unsigned int gpu);
void check_books(void);
void wait_for_no_queues(void);

/* The scheduler's work since a moment. */
struct meter {
	uint64_t unmaps, runlists, map_queues, removes, adds;
	uint32_t active; /* queues, then */
};
struct meter meter(unsigned int gpu);
struct meter since(struct meter before, unsigned int gpu);
/* One cycle of the run list, or with MES so many removed and added. */
void expect_one_cycle(struct meter before, unsigned int gpu, unsigned int removed,
		      unsigned int added);
void expect_no_work(struct meter before, unsigned int gpu);

/* ---- processes ---- */

struct actor {
	pid_t pid; /* 0: it has ended */
	int channel;
	bool works;
};

void *shared(size_t bytes); /* zeroes that all processes of a case see; ends with it */
struct actor *actor(uid_t uid);
/* Calls @function there; it is the same program. */
int in(struct actor *a, int (*function)(void *arg), void *arg);
void begin_in(struct actor *a, int (*function)(void *arg), void *arg);
int end_in(struct actor *a);
void wait_for_exec(struct actor *a); /* by what was begun in it */
void lose_first_thread(struct actor *a); /* it ends, another does what it did */
void kill_actor(struct actor *a);
void forget_actors(void);
uint64_t start_ticks_of(pid_t pid);

/* ---- jobs: actors with queues, and packets that can be checked ---- */

struct actor *job(unsigned int n); /* root's, on GPU 0, with AQL queues */
struct actor *job_of(uid_t uid, unsigned int n);
struct actor *job_with_runtime(unsigned int n); /* one that can be debugged */
void add_queues(struct actor *a, unsigned int n, enum mk_kind kind, unsigned int gpu);
uint32_t queue_id(struct actor *a, unsigned int i);
void destroy_queue(struct actor *a, unsigned int i); /* what it had to do is not asked for again */
void give(struct actor *a, unsigned int packets); /* to each queue */
void give_one(struct actor *a, unsigned int i, unsigned int packets);
uint64_t left(struct actor *a);
uint64_t left_of(struct actor *a, unsigned int i);
int kfd_call(struct actor *a, unsigned long request, void *arg); /* on its /dev/kfd */
int set_percent(struct actor *a, unsigned int i, uint32_t percent);
int set_cu_mask(struct actor *a, unsigned int i, uint32_t mask);
int criu(struct actor *a, uint32_t op);
int kfd_of(struct actor *a); /* number of its descriptor */

void expect_stands(struct actor *a); /* has work, none of which is done */
void expect_queue_stands(struct actor *a, unsigned int i);
void expect_runs(struct actor *a);
void expect_queue_runs(struct actor *a, unsigned int i);
void expect_all_done(struct actor *a); /* every packet, once and in order */

/* ---- the extension ---- */

int open_ext(void); /* closed with the case */
void close_ext(int fd);
int ext(int fd, unsigned long request, void *arg); /* or -errno */
/* The same by somebody else, who opens the device first. */
void open_ext_by(struct actor *a);
int ext_by(struct actor *a, unsigned long request, void *arg);
int bind_by(struct actor *a, struct actor *target); /* by pidfd_getfd; -errno of that, or BIND's */

struct kfd_gpreempt_entry *entry_of(struct actor *a, uint32_t queue, uint32_t gpu);
struct kfd_gpreempt_entry *entries(unsigned int n);
struct kfd_gpreempt_batch *batch(struct kfd_gpreempt_entry *e, uint32_t n_unmap, uint32_t n_map);
struct kfd_gpreempt_one *one(struct actor *a, uint32_t queue);
/* All queues of @a; the result of its entry. */
int hold(int fd, struct actor *a);
int hold_for(int fd, struct actor *a, uint32_t ms);
int let_go(int fd, struct actor *a);
int hold_self(struct actor *a);
int let_go_self(struct actor *a);
struct kfd_gpreempt_hqd hqd(unsigned int gpu);
struct kfd_gpreempt_queue queue_stats(int fd, struct actor *a, unsigned int i);

#endif
