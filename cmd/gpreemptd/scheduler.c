/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define FREE_NS (60 * NSEC_PER_SEC) /* after people ended a hold */
#define SCAN_ALONE_NS (4 * NSEC_PER_SEC) /* with nobody there, who would be told of */
#define SLICED_TURN_NS (200 * NSEC_PER_MSEC)
/* Whoever was told to make room does so first: a look would only be in the way. */
#define ROOM_NS (200 * NSEC_PER_USEC)
/* Work may be told of again and again, by each of a thousand threads: others wait no longer. */
#define QUICK_NS (2 * NSEC_PER_MSEC)
/* In epoll data; pids are the others. */
#define THE_BACKEND UINT64_MAX
#define THE_GUARD (UINT64_MAX - 1)
#define THE_ALERTS (UINT64_MAX - 2)

uint64_t scheduler_now(struct scheduler *s)
{
	uint64_t now_ns = s->b ? ops(s)->now_ns(s->b) : 0;

	s->now_ns = MAX(s->now_ns, now_ns);
	return s->now_ns;
}

/* ---- the guard ---- */

void scheduler_fail(struct scheduler *s, int error, const char *why)
{
	if (s->failed)
		return;
	s->failed = error;
	log_line(LOG_LEVEL_ERROR, "%s: every job is let go, and none is held", why);
	for_each_process(s, p)
		attach_let_go(s, p);
}

static bool is_guard_dead(struct scheduler *s)
{
	if (!s->parts.guard || (s->guard_polled && !s->guard_ended) || guard_alive(s->parts.guard))
		return false;
	if (s->guard_polled)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, guard_fd(s->parts.guard), NULL);
	s->guard_polled = false;
	return true;
}

/* A look at a software GPU is a call of it, and it may be busy with somebody else's. */
static uint64_t longest_silence(const struct scheduler *s)
{
	return s->caps.modelled ? GUARD_DRIVER_CALL_NS : GUARD_SILENCE_NS;
}

bool scheduler_is_guarded(struct scheduler *s)
{
	if (s->parts.guard && s->guard_slot < 0)
		s->guard_slot = guard_arm(s->parts.guard, 0, longest_silence(s));
	return !s->parts.guard || s->guard_slot >= 0;
}

void scheduler_beat(struct scheduler *s)
{
	if (s->guard_slot >= 0)
		guard_beat(s->parts.guard, s->guard_slot, longest_silence(s));
}

void scheduler_will_be_late(struct scheduler *s)
{
	if (s->guard_slot >= 0)
		guard_beat(s->parts.guard, s->guard_slot, GUARD_DRIVER_CALL_NS);
}

/* From before anything is attached until everything is let go. */
static void keep_guard(struct scheduler *s)
{
	if (s->guard_slot < 0)
		return;
	if (s->targets) {
		scheduler_beat(s);
		return;
	}
	guard_disarm(s->parts.guard, s->guard_slot);
	s->guard_slot = -1;
}

/* ---- a turn ---- */

/* What was asked for since the last time may go together. */
static void submit(struct scheduler *s)
{
	if (ops(s)->submit)
		ops(s)->submit(s->b);
}

static void take_steps(struct scheduler *s, size_t n_samples, bool complete)
{
	struct engine_step step = {
		.now_ns = scheduler_now(s), /* looking took its time; deadlines begin here */
		.samples = s->samples,
		.n_samples = n_samples,
		.complete = complete,
		.actions = s->actions,
		.max = SCHEDULER_MAX_JOBS,
	};

	s->step_due = false;
	engine_step(s->engine, &step);
	s->figures.status.steps++;
	s->wake_ns = step.due_ns;
	act(s, s->actions, step.n_actions);
	submit(s);
}

static void take_exit(struct scheduler *s, pid_t pid)
{
	struct process *p = process_find(s, pid);

	if (p)
		process_gone(s, p);
}

/* Whether nothing happened but that work was told at once. */
static bool take_events(struct scheduler *s)
{
	struct epoll_event events[32];
	int n = epoll_wait(s->epoll, events, ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		uint64_t who = events[i].data.u64;

		s->guard_ended |= who == THE_GUARD;
		if (who < THE_ALERTS)
			take_exit(s, (pid_t)who);
	}
	return n == 1 && events[0].data.u64 == THE_ALERTS;
}

static void tell_deaf(struct scheduler *s, int error)
{
	s->deaf_told = true;
	log_line(LOG_LEVEL_WARNING,
		 "nobody tells when a GPU is opened (%s): new processes are looked for every "
		 "%llu ms",
		 strerror(-error), (unsigned long long)(s->config->scan_ns / NSEC_PER_MSEC));
}

static bool has_come(struct scheduler *s)
{
	int r = ops(s)->came ? ops(s)->came(s->b) : -ENOSYS;

	s->deaf = r < 0;
	if (r < 0 && ops(s)->came && !s->deaf_told)
		tell_deaf(s, r);
	return r > 0;
}

/* Who is there is looked at again, too. */
static uint64_t until_scan(const struct scheduler *s)
{
	bool alone = !s->n_processes && TAILQ_EMPTY(&s->newcomers);

	return alone && !s->deaf ? MAX(s->config->scan_ns, SCAN_ALONE_NS) : s->config->scan_ns;
}

static void look_and_act(struct scheduler *s, bool came)
{
	bool all = s->now_ns >= s->scan_ns, complete;
	size_t n;

	if (all) {
		processes_scan(s);
		s->scan_ns = s->now_ns + until_scan(s);
		gpus_settle(s);
	} else if (came) {
		processes_meet(s);
	}
	native_follow(s);
	if (s->gpus_due)
		gpus_count(s);
	if (s->attach_due)
		attach_all(s);
	if (s->slices_due)
		slices_follow(s);
	n = observe(s, all, &complete);
	if (n || all || s->step_due || (s->targets && s->now_ns >= s->wake_ns))
		take_steps(s, n, complete);
	jobs_tick(s);
	if (s->gpus_due)
		gpus_count(s);
}

static uint64_t next_turn(struct scheduler *s)
{
	uint64_t next_ns = NEVER;

	if (s->targets && s->parts.guard)
		next_ns = s->now_ns + GUARD_BEAT_NS;
	if (s->paused || s->failed)
		return next_ns;
	if (s->step_due || s->attach_due || s->slices_due || (s->handed_over && s->native_due))
		return s->now_ns;
	next_ns = MIN(next_ns, s->scan_ns);
	if (s->handed_over)
		next_ns = MIN(next_ns, s->native_check_ns);
	s->next_look_ns = observe_next(s);
	next_ns = MIN(next_ns, MAX(s->next_look_ns, s->looks_from_ns));
	return s->targets ? MIN(next_ns, s->wake_ns) : next_ns;
}

static void whole_turn(struct scheduler *s)
{
	bool came = has_come(s); /* also where it is of no use, or it is told on and on */

	s->quick_until_ns = 0;
	act_take_done(s);
	processes_take_answers(s);
	if (is_guard_dead(s))
		scheduler_fail(s, -EOWNERDEAD, "the guard is dead");
	if (!s->paused && !s->failed)
		look_and_act(s, came);
	submit(s);
}

/* Since the last whole turn. */
static bool may_be_quick(struct scheduler *s)
{
	if (!s->quick_until_ns)
		s->quick_until_ns = s->now_ns + QUICK_NS;
	return !s->paused && !s->failed && s->now_ns < s->quick_until_ns;
}

/* Online work has come: it is acted on before anything else. */
static void quick_turn(struct scheduler *s)
{
	size_t n = observe_alerts(s);

	if (n)
		take_steps(s, n, false);
	s->looks_from_ns = s->now_ns + ROOM_NS;
}

uint64_t scheduler_turn(struct scheduler *s)
{
	if (!s->b) {
		is_guard_dead(s); /* no matter before somebody continues, but it keeps us awake */
		return NEVER;
	}
	pace_begin(s);
	scheduler_now(s);
	if (take_events(s) && may_be_quick(s))
		quick_turn(s);
	else
		whole_turn(s);
	keep_guard(s);
	pace_end(s);
	return next_turn(s);
}

void scheduler_act(struct scheduler *s)
{
	if (!s->b || s->paused || s->failed)
		return;
	scheduler_now(s);
	take_steps(s, 0, false);
}

int scheduler_fd(const struct scheduler *s)
{
	return s->epoll;
}

int scheduler_failed(const struct scheduler *s)
{
	return s->failed;
}

/* ---- what people ask for ---- */

void tell(struct scheduler *s, uint32_t kind, uint32_t gpu, const char *text)
{
	const struct gpreempt_event e = { .kind = kind, .gpu_id = gpu };

	events_tell(s->parts.events, &e, "%s", text);
}

void scheduler_pause(struct scheduler *s)
{
	if (s->paused || !s->b)
		return;
	scheduler_now(s);
	s->paused = true;
	native_end(s);
	tell(s, GPREEMPT_EVENT_PAUSED, 0, "paused: every job and every device is let go of");
	for_each_process(s, p) {
		attach_let_go(s, p);
		process_look_away(s, p);
	}
	newcomers_forget(s, true);
	submit(s);
}

void scheduler_continue(struct scheduler *s)
{
	if (!s->paused || !s->b)
		return;
	scheduler_now(s);
	s->paused = false;
	s->scan_ns = s->now_ns;
	gpus_read(s);
	tell(s, GPREEMPT_EVENT_CONTINUED, 0, "continued: jobs are looked for again");
}

bool scheduler_is_paused(const struct scheduler *s)
{
	return s->paused;
}

bool scheduler_is_idle(const struct scheduler *s)
{
	return !s->targets && !s->outstanding;
}

int scheduler_rearm(struct scheduler *s, uint32_t gpu)
{
	struct gpu *g = gpu_find(s, gpu);

	if (!g || engine_rearm(s->engine, gpu) < 0)
		return -ENOENT;
	if (native_rearm(s, gpu) < 0)
		log_line(LOG_LEVEL_WARNING, "the kernel's scheduler does not rearm GPU %u", gpu);
	g->tripped = false;
	g->tripped_by[0] = 0;
	trip_forget(g);
	for_each_process(s, p) {
		jobs_change(s, p);
		for_each_job(p, j) {
			if (j->on == g)
				attach_at_once(s, p);
		}
	}
	tell(s, GPREEMPT_EVENT_REARMED, gpu, "a GPU is rearmed: preemptions happen on it again");
	return 0;
}

int scheduler_release(struct scheduler *s, pid_t pid)
{
	int count = 0;

	if (pid && !process_find(s, pid))
		return -ESRCH;
	scheduler_now(s);
	for_each_process(s, p) {
		bool held = false;

		if ((pid && p->pid != pid) || p->verdict.job_class != JOB_OFFLINE)
			continue;
		for_each_job(p, j)
			held |= j->off && !j->returning;
		count += held;
		p->free_until_ns = s->now_ns + FREE_NS;
		jobs_change(s, p);
		native_tell_job(s, p);
	}
	scheduler_act(s);
	return count;
}

/*
 * Where turns on the GPU can be made short for one offline job but not for several, one is on at a
 * time, and for longer: a change costs more than where only single queues change.
 */
static void take_config(struct scheduler *s, const struct config *config)
{
	const struct gpu_caps *caps = s->b ? &s->b->caps : &s->caps;

	s->config = config;
	s->engine_config = config->engine;
	if (caps->slices && !config->policy_named)
		s->engine_config.policy = &gpol_rotate;
	if (caps->slices && !config->turn_named)
		s->engine_config.params.turn_ns = SLICED_TURN_NS;
}

static void configure_engine(struct scheduler *s)
{
	struct gpreempt_daemon_status *status = &s->figures.status;
	const struct gpu_caps *caps = &s->b->caps;

	s->caps = *caps;
	wire_text_set(status->backend, sizeof(status->backend), caps->name);
	wire_text_set(status->level, sizeof(status->level), caps->level);
	s->engine_config.costs = (struct engine_costs){
		.suspend_ns = caps->suspend_ns,
		.resume_ns = caps->resume_ns,
		.cycle_ns = caps->cycle_ns,
		.disturbs_all = caps->disturbs_all,
		.counts_progress = caps->counts_progress,
		.suspends_first = caps->unit == GPU_UNIT_CONTEXT,
	};
	engine_configure(s->engine, &s->engine_config);
	s->gpus_due = s->attach_due = s->step_due = s->native_due = true;
}

void scheduler_configure(struct scheduler *s, const struct config *config)
{
	take_config(s, config);
	if (!s->b)
		return;
	scheduler_now(s);
	configure_engine(s);
	s->native_refused = s->native_looked = false;
	processes_judge(s);
	s->scan_ns = s->now_ns;
}

void scheduler_set_policy(struct scheduler *s, const struct gpol_ops *policy)
{
	s->engine_config.policy = policy;
	if (s->b)
		configure_engine(s);
	tell(s, GPREEMPT_EVENT_POLICY_SET, 0, policy->name);
}

const struct gpol_ops *scheduler_policy(const struct scheduler *s)
{
	return s->engine_config.policy;
}

/* ---- beginning and end ---- */

static int make_engine(struct scheduler *s)
{
	const struct engine_limits limits = {
		.gpus = GPU_NODES_MAX,
		.jobs = SCHEDULER_MAX_JOBS,
		.queues = SCHEDULER_MAX_QUEUES,
	};

	s->engine_memory = calloc(1, engine_bytes(&limits));
	if (!s->engine_memory)
		return -ENOMEM;
	s->engine = engine_init(s->engine_memory, &limits, &s->engine_config);
	return s->engine ? 0 : -EINVAL;
}

static void poll_fd(struct scheduler *s, int how, int fd, uint64_t who)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = who };

	if (fd >= 0)
		epoll_ctl(s->epoll, how, fd, &e);
}

static void poll_backend(struct scheduler *s, int how)
{
	if (!s->b)
		return;
	poll_fd(s, how, ops(s)->fd(s->b), THE_BACKEND);
	if (ops(s)->alert_fd)
		poll_fd(s, how, ops(s)->alert_fd(s->b), THE_ALERTS);
}

int scheduler_new(const struct scheduler_parts *parts, const struct config *config,
		  struct scheduler **ret)
{
	struct scheduler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->parts = *parts;
	s->paused = !parts->backend;
	take_config(s, config);
	s->guard_slot = -1;
	TAILQ_INIT(&s->jobs);
	TAILQ_INIT(&s->leaving);
	TAILQ_INIT(&s->newcomers);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = s->epoll < 0 ? -errno : make_engine(s);
	if (r < 0) {
		scheduler_free(s);
		return r;
	}
	if (parts->guard && guard_fd(parts->guard) >= 0) {
		poll_fd(s, EPOLL_CTL_ADD, guard_fd(parts->guard), THE_GUARD);
		s->guard_polled = true;
	}
	scheduler_set_backend(s, parts->backend);
	if (s->b)
		gpus_read(s);
	s->scan_ns = s->tick_ns = scheduler_now(s);
	*ret = s;
	return 0;
}

void scheduler_set_backend(struct scheduler *s, struct gpu_backend *b)
{
	if (b == s->b)
		return;
	poll_backend(s, EPOLL_CTL_DEL);
	s->b = b;
	if (!b)
		return;
	poll_backend(s, EPOLL_CTL_ADD);
	scheduler_now(s);
	if (b->caps.slices != s->caps.slices)
		take_config(s, s->config); /* for other GPUs another policy is best */
	configure_engine(s);
	processes_judge(s); /* the configuration may be another by now */
}

void scheduler_free(struct scheduler *s)
{
	if (!s)
		return;
	native_end(s);
	while (s->n_processes)
		process_drop(s, s->table[s->n_processes - 1]);
	if (s->b && s->engine)
		act_take_done(s);
	while (!TAILQ_EMPTY(&s->leaving)) {
		struct process *p = TAILQ_FIRST(&s->leaving);

		TAILQ_REMOVE(&s->leaving, p, link);
		/* Not reported yet, so what is written down of it stays. */
		p->journal_slot = -1;
		process_free(s, p);
	}
	s->targets = 0;
	keep_guard(s);
	newcomers_forget(s, true);
	class_requests_done(s);
	for (uint32_t i = 0; i < s->n_gpus; i++)
		trip_forget(&s->gpus[i]);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->engine_memory);
	free(s);
}
