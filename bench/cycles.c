/* SPDX-License-Identifier: MIT */
/*
 * How often the GPU's runlist is taken off and put back to suspend ten queues: in one call, and
 * one by one. And how long it takes with the save area in HBM and in host memory. Counted by the
 * software device; its times are modelled.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kfd/session.h"
#include "gpu/model/model.h"
#include "util/macros.h"

#define PID 1001 /* of the preset: ten busy queues on GPU 0 */
#define QUEUES 10

struct cost {
	uint64_t cycles, ns;
};

static struct cost cost_now(struct gkfd *k)
{
	struct model_gpu_stats stats = { 0 };

	model_gpu_stats(model_transport_get(k->data), 0, &stats);
	return (struct cost){ .cycles = stats.cycles, .ns = gkfd_now_ns(k) };
}

/* Suspends @n queues, @at_once per call, and resumes them; what the suspension cost. */
static int suspend(struct gkfd *k, uint32_t *ids, uint32_t n, uint32_t at_once, struct cost *ret)
{
	struct cost before, after;
	int r;

	/* It must find the queues at work again, over whatever link. */
	model_advance(model_transport_get(k->data), 5 * NSEC_PER_MSEC);
	before = cost_now(k);
	for (uint32_t i = 0; i < n; i += at_once) {
		r = gkfd_dbg_suspend_queues(k, PID, &ids[i], at_once, KFD_GRACE_KCLK_MIN);
		if (r != (int)at_once)
			return r < 0 ? r : -EIO;
	}
	after = cost_now(k);
	ret->cycles = after.cycles - before.cycles;
	ret->ns = after.ns - before.ns;
	return gkfd_dbg_resume_queues(k, PID, NULL, 0);
}

static int compare_both(struct gkfd *k, struct cost *batch, struct cost *single)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	struct gkfd_session s;
	struct gkfd_failure fail;
	uint32_t ids[QUEUES], n = 0;
	int r;

	r = gkfd_session_begin(&s, k, PID, &fail);
	if (r < 0)
		return r;
	r = gkfd_session_snapshot(&s, &entries, &n, &fail);
	if (r >= 0 && n != QUEUES)
		r = -EIO;
	for (uint32_t i = 0; i < QUEUES && r >= 0; i++)
		ids[i] = entries[i].queue_id;
	if (r >= 0)
		r = suspend(k, ids, QUEUES, QUEUES, batch);
	if (r >= 0)
		r = suspend(k, ids, QUEUES, 1, single);
	gkfd_session_end(&s);
	return r;
}

static int measure(const char *preset, struct cost *batch, struct cost *single)
{
	_cleanup_(gkfd_freep) struct gkfd *k = NULL;
	_cleanup_free_ char *why = NULL;
	struct model *m = NULL;
	int r;

	r = model_new_preset(preset, &m, &why);
	if (r >= 0)
		r = gkfd_new(&gkfd_transport_model, model_transport_new(m), &k);
	if (r >= 0)
		r = gkfd_open_device(k);
	if (r >= 0)
		r = k->transport->trace->seize(k->data, PID);
	if (r >= 0)
		r = compare_both(k, batch, single);
	return r;
}

int main(void)
{
	struct cost batch = { 0 }, single = { 0 }, host_batch = { 0 }, host_single = { 0 };
	int r;

	r = measure("mi308x", &batch, &single);
	if (r >= 0)
		r = measure("mi308x,save_area=host", &host_batch, &host_single);
	if (r < 0) {
		fprintf(stderr, "cycles: %s\n", strerror(-r));
		return 1;
	}
	printf("{\"queues\": %d, \"batch_cycles\": %llu, \"batch_ns\": %llu, "
	       "\"single_cycles\": %llu, \"single_ns\": %llu, \"host_batch_ns\": %llu}\n",
	       QUEUES, (unsigned long long)batch.cycles, (unsigned long long)batch.ns,
	       (unsigned long long)single.cycles, (unsigned long long)single.ns,
	       (unsigned long long)host_batch.ns);
	return 0;
}
