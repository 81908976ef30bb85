/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/control_internal.h"
#include "cmd/gpreemptd/daemon_internal.h"

#define AHEAD_MAX_NS (3600 * NSEC_PER_SEC) /* too long anyway, but no overflow */

static int answer_count(struct client *client, const struct wire_header *h, uint64_t count)
{
	struct wire_answer a = { .h = wire_header(h->type, sizeof(a), h->seq), .count = count };

	return client_send(client, &a, sizeof(a));
}

#define answer_error(client, seq, error, hint, ...) \
	({ \
		struct wire_error _e; \
\
		wire_error_set(&_e, seq, error, wire_error_kind_of(error), hint, __VA_ARGS__); \
		client_send(client, &_e, sizeof(_e)); \
	})

static void changed(const struct client *client)
{
	daemon_turn_soon(client->control->parts.daemon);
}

/* ---- looking ---- */

static int answer_page(struct client *client, const struct wire_header *h, const void *entries,
		       size_t n, uint32_t total, uint64_t next)
{
	const size_t size = wire_record_of(h->type)->size;
	union wire_packet p;

	wire_list_begin(&p, h->type, h->seq);
	for (size_t i = 0; i < n; i++)
		wire_list_add(&p, (const char *)entries + i * size);
	p.list.total = total;
	p.list.next = next;
	return client_send(client, &p, p.h.bytes);
}

static int answer_status(struct client *client, const union wire_any_request *r)
{
	const struct control_parts *parts = &client->control->parts;
	struct gpreempt_daemon_status s = { .size = sizeof(s) };

	scheduler_status(parts->scheduler, &s);
	daemon_status(parts->daemon, &s);
	rights_reduce_status(client, &s);
	return answer_page(client, &r->h, &s, 1, 1, 0);
}

#define PAGE_MAX 32u /* entries that are collected at once; a packet may have room for fewer */

static size_t page_room(uint32_t type)
{
	return MIN(PAGE_MAX, wire_list_room(type));
}

static int answer_gpus(struct client *client, const union wire_any_request *r)
{
	struct gpreempt_daemon_gpu gpus[PAGE_MAX];
	uint64_t from = r->request.from;
	uint32_t total;
	size_t n = scheduler_gpus(client->control->parts.scheduler, from, gpus,
				  page_room(WIRE_GPUS), &total);

	for (size_t i = 0; i < n; i++)
		rights_reduce_gpu(client, &gpus[i]);
	return answer_page(client, &r->h, gpus, n, total, from + n);
}

static int answer_jobs(struct client *client, const union wire_any_request *r)
{
	struct gpreempt_daemon_job jobs[PAGE_MAX];
	uint64_t from = r->request.from;
	uint32_t total;
	size_t n = scheduler_jobs(client->control->parts.scheduler, &from,
				  rights_sees_whose(client), jobs, page_room(WIRE_JOBS), &total);

	for (size_t i = 0; i < n; i++)
		rights_reduce_job(client, &jobs[i]);
	return answer_page(client, &r->h, jobs, n, total, from);
}

/* Pages of one text: it is made for the first and kept until the last was read. */
static int answer_metrics(struct client *client, const union wire_any_request *r)
{
	const struct control *c = client->control;
	uint64_t from = r->request.from;
	union wire_packet p;
	int error;

	if (from == 0) {
		free(steal_ptr(&client->metrics));
		client->metrics_len = 0;
		error = metrics_write(c->parts.scheduler, c, &client->metrics,
				      &client->metrics_len);
		if (error < 0)
			return answer_error(client, r->h.seq, -error, NULL,
					    "cannot write the metrics: %s", strerror(-error));
	}
	if (from > client->metrics_len)
		return answer_error(client, r->h.seq, EINVAL, "begin with 0",
				    "the metrics have no byte %llu", (unsigned long long)from);
	wire_list_begin(&p, WIRE_METRICS, r->h.seq);
	p.list.total = (uint32_t)client->metrics_len;
	wire_list_text(&p, client->metrics + from, client->metrics_len - from);
	p.list.next = from + p.list.n;
	return client_send(client, &p, p.h.bytes);
}

static int answer_trip(struct client *client, const union wire_any_request *r)
{
	uint32_t gpu = (uint32_t)r->request.from;
	const char *text = scheduler_trip(client->control->parts.scheduler, gpu);
	union wire_packet p;

	if (!text)
		return answer_error(client, r->h.seq, ENOENT, "see the GPUs with: gpreempt status",
				    "GPU %u has not tripped, or is not known", gpu);
	wire_list_begin(&p, WIRE_TRIP, r->h.seq);
	wire_list_text(&p, text, strlen(text));
	p.list.total = p.list.n;
	return client_send(client, &p, p.h.bytes);
}

static int subscribe(struct client *client, const union wire_any_request *r)
{
	client->subscribed = true;
	return answer_count(client, &r->h, 0);
}

/* ---- doing ---- */

static int answer_policy(struct client *client, const union wire_any_request *r)
{
	struct scheduler *s = client->control->parts.scheduler;
	struct gpreempt_policy a = { .size = sizeof(a) };
	const struct gpol_ops *policy = NULL;

	config_policies(a.names, sizeof(a.names), " ");
	if (r->policy.name[0]) {
		policy = gpol_find(r->policy.name);
		if (!policy)
			return answer_error(
				client, r->h.seq, EINVAL, "see the policies with: gpreempt policy",
				"no policy '%s'; there are: %s", r->policy.name, a.names);
		scheduler_set_policy(s, policy);
		changed(client);
	}
	wire_text_set(a.name, sizeof(a.name), scheduler_policy(s)->name);
	return answer_page(client, &r->h, &a, 1, 1, 0);
}

static int answer_class(struct client *client, const union wire_any_request *r)
{
	const struct wire_class *w = &r->job_class;
	const struct class_request want = {
		.said = *w,
		.only_uid = client->privileged ? (uid_t)-1 : client->user->uid,
	};
	int n = scheduler_class(client->control->parts.scheduler, &want);

	switch (n) {
	case -ESRCH:
		return answer_error(client, w->h.seq, ESRCH, "see the pids with: gpreempt list",
				    "no process %d", w->pid);
	case -EPERM:
		return answer_error(client, w->h.seq, EPERM, "ask its owner, or root",
				    "process %d is another user's", w->pid);
	case -EAGAIN:
		return answer_error(client, w->h.seq, EBUSY,
				    "take up again with: gpreempt continue",
				    "no GPU is taken up: the daemon is paused, or has lost them");
	case -ENOSPC:
		return answer_error(client, w->h.seq, ENOSPC,
				    "write a rule into gpreempt.conf, which covers many",
				    "too many requests for classes are in force");
	default:
		break;
	}
	if (n < 0)
		return answer_error(client, w->h.seq, -n, NULL, "cannot class it: %s",
				    strerror(-n));
	changed(client);
	return answer_count(client, &w->h, (uint64_t)n);
}

static int hint_error(struct client *client, const struct wire_header *h, pid_t pid, int error)
{
	switch (error) {
	case -EPERM:
	case -EAGAIN:
		return answer_error(client, h->seq, EPERM,
				    "root makes it online: gpreempt class PID online",
				    "process %d is not online, so its hints are not heeded", pid);
	case -ENOENT:
	case -ESRCH:
		return answer_error(client, h->seq, ENOENT, "see the pids with: gpreempt list",
				    "no process %d that uses a GPU is known", pid);
	case -EINVAL:
		return answer_error(client, h->seq, EINVAL, "announce it when it is near",
				    "work that comes in more than a second");
	default:
		return answer_error(client, h->seq, -error, NULL, "cannot take the hint: %s",
				    strerror(-error));
	}
}

/* The quick way: what a hint leads to is begun before anybody is told. */
static int answer_hint(struct client *client, const union wire_any_request *r)
{
	struct scheduler *s = client->control->parts.scheduler;
	pid_t pid = r->hint.pid ? r->hint.pid : client->pid;
	uint64_t at_ns = 0;
	int error;

	if (r->hint.ahead_ns)
		at_ns = monotonic_ns() + MIN(r->hint.ahead_ns, AHEAD_MAX_NS);
	error = scheduler_hint(s, pid, at_ns, r->hint.for_ns);
	if (error < 0)
		return hint_error(client, &r->h, pid, error);
	scheduler_act(s);
	changed(client);
	return answer_count(client, &r->h, 0);
}

/* ---- pages of hints, and waiting for them ---- */

static int give_page(struct client *client, uint32_t seq, pid_t pid)
{
	struct wire_answer a = { .h = wire_header(WIRE_HINT_PAGE, sizeof(a), seq) };
	_cleanup_close_ int fd = -1;
	int error;

	error = scheduler_hint_page(client->control->parts.scheduler, pid, &fd);
	if (error < 0)
		return error;
	client_send_fd(client, &a, sizeof(a), fd); /* who has hung up needs none */
	return 0;
}

static bool may_become_online(int error)
{
	return error == -ENOENT || error == -EAGAIN;
}

/* They keep their connections, of which others of the user's need some. */
static bool may_wait(const struct client *client)
{
	const struct control *c = client->control;
	uint32_t all = 0, own = 0;

	for_each_client(c, other) {
		all += other->page_pid != 0;
		own += other->page_pid && other->user == client->user;
	}
	return all < MAX(c->config->clients / 2, 1u) &&
	       own < MAX(c->config->clients_per_uid / 2, 1u);
}

static int begin_page_wait(struct client *client, const struct wire_hint *r, pid_t pid)
{
	if (client->page_pid)
		return answer_error(client, r->h.seq, EBUSY, NULL, "a page is waited for already");
	if (!may_wait(client))
		return answer_error(client, r->h.seq, EBUSY, "it is asked again by and by",
				    "too many processes wait for a page of hints");
	client->page_pid = pid;
	client->page_seq = r->h.seq;
	client->page_until_ns = monotonic_ns() + MIN(r->wait_ns, PAGE_WAIT_MAX_NS);
	control_be_patient(client->control);
	return 0;
}

static int answer_hint_page(struct client *client, const union wire_any_request *r)
{
	pid_t pid = r->hint.pid ? r->hint.pid : client->pid;
	int error = give_page(client, r->h.seq, pid);

	if (may_become_online(error) && r->hint.wait_ns && pid > 0)
		return begin_page_wait(client, &r->hint, pid);
	return error < 0 ? hint_error(client, &r->h, pid, error) : 0;
}

void request_page_again(struct client *client, uint64_t now_ns)
{
	const struct wire_header h = { .seq = client->page_seq };
	pid_t pid = client->page_pid;
	int error = -ENOENT;

	if (rights_owns(client, pid))
		error = give_page(client, h.seq, pid);
	if (may_become_online(error) && now_ns < client->page_until_ns)
		return;
	client->page_pid = 0;
	if (error < 0)
		hint_error(client, &h, pid, error);
}

static int begin_pause(struct client *client, const union wire_any_request *r)
{
	struct control *c = client->control;

	if (client->waits)
		return answer_error(client, r->h.seq, EBUSY, NULL, "a pause is on its way already");
	client->waits = true;
	client->waits_seq = r->h.seq;
	client->waits_until_ns = monotonic_ns() + PAUSE_WAIT_NS;
	control_be_patient(c);
	daemon_pause(c->parts.daemon);
	return 0;
}

void request_end_wait(struct client *client, int error)
{
	struct wire_header h = { .type = WIRE_PAUSE, .seq = client->waits_seq };

	client->waits = false;
	if (error == 0)
		answer_count(client, &h, 0);
	else if (error == -ECANCELED)
		answer_error(client, h.seq, ECANCELED, NULL, "somebody continued meanwhile");
	else if (error == -EBUSY)
		answer_error(client, h.seq, EBUSY,
			     "see its log; stop gpreemptd before GPUs are partitioned or their "
			     "driver is removed",
			     "everything is let go of, but the driver still counts processes of "
			     "gpreemptd that have ended");
	else
		answer_error(client, h.seq, ETIMEDOUT,
			     "it still lets go when the driver answers: see gpreempt status",
			     "not everything is let go of yet; nothing new is held");
}

static int do_continue(struct client *client, const union wire_any_request *r)
{
	struct control *c = client->control;
	const char *why;
	int error;

	error = daemon_continue(c->parts.daemon, &why);
	if (error < 0)
		return answer_error(client, r->h.seq, -error,
				    "it is tried again every few seconds; see gpreempt doctor",
				    "cannot take up the GPUs: %s", why);
	control_let_go(c, -ECANCELED);
	return answer_count(client, &r->h, 0);
}

static int do_rearm(struct client *client, const union wire_any_request *r)
{
	uint32_t gpu = (uint32_t)r->request.from;

	if (scheduler_rearm(client->control->parts.scheduler, gpu) < 0)
		return answer_error(client, r->h.seq, ENOENT, "see the GPUs with: gpreempt status",
				    "no GPU %u", gpu);
	changed(client);
	return answer_count(client, &r->h, 0);
}

static int do_release(struct client *client, const union wire_any_request *r)
{
	int n = scheduler_release(client->control->parts.scheduler, (pid_t)r->request.from);

	if (n < 0)
		return answer_error(client, r->h.seq, -n, "see the pids with: gpreempt list",
				    "no process %d that uses a GPU is known",
				    (pid_t)r->request.from);
	changed(client);
	return answer_count(client, &r->h, (uint64_t)n);
}

static int do_reload(struct client *client, const union wire_any_request *r)
{
	const struct control_parts *parts = &client->control->parts;
	struct config_mistake m = { 0 };
	char place[CONFIG_PLACE_SIZE];
	int error;

	error = daemon_reload(parts->daemon, &m);
	if (error < 0)
		return answer_error(
			client, r->h.seq, -error, m.hint[0] ? m.hint : "nothing was changed",
			"the configuration is not taken: %s%s", config_place(&m, place), m.text);
	return answer_count(client, &r->h, 0);
}

int request_answer(struct client *client, const union wire_any_request *request)
{
	static int (*const answers[])(struct client *, const union wire_any_request *) = {
		[WIRE_STATUS] = answer_status,	     [WIRE_GPUS] = answer_gpus,
		[WIRE_JOBS] = answer_jobs,	     [WIRE_POLICY] = answer_policy,
		[WIRE_CLASS] = answer_class,	     [WIRE_HINT] = answer_hint,
		[WIRE_HINT_PAGE] = answer_hint_page, [WIRE_SUBSCRIBE] = subscribe,
		[WIRE_METRICS] = answer_metrics,     [WIRE_PAUSE] = begin_pause,
		[WIRE_CONTINUE] = do_continue,	     [WIRE_REARM] = do_rearm,
		[WIRE_RELEASE] = do_release,	     [WIRE_RELOAD] = do_reload,
		[WIRE_TRIP] = answer_trip,
	};
	struct wire_error refusal;

	if (rights_check(client, request, &refusal) < 0)
		return client_send(client, &refusal, sizeof(refusal));
	return answers[request->h.type](client, request);
}
