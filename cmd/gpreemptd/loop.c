/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "cmd/gpreemptd/daemon_internal.h"
#include "cmd/gpreemptd/timer.h"
#include "wire/wire.h"

#define DEVICE_CHECK_NS (3 * NSEC_PER_SEC)
#define ENDING_NS GUARD_DRIVER_CALL_NS /* what a call of the driver may take */
#define LEAVING_NS (5 * NSEC_PER_SEC)
#define LEAVING_LOOK_NS (10 * NSEC_PER_MSEC)
/* Nobody on the socket comes before the GPUs. */
#define PRIORITY_GPUS (SD_EVENT_PRIORITY_NORMAL - 10)

/* ---- the scheduler's turns ---- */

static void end_leaving(struct daemon *d, int error)
{
	d->leave_by_ns = 0;
	control_let_go(d->control, d->paused ? error : -ECANCELED);
}

/* It forgets a process some time after its memory is gone, and tells nobody. */
static void look_whether_left(struct daemon *d)
{
	if (!device_counts_ended(d->device)) {
		end_leaving(d, 0);
	} else if (monotonic_ns() >= d->leave_by_ns) {
		log_line(LOG_LEVEL_ERROR,
			 "%llu s after all is let go of the driver still counts "
			 "processes that have ended",
			 LEAVING_NS / NSEC_PER_SEC);
		end_leaving(d, -EBUSY);
	} else {
		timer_set_after(d->leaving, LEAVING_LOOK_NS);
	}
}

static int on_leaving(sd_event_source *source, uint64_t usec, void *user)
{
	struct daemon *d = user;

	if (d->leave_by_ns)
		look_whether_left(d);
	return 0;
}

static void let_go_of_device(struct daemon *d)
{
	if (device_backend(d->device)) {
		scheduler_set_backend(d->scheduler, NULL);
		device_let_go(d->device);
	}
	if (!d->pause_due || d->leave_by_ns)
		return;
	d->pause_due = false;
	d->leave_by_ns = monotonic_ns() + LEAVING_NS;
	look_whether_left(d);
}

/* Nothing is attached any more: who waited for that goes on. */
static void idle(struct daemon *d)
{
	if (d->ending)
		sd_event_exit(d->loop, STATUS_DONE);
	else if (scheduler_failed(d->scheduler))
		sd_event_exit(d->loop, STATUS_FAILED);
	else if (scheduler_is_paused(d->scheduler))
		let_go_of_device(d);
}

static void turn(struct daemon *d)
{
	struct gpu_backend *b = device_backend(d->device);
	uint64_t wake_ns = UINT64_MAX, now_ns = 0;

	if (b) { /* else it is let go of */
		wake_ns = scheduler_turn(d->scheduler);
		now_ns = b->ops->now_ns(b);
	}
	if (wake_ns == UINT64_MAX)
		sd_event_source_set_enabled(d->turn, SD_EVENT_OFF);
	else
		timer_set_after(d->turn, wake_ns > now_ns ? wake_ns - now_ns : 0);
	if (scheduler_is_idle(d->scheduler))
		idle(d);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *user)
{
	turn(user);
	return 0;
}

static int on_scheduler(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	turn(user);
	return 0;
}

void daemon_turn_soon(struct daemon *d)
{
	timer_set(d->turn, 0);
}

/* ---- pausing, and devices that come and go ---- */

void daemon_pause(struct daemon *d)
{
	d->paused = d->pause_due = true;
	scheduler_pause(d->scheduler);
	daemon_turn_soon(d);
}

static int take_up_device(struct daemon *d)
{
	int r;

	if (!device_backend(d->device)) {
		r = device_take_up(d->device);
		if (r < 0)
			return r;
		scheduler_set_backend(d->scheduler, device_backend(d->device));
	}
	scheduler_continue(d->scheduler);
	daemon_turn_soon(d);
	return 0;
}

int daemon_continue(struct daemon *d, const char **ret_why)
{
	int r;

	if (!d->paused && !d->lost)
		return 0;
	d->paused = d->pause_due = false;
	if (d->leave_by_ns) { /* it would not have the same process twice */
		*ret_why = "the driver has not forgotten the last time yet";
		d->lost = true;
		return -EAGAIN;
	}
	r = take_up_device(d);
	*ret_why = device_why(d->device);
	d->lost = r < 0;
	return r;
}

static void look_for_device(struct daemon *d)
{
	if (take_up_device(d) < 0) {
		log_line(LOG_LEVEL_DEBUG, "the GPUs are not back: %s", device_why(d->device));
		return;
	}
	d->lost = false;
	log_line(LOG_LEVEL_INFO, "the GPUs are back; taking up again");
}

static void check_device(struct daemon *d)
{
	struct gpu_backend *b = device_backend(d->device);
	int r = b->ops->processes(b, NULL, 0);

	if (r != -ENODEV && r != -ENOENT)
		return;
	log_line(LOG_LEVEL_ERROR, "the GPUs are gone: %s; letting go, and looking for them again",
		 strerror(-r));
	d->lost = true;
	scheduler_pause(d->scheduler);
	daemon_turn_soon(d);
}

static int on_device_check(sd_event_source *source, uint64_t usec, void *user)
{
	struct daemon *d = user;

	if ((d->lost && device_backend(d->device)) || d->leave_by_ns)
		; /* it is being let go of first */
	else if (d->lost && !d->paused && !d->ending)
		look_for_device(d);
	else if (!d->paused && !d->ending)
		check_device(d);
	timer_set_after(d->device_check, DEVICE_CHECK_NS);
	return 0;
}

/* ---- the rest ---- */

int daemon_reload(struct daemon *d, struct config_mistake *ret_mistake)
{
	const struct gpreempt_event event = { .kind = GPREEMPT_EVENT_RELOADED };
	struct config *config = NULL, *old = d->config;
	const char *file = NULL;
	int r;

	scheduler_will_be_late(d->scheduler);
	r = daemon_read_config(d, &config, &file, ret_mistake);
	if (r < 0)
		return r;
	d->config = config;
	d->config_file = file;
	log_set_level(config->log_level);
	scheduler_configure(d->scheduler, config);
	control_configure(d->control, config);
	daemon_free_config(old);
	events_tell(d->events, &event, "the configuration was read again: %s",
		    file ? file : "there is none, defaults count");
	daemon_turn_soon(d);
	return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct daemon *d = user;
	struct config_mistake m = { 0 };
	char place[CONFIG_PLACE_SIZE];

	notify_tell(d->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)(monotonic_ns() / NSEC_PER_USEC));
	if (daemon_reload(d, &m) < 0)
		log_line(LOG_LEVEL_ERROR, "the configuration stays as it was; %s%s%s%s",
			 config_place(&m, place), m.text, m.hint[0] ? "; hint: " : "", m.hint);
	notify_tell(d->notify, "READY=1");
	return 0;
}

static int on_ending(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct daemon *d = user;

	if (d->ending)
		return 0;
	log_line(LOG_LEVEL_INFO, "asked to end by process %u: letting go of everybody",
		 info->ssi_pid);
	notify_tell(d->notify, "STOPPING=1");
	d->ending = true;
	scheduler_pause(d->scheduler);
	timer_set_after(d->patience, ENDING_NS);
	daemon_turn_soon(d);
	return 0;
}

/* Closing the backend then waits for whatever the driver still does. */
static int on_patience(sd_event_source *source, uint64_t usec, void *user)
{
	struct daemon *d = user;

	log_line(LOG_LEVEL_WARNING, "the driver has not let go of everybody yet");
	return sd_event_exit(d->loop, STATUS_DONE);
}

void loop_write_metrics(struct daemon *d)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	r = metrics_write(d->scheduler, d->control, &text, &len);
	if (r == 0)
		r = run_dir_replace(d->metrics_path, text, len);
	if (r < 0 && r != d->metrics_error)
		log_line(LOG_LEVEL_WARNING, "cannot write %s: %s; it is tried again and again",
			 d->metrics_path, strerror(-r));
	d->metrics_error = r;
}

static int on_metrics(sd_event_source *source, uint64_t usec, void *user)
{
	struct daemon *d = user;

	loop_write_metrics(d);
	timer_set_after(d->metrics, d->config->metrics_ns);
	return 0;
}

static int on_summary(sd_event_source *source, uint64_t usec, void *user)
{
	struct daemon *d = user;

	events_summarise(d->events);
	timer_set_after(d->summary, EVENTS_SUMMARY_NS);
	return 0;
}

void daemon_status(const struct daemon *d, struct gpreempt_daemon_status *ret)
{
	ret->now_ns = clock_ns(CLOCK_REALTIME);
	ret->pid = getpid();
	ret->started_ns = d->started_ns;
	if (d->guard && guard_alive(d->guard))
		ret->guarded = true;
	wire_text_set(ret->version, sizeof(ret->version), GPREEMPT_VERSION);
	wire_text_set(ret->config, sizeof(ret->config), d->config_file ? d->config_file : "");
}

static int add_signals(struct daemon *d)
{
	int r;

	r = sd_event_add_signal(d->loop, NULL, SIGTERM, on_ending, d);
	if (r >= 0)
		r = sd_event_add_signal(d->loop, NULL, SIGINT, on_ending, d);
	if (r >= 0)
		r = sd_event_add_signal(d->loop, NULL, SIGHUP, on_hangup, d);
	return r;
}

static int watch_scheduler(struct daemon *d)
{
	int r;

	r = sd_event_add_io(d->loop, &d->scheduler_ready, scheduler_fd(d->scheduler), EPOLLIN,
			    on_scheduler, d);
	return r < 0 ? r : sd_event_source_set_priority(d->scheduler_ready, PRIORITY_GPUS);
}

int loop_begin(struct daemon *d)
{
	const struct {
		sd_event_time_handler_t handler;
		int64_t priority;
		sd_event_source **timer;
	} timers[] = {
		{ on_turn, PRIORITY_GPUS, &d->turn },
		{ on_metrics, SD_EVENT_PRIORITY_IDLE, &d->metrics },
		{ on_summary, SD_EVENT_PRIORITY_IDLE, &d->summary },
		{ on_device_check, SD_EVENT_PRIORITY_NORMAL, &d->device_check },
		{ on_patience, SD_EVENT_PRIORITY_NORMAL, &d->patience },
		{ on_leaving, SD_EVENT_PRIORITY_NORMAL, &d->leaving },
	};
	int r = add_signals(d);

	if (r >= 0)
		r = watch_scheduler(d);
	for (size_t i = 0; i < ARRAY_SIZE(timers) && r >= 0; i++) {
		r = timer_add(d->loop, timers[i].handler, d, timers[i].timer);
		if (r >= 0)
			r = sd_event_source_set_priority(*timers[i].timer, timers[i].priority);
	}
	if (r < 0)
		return r;
	timer_set(d->turn, 0);
	timer_set(d->metrics, 0);
	timer_set(d->summary, 0);
	timer_set(d->device_check, 0);
	return 0;
}

void loop_end(struct daemon *d)
{
	sd_event_source_disable_unref(d->turn);
	sd_event_source_disable_unref(d->metrics);
	sd_event_source_disable_unref(d->summary);
	sd_event_source_disable_unref(d->device_check);
	sd_event_source_disable_unref(d->patience);
	sd_event_source_disable_unref(d->leaving);
	sd_event_source_disable_unref(d->scheduler_ready);
}
