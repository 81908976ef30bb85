/* SPDX-License-Identifier: MIT */
/*
 * The extension's debugfs file: lines of a name and a value, those of a GPU after "gpu ID". What
 * comes before "scheduler on" or "scheduler off" is the driver's book-keeping, and "held" counts
 * queues there; what comes after is the scheduler's, and "held" counts jobs. Names nobody knows
 * here are of a newer driver, and passed over.
 */
#include <errno.h>

#include "gpu/kfd/dump.h"
#include "gpu/kfd/scheduler.h"
#include "util/array.h"
#include "util/macros.h"

/* One tree for what is no GPU driver's alone. */
#define STATE_FILE "kernel/debug/" KFD_GPREEMPT_DEVICE

struct parse {
	struct gkfd_schedulers found;
	size_t room;
	bool told; /* whether it is on, of the last GPU */
};

static int begin_gpu(struct parse *p, uint64_t id)
{
	if (p->found.n && !p->told)
		return -EBADMSG;
	if (array_reserve(&p->found.gpus, p->found.n + 1, &p->room, sizeof(*p->found.gpus)) < 0)
		return -ENOMEM;
	p->found.gpus[p->found.n++] = (struct gkfd_scheduled){ .gpu_id = (uint32_t)id };
	p->told = false;
	return 0;
}

/* The last name of a line says that the whole line was there. */
static uint64_t *figure(struct gkfd_scheduled *g, const struct gkfd_text *name, bool told)
{
	const struct {
		const char *name;
		bool of_scheduler;
		uint64_t *value;
		uint32_t known;
	} figures[] = {
		{ "slots", false, &g->slots, 0 },
		{ "queues", false, &g->queues, 0 },
		{ "held", false, &g->held_queues, GKFD_SCHEDULER_SLOTS },
		{ "interval_us", true, &g->interval_us, 0 },
		{ "critical_interval_us", true, &g->critical_interval_us,
		  GKFD_SCHEDULER_INTERVALS },
		{ "turn_ms", true, &g->turn_ms, GKFD_SCHEDULER_TURN },
		{ "hold_max_ms", true, &g->hold_max_ms, GKFD_SCHEDULER_HOLD_MAX },
		{ "online_permille", true, &g->online_permille, 0 },
		{ "offline_permille", true, &g->offline_permille, GKFD_SCHEDULER_RESERVED },
		{ "looks", true, &g->looks, 0 },
		{ "busy_ns", true, &g->busy_ns, GKFD_SCHEDULER_LOOKS },
		{ "holds", true, &g->holds, 0 },
		{ "resumes", true, &g->resumes, 0 },
		{ "failures", true, &g->failures, 0 },
		{ "tripped", true, &g->tripped, GKFD_SCHEDULER_ACTIONS },
		{ "online", true, &g->online, 0 },
		{ "offline", true, &g->offline, 0 },
		{ "held", true, &g->held, GKFD_SCHEDULER_JOBS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		if (figures[i].of_scheduler != told || !gkfd_text_equals(name, figures[i].name))
			continue;
		g->known |= figures[i].known;
		return figures[i].value;
	}
	return NULL;
}

static int take_state(struct parse *p, struct gkfd_scheduled *g, const struct gkfd_text *value)
{
	if (p->told || (!gkfd_text_equals(value, "on") && !gkfd_text_equals(value, "off")))
		return -EBADMSG;
	g->on = gkfd_text_equals(value, "on");
	p->told = true;
	return 0;
}

static int take_figure(const struct parse *p, struct gkfd_scheduled *g,
		       const struct gkfd_text *name, struct gkfd_text value)
{
	uint64_t *to = figure(g, name, p->told);

	if (!to)
		return 0;
	return gkfd_text_dec(&value, UINT64_MAX, to) && gkfd_text_ended(&value) ? 0 : -EBADMSG;
}

static int take_line(void *data, const struct gkfd_text *line)
{
	struct gkfd_text rest, name, value;
	struct parse *p = data;
	struct gkfd_scheduled *g;
	uint64_t id;

	if (!line)
		return p->found.n && !p->told ? -EBADMSG : 0;
	rest = *line;
	if (!gkfd_text_word(&rest, &name) || !gkfd_text_blanks(&rest) ||
	    !gkfd_text_word(&rest, &value))
		return -EBADMSG;
	if (gkfd_text_equals(&name, "gpu"))
		return gkfd_text_dec(&value, UINT32_MAX, &id) && gkfd_text_ended(&value) ?
			       begin_gpu(p, id) :
			       -EBADMSG;
	if (p->found.n == 0)
		return -EBADMSG;
	g = &p->found.gpus[p->found.n - 1];
	if (gkfd_text_equals(&name, "scheduler"))
		return take_state(p, g, &value);
	if (p->told && gkfd_text_equals(&name, "policy")) {
		gkfd_text_copy(&value, g->policy, sizeof(g->policy));
		g->known |= GKFD_SCHEDULER_POLICY;
		return 0;
	}
	return take_figure(p, g, &name, value);
}

int gkfd_schedulers_parse(const char *text, size_t len, struct gkfd_schedulers *ret,
			  uint32_t *ret_line)
{
	struct parse p = { 0 };
	int r = gkfd_dump_lines(text, len, take_line, &p, ret_line);

	if (r < 0) {
		gkfd_schedulers_done(&p.found);
		return r;
	}
	*ret = p.found;
	return 0;
}

int gkfd_schedulers_read(struct gkfd *k, struct gkfd_schedulers *ret)
{
	_cleanup_free_ char *text = NULL;
	uint32_t line;
	size_t len;
	int r = gkfd_read_file(k, GKFD_TREE_SYS, STATE_FILE, &text, &len);

	return r < 0 ? r : gkfd_schedulers_parse(text, len, ret, &line);
}

void gkfd_schedulers_done(struct gkfd_schedulers *s)
{
	free(s->gpus);
	*s = (struct gkfd_schedulers){ 0 };
}
