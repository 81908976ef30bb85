/* SPDX-License-Identifier: MIT */
/* A job on the daemon's software device: requests that come by themselves, or kernels in a row. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>

#include "cmd/gpreempt/figures.h"
#include "cmd/wire/device_client.h"
#include "util/clock.h"

#define CONTROL_SOCKET "/run/gpreempt/control.sock"
#define MAX_US 10000000u
#define MAX_REQUESTS 1000000u
/* How long what is in flight at the end is waited for. */
#define PATIENCE_NS (10 * NSEC_PER_SEC)
#define STAGGER 16u /* requests come a little late in turns, lest they keep step with others */

const char help_load[] =
	"  --offline           kernels in a row, as training makes them (the default)\n"
	"  --online            requests that come by themselves, as inference gets them\n"
	"  --gpu N             on which GPU; 0 unless told, as all below\n"
	"  --queues N          1; with --online they take requests in turn\n"
	"  --priority N        of the queues, 0 to 15; 7\n"
	"  --kernel-us US      how long a kernel or request runs; 20000, or online 2000\n"
	"  --fill PERCENT      of the GPU that it takes; 100\n"
	"  --depth N           kernels in each queue; 2\n"
	"  --every-ms MS       between requests, about; 50\n"
	"  --requests N        so many, then end; otherwise until Ctrl-C\n"
	"  --duration S        end after so many seconds\n"
	"  --name NAME         what the process is called in lists\n"
	"\n"
	"A job on a software GPU: that of a daemon, gpreemptd --device model, whose socket\n"
	"lies beside the control socket (--socket), or --device soft:SOCKET. Online and\n"
	"offline are shapes here; its class is what the daemon's rules or gpreempt run say.\n";

struct queue {
	uint32_t id;
	uint64_t pending, done; /* packets */
};

struct load {
	struct cli *cli;
	bool online; /* requests; else every queue is kept @depth kernels deep */
	uint64_t gpu, n_queues, priority, depth;
	uint64_t kernel_us, kernel_ns; /* of a request, or one in a row */
	uint64_t fill_percent; /* of the GPU's compute units it takes */
	uint64_t every_ms; /* between requests, about */
	uint64_t requests; /* 0: no end */
	uint64_t duration_ns; /* 0: no end */

	int fd;
	struct queue queues[DEVICE_MAX_PROCESS_QUEUES];
	struct device_welcome hello;
	uint32_t workgroups;
	uint64_t began_ns, ends_ns, last_ns; /* of CLOCK_MONOTONIC; last: something was done */
	uint64_t sent; /* pieces of work */
	bool ending;

	struct figures latency; /* of requests: from when they were due until they were done */
	uint64_t kernels; /* done */
	uint64_t complete; /* of them: every workgroup ran, once, and for its whole time */
	uint64_t disorder; /* of them: done before an earlier one of their queue */
	uint64_t saves; /* how often one was taken off the GPU and went on later */
	uint64_t busy_ns; /* of the GPU as a whole, spent on it */
};

/* ---- what is asked for ---- */

static int parse(struct cli *cli, int argc, char **argv, struct load *l)
{
	const char *name = NULL;
	const struct command_option options[] = {
		{ "offline", 0, NULL, &l->online, .off = true },
		{ "online", 0, NULL, &l->online },
		{ "gpu", 0, option_number, &l->gpu, 0, 7 },
		{ "queues", 0, option_number, &l->n_queues, 1, DEVICE_MAX_PROCESS_QUEUES },
		{ "priority", 0, option_number, &l->priority, 0, DEVICE_MAX_PRIORITY },
		{ "kernel-us", 0, option_number, &l->kernel_us, 1, MAX_US },
		{ "fill", 0, option_number, &l->fill_percent, 1, 1000 },
		{ "depth", 0, option_number, &l->depth, 1, DEVICE_MAX_PENDING },
		{ "every-ms", 0, option_number, &l->every_ms, 1, 60000 },
		{ "requests", 0, option_number, &l->requests, 1, MAX_REQUESTS },
		{ "duration", 0, option_seconds, &l->duration_ns },
		{ "name", 0, option_text, &name },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	if (name)
		prctl(PR_SET_NAME, name);
	if (!l->kernel_us)
		l->kernel_us = l->online ? 2000 : 20000;
	l->kernel_ns = l->kernel_us * NSEC_PER_USEC;
	return status;
}

static uint64_t arrival_ns(const struct load *l, uint64_t i)
{
	uint64_t every = l->every_ms * NSEC_PER_MSEC;

	return l->began_ns + (i + 1) * every + i * 7 % STAGGER * every / (2 * STAGGER);
}

static int lost(struct cli *cli, int r)
{
	return cli_fail(cli, EXIT_FAILED, "look at the daemon's log",
			"the software device is gone: %s", strerror(-r));
}

/* ---- sending ---- */

static int send_work(struct load *l, struct queue *q)
{
	struct device_submit work = {
		.queue = q->id,
		.workgroups = l->workgroups,
		.wg_ns = l->kernel_ns,
		.flags = DEVICE_WORK_BARRIER,
	};
	int r = device_submit(l->fd, (uint32_t)l->sent, &work);

	if (r < 0)
		return lost(l->cli, r);
	q->pending++;
	l->sent++;
	return EXIT_DONE;
}

static bool wants_more(const struct load *l)
{
	return !l->ending && (!l->requests || l->sent < l->requests);
}

/*
 * One that takes work now. Requests are for the queues in turn: one whose queue is full waits, and
 * those after it.
 */
static struct queue *next_queue(struct load *l, uint64_t now)
{
	struct queue *q = &l->queues[l->sent % l->n_queues];

	if (!wants_more(l))
		return NULL;
	if (l->online)
		return arrival_ns(l, l->sent) <= now && q->pending < DEVICE_MAX_PENDING ? q : NULL;
	for (q = l->queues; q < l->queues + l->n_queues; q++)
		if (q->pending < l->depth)
			return q;
	return NULL;
}

/* ---- receiving ---- */

static struct queue *queue_of(struct load *l, uint32_t id)
{
	for (uint64_t i = 0; i < l->n_queues; i++)
		if (l->queues[i].id == id)
			return &l->queues[i];
	return NULL;
}

static void account(struct load *l, const struct device_done *d, struct queue *q)
{
	uint64_t due = arrival_ns(l, d->h.seq);

	l->kernels++;
	l->complete += d->finished == d->workgroups && d->workgroups == l->workgroups &&
		       d->executed_ns == d->workgroups * l->kernel_ns;
	l->disorder += d->index != q->done;
	l->saves += d->saves;
	l->busy_ns += d->executed_ns / l->hello.cus;
	l->last_ns = MAX(l->last_ns, d->done_ns);
	q->pending--;
	q->done++;
	if (l->online)
		figures_add(&l->latency, d->done_ns > due ? d->done_ns - due : 0);
}

static int take_answer(struct load *l)
{
	union device_any a;
	struct queue *q;
	int r = device_receive(l->fd, &a);

	if (r < 0)
		return lost(l->cli, r);
	if (a.h.type == DEVICE_ERROR)
		return cli_fail(l->cli, EXIT_FAILED, "look at the daemon's log",
				"the software device refused work: %s", a.error.message);
	q = a.h.type == DEVICE_SUBMIT ? queue_of(l, a.done.queue) : NULL;
	if (!q)
		return lost(l->cli, -EBADMSG);
	account(l, &a.done, q);
	return EXIT_DONE;
}

/* ---- the run ---- */

static uint64_t in_flight(const struct load *l)
{
	return l->sent - l->kernels;
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

	if (l->online && wants_more(l))
		at = MIN(at, arrival_ns(l, l->sent));
	return at;
}

static int wait_a_while(struct load *l)
{
	struct pollfd fds[] = {
		{ .fd = l->fd, .events = POLLIN },
		{ .fd = l->cli->signal_fd, .events = POLLIN },
	};
	uint64_t at = next_ns(l), now = monotonic_ns(), left = at > now ? at - now : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(left / NSEC_PER_SEC),
		.tv_nsec = (long)(left % NSEC_PER_SEC),
	};

	if (ppoll(fds, ARRAY_SIZE(fds), at == UINT64_MAX ? NULL : &ts, NULL) < 0)
		return EXIT_DONE; /* EINTR */
	if (fds[1].revents && signals_take(l->cli)) {
		if (l->ending)
			l->ends_ns = 0; /* asked twice */
		begin_to_end(l, monotonic_ns());
	}
	return fds[0].revents ? take_answer(l) : EXIT_DONE;
}

static int go(struct load *l)
{
	int status = EXIT_DONE;
	struct queue *q;

	while (status == EXIT_DONE) {
		uint64_t now = monotonic_ns();

		if (now >= l->ends_ns) {
			if (l->ending)
				break;
			begin_to_end(l, now);
		}
		while (status == EXIT_DONE && (q = next_queue(l, now)))
			status = send_work(l, q);
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

/* Beside the control socket, unless it is named. */
static void find_socket(const struct cli *cli, char *buf, size_t size)
{
	static const char soft[] = "soft:";
	const char *control = cli->socket ? cli->socket : getenv("GPREEMPT_SOCKET");
	const char *slash;

	if (cli->device && !strncmp(cli->device, soft, strlen(soft))) {
		snprintf(buf, size, "%s", cli->device + strlen(soft));
		return;
	}
	if (!control)
		control = CONTROL_SOCKET;
	slash = strrchr(control, '/');
	snprintf(buf, size, "%.*s%s", slash ? (int)(slash + 1 - control) : 0, control,
		 DEVICE_SOCKET);
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

static int set_up(struct load *l)
{
	char path[PATH_MAX];
	int r;

	find_socket(l->cli, path, sizeof(path));
	r = device_connect(path, &l->fd, &l->hello);
	if (r < 0)
		return no_device(l->cli, path, r);
	if (l->gpu >= l->hello.gpus)
		return cli_fail(l->cli, EXIT_ABSENT, "they are counted from 0",
				"the software device has %u GPUs", l->hello.gpus);
	l->workgroups = (uint32_t)MAX(l->hello.cus * l->fill_percent / 100, 1u);
	for (uint64_t i = 0; i < l->n_queues; i++) {
		r = device_create_queue(l->fd, (uint32_t)l->gpu, (uint32_t)l->priority,
					&l->queues[i].id);
		if (r < 0)
			return cli_fail(l->cli, EXIT_FAILED, "ask for fewer", "no queue: %s",
					strerror(-r));
	}
	return EXIT_DONE;
}

/* Until the plan is done or a signal asks for the end. */
static int run(struct load *l)
{
	int status = set_up(l);

	l->began_ns = l->last_ns = monotonic_ns();
	l->ends_ns = l->duration_ns ? l->began_ns + l->duration_ns : UINT64_MAX;
	if (status == EXIT_DONE)
		status = go(l);
	closep(&l->fd);
	return status;
}

/* ---- what came of it ---- */

static double goodput_pct(const struct load *l)
{
	uint64_t elapsed = l->last_ns - l->began_ns;

	return elapsed ? 100.0 * (double)l->busy_ns / (double)elapsed : 0;
}

static int print_json(struct load *l)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "modelled", json_object_new_boolean(true));
	json_add_string(o, "chip", l->hello.chip);
	json_add(o, "pid", json_object_new_int(getpid()));
	json_add_uint(o, "gpu", l->gpu);
	json_add_uint(o, "queues", l->n_queues);
	json_add(o, "kernel_us", json_us(l->kernel_ns));
	json_add(o, "elapsed_us", json_us(l->last_ns - l->began_ns));
	json_add_uint(o, "kernels", l->kernels);
	json_add_uint(o, "complete", l->complete);
	json_add(o, "in_order", json_object_new_boolean(!l->disorder));
	json_add_uint(o, "unfinished", in_flight(l));
	json_add_uint(o, "saves", l->saves);
	json_add(o, "busy_us", json_us(l->busy_ns));
	json_add(o, "goodput_pct", json_decimal(goodput_pct(l), 1));
	if (l->online) {
		json_add_uint(o, "requests", l->latency.n);
		json_add(o, "latency_us", figures_to_json(&l->latency));
	}
	return cli_print_json(l->cli, o);
}

static int print_text(struct load *l)
{
	struct summary s = figures_sum_up(&l->latency);
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE], c[UNIT_TEXT_SIZE];

	if (l->latency.n) {
		printf("%zu requests of %s: mean %s, ", l->latency.n,
		       text_duration(l->kernel_ns, a), text_duration(s.avg, b));
		printf("median %s, 99 %% within %s, worst %s\n", text_duration(s.p50, a),
		       text_duration(s.p99, b), text_duration(s.max, c));
	}
	printf("%llu kernels in %s, %.1f %% of the GPU's time, %llu times interrupted\n",
	       (unsigned long long)l->kernels, text_duration(l->last_ns - l->began_ns, a),
	       goodput_pct(l), (unsigned long long)l->saves);
	printf("%llu complete, %s%s; all times are modelled\n", (unsigned long long)l->complete,
	       l->disorder ? "not in order" : "in order",
	       in_flight(l) ? ", some not finished at the end" : "");
	return EXIT_DONE;
}

int cmd_load(struct cli *cli, int argc, char **argv)
{
	struct load l = {
		.cli = cli,
		.n_queues = 1,
		.priority = 7,
		.depth = 2,
		.fill_percent = 100,
		.every_ms = 50,
		.fd = -1,
	};
	int status = parse(cli, argc, argv, &l);

	if (status != EXIT_DONE)
		return status;
	if (figures_init(&l.latency, l.online ? MAX_REQUESTS : 0) < 0)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	status = run(&l);
	if (status == EXIT_DONE)
		status = cli->json ? print_json(&l) : print_text(&l);
	if (status == EXIT_DONE && (l.complete != l.kernels || l.disorder))
		status = EXIT_FAILED;
	figures_done(&l.latency);
	return status;
}
