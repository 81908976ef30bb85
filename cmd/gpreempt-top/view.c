/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt-top/view.h"

#include <errno.h>
#include <string.h>

#include "cmd/gpreempt-top/jobs.h"
#include "cmd/gpreempt/job_text.h"

static const char *const sort_names[] = {
	[SORT_CLASS] = "class",		[SORT_SHARE] = "share", [SORT_WAIT] = "wait",
	[SORT_PREEMPTED] = "preempted", [SORT_PID] = "pid",
};

/* ---- above the list ---- */

static void add_latency(struct lines *l, const char *what, const struct gpreempt_latency *x)
{
	char p50[UNIT_TEXT_SIZE], p99[UNIT_TEXT_SIZE];

	if (x->count == 0)
		line_add(l, "%s -", what);
	else
		line_add(l, "%s %s/%s", what, short_duration(x->p50_ns, p50),
			 short_duration(x->p99_ns, p99));
}

static void add_title(struct lines *l, const struct gpreempt_daemon_status *s)
{
	uint64_t up = s->now_ns > s->started_ns ? (s->now_ns - s->started_ns) / NSEC_PER_SEC : 0;
	char age[UNIT_TEXT_SIZE];

	line_say(l, VIEW_TITLE, "gpreemptd %s  policy %s  %s%s  up %s", s->version, s->policy,
		 s->backend, s->modelled ? " (times are modelled)" : "", text_age(up, age));
	if (s->paused)
		line_say(l, VIEW_ALARM,
			 "PAUSED: nothing is held; take up again with: gpreempt continue");
	if (s->blind[0])
		line_say(l, VIEW_ALARM, "BLIND: work goes unseen: %s", s->blind);
	if (s->unwatched[0])
		line_say(l, VIEW_PLAIN, "unwatched: %s", s->unwatched);
	if (!s->guarded && !s->modelled && !s->paused)
		line_say(l, VIEW_ALARM, "no guard stands beside the daemon");
}

static void add_figures(struct lines *l, const struct gpreempt_daemon_status *s)
{
	line_say(l, VIEW_PLAIN, "%u online, %u offline", s->online, s->offline);
	if (!s->privileged) {
		line_add(l, "; the rest is for root and the daemon's group");
		return;
	}
	line_add(l, "; %u held, %u attached; %llu preemptions, %llu trips", s->held, s->attached,
		 (unsigned long long)s->preemptions, (unsigned long long)s->trips);
	line_say(l, VIEW_PLAIN, "seen: %llu watch, %llu look, %llu hint, %llu late",
		 (unsigned long long)s->seen_by_watch, (unsigned long long)s->seen_by_look,
		 (unsigned long long)s->seen_by_hint, (unsigned long long)s->seen_late);
	line_say(l, VIEW_PLAIN, "p50/p99 ");
	add_latency(l, "detect", &s->detection);
	add_latency(l, ", suspend", &s->suspend);
	add_latency(l, ", resume", &s->resume);
}

static void add_lost(struct lines *l, const struct snapshot *s)
{
	char age[UNIT_TEXT_SIZE];

	line_say(l, VIEW_ALARM, "%s", s->error.message);
	if (s->seen)
		line_add(l, "; below is what was %s ago", text_age(s->lost_s, age));
	line_say(l, VIEW_PLAIN, "%s", s->error.hint);
}

static void add_head(struct lines *l, const struct snapshot *s)
{
	if (s->error.kind != GPREEMPT_ERROR_NONE)
		add_lost(l, s);
	if (!s->seen)
		return;
	add_title(l, &s->status);
	add_figures(l, &s->status);
}

/* ---- the list ---- */

static void add_gpu(struct lines *l, const struct gpreempt_daemon_gpu *g, bool privileged)
{
	line_say(l, g->tripped ? VIEW_ALARM : VIEW_GPU, "GPU %u  %s", g->gpu_id, g->name);
	if (g->tripped) {
		line_add(l, "  TRIPPED: nothing is held on it any more");
		line_say(l, VIEW_ALARM, "  %s%slook at dmesg, then: gpreempt rearm %u",
			 g->tripped_by, g->tripped_by[0] ? "; " : "", g->gpu_id);
	} else if (privileged) {
		if (g->slots)
			line_add(l, "  slots %u: %u online, %u offline", g->slots, g->slots_online,
				 g->slots_offline);
		line_add(l, "  cycles %llu", (unsigned long long)g->cycles);
	}
}

static const struct gpreempt_daemon_gpu *find_gpu(const struct snapshot *s, uint32_t gpu_id)
{
	for (size_t i = 0; i < s->n_gpus; i++)
		if (s->gpus[i].gpu_id == gpu_id)
			return &s->gpus[i];
	return NULL;
}

struct list {
	const struct snapshot *s;
	const struct view_options *o;
	struct jobs_layout layout;
	const struct gpreempt_daemon_job **jobs; /* by GPU, ended by NULL */
};

static const struct gpreempt_daemon_job **jobs_of(const struct list *list, uint32_t gpu_id)
{
	const struct gpreempt_daemon_job **j = list->jobs;

	while (*j && (*j)->gpu_id != gpu_id)
		j++;
	return j;
}

static void add_jobs(struct lines *l, const struct list *list, uint32_t gpu_id)
{
	for (const struct gpreempt_daemon_job **j = jobs_of(list, gpu_id);
	     *j && (*j)->gpu_id == gpu_id; j++)
		jobs_line(l, &list->layout, *j, list->o->utf8);
}

/* Those that tripped, then those with jobs, then the rest. */
static int rank_of(const struct list *list, const struct gpreempt_daemon_gpu *g)
{
	return g->tripped ? 0 : *jobs_of(list, g->gpu_id) ? 1 : 2;
}

/* Those that have opened the device, but have no queue to be held. */
static void add_others(struct lines *l, const struct list *list)
{
	bool headed = false;

	for (size_t i = 0; list->jobs[i]; i++) {
		if (find_gpu(list->s, list->jobs[i]->gpu_id))
			continue;
		if (!headed)
			line_say(l, VIEW_GPU, "on no GPU yet");
		headed = true;
		jobs_line(l, &list->layout, list->jobs[i], list->o->utf8);
	}
}

static void add_list(struct lines *l, const struct list *list)
{
	const struct snapshot *s = list->s;

	for (int rank = 0; rank < 3; rank++) {
		for (size_t i = 0; i < s->n_gpus; i++) {
			if (rank_of(list, &s->gpus[i]) != rank)
				continue;
			add_gpu(l, &s->gpus[i], s->status.privileged);
			add_jobs(l, list, s->gpus[i].gpu_id);
		}
	}
	add_others(l, list);
	if (!list->jobs[0])
		line_say(l, VIEW_DIM, "no process%s uses a GPU",
			 s->status.processes ? " of yours" : "");
}

static const char *const help_lines[] = {
	"q          ends this screen; the daemon goes on",
	"s          sort by class, share, longest wait, preemptions, pid",
	"up, down   look at the rest of the list; also page up, page down, home",
	"h          this text, and back",
	"",
	"CLASS      online: others make room for it; offline: makes room; none: neither",
	"PRIO       within the class; '!': latency-critical, room is made at once",
	"STATE      held: off the GPU for somebody; working: on the GPU with work;",
	"           waiting: has work and is not on the GPU; idle: has no work",
	"PREEMPTED  how often it was taken off the GPU; HELD: for how long in all",
	"MAX WAIT   the longest its work has waited",
	"SHARE      of the last second it was on the GPU with work; the bar shows the",
	"           seconds before, the newest at the right",
	"seen       how often online work came, by what told of it (late: a rare look)",
	"p50/p99    of the time from work seen to the decision (detect), and from then",
	"           until the other is off the GPU (suspend) or on it again (resume)",
	"",
	"What is shown as '-' is not for you to see: another user's job.",
};

static void add_help(struct lines *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(help_lines); i++)
		line_say(l, VIEW_PLAIN, "%s", help_lines[i]);
}

static int add_body(struct lines *l, const struct snapshot *s, const struct view_options *o,
		    const struct jobs_layout *layout)
{
	struct list list = { .s = s, .o = o, .layout = *layout };

	if (o->help) {
		add_help(l);
		return 0;
	}
	if (!s->seen)
		return 0;
	list.jobs = jobs_sort(s, o->sort);
	if (!list.jobs)
		return -ENOMEM;
	add_list(l, &list);
	free(list.jobs);
	return 0;
}

/* ---- together ---- */

static void add_keys(struct lines *l, const struct view_options *o, size_t below)
{
	line_say(l, VIEW_KEYS, "q quit  s sort: %s  h %s", sort_names[o->sort],
		 o->help ? "back" : "help");
	if (o->scroll || below)
		line_add(l, "  up/down: %zu above, %zu below", o->scroll, below);
	line_fill(l);
}

/* Leaves of the body, which follows the @head, what fits between that and the keys. */
static void cut(struct lines *l, size_t head, const struct view_options *o, struct view *ret)
{
	struct view_options at = *o;
	size_t room = o->height > head + 1 ? o->height - head - 1 : 0;
	size_t body = l->n - head, page = o->height ? MIN(room, body) : body;

	at.scroll = MIN(o->scroll, body - page);
	if (page)
		memmove(&l->lines[head], &l->lines[head + at.scroll], page * sizeof(*l->lines));
	l->n = head + page;
	if (o->height) {
		while (!l->failed && l->n + 1 < o->height)
			line_begin(l, VIEW_PLAIN);
		if (l->n < o->height)
			add_keys(l, &at, body - page - at.scroll);
		l->n = MIN(l->n, o->height);
	}
	*ret = (struct view){ l->lines, l->n, at.scroll, page };
}

int view_make(const struct snapshot *s, const struct view_options *o, struct view *ret)
{
	struct lines l = { .width = o->width };
	struct jobs_layout layout;
	struct view v = { 0 };
	size_t head;
	int r;

	jobs_layout(o->width, &layout);
	add_head(&l, s);
	if (s->seen && !o->help)
		jobs_heading(&l, &layout);
	head = l.n;
	r = add_body(&l, s, o, &layout);
	if (r >= 0)
		cut(&l, head, o, &v);
	if (r < 0 || l.failed) {
		lines_done(&l);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void view_done(struct view *v)
{
	free(v->lines);
	*v = (struct view){ 0 };
}
