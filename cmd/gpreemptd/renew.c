/* SPDX-License-Identifier: MIT */
/* The daemon executes its own program anew: why, handover.h tells. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>

#include "cmd/gpreemptd/daemon_internal.h"

struct saved_daemon {
	uint64_t started_ns;
	pid_t guard; /* 0: none */
};

static void handover_freep(struct handover **h)
{
	handover_free(*h);
}

/* The next image reads it, and one that cannot would end. */
static int check_config(const struct daemon *d)
{
	struct config_mistake mistake = { 0 };
	struct config *config = NULL;
	const char *file;
	int r;

	r = daemon_read_config(d, &config, &file, &mistake);
	daemon_free_config(config);
	if (r < 0)
		log_line(LOG_LEVEL_ERROR, "the configuration is not in order, line %d: %s",
			 mistake.line, mistake.text);
	return r;
}

int renew(struct daemon *d)
{
	const struct saved_daemon saved = {
		.started_ns = d->started_ns,
		.guard = d->guard ? guard_pid(d->guard) : 0,
	};
	_cleanup_(handover_freep) struct handover *h = NULL;
	int r;

	r = check_config(d);
	if (r >= 0)
		r = handover_new(&h);
	if (r < 0)
		return r;
	handover_put(h, &saved, sizeof(saved));
	handover_put_fd(h, d->dir.lock_fd);
	scheduler_save(d->scheduler, h);
	control_save(d->control, h);
	sd_notify(0, "WATCHDOG=1");
	return handover_exec(h, d->options->argv);
}

/* It ends when its holder executes another program. */
static void bury_guard(pid_t pid)
{
	siginfo_t info;

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return; /* nobody of ours */
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

int renew_begin(struct daemon *d)
{
	struct saved_daemon saved;
	int r;

	r = handover_get(d->before, &saved, sizeof(saved));
	if (r < 0)
		return r;
	d->started_ns = saved.started_ns;
	if (saved.guard)
		bury_guard(saved.guard);
	d->dir.path = strdup(d->options->run_dir);
	if (!d->dir.path)
		return -ENOMEM;
	return handover_get_fd(d->before, &d->dir.lock_fd);
}
