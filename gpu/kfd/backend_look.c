/* SPDX-License-Identifier: MIT */
/* Looks at queues, by the readers of their users; of a software device, at once. */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/backend_internal.h"
#include "util/macros.h"

/* A reader takes some ten microseconds; one that gets no processor is not waited for. */
#define WAIT_NS (500 * NSEC_PER_USEC)

static struct gpu_watch *watch_of(struct readers_task *t)
{
	return (struct gpu_watch *)((char *)t - offsetof(struct gpu_watch, task));
}

static bool is_held(const struct gpu_watch *w)
{
	const struct gpu_ops *ops = w->b->base.base.ops;

	for_each_target(w->b, t) if (((struct target_base *)t)->pid == w->pid &&
				     ops->holds(t)) return true;
	return false;
}

/* ---- what a reader is told, and tells ---- */

static size_t write_request(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	struct gpu_watch *w = watch_of(t);
	bool is_new = w->told != reader;
	struct gkfd_look_request request = {
		.id = w->id,
		.flags = (is_new ? GKFD_LOOK_NEW : 0) | (is_held(w) ? GKFD_LOOK_HELD : 0),
		.n = is_new ? (uint32_t)w->q.n_known : 0,
	};
	size_t bytes = request.n * sizeof(*w->q.known);

	if (max < sizeof(request) + bytes)
		return SIZE_MAX;
	memcpy(to, &request, sizeof(request));
	if (bytes)
		memcpy((char *)to + sizeof(request), w->q.known, bytes);
	w->told = reader;
	w->struck = 0;
	return sizeof(request) + bytes;
}

static void finish(struct gpu_watch *w, int result)
{
	w->result = result;
	w->looked = true;
	w->stale |= result == 1;
	if (result >= 0)
		alert_looked(w);
	if (w->awaited)
		w->b->awaited--;
	w->awaited = false;
}

/* What a look found. */
static void take_samples(struct gpu_watch *w, const struct gpu_sample *samples)
{
	for (uint32_t i = 0; i < w->q.n_known; i++) {
		if (w->q.samples[i].write != samples[i].write)
			alert_note_use(w, i);
		w->q.samples[i] = samples[i];
	}
}

/* What it did not tell of is not known. */
static void done(struct readers_task *t, struct readers_answer *answer)
{
	struct gpu_watch *w = watch_of(t);
	size_t bytes = w->q.n_known * sizeof(*w->q.samples);
	int r = answer->result;

	if (r >= 0 && answer->len != bytes)
		r = -EPROTO;
	if (r >= 0)
		take_samples(w, answer->bytes);
	if (r == -ENOENT || r == -EPROTO)
		w->told = 0;
	finish(w, r);
}

/* ---- for the owner ---- */

static int take_id(struct backend *b, uint32_t *ret)
{
	for (uint32_t i = 0; i < GKFD_LOOKS; i++) {
		if (b->look_ids[i])
			continue;
		b->look_ids[i] = true;
		*ret = i;
		return 0;
	}
	return -ENOSPC;
}

int look_init(struct gpu_watch *w)
{
	int r;

	if (!w->b->base.readers)
		return 0;
	w->task = (struct readers_task){
		.service = READER_LOOK,
		.pid = w->pid,
		.write = write_request,
		.done = done,
	};
	r = readers_user_of(w->pid, &w->task.user);
	return r < 0 ? r : take_id(w->b, &w->id);
}

void look_changed(struct gpu_watch *w)
{
	if (w->b->base.readers)
		readers_cancel(w->b->base.readers, &w->task);
	if (w->awaited)
		w->b->awaited--;
	w->awaited = w->looked = false;
	w->told = 0;
	gkfd_look_free(steal_ptr(&w->look));
	alert_changed(w);
}

void look_done(struct gpu_watch *w)
{
	look_changed(w);
	alert_done(w);
	if (w->b->base.readers)
		w->b->look_ids[w->id] = false;
}

static void look_here(struct gpu_watch *w)
{
	struct gpu_sample *found = w->q.found;
	int r = 0;

	w->struck = 0;
	if (!w->look)
		r = gkfd_look_new(w->pid, w->q.known, w->q.n_known, &w->look);
	if (r >= 0)
		r = gkfd_look(w->b->k, w->look, w->b->room, is_held(w), found);
	if (r >= 0)
		take_samples(w, found);
	finish(w, r);
}

static void begin(struct gpu_watch *w)
{
	struct backend *b = w->b;

	if (w->task.crew) /* it is being looked at */
		return;
	w->looked = false;
	if (!w->q.n_known) {
		finish(w, w->error == -ESRCH ? -ESRCH : 0);
	} else if (!b->base.readers) {
		look_here(w);
	} else {
		w->awaited = true;
		b->awaited++;
		readers_post(b->base.readers, &w->task);
	}
}

void look_at(struct gpu_backend *base, struct gpu_watch *const *watches, size_t n)
{
	struct backend *b = (struct backend *)base;

	for (size_t i = 0; i < n; i++)
		begin(watches[i]);
	if (b->awaited)
		readers_wait_unless(b->base.readers, WAIT_NS, &b->awaited, alert_fd(base));
	for (size_t i = 0; i < n; i++)
		watches[i]->awaited = false;
	b->awaited = 0;
}

/* Whatever it is that keeps it from being seen: only one that is gone has nothing to be seen. */
static bool is_blind(const struct gpu_watch *w)
{
	return w->result < 0 && w->result != -ESRCH;
}

static void hide(struct gpu_watch *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w->q.samples[i] = (struct gpu_sample){ .gpu = w->q.known[i].gpu,
						       .queue = w->q.known[i].queue,
						       .state = GPU_UNSEEN };
}

int look_result(struct gpu_watch *w, const struct gpu_sample **ret)
{
	if (!w->looked)
		return w->task.crew ? -EAGAIN : -ECANCELED;
	w->looked = false;
	if (is_blind(w))
		hide(w, w->q.n_known);
	else if (w->result < 0)
		return w->result;
	*ret = w->q.samples;
	return (int)(w->q.n_known + w->q.n_unseen);
}

static const char *why_blind(int error)
{
	if (error == -ENOSPC || error == -ENOBUFS)
		return "its user has more queues than can be looked at";
	return readers_why(error);
}

static bool any_hidden(const struct gpu_watch *w)
{
	for (size_t i = 0; i < w->q.n_known; i++) {
		if (w->q.samples[i].state == GPU_UNSEEN)
			return true;
	}
	return false;
}

const char *look_blind(const struct gpu_watch *w)
{
	const char *problem;

	if (w->q.n_known && is_blind(w))
		return why_blind(w->result);
	if (w->result == 1 && any_hidden(w))
		return "the pointers of some of its queues cannot be read";
	if (w->error < 0)
		return "what sysfs says of its queues is not understood";
	if (!w->q.n_unseen)
		return NULL;
	problem = mqds_problem(w->b);
	return problem ? problem : "the driver lists no queue like it yet";
}
