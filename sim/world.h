/* SPDX-License-Identifier: MIT */
/*
 * Inside a run. Who does what:
 *
 *   build.c    the world, from the scenario
 *   run.c      runs it and collects the result
 *   client.c   programs: when they prepare, announce and send requests
 *   machine.c  the GPU (share.c: who gets how much; slots.c: who is on it at all)
 *   backend.c  carries out suspends and resumes, which takes time
 *   looks.c    when somebody looks at whom
 *   watcher.c  the engine's eyes: samples, hints, steps
 *   tracing.c  what is told to a trace
 *
 * All are driven by one timeline. What goes wrong inside an event (memory) ends the run.
 */
#ifndef GPREEMPT_SIM_WORLD_H
#define GPREEMPT_SIM_WORLD_H

#include <sys/queue.h>

#include "core/engine/engine.h"
#include "gpu/model/event.h"
#include "sim/arrival.h"
#include "sim/machine.h"
#include "sim/stats.h"

/* A process on one GPU: a job to the engine. */
struct sim_member {
	struct sim_process *process;
	struct sim_gpu *gpu;
	struct sim_queue *queues; /* of the machine, one a stream */
	uint32_t engine_job;
	bool watched; /* idle when last looked at: the next request tells that it comes */
	struct event seen; /* it has told */
	struct event guard; /* at the deadline of its hold */
	bool held; /* as a whole, or on its way */
	uint64_t deadline_ns; /* of the hold */
	uint64_t held_since_ns;
	uint32_t because; /* process, or UINT32_MAX */
	/* the trace: the request it is at */
	bool tracing;
	uint64_t traced_request, traced_since_ns;
};

enum sim_stage { SIM_IDLE, SIM_TO_ANNOUNCE, SIM_TO_SUBMIT, SIM_SENT };

/* One of the threads of a process: one request at a time, on one queue of each of its GPUs. */
struct sim_stream {
	struct event event;
	struct sim_process *process;
	enum sim_stage stage;
	uint64_t request; /* number within the process */
	uint64_t submit_ns, started_ns; /* started UINT64_MAX: not yet */
	uint32_t parts; /* GPUs that are not done with it */
};

struct sim_process {
	struct sim_world *world;
	const struct sim_job *job;
	const struct sim_program *program;
	uint32_t index; /* in the result */
	uint32_t gpu; /* the first */
	struct sim_stream *streams;
	uint32_t n_streams;
	uint32_t next_stream; /* requests go to them in turn */
	struct sim_member *members; /* one, or one a GPU where it is a gang */
	uint32_t n_members; /* 0: not in this mode */
	struct sim_arrivals arrivals;
	struct event due; /* set while a stream is idle */
	uint64_t sent, done; /* requests */
	uint32_t busy_streams;
	uint64_t full_since_ns; /* while all of them are: since then */
	uint64_t full_ns; /* all of them were: after half time */
	uint64_t halfway; /* the backlog at half time */
	uint64_t preempted;
	uint64_t longest_hold_ns, longest_wait_ns; /* see struct sim_wait */
};

enum sim_need { SIM_NO_WORK, SIM_SERVED, SIM_HELD };

/*
 * How a queue waits. A hold with work is a wait; being let go for a moment ends the hold, but not
 * the wait, which lasts until the queue was on for min_run_ns in all or had nothing to do.
 */
struct sim_wait {
	enum sim_need need;
	uint64_t need_since_ns;
	bool unserved; /* the wait is not over */
	uint64_t since_ns, ran_ns; /* when it began, and how long the queue was on since */
};

struct sim_batch {
	STAILQ_ENTRY(sim_batch) link;
	uint64_t asked_ns;
	uint64_t begun_ns;
	uint8_t verb;
	size_t n;
	struct engine_action actions[];
};
STAILQ_HEAD(sim_batches, sim_batch);

struct sim_gpu {
	struct sim_world *world;
	uint32_t index;
	struct sim_machine machine;
	struct sim_stream **streams; /* of each queue of the machine */
	struct sim_member **members; /* likewise */
	struct sim_wait *waits; /* likewise */
	struct event event; /* the machine's next */
	bool stale; /* the machine was changed at this instant */
	bool inverted;
	uint64_t inverted_since_ns;
	struct sim_slots traced_slots; /* what the trace was told last */
	/* backend */
	struct sim_batches batches; /* the first is under way */
	struct event act;
	bool begun; /* the first has reached the scheduler */
	uint64_t longest_batch_ns;
};

struct sim_world {
	const struct sim_scenario *s;
	const struct sim_options *options;
	const struct model_chip *chip;
	struct sim_costs costs;
	uint64_t bytes_per_s; /* of saves */
	struct timeline time;
	int failed;
	struct sim_program *programs; /* one a model */
	struct sim_process *processes;
	size_t n_processes;
	struct sim_gpu *gpus;
	struct sim_samples online, preemption, inversion;
	struct event half_time;
	uint64_t preemptions, cycles;
	/* the engine, of SIM_ENGINE */
	struct engine *engine;
	void *engine_memory;
	struct engine_config config;
	struct event step; /* of the engine's own accord; where nobody is watched, a look as well */
	struct event look; /* at everybody */
	struct event look_online; /* at online jobs, while one of them has work */
	struct sim_member **jobs; /* in the order they were added */
	size_t n_jobs;
	struct sim_member **by_id; /* a hash table, half empty at least */
	size_t n_by_id; /* a power of 2 */
	struct engine_sample *samples;
	struct engine_action *actions, *batch;
	size_t max_actions;
	uint64_t steps;
};

/* build.c: a world that could not be made is to be taken down too */
/* The policy in force; NULL: there is no such. */
const struct gpol_ops *sim_world_policy(const struct sim_world *w);
int sim_world_init(struct sim_world *w, const struct sim_scenario *s,
		   const struct sim_options *options);
void sim_world_done(struct sim_world *w);

/* Processes have the GPU one at a time, not queues slots. */
bool sim_takes_turns(const struct sim_world *w);

/* Sets an event; shortage of memory ends the run. */
void sim_at(struct sim_world *w, struct event *e, uint64_t at_ns);
void sim_record(struct sim_world *w, struct sim_samples *s, uint64_t ns);
/* Brings a GPU up to now before it is changed; it is updated when the instant is over. */
struct sim_machine *sim_touch(struct sim_gpu *gpu);

/* client.c */
int sim_clients_init(struct sim_world *w);
void sim_clients_start(struct sim_world *w);
/* A queue's request is done. */
void sim_client_part_done(struct sim_gpu *gpu, size_t queue);
/* What there was of full_ns so far is put to it, or forgotten. */
void sim_process_note_full(struct sim_process *p, bool forget);
/* Requests that fell due so far and are not done. */
uint64_t sim_process_backlog(const struct sim_process *p, uint64_t now_ns);

/* backend.c */
void sim_backend_init(struct sim_gpu *gpu);
void sim_backend_done(struct sim_gpu *gpu);
/* A batch; @actions are of one GPU and one verb. */
void sim_backend_ask(struct sim_gpu *gpu, const struct engine_action *actions, size_t n);
/* Held with work or not: to be called where either changed. */
void sim_backend_note_wait(struct sim_gpu *gpu, size_t queue);

/* looks.c */
void sim_looks_init(struct sim_world *w);
void sim_looks_submitted(struct sim_member *m);
/* A program says that it is done: worth a look. */
void sim_looks_told(struct sim_world *w);
/* The samples of a look were taken and judged. */
void sim_looks_taken(struct sim_world *w);

/* watcher.c */
int sim_watcher_init(struct sim_world *w);
void sim_watcher_step(struct sim_world *w); /* soon: at this instant */
/* A step now with samples: of everybody, or of online jobs. */
void sim_watcher_look(struct sim_world *w, bool all);
void sim_watcher_hint(struct sim_process *p, uint64_t at_ns);
void sim_watcher_report(struct sim_world *w, uint64_t ticket, uint64_t took_ns);
/* NULL: no such job. */
struct sim_member *sim_watcher_find(const struct sim_world *w, uint32_t engine_job);
void sim_watcher_done(struct sim_world *w);

/* tracing.c: what the trace is told; all do nothing without one */
void sim_tracing_update(struct sim_gpu *gpu);
void sim_tracing_request(struct sim_stream *stream, struct sim_gpu *gpu);
void sim_tracing_hold(struct sim_member *m);
void sim_tracing_end(struct sim_world *w);

#endif
