/* SPDX-License-Identifier: MIT */
/* What the software GPU tells and is told (tests/vm/README.md), and the driver's books. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define FILES "/sys/kernel/debug/kfdsim/"
#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define MAX_NODES 16
#define SETTLE_MS 3000
#define WATCHED 10 /* times as long, calls and processes take */

struct machine machine;
unsigned int slowness = 1;

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void let_pass(unsigned int ms)
{
	uint64_t now = now_ms(), until = now + ms;

	for (; now < until; now = now_ms())
		poll(NULL, 0, (int)(until - now));
}

uint32_t lasting(uint32_t ms)
{
	return slowness > 1 ? ms * WATCHED : ms;
}

void find_machine(void)
{
	const char *text = getenv("SLOWNESS");
	char path[128];

	slowness = text ? (unsigned int)strtoul(text, NULL, 0) : 1;
	machine = (struct machine){ 0 };
	for (unsigned int node = 0; node < MAX_NODES; node++) {
		uint32_t id = 0;
		FILE *f;

		snprintf(path, sizeof(path), NODES "/%u/gpu_id", node);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%u", &id) == 1 && id && machine.n_gpus < MAX_GPUS)
			machine.gpu_ids[machine.n_gpus++] = id;
		fclose(f);
	}
	if (!machine.n_gpus)
		mk_die("no GPU");
	machine.is_mes = hqd(0).flags & KFD_GPREEMPT_HQD_MES;
}

static FILE *open_file(unsigned int gpu, const char *name, const char *mode)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), FILES "%u/%s", gpu, name);
	f = fopen(path, mode);
	if (!f)
		mk_die("%s", path);
	return f;
}

uint64_t counter(unsigned int gpu, const char *name)
{
	FILE *f = open_file(gpu, "counters", "re");
	char word[32], value[32];
	uint64_t found = UINT64_MAX;

	while (fscanf(f, "%31s %31s", word, value) == 2) {
		if (!strcmp(word, name))
			found = strtoull(value, NULL, 0);
	}
	fclose(f);
	if (found == UINT64_MAX)
		mk_die("no counter %s", name);
	return found;
}

void process_counters(unsigned int gpu, pid_t pid, uint64_t *ret_maps, uint64_t *ret_unmaps)
{
	FILE *f = open_file(gpu, "processes", "re");
	unsigned long long maps, unmaps;
	char line[256];
	int who;

	*ret_maps = *ret_unmaps = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "pid %d pasid %*s maps %llu unmaps %llu", &who, &maps, &unmaps) ==
			    3 &&
		    who == pid) {
			*ret_maps = maps;
			*ret_unmaps = unmaps;
		}
	}
	fclose(f);
}

static void put(FILE *f, const char *name, const char *value)
{
	bool good = fputs(value, f) >= 0;

	if (fclose(f) || !good)
		mk_die("%s %s", name, value);
}

void set_knob(unsigned int gpu, const char *name, const char *value)
{
	put(open_file(gpu, name, "we"), name, value);
}

void set_parameter(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/amdgpu/parameters/%s", name);
	f = fopen(path, "we");
	if (!f)
		mk_die("%s", path);
	put(f, name, value);
}

uint32_t doorbell_of_only_queue(unsigned int gpu)
{
	FILE *f = open_file(gpu, "queues", "re");
	unsigned int doorbell = 0, n = 0;
	char line[256];

	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%*s pasid %*s doorbell %x", &doorbell) == 1;
	fclose(f);
	expect(n == 1, "%u queues are on the GPU, not one", n);
	return doorbell;
}

/* ---- the books ---- */

/* The driver does not wait until the scheduler has put on what it was told to. */
static void check_gpu(unsigned int gpu)
{
	uint64_t until = now_ms() + SETTLE_MS * slowness;
	struct kfd_gpreempt_hqd h;
	uint64_t mapped;

	do {
		h = hqd(gpu);
		expect(h.active == h.active_sum, "GPU %u: %u queues counted as active, %u are", gpu,
		       h.active, h.active_sum);
		expect(h.active_compute <= h.active && h.active + h.held <= h.queues,
		       "GPU %u: %u compute of %u active, %u held of %u queues", gpu,
		       h.active_compute, h.active, h.held, h.queues);
		if (machine.may_be_off)
			return;
		mapped = counter(gpu, "mapped");
	} while (mapped != h.active && now_ms() < until);
	expect(mapped == h.active, "GPU %u has %llu queues, the driver thinks %u", gpu,
	       (unsigned long long)mapped, h.active);
}

void check_books(void)
{
	for (unsigned int i = 0; i < machine.n_gpus; i++)
		check_gpu(i);
}

void wait_for_no_queues(void)
{
	for (unsigned int i = 0; i < machine.n_gpus; i++) {
		uint64_t until = now_ms() + SETTLE_MS * slowness;

		while (hqd(i).queues && now_ms() < until)
			poll(NULL, 0, 1);
		expect(!hqd(i).queues && !hqd(i).held, "queues outlive their processes");
		expect(!(hqd(i).flags & KFD_GPREEMPT_HQD_STOPPED), "a GPU is left stopped");
	}
}

struct meter meter(unsigned int gpu)
{
	return (struct meter){
		.unmaps = counter(gpu, "unmaps"),
		.runlists = counter(gpu, "runlists"),
		.map_queues = counter(gpu, "map_queues"),
		.removes = counter(gpu, "removes"),
		.adds = counter(gpu, "adds"),
		.active = hqd(gpu).active,
	};
}

struct meter since(struct meter before, unsigned int gpu)
{
	struct meter m = meter(gpu);

	m.unmaps -= before.unmaps;
	m.runlists -= before.runlists;
	m.map_queues -= before.map_queues;
	m.removes -= before.removes;
	m.adds -= before.adds;
	return m;
}

void expect_one_cycle(struct meter before, unsigned int gpu, unsigned int removed,
		      unsigned int added)
{
	struct meter m = since(before, gpu);

	if (machine.is_mes) {
		expect_is("queues removed", (long)m.removes, removed);
		expect_is("queues added", (long)m.adds, added);
	} else {
		/* The driver sends no list that is empty, and takes none off. */
		expect_is("UNMAP_QUEUES", (long)m.unmaps, before.active ? 1 : 0);
		expect_is("RUN_LIST", (long)m.runlists, hqd(gpu).active ? 1 : 0);
	}
}

void expect_no_work(struct meter before, unsigned int gpu)
{
	struct meter m = since(before, gpu);

	expect_is("UNMAP_QUEUES", (long)m.unmaps, 0);
	expect_is("RUN_LIST", (long)m.runlists, 0);
	expect_is("queues removed", (long)m.removes, 0);
	expect_is("queues added", (long)m.adds, 0);
}
