/* SPDX-License-Identifier: MIT */
#include "tests/daemon/fake_backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/daemon/fake_proc.h"
#include "util/macros.h"

struct gpu_watch {
	struct fake *fake;
	pid_t pid;
	uint64_t start_ticks;
	struct gpu_queue queues[FAKE_QUEUES];
	size_t n;
	struct gpu_sample samples[FAKE_QUEUES];
	bool looked;
	int result;
};

struct gpu_target {
	struct fake *fake;
	pid_t pid;
	uint64_t start_ticks;
	uint64_t free_ns; /* its calls follow each other */
	bool attached, ended, releasing;
};

static struct fake *fake_of(struct gpu_backend *b)
{
	return (struct fake *)b;
}

/* ---- processes ---- */

struct fake_process *fake_find(struct fake *f, pid_t pid)
{
	for (size_t i = 0; i < f->max_processes; i++) {
		if (f->processes[i].used && f->processes[i].pid == pid)
			return &f->processes[i];
	}
	return NULL;
}

struct fake_process *fake_add(struct fake *f, pid_t pid, const char *comm, const char *cgroup)
{
	static uint64_t starts;

	for (size_t i = 0; i < f->max_processes; i++) {
		struct fake_process *p = &f->processes[i];

		if (p->used)
			continue;
		*p = (struct fake_process){
			.used = true,
			.uses_gpu = true,
			.pid = pid,
			.parent = 1,
			.start_ticks = ++starts,
			.exit_fd = -1,
		};
		snprintf(p->comm, sizeof(p->comm), "%s", comm);
		snprintf(p->cgroup, sizeof(p->cgroup), "%s", cgroup);
		return p;
	}
	return NULL;
}

struct fake_queue *fake_add_queue(struct fake_process *p, uint32_t gpu, uint32_t queue)
{
	struct fake_queue *q = &p->queues[p->n_queues++];

	*q = (struct fake_queue){ .queue = { .gpu = gpu, .queue = queue } };
	p->queues_changed = true;
	return q;
}

void fake_set_work(struct fake_process *p, bool work)
{
	for (size_t i = 0; i < p->n_queues; i++) {
		struct fake_queue *q = &p->queues[i];

		if (work)
			q->write = q->read + 1;
		else
			q->read = q->write;
	}
	p->struck |= work && p->armed && !p->deaf;
	p->armed &= !work || p->deaf;
}

bool fake_is_held(const struct fake_process *p)
{
	for (size_t i = 0; i < p->n_queues; i++) {
		if (p->queues[i].suspended)
			return true;
	}
	return false;
}

bool fake_is_held_on(const struct fake_process *p, uint32_t gpu)
{
	for (size_t i = 0; i < p->n_queues; i++) {
		if (p->queues[i].queue.gpu == gpu && p->queues[i].suspended)
			return true;
	}
	return false;
}

static struct fake_process *owner(const struct gpu_target *t)
{
	struct fake_process *p = fake_find(t->fake, t->pid);

	return p && p->start_ticks == t->start_ticks ? p : NULL;
}

/* ---- what there is ---- */

static void fake_close(struct gpu_backend *b)
{
}

static uint64_t fake_now_ns(struct gpu_backend *b)
{
	return fake_of(b)->now_ns;
}

static int fake_nodes(struct gpu_backend *b, struct gpu_node *ret, size_t max)
{
	struct fake *f = fake_of(b);

	memcpy(ret, f->nodes, MIN(max, f->n_nodes) * sizeof(*ret));
	return (int)f->n_nodes;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int fake_processes(struct gpu_backend *b, pid_t *ret, size_t max)
{
	struct fake *f = fake_of(b);
	size_t n = 0;

	f->lists++;
	f->came = MIN(f->came, 0);
	if (f->processes_result < 0)
		return f->processes_result;
	for (size_t i = 0; i < f->max_processes; i++) {
		const struct fake_process *p = &f->processes[i];

		if (!p->used || !p->uses_gpu)
			continue;
		if (n < max)
			ret[n] = p->pid;
		n++;
	}
	qsort(ret, MIN(n, max), sizeof(*ret), by_number);
	return (int)n;
}

static int fake_pidfd(struct gpu_backend *b, pid_t pid)
{
	struct fake_process *p = fake_find(fake_of(b), pid);

	if (!p)
		return -ESRCH;
	if (p->exit_fd < 0)
		p->exit_fd = eventfd(0, EFD_CLOEXEC);
	return dup(p->exit_fd);
}

/* ---- looking ---- */

static struct fake_process *watched(const struct gpu_watch *w)
{
	struct fake_process *p = fake_find(w->fake, w->pid);

	return p && p->start_ticks == w->start_ticks ? p : NULL;
}

static void copy_queues(struct gpu_watch *w, struct fake_process *p)
{
	w->n = p->n_queues;
	for (size_t i = 0; i < w->n; i++)
		w->queues[i] = p->queues[i].queue;
	p->queues_changed = false;
}

static int fake_watch(struct gpu_backend *b, pid_t pid, struct gpu_watch **ret)
{
	struct fake_process *p = fake_find(fake_of(b), pid);
	struct gpu_watch *w;

	if (!p)
		return -ESRCH;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct gpu_watch){ .fake = fake_of(b), .pid = pid, .start_ticks = p->start_ticks };
	copy_queues(w, p);
	p->watch = w;
	p->alert = p->armed = p->struck = false;
	w->fake->watches++;
	*ret = w;
	return 0;
}

static void fake_unwatch(struct gpu_watch *w)
{
	if (w)
		w->fake->watches--;
	free(w);
}

static int fake_refresh(struct gpu_watch *w)
{
	struct fake_process *p = watched(w);
	bool changed;

	if (!p)
		return -ESRCH;
	changed = p->queues_changed;
	w->looked &= !changed; /* a look that is under way was at what is not there any more */
	copy_queues(w, p);
	return changed;
}

static const struct gpu_queue *fake_queues(const struct gpu_watch *w, size_t *ret_n)
{
	*ret_n = w->n;
	return w->queues;
}

/* Where nothing of it can be read, nothing tells that it is another one. */
static struct fake_process *looked_at(struct gpu_watch *w)
{
	struct fake_process *p = fake_find(w->fake, w->pid);

	for (size_t i = 0; p && i < p->n_queues; i++) {
		if (!p->queues[i].queue.unseen)
			return watched(w);
	}
	return p;
}

static int look(struct gpu_watch *w)
{
	struct fake_process *p = looked_at(w);
	struct gpu_sample *ret = w->samples;
	int n = 0;

	if (!p)
		return -ESRCH;
	p->looks++;
	w->fake->looks++;
	w->fake->spent_ns += w->fake->look_cost_ns;
	for (size_t i = 0; i < MIN(p->n_queues, w->n); i++) {
		const struct fake_queue *q = &p->queues[i];

		if (!w->fake->base.caps.counts_progress)
			continue;
		ret[n] = (struct gpu_sample){ .gpu = q->queue.gpu, .queue = q->queue.queue };
		ret[n].state = q->read != q->write ? GPU_BUSY : q->idle_state;
		if (q->queue.unseen || p->blind) {
			ret[n].state = GPU_UNSEEN;
		} else {
			ret[n].read = q->read;
			ret[n].write = q->write;
		}
		n++;
	}
	return n;
}

static void arm_idle(struct gpu_watch *w, int n)
{
	struct fake_process *p = fake_find(w->fake, w->pid);

	if (!p || !p->alert || p->armed || p->unwatchable)
		return;
	for (int i = 0; i < n; i++) {
		if (w->samples[i].state == GPU_BUSY)
			return;
	}
	p->armed = true;
	p->alerts++;
}

static void fake_look(struct gpu_backend *b, struct gpu_watch *const *watches, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		watches[i]->looked = true;
		watches[i]->result = look(watches[i]);
		arm_idle(watches[i], watches[i]->result);
	}
}

static int fake_looked(struct gpu_watch *w, const struct gpu_sample **ret)
{
	const struct fake_process *p = fake_find(w->fake, w->pid);

	if (!w->looked)
		return -ECANCELED;
	if (p && p->late)
		return -EAGAIN;
	w->looked = false;
	*ret = w->samples;
	return w->result;
}

/* ---- being told at once ---- */

static void fake_alert(struct gpu_watch *w, bool on)
{
	struct fake_process *p = fake_find(w->fake, w->pid);

	if (p)
		p->alert = on;
	if (p && !on)
		p->armed = p->struck = false;
}

static pid_t fake_alerted(struct gpu_backend *b)
{
	struct fake *f = fake_of(b);

	for (size_t i = 0; i < f->max_processes; i++) {
		struct fake_process *p = &f->processes[i];
		struct gpu_watch *w = p->watch;

		if (!p->used || !p->struck)
			continue;
		p->struck = false;
		for (size_t k = 0; k < w->n; k++)
			w->samples[k].state = GPU_BUSY;
		w->result = (int)w->n;
		w->looked = true;
		return p->pid;
	}
	return 0;
}

static int fake_is_alert(const struct gpu_watch *w, const char **ret_why)
{
	const struct fake_process *p = fake_find(w->fake, w->pid);

	if (p && p->alert && p->unwatchable) {
		*ret_why = strerror(-p->unwatchable);
		return p->unwatchable;
	}
	return p && p->armed;
}

static void fake_effort(struct gpu_backend *b, struct gpu_effort *ret)
{
	*ret = (struct gpu_effort){ .helpers_ns = fake_of(b)->spent_ns };
}

static const char *fake_problem(struct gpu_backend *b)
{
	return ((struct fake *)b)->problem;
}

static const char *fake_blind(const struct gpu_watch *w)
{
	const struct fake_process *p = fake_find(w->fake, w->pid);

	return p && p->blind ? "it does not let itself be looked at" : NULL;
}

/* ---- acting ---- */

static struct fake_call *new_call(struct fake *f, uint64_t at_ns)
{
	size_t at = f->n_calls;

	if (f->n_calls == FAKE_CALLS)
		abort();
	while (at > 0 && f->calls[at - 1].at_ns > at_ns)
		at--;
	memmove(&f->calls[at + 1], &f->calls[at], (f->n_calls - at) * sizeof(*f->calls));
	f->n_calls++;
	f->calls[at] = (struct fake_call){ .at_ns = at_ns };
	return &f->calls[at];
}

static struct fake_outcome outcome(struct gpu_target *t, enum gpu_verb verb)
{
	struct fake_process *p = owner(t);
	struct fake_outcome o;

	if (!p)
		return (struct fake_outcome){ .result = -ESRCH };
	o = p->outcomes[verb];
	if (o.times && --p->outcomes[verb].times == 0)
		p->outcomes[verb] = (struct fake_outcome){ .takes_ns = o.takes_ns };
	if (verb != GPU_ATTACH && verb != GPU_RELEASE && (!t->attached || t->ended))
		o.result = -ESRCH;
	return o;
}

static struct fake_call *begin(struct gpu_target *t, enum gpu_verb verb, uint64_t cookie)
{
	struct fake *f = t->fake;
	struct fake_outcome o = outcome(t, verb);
	struct fake_call *c;

	f->kept++;
	f->faults.used_released += t->releasing;
	t->free_ns = MAX(t->free_ns, f->now_ns) + o.takes_ns;
	c = new_call(f, t->free_ns);
	c->done = (struct gpu_done){
		.target = t,
		.cookie = cookie,
		.verb = verb,
		.result = o.result,
		.gpu_failed = o.gpu_failed,
		.gpu = o.gpu,
		.began_ns = f->now_ns,
		.done_ns = t->free_ns,
	};
	if (o.result < 0)
		snprintf(c->done.why.message, sizeof(c->done.why.message), "the test says %d",
			 o.result);
	return c;
}

void fake_pass_on(struct fake_process *p)
{
	p->start_ticks++;
	if (p->exit_fd >= 0) {
		eventfd_write(p->exit_fd, 1);
		close(p->exit_fd);
	}
	p->exit_fd = -1;
}

/* It cannot tell before it touches somebody who that is. */
static int fake_attach(struct gpu_backend *b, const struct gpu_attach *request, uint64_t cookie,
		       struct gpu_target **ret)
{
	struct fake *f = fake_of(b);
	struct fake_process *p = fake_find(f, request->pid);
	struct gpu_target *t;

	if (!p)
		return -ESRCH;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	if (p->passes_on)
		fake_pass_on(p);
	*t = (struct gpu_target){ .fake = f, .pid = p->pid, .start_ticks = p->start_ticks };
	f->faults.online_attached += p->online && !f->base.caps.slices;
	f->faults.double_attached += p->target != NULL;
	p->target = t;
	p->attaches++;
	f->targets++;
	begin(t, GPU_ATTACH, cookie);
	*ret = t;
	return 0;
}

static bool is_written_down(const struct fake *f, pid_t pid)
{
	struct journal_entry entries[JOURNAL_ENTRIES];
	size_t n = journal_left(f->journal, entries, JOURNAL_ENTRIES);

	for (size_t i = 0; i < n; i++) {
		if (entries[i].pid == pid)
			return true;
	}
	return false;
}

static void note_ids(struct fake_call *c, struct fake_process *p, const uint32_t *ids, size_t n)
{
	c->all = !ids;
	c->n_ids = ids ? MIN(n, FAKE_QUEUES) : 0;
	if (ids)
		memcpy(c->ids, ids, c->n_ids * sizeof(*ids));
	if (p) {
		p->last_was_all = c->all;
		p->last_ids = c->n_ids;
	}
}

static int fake_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	struct fake_process *p = owner(t);

	t->fake->faults.not_written_down += t->fake->journal && !is_written_down(t->fake, t->pid);
	t->fake->faults.online_attached += p && p->online;
	note_ids(begin(t, GPU_SUSPEND, cookie), p, hold->ids, hold->n);
	if (p) {
		p->suspends++;
		p->asked_suspend_ns = t->fake->now_ns;
		p->longest_ns = hold->longest_ns;
		p->asked_resume_ns = 0;
	}
	return 0;
}

static int fake_resume(struct gpu_target *t, const uint32_t *ids, size_t n, uint64_t cookie)
{
	struct fake_process *p = owner(t);

	note_ids(begin(t, GPU_RESUME, cookie), p, ids, n);
	if (p) {
		p->resumes++;
		p->asked_resume_ns = t->fake->now_ns;
	}
	return 0;
}

static int fake_slice(struct gpu_target *t, enum gpu_slice slice, uint64_t cookie)
{
	struct fake_process *p = owner(t);
	struct fake *f = t->fake;

	f->faults.not_written_down += f->base.caps.outlives_owner && slice != GPU_SLICE_OWN &&
				      f->journal && !is_written_down(f, t->pid);
	begin(t, GPU_SLICE, cookie)->slice = slice;
	if (p)
		p->slices++;
	return 0;
}

static int fake_release(struct gpu_target *t, uint64_t cookie)
{
	struct fake_process *p = owner(t);

	begin(t, GPU_RELEASE, cookie);
	t->releasing = true;
	if (p) {
		p->releases++;
		p->asked_resume_ns = t->fake->now_ns;
	}
	return 0;
}

static void fake_submit(struct gpu_backend *b)
{
	fake_of(b)->kept = 0;
}

static bool is_meant(const struct fake_call *c, uint32_t queue)
{
	for (size_t i = 0; i < c->n_ids; i++) {
		if (c->ids[i] == queue)
			return true;
	}
	return c->all;
}

static void set_suspended(struct fake_process *p, const struct fake_call *c, bool suspended)
{
	for (size_t i = 0; i < p->n_queues; i++) {
		if (is_meant(c, p->queues[i].queue.queue))
			p->queues[i].suspended = suspended;
	}
}

static void carry_out(struct fake *f, struct fake_call *c)
{
	struct gpu_target *t = c->done.target;
	struct fake_process *p = owner(t);
	struct fake_call everything = { .all = true };

	if (!p && c->done.verb != GPU_RELEASE && c->done.verb != GPU_ENDED)
		c->done.result = -ESRCH;
	if (c->done.verb == GPU_ATTACH)
		t->attached = c->done.result == 0;
	if (p && c->done.result == 0 && c->done.verb == GPU_SUSPEND)
		set_suspended(p, c, true);
	if (p && c->done.result == 0 && c->done.verb == GPU_RESUME)
		set_suspended(p, c, false);
	if (p && c->done.result == 0 && c->done.verb == GPU_SLICE)
		p->slice = c->slice;
	if (c->done.verb != GPU_RELEASE)
		return;
	if (p) {
		set_suspended(p, &everything, false);
		p->slice = GPU_SLICE_OWN;
		p->target = NULL;
	}
	f->targets--;
	free(t);
}

static int fake_fd(struct gpu_backend *b)
{
	return fake_of(b)->fd;
}

static int fake_take(struct gpu_backend *b, struct gpu_done *ret)
{
	struct fake *f = fake_of(b);
	struct fake_call c;

	if (!f->n_calls || f->calls[0].at_ns > f->now_ns)
		return 0;
	c = f->calls[0];
	f->n_calls--;
	memmove(&f->calls[0], &f->calls[1], f->n_calls * sizeof(*f->calls));
	carry_out(f, &c);
	*ret = c.done;
	return 1;
}

/* ---- all of it ---- */

static const struct gpu_ops fake_ops = {
	.close = fake_close,
	.now_ns = fake_now_ns,
	.nodes = fake_nodes,
	.processes = fake_processes,
	.owner = fake_owner,
	.ask = fake_ask,
	.answer = fake_answer,
	.pidfd = fake_pidfd,
	.watch = fake_watch,
	.unwatch = fake_unwatch,
	.refresh = fake_refresh,
	.queues = fake_queues,
	.look = fake_look,
	.looked = fake_looked,
	.blind = fake_blind,
	.problem = fake_problem,
	.attach = fake_attach,
	.suspend = fake_suspend,
	.resume = fake_resume,
	.slice = fake_slice,
	.release = fake_release,
	.submit = fake_submit,
	.fd = fake_fd,
	.take = fake_take,
	.native = &fake_native_ops,
};

static struct gpu_ops ops_with_alerts(void)
{
	struct gpu_ops ops = fake_ops;

	ops.alert = fake_alert;
	ops.alerted = fake_alerted;
	ops.is_alert = fake_is_alert;
	ops.effort = fake_effort;
	return ops;
}

void fake_give_alerts(struct fake *f)
{
	static struct gpu_ops ops;

	ops = ops_with_alerts();
	f->base.ops = &ops;
}

static int fake_came(struct gpu_backend *b)
{
	struct fake *f = fake_of(b);

	f->came_asked++;
	return f->came;
}

void fake_give_news(struct fake *f)
{
	static struct gpu_ops ops;

	ops = *f->base.ops;
	ops.came = fake_came;
	f->base.ops = &ops;
}

/* ---- time and endings ---- */

uint64_t fake_next_ns(const struct fake *f)
{
	return f->n_calls ? f->calls[0].at_ns : UINT64_MAX;
}

static void judge_hold(struct fake *f, struct fake_process *p)
{
	struct fake_call everything = { .all = true };

	if (!fake_is_held(p) || f->now_ns <= p->asked_suspend_ns + p->longest_ns)
		return;
	f->faults.overdue += p->asked_resume_ns == 0;
	set_suspended(p, &everything, false);
}

void fake_set_time(struct fake *f, uint64_t now_ns)
{
	f->now_ns = now_ns;
	for (size_t i = 0; i < f->max_processes; i++) {
		if (f->processes[i].used)
			judge_hold(f, &f->processes[i]);
	}
}

void fake_end_target(struct fake *f, struct fake_process *p, int result, const char *why)
{
	struct fake_call *c;

	if (!p->target || p->target->ended || p->target->releasing)
		return;
	p->target->ended = true;
	for (size_t i = 0; i < p->n_queues; i++)
		p->queues[i].suspended = false;
	c = new_call(f, MAX(f->now_ns, p->target->free_ns));
	c->done = (struct gpu_done){ .target = p->target, .verb = GPU_ENDED, .result = result };
	snprintf(c->done.why.message, sizeof(c->done.why.message), "%s", why);
}

void fake_exit(struct fake *f, pid_t pid)
{
	struct fake_process *p = fake_find(f, pid);

	fake_end_target(f, p, -ESRCH, "it ended");
	if (p->exit_fd >= 0) {
		eventfd_write(p->exit_fd, 1);
		close(p->exit_fd);
	}
	p->used = false;
}

void fake_init(struct fake *f, size_t max_processes)
{
	*f = (struct fake){
		.base = {
			.ops = &fake_ops,
			.caps = {
				.name = "fake",
				.level = "K2",
				.modelled = true,
				.made_up_time = true,
				.counts_progress = true,
				.disturbs_all = true,
				.suspend_ns = 300000,
				.resume_ns = 200000,
				.cycle_ns = 50000,
			},
		},
		.now_ns = 1000000000,
		.n_nodes = 2,
		.nodes = { { .gpu = 1, .slots = 24, .name = "one" },
			   { .gpu = 2, .slots = 24, .name = "two" } },
		.max_processes = max_processes,
		.fd = eventfd(0, EFD_CLOEXEC),
	};
	fake_proc_init(f);
	f->processes = calloc(max_processes, sizeof(*f->processes));
	if (!f->processes)
		abort();
}

void fake_make_contexts(struct fake *f)
{
	f->base.caps = (struct gpu_caps){
		.name = "fake",
		.level = "N2",
		.modelled = true,
		.made_up_time = true,
		.unit = GPU_UNIT_CONTEXT,
		.outlives_owner = true,
		.slices = true,
		.suspend_ns = 650000,
		.resume_ns = 300000,
	};
}

void fake_done(struct fake *f)
{
	struct gpu_done d;

	fake_set_time(f, UINT64_MAX);
	while (fake_take(&f->base, &d))
		;
	for (size_t i = 0; i < f->max_processes; i++) {
		if (f->processes[i].used && f->processes[i].exit_fd >= 0)
			close(f->processes[i].exit_fd);
	}
	free(f->processes);
	asks_free(f->asks);
	close(f->fd);
}
