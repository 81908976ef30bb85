/* SPDX-License-Identifier: MIT */
/*
 * A gpu_backend in virtual time that does what a test says: processes with queues whose pointers
 * are set by hand, calls that take as long as they are told to, and fail when they are told to.
 *
 * It also judges its caller: see struct fake_faults.
 */
#ifndef GPREEMPT_TESTS_DAEMON_FAKE_BACKEND_H
#define GPREEMPT_TESTS_DAEMON_FAKE_BACKEND_H

#include "cmd/gpreemptd/journal.h"
#include "gpu/backend.h"
#include "gpu/helpers/asks.h"

#define FAKE_QUEUES 32
#define FAKE_CALLS 4096

struct fake_queue {
	struct gpu_queue queue;
	uint64_t read, write;
	enum gpu_state idle_state; /* told while read is write */
	bool suspended;
};

/* What a verb of a process comes to. */
struct fake_outcome {
	int result;
	bool gpu_failed;
	uint32_t gpu;
	uint64_t takes_ns;
	uint32_t times; /* how often it is so; 0: always */
};

struct fake_process {
	bool used, uses_gpu;
	pid_t pid, parent;
	uint64_t start_ticks;
	bool passes_on; /* to another process, as it is attached */
	bool unreadable; /* nothing in /proc answers */
	bool late; /* looks at it do not come back */
	bool blind; /* they come back with nothing */
	int unwatchable; /* -errno: its work cannot be told at once */
	bool deaf; /* it is said to be, and is not */
	bool alert, armed, struck; /* as in gpu/backend.h; by fake_set_work() */
	uint32_t alerts; /* times it was armed */
	struct gpu_watch *watch; /* the last */
	uint32_t uid;
	char comm[16];
	char cgroup[96];
	struct fake_queue queues[FAKE_QUEUES];
	size_t n_queues;
	bool queues_changed;
	int exit_fd; /* -1: nobody asked */
	struct gpu_target *target;
	bool online; /* for the judge: must never be held, nor attached without slices */
	enum gpu_slice slice;
	struct fake_outcome outcomes[GPU_SLICE + 1]; /* by verb */
	/* what was asked of it */
	uint32_t attaches, suspends, resumes, releases, slices, looks, asks;
	bool last_was_all; /* the last suspend or resume was of everything */
	size_t last_ids;
	uint64_t asked_suspend_ns, asked_resume_ns, longest_ns;
	struct gpu_native_job native; /* as the driver's own scheduler was told last */
	uint32_t native_sets, native_hints;
	uint64_t native_ahead_ns, native_for_ns; /* of the last hint */
};

struct fake_native { /* the driver's own scheduler */
	bool on, gone;
	int turn_on_result, turn_off_result;
	int set_job_result; /* negative: what it answers to every class */
	struct gpu_native_config config; /* the last */
	uint32_t turn_ons, turn_offs, rearms;
};

struct fake_faults { /* of the caller; all must be 0 */
	uint32_t online_attached;
	uint32_t not_written_down; /* a suspend, or what outlives us, without a journal entry */
	uint32_t overdue; /* no resume asked for by the deadline of a hold */
	uint32_t used_released; /* a call to a target that is being released */
	uint32_t double_attached;
	uint32_t not_submitted; /* calls that were kept at the end of a turn */
};

struct fake_call {
	uint64_t at_ns;
	struct gpu_done done;
	uint32_t ids[FAKE_QUEUES];
	size_t n_ids;
	bool all;
	enum gpu_slice slice;
};

struct fake {
	struct gpu_backend base;
	uint64_t now_ns;
	struct gpu_node nodes[GPU_NODES_MAX];
	size_t n_nodes;
	struct fake_process *processes;
	size_t max_processes;
	struct fake_call calls[FAKE_CALLS]; /* outstanding, in the order of their ends */
	size_t n_calls;
	int processes_result; /* of listing them; 0: well */
	const char *problem; /* why nobody's queues can be looked at; NULL: they can */
	struct asks *asks;
	bool silent; /* nobody answers who anybody is */
	int fd;
	struct fake_native native;
	struct journal *journal;
	struct fake_faults faults;
	uint32_t targets, watches; /* there are */
	uint32_t kept; /* calls since the last submit */
	uint64_t looks;
	uint64_t look_cost_ns, spent_ns; /* of helpers */
	uint32_t lists; /* of processes */
	int came; /* what it tells until it lists them; -errno: nobody tells */
	uint32_t came_asked;
};

extern const struct gpu_native_ops fake_native_ops;

void fake_init(struct fake *f, size_t max_processes);
/* From now on it tells at once of work. */
void fake_give_alerts(struct fake *f);
/* From now on it tells when somebody has come. */
void fake_give_news(struct fake *f);
/* From now on contexts are all it has: no progress, slices, and holds that outlive us. */
void fake_make_contexts(struct fake *f);
void fake_done(struct fake *f);
void fake_set_time(struct fake *f, uint64_t now_ns);
/* When the next call ends, or UINT64_MAX. */
uint64_t fake_next_ns(const struct fake *f);

struct fake_process *fake_find(struct fake *f, pid_t pid);
struct fake_process *fake_add(struct fake *f, pid_t pid, const char *comm, const char *cgroup);
struct fake_queue *fake_add_queue(struct fake_process *p, uint32_t gpu, uint32_t queue);
void fake_set_work(struct fake_process *p, bool work); /* all its queues */
bool fake_is_held(const struct fake_process *p); /* any of its queues */
bool fake_is_held_on(const struct fake_process *p, uint32_t gpu);
/* Its pid passes to another process. */
void fake_pass_on(struct fake_process *p);
/* It exits: its target ends by itself. */
void fake_exit(struct fake *f, pid_t pid);
/* It is taken by somebody else, or becomes another program. */
void fake_end_target(struct fake *f, struct fake_process *p, int result, const char *why);

#endif
