/* SPDX-License-Identifier: MIT */
/* What we say of the driver and the hardware, held against a machine, and the report of it. */
#ifndef GPREEMPT_CMD_ACCEPT_H
#define GPREEMPT_CMD_ACCEPT_H

#include <math.h>

#include "cmd/gpreempt/figures.h"

/* Of what runs when a GPU takes turns: the processes with a VMID (Linux 6.12 kfd_device.c). */
#define VMIDS 13

enum result { RESULT_NONE, RESULT_PASS, RESULT_FAIL, RESULT_SKIP };

struct outcome {
	enum result result;
	bool has_figure;
	double figure;
	char detail[320];
};

struct save { /* what one suspension had to save */
	uint64_t bytes, suspend_ns;
	uint32_t queues;
};

struct rounds { /* of suspending and resuming */
	struct figures suspend, resume;
	struct save *saves; /* of the rounds where that could be read */
	size_t n_saves;
};

struct accept {
	struct cli *cli;
	pid_t pid, online_pid; /* online_pid 0: none named */
	uint64_t wanted; /* rounds of a series */
	const char *file; /* of the report */
	char default_file[96];

	FILE *report;
	struct gpreempt_process *process; /* NULL: not attached now */
	struct gpreempt_process *online; /* NULL: none named */
	struct gpreempt_device_info device;
	struct gpreempt_gpu gpus[GPREEMPT_MAX_GPUS];
	size_t n_gpus;
	struct gpreempt_queue *queues; /* at the beginning */
	size_t n_queues;
	uint64_t first_ns; /* the very first suspension */
	struct rounds all; /* every queue, shortest grace */
	bool not_hardware; /* a model, or the driver on a software GPU */
	int signal; /* that ended it; 0: none */
	bool gone; /* the process cannot be asked any more */
};

struct check {
	const char *name;
	const char *claim; /* what we say; ends with '?' where only the figure can tell */
	const char *unit;
	void (*run)(struct accept *a, struct outcome *o);
};

/* Ended by a NULL name. In this order: the first suspension comes only once. */
extern const struct check accept_checks[];

/* ---- accept_measure.c ---- */

/* @figure: NAN where there is none. */
void outcome_set(struct outcome *o, enum result result, double figure, const char *fmt, ...)
	_printf_(4, 5);
#define outcome_pass(o, figure, ...) outcome_set(o, RESULT_PASS, figure, __VA_ARGS__)
#define outcome_fail(o, ...) outcome_set(o, RESULT_FAIL, NAN, __VA_ARGS__)
#define outcome_fail_figure(o, figure, ...) outcome_set(o, RESULT_FAIL, figure, __VA_ARGS__)
#define outcome_skip(o, ...) outcome_set(o, RESULT_SKIP, NAN, __VA_ARGS__)
/* A library call failed, or -EINTR: says so, and notes whether there is more to be asked. */
void outcome_error(struct accept *a, struct outcome *o, int r);

/* Lets time pass. -EINTR: a signal has come, and waits to be taken. */
int accept_wait(struct accept *a, uint64_t ns);
int accept_attach(struct accept *a, unsigned int flags); /* -errno; keeps the process in @a */
int accept_get_queues(void *of, void *list, size_t room); /* of a process, for list_read() */

struct setting { /* of a round */
	const uint32_t *ids; /* NULL: all queues */
	size_t n;
	uint32_t grace_kclk;
};

int rounds_init(struct rounds *r, size_t room); /* -ENOMEM */
void rounds_done(struct rounds *r);
/* Lets the job run, suspends it and resumes it at once. */
int rounds_add(struct accept *a, struct rounds *r, const struct setting *setting);
/* Two settings by turns, so that what changes meanwhile changes both. */
int rounds_compare(struct accept *a, struct rounds r[2], const struct setting settings[2]);
double median_us(struct figures *f);

/* ---- accept_progress.c: what can be seen of a job's work ---- */

struct look; /* how far each queue is */

int look_take(struct gpreempt_process *p, struct look **ret); /* *ret is the caller's to free */
size_t look_known(const struct look *l); /* queues whose read pointer can be seen */
size_t look_moved(const struct look *before, const struct look *after); /* queues that went on */
uint64_t look_packets(const struct look *before, const struct look *after); /* of AQL queues */
/*
 * Waits until a queue goes on from where it was at @since. *ret_ns: how long that took.
 * -ETIME: none did, in @limit_ns.
 */
int look_wait(struct accept *a, const struct look *since, uint64_t limit_ns, uint64_t *ret_ns);
/* How long the job takes to show that it works. -ECANCELED: *o says why that cannot be told. */
int look_working(struct accept *a, struct outcome *o, uint64_t *ret_ns);

void check_stops(struct accept *a, struct outcome *o);
void check_continues(struct accept *a, struct outcome *o);
void check_online(struct accept *a, struct outcome *o);

/* ---- accept_killed.c ---- */

void check_killed(struct accept *a, struct outcome *o);

/* ---- accept_host.c ---- */

void host_print(const struct accept *a, FILE *f); /* lines */
struct json_object *host_to_json(const struct accept *a);
/* What a process has mapped at @addr: the file's name, "" for memory of no file. -ENOENT. */
int host_mapping(pid_t pid, uint64_t addr, char *ret, size_t size);

/* ---- accept_report.c ---- */

/* Creates the report, which must not exist yet. An exit status. */
int report_open(struct accept *a);
void report_discard(struct accept *a);
void report_begin(struct accept *a); /* what is known before the first check */
void report_check(struct accept *a, const struct check *check, const struct outcome *o);
/* Closes the report. An exit status: EXIT_DONE where nothing failed and nothing was left out. */
int report_end(struct accept *a, const struct outcome *outcomes);

#endif
