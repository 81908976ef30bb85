/* SPDX-License-Identifier: MIT */
/*
 * usage: hsajob [TICKS]
 *
 * A program for AMD's HSA runtime that knows nothing of the driver below it: two queues with steady
 * work on the first GPU, dispatches of TICKS each, every one a link of its queue's checksum chain.
 * Says "ready PID" when there is work. Lines of its standard input:
 *
 *     count   "consumed N of M": packets the GPU has taken, packets it was given
 *     stop    "stop", then the end: "done PID packets N wrong N", where N queues computed wrongly
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kfdsim/kernarg.h"

#define N_QUEUES 2
#define SLOTS 64u
#define MEMORY_BYTES 4096
#define DEPTH 32u /* packets given and not taken */
#define WAVES 8
#define WAIT_MS 10
#define STALL_MS 30000
#define NO_END INT64_C(0x4000000000000000)

/* The one program of the software GPU is chosen by its arguments: there is no code object. */
struct chain {
	hsa_queue_t *queue;
	struct kfdsim_kernarg *args; /* one for each slot */
	volatile uint64_t *word;
	uint64_t submitted;
	uint64_t expected; /* of *word, when all is done */
};

struct job {
	hsa_agent_t gpu;
	hsa_amd_memory_pool_t pool; /* of the host's, for arguments */
	hsa_signal_t done; /* counts down from NO_END with each packet that is done */
	uint64_t ticks_per_ms; /* of the runtime's clock */
	uint32_t ticks; /* of a dispatch */
	struct chain chains[N_QUEUES];
};

static void must(hsa_status_t status, const char *what)
{
	const char *text = NULL;

	if (status == HSA_STATUS_SUCCESS || status == HSA_STATUS_INFO_BREAK)
		return;
	hsa_status_string(status, &text);
	fprintf(stderr, "hsajob: %s: %s\n", what, text ? text : "unknown error");
	exit(1);
}

static void queue_failed(hsa_status_t status, hsa_queue_t *queue, void *data)
{
	(void)queue;
	(void)data;
	must(status, "queue");
}

static hsa_status_t take_gpu(hsa_agent_t agent, void *data)
{
	struct job *j = data;
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);

	if (status != HSA_STATUS_SUCCESS || type != HSA_DEVICE_TYPE_GPU)
		return status;
	j->gpu = agent;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct job *j = data;
	uint32_t flags = 0;
	hsa_status_t status =
		hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);

	if (status != HSA_STATUS_SUCCESS || !(flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT))
		return status;
	j->pool = pool;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_pool_of_cpu(hsa_agent_t agent, void *data)
{
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);

	if (status != HSA_STATUS_SUCCESS || type != HSA_DEVICE_TYPE_CPU)
		return status;
	return hsa_amd_agent_iterate_memory_pools(agent, take_pool, data);
}

static void open_runtime(struct job *j)
{
	uint64_t hz;

	must(hsa_init(), "hsa_init");
	must(hsa_iterate_agents(take_gpu, j), "hsa_iterate_agents");
	must(hsa_iterate_agents(take_pool_of_cpu, j), "hsa_iterate_agents");
	if (!j->gpu.handle || !j->pool.handle)
		must(HSA_STATUS_ERROR_INVALID_AGENT, "no GPU, or no memory for arguments");
	must(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &hz), "clock");
	j->ticks_per_ms = hz / 1000;
	must(hsa_signal_create(NO_END, 0, NULL, &j->done), "hsa_signal_create");
}

static void create(struct job *j, struct chain *c)
{
	void *memory;

	must(hsa_queue_create(j->gpu, SLOTS, HSA_QUEUE_TYPE_SINGLE, queue_failed, NULL, UINT32_MAX,
			      UINT32_MAX, &c->queue),
	     "hsa_queue_create");
	must(hsa_amd_memory_pool_allocate(j->pool, MEMORY_BYTES, 0, &memory), "memory");
	must(hsa_amd_agents_allow_access(1, &j->gpu, NULL, memory), "memory for the GPU");
	memset(memory, 0, MEMORY_BYTES);
	_Static_assert(SLOTS * sizeof(*c->args) + sizeof(*c->word) <= MEMORY_BYTES, "too small");
	c->args = memory;
	c->word = (volatile uint64_t *)(c->args + SLOTS);
}

static void submit(struct job *j, struct chain *c)
{
	uint64_t index = hsa_queue_add_write_index_relaxed(c->queue, 1);
	hsa_kernel_dispatch_packet_t *p = c->queue->base_address;
	struct kfdsim_kernarg *arg = &c->args[index % SLOTS];

	p += index % SLOTS;
	*arg = (struct kfdsim_kernarg){
		.magic = KFDSIM_KERNARG_MAGIC,
		.word = (uintptr_t)c->word,
		.seq = c->submitted,
	};
	memset((char *)p + sizeof(p->header), 0, sizeof(*p) - sizeof(p->header));
	p->setup = 3 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
	p->workgroup_size_x = 1;
	p->workgroup_size_y = 64;
	p->workgroup_size_z = 1;
	p->grid_size_x = j->ticks;
	p->grid_size_y = WAVES * 64;
	p->grid_size_z = 1;
	p->kernarg_address = arg;
	p->completion_signal = j->done;
	c->expected = kfdsim_mix(c->expected, c->submitted++);
	__atomic_store_n(&p->header,
			 HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
				 1 << HSA_PACKET_HEADER_BARRIER,
			 __ATOMIC_RELEASE);
	hsa_signal_store_screlease(c->queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void feed(struct job *j)
{
	for (struct chain *c = j->chains; c < j->chains + N_QUEUES; c++) {
		while (c->submitted - hsa_queue_load_read_index_scacquire(c->queue) < DEPTH)
			submit(j, c);
	}
}

static uint64_t sum_submitted(const struct job *j)
{
	uint64_t sum = 0;

	for (const struct chain *c = j->chains; c < j->chains + N_QUEUES; c++)
		sum += c->submitted;
	return sum;
}

static void count(const struct job *j)
{
	uint64_t sum = 0;

	for (const struct chain *c = j->chains; c < j->chains + N_QUEUES; c++)
		sum += hsa_queue_load_read_index_scacquire(c->queue);
	printf("consumed %" PRIu64 " of %" PRIu64 "\n", sum, sum_submitted(j));
	fflush(stdout);
}

/* False: the end. */
static bool obey(const struct job *j)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (!strcmp(line, "count\n")) {
		count(j);
		return true;
	}
	printf("%s", line);
	fflush(stdout);
	return false;
}

static bool is_asked(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

static void work(struct job *j)
{
	hsa_signal_value_t last;

	do {
		feed(j);
		last = hsa_signal_load_relaxed(j->done);
		hsa_signal_wait_scacquire(j->done, HSA_SIGNAL_CONDITION_LT, last,
					  WAIT_MS * j->ticks_per_ms, HSA_WAIT_STATE_BLOCKED);
	} while (!is_asked() || obey(j));
}

/* How many chains are not what they must be, with everything done or nothing happening any more. */
static unsigned int end(struct job *j)
{
	hsa_signal_value_t all = NO_END - (int64_t)sum_submitted(j), left;
	unsigned int wrong = 0;

	left = hsa_signal_wait_scacquire(j->done, HSA_SIGNAL_CONDITION_EQ, all,
					 STALL_MS * j->ticks_per_ms, HSA_WAIT_STATE_BLOCKED);
	for (struct chain *c = j->chains; c < j->chains + N_QUEUES; c++) {
		if (left == all && *c->word == c->expected)
			continue;
		wrong++;
		printf("wrong word %#" PRIx64 " for %#" PRIx64 ", %" PRId64 " not done\n", *c->word,
		       c->expected, left - all);
	}
	return wrong;
}

static void close_runtime(struct job *j)
{
	for (struct chain *c = j->chains; c < j->chains + N_QUEUES; c++) {
		must(hsa_queue_destroy(c->queue), "hsa_queue_destroy");
		must(hsa_amd_memory_pool_free(c->args), "hsa_amd_memory_pool_free");
	}
	must(hsa_signal_destroy(j->done), "hsa_signal_destroy");
	must(hsa_shut_down(), "hsa_shut_down");
}

int main(int argc, char **argv)
{
	static struct job j = { .ticks = 20 };
	unsigned int wrong;

	if (argc > 1)
		j.ticks = (uint32_t)strtoul(argv[1], NULL, 0);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() is asked about it */
	open_runtime(&j);
	for (unsigned int i = 0; i < N_QUEUES; i++)
		create(&j, &j.chains[i]);
	feed(&j);
	printf("ready %d\n", getpid());
	fflush(stdout);
	work(&j);
	wrong = end(&j);
	close_runtime(&j);
	printf("done %d packets %" PRIu64 " wrong %u\n", getpid(), sum_submitted(&j), wrong);
	return wrong != 0;
}
