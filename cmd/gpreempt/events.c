/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/daemon.h"
#include "util/clock.h"

static int print_event(struct cli *cli, struct gpreempt_event *e)
{
	char when[UNIT_TEXT_SIZE];

	if (cli->json)
		return cli_print_json(cli, event_to_json(e));
	text_clean(e->text);
	printf("%s.%03u  %-16s  %s\n", text_clock(e->time_ns, when),
	       (unsigned int)(e->time_ns % NSEC_PER_SEC / NSEC_PER_MSEC), event_word(e), e->text);
	return EXIT_DONE;
}

/* Scripts begin what they want to watch when they have read this. */
static int print_subscribed(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	struct gpreempt_event e = {
		.time_ns = clock_ns(CLOCK_REALTIME),
		.kind = EVENT_SUBSCRIBED,
		.text = "told of what happens from now on",
	};
	struct json_object *o;

	if (!cli->json)
		return print_event(cli, &e);
	/* A recording says what it is of. */
	o = event_to_json(&e);
	json_add_string(o, "backend", s->backend);
	json_add(o, "modelled", json_object_new_boolean(s->modelled));
	return cli_print_json(cli, o);
}

static int print_waiting(struct cli *cli)
{
	struct gpreempt_event e = { .size = sizeof(e) };
	int r;

	while ((r = gpreempt_daemon_next_event(cli->daemon, &e)) > 0) {
		if (print_event(cli, &e) != EXIT_DONE)
			return EXIT_FAILED;
	}
	if (r < 0)
		return daemon_failed(cli, cli->daemon);
	return cli_stdout_broken() ? EXIT_FAILED : EXIT_DONE; /* main says why */
}

static int follow(struct cli *cli, const struct gpreempt_daemon_status *s)
{
	struct pollfd fds[] = {
		{ .fd = cli->signal_fd, .events = POLLIN },
		{ .fd = gpreempt_daemon_fd(cli->daemon), .events = POLLIN },
		{ .fd = STDOUT_FILENO }, /* whoever reads may go while nothing happens */
	};
	int status = print_subscribed(cli, s);

	while (status == EXIT_DONE && !cli_stdout_broken()) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return cli_fail(cli, EXIT_FAILED, "try again", "waiting: %s",
					strerror(errno));
		if (signals_take(cli))
			break;
		if (fds[2].revents & (POLLERR | POLLNVAL))
			return EXIT_DONE;
		status = print_waiting(cli);
	}
	return status;
}

int cmd_events(struct cli *cli, int argc, char **argv)
{
	struct gpreempt_daemon_status s = { .size = sizeof(s) };
	int status = daemon_begin(cli, argc, argv);

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_get_status(cli->daemon, &s) < 0 ||
	    gpreempt_daemon_subscribe(cli->daemon) < 0)
		return daemon_failed(cli, cli->daemon);
	return follow(cli, &s);
}
