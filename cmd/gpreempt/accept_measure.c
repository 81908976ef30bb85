/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/accept.h"

/* Long enough for a job to fill the GPU again. */
#define RUN_NS (2 * NSEC_PER_MSEC)

void outcome_set(struct outcome *o, enum result result, double figure, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->detail, sizeof(o->detail), fmt, ap);
	va_end(ap);
	text_clean(o->detail);
	o->result = result;
	o->has_figure = !isnan(figure);
	o->figure = figure;
}

void outcome_error(struct accept *a, struct outcome *o, int r)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	if (r == -EINTR) {
		outcome_skip(o, "interrupted");
		a->signal = signals_take(a->cli);
		return;
	}
	gpreempt_get_error(a->cli->ctx, &e);
	if (e.kind == GPREEMPT_ERROR_NONE)
		snprintf(e.message, sizeof(e.message), "%s", strerror(-r));
	if (a->process && gpreempt_process_check(a->process) < 0)
		a->gone = true;
	/* A job and its queues may end when they like; a preemption may not fail. */
	if (e.kind == GPREEMPT_ERROR_ABSENT)
		outcome_skip(o, "%s", e.message);
	else
		outcome_fail(o, "%s", e.message);
}

int accept_wait(struct accept *a, uint64_t ns)
{
	struct pollfd fd = { .fd = a->cli->signal_fd, .events = POLLIN };
	int r = gpreempt_wait(a->cli->ctx, &fd, 1, ns);

	return r > 0 ? -EINTR : r;
}

int accept_attach(struct accept *a, unsigned int flags)
{
	int r = gpreempt_attach(a->cli->ctx, a->pid, flags, &a->process);

	if (r >= 0)
		gpreempt_keepalive(a->cli->ctx);
	return r;
}

int accept_get_queues(void *of, void *list, size_t room)
{
	return gpreempt_snapshot(of, list, room, NULL);
}

int rounds_init(struct rounds *r, size_t room)
{
	*r = (struct rounds){ .saves = calloc(room ? room : 1, sizeof(*r->saves)) };
	if (!r->saves || figures_init(&r->suspend, room) < 0 || figures_init(&r->resume, room) < 0)
		return -ENOMEM;
	return 0;
}

void rounds_done(struct rounds *r)
{
	figures_done(&r->suspend);
	figures_done(&r->resume);
	free(steal_ptr(&r->saves));
}

int rounds_add(struct accept *a, struct rounds *rounds, const struct setting *setting)
{
	struct gpreempt_suspend_options options = { .size = sizeof(options),
						    .grace_kclk = setting->grace_kclk,
						    .want_saved = true };
	struct gpreempt_timing down = { .size = sizeof(down) }, up = { .size = sizeof(up) };
	int r;

	r = accept_wait(a, RUN_NS);
	if (r < 0)
		return r;
	r = gpreempt_suspend_queues(a->process, setting->ids, setting->n, &options, &down);
	if (r < 0)
		return r;
	r = gpreempt_resume_queues(a->process, &up);
	if (r < 0)
		return r;
	if (down.has_saved && rounds->suspend.n < rounds->suspend.room)
		rounds->saves[rounds->n_saves++] =
			(struct save){ down.saved_bytes, down.call_ns, down.queues };
	figures_add(&rounds->suspend, down.call_ns);
	figures_add(&rounds->resume, up.call_ns);
	return 0;
}

int rounds_compare(struct accept *a, struct rounds rounds[2], const struct setting settings[2])
{
	struct progress progress;
	int r = 0;

	if (rounds_init(&rounds[0], a->wanted) < 0 || rounds_init(&rounds[1], a->wanted) < 0)
		return -ENOMEM;
	progress_begin(&progress);
	for (uint64_t i = 0; i < a->wanted && r >= 0; i++) {
		progress_show(&progress, "round %llu of %llu", (unsigned long long)i + 1,
			      (unsigned long long)a->wanted);
		r = rounds_add(a, &rounds[0], &settings[0]);
		if (r >= 0)
			r = rounds_add(a, &rounds[1], &settings[1]);
	}
	progress_end(&progress);
	return r;
}

double median_us(struct figures *f)
{
	return (double)figures_sum_up(f).p50 / 1000;
}
