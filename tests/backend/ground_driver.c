/* SPDX-License-Identifier: MIT */
/*
 * The real driver in a virtual machine (tests/vm), with processes that have real queues. What is
 * off the GPU is told by the GPU, which knows the queues that are mapped.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "gpu/kfd/backend.h"
#include "tests/backend/ground.h"
#include "tests/vm/mk.h"

#define SIM "/sys/kernel/debug/kfdsim/0/"
#define QUEUES 2u
#define GROWN_MAX 4u
#define TICKS 60
#define WAVES 8

struct job {
	int pipe[2]; /* a byte: create one more queue; the end: exit */
	uint32_t queues;
};

struct own {
	struct guard *guard;
	struct job jobs[GROUND_JOBS];
};

/* ---- a job ---- */

static void live(int orders, int told)
{
	struct mk_queue queues[QUEUES + GROWN_MAX] = { 0 };
	struct pollfd p = { .fd = orders, .events = POLLIN };
	struct mk_gpu gpu = { 0 };
	unsigned int n = 0;
	char byte;

	mk_gpu_open(&gpu, 0);
	mk_gpu_runtime(&gpu, true);
	while (n < QUEUES)
		mk_queue_create(&queues[n++], &gpu, MK_AQL, 7);
	for (;;) {
		for (unsigned int i = 0; i < n; i++)
			while (mk_pending(&queues[i]) < 4)
				mk_submit(&queues[i], TICKS, WAVES);
		if (told >= 0 && write(told, ".", 1) != 1)
			_exit(1);
		told = -1;
		if (poll(&p, 1, 10) == 0)
			continue;
		if (read(orders, &byte, 1) != 1)
			_exit(0);
		mk_queue_create(&queues[n++], &gpu, MK_AQL, 7);
	}
}

static pid_t start(struct job *j)
{
	int told[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(j->pipe, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(j->pipe[1]);
		live(j->pipe[0], told[1]);
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1); /* it has work */
	close(told[0]);
	j->queues = QUEUES;
	return pid;
}

static void end(struct ground *g, enum ground_job job)
{
	kill(g->pid[job], SIGKILL);
	waitpid(g->pid[job], NULL, 0);
	((struct own *)g->own)->jobs[job].queues = 0;
}

static void grow(struct ground *g, enum ground_job job)
{
	struct job *j = &((struct own *)g->own)->jobs[job];

	assert_int_equal(write(j->pipe[1], "+", 1), 1);
	j->queues++;
}

/* ---- what the GPU knows ---- */

/* Of the process: its number there, and how often queues of it were taken off. */
static bool find(pid_t pid, unsigned int *ret_pasid, unsigned long long *ret_unmaps)
{
	_cleanup_fclose_ FILE *f = fopen(SIM "processes", "re");
	unsigned long long maps;
	char line[256];
	int found;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "pid %d pasid %x maps %llu unmaps %llu", &found, ret_pasid, &maps,
			   ret_unmaps) == 4 &&
		    found == pid)
			return true;
	return false;
}

static uint32_t off(struct ground *g, enum ground_job job)
{
	_cleanup_fclose_ FILE *f = fopen(SIM "queues", "re");
	uint32_t mapped = 0, all = ((struct own *)g->own)->jobs[job].queues;
	unsigned int pasid, its;
	unsigned long long unmaps;
	char line[256];

	assert_non_null(f);
	if (all == 0 || !find(g->pid[job], &pasid, &unmaps))
		return 0;
	while (fgets(line, sizeof(line), f))
		mapped += sscanf(line, "%*s pasid %x", &its) == 1 && its == pasid;
	return mapped < all ? all - mapped : 0;
}

static uint64_t calls(struct ground *g)
{
	unsigned long long unmaps = 0;
	unsigned int pasid;

	assert_true(find(g->pid[GROUND_A], &pasid, &unmaps));
	return unmaps;
}

static void pass(struct ground *g, uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(ns % NSEC_PER_SEC) };
	struct pollfd nothing = { .fd = -1 };

	ppoll(&nothing, 1, &t, NULL);
}

/* ---- the ground ---- */

static void open_on(struct ground *g, enum gkfd_ext_use ext)
{
	struct own *own = calloc(1, sizeof(*own));
	struct gkfd_backend_options options = { .ext = ext,
						.by_readers = true,
						.by_holders = true };
	struct gpu_why why = { 0 };
	struct gpu_node node;
	struct gkfd *k;

	assert_non_null(own);
	g->own = own;
	for (int i = 0; i < GROUND_JOBS; i++)
		g->pid[i] = start(&own->jobs[i]);
	assert_int_equal(guard_start(&own->guard), 0);
	options.guard = own->guard;
	options.why = &why;
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(NULL), &k), 0);
	if (gkfd_backend_open(k, &options, &g->b) < 0)
		fail_msg("%s", why.message);
	assert_true(g->b->ops->nodes(g->b, &node, 1) > 0);
	g->gpu = node.gpu;
}

static void open_k2(struct ground *g)
{
	open_on(g, GKFD_EXT_NEVER);
}

static void open_k3(struct ground *g)
{
	open_on(g, GKFD_EXT_ONLY);
}

static void close_ground(struct ground *g)
{
	struct own *own = g->own;

	guard_stop(own->guard);
	for (int i = 0; i < GROUND_JOBS; i++) {
		if (own->jobs[i].queues)
			end(g, i);
		close(own->jobs[i].pipe[0]);
		close(own->jobs[i].pipe[1]);
	}
	free(own);
}

#define COMMON \
	.queues = { QUEUES, QUEUES }, .grows = 1, .long_ns = 1500 * NSEC_PER_MSEC, \
	.real_time = true, .close = close_ground, .pass = pass, .off = off, .calls = calls, \
	.grow = grow, .end = end

static const struct ground_ops ground_k2 = { COMMON, .name = "K2", .open = open_k2 };
static const struct ground_ops ground_k3 = {
	COMMON, .name = "K3", .open = open_k3, .shared = true, /* it traces nobody */
};

const struct ground_ops *const grounds[] = { &ground_k2, &ground_k3, NULL };
