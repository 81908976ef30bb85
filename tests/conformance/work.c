/* SPDX-License-Identifier: MIT */
/* Queues with work: what stands still, what goes on, and what is saved of it. */
#include "tests/conformance/topics.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define LONG_WORK 60u /* dispatches: more than a case waits for */
#define STEP_MS 2
#define PATIENCE_MS 5000
#define HOLDS 10 /* one of so many falls between two dispatches by chance, not all */
#define STILL_MS (3 * WORK_MS) /* in which a queue that runs comes on */

struct busy { /* a queue, and who owns it */
	struct actor *a;
	struct kfd_ioctl_create_queue_args q;
};

static struct busy busy_queue(struct actor *a)
{
	struct busy b = { .a = a };

	a->buffers[0] = (struct buffers){ 0 };
	b.q = queue_args(a, AQL);
	if (create_queue(a, &b.q) < 0)
		broken("%s: no queue", a->w->case_name);
	return b;
}

static void submit(const struct busy *b, uint32_t n)
{
	b->a->w->ops->submit(b->a->w, b->a, &b->q, n);
}

static uint64_t read_index(const struct busy *b)
{
	struct world *w = b->a->w;
	uint64_t index;

	w->ops->peek(w, b->a, b->q.read_pointer_address, &index, sizeof(index));
	return index;
}

static bool comes_on(const struct busy *b)
{
	struct world *w = b->a->w;
	uint64_t before = read_index(b);

	for (int ms = 0; ms < PATIENCE_MS; ms += STEP_MS) {
		w->ops->pass(w, STEP_MS);
		if (read_index(b) != before)
			return true;
	}
	return false;
}

static bool stands_still(const struct busy *b)
{
	struct world *w = b->a->w;
	uint64_t before = read_index(b);

	w->ops->pass(w, STILL_MS);
	return read_index(b) == before;
}

static void begin(const struct busy *b)
{
	submit(b, LONG_WORK);
	if (!comes_on(b))
		broken("%s: no work is done", b->a->w->case_name);
}

static void say_runs(const struct busy *b, const char *what, int r)
{
	bool runs = comes_on(b);

	say(b->a->w, "%s %s: %s", what, text_of(r), runs ? "comes on" : "stands still");
}

static void say_still(const struct busy *b, const char *what, int r)
{
	bool still = stands_still(b);

	say(b->a->w, "%s %s: %s", what, text_of(r), still ? "stands still" : "comes on");
}

/* Whether the header of some XCC tells of waves. */
static bool something_saved(const struct busy *b)
{
	struct world *w = b->a->w;
	uint32_t n_xcc = node_property(w, "num_xcc");
	struct kfd_context_save_area_header h;
	bool saved = false;

	for (uint32_t i = 0; i < n_xcc; i++) {
		w->ops->peek(w, b->a,
			     b->q.ctx_save_restore_address +
				     (uint64_t)i * b->q.ctx_save_restore_size,
			     &h, sizeof(h));
		saved |= h.wave_state.wave_state_size || h.wave_state.control_stack_size;
	}
	return saved;
}

struct rig {
	struct session s;
	struct busy b;
	struct who by;
};

static struct rig at_work(struct world *w)
{
	struct rig r = { .s = attached(w, 0) };

	r.by = me(r.s.debugger);
	r.b = busy_queue(r.s.target);
	if (snapshot(r.by, r.s.target, NEW) != 1)
		broken("%s: not one queue", w->case_name);
	begin(&r.b);
	return r;
}

static int hold(struct rig *r)
{
	r->s.ids[0] = r->b.q.queue_id;
	return suspend(r->by, r->s.target, r->s.ids, 1, GRACE_DEFAULT);
}

/* Of a queue that is held; it still is when this returns. */
static bool saves_something(struct rig *r)
{
	for (int i = 1; i < HOLDS && !something_saved(&r->b); i++) {
		resume_all(r->by, r->s.target);
		comes_on(&r->b);
		hold(r);
	}
	return something_saved(&r->b);
}

static void suspended(struct world *w)
{
	struct rig r = at_work(w);

	say_still(&r.b, "suspend", hold(&r));
	say(w, "saved %d", saves_something(&r));
	say_runs(&r.b, "resume", resume_all(r.by, r.s.target));
	say_still(&r.b, "suspend", hold(&r));
	say_still(&r.b, "suspend again", hold(&r));
	say_runs(&r.b, "resume", resume(r.by, r.s.target, r.s.ids, 1));
}

static void graces(struct world *w)
{
	static const uint32_t values[] = { 0, 1, 255 };
	struct rig r = at_work(w);

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		r.s.ids[0] = r.b.q.queue_id;
		say(w, "grace %u", values[i]);
		say_still(&r.b, "suspend", suspend(r.by, r.s.target, r.s.ids, 1, values[i]));
		resume_all(r.by, r.s.target);
	}
}

static void others_go_on(struct world *w)
{
	struct rig r = at_work(w);
	struct busy second = busy_queue(r.s.target), other;
	struct actor *bystander = kfd_actor(w, "bystander");

	acquire_vm(bystander);
	other = busy_queue(bystander);
	begin(&second);
	begin(&other);
	say_still(&r.b, "suspend", hold(&r));
	say_runs(&second, "its other queue", 0);
	say_runs(&other, "a bystander's", 0);
}

static void submitted_while_suspended(struct world *w)
{
	struct rig r = { .s = attached(w, 0) };

	r.by = me(r.s.debugger);
	r.b = busy_queue(r.s.target);
	snapshot(r.by, r.s.target, NEW);
	say(w, "suspend %s", text_of(hold(&r)));
	submit(&r.b, LONG_WORK);
	say_still(&r.b, "submit", 0);
	say_runs(&r.b, "resume", resume_all(r.by, r.s.target));
}

static void nothing_left_to_save(struct world *w)
{
	struct rig r = { .s = attached(w, 0) };

	r.by = me(r.s.debugger);
	r.b = busy_queue(r.s.target);
	snapshot(r.by, r.s.target, NEW);
	submit(&r.b, 1);
	w->ops->pass(w, STILL_MS);
	while (read_index(&r.b) < 1)
		w->ops->pass(w, STEP_MS);
	say(w, "suspend %s", text_of(hold(&r)));
	say(w, "saved %d", something_saved(&r.b));
}

static int update(const struct busy *b, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = b->q.ring_base_address,
		.ring_size = b->q.ring_size,
		.queue_id = b->q.queue_id,
		.queue_percentage = percent,
		.queue_priority = b->q.queue_priority,
	};

	return call(me(b->a), AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static void taken_off_by_its_owner(struct world *w)
{
	struct rig r = at_work(w);

	say_still(&r.b, "0 percent", update(&r.b, 0));
	say_runs(&r.b, "100 percent", update(&r.b, 100));
	say_still(&r.b, "suspend", hold(&r));
	say_still(&r.b, "100 percent", update(&r.b, 100));
	say_runs(&r.b, "resume", resume_all(r.by, r.s.target));
}

static void paused(struct world *w)
{
	struct rig r = at_work(w);
	struct kfd_ioctl_criu_args c = { .op = KFD_CRIU_OP_PROCESS_INFO };

	say_still(&r.b, "pause", call(me(r.s.target), AMDKFD_IOC_CRIU_OP, &c));
	c.op = KFD_CRIU_OP_UNPAUSE;
	say_runs(&r.b, "unpause", call(me(r.s.target), AMDKFD_IOC_CRIU_OP, &c));
}

static void the_hold_ends(struct world *w)
{
	struct rig r = at_work(w);

	say_still(&r.b, "suspend", hold(&r));
	say_runs(&r.b, "disable", disable(r.by, r.s.target));
	enable(r.by, r.s.target, NEW);
	snapshot(r.by, r.s.target, NEW);
	say_still(&r.b, "suspend", hold(&r));
	kill_actor(r.s.debugger);
	say_runs(&r.b, "the debugger died", 0);
}

static void destroyed(struct world *w)
{
	struct rig r = at_work(w);

	say_still(&r.b, "destroy", destroy_queue(me(r.s.target), r.b.q.queue_id));
}

const struct conformance_case work_cases[] = {
	{ "work/suspended", suspended },
	{ "work/graces", graces },
	{ "work/others_go_on", others_go_on },
	{ "work/submitted_while_suspended", submitted_while_suspended },
	{ "work/nothing_left_to_save", nothing_left_to_save },
	{ "work/taken_off_by_its_owner", taken_off_by_its_owner },
	{ "work/paused", paused },
	{ "work/the_hold_ends", the_hold_ends },
	{ "work/destroyed", destroyed },
	{ NULL, NULL },
};
