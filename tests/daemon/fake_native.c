/* SPDX-License-Identifier: MIT */
/* A scheduler of the driver's own; only with caps.schedules. */
#include <errno.h>

#include "core/policy/gpol.h"
#include "tests/daemon/fake_backend.h"

static struct fake *fake_of(struct gpu_backend *b)
{
	return (struct fake *)b;
}

static int native_is_on(struct gpu_backend *b)
{
	return fake_of(b)->native.gone ? -ENODEV : fake_of(b)->native.on;
}

static int native_turn_on(struct gpu_backend *b, const struct gpu_native_config *config)
{
	struct fake_native *n = &fake_of(b)->native;

	n->turn_ons++;
	if (n->turn_on_result < 0)
		return n->turn_on_result;
	n->on = true;
	n->config = *config;
	return 0;
}

static int native_turn_off(struct gpu_backend *b)
{
	struct fake_native *n = &fake_of(b)->native;

	n->turn_offs++;
	if (n->gone)
		return -ENODEV;
	if (n->turn_off_result < 0)
		return n->turn_off_result;
	n->on = false;
	return 0;
}

static struct fake_process *native_find(struct gpu_backend *b, pid_t pid, uint64_t start_ticks)
{
	struct fake_process *p = fake_find(fake_of(b), pid);

	return p && p->start_ticks == start_ticks ? p : NULL;
}

static int native_set_job(struct gpu_backend *b, pid_t pid, uint64_t start_ticks,
			  const struct gpu_native_job *job)
{
	struct fake_process *p = native_find(b, pid, start_ticks);

	if (!p)
		return -ESRCH;
	if (fake_of(b)->native.set_job_result < 0)
		return fake_of(b)->native.set_job_result;
	p->native = *job;
	p->native_sets++;
	return 0;
}

static int native_hint(struct gpu_backend *b, pid_t pid, uint64_t start_ticks, uint64_t ahead_ns,
		       uint64_t for_ns)
{
	struct fake_process *p = native_find(b, pid, start_ticks);

	if (!p)
		return -ESRCH;
	if (p->native.job_class != JOB_ONLINE)
		return -EPERM;
	p->native_hints++;
	p->native_ahead_ns = ahead_ns;
	p->native_for_ns = for_ns;
	return 0;
}

static int native_rearm(struct gpu_backend *b, uint32_t gpu)
{
	fake_of(b)->native.rearms++;
	return 0;
}

const struct gpu_native_ops fake_native_ops = {
	.is_on = native_is_on,
	.turn_on = native_turn_on,
	.turn_off = native_turn_off,
	.set_job = native_set_job,
	.hint = native_hint,
	.rearm = native_rearm,
};
