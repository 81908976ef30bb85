/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "cmd/gpreempt/load.h"

/* How long what is in flight at the end is waited for. */
#define PATIENCE_NS (10 * NSEC_PER_SEC)
#define STAGGER 16u /* requests come a little late in turns, lest they keep step with others */

struct queue {
	uint32_t id;
	uint64_t submitted, done; /* packets */
};

struct load {
	struct cli *cli;
	const struct load_plan *plan;
	struct load_result *result;
	int fd;
	struct queue *queues;
	uint32_t workgroups;
	uint64_t began_ns, ends_ns, last_ns; /* of CLOCK_MONOTONIC; last: something was done */
	uint64_t sent; /* pieces of work */
	bool ending;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint64_t arrival_ns(const struct load *l, uint64_t i)
{
	uint64_t every = l->plan->every_ns;

	return l->began_ns + (i + 1) * every + i * 7 % STAGGER * every / (2 * STAGGER);
}

static int lost(struct cli *cli, int r)
{
	return cli_fail(cli, EXIT_FAILED, "look at the daemon's log",
			"the software device is gone: %s", strerror(-r));
}

/* ---- sending ---- */

static int send_work(struct load *l, struct queue *q, uint32_t seq)
{
	struct device_submit work = {
		.queue = q->id,
		.workgroups = l->workgroups,
		.wg_ns = l->plan->kernel_ns,
		.flags = DEVICE_WORK_BARRIER,
	};
	int r = device_submit(l->fd, seq, &work);

	if (r < 0)
		return lost(l->cli, r);
	q->submitted++;
	l->sent++;
	return EXIT_DONE;
}

static bool has_room(const struct queue *q, uint64_t depth)
{
	return q->submitted - q->done < depth;
}

static bool wants_more(const struct load *l)
{
	return !l->ending && (!l->plan->requests || l->sent < l->plan->requests);
}

/* Requests are for the queues in turn; one whose queue is full waits, and those after it. */
static int send_requests(struct load *l, uint64_t now)
{
	int status = EXIT_DONE;

	while (status == EXIT_DONE && wants_more(l) && arrival_ns(l, l->sent) <= now) {
		struct queue *q = &l->queues[l->sent % l->plan->queues];

		if (!has_room(q, DEVICE_MAX_PENDING))
			break;
		status = send_work(l, q, (uint32_t)l->sent);
	}
	return status;
}

static int send_kernels(struct load *l)
{
	int status = EXIT_DONE;

	for (uint64_t i = 0; i < l->plan->queues; i++)
		while (status == EXIT_DONE && wants_more(l) &&
		       has_room(&l->queues[i], l->plan->depth))
			status = send_work(l, &l->queues[i], (uint32_t)l->sent);
	return status;
}

/* ---- receiving ---- */

static struct queue *queue_of(struct load *l, uint32_t id)
{
	for (uint64_t i = 0; i < l->plan->queues; i++)
		if (l->queues[i].id == id)
			return &l->queues[i];
	return NULL;
}

static void account(struct load *l, const struct device_done *d, struct queue *q)
{
	struct load_result *r = l->result;
	uint64_t due = arrival_ns(l, d->h.seq);

	r->kernels++;
	r->complete += d->finished == d->workgroups && d->workgroups == l->workgroups &&
		       d->executed_ns == d->workgroups * l->plan->kernel_ns;
	r->disorder += d->index != q->done;
	r->saves += d->saves;
	r->busy_ns += d->executed_ns / r->cus;
	l->last_ns = MAX(l->last_ns, d->done_ns);
	q->done++;
	if (l->plan->online)
		figures_add(&r->latency, d->done_ns > due ? d->done_ns - due : 0);
}

static int take_answer(struct load *l)
{
	union device_any a;
	struct queue *q;
	int r = device_receive(l->fd, &a);

	if (r < 0)
		return lost(l->cli, r);
	if (a.h.type == DEVICE_ERROR) {
		text_clean(a.error.message);
		return cli_fail(l->cli, EXIT_FAILED, "look at the daemon's log",
				"the software device refused work: %s", a.error.message);
	}
	q = a.h.type == DEVICE_SUBMIT ? queue_of(l, a.done.queue) : NULL;
	if (!q)
		return lost(l->cli, -EBADMSG);
	account(l, &a.done, q);
	return EXIT_DONE;
}

/* ---- the run ---- */

static uint64_t in_flight(const struct load *l)
{
	return l->sent - l->result->kernels;
}

static void begin_to_end(struct load *l, uint64_t now)
{
	if (l->ending)
		return;
	l->ending = true;
	l->ends_ns = now + PATIENCE_NS;
}

static uint64_t next_ns(const struct load *l)
{
	uint64_t at = l->ends_ns;

	if (l->plan->online && wants_more(l))
		at = MIN(at, MAX(arrival_ns(l, l->sent), l->began_ns));
	return at;
}

static int wait_a_while(struct load *l)
{
	struct pollfd fds[] = {
		{ .fd = l->fd, .events = POLLIN },
		{ .fd = l->cli->signal_fd, .events = POLLIN },
	};
	uint64_t at = next_ns(l), now = now_ns(), left = at > now ? at - now : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(left / NSEC_PER_SEC),
		.tv_nsec = (long)(left % NSEC_PER_SEC),
	};

	if (ppoll(fds, ARRAY_SIZE(fds), at == UINT64_MAX ? NULL : &ts, NULL) < 0)
		return EXIT_DONE; /* EINTR */
	if (fds[1].revents && signals_take(l->cli)) {
		if (l->ending)
			l->ends_ns = 0; /* asked twice */
		begin_to_end(l, now_ns());
	}
	return fds[0].revents ? take_answer(l) : EXIT_DONE;
}

static int go(struct load *l)
{
	int status = EXIT_DONE;

	while (status == EXIT_DONE) {
		uint64_t now = now_ns();

		if (now >= l->ends_ns) {
			if (l->ending)
				break;
			begin_to_end(l, now);
		}
		status = l->plan->online ? send_requests(l, now) : send_kernels(l);
		if (status == EXIT_DONE && !wants_more(l)) {
			begin_to_end(l, now);
			if (!in_flight(l))
				break;
		}
		if (status == EXIT_DONE)
			status = wait_a_while(l);
	}
	return status;
}

static int no_device(struct cli *cli, const char *path, int r)
{
	if (r == -EEXIST)
		return cli_fail(cli, EXIT_REFUSED, "start another process",
				"this process is on the device already");
	if (r == -ENOENT || r == -ECONNREFUSED)
		return cli_fail(cli, EXIT_ABSENT,
				"start one: gpreemptd --device model --run-dir DIR, and say "
				"--socket DIR/control.sock",
				"there is no software device at %s", path);
	return cli_fail(cli, EXIT_FAILED, "look at the daemon's log", "%s: %s", path, strerror(-r));
}

static int set_up(struct load *l, const char *path)
{
	const struct load_plan *plan = l->plan;
	struct device_welcome hello;
	int r = device_connect(path, &l->fd, &hello);

	if (r < 0)
		return no_device(l->cli, path, r);
	if (plan->gpu >= hello.gpus)
		return cli_fail(l->cli, EXIT_ABSENT, "they are counted from 0",
				"the software device has %u GPUs", hello.gpus);
	l->result->cus = hello.cus;
	snprintf(l->result->chip, sizeof(l->result->chip), "%s", hello.chip);
	l->workgroups = (uint32_t)MAX(hello.cus * plan->fill_percent / 100, 1u);
	for (uint64_t i = 0; i < plan->queues; i++) {
		r = device_create_queue(l->fd, (uint32_t)plan->gpu, (uint32_t)plan->priority,
					&l->queues[i].id);
		if (r < 0)
			return cli_fail(l->cli, EXIT_FAILED, "ask for fewer", "no queue: %s",
					strerror(-r));
	}
	return EXIT_DONE;
}

int load_run(struct cli *cli, const char *path, const struct load_plan *plan,
	     struct load_result *ret)
{
	_cleanup_free_ struct queue *queues = calloc(plan->queues, sizeof(*queues));
	struct load l = { .cli = cli, .plan = plan, .result = ret, .fd = -1, .queues = queues };
	int status;

	*ret = (struct load_result){ 0 };
	if (!queues || figures_init(&ret->latency, plan->online ? LOAD_MAX_REQUESTS : 0) < 0)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	status = set_up(&l, path);
	l.began_ns = l.last_ns = now_ns();
	l.ends_ns = plan->duration_ns ? l.began_ns + plan->duration_ns : UINT64_MAX;
	if (status == EXIT_DONE)
		status = go(&l);
	closep(&l.fd);
	ret->elapsed_ns = l.last_ns - l.began_ns;
	ret->unfinished = in_flight(&l);
	return status;
}
