/* SPDX-License-Identifier: MIT */
/* The JSON of status and events for records with a figure in every field, to be compared. */
#include <stdio.h>

#include "cmd/gpreempt/daemon.h"

static struct gpreempt_daemon_status a_status(bool privileged)
{
	struct gpreempt_daemon_status s = {
		.size = sizeof(s),
		.pid = 77,
		.modelled = true,
		.privileged = privileged,
		.guarded = true,
		.started_ns = 1000000000,
		.now_ns = 62123456789,
		.gpus = 2,
		.processes = 5,
		.jobs = 6,
		.queues = 20,
		.online = 1,
		.offline = 3,
		.held = 2,
		.attached = 4,
		.preemptions = 101,
		.trips = 102,
		.inversions = 103,
		.resolved = 104,
		.hints = 105,
		.hints_refused = 106,
		.detection = { 7, 1500, 2500, 3500 },
		.resume = { 9, 10001, 20002, 30003 },
		.steps = 107,
		.policy = "rotate",
		.backend = "model",
		.version = "9.9.9",
		.config = "/etc/gpreempt.conf",
		.level = "K2",
		.kernel = privileged,
	};

	if (privileged)
		snprintf(s.blind, sizeof(s.blind), "no list of queues");
	return s;
}

static const struct gpreempt_daemon_gpu gpus[] = {
	{ .size = sizeof(gpus[0]), .gpu_id = 51110, .tripped = true, .slots = 32,
	  .slots_online = 1, .slots_offline = 2, .slots_reserved = 3, .cycles = 4,
	  .denied_by_budget = 5, .denied_by_cost = 6, .trips = 7, .name = "AMD \"Instinct\"",
	  .tripped_by = "a suspend failed" },
	{ .size = sizeof(gpus[0]), .gpu_id = 4, .name = "H200" },
};

#define WHOLE \
	.priority = 9, .detailed = true, .started_ns = 5, .preempted = 11, .made_room = 12, \
	.held_ns = 1234567, .ran_ns = 13001, .longest_wait_ns = 14001, .stolen_ns = 15001, \
	.share_permille = 125, .history = { 1, 2 }, .source = "rule batch"

static const struct gpreempt_daemon_job jobs[] = {
	{ .size = sizeof(jobs[0]), .pid = 1, .uid = 1000, .gpu_id = 51110,
	  .job_class = GPREEMPT_CLASS_OFFLINE, .critical = true, .attached = true, .held = true,
	  .queues = 10, .comm = "python3", .detect_ns = 16001, .target_us = 20000, .because = 2,
	  .gang = 3, .container = "pod1", .why = "too young", WHOLE },
	{ .size = sizeof(jobs[0]), .pid = 2, .job_class = GPREEMPT_CLASS_ONLINE, .working = true,
	  .refused = true, .queues = 1, .comm = "infer", WHOLE },
	{ .size = sizeof(jobs[0]), .pid = 3, .gpu_id = 4, .blind = true, .unseen = true,
	  .comm = "left alone", WHOLE },
	{ .size = sizeof(jobs[0]), .pid = 4, .gpu_id = 4, .unseen = true, .detailed = true,
	  .source = "default", .comm = "idle" },
	{ .size = sizeof(jobs[0]), .pid = 5, .gpu_id = 4, .job_class = GPREEMPT_CLASS_OFFLINE,
	  .waiting = true, .working = true, .comm = "wait", WHOLE },
	{ .size = sizeof(jobs[0]), .pid = 6, .gpu_id = 4, .uid = 65534, .queues = 2,
	  .comm = "somebody's" },
};

static const struct gpreempt_event events[] = {
	{ .time_ns = 123456789, .kind = GPREEMPT_EVENT_LET_GO, .gpu_id = 4, .pid = 1,
	  .other_pid = 2, .uid = 1000, .job_class = GPREEMPT_CLASS_OFFLINE, .duration_ns = 7500,
	  .count = 1, .comm = "python3", .text = "it runs again" },
	{ .time_ns = 1, .kind = GPREEMPT_EVENT_HELD, .pid = 1, .duration_ns = 7, .count = 2,
	  .comm = "python3", .text = "held" },
	{ .time_ns = 2, .kind = GPREEMPT_EVENT_MISSED, .count = 3, .text = "3 were lost" },
	{ .time_ns = 3, .kind = 4000, .text = "of a later daemon" },
};

int main(void)
{
	struct cli cli = { .program = "print_status", .json = true };

	for (int privileged = 1; privileged >= 0; privileged--) {
		char *trips[ARRAY_SIZE(gpus)] = {
			privileged ? (char *)"GPU 51110 tripped\n  asked: \x1b[1m\n" : NULL
		};
		const struct snapshot v = {
			.status = a_status(privileged),
			.gpus = (struct gpreempt_daemon_gpu *)gpus,
			.trips = trips,
			.n_gpus = ARRAY_SIZE(gpus),
			.jobs = (struct gpreempt_daemon_job *)jobs,
			.n_jobs = ARRAY_SIZE(jobs),
		};

		if (status_print_json(&cli, &v) != EXIT_DONE)
			return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (cli_print_json(&cli, event_to_json(&events[i])) != EXIT_DONE)
			return 1;
	return 0;
}
