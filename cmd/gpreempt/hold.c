/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>

#include "cmd/gpreempt/cli.h"

#define MAX_IDS 5000
#define PROGRESS_NS (500 * NSEC_PER_MSEC)

const char help_hold[] =
	"  --queue ID          only this queue, or on an NVIDIA GPU channel group; may be given\n"
	"                      several times (one PID only)\n"
	"  --for SECONDS       let go after so long; otherwise Ctrl-C ends it\n"
	"  --grace KCLK        thousands of GPU clocks running work gets to end by itself,\n"
	"                      1 (default) to 255; not on NVIDIA GPUs\n"
	"  --level LEVEL       insist on one way to do it, rather than the best there is; see\n"
	"                      gpreempt doctor. K1 (a pause of whole processes, for old ROCm\n"
	"                      runtimes) is used only so\n"
	"\n"
	"All of the processes are held, or none. Nothing of a job's work is lost, and its CPU\n"
	"side keeps running. Whatever happens to this command, the jobs run again: on Ctrl-C,\n"
	"Ctrl-Z or kill, when it crashes or hangs, when the terminal goes away.\n";

struct hold {
	pid_t pids[HOLD_MAX_PIDS];
	size_t n; /* of them, then of those that have not ended by themselves */
	uint32_t ids[MAX_IDS];
	size_t n_ids; /* 0: all queues */
	uint64_t for_ns; /* UINT64_MAX: until interrupted */
	const char *level;
	struct gpreempt_suspend_options options;

	struct gpreempt_process *procs[HOLD_MAX_PIDS];
	struct json_object *held;
	const char *unit;
	uint64_t suspend_ns, resume_ns;
	uint32_t queues;
};

static int take_queue(struct cli *cli, const struct command_option *o, const char *text)
{
	struct hold *h = o->ret;
	uint64_t id = 0;
	int status = parse_number(cli, "--queue", text, 0, UINT32_MAX, &id);

	if (status == EXIT_DONE && h->n_ids == MAX_IDS)
		return cli_usage(cli, "more than %d queues; name none to hold them all", MAX_IDS);
	if (status == EXIT_DONE)
		h->ids[h->n_ids++] = (uint32_t)id;
	return status;
}

static int take_pids(struct cli *cli, struct hold *h, int argc, char **argv)
{
	int status = EXIT_DONE;

	for (int i = optind; i < argc && status == EXIT_DONE; i++) {
		status = parse_pid(cli, argv[i], &h->pids[h->n]);
		for (size_t j = 0; j < h->n && status == EXIT_DONE; j++)
			if (h->pids[j] == h->pids[h->n])
				status = cli_usage(cli, "pid %s is named twice", argv[i]);
		h->n++;
	}
	if (status == EXIT_DONE && level_flags(h->level) == GPREEMPT_ATTACH_PAUSE &&
	    (h->n_ids || h->options.grace_kclk))
		return cli_usage(cli, "--queue and --grace do not go with level K1");
	if (status == EXIT_DONE && h->n_ids && h->n > 1)
		return cli_usage(cli, "--queue goes with one pid: ids are the process's own");
	return status;
}

static int parse(struct cli *cli, int argc, char **argv, struct hold *h)
{
	const struct command_option options[] = {
		{ "queue", 0, take_queue, h },
		{ "for", 0, option_seconds, &h->for_ns },
		{ "grace", 0, option_grace, &h->options.grace_kclk },
		{ "level", 0, option_text, &h->level },
	};
	int status = take_options(cli, argc, argv, options, ARRAY_SIZE(options));

	return status == EXIT_DONE ? take_pids(cli, h, argc, argv) : status;
}

static int attach_all(struct cli *cli, struct hold *h)
{
	struct progress progress;

	progress_begin(&progress);
	for (size_t i = 0; i < h->n; i++) {
		int sig = signals_take(cli), r;

		if (sig)
			return cli_fail(cli, EXIT_FAILED, "nothing is held", "interrupted: %s",
					signal_word(sig));
		progress_now(&progress, "attaching to process %d", (int)h->pids[i]);
		r = gpreempt_attach(cli->ctx, h->pids[i], level_flags(h->level), &h->procs[i]);
		progress_end(&progress);
		if (r < 0)
			return cli_fail_ctx(cli);
	}
	gpreempt_keepalive(cli->ctx);
	return EXIT_DONE;
}

static int note_held(struct cli *cli, struct hold *h, struct gpreempt_process *p)
{
	int n = gpreempt_held_queues(p, NULL, 0);
	_cleanup_free_ uint32_t *ids = calloc(n > 0 ? (size_t)n : 1, sizeof(*ids));

	if (!ids)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	n = gpreempt_held_queues(p, ids, (size_t)n);
	for (int i = 0; i < n; i++) {
		struct json_object *o =
			json_of("pid", json_object_new_int(gpreempt_process_pid(p)));

		json_add_uint(o, "queue_id", ids[i]);
		json_object_array_add(h->held, o);
	}
	h->queues += (uint32_t)n;
	if (!cli->json)
		printf("holding process %d: %d %s%s off the GPU\n", (int)gpreempt_process_pid(p), n,
		       h->unit, n == 1 ? "" : "s");
	return EXIT_DONE;
}

static int suspend_all(struct cli *cli, struct hold *h)
{
	uint64_t began = gpreempt_now_ns(cli->ctx);
	struct progress progress;
	int status = EXIT_DONE, r;

	progress_begin(&progress);
	progress_now(&progress, "taking the %ss off the GPU", h->unit);
	r = h->n_ids ? gpreempt_suspend_queues(h->procs[0], h->ids, h->n_ids, &h->options, NULL) :
		       gpreempt_batch_unmap_queues(h->procs, h->n, &h->options);
	progress_end(&progress);
	if (r < 0)
		return cli_fail_ctx(cli);
	h->suspend_ns = gpreempt_now_ns(cli->ctx) - began;
	for (size_t i = 0; i < h->n && status == EXIT_DONE; i++)
		status = note_held(cli, h, h->procs[i]);
	return status;
}

static void drop_ended(struct cli *cli, struct hold *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n; i++) {
		struct gpreempt_error e = { .size = sizeof(e) };

		h->procs[kept] = h->procs[i];
		if (gpreempt_process_check(h->procs[i]) >= 0) {
			kept++;
			continue;
		}
		gpreempt_get_error(cli->ctx, &e);
		gpreempt_detach(h->procs[i]);
		if (!cli->json && kept + h->n - i > 1)
			printf("%s; it is not held any more\n", e.message);
	}
	h->n = kept;
}

/* EXIT_DONE: time is over or a person ended it. */
static int wait_held(struct cli *cli, struct hold *h)
{
	uint64_t began = gpreempt_now_ns(cli->ctx);
	struct pollfd fds[HOLD_MAX_PIDS + 1];
	struct progress progress;
	int sig;

	progress_begin(&progress);
	while ((sig = signals_take(cli)) == 0) {
		uint64_t passed = gpreempt_now_ns(cli->ctx) - began;
		uint64_t left = h->for_ns == UINT64_MAX ? UINT64_MAX :
				passed < h->for_ns	? h->for_ns - passed :
							  0;

		if (left == 0 || h->n == 0)
			break;
		fds[0] = (struct pollfd){ .fd = cli->signal_fd, .events = POLLIN };
		for (size_t i = 0; i < h->n; i++)
			fds[i + 1] = (struct pollfd){
				.fd = gpreempt_process_fd(h->procs[i]),
				.events = POLLIN,
			};
		/* A model's clock jumps: only a real device is worth looking in on. */
		if (!cli_is_alone(cli))
			left = MIN(left, PROGRESS_NS);
		if (gpreempt_wait(cli->ctx, fds, h->n + 1, left) < 0)
			return cli_fail_ctx(cli);
		drop_ended(cli, h);
		progress_show(&progress, "holding for %llu s",
			      (unsigned long long)(passed / NSEC_PER_SEC));
	}
	progress_end(&progress);
	if (sig && !cli->json)
		printf("%s: letting go\n", signal_word(sig));
	return EXIT_DONE;
}

static int resume_all(struct cli *cli, struct hold *h)
{
	uint64_t began = gpreempt_now_ns(cli->ctx);
	struct gpreempt_error e = { .size = sizeof(e) };

	if (h->n == 0) {
		gpreempt_get_error(cli->ctx, &e);
		return cli_fail_error(cli, &e);
	}
	if (gpreempt_fast_remap_queues(h->procs, h->n) < 0)
		return cli_fail_ctx(cli);
	h->resume_ns = gpreempt_now_ns(cli->ctx) - began;
	return EXIT_DONE;
}

static int report(struct cli *cli, struct hold *h)
{
	bool modelled = cli_is_modelled(cli);
	char a[UNIT_TEXT_SIZE], b[UNIT_TEXT_SIZE];
	struct json_object *o = json_of("held", json_object_get(h->held));

	json_add(o, "suspend_us", json_us(h->suspend_ns));
	json_add(o, "resume_us", json_us(h->resume_ns));
	json_add(o, "modelled", json_object_new_boolean(modelled));
	return cli_answer(cli, o, "%u %s%s running again; suspend took %s, resume %s%s\n",
			  h->queues, h->unit, h->queues == 1 ? " is" : "s are",
			  text_duration(h->suspend_ns, a), text_duration(h->resume_ns, b),
			  modelled ? " (modelled)" : "");
}

static int hold(struct cli *cli, struct hold *h)
{
	int status = cli_open(cli);

	if (status == EXIT_DONE)
		status = check_level(cli, h->level);
	if (status == EXIT_DONE) {
		h->unit = cli_unit(cli);
		status = attach_all(cli, h);
	}
	if (status == EXIT_DONE)
		status = suspend_all(cli, h);
	if (status != EXIT_DONE)
		return status;
	if (!cli->json && h->for_ns == UINT64_MAX)
		printf("until Ctrl-C\n");
	if (!cli->json && cli_stdout_broken())
		return EXIT_FAILED; /* nobody would know: main says why, and everything is let go */
	status = wait_held(cli, h);
	if (status == EXIT_DONE)
		status = resume_all(cli, h);
	for (size_t i = 0; i < h->n; i++)
		gpreempt_detach(h->procs[i]);
	return status == EXIT_DONE ? report(cli, h) : status;
}

int cmd_hold(struct cli *cli, int argc, char **argv)
{
	struct hold h = { .for_ns = UINT64_MAX, .options = { .size = sizeof(h.options) } };
	int status;

	h.held = json_object_new_array();
	status = parse(cli, argc, argv, &h);
	if (status == EXIT_DONE)
		status = hold(cli, &h);
	json_object_put(h.held);
	return status;
}
