/* SPDX-License-Identifier: MIT */
/* Processes with queues. What is static here is each process's own. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abi/kfd_memory.h"
#include "tests/ext/ext.h"

#define TICKS 5 /* of a packet: half a millisecond */
#define WAVES 2
#define FEW 8
#define STAND_MS 12
#define RUN_MS 4000
#define DONE_MS 8000

static struct {
	struct mk_gpu gpus[MAX_GPUS];
	bool is_open[MAX_GPUS];
	struct mk_queue queues[MAX_JOB_QUEUES];
	bool is_gone[MAX_JOB_QUEUES];
	unsigned int n;
} self;

struct add_args {
	unsigned int n, gpu;
	enum mk_kind kind;
	bool runtime;
};

struct queue_args {
	unsigned int i, packets;
	uint32_t value;
	uint32_t id;
	uint64_t left[MAX_JOB_QUEUES];
	unsigned int n;
	bool right;
};

struct call_args {
	unsigned long request;
	void *arg;
};

/* ---- there ---- */

static void open_gpu(unsigned int gpu)
{
	unsigned int first = 0;

	if (self.is_open[gpu])
		return;
	while (first < MAX_GPUS && !self.is_open[first])
		first++;
	if (first == MAX_GPUS)
		mk_gpu_open(&self.gpus[gpu], gpu);
	else
		mk_gpu_also(&self.gpus[gpu], &self.gpus[first], gpu);
	self.is_open[gpu] = true;
}

static int do_add(void *arg)
{
	struct add_args *a = arg;

	open_gpu(a->gpu);
	if (a->runtime)
		mk_gpu_runtime(&self.gpus[a->gpu], true);
	for (unsigned int i = 0; i < a->n; i++)
		mk_queue_create(&self.queues[self.n++], &self.gpus[a->gpu], a->kind, 7);
	return 0;
}

static int do_id(void *arg)
{
	struct queue_args *a = arg;

	a->id = self.queues[a->i].id;
	return 0;
}

static int do_destroy(void *arg)
{
	struct queue_args *a = arg;

	self.is_gone[a->i] = true;
	mk_queue_destroy(&self.queues[a->i]);
	return 0;
}

static int do_give(void *arg)
{
	struct queue_args *a = arg;

	for (unsigned int k = 0; k < a->packets; k++)
		mk_submit(&self.queues[a->i], TICKS, WAVES);
	return 0;
}

static int do_give_all(void *arg)
{
	struct queue_args *a = arg;

	for (unsigned int k = 0; k < a->packets; k++) {
		for (unsigned int i = 0; i < self.n; i++) {
			if (!self.is_gone[i])
				mk_submit(&self.queues[i], TICKS, WAVES);
		}
	}
	return 0;
}

static int do_look(void *arg)
{
	struct queue_args *a = arg;

	a->n = self.n;
	a->right = true;
	for (unsigned int i = 0; i < self.n; i++) {
		const struct mk_queue *q = &self.queues[i];

		a->left[i] = self.is_gone[i] ? 0 : mk_pending(q);
		if (!self.is_gone[i] && !a->left[i])
			a->right &= mk_is_right(q);
	}
	return 0;
}

static int do_call(void *arg)
{
	struct call_args *a = arg;
	unsigned int gpu = 0;
	int r;

	while (!self.is_open[gpu])
		gpu++;
	r = ioctl(self.gpus[gpu].kfd, a->request, a->arg);
	return r < 0 ? -errno : r;
}

static int do_fd(void *arg)
{
	(void)arg;
	return self.gpus[0].kfd;
}

static int do_percent(void *arg)
{
	struct queue_args *a = arg;
	const struct mk_queue *q = &self.queues[a->i];
	struct kfd_ioctl_update_queue_args u = {
		.ring_base_address = (uintptr_t)q->ring,
		.queue_id = q->id,
		.ring_size = MK_SLOTS * 64,
		.queue_percentage = a->value,
		.queue_priority = 7,
	};

	return ioctl(q->gpu->kfd, AMDKFD_IOC_UPDATE_QUEUE, &u) ? -errno : 0;
}

static int do_cu_mask(void *arg)
{
	struct queue_args *a = arg;
	const struct mk_queue *q = &self.queues[a->i];
	struct kfd_ioctl_set_cu_mask_args m = {
		.queue_id = q->id,
		.num_cu_mask = 32,
		.cu_mask_ptr = (uintptr_t)&a->value,
	};

	return ioctl(q->gpu->kfd, AMDKFD_IOC_SET_CU_MASK, &m) ? -errno : 0;
}

/* ---- here ---- */

static struct actor *new_job(uid_t uid, unsigned int n, bool runtime)
{
	struct actor *a = actor(uid);
	struct add_args *args = shared(sizeof(*args));

	*args = (struct add_args){ .n = n, .kind = MK_AQL, .runtime = runtime };
	in(a, do_add, args);
	return a;
}

struct actor *job(unsigned int n)
{
	return new_job(0, n, false);
}

struct actor *job_of(uid_t uid, unsigned int n)
{
	return new_job(uid, n, false);
}

struct actor *job_with_runtime(unsigned int n)
{
	return new_job(0, n, true);
}

void add_queues(struct actor *a, unsigned int n, enum mk_kind kind, unsigned int gpu)
{
	struct add_args *args = shared(sizeof(*args));

	*args = (struct add_args){ .n = n, .kind = kind, .gpu = gpu };
	in(a, do_add, args);
}

static struct queue_args *queue_args(unsigned int i)
{
	struct queue_args *args = shared(sizeof(*args));

	args->i = i;
	return args;
}

uint32_t queue_id(struct actor *a, unsigned int i)
{
	struct queue_args *args = queue_args(i);

	in(a, do_id, args);
	return args->id;
}

void destroy_queue(struct actor *a, unsigned int i)
{
	in(a, do_destroy, queue_args(i));
}

void give(struct actor *a, unsigned int packets)
{
	struct queue_args *args = queue_args(0);

	args->packets = packets;
	in(a, do_give_all, args);
}

void give_one(struct actor *a, unsigned int i, unsigned int packets)
{
	struct queue_args *args = queue_args(i);

	args->packets = packets;
	in(a, do_give, args);
}

static void look(struct actor *a, struct queue_args *args)
{
	begin_in(a, do_look, args);
	end_in(a);
}

static uint64_t sum(const struct queue_args *args)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < args->n; i++)
		n += args->left[i];
	return n;
}

uint64_t left(struct actor *a)
{
	struct queue_args *args = queue_args(0);

	look(a, args);
	return sum(args);
}

uint64_t left_of(struct actor *a, unsigned int i)
{
	struct queue_args *args = queue_args(0);

	look(a, args);
	return args->left[i];
}

int kfd_call(struct actor *a, unsigned long request, void *arg)
{
	struct call_args *args = shared(sizeof(*args));

	*args = (struct call_args){ request, arg };
	return in(a, do_call, args);
}

int kfd_of(struct actor *a)
{
	return in(a, do_fd, NULL);
}

int set_percent(struct actor *a, unsigned int i, uint32_t percent)
{
	struct queue_args *args = queue_args(i);

	args->value = percent;
	return in(a, do_percent, args);
}

int set_cu_mask(struct actor *a, unsigned int i, uint32_t mask)
{
	struct queue_args *args = queue_args(i);

	args->value = mask;
	return in(a, do_cu_mask, args);
}

int criu(struct actor *a, uint32_t op)
{
	struct kfd_ioctl_criu_args *args = shared(sizeof(*args));

	args->op = op;
	return kfd_call(a, AMDKFD_IOC_CRIU_OP, args);
}

static uint64_t amount(const struct queue_args *args, int i)
{
	return i < 0 ? sum(args) : args->left[i];
}

/* There must be something to be seen done, or not. */
static uint64_t look_at_work(struct actor *a, int i, struct queue_args *args)
{
	look(a, args);
	if (amount(args, i))
		return amount(args, i);
	if (i < 0)
		give(a, FEW);
	else
		give_one(a, (unsigned int)i, FEW);
	look(a, args);
	return amount(args, i);
}

/* Of one queue, or with -1 of all. */
static void stands(struct actor *a, int i)
{
	struct queue_args *args = queue_args(0);
	uint64_t before = look_at_work(a, i, args);

	let_pass(STAND_MS * slowness);
	look(a, args);
	expect(before && amount(args, i) == before,
	       "what is to stand still has done %llu of %llu packets",
	       (unsigned long long)(before - amount(args, i)), (unsigned long long)before);
}

static void runs(struct actor *a, int i)
{
	struct queue_args *args = queue_args(0);
	uint64_t until = now_ms() + RUN_MS * slowness, before = look_at_work(a, i, args);

	while (before && amount(args, i) == before) {
		expect(now_ms() < until, "what is to run does not, %llu packets are left",
		       (unsigned long long)before);
		let_pass(1);
		look(a, args);
	}
}

void expect_stands(struct actor *a)
{
	stands(a, -1);
}

void expect_queue_stands(struct actor *a, unsigned int i)
{
	stands(a, (int)i);
}

void expect_runs(struct actor *a)
{
	runs(a, -1);
}

void expect_queue_runs(struct actor *a, unsigned int i)
{
	runs(a, (int)i);
}

void expect_all_done(struct actor *a)
{
	struct queue_args *args = queue_args(0);
	uint64_t until = now_ms() + DONE_MS * slowness;

	do {
		look(a, args);
		if (sum(args))
			let_pass(1);
	} while (sum(args) && now_ms() < until);
	expect(!sum(args), "%llu packets are left that nobody does", (unsigned long long)sum(args));
	expect(args->right, "packets were not done once and in order");
}
