/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/backend/ground.h"
#include "tests/kfd/counts.h"

#define PATIENCE_MS 20000
#define STEP_NS NSEC_PER_MSEC

extern const struct ground_ops *ground_chosen;

static void *tell_id(void *ret)
{
	*(pid_t *)ret = gettid();
	return NULL;
}

/*
 * A sanitizer begins a thread of its own with the first of ours, which is still listed for a moment
 * when it has been joined.
 */
static void begin_threads(void)
{
	pthread_t thread;
	pid_t id = 0;

	assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	while (tgkill(getpid(), id, 0) == 0)
		sched_yield();
}

int ground_setup(void **state)
{
	struct ground *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->ops = ground_chosen;
	begin_threads();
	g->fds = count_fds();
	g->threads = count_threads();
	g->ops->open(g);
	*state = g;
	return 0;
}

void ground_close_backend(struct ground *g)
{
	if (g->b)
		g->b->ops->close(g->b);
	g->b = NULL;
}

int ground_teardown(void **state)
{
	_cleanup_free_ struct ground *g = *state;

	if (g->ops->unblock)
		g->ops->unblock(g); /* a case that failed has left whoever waits there */
	ground_close_backend(g);
	g->ops->close(g);
	assert_int_equal(count_threads(), g->threads);
	assert_int_equal(count_fds(), g->fds);
	return 0;
}

const struct gpu_ops *ground_ops(const struct ground *g)
{
	return g->b->ops;
}

static void submit(struct ground *g)
{
	if (g->b->ops->submit)
		g->b->ops->submit(g->b);
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* What others do in their threads and processes takes time of both clocks. */
static bool wait_a_little(struct ground *g, uint64_t began_ns)
{
	struct pollfd nothing = { .fd = -1 };

	g->ops->pass(g, STEP_NS);
	poll(&nothing, 1, 1);
	return real_ns() - began_ns < PATIENCE_MS * NSEC_PER_MSEC;
}

/* Readable may also mean that there is something else than a gpu_done. */
struct gpu_done ground_next(struct ground *g)
{
	struct pollfd p = { .fd = g->b->ops->fd(g->b), .events = POLLIN };
	struct gpu_done done;

	submit(g);
	do
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	while (g->b->ops->take(g->b, &done) == 0);
	return done;
}

void ground_await_news(struct ground *g)
{
	struct pollfd p = { .fd = g->b->ops->fd(g->b), .events = POLLIN };
	uint64_t began_ns = real_ns();

	while (poll(&p, 1, 0) == 0 && wait_a_little(g, began_ns))
		;
}

void ground_expect(struct ground *g, enum gpu_verb verb, int result, uint32_t queues)
{
	struct gpu_done done = ground_next(g);

	assert_int_equal(done.verb, verb);
	assert_int_equal(done.result, result);
	if (verb != GPU_RELEASE) /* which may tell what it resumed */
		assert_int_equal(done.queues, queues);
	assert_int_equal(done.why.message[0] != '\0', result < 0);
	assert_false(done.gpu_failed);
	assert_true(done.done_ns >= done.began_ns);
}

bool ground_is_quiet(struct ground *g)
{
	struct pollfd p = { .fd = g->b->ops->fd(g->b), .events = POLLIN };
	struct gpu_done done;

	submit(g);
	return g->b->ops->take(g->b, &done) == 0 && poll(&p, 1, 0) == 0;
}

void ground_ask_attach(struct ground *g, pid_t pid, uint64_t start_ticks, uint64_t cookie,
		       struct gpu_target **ret)
{
	const struct gpu_attach request = { .pid = pid, .start_ticks = start_ticks };

	assert_int_equal(g->b->ops->attach(g->b, &request, cookie, ret), 0);
	submit(g);
}

struct gpu_target *ground_attach(struct ground *g, enum ground_job job)
{
	struct gpu_target *t;

	ground_ask_attach(g, g->pid[job], 0, 1, &t);
	ground_expect(g, GPU_ATTACH, 0, 0);
	return t;
}

void ground_suspend(struct ground *g, struct gpu_target *t, const uint32_t *ids, size_t n,
		    uint64_t longest_ns, uint64_t cookie)
{
	const struct gpu_hold hold = { .ids = ids, .n = n, .longest_ns = longest_ns };

	assert_int_equal(g->b->ops->suspend(t, &hold, cookie), 0);
	submit(g);
}

void ground_hold(struct ground *g, struct gpu_target *t, enum ground_job job)
{
	ground_suspend(g, t, NULL, 0, 0, 0);
	ground_expect(g, GPU_SUSPEND, 0, g->ops->queues[job]);
	assert_int_equal(g->ops->off(g, job), g->ops->queues[job]);
}

void ground_resume(struct ground *g, struct gpu_target *t, uint64_t cookie)
{
	assert_int_equal(g->b->ops->resume(t, NULL, 0, cookie), 0);
	submit(g);
}

void ground_await_off(struct ground *g, enum ground_job job, uint32_t n)
{
	uint64_t began_ns = real_ns();
	unsigned int seen = 0;
	uint32_t off;

	do {
		off = g->ops->off(g, job);
		seen = off == n ? seen + 1 : 0;
	} while (seen < 2 && wait_a_little(g, began_ns));
	assert_int_equal(off, n);
}

void ground_await_refresh(struct ground *g, struct gpu_watch *w, int answer)
{
	uint64_t began_ns = real_ns();
	int r;

	while ((r = g->b->ops->refresh(w)) != answer && wait_a_little(g, began_ns))
		;
	assert_int_equal(r, answer);
}

struct gpu_watch *ground_watch(struct ground *g, enum ground_job job)
{
	uint64_t began_ns = real_ns();
	struct gpu_watch *w;
	size_t n = 0;

	assert_int_equal(g->b->ops->watch(g->b, g->pid[job], &w), 0);
	g->b->ops->queues(w, &n);
	while (n == 0 && wait_a_little(g, began_ns)) {
		assert_true(g->b->ops->refresh(w) >= 0);
		g->b->ops->queues(w, &n);
	}
	assert_true(n > 0);
	return w;
}

size_t ground_queue_ids(struct ground *g, enum ground_job job, uint32_t *ret, size_t max)
{
	struct gpu_watch *w = ground_watch(g, job);
	const struct gpu_queue *queues;
	size_t n;

	queues = g->b->ops->queues(w, &n);
	for (size_t i = 0; i < MIN(n, max); i++)
		ret[i] = queues[i].queue;
	g->b->ops->unwatch(w);
	return MIN(n, max);
}
