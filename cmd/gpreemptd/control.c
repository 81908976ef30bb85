/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cmd/gpreemptd/control_internal.h"

#define BACKLOG 256
#define ACCEPTS_AT_ONCE 16

/* ---- timers ---- */

void control_refill_later(struct control *c)
{
	int enabled = SD_EVENT_OFF;

	sd_event_source_get_enabled(c->refill, &enabled);
	if (enabled == SD_EVENT_OFF)
		timer_set_after(c->refill, REFILL_NS);
}

static int on_refill(sd_event_source *source, uint64_t usec, void *user)
{
	struct control *c = user;
	bool more = false;

	for_each_client(c, client) {
		if (!client->unread)
			continue;
		if (user_can_pay(c, client->user))
			client_read_again(client);
		else
			more = true;
	}
	if (more)
		control_refill_later(c);
	sd_event_source_set_enabled(c->listener, SD_EVENT_ON); /* see rest() */
	return 0;
}

void control_be_patient(struct control *c)
{
	uint64_t until_ns = UINT64_MAX;

	for_each_client(c, client) {
		if (client->waits)
			until_ns = MIN(until_ns, client->waits_until_ns);
		if (client->page_pid)
			until_ns = MIN(until_ns, client->page_until_ns);
	}
	if (until_ns != UINT64_MAX)
		timer_set(c->patience, until_ns);
}

static int on_patience(sd_event_source *source, uint64_t usec, void *user)
{
	struct control *c = user;
	uint64_t now_ns = monotonic_ns();

	for_each_client(c, client) {
		if (client->waits && client->waits_until_ns <= now_ns)
			request_end_wait(client, -ETIMEDOUT);
		if (client->page_pid)
			request_page_again(client, now_ns);
	}
	control_be_patient(c);
	return 0;
}

void control_let_go(struct control *c, int error)
{
	for_each_client(c, client)
		if (client->waits)
			request_end_wait(client, error);
}

/* ---- who comes ---- */

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * Out of descriptors the queue of whoever wants to come in would keep us awake for ever. False:
 * there is not even the spare one.
 */
static bool turn_away_unseen(struct control *c)
{
	int fd;

	if (c->spare_fd < 0)
		c->spare_fd = open_spare();
	if (c->spare_fd < 0)
		return false;
	close(c->spare_fd);
	fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		hang_up(&c->ended, fd);
	drop_now(&c->ended);
	c->spare_fd = open_spare();
	c->figures.refused++;
	return true;
}

/* Lets nobody in for a moment. */
static void rest(struct control *c)
{
	sd_event_source_set_enabled(c->listener, SD_EVENT_OFF);
	control_refill_later(c);
}

static bool has_room(struct control *c)
{
	if (c->ended.n >= ENDED_MAX)
		drop_now(&c->ended);
	return c->ended.n < ENDED_MAX;
}

/* 1: there may be more; 0: there is nobody. An error: nobody can be let in now. */
static int take_one(struct control *c)
{
	int fd;

	if (!has_room(c))
		return -EBUSY;
	fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		client_new(c, fd);
	else if (errno != EMFILE && errno != ENFILE)
		return 0;
	else if (!turn_away_unseen(c))
		return -EMFILE;
	return 1;
}

static int on_listener(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct control *c = user;
	int r = 1;

	for (int i = 0; i < ACCEPTS_AT_ONCE && r > 0; i++)
		r = take_one(c);
	if (r < 0)
		rest(c);
	return 0;
}

static void on_event(void *user, const struct gpreempt_event *event)
{
	struct control *c = user;

	for_each_client(c, client) {
		if (client->subscribed && rights_sees_event(client, event))
			client_send_event(client, event);
		if (client->page_pid && client->page_pid == event->pid)
			timer_set(c->patience, 0); /* not in the middle of whatever happens */
	}
}

/* ---- making it ---- */

static int listen_at(const char *path, int *ret_fd)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Whoever left it is dead: the lock of the run directory is ours. */
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -errno;
	refuse_files(fd); /* before anybody can come */
	if (chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* systemd hands it over as one that waits: NonBlocking= of systemd.service(5). */
static int never_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int add_sources(struct control *c)
{
	int r;

	r = timer_add(c->parts.loop, on_refill, c, &c->refill);
	if (r >= 0)
		r = timer_add(c->parts.loop, on_patience, c, &c->patience);
	if (r >= 0)
		r = sd_event_add_io(c->parts.loop, &c->listener, c->fd, EPOLLIN, on_listener, c);
	if (r < 0)
		return r;
	/* Who is there already is heard before whoever wants to come in. */
	return sd_event_source_set_priority(c->listener, SD_EVENT_PRIORITY_NORMAL + 10);
}

static void control_freep(struct control **c)
{
	control_free(*c);
}

int control_new(const struct control_parts *parts, const struct config *config, const char *path,
		int fd, struct control **ret)
{
	_cleanup_(control_freep) struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->parts = *parts;
	c->fd = fd;
	c->spare_fd = open_spare();
	if (fd < 0) {
		r = listen_at(path, &c->fd);
		if (r < 0)
			return r;
		c->path = strdup(path);
		if (!c->path)
			return -ENOMEM;
	}
	refuse_files(c->fd); /* systemd's, too */
	r = never_wait(c->fd);
	if (r < 0)
		return r;
	control_configure(c, config);
	r = add_sources(c);
	if (r < 0)
		return r;
	events_set_sink(parts->events, on_event, c);
	*ret = steal_ptr(&c);
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	events_set_sink(c->parts.events, NULL, NULL);
	while (!LIST_EMPTY(&c->clients))
		client_free(LIST_FIRST(&c->clients));
	users_free(c);
	sd_event_source_disable_unref(c->listener);
	sd_event_source_disable_unref(c->refill);
	sd_event_source_disable_unref(c->patience);
	if (c->path)
		unlink(c->path);
	/* Who was never let in may have sent something all the same. */
	if (c->fd >= 0)
		drop_later(&c->ended, c->fd, getuid());
	drop_now(&c->ended); /* else it is done by the end of this process */
	free(c->ended.all);
	closep(&c->spare_fd);
	free(c->path);
	free(c);
}

void control_configure(struct control *c, const struct config *config)
{
	bool same_group = c->has_group && strcmp(c->config->group, config->group) == 0;

	c->config = config;
	c->token_ns = NSEC_PER_SEC / MAX(config->requests_per_s, 1u);
	if (!same_group)
		rights_set_group(c);
	for_each_client(c, client)
		rights_find(client);
}

const struct control_figures *control_figures(const struct control *c)
{
	return &c->figures;
}
