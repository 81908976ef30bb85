/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/own.h"
#include "util/macros.h"

#define PERCENT_OFF 0
#define PERCENT_ON 100

static int update(struct gkfd *k, const struct gkfd_own_queue *q, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = q->ring_base,
		.queue_id = q->id,
		.ring_size = q->ring_bytes,
		.queue_percentage = percent,
		.queue_priority = q->priority,
	};

	return gkfd_ioctl(k, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

/* A ring of 0 would be taken from the queue for good; a queue named twice it would not mind. */
static int check_queues(const struct gkfd_own_queue *queues, uint32_t n, struct gkfd_failure *fail)
{
	if (!queues)
		return gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_NO_RING, "update");
	for (uint32_t i = 0; i < n; i++) {
		if (queues[i].ring_base == 0 || queues[i].ring_bytes == 0) {
			gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_NO_RING, "update");
			fail->queue_id = queues[i].id;
			return -EOPNOTSUPP;
		}
		for (uint32_t j = 0; j < i; j++) {
			if (queues[i].id != queues[j].id)
				continue;
			gkfd_fail(fail, -EINVAL, GKFD_WHY_DUPLICATE_QUEUE, "update");
			fail->queue_id = queues[i].id;
			return -EINVAL;
		}
	}
	return 0;
}

static int update_failed(const struct gkfd_own_queue *q, int error, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		/* Also for a ring that is not mapped so. */
		{ -EFAULT, GKFD_WHY_NO_SUCH_QUEUE, -EINVAL },
		{ -ETIME, GKFD_WHY_PREEMPTION_FAILED, -EIO },
		{ -EIO, GKFD_WHY_PREEMPTION_FAILED },
		{ 0 },
	};
	int r = gkfd_fail_by(fail, error, meanings, "update");

	fail->queue_id = q->id;
	return r;
}

static int hold_by_update(struct gkfd_own *own, struct gkfd *k, const struct gkfd_own_queue *queues,
			  uint32_t n, struct gkfd_moved *hold, struct gkfd_failure *fail)
{
	_cleanup_free_ struct gkfd_own_queue *copy = NULL;
	int r = check_queues(queues, n, fail);

	if (r < 0)
		return r;
	copy = calloc(n ? n : 1, sizeof(*copy));
	if (!copy)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "update");
	memcpy(copy, queues, n * sizeof(*copy));
	hold->began_ns = gkfd_now_ns(k);
	for (uint32_t i = 0; i < n; i++) {
		r = update(k, &copy[i], PERCENT_OFF);
		if (r >= 0)
			continue;
		r = update_failed(&copy[i], r, fail);
		while (i-- > 0)
			update(k, &copy[i], PERCENT_ON);
		return r;
	}
	hold->done_ns = gkfd_now_ns(k);
	hold->n = n;
	own->updated = steal_ptr(&copy);
	own->n_updated = n;
	return 0;
}

static int hold_by_debug(struct gkfd_own *own, struct gkfd *k, pid_t self,
			 const struct gkfd_own_queue *queues, uint32_t n, uint32_t grace_kclk,
			 struct gkfd_moved *hold, struct gkfd_failure *fail)
{
	struct gpu_hold what = { .n = n, .grace_kclk = grace_kclk };
	_cleanup_free_ uint32_t *ids = NULL;
	int r;

	if (!gkfd_has(k, GKFD_CAP_DEBUG))
		return gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_KFD_TOO_OLD, "enable");
	r = gkfd_vms_check(k, self, fail);
	if (r < 0)
		return r;
	ids = calloc(n ? n : 1, sizeof(*ids));
	if (!ids)
		return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "hold");
	for (uint32_t i = 0; queues && i < n; i++)
		ids[i] = queues[i].id;
	what.ids = queues ? ids : NULL;
	r = gkfd_session_begin(&own->session, k, self, fail);
	if (r < 0)
		return r;
	r = gkfd_session_hold(&own->session, &what, hold, fail);
	if (r < 0)
		gkfd_session_end(&own->session);
	return r;
}

static bool has_no_debugging(const struct gkfd_failure *fail)
{
	return fail->why == GKFD_WHY_KFD_TOO_OLD || fail->why == GKFD_WHY_NO_DEBUG ||
	       fail->why == GKFD_WHY_RUNTIME_TOO_OLD || fail->why == GKFD_WHY_NO_VM;
}

int gkfd_own_hold(struct gkfd_own *own, struct gkfd *k, pid_t self,
		  const struct gkfd_own_queue *queues, uint32_t n, uint32_t grace_kclk,
		  struct gkfd_moved *ret, struct gkfd_failure *fail)
{
	struct gkfd_moved hold = { 0 };
	int r;

	if (own->holding)
		return gkfd_fail(fail, -EALREADY, GKFD_WHY_ALREADY_HELD, "hold");
	*own = (struct gkfd_own){ .session = GKFD_SESSION_NONE };
	r = hold_by_debug(own, k, self, queues, n, grace_kclk, &hold, fail);
	if (r < 0 && has_no_debugging(fail))
		r = hold_by_update(own, k, queues, n, &hold, fail);
	if (r < 0)
		return r;
	own->holding = true;
	*ret = hold;
	return 0;
}

static int resume_by_update(struct gkfd_own *own, struct gkfd *k, struct gkfd_moved *done,
			    struct gkfd_failure *fail)
{
	int first_error = 0;

	done->began_ns = gkfd_now_ns(k);
	for (uint32_t i = 0; i < own->n_updated; i++) {
		int r = update(k, &own->updated[i], PERCENT_ON);

		if (r >= 0)
			done->n++;
		else if (r != -EFAULT && first_error == 0) /* destroyed meanwhile: not counted */
			first_error = update_failed(&own->updated[i], r, fail);
	}
	done->done_ns = gkfd_now_ns(k);
	free(steal_ptr(&own->updated));
	return first_error;
}

int gkfd_own_resume(struct gkfd_own *own, struct gkfd *k, struct gkfd_moved *ret,
		    struct gkfd_failure *fail)
{
	struct gkfd_moved done = { 0 };
	int r = 0;

	if (own->holding && own->updated) {
		r = resume_by_update(own, k, &done, fail);
	} else if (own->holding) {
		r = gkfd_session_resume(&own->session, NULL, 0, &done, fail);
		gkfd_session_end(&own->session);
	}
	own->holding = false;
	if (r >= 0)
		*ret = done;
	return r;
}
