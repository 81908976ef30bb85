/* SPDX-License-Identifier: MIT */
#include "tests/kfd/tracee.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "util/macros.h"

struct tracee {
	struct gkfd_target *target;
	int end_fd;
	enum gkfd_why end; /* atomic */
};

static void on_ended(void *user, const struct gpu_done *done)
{
	struct tracee *t = user;

	__atomic_store_n(&t->end, t->target->failure.why, __ATOMIC_RELEASE);
	eventfd_write(t->end_fd, 1);
}

static void on_gone(void *user)
{
}

static const struct target_hooks hooks = { .ended = on_ended, .gone = on_gone };

struct call {
	struct gkfd_target *target;
	const struct gpu_hold *what;
	struct gkfd_moved *ret;
	struct gkfd_failure *fail;
};

static int do_attach(void *arg)
{
	struct call *c = arg;

	return target_attach_here(c->target, c->fail);
}

static int do_hold(void *arg)
{
	struct call *c = arg;

	return target_hold_here(c->target, c->what, gkfd_now_ns(c->target->k), c->ret, c->fail);
}

static int do_resume(void *arg)
{
	struct call *c = arg;

	return target_resume_here(c->target, NULL, 0, c->ret, c->fail);
}

int tracee_attach(struct gkfd *k, pid_t pid, enum gkfd_way way, struct guard *guard,
		  struct tracee **ret, struct gkfd_failure *fail)
{
	struct tracee *t = calloc(1, sizeof(*t));
	const struct target_options options = {
		.pid = pid, .way = way, .guard = guard, .hooks = &hooks, .user = t
	};
	struct call call = { .fail = fail };
	int r;

	t->end_fd = eventfd(0, EFD_CLOEXEC);
	r = t->end_fd < 0 ? -errno : target_new(k, &options, &t->target);
	if (r >= 0)
		r = tracer_launch(t->target->tracer);
	call.target = t->target;
	if (r >= 0)
		r = tracer_call(t->target->tracer, do_attach, &call);
	if (r >= 0)
		*ret = t;
	else
		tracee_release(t);
	return r;
}

int tracee_hold(struct tracee *t, const struct gpu_hold *what, struct gkfd_moved *ret,
		struct gkfd_failure *fail)
{
	struct call call = { t->target, what, ret, fail };

	return tracer_call(t->target->tracer, do_hold, &call);
}

int tracee_resume(struct tracee *t, struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	struct call call = { t->target, NULL, ret, fail };

	return tracer_call(t->target->tracer, do_resume, &call);
}

bool tracee_holds(struct tracee *t)
{
	return target_holds(t->target);
}

int tracee_fd(const struct tracee *t)
{
	return t->end_fd;
}

enum gkfd_why tracee_end(struct tracee *t)
{
	return __atomic_load_n(&t->end, __ATOMIC_ACQUIRE);
}

enum gkfd_why tracee_await_end(struct tracee *t)
{
	struct pollfd p = { .fd = t->end_fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 5000), 1);
	return tracee_end(t);
}

void tracee_release(struct tracee *t)
{
	if (!t)
		return;
	target_free(t->target);
	closep(&t->end_fd);
	free(t);
}
