/* SPDX-License-Identifier: MIT */
/*
 * What people asked processes to be. The last request that matches a process counts; those of
 * users who may not do everything are told apart, because they only lower.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define CGROUPS_NS NSEC_PER_SEC /* between looks at which cgroups are gone */
#define ANYBODY ((uid_t)-1)
#define REQUESTS_OF_USERS (CLASS_REQUESTS_MAX / 2) /* of however many: the rest is root's */

static bool is_of_user(const struct class_request *r)
{
	return r->only_uid != ANYBODY;
}

/* Is @p the process of the request, or a descendant of it? */
static bool descends(const struct process *p, const struct class_entry *e)
{
	const struct identity *id = &p->identity;

	if (!e->start_ticks)
		return false; /* not known yet which process is meant */
	if (p->pid == e->request.said.pid)
		return id->stat.start_ticks == e->start_ticks;
	for (size_t i = 0; i < id->n_ancestors; i++) {
		if (id->ancestors[i].pid == e->request.said.pid)
			return id->ancestors[i].start_ticks == e->start_ticks;
	}
	return false;
}

static bool raises(const struct class_request *r)
{
	return r->said.job_class != JOB_OFFLINE;
}

static bool matches(const struct process *p, const struct class_entry *e)
{
	const struct class_request *r = &e->request;

	if (is_of_user(r) && p->identity.uid != r->only_uid)
		return false;
	switch (r->said.selector) {
	case WIRE_BY_PID:
		return descends(p, e);
	case WIRE_BY_CGROUP:
		return identity_is_in_cgroup(&p->identity, r->said.pattern, raises(r));
	case WIRE_BY_NAME:
		return match_glob(r->said.pattern, p->identity.stat.comm);
	case WIRE_BY_CONTAINER:
		return identity_is_in_container(&p->identity, r->said.pattern, raises(r));
	default:
		return false;
	}
}

/*
 * Any process can take a name. A request by name raises whom it found when it was made, as long as
 * they keep it, and nobody who comes by the name later.
 */
static bool is_too_late(const struct class_entry *e, uint64_t had, uint64_t fresh)
{
	return e->request.said.selector == WIRE_BY_NAME && raises(&e->request) &&
	       e->number != had && e->number != fresh;
}

/* Is it the path of one cgroup, and not a pattern? */
static bool is_path(const char *pattern)
{
	return pattern[0] == '/' && pattern[1] && !strpbrk(pattern, "*?\\") &&
	       !strstr(pattern, "/../") && !strstr(pattern, "/./");
}

static bool is_at(const char *root, const char *hierarchy, const char *path)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s/%s%s", root, hierarchy, path);

	return n > 0 && (size_t)n < sizeof(full) && access(full, F_OK) == 0;
}

/*
 * In any of the hierarchies mounted at or below @root: the unified one is that itself, the
 * older ones have a folder each.
 */
static bool is_cgroup_there(const char *root, const char *path)
{
	const struct dirent *e;
	bool there = false;
	DIR *dir;

	if (is_at(root, ".", path))
		return true;
	if (is_at(root, ".", "/cgroup.procs"))
		return false;
	dir = opendir(root);
	if (!dir)
		return false;
	while (!there && (e = readdir(dir)))
		there = e->d_name[0] != '.' && is_at(root, e->d_name, path);
	closedir(dir);
	return there;
}

/* Requests come before the cgroup, too: only one that was there can be gone. */
static bool is_cgroup_gone(const struct scheduler *s, struct class_entry *e)
{
	if (e->request.said.selector != WIRE_BY_CGROUP || !s->parts.cgroup_root ||
	    !is_path(e->request.said.pattern))
		return false;
	if (!is_cgroup_there(s->parts.cgroup_root, e->request.said.pattern))
		return e->was_there;
	e->was_there = true;
	return false;
}

void class_requests_match(struct scheduler *s, struct process *p, uint64_t fresh)
{
	const uint64_t had = p->by_root.number;

	/* What was asked by pid stays with it; patterns may no longer fit after an exec. */
	if (p->by_root.said.selector != WIRE_BY_PID)
		p->by_root = (struct asked){ 0 };
	if (p->by_user.said.selector != WIRE_BY_PID)
		p->by_user = (struct asked){ 0 };
	for (size_t i = 0; i < s->n_requests; i++) {
		struct class_entry *e = &s->requests[i];
		struct asked *asked = is_of_user(&e->request) ? &p->by_user : &p->by_root;

		if (e->number <= asked->number || is_too_late(e, had, fresh) || !matches(p, e))
			continue;
		if (!e->was_there)
			is_cgroup_gone(s, e); /* it may be before the next look */
		*asked = (struct asked){ e->number, e->request.said };
	}
}

static void forget(struct scheduler *s, size_t at)
{
	closep(&s->requests[at].pidfd);
	s->n_requests--;
	memmove(&s->requests[at], &s->requests[at + 1],
		(s->n_requests - at) * sizeof(*s->requests));
}

/* Without a descriptor that tells, it is asked for. */
static bool is_process_gone(struct scheduler *s, const struct class_entry *e)
{
	if (e->pidfd >= 0)
		return has_ended(e->pidfd);
	ops(s)->ask(s->b, e->request.said.pid, PROC_BIT(PROC_STAT));
	return false;
}

static void forget_gone(struct scheduler *s, size_t at)
{
	const struct class_request *r = &s->requests[at].request;

	if (r->said.selector == WIRE_BY_CGROUP)
		log_line(LOG_LEVEL_INFO, "cgroup %s is gone, and what was asked of it",
			 r->said.pattern);
	forget(s, at);
}

void class_requests_forget_dead(struct scheduler *s)
{
	bool look = s->now_ns >= s->cgroups_ns;

	for (size_t i = s->n_requests; i-- > 0;) {
		struct class_entry *e = &s->requests[i];

		if (e->request.said.selector == WIRE_BY_PID ? is_process_gone(s, e) :
							      look && is_cgroup_gone(s, e))
			forget_gone(s, i);
	}
	if (look)
		s->cgroups_ns = s->now_ns + CGROUPS_NS;
}

static bool is_same(const struct class_request *a, const struct class_request *b)
{
	return a->said.selector == b->said.selector && a->only_uid == b->only_uid &&
	       (a->said.selector == WIRE_BY_PID ? a->said.pid == b->said.pid :
						  strcmp(a->said.pattern, b->said.pattern) == 0);
}

void class_requests_answered(struct scheduler *s, pid_t pid, uint64_t start_ticks)
{
	bool found = false;

	for (size_t i = s->n_requests; i-- > 0;) {
		struct class_entry *e = &s->requests[i];

		if (e->request.said.selector != WIRE_BY_PID || e->request.said.pid != pid)
			continue;
		if (!start_ticks || (e->start_ticks && e->start_ticks != start_ticks)) {
			forget_gone(s, i);
		} else if (!e->start_ticks) {
			e->start_ticks = start_ticks;
			found = true;
		}
	}
	if (found)
		processes_judge(s);
}

void class_requests_done(struct scheduler *s)
{
	while (s->n_requests)
		forget(s, s->n_requests - 1);
}

/* One in place of the same one before it. Takes over @pidfd. */
static int add(struct scheduler *s, const struct class_request *request, uint64_t start_ticks,
	       int pidfd, uint64_t *ret_number)
{
	uint32_t of_user = 0, of_users = 0;

	for (size_t i = s->n_requests; i-- > 0;) {
		const struct class_request *other = &s->requests[i].request;

		if (is_same(other, request)) {
			forget(s, i);
			continue;
		}
		of_user += other->only_uid == request->only_uid;
		of_users += is_of_user(other);
	}
	if (s->n_requests == CLASS_REQUESTS_MAX ||
	    (is_of_user(request) &&
	     (of_user >= CLASS_REQUESTS_PER_USER || of_users >= REQUESTS_OF_USERS))) {
		closep(&pidfd);
		return -ENOSPC;
	}
	*ret_number = ++s->request_numbers;
	s->requests[s->n_requests++] = (struct class_entry){
		.request = *request,
		.number = *ret_number,
		.start_ticks = start_ticks,
		.pidfd = pidfd,
	};
	return 0;
}

/*
 * By pid: which process that is, and whether it is the asker's. Of one that does not use a GPU
 * (yet) it has to be asked when it started; whose it is, is known.
 */
static int find_subject(struct scheduler *s, const struct class_request *request,
			uint64_t *ret_start_ticks, int *ret_pidfd)
{
	const struct process *p = process_find(s, request->said.pid);
	uid_t uid;
	int r;

	*ret_pidfd = ops(s)->pidfd(s->b, request->said.pid);
	if (*ret_pidfd == -ESRCH)
		return -ESRCH;
	r = scheduler_uid_of(s, request->said.pid, &uid);
	if (r >= 0 && is_of_user(request) && uid != request->only_uid)
		r = -EPERM;
	if (r < 0) {
		closep(ret_pidfd);
		return r;
	}
	*ret_start_ticks = p ? p->identity.stat.start_ticks : 0;
	return 0;
}

/* Nobody keeps what was asked by it, though by pid they would have beyond its end. */
static int withdraw(struct scheduler *s, const struct class_request *request)
{
	uint64_t number = 0;
	int count = 0;

	for (size_t i = s->n_requests; i-- > 0;) {
		if (!is_same(&s->requests[i].request, request))
			continue;
		number = s->requests[i].number;
		forget(s, i); /* there is one at most: see add() */
	}
	if (!number)
		return 0;
	scheduler_now(s);
	for_each_process(s, p)
	{
		if (p->by_root.number != number && p->by_user.number != number)
			continue;
		if (p->by_root.number == number)
			p->by_root = (struct asked){ 0 };
		else
			p->by_user = (struct asked){ 0 };
		process_judge(s, p);
		count++;
	}
	return count;
}

int scheduler_class(struct scheduler *s, const struct class_request *request)
{
	uint64_t start_ticks = 0, number;
	int count = 0, pidfd = -1, r;

	if (!s->b)
		return -EAGAIN;
	if (request->said.flags & WIRE_CLASS_WITHDRAW)
		return withdraw(s, request);
	if (is_of_user(request) && request->said.job_class != JOB_OFFLINE)
		return -EPERM;
	if (request->said.selector == WIRE_BY_PID) {
		r = find_subject(s, request, &start_ticks, &pidfd);
		if (r < 0)
			return r;
	}
	r = add(s, request, start_ticks, pidfd, &number);
	if (r < 0)
		return r;
	scheduler_now(s);
	if (request->said.selector == WIRE_BY_PID && !start_ticks) {
		ops(s)->ask(s->b, request->said.pid, PROC_BIT(PROC_STAT));
		processes_take_answers(s);
	}
	for_each_process(s, p)
	{
		class_requests_match(s, p, number);
		if (p->by_root.number != number && p->by_user.number != number)
			continue;
		process_judge(s, p);
		count++;
	}
	return count;
}
