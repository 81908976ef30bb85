/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "cmd/gpreemptd/clean_up.h"
#include "cmd/gpreemptd/daemon_internal.h"
#include "gpu/freezer.h"
#include "util/advice.h"
#include "util/clock.h"
#include "util/resident.h"

#define SOCKET_NAME "control.sock"
#define JOURNAL_NAME "journal"
#define METRICS_NAME "metrics.prom"

#define fail(status, hint, fmt, ...) \
	({ \
		log_line(LOG_LEVEL_ERROR, fmt "; hint: %s", ##__VA_ARGS__, hint); \
		status; \
	})

/* Has what was asked for been done? Else it is said what cannot be. */
static enum status check(int r, const char *otherwise, const char *what, const char *name)
{
	return r >= 0 ? STATUS_DONE :
			fail(STATUS_FAILED, advice_for(r, otherwise), "cannot %s%s: %s", what, name,
			     strerror(-r));
}

static enum status out_of_memory(void)
{
	return fail(STATUS_FAILED, "give it some", "out of memory");
}

/* ---- configuration ---- */

void daemon_free_config(struct config *c)
{
	if (c)
		config_done(c);
	free(c);
}

int daemon_read_config(const struct daemon *d, struct config **ret, const char **ret_file,
		       struct config_mistake *ret_mistake)
{
	const char *named = d->options->config_file, *file = named ? named : CONFIG_FILE;
	_cleanup_free_ struct config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = config_read(file, c, ret_mistake);
	if (r == -ENOENT && !named) {
		file = NULL;
		r = config_read(NULL, c, ret_mistake);
	}
	if (r < 0) {
		if (r != -EINVAL)
			snprintf(ret_mistake->text, sizeof(ret_mistake->text), "%s", strerror(-r));
		return r;
	}
	*ret_file = file;
	*ret = steal_ptr(&c);
	return 0;
}

static enum status bad_config(const char *file, int error, const struct config_mistake *m)
{
	const char *hint = m->hint[0] ? m->hint : "see gpreempt.conf(5)";

	if (error != -EINVAL)
		return fail(STATUS_FAILED, "see gpreempt.conf(5)", "cannot read %s: %s", file,
			    strerror(-error));
	if (!m->line)
		return fail(STATUS_FAILED, hint, "%s: %s", file, m->text);
	return fail(STATUS_FAILED, hint, "%s:%d: %s", file, m->line, m->text);
}

enum status daemon_check_config(const char *path)
{
	struct config_mistake mistake = { 0 };
	struct config c;
	int r;

	r = config_read(path, &c, &mistake);
	if (r < 0)
		return bad_config(path, r, &mistake);
	config_done(&c);
	if (printf("%s makes sense\n", path) < 0 || fflush(stdout) != 0)
		return fail(STATUS_FAILED, "it makes sense", "cannot write the output: %s",
			    strerror(errno));
	return STATUS_DONE;
}

/* ---- one part after the other ---- */

static enum status take_dir(struct daemon *d)
{
	pid_t owner = 0;
	int r;

	r = run_dir_take(d->options->run_dir, &d->dir, &owner);
	if (r == -EBUSY)
		return fail(STATUS_REFUSED, "stop it first, or give another --run-dir",
			    "a gpreemptd runs already: process %d", owner);
	if (r == -EPERM)
		return fail(STATUS_REFUSED, "make it its user's alone: chown, chmod go-w",
			    "others may write to %s, and so to everything it is used for",
			    d->options->run_dir);
	if (r < 0)
		return fail(r == -EACCES ? STATUS_REFUSED : STATUS_FAILED,
			    advice_for(r, "run as root, or give another --run-dir"),
			    "cannot use %s: %s", d->options->run_dir, strerror(-r));
	d->metrics_path = run_dir_file(&d->dir, METRICS_NAME);
	return d->metrics_path ? STATUS_DONE : out_of_memory();
}

/* What an earlier daemon left; on a software GPU nothing outlives its daemon. */
static enum status clean_up_before(struct daemon *d)
{
	_cleanup_free_ char *path = run_dir_file(&d->dir, JOURNAL_NAME);
	struct clean_up_result result = { 0 };
	int r;

	if (!path)
		return out_of_memory();
	r = clean_up(path, &result);
	if (result.torn)
		log_line(LOG_LEVEL_WARNING,
			 "%s was no journal; whoever needs it: gpreempt release "
			 "--all",
			 path);
	if (result.released)
		log_line(LOG_LEVEL_WARNING, "let go of %u jobs an earlier daemon held",
			 result.released);
	if (r < 0 || result.failed)
		return fail(STATUS_FAILED, "see gpreempt release --all",
			    "cannot let go of %u of %u jobs an earlier daemon held: %s",
			    result.failed, result.left, strerror(r < 0 ? -r : -result.error));
	return STATUS_DONE;
}

/* What cannot be let go of now is no reason to leave everybody else without a scheduler. */
static enum status clean_up_first(struct daemon *d)
{
	clean_up_before(d);
	return STATUS_DONE;
}

enum status daemon_clean_up(const struct daemon_options *options)
{
	struct daemon d = { .options = options, .dir = { .lock_fd = -1 } };
	enum status status = take_dir(&d);

	if (status == STATUS_DONE)
		status = clean_up_before(&d);
	run_dir_done(&d.dir);
	free(d.metrics_path);
	return status;
}

/* Before there are processes of ours, which then are not in it either. */
static void leave_freezer(void)
{
	char group[FREEZER_PATH_SIZE];

	freezer_leave();
	if (freezer_group(group))
		log_line(LOG_LEVEL_WARNING,
			 "in the freezer group %s of cgroup v1, and cannot leave it: but on level "
			 "K3 only processes in it are held",
			 group);
}

static enum status start_guard(struct daemon *d)
{
	leave_freezer();
	if (!guard_is_possible())
		return fail(STATUS_REFUSED, "run it under an init, as docker run --init does",
			    "the first process of a container cannot be killed by its guard");
	return check(guard_start(&d->guard), "see the limit of processes", "start the guard", "");
}

static enum status open_device(struct daemon *d)
{
	const char *why;
	int r;

	r = device_new(d->options, d->guard, &d->device);
	if (r >= 0)
		r = device_take_up(d->device);
	why = device_why(d->device);
	switch (r) {
	case 0:
		return STATUS_DONE;
	case -EINVAL:
		return fail(STATUS_USAGE, "see gpreemptd --help", "%s", why);
	case -ENODEV:
		return fail(STATUS_ABSENT, "see gpreempt doctor; without GPUs: --device model",
			    "%s", why);
	case -EPERM:
	case -EACCES:
		return fail(STATUS_REFUSED, "run as root; see gpreempt doctor", "%s", why);
	default:
		return fail(STATUS_FAILED, advice_for(r, "see gpreempt doctor"), "%s", why);
	}
}

static enum status open_journal(struct daemon *d)
{
	_cleanup_free_ char *path = run_dir_file(&d->dir, JOURNAL_NAME);
	int r;

	if (!path)
		return out_of_memory();
	r = journal_open(path, &d->journal);
	if (r == -EBADMSG && unlink(path) == 0)
		r = journal_open(path, &d->journal);
	if (r >= 0)
		journal_take_over(d->journal);
	return check(r, "remove it if no gpreemptd runs", "use ", path);
}

static enum status make_scheduler(struct daemon *d)
{
	const struct scheduler_parts parts = {
		.backend = device_backend(d->device),
		.guard = d->guard,
		.journal = d->journal,
		.events = d->events,
		.run_dir = d->dir.path,
		.cgroup_root = "/sys/fs/cgroup",
	};
	int r = scheduler_new(&parts, d->config, &d->scheduler);

	return check(r, "see gpreempt doctor", "schedule", "");
}

/* The listening socket systemd made for us, or -1. */
static int inherited_socket(void)
{
	int fd = SD_LISTEN_FDS_START;

	if (sd_listen_fds(1) != 1 || sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
		return -1;
	return fd;
}

static enum status make_control(struct daemon *d)
{
	_cleanup_free_ char *path = run_dir_file(&d->dir, SOCKET_NAME);
	const struct control_parts parts = {
		.loop = d->loop,
		.scheduler = d->scheduler,
		.events = d->events,
		.daemon = d,
	};
	int r;

	if (!path)
		return out_of_memory();
	r = control_new(&parts, d->config, path, inherited_socket(), &d->control);
	return check(r, "give another --run-dir", "listen at ", path);
}

static void stay_resident(const struct daemon *d)
{
	int r = d->guard ? stay_in_memory() : 0;

	if (r < 0)
		log_line(LOG_LEVEL_DEBUG, "may be swapped out: %s", strerror(-r));
}

/* Threads that others start inherit it: signals come to the loop only. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static enum status read_config(struct daemon *d)
{
	struct config_mistake mistake = { 0 };
	int r;

	r = daemon_read_config(d, &d->config, &d->config_file, &mistake);
	if (r < 0)
		return bad_config(d->options->config_file ? d->options->config_file : CONFIG_FILE,
				  r, &mistake);
	log_set_level(d->config->log_level);
	return STATUS_DONE;
}

static enum status make_loop(struct daemon *d)
{
	if (sd_event_new(&d->loop) < 0 || events_new(&d->events) < 0 ||
	    notify_new(d->loop, &d->notify) < 0)
		return out_of_memory();
	return STATUS_DONE;
}

static enum status begin(struct daemon *d)
{
	return check(loop_begin(d), "report this", "begin", "");
}

static enum status start(struct daemon *d)
{
	static enum status (*const steps[])(struct daemon *) = {
		read_config, take_dir,	   clean_up_first, make_loop,	  start_guard,
		open_device, open_journal, make_scheduler,  make_control, begin,
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		enum status status = steps[i](d);

		if (status != STATUS_DONE)
			return status;
	}
	return STATUS_DONE;
}

/* Against the order of start(); what was not made yet is NULL. */
static void stop(struct daemon *d)
{
	loop_end(d);
	if (d->control)
		loop_write_metrics(d);
	if (d->events)
		events_summarise(d->events);
	control_free(d->control);
	scheduler_free(d->scheduler);
	device_close(d->device);
	journal_close(d->journal);
	guard_stop(d->guard);
	events_free(d->events);
	notify_free(d->notify);
	sd_event_unref(d->loop);
	run_dir_done(&d->dir);
	daemon_free_config(d->config);
	free(d->metrics_path);
}

static void tell_start(const struct daemon *d)
{
	const struct gpu_backend *b = device_backend(d->device);

	log_line(LOG_LEVEL_INFO, "ready on %s, level %s, policy %s, socket in %s",
		 d->options->device, b->caps.level, scheduler_policy(d->scheduler)->name,
		 d->options->run_dir);
}

enum status daemon_run(const struct daemon_options *options)
{
	struct daemon d = {
		.options = options,
		.dir = { .lock_fd = -1 },
		.started_ns = clock_ns(CLOCK_REALTIME),
	};
	enum status status;
	int r;

	block_signals();
	status = start(&d);
	if (status == STATUS_DONE) {
		stay_resident(&d);
		tell_start(&d);
		notify_tell(d.notify, "READY=1");
		r = sd_event_loop(d.loop);
		status = r < 0 ? fail(STATUS_FAILED, "report this", "the event loop failed: %s",
				      strerror(-r)) :
				 (enum status)r;
	}
	stop(&d);
	if (status == STATUS_DONE)
		log_line(LOG_LEVEL_INFO, "ended; nothing is held");
	return status;
}
