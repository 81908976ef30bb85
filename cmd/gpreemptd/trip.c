/* SPDX-License-Identifier: MIT */
/*
 * What happened when a preemption failed: what was asked, of whom and for whom, what the driver
 * said, who else was on the GPU, and the last events before it. Kept until the GPU is rearmed, and
 * written to the log and to a file, which stays.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/gpreemptd/run_dir.h"
#include "cmd/gpreemptd/scheduler_internal.h"
#include "util/stream.h"
#include "util/text.h"
#include "wire/wire.h"

#define MOST_JOBS 20u /* so that it all fits one packet */
#define MOST_EVENTS 18u
#define OTHER_LINES 12u
#define LINE_MAX_BYTES 160

_Static_assert((MOST_JOBS + MOST_EVENTS + OTHER_LINES) * LINE_MAX_BYTES < WIRE_TEXT_MAX,
	       "there is more to say");

/* One line. Names of processes are anybody's text. */
static void put(FILE *out, const char *fmt, ...) _printf_(2, 3);

static void put(FILE *out, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	text_clean(line);
	fprintf(out, "%s\n", line);
}

static unsigned long long us(uint64_t ns)
{
	return ns / NSEC_PER_USEC;
}

/* ---- what was asked, and what came of it ---- */

static const char *verb_name(enum gpu_verb verb)
{
	static const char *const names[] = {
		[GPU_ATTACH] = "attach to",   [GPU_SUSPEND] = "suspend",
		[GPU_RESUME] = "resume",      [GPU_RELEASE] = "release",
		[GPU_ENDED] = "keep hold of", [GPU_SLICE] = "change the turns of",
	};

	return (unsigned int)verb < ARRAY_SIZE(names) ? names[verb] : "do something with";
}

static void put_when(FILE *out, const struct gpu *g)
{
	time_t now = time(NULL);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	put(out, "GPU %u (%s) tripped at %s", g->node.gpu, g->node.name, text);
}

static void put_queues(FILE *out, const struct last_call *c)
{
	char list[LINE_MAX_BYTES] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < MIN(c->n_ids, ARRAY_SIZE(c->ids)); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, " %u", c->ids[i]);
	if (!c->n_ids)
		put(out, "  queues: all");
	else
		put(out, "  queues:%s%s", list, c->n_ids > ARRAY_SIZE(c->ids) ? " and others" : "");
}

static void put_asked(FILE *out, const struct scheduler *s, const struct process *p,
		      const struct gpu_done *d)
{
	const struct last_call *c = &p->last_call;
	const struct process *other = c->because ? process_find(s, c->because) : NULL;

	put(out, "  asked: %s process %d (%s) of user %u", verb_name(d->verb), p->pid,
	    p->identity.stat.comm, p->identity.uid);
	if (c->cookie != d->cookie) /* of these nothing more was asked */
		return;
	if (c->because)
		put(out, "  for: process %d (%s), by policy %s, for %llu us at most", c->because,
		    other ? other->identity.stat.comm : "gone", s->engine_config.policy->name,
		    us(c->longest_ns));
	put_queues(out, c);
	put(out, "  waited: %llu us from the decision to the call",
	    us(d->began_ns - MIN(c->asked_ns, d->began_ns)));
}

static void put_answer(FILE *out, const struct scheduler *s, const struct gpu_done *d)
{
	put(out, "  driver: %s, level %s%s; it answered after %llu us", s->caps.name, s->caps.level,
	    s->caps.modelled ? ", modelled" : "", us(d->done_ns - d->began_ns));
	put(out, "  result: %d (%s), %u queue%s done, %s", d->result,
	    d->result < 0 ? strerror(-d->result) : "done", d->queues, d->queues == 1 ? "" : "s",
	    d->holds ? "some are off the GPU" : "none is off the GPU");
	if (d->why.message[0])
		put(out, "  because: %s", d->why.message);
	if (d->why.hint[0])
		put(out, "  hint: %s", d->why.hint);
}

/* ---- what was going on ---- */

static const char *state_of(const struct job *j)
{
	if (j->off)
		return j->returning ? "coming back" : j->away ? "held" : "being held";
	return j->works ? "working" : "idle";
}

static void put_jobs(FILE *out, const struct scheduler *s, const struct gpu *g)
{
	unsigned int n = 0;

	put(out, "  on it: %u online and %u offline", g->online, g->offline);
	for_each_process(s, p)
	{
		for_each_job(p, j)
		{
			if (j->on != g || n++ >= MOST_JOBS)
				continue;
			put(out, "    process %d (%s) of user %u, %s, %u queue%s, %s%s", p->pid,
			    p->identity.stat.comm, p->identity.uid,
			    wire_class_name(p->verdict.job_class), j->queues,
			    j->queues == 1 ? "" : "s", state_of(j),
			    p->tie == TIE_ATTACHED ? ", attached" : "");
		}
	}
	if (n > MOST_JOBS)
		put(out, "    and %u others", n - MOST_JOBS);
}

static void put_events(FILE *out, const struct scheduler *s)
{
	const struct gpreempt_event *e, *last = events_past(s->parts.events, 0);

	put(out, "  last events:");
	for (unsigned int back = MOST_EVENTS; back-- > 0;) {
		e = events_past(s->parts.events, back);
		if (e)
			put(out, "    -%llu us %s: %s",
			    us(last->time_ns - MIN(e->time_ns, last->time_ns)),
			    wire_event_kind(e->kind)->name, e->text);
	}
}

/* ---- where it goes ---- */

static void log_lines(const char *text)
{
	char *line;

	while ((line = text_next_line(&text))) {
		log_line(LOG_LEVEL_WARNING, "trip: %s", line);
		free(line);
	}
}

static void save(const struct scheduler *s, const struct gpu *g)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (!s->parts.run_dir)
		return;
	if (asprintf(&path, "%s/trip-%u", s->parts.run_dir, g->node.gpu) < 0) {
		path = NULL; /* asprintf leaves it undefined */
		return;
	}
	r = run_dir_replace(path, g->trip, strlen(g->trip));
	if (r < 0)
		log_line(LOG_LEVEL_WARNING, "cannot write %s: %s", path, strerror(-r));
	else
		log_line(LOG_LEVEL_WARNING, "trip: this is also in %s", path);
}

static void note(struct scheduler *s, const struct process *p, struct gpu *g,
		 const struct gpu_done *d)
{
	struct stream text;
	size_t len;

	trip_forget(g);
	if (stream_open(&text) < 0)
		return;
	put_when(text.out, g);
	put_asked(text.out, s, p, d);
	put_answer(text.out, s, d);
	put_jobs(text.out, s, g);
	put_events(text.out, s);
	if (stream_close(&text, &g->trip, &len) < 0)
		return;
	log_lines(g->trip);
	save(s, g);
}

static void trip_gpu(struct scheduler *s, struct process *p, struct gpu *g,
		     const struct gpu_done *d)
{
	const char *why = d->why.message[0] ? d->why.message : "a preemption failed";

	if (g->tripped)
		return;
	g->tripped = true;
	g->trips++;
	s->figures.status.trips++;
	wire_text_set(g->tripped_by, sizeof(g->tripped_by), why);
	process_tell(
		s, p,
		&(struct gpreempt_event){ .kind = GPREEMPT_EVENT_TRIPPED, .gpu_id = g->node.gpu },
		"GPU %u: %.60s; no more preemptions on this GPU until: gpreempt rearm %u",
		g->node.gpu, why, g->node.gpu);
	note(s, p, g, d);
	for_each_process(s, other) jobs_change(s, other);
	s->attach_due = true;
}

void trip(struct scheduler *s, struct process *p, const struct gpu_done *d)
{
	for_each_job(p, j)
	{
		if (j->on && (!d->gpu || j->gpu == d->gpu))
			trip_gpu(s, p, j->on, d);
	}
}

void trip_forget(struct gpu *g)
{
	free(steal_ptr(&g->trip));
}

const char *scheduler_trip(struct scheduler *s, uint32_t gpu)
{
	const struct gpu *g = gpu_find(s, gpu);

	return g ? g->trip : NULL;
}
