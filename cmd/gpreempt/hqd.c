/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/gpreempt/table.h"

/* A sum is known only where every part of it is. */
static struct gpreempt_hqd_status sum_up(const struct gpreempt_hqd_status *gpus, size_t n)
{
	struct gpreempt_hqd_status sum = { .gpu_id = GPREEMPT_ALL_GPUS, .valid = n ? ~0ull : 0 };

	for (size_t i = 0; i < n; i++) {
		sum.valid &= gpus[i].valid;
		sum.queues += gpus[i].queues;
		sum.total += gpus[i].total;
		sum.active += gpus[i].active;
		sum.free += gpus[i].free;
		sum.online_reserved += gpus[i].online_reserved;
		sum.offline_used += gpus[i].offline_used;
		sum.held += gpus[i].held;
	}
	return sum;
}

static const char *gpu_word(const void *record, char buf[UNIT_TEXT_SIZE])
{
	uint32_t gpu_id = ((const struct gpreempt_hqd_status *)record)->gpu_id;

	snprintf(buf, UNIT_TEXT_SIZE, "%u", gpu_id);
	return gpu_id == GPREEMPT_ALL_GPUS ? "all" : buf;
}

#define HQD(member) FIELD(struct gpreempt_hqd_status, member)

/* The first is of one GPU, the others of all together as well. */
static const struct field fields[] = {
	{ "gpu_id", "GPU", FIELD_FIGURES, HQD(gpu_id), .word = gpu_word },
	{ "queues", "QUEUES", FIELD_NUMBER, HQD(queues), GPREEMPT_HQD_QUEUES },
	{ "total", "SLOTS", FIELD_NUMBER, HQD(total), GPREEMPT_HQD_TOTAL },
	{ "active", "ACTIVE", FIELD_NUMBER, HQD(active), GPREEMPT_HQD_ACTIVE },
	{ "free", "FREE", FIELD_NUMBER, HQD(free), GPREEMPT_HQD_TOTAL | GPREEMPT_HQD_ACTIVE },
	{ "online_reserved", "RESERVED", FIELD_NUMBER, HQD(online_reserved),
	  GPREEMPT_HQD_RESERVED },
	{ "offline_used", "OFFLINE", FIELD_NUMBER, HQD(offline_used), GPREEMPT_HQD_OFFLINE },
	{ "held", "HELD", FIELD_NUMBER, HQD(held), GPREEMPT_HQD_HELD },
};

static int print_json(struct cli *cli, const struct gpreempt_hqd_status *gpus, size_t n)
{
	struct gpreempt_hqd_status sum = sum_up(gpus, n);
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *gpu = json_of_fields(fields, ARRAY_SIZE(fields), &gpus[i]);

		if (gpus[i].valid & GPREEMPT_HQD_HELD)
			json_add(gpu, "stopped", json_object_new_boolean(gpus[i].stopped));
		json_object_array_add(list, gpu);
	}
	json_add(o, "gpus", list);
	json_add(o, "total", json_of_fields(fields + 1, ARRAY_SIZE(fields) - 1, &sum));
	return cli_print_json(cli, o);
}

/* Of @gpus there is room for one more. */
static int print_text(struct gpreempt_hqd_status *gpus, size_t n)
{
	uint32_t crowded = 0;

	for (size_t i = 0; i < n; i++)
		crowded += (gpus[i].valid & GPREEMPT_HQD_TOTAL) && gpus[i].queues > gpus[i].total;
	gpus[n] = sum_up(gpus, n);
	print_records(fields, ARRAY_SIZE(fields), NULL, gpus, n + 1, sizeof(*gpus));
	for (size_t i = 0; i < n; i++)
		if (gpus[i].stopped)
			printf("\nGPU %u is STOPPED by gpreempt stop-gpu\n", gpus[i].gpu_id);
	if (crowded)
		printf("\n%u GPU%s more queues than slots: the firmware takes turns\n", crowded,
		       crowded == 1 ? " has" : "s have");
	return EXIT_DONE;
}

int cmd_hqd(struct cli *cli, int argc, char **argv)
{
	struct gpreempt_hqd_status gpus[GPREEMPT_MAX_GPUS + 1] = { { .size = sizeof(gpus[0]) } };
	int status = take_options(cli, argc, argv, NULL, 0), n;

	if (status == EXIT_DONE)
		status = cli_open(cli);
	if (status != EXIT_DONE)
		return status;
	n = gpreempt_get_hqd_status(cli->ctx, gpus, GPREEMPT_MAX_GPUS);
	if (n < 0)
		return cli_fail_ctx(cli);
	n = MIN(n, GPREEMPT_MAX_GPUS);
	return cli->json ? print_json(cli, gpus, (size_t)n) : print_text(gpus, (size_t)n);
}
