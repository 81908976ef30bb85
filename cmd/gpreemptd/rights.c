/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>

#include "cmd/gpreemptd/control_internal.h"

#define GROUPS_MAX 65536u /* NGROUPS_MAX of Linux */

/* Asks the machine's user database, which may be slow: only when the name is another. */
void rights_set_group(struct control *c)
{
	const char *name = c->config->group;
	const struct group *group = name[0] ? getgrnam(name) : NULL;

	c->has_group = group != NULL;
	if (group)
		c->group = group->gr_gid;
}

/* The groups it had when it connected: SO_PEERGROUPS of socket(7). */
static bool is_member(int fd, gid_t group)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t len = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0)
		return false;
	if (errno != ERANGE || len > GROUPS_MAX * sizeof(*groups))
		return false;
	groups = malloc(len);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

void rights_find(struct client *client)
{
	const struct control *c = client->control;

	client->in_group =
		c->has_group && (client->gid == c->group || is_member(client->fd, c->group));
	/* Whoever runs the daemon, on a software device, is its master. */
	client->privileged =
		client->user->uid == 0 || client->user->uid == geteuid() || client->in_group;
}

/* Everything about this user's jobs. */
static bool sees(const struct client *client, uid_t uid)
{
	return client->privileged || client->user->uid == uid;
}

/* That others are there at all may be nobody's business. */
static bool sees_others(const struct client *client)
{
	return client->privileged || client->control->config->show_others;
}

uid_t rights_sees_whose(const struct client *client)
{
	return sees_others(client) ? SCHEDULER_ANYBODY : client->user->uid;
}

bool rights_sees_event(const struct client *client, const struct gpreempt_event *event)
{
	switch (wire_event_kind(event->kind)->audience) {
	case WIRE_TO_ALL:
		return true;
	case WIRE_TO_NEIGHBOURS:
		return sees_others(client);
	default:
		return event->pid ? sees(client, event->uid) : client->privileged;
	}
}

void rights_reduce_status(const struct client *client, struct gpreempt_daemon_status *status)
{
	status->privileged = client->privileged;
	if (!client->privileged)
		wire_hide(&wire_status_record, status);
	if (!sees_others(client))
		memset(status->blind, 0, sizeof(status->blind));
}

void rights_reduce_gpu(const struct client *client, struct gpreempt_daemon_gpu *gpu)
{
	if (!client->privileged)
		wire_hide(&wire_gpu_record, gpu);
}

void rights_reduce_job(const struct client *client, struct gpreempt_daemon_job *job)
{
	job->detailed = sees(client, job->uid);
	if (!job->detailed)
		wire_hide(&wire_job_record, job);
}

static int refuse(const struct client *client, uint32_t seq, const char *what,
		  struct wire_error *ret)
{
	const struct control *c = client->control;
	char hint[sizeof(ret->hint)];

	if (c->has_group)
		snprintf(hint, sizeof(hint), "ask root, or join the group %s", c->config->group);
	else
		snprintf(hint, sizeof(hint), "ask root");
	wire_error_set(ret, seq, EPERM, GPREEMPT_ERROR_REFUSED, hint, "you may not %s", what);
	return -EPERM;
}

bool rights_owns(const struct client *client, pid_t pid)
{
	uid_t uid;

	return client->privileged ||
	       (scheduler_uid_of(client->control->parts.scheduler, pid, &uid) >= 0 &&
		uid == client->user->uid);
}

/* What is not a process's own doing may only be lowered by its owner. */
static int check_class(const struct client *client, const struct wire_class *want,
		       struct wire_error *ret)
{
	const uint32_t seq = want->h.seq;

	if (want->flags & WIRE_CLASS_WITHDRAW) /* of one's own requests, which only lower */
		return 0;
	if (want->job_class == GPREEMPT_CLASS_ONLINE)
		return refuse(client, seq, "make a job online", ret);
	if (want->job_class == GPREEMPT_CLASS_UNKNOWN) /* an offline job would escape */
		return refuse(client, seq, "take a job out of its class", ret);
	if (want->priority != 0 && want->priority != WIRE_KEEP)
		return refuse(client, seq, "give a job a priority", ret);
	if (want->flags & WIRE_CLASS_CRITICAL || want->target_us)
		return refuse(client, seq, "make a job latency-critical or give it a target", ret);
	return 0;
}

static int check_own(const struct client *client, uint32_t seq, pid_t pid, const char *what,
		     struct wire_error *ret)
{
	uid_t uid;
	int r;

	r = scheduler_uid_of(client->control->parts.scheduler, pid, &uid);
	if (r < 0) {
		wire_error_set(ret, seq, ESRCH, GPREEMPT_ERROR_ABSENT,
			       "see the pids with: gpreempt list",
			       "no process %d that uses a GPU is known", pid);
		return r;
	}
	return client->user->uid == uid ? 0 : refuse(client, seq, what, ret);
}

int rights_check(const struct client *client, const union wire_any_request *request,
		 struct wire_error *ret_error)
{
	const struct wire_header *h = &request->h;
	char what[64];

	if (client->privileged)
		return 0;
	switch (h->type) {
	case WIRE_STATUS:
	case WIRE_GPUS:
	case WIRE_JOBS:
	case WIRE_SUBSCRIBE:
		return 0;
	case WIRE_POLICY:
		if (!request->policy.name[0])
			return 0;
		return refuse(client, h->seq, "change the policy", ret_error);
	case WIRE_CLASS:
		return check_class(client, &request->job_class, ret_error);
	case WIRE_HINT:
	case WIRE_HINT_PAGE:
		return check_own(client, h->seq,
				 request->hint.pid ? request->hint.pid : client->pid,
				 "announce work of other people's jobs", ret_error);
	case WIRE_RELEASE: /* nor one's own: again and again, it would never make room */
		return refuse(client, h->seq, "take a job out of a hold", ret_error);
	default:
		snprintf(what, sizeof(what), "ask for \"%s\"", wire_type_name(h->type));
		return refuse(client, h->seq, what, ret_error);
	}
}
