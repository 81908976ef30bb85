/* SPDX-License-Identifier: MIT */
/*
 * A target: a few queues with work that can be checked. It makes and destroys queues, has children,
 * becomes another program, has its queues evicted and holds some of them itself. What it submitted
 * is done once and in order, whatever others do. Where GPUs die it may be lost, and a call that
 * fails is its end, as it would be a job's.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/kfd_memory.h"
#include "tests/ext/stress.h"
#include "tests/vm/mk.h"

#define DEPTH 3
#define WAIT_MS 4
#define LONGEST_HOLD_MS 30

struct target {
	struct world *w;
	int memory;
	unsigned int slot, seed;
	struct mk_gpu gpu;
	struct mk_queue qs[STRESS_QUEUES];
	bool exists[STRESS_QUEUES], made[STRESS_QUEUES];
};

static bool drain(struct target *t, const struct mk_queue *q)
{
	uint64_t left = mk_pending(q), since = stress_now_ms();

	while (left && stress_now_ms() - since < atomic_load(&t->w->drain_ms)) {
		mk_wait(&t->gpu, WAIT_MS);
		if (mk_pending(q) != left)
			since = stress_now_ms();
		left = mk_pending(q);
	}
	return !left;
}

/* The last packet has written its word before the queue says that it is behind it. */
static bool becomes_right(struct target *t, const struct mk_queue *q)
{
	uint64_t since = stress_now_ms();

	while (!mk_is_right(q) && stress_now_ms() - since < atomic_load(&t->w->drain_ms))
		mk_wait(&t->gpu, WAIT_MS);
	return mk_is_right(q);
}

static void judge(struct target *t, const struct mk_queue *q)
{
	if (t->w->lossy)
		return;
	if (!drain(t, q))
		stress_broken(t->w, "target %u: queue %u stands still, %llu packets left", t->slot,
			      q->id, (unsigned long long)mk_pending(q));
	else if (!becomes_right(t, q))
		stress_broken(t->w, "target %u: queue %u (kind %d): word %#llx for %#llx, read "
			      "%llu of %llu", t->slot, q->id, q->kind, (unsigned long long)*q->word,
			      (unsigned long long)q->expected, (unsigned long long)*q->read,
			      (unsigned long long)q->written);
	atomic_fetch_add(&t->w->packets, q->submitted - mk_pending(q));
}

static void create(struct target *t, unsigned int i)
{
	static const enum mk_kind kinds[STRESS_QUEUES] = { MK_AQL, MK_AQL, MK_SDMA, MK_PM4 };

	if (t->made[i])
		mk_queue_again(&t->qs[i]);
	else
		mk_queue_create(&t->qs[i], &t->gpu, kinds[i], 7);
	t->exists[i] = t->made[i] = true;
	atomic_fetch_add(&t->w->queues, 1);
}

/* Empty, or in the middle of its work, which its memory then is not free of. */
static void destroy(struct target *t, unsigned int i)
{
	t->made[i] = !t->w->lossy && stress_below(&t->seed, 2);
	if (t->made[i])
		judge(t, &t->qs[i]);
	mk_queue_destroy(&t->qs[i]);
	t->exists[i] = false;
}

static void create_or_destroy(struct target *t)
{
	unsigned int i = stress_below(&t->seed, STRESS_QUEUES);

	if (t->exists[i])
		destroy(t, i);
	else
		create(t, i);
}

/* With copies of our descriptors, for a moment. */
static void have_child(struct target *t)
{
	unsigned int what = stress_below(&t->seed, 3);
	pid_t pid = fork();

	if (pid < 0)
		mk_die("fork");
	if (!pid) {
		if (what == 0)
			execl("/bin/true", "true", (char *)NULL);
		if (what == 1)
			poll(NULL, 0, WAIT_MS);
		_exit(0);
	}
	atomic_fetch_add(&t->w->forks, 1);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/* The same process, another address space: for the driver it has ended. Not every time. */
static void become_another(struct target *t)
{
	char memory[16], slot[16], seed[16];

	if (!stress_enter(t->w, t->slot, DOOR_END))
		return;
	snprintf(memory, sizeof(memory), "%d", t->memory);
	snprintf(slot, sizeof(slot), "%u", t->slot);
	snprintf(seed, sizeof(seed), "%u", t->seed);
	atomic_fetch_add(&t->w->execs, 1);
	atomic_store(&t->w->targets[t->slot].pid, 0);
	execl("/proc/self/exe", "extstress", "--target", memory, slot, seed, (char *)NULL);
	mk_die("exec");
}

/* As before a checkpoint: all its queues are evicted and put back. */
static void get_evicted(struct target *t)
{
	struct kfd_ioctl_criu_args a = { .op = KFD_CRIU_OP_PROCESS_INFO };

	if (ioctl(t->gpu.kfd, AMDKFD_IOC_CRIU_OP, &a))
		mk_die("PROCESS_INFO");
	poll(NULL, 0, (int)stress_below(&t->seed, WAIT_MS));
	a = (struct kfd_ioctl_criu_args){ .op = KFD_CRIU_OP_UNPAUSE };
	if (ioctl(t->gpu.kfd, AMDKFD_IOC_CRIU_OP, &a))
		mk_die("UNPAUSE");
	atomic_fetch_add(&t->w->evictions, 1);
}

static void hold_own(struct target *t)
{
	struct kfd_gpreempt_one one = {
		.queue_id = stress_below(&t->seed, 3) ? stress_below(&t->seed, STRESS_QUEUES) :
							 KFD_GPREEMPT_ALL_QUEUES,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = 1 + stress_below(&t->seed, LONGEST_HOLD_MS),
	};
	unsigned long call = stress_below(&t->seed, 2) ? KFD_GPREEMPT_PREEMPT_QUEUE :
							  KFD_GPREEMPT_RESUME_QUEUE;

	if (ioctl(t->gpu.kfd, call, &one) && errno != ENOENT && errno != EALREADY &&
	    !stress_is_loss(t->w, errno))
		stress_broken(t->w, "target %u: holding its own: %s", t->slot,
			      strerrorname_np(errno));
	atomic_fetch_add(&t->w->own_holds, 1);
}

static void feed(struct target *t)
{
	for (unsigned int i = 0; i < STRESS_QUEUES; i++) {
		while (t->exists[i] && mk_pending(&t->qs[i]) < DEPTH)
			mk_submit(&t->qs[i], 1 + stress_below(&t->seed, 8), 4);
	}
}

static void do_something(struct target *t)
{
	switch (stress_below(&t->seed, 64)) {
	case 0 ... 5:
		create_or_destroy(t);
		break;
	case 6 ... 7:
		have_child(t);
		break;
	case 8:
		if (!t->w->lossy)
			get_evicted(t);
		break;
	case 9 ... 11:
		if (!atomic_load(&t->w->calm))
			hold_own(t);
		break;
	case 12:
		if (!stress_below(&t->seed, 4))
			become_another(t);
		break;
	default:
		break;
	}
}

/*
 * Linux 6.12 names a directory after the pid, and where the old program's is still there makes none
 * and forgets that it has none (kfd_create_process()): the new one's end is a use after free.
 */
static void await_old_end(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", getpid());
	while (!access(path, F_OK))
		poll(NULL, 0, 1);
}

_Noreturn void stress_target(struct world *w, int memory, unsigned int slot, unsigned int seed)
{
	struct target t = { .w = w, .memory = memory, .slot = slot, .seed = seed };

	await_old_end();
	mk_gpu_open(&t.gpu, slot % w->n_gpus);
	mk_gpu_runtime(&t.gpu, true);
	create(&t, 0);
	atomic_store(&w->targets[slot].kfd, t.gpu.kfd);
	atomic_store(&w->targets[slot].pid, getpid());
	atomic_store(&w->targets[slot].door, DOOR_OPEN);
	while (!atomic_load(&w->stop)) {
		feed(&t);
		mk_wait(&t.gpu, WAIT_MS);
		do_something(&t);
	}
	feed(&t);
	for (unsigned int i = 0; i < STRESS_QUEUES; i++) {
		if (!t.exists[i])
			continue;
		judge(&t, &t.qs[i]);
		mk_queue_destroy(&t.qs[i]);
	}
	atomic_fetch_add(&w->right, 1);
	exit(0);
}
