/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include "cmd/gpreemptd/scheduler_internal.h"
#include "util/clock.h"
#include "wire/wire.h"

#define CHECK_NS NSEC_PER_SEC /* for another program in the same process */
#define IDENTITY_NS (10 * NSEC_PER_SEC) /* a cgroup may change without anything else doing so */

void process_tell(struct scheduler *s, const struct process *p, const struct gpreempt_event *event,
		  const char *fmt, ...)
{
	struct gpreempt_event e = *event;
	char text[sizeof(e.text)];
	va_list ap;

	e.pid = p->pid;
	e.uid = p->identity.uid;
	e.job_class = (uint16_t)p->verdict.job_class;
	wire_text_set(e.comm, sizeof(e.comm), p->identity.stat.comm);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	events_tell(s->parts.events, &e, "%s", text);
}

/* ---- the table ---- */

/* Where @pid is or would be. */
static size_t place_of(const struct scheduler *s, pid_t pid)
{
	size_t low = 0, high = s->n_processes;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->table[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct process *process_find(const struct scheduler *s, pid_t pid)
{
	size_t at = place_of(s, pid);

	return at < s->n_processes && s->table[at]->pid == pid ? s->table[at] : NULL;
}

static void insert(struct scheduler *s, struct process *p)
{
	size_t at = place_of(s, p->pid);

	memmove(&s->table[at + 1], &s->table[at], (s->n_processes - at) * sizeof(*s->table));
	s->table[at] = p;
	s->n_processes++;
}

static void take_out(struct scheduler *s, const struct process *p)
{
	size_t at = place_of(s, p->pid);

	s->n_processes--;
	memmove(&s->table[at], &s->table[at + 1], (s->n_processes - at) * sizeof(*s->table));
}

/* ---- who it is ---- */

/* The number of its gang: that of others of the name, or one of its own. */
static uint32_t gang_of(struct scheduler *s, const struct process *p)
{
	if (p->verdict.gang[0]) {
		for_each_process(s, other) {
			if (other != p && other->gang &&
			    strcmp(other->verdict.gang, p->verdict.gang) == 0)
				return other->gang;
		}
	}
	if (++s->gangs == 0)
		s->gangs = 1;
	return s->gangs;
}

/* What root says of class, priority and targets; the rest is as the rules have it. */
static void apply_root(const struct wire_class *said, struct verdict *v)
{
	v->job_class = (enum job_class)said->job_class;
	if (said->priority != WIRE_KEEP)
		v->priority = (uint8_t)said->priority;
	v->critical = said->flags & WIRE_CLASS_CRITICAL;
	v->lazy = said->flags & WIRE_CLASS_LAZY;
	v->target_ns = said->target_us * NSEC_PER_USEC;
	snprintf(v->source, sizeof(v->source), "request");
}

/* A user only lowers: what somebody wants left alone is, but not what nobody said anything of. */
static void apply_user(const struct scheduler *s, const struct wire_class *said, struct verdict *v)
{
	const struct verdict *fallback = &s->config->rules.fallback;

	if (v->job_class == JOB_UNMANAGED && strcmp(v->source, fallback->source) != 0)
		return;
	if (v->job_class == JOB_ONLINE)
		v->priority = MIN(v->priority, fallback->priority);
	if (said->priority != WIRE_KEEP)
		v->priority = (uint8_t)MIN(v->priority, said->priority);
	v->job_class = JOB_OFFLINE;
	v->critical = false;
	v->target_ns = 0;
	snprintf(v->source, sizeof(v->source), "request");
}

static struct verdict verdict_of(const struct scheduler *s, const struct process *p)
{
	struct verdict v;

	rules_judge(&s->config->rules, &p->identity, &v);
	if (p->by_root.number)
		apply_root(&p->by_root.said, &v);
	if (p->by_user.number > p->by_root.number)
		apply_user(s, &p->by_user.said, &v);
	return v;
}

bool process_is_held(const struct process *p)
{
	for_each_job(p, j) {
		if (j->off)
			return true;
	}
	return false;
}

static bool is_managed(const struct process *p)
{
	return p->verdict.job_class != JOB_UNMANAGED && !p->left_alone;
}

static int start_watching(struct scheduler *s, struct process *p)
{
	int r;

	if (p->watch || !is_managed(p) || s->paused)
		return 0;
	r = ops(s)->watch(s->b, p->pid, &p->watch);
	if (r < 0)
		return r;
	jobs_follow(s, p);
	return 0;
}

static void stop_watching(struct scheduler *s, struct process *p)
{
	if (p->watch)
		ops(s)->unwatch(steal_ptr(&p->watch));
	p->looking = p->blind_told = p->alert = p->armed = false;
	p->blind_ns = 0;
	p->look_ns = p->period_ns = NEVER;
}

void process_look_away(struct scheduler *s, struct process *p)
{
	stop_watching(s, p);
	if (p->polled)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->pidfd, NULL);
	p->polled = false;
}

void process_judge(struct scheduler *s, struct process *p)
{
	struct verdict old = p->verdict;

	class_requests_match(s, p, 0);
	p->verdict = verdict_of(s, p);
	if (!p->gang || strcmp(old.gang, p->verdict.gang) != 0)
		p->gang = gang_of(s, p);
	if (p->tied_as != p->verdict.job_class)
		attach_let_go(s, p);
	if (!is_managed(p)) {
		jobs_remove(s, p);
		stop_watching(s, p);
	} else {
		start_watching(s, p);
	}
	jobs_change(s, p);
	s->attach_due = true;
	if (p->seen_ns && old.job_class != p->verdict.job_class)
		process_say(s, p, GPREEMPT_EVENT_JOB_CLASSED, "is %s now, by %s",
			    wire_class_name(p->verdict.job_class), p->verdict.source);
}

void processes_judge(struct scheduler *s)
{
	for_each_process(s, p) process_judge(s, p);
}

void process_ask(struct scheduler *s, struct process *p, bool all)
{
	p->checked_ns = s->now_ns;
	ops(s)->ask(s->b, p->pid, all ? identity_files(&s->config->rules) : PROC_BIT(PROC_STAT));
}

static void tell_unread(struct scheduler *s, const struct process *p)
{
	process_say(s, p, GPREEMPT_EVENT_JOB_BLIND,
		    "does not let its command or environment be read: rules that "
		    "name these do not match it");
}

static void identified(struct scheduler *s, struct process *p, struct identity *id)
{
	bool unread = id->unread && !p->identity.unread;

	identity_done(&p->identity);
	p->identity = *id;
	p->identified_ns = s->now_ns;
	p->native_told = false; /* the driver forgets its class with the program that it was */
	if (unread)
		tell_unread(s, p);
	process_judge(s, p);
}

/* Is it still the same program? If not it is judged anew; so it is now and then in any case. */
static void process_answered(struct scheduler *s, struct process *p, const struct proc_files *files)
{
	struct identity id = { 0 };
	int r = files->result;

	if (r >= 0 && files->text[PROC_STATUS])
		r = identity_take(files, &id);
	else if (r >= 0)
		r = proc_stat_parse(files->text[PROC_STAT], files->len[PROC_STAT], &id.stat);
	if (r == -ESRCH || (r >= 0 && id.stat.start_ticks != p->identity.stat.start_ticks)) {
		identity_done(&id);
		process_gone(s, p);
	} else if (r >= 0 && files->text[PROC_STATUS]) {
		identified(s, p, &id);
	} else if (r >= 0 && strcmp(id.stat.comm, p->identity.stat.comm) != 0) {
		process_ask(s, p, true);
	}
}

static void answered(struct scheduler *s, const struct proc_files *f)
{
	struct newcomer *c = newcomer_find(s, f->pid);
	struct process *p = process_find(s, f->pid);
	struct proc_stat stat = { 0 };

	if (f->result >= 0 && f->text[PROC_STAT])
		proc_stat_parse(f->text[PROC_STAT], f->len[PROC_STAT], &stat);
	if (f->result >= 0 || f->result == -ESRCH)
		class_requests_answered(s, f->pid, stat.start_ticks);
	if (c)
		newcomer_answered(s, c, f);
	else if (p)
		process_answered(s, p, f);
}

void processes_take_answers(struct scheduler *s)
{
	struct proc_files f;

	while (ops(s)->answer(s->b, &f)) {
		answered(s, &f);
		proc_files_done(&f);
	}
}

/* ---- coming and going ---- */

static void poll_exit(struct scheduler *s, struct process *p)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)p->pid };

	if (p->pidfd >= 0 && !p->polled)
		p->polled = epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->pidfd, &e) == 0;
}

static struct process *process_new(struct scheduler *s, pid_t pid, int pidfd,
				   const struct identity *identity)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->identity = *identity;
	p->pidfd = pidfd;
	p->page_fd = p->journal_slot = -1;
	p->look_ns = p->period_ns = NEVER;
	p->n_looked = NOT_LOOKED;
	p->identified_ns = p->checked_ns = s->now_ns;
	p->seen_realtime_ns = clock_ns(CLOCK_REALTIME);
	SLIST_INIT(&p->jobs);
	return p;
}

/* Takes over @pidfd and what @identity has. */
void process_came(struct scheduler *s, pid_t pid, int pidfd, struct identity *identity)
{
	struct process *p = NULL;

	if (shares_make_room(s, identity->uid))
		p = process_new(s, pid, pidfd, identity);
	if (!p) {
		identity_done(identity);
		closep(&pidfd);
		return;
	}
	p->listed = true;
	insert(s, p);
	job_init(s, p, 0, &p->self);
	poll_exit(s, p);
	process_judge(s, p);
	p->seen_ns = s->now_ns;
	process_say(s, p, GPREEMPT_EVENT_JOB_CAME, "uses a GPU: %s, by %s",
		    wire_class_name(p->verdict.job_class), p->verdict.source);
	if (p->identity.unread)
		tell_unread(s, p);
}

void process_free(struct scheduler *s, struct process *p)
{
	if (p->journal_slot >= 0)
		journal_remove(s->parts.journal, p->journal_slot);
	identity_done(&p->identity);
	closep(&p->pidfd);
	free(p);
}

void process_gone(struct scheduler *s, struct process *p)
{
	act_let_go(s, p, "it is gone");
	process_say(s, p, GPREEMPT_EVENT_JOB_WENT, "is gone");
	process_drop(s, p);
}

void process_drop(struct scheduler *s, struct process *p)
{
	attach_let_go(s, p);
	take_out(s, p);
	jobs_remove(s, p);
	TAILQ_REMOVE(&s->jobs, &p->self, link);
	process_look_away(s, p);
	hint_page_close(p);
	s->gpus_due = s->attach_due = true;
	if (p->target)
		TAILQ_INSERT_TAIL(&s->leaving, p, link);
	else
		process_free(s, p);
}

/* Whose end is waited for has its pid for itself: it may only be another program. */
static void check_identity(struct scheduler *s, struct process *p)
{
	if (p->pidfd < 0 || s->now_ns - p->checked_ns >= CHECK_NS)
		process_ask(s, p, s->now_ns - p->identified_ns >= IDENTITY_NS);
}

/* -ESRCH: it does not use a GPU any more. */
static int check(struct scheduler *s, struct process *p)
{
	int r;

	check_identity(s, p);
	poll_exit(s, p);
	if (!p->watch)
		return start_watching(s, p) == -ESRCH ? -ESRCH : 0;
	r = ops(s)->refresh(p->watch);
	if (r == 1 || p->stale)
		jobs_follow(s, p);
	return r == -ESRCH ? r : 0;
}

static void meet(struct scheduler *s, pid_t pid)
{
	struct process *p = process_find(s, pid);
	struct newcomer *c;
	uid_t uid;

	if (p && (has_ended(p->pidfd) || check(s, p) == -ESRCH)) {
		process_gone(s, p);
		p = NULL;
	}
	if (p) {
		p->listed = true;
		return;
	}
	c = newcomer_find(s, pid);
	if (c)
		newcomer_meet(s, c);
	else if (shares_admit(s, pid, &uid))
		newcomer_came(s, pid, uid);
}

void processes_meet(struct scheduler *s)
{
	int n = ops(s)->processes(s->b, s->pids, SCHEDULER_MAX_LISTED);
	uid_t uid;

	for (int i = 0; i < MIN(n, SCHEDULER_MAX_LISTED); i++) {
		pid_t pid = s->pids[i];

		if (!process_find(s, pid) && !newcomer_find(s, pid) &&
		    shares_admit_between(s, pid, &uid))
			newcomer_came(s, pid, uid);
	}
	processes_take_answers(s);
}

void processes_scan(struct scheduler *s)
{
	int n = ops(s)->processes(s->b, s->pids, SCHEDULER_MAX_LISTED);

	s->figures.scans++;
	observe_sight(s, n);
	if (n < 0)
		return;
	for_each_process(s, p)
		p->listed = false;
	shares_begin(s);
	for (int i = 0; i < MIN(n, SCHEDULER_MAX_LISTED); i++) {
		meet(s, s->pids[i]);
		scheduler_beat(s);
	}
	newcomers_forget(s, false);
	for (size_t i = s->n_processes; i-- > 0;) {
		if (!s->table[i]->listed && n <= SCHEDULER_MAX_LISTED)
			process_gone(s, s->table[i]);
	}
	class_requests_forget_dead(s);
	processes_take_answers(s);
	s->attach_due = true;
}
