/* SPDX-License-Identifier: MIT */
#include "tests/sim/sim_rig.h"

struct heard heard[4096];
size_t n_heard;

static void hear(const struct heard *h)
{
	if (n_heard < ARRAY_SIZE(heard))
		heard[n_heard++] = *h;
}

void sim_trace_work(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t from_ns,
		    uint64_t to_ns, uint64_t request)
{
	hear(&(struct heard){
		.kind = HEARD_WORK,
		.gpu = gpu,
		.process = process,
		.request = request,
		.from_ns = from_ns,
		.to_ns = to_ns,
	});
}

void sim_trace_preemption(struct sim_trace *t, uint32_t gpu, uint32_t victim, uint32_t because,
			  uint64_t from_ns, uint64_t to_ns)
{
	hear(&(struct heard){
		.kind = HEARD_PREEMPTION,
		.gpu = gpu,
		.process = victim,
		.because = because,
		.from_ns = from_ns,
		.to_ns = to_ns,
	});
}

void sim_trace_request(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t request,
		       uint64_t submitted_ns, uint64_t started_ns, uint64_t done_ns)
{
	hear(&(struct heard){
		.kind = HEARD_REQUEST,
		.gpu = gpu,
		.process = process,
		.request = request,
		.from_ns = submitted_ns,
		.started_ns = started_ns,
		.to_ns = done_ns,
	});
}

void sim_trace_slots(struct sim_trace *t, uint32_t gpu, uint64_t at_ns,
		     const struct sim_slots *slots)
{
}
