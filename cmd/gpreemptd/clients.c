/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "cmd/gpreemptd/control_internal.h"
#include "util/send_fds.h"

#define FULL_NS NSEC_PER_SEC /* a user may save up the requests of a second */

/* ---- whose they are ---- */

static void fill(struct user *user)
{
	uint64_t now_ns = monotonic_ns();

	user->tokens_ns = MIN(user->tokens_ns + (now_ns - user->filled_ns), FULL_NS);
	user->filled_ns = now_ns;
}

/* Whoever has no connection and all tokens is as good as unknown. */
static void forget_idle(struct control *c)
{
	for (struct user **p = &c->users; *p;) {
		struct user *user = *p;

		fill(user);
		if (user->clients || user->tokens_ns < FULL_NS) {
			p = &user->next;
			continue;
		}
		*p = user->next;
		free(user);
	}
}

/* NULL: too many users at once, or no memory. */
static struct user *user_get(struct control *c, uid_t uid)
{
	struct user *user;
	uint32_t n = 0;

	for (user = c->users; user; user = user->next)
		if (user->uid == uid)
			return user;
	forget_idle(c);
	for (user = c->users; user; user = user->next)
		n++;
	/* Strangers, however many, must not keep the machine's owner out. */
	user = n < USERS_MAX || uid == 0 || uid == geteuid() ? calloc(1, sizeof(*user)) : NULL;
	if (!user)
		return NULL;
	*user = (struct user){
		.next = c->users,
		.uid = uid,
		.tokens_ns = FULL_NS,
		.filled_ns = monotonic_ns(),
	};
	c->users = user;
	return user;
}

/* False: it has no token left. */
static bool user_pays(struct control *c, struct user *user)
{
	fill(user);
	if (user->tokens_ns < c->token_ns)
		return false;
	user->tokens_ns -= c->token_ns;
	return true;
}

/* Enough to be worth looking: so many come back between two looks. */
bool user_can_pay(struct control *c, struct user *user)
{
	fill(user);
	return user->tokens_ns >= MAX(c->token_ns, REFILL_NS / 2);
}

void users_free(struct control *c)
{
	while (c->users) {
		struct user *user = c->users;

		c->users = user->next;
		free(user);
	}
}

/* ---- connections ---- */

void client_free(struct client *client)
{
	struct control *c = client->control;

	LIST_REMOVE(client, link);
	client->user->clients--;
	c->figures.clients--;
	sd_event_source_disable_unref(client->source);
	hang_up(&c->ended, client->fd);
	free(client->metrics);
	free(client);
}

int client_send(struct client *client, const void *packet, size_t len)
{
	ssize_t n = send(client->fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : 0;
}

int client_send_fd(struct client *client, const void *packet, size_t len, int fd)
{
	return send_fds(client->fd, packet, len, &fd, 1, MSG_DONTWAIT);
}

static void want_events(struct client *client)
{
	uint32_t events = 0;

	if (!client->unread)
		events |= EPOLLIN;
	if (client->missed)
		events |= EPOLLOUT;
	sd_event_source_set_io_events(client->source, events);
	/* Of a hang-up epoll tells always, in vain again and again where nobody may read it. */
	sd_event_source_set_enabled(client->source, events ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int send_event(struct client *client, const struct gpreempt_event *event)
{
	union wire_packet p;

	wire_list_one(&p, WIRE_EVENT, 0, event);
	return client_send(client, &p, p.h.bytes);
}

/* Never closes: this may be in the middle of a request of the same client. */
void client_send_event(struct client *client, const struct gpreempt_event *event)
{
	if (!client->missed && send_event(client, event) != -EAGAIN)
		return;
	if (client->missed++ == 0)
		want_events(client);
}

static void tell_missed(struct client *client)
{
	struct gpreempt_event event = { .kind = GPREEMPT_EVENT_MISSED, .count = client->missed };

	event.time_ns = clock_ns(CLOCK_REALTIME);
	snprintf(event.text, sizeof(event.text), "%llu events were lost: they were not read",
		 (unsigned long long)client->missed);
	if (send_event(client, &event) == -EAGAIN)
		return;
	client->missed = 0;
	want_events(client);
}

static void stop_reading(struct client *client)
{
	client->unread = true;
	want_events(client);
	control_refill_later(client->control);
}

void client_read_again(struct client *client)
{
	client->unread = false;
	want_events(client);
}

/* Told once that it asks too much; from then on it only waits. */
static int warn(struct client *client, uint32_t seq)
{
	struct control *c = client->control;
	struct wire_error e;

	c->figures.limited++;
	client->warned = true;
	wire_error_set(&e, seq, EBUSY, GPREEMPT_ERROR_REFUSED,
		       "ask less often, or raise requests_per_second in gpreempt.conf",
		       "more than %llu requests a second of one user; from now on they wait",
		       (unsigned long long)(NSEC_PER_SEC / c->token_ns));
	stop_reading(client);
	return client_send(client, &e, sizeof(e));
}

static const char *who_upgrades(uint8_t version)
{
	return version < WIRE_VERSION ? "upgrade gpreempt and libgpreempt" :
	       version > WIRE_VERSION ? "upgrade gpreemptd" :
					"gpreempt and gpreemptd should be of one version";
}

/* Of a newer client, which goes on with less: it asks for what nobody here knows. */
static bool is_ahead(int error)
{
	return error == -EOPNOTSUPP || error == -E2BIG;
}

static struct wire_header header_of(const void *packet, size_t len)
{
	struct wire_header h = { .version = WIRE_VERSION };

	if (len >= sizeof(h))
		memcpy(&h, packet, sizeof(h));
	return h;
}

static int refuse_packet(struct client *client, const void *packet, size_t len, int error,
			 const char *why)
{
	struct wire_header h = header_of(packet, len);
	struct wire_error e;

	client->control->figures.garbage++;
	wire_error_set(&e, h.magic == WIRE_MAGIC ? h.seq : 0, -error, wire_error_kind_of(-error),
		       who_upgrades(h.version), "%s", why);
	if (error == -EPROTO) {
		e.h.version = h.version; /* else it would not read why */
		e.h.since = h.since;
	}
	if (is_ahead(error))
		return client_send(client, &e, sizeof(e));
	client_send(client, &e, sizeof(e));
	return error;
}

static int take_packet(struct client *client, const char *packet, size_t len)
{
	struct control *c = client->control;
	union wire_any_request request;
	const char *why;
	int r;

	if (len > WIRE_REQUEST_MAX)
		return refuse_packet(client, packet, WIRE_REQUEST_MAX, -EMSGSIZE,
				     "no request is that long");
	r = wire_check_request(packet, len, &request, &why);
	if (r < 0 && !is_ahead(r))
		return refuse_packet(client, packet, len, r, why);
	if (!user_pays(c, client->user))
		return warn(client, header_of(packet, len).seq);
	if (r < 0)
		return refuse_packet(client, packet, len, r, why);
	c->figures.requests++;
	return request_answer(client, &request);
}

/* One packet, so that everybody has a turn. An error: it is done with. */
static int read_packet(struct client *client)
{
	char packet[WIRE_REQUEST_MAX];
	ssize_t n;

	if (client->warned && !user_can_pay(client->control, client->user)) {
		stop_reading(client);
		return 0;
	}
	if (packet_has_files(client->fd)) {
		client->control->figures.garbage++;
		return -EBADMSG;
	}
	n = recv(client->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	return take_packet(client, packet, (size_t)n);
}

static int on_socket(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct client *client = user;
	int r = 0;

	if (revents & EPOLLOUT)
		tell_missed(client);
	if (revents & EPOLLIN)
		r = read_packet(client);
	else if (revents & (EPOLLHUP | EPOLLERR))
		r = -ECONNRESET;
	if (r < 0)
		client_free(client);
	return 0;
}

/* NULL: it may come in. */
static const char *no_room(const struct control *c, const struct user *user)
{
	if (!user)
		return "people of too many users ask at once";
	/* The machine's owner comes in, see user_get(). */
	if (c->figures.clients >= c->config->clients && user->uid != 0 && user->uid != geteuid())
		return "too many clients are connected";
	if (user->clients >= c->config->clients_per_uid)
		return "you have too many connections";
	return NULL;
}

static void turn_away(struct control *c, int fd, const char *why)
{
	struct wire_error e;

	c->figures.refused++;
	wire_error_set(&e, 0, EBUSY, GPREEMPT_ERROR_REFUSED,
		       "close some, or raise the limits under [control] in gpreempt.conf", "%s",
		       why);
	send(fd, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL);
	hang_up(&c->ended, fd);
}

static int let_in(struct control *c, int fd, const struct ucred *cred, struct user *user)
{
	struct client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	*client = (struct client){
		.control = c,
		.user = user,
		.fd = fd,
		.pid = cred->pid,
		.gid = cred->gid,
	};
	r = sd_event_add_io(c->parts.loop, &client->source, fd, EPOLLIN, on_socket, client);
	if (r < 0) {
		free(client);
		return r;
	}
	LIST_INSERT_HEAD(&c->clients, client, link);
	user->clients++;
	c->figures.clients++;
	c->figures.connections++;
	rights_find(client);
	return 0;
}

void client_new(struct control *c, int fd)
{
	const int buffer = ANSWER_BUFFER;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct user *user;
	const char *why;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		hang_up(&c->ended, fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	user = user_get(c, cred.uid);
	why = no_room(c, user);
	if (!why && !user_pays(c, user))
		why = "too many requests of one user";
	if (!why && let_in(c, fd, &cred, user) < 0)
		why = "out of memory";
	if (why)
		turn_away(c, fd, why);
}
