/* SPDX-License-Identifier: MIT */
/*
 * usage: extfigures mixed|compute|nodes|cost
 *
 * What taking jobs off costs through the extension and through the driver's debug interface, side
 * by side, as one line of JSON. Counted by the software GPU, or measured in this very guest.
 *
 *     mixed    ten jobs with two compute and eight copy queues each, and an online job: how many
 *              packets the scheduler gets, and how many queues of the online job are unmapped
 *     compute  the same with ten compute queues: more than fit, so the run list goes round
 *     nodes    one job on each GPU: how long until all are off, and until the first is
 *     cost     time in the calls but for the waiting for the hardware; one queue, ten of one
 *              process, and one of each of ten
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/kfd.h"
#include "abi/kfd_gpreempt.h"
#include "bench/stopwatch.h"
#include "tests/vm/mk.h"

#define JOBS 10u
#define JOB_QUEUES 10u
#define MAX_JOBS 16u
#define ROUNDS 101u
#define NODE_ROUNDS 25u
#define LONG_TICKS 10000000u
#define RING_BYTES 4096u
#define SETTLE_MS 20
#define COUNTERS "/sys/kernel/debug/kfdsim/0/counters"
#define PROCESSES "/sys/kernel/debug/kfdsim/0/processes"

struct job {
	pid_t pid;
	uint32_t ids[JOB_QUEUES];
	uint32_t n;
};

static struct job jobs[MAX_JOBS], online;
static int kfd, device;

/* ---- jobs ---- */

static void create_copy_queue(struct mk_gpu *gpu)
{
	uint64_t *pointers = mk_alloc(gpu, RING_BYTES, NULL);
	struct kfd_ioctl_create_queue_args c = {
		.ring_base_address = (uintptr_t)mk_alloc(gpu, RING_BYTES, NULL),
		.write_pointer_address = (uintptr_t)pointers,
		.read_pointer_address = (uintptr_t)(pointers + 8),
		.ring_size = RING_BYTES,
		.gpu_id = gpu->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = 7,
	};

	if (ioctl(gpu->kfd, AMDKFD_IOC_CREATE_QUEUE, &c))
		mk_die("CREATE_QUEUE for copies");
}

/* Busy for as long as it lives. */
_Noreturn static void live(unsigned int gpu_index, unsigned int compute, unsigned int copy,
			   int ready)
{
	struct mk_queue qs[JOB_QUEUES];
	struct mk_gpu gpu;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mk_gpu_open(&gpu, gpu_index);
	mk_gpu_runtime(&gpu, true);
	for (unsigned int i = 0; i < compute; i++) {
		mk_queue_create(&qs[i], &gpu, MK_AQL, 7);
		mk_submit(&qs[i], LONG_TICKS, 4);
	}
	for (unsigned int i = 0; i < copy; i++)
		create_copy_queue(&gpu);
	if (write(ready, "", 1) != 1)
		mk_die("pipe");
	for (;;)
		pause();
}

static void start_job(struct job *j, unsigned int gpu, unsigned int compute, unsigned int copy)
{
	int fds[2];
	char c;

	if (pipe2(fds, O_CLOEXEC))
		mk_die("pipe");
	j->pid = fork();
	if (j->pid < 0)
		mk_die("fork");
	if (!j->pid)
		live(gpu, compute, copy, fds[1]);
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		mk_die("no job");
	close(fds[0]);
}

static void end_jobs(void)
{
	for (unsigned int i = 0; i < MAX_JOBS; i++) {
		if (jobs[i].pid)
			kill(jobs[i].pid, SIGKILL);
	}
	if (online.pid)
		kill(online.pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		continue;
}

/* ---- the driver's own way ---- */

static int trap(pid_t pid, uint32_t op, struct kfd_ioctl_dbg_trap_args *a)
{
	a->pid = (uint32_t)pid;
	a->op = op;
	return ioctl(kfd, AMDKFD_IOC_DBG_TRAP, a);
}

/* A session, and the queues acknowledged, without which none is suspended. */
static void debug(struct job *j)
{
	struct kfd_queue_snapshot_entry qs[JOB_QUEUES];
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args a = {
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int fds[2];

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) || ptrace(PTRACE_SEIZE, j->pid, NULL, NULL))
		mk_die("seize");
	a.enable.dbg_fd = (uint32_t)fds[1];
	if (trap(j->pid, KFD_IOC_DBG_TRAP_ENABLE, &a))
		mk_die("ENABLE");
	a = (struct kfd_ioctl_dbg_trap_args){
		.queue_snapshot = {
			.exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
			.snapshot_buf_ptr = (uintptr_t)qs,
			.num_queues = JOB_QUEUES,
			.entry_size = sizeof(qs[0]),
		},
	};
	if (trap(j->pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &a))
		mk_die("GET_QUEUE_SNAPSHOT");
	j->n = a.queue_snapshot.num_queues;
	for (uint32_t i = 0; i < j->n; i++)
		j->ids[i] = qs[i].queue_id;
}

static void suspend(const struct job *j)
{
	uint32_t ids[JOB_QUEUES];
	struct kfd_ioctl_dbg_trap_args a = {
		.suspend_queues = {
			.queue_array_ptr = (uintptr_t)ids,
			.num_queues = j->n,
			.grace_period = 1,
		},
	};

	memcpy(ids, j->ids, sizeof(ids));
	if (trap(j->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &a) != (int)j->n)
		mk_die("SUSPEND_QUEUES");
}

static void resume(const struct job *j)
{
	uint32_t ids[JOB_QUEUES];
	struct kfd_ioctl_dbg_trap_args a = {
		.resume_queues = { .queue_array_ptr = (uintptr_t)ids, .num_queues = j->n },
	};

	memcpy(ids, j->ids, sizeof(ids));
	if (trap(j->pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES, &a) != (int)j->n)
		mk_die("RESUME_QUEUES");
}

/* ---- ours ---- */

static void batch(unsigned long request, unsigned int first, unsigned int n, uint32_t flags)
{
	bool unmap = request == KFD_GPREEMPT_BATCH_UNMAP_QUEUES;
	struct kfd_gpreempt_entry es[MAX_JOBS];
	struct kfd_gpreempt_batch b = {
		.entries = (uintptr_t)es,
		.n_unmap = unmap ? n : 0,
		.n_map = unmap ? 0 : n,
		.flags = flags,
		.grace = 1,
	};
	int r;

	memset(es, 0, sizeof(es));
	for (unsigned int i = 0; i < n; i++) {
		es[i].pid = (uint32_t)jobs[first + i].pid;
		es[i].queue_id = KFD_GPREEMPT_ALL_QUEUES;
		es[i].gpu_id = KFD_GPREEMPT_ANY_GPU;
	}
	r = ioctl(device, request, &b);
	if (r != (int)n)
		mk_die("a batch did %d of %u", r, n);
}

static void unmap(unsigned int first, unsigned int n, uint32_t flags)
{
	batch(KFD_GPREEMPT_BATCH_UNMAP_QUEUES, first, n, flags);
}

static void remap(unsigned int first, unsigned int n)
{
	batch(KFD_GPREEMPT_FAST_REMAP, first, n, 0);
}

/* ---- what the software GPU says ---- */

static uint64_t counter(const char *wanted)
{
	unsigned long long value;
	char name[64];
	FILE *f = fopen(COUNTERS, "re");

	if (!f)
		mk_die(COUNTERS);
	while (fscanf(f, "%63s %lli", name, (long long *)&value) == 2) {
		if (!strcmp(name, wanted)) {
			fclose(f);
			return value;
		}
	}
	mk_die("no counter '%s'", wanted);
}

static uint64_t online_unmaps(void)
{
	unsigned long long unmaps, found = 0;
	char line[256];
	int pid;
	FILE *f = fopen(PROCESSES, "re");

	if (!f)
		mk_die(PROCESSES);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "pid %d pasid %*s maps %*u unmaps %llu", &pid, &unmaps) == 2 &&
		    pid == online.pid)
			found = unmaps;
	}
	fclose(f);
	return found;
}

struct count {
	uint64_t unmaps, runlists, queries, online;
};

/* A run list is not waited for by who sends it. */
static void settle(void)
{
	uint64_t before, now = counter("runlists");

	do {
		before = now;
		poll(NULL, 0, SETTLE_MS);
		now = counter("runlists");
	} while (now != before);
}

static struct count count_now(void)
{
	settle();
	return (struct count){ counter("unmaps"), counter("runlists"), counter("queries"),
			       online_unmaps() };
}

static void print_count(const char *name, struct count before)
{
	struct count now = count_now();

	printf("\"%s\": {\"unmaps\": %llu, \"runlists\": %llu, \"fences\": %llu, "
	       "\"online_unmapped\": %llu}, ",
	       name, (unsigned long long)(now.unmaps - before.unmaps),
	       (unsigned long long)(now.runlists - before.runlists),
	       (unsigned long long)(now.queries - before.queries),
	       (unsigned long long)(now.online - before.online));
}

static bool is_oversubscribed(const struct mk_gpu *gpu)
{
	struct kfd_gpreempt_hqd hqd = { .gpu_id = gpu->gpu_id };

	if (ioctl(device, KFD_GPREEMPT_GET_HQD_STATUS, &hqd))
		mk_die("GET_HQD_STATUS");
	return hqd.flags & KFD_GPREEMPT_HQD_OVERSUBSCRIBED;
}

/* ---- figures ---- */

static void counts(struct mk_gpu *gpu, unsigned int compute, unsigned int copy)
{
	struct count before;

	start_job(&online, 0, 2, 0);
	for (unsigned int i = 0; i < JOBS; i++)
		start_job(&jobs[i], 0, compute, copy);
	printf("{\"jobs\": %u, \"queues\": %u, \"online_queues\": 2, \"oversubscribed\": %d, ",
	       JOBS, JOBS * JOB_QUEUES, is_oversubscribed(gpu));
	before = count_now();
	unmap(0, JOBS, 0);
	print_count("all_queues", before);
	remap(0, JOBS);
	before = count_now();
	unmap(0, JOBS, KFD_GPREEMPT_VICTIMS_ONLY);
	print_count("victims_only", before);
	remap(0, JOBS);
	for (unsigned int i = 0; i < JOBS; i++)
		debug(&jobs[i]);
	before = count_now();
	for (unsigned int i = 0; i < JOBS; i++)
		suspend(&jobs[i]);
	print_count("stock", before);
	for (unsigned int i = 0; i < JOBS; i++)
		resume(&jobs[i]);
	printf("\"bad\": %llu}\n", (unsigned long long)counter("bad"));
}

static uint64_t time_batch(unsigned int n)
{
	uint64_t began = stopwatch_ns(), took;

	unmap(0, n, 0);
	took = stopwatch_ns() - began;
	remap(0, n);
	return took;
}

static uint64_t time_stock(unsigned int n)
{
	uint64_t began = stopwatch_ns(), took;

	for (unsigned int i = 0; i < n; i++)
		suspend(&jobs[i]);
	took = stopwatch_ns() - began;
	for (unsigned int i = 0; i < n; i++)
		resume(&jobs[i]);
	return took;
}

static void keep_lowest(uint64_t *lowest, uint64_t ns)
{
	if (ns < *lowest)
		*lowest = ns;
}

/* Eight calls share two processors here, and these with the whole machine: noise only ever adds. */
static void nodes(void)
{
	uint64_t one = UINT64_MAX, all = UINT64_MAX, stock = UINT64_MAX;
	unsigned int n = 0;
	char path[64];

	do {
		start_job(&jobs[n], n, 1, 0);
		n++;
		snprintf(path, sizeof(path), "/sys/kernel/debug/kfdsim/%u", n);
	} while (!access(path, F_OK));
	for (unsigned int i = 0; i < n; i++)
		debug(&jobs[i]);
	for (unsigned int i = 0; i < NODE_ROUNDS; i++) {
		keep_lowest(&one, time_batch(1));
		keep_lowest(&all, time_batch(n));
		keep_lowest(&stock, time_stock(n));
	}
	printf("{\"nodes\": %u, \"rounds\": %u, \"one_ns\": %llu, \"all_ns\": %llu, "
	       "\"stock_ns\": %llu}\n",
	       n, NODE_ROUNDS, (unsigned long long)one, (unsigned long long)all,
	       (unsigned long long)stock);
}

/* The median of what @time says, but for the fences. */
static uint64_t cost_of(uint64_t (*time)(unsigned int first, unsigned int n), unsigned int first,
			unsigned int n)
{
	static uint64_t outside[ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++)
		outside[i] = time(first, n);
	return median_ns(outside, ROUNDS);
}

static uint64_t outside_ours(unsigned int first, unsigned int n)
{
	uint64_t fence = counter("fence_ns"), began = stopwatch_ns(), took;

	unmap(first, n, 0);
	took = stopwatch_ns() - began;
	fence = counter("fence_ns") - fence;
	remap(first, n);
	return took > fence ? took - fence : 0;
}

static uint64_t outside_stock(unsigned int first, unsigned int n)
{
	uint64_t fence = counter("fence_ns"), began = stopwatch_ns(), took;

	for (unsigned int i = first; i < first + n; i++)
		suspend(&jobs[i]);
	took = stopwatch_ns() - began;
	fence = counter("fence_ns") - fence;
	for (unsigned int i = first; i < first + n; i++)
		resume(&jobs[i]);
	return took > fence ? took - fence : 0;
}

static void print_cost(const char *name, unsigned int first, unsigned int n)
{
	printf("\"%s_ns\": %llu, \"stock_%s_ns\": %llu, ", name,
	       (unsigned long long)cost_of(outside_ours, first, n), name,
	       (unsigned long long)cost_of(outside_stock, first, n));
}

/* The first has ten queues, all others one. */
static void cost(void)
{
	for (unsigned int i = 0; i < 1 + JOBS; i++) {
		start_job(&jobs[i], 0, i ? 1 : JOB_QUEUES, 0);
		debug(&jobs[i]);
	}
	printf("{\"rounds\": %u, ", ROUNDS);
	print_cost("one_queue", 1, 1);
	print_cost("ten_queues", 0, 1);
	print_cost("ten_processes", 1, JOBS);
	printf("\"bad\": %llu}\n", (unsigned long long)counter("bad"));
}

int main(int argc, char **argv)
{
	struct mk_gpu gpu;

	mk_gpu_open(&gpu, 0);
	kfd = gpu.kfd;
	device = open("/dev/" KFD_GPREEMPT_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		mk_die("the extension");
	if (argc == 2 && !strcmp(argv[1], "mixed"))
		counts(&gpu, 2, JOB_QUEUES - 2);
	else if (argc == 2 && !strcmp(argv[1], "compute"))
		counts(&gpu, JOB_QUEUES, 0);
	else if (argc == 2 && !strcmp(argv[1], "nodes"))
		nodes();
	else if (argc == 2 && !strcmp(argv[1], "cost"))
		cost();
	else
		mk_die("usage: extfigures mixed|compute|nodes|cost");
	fflush(stdout);
	end_jobs();
	return 0;
}
