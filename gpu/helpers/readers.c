/* SPDX-License-Identifier: MIT */
#include "gpu/helpers/readers.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "gpu/helpers/helper.h"
#include "util/clock.h"

#define PATIENCE_NS (300 * NSEC_PER_MSEC)
#define START_NS (5 * NSEC_PER_SEC) /* until a reader stands: its program may have to be loaded */
#define MOST_HUNG 4u
#define MOST_READERS 64u /* that run; a user id more costs nobody much, and some have many */
#define SHUNNED 16u
#define SHUN_FIRST_NS NSEC_PER_SEC
#define SHUN_LAST_NS (60 * NSEC_PER_SEC)
#define UNUSED_NS (20 * NSEC_PER_SEC) /* then a reader is not kept */
#define TASK_ALIGN 8u
#define LOOK_NS (20 * NSEC_PER_MSEC) /* at whether one hangs that is waited for */

struct shunned { /* a process at which a reader hung */
	pid_t pid; /* 0: nobody */
	uint64_t until_ns, for_ns;
};

TAILQ_HEAD(task_list, readers_task);

struct crew { /* a reader of one user, and what is asked of it */
	LIST_ENTRY(crew) link;
	uid_t user;
	bool apart;
	bool kept; /* though it has nothing to do */
	struct helper helper; /* none, or the one that is not abandoned */
	struct reader_shared *shared;
	uint32_t number; /* of this reader */
	bool stands;
	struct task_list waiting;
	struct readers_task *sent[READER_TASKS]; /* NULL: cancelled */
	uint32_t n_sent, n_taken;
	uint64_t moved_ns; /* when the request was sent, or its last answer came */
	uint64_t used_ns;
	uint64_t spent_ns; /* by this reader */
	uint64_t start_after_ns; /* it ended before it stood */
	unsigned int hung;
	struct shunned shunned[SHUNNED];
};

struct lost { /* a reader that was abandoned */
	LIST_ENTRY(lost) link;
	struct helper helper;
	struct crew *crew; /* that counts it as hung; NULL: none does */
};

struct readers {
	struct readers_options options;
	int program;
	int epoll;
	uint32_t numbers;
	unsigned int running;
	LIST_HEAD(, crew) crews;
	LIST_HEAD(, lost) lost;
	uint64_t spent_ns;
	struct drops drops; /* sockets of those that are gone, and what came with answers */
};

/* The directory itself: asking for it reads nothing of the process. */
int readers_user_of(pid_t pid, uid_t *ret)
{
	char path[sizeof("/proc/") + 3 * sizeof(pid_t)];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*ret = st.st_uid;
	return 0;
}

const char *readers_why(int result)
{
	switch (result) {
	case -EUSERS:
		return "too many processes of its user do not let themselves be read";
	case -EPERM:
	case -EACCES:
		return "there is no right to read it";
	case -EAGAIN:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return "the machine has no room for a process that reads it";
	default:
		return "it does not let itself be read";
	}
}

static void finish(struct readers_task *t, struct readers_answer *answer)
{
	t->crew = NULL;
	t->sent = false;
	t->done(t, answer);
}

static void fail(struct readers_task *t, int error)
{
	finish(t, &(struct readers_answer){ .result = error });
}

static void fail_waiting(struct crew *c, int error)
{
	struct task_list list = TAILQ_HEAD_INITIALIZER(list);
	struct readers_task *t;

	TAILQ_CONCAT(&list, &c->waiting, link); /* done() may post anew */
	while ((t = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, t, link);
		fail(t, error);
	}
}

/* ---- processes at which readers hang ---- */

static struct shunned *find_shunned(struct crew *c, pid_t pid)
{
	for (size_t i = 0; i < SHUNNED; i++) {
		if (c->shunned[i].until_ns && c->shunned[i].pid == pid)
			return &c->shunned[i];
	}
	return NULL;
}

static bool is_shunned(struct crew *c, pid_t pid, uint64_t now_ns)
{
	const struct shunned *s = find_shunned(c, pid);

	return s && now_ns < s->until_ns;
}

/* Longer each time; where there is no more room, the one that is over first makes some. */
static void shun(struct crew *c, pid_t pid, uint64_t now_ns)
{
	struct shunned *s = find_shunned(c, pid);

	if (!s) {
		s = &c->shunned[0];
		for (size_t i = 1; i < SHUNNED; i++) {
			if (c->shunned[i].until_ns < s->until_ns)
				s = &c->shunned[i];
		}
		*s = (struct shunned){ .pid = pid };
	}
	s->for_ns = s->for_ns ? MIN(2 * s->for_ns, SHUN_LAST_NS) : SHUN_FIRST_NS;
	s->until_ns = now_ns + s->for_ns;
}

static void forgive(struct crew *c, pid_t pid)
{
	struct shunned *s = find_shunned(c, pid);

	if (s)
		*s = (struct shunned){ 0 };
}

/* ---- a reader comes and goes ---- */

static int make_shared(struct reader_shared **ret)
{
	_cleanup_close_ int fd = memfd_create(READER_PROGRAM, MFD_CLOEXEC);
	void *shared;

	if (fd < 0 || ftruncate(fd, sizeof(**ret)) < 0)
		return -errno;
	shared = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return -errno;
	*ret = shared;
	return steal_fd(&fd);
}

static void forget_shared(struct crew *c)
{
	if (c->shared)
		munmap(c->shared, sizeof(*c->shared));
	c->shared = NULL;
}

static int start(struct readers *r, struct crew *c, uint64_t now_ns)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
	_cleanup_close_ int fd = make_shared(&c->shared);
	const int files[HELPER_FILES] = { fd, r->options.file ? r->options.file : -1 };
	const char *const argv[] = { READER_PROGRAM, NULL };
	int error;

	if (fd < 0)
		return fd;
	error = helper_start(r->program, argv, files, true, &c->helper);
	if (error < 0) {
		forget_shared(c);
		return error;
	}
	epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->helper.socket, &e);
	r->running++;
	c->number = ++r->numbers;
	c->spent_ns = 0;
	c->stands = false;
	c->moved_ns = now_ns;
	return 0;
}

static void bury_lost(struct readers *r)
{
	struct lost *l = LIST_FIRST(&r->lost), *next;

	for (; l; l = next) {
		next = LIST_NEXT(l, link);
		if (!helper_bury(&l->helper))
			continue;
		if (l->crew)
			l->crew->hung--;
		LIST_REMOVE(l, link);
		free(l);
	}
}

/*
 * Without memory to remember it by, it stays a zombie of ours. Closing the socket is not enough for
 * epoll: a child of ours may have a copy.
 */
static void abandon(struct readers *r, struct crew *c, bool hung)
{
	struct lost *l = calloc(1, sizeof(*l));

	epoll_ctl(r->epoll, EPOLL_CTL_DEL, c->helper.socket, NULL);
	r->running--;
	if (r->options.ended)
		r->options.ended(r->options.user, c->number);
	helper_abandon(&c->helper, &r->drops, c->user);
	forget_shared(c);
	if (l) {
		*l = (struct lost){ .helper = c->helper, .crew = hung ? c : NULL };
		LIST_INSERT_HEAD(&r->lost, l, link);
		c->hung += hung;
	}
	c->helper = HELPER_NONE;
}

/* ---- answers ---- */

static struct readers_answer answer_at(const struct reader_shared *s, uint32_t i)
{
	const struct reader_answer a = s->answers[i];

	if (a.at > sizeof(s->answer) || a.len > sizeof(s->answer) - a.at)
		return (struct readers_answer){ .result = -EBADMSG };
	return (struct readers_answer){
		.result = a.result, .bytes = s->answer + a.at, .len = a.len
	};
}

struct message { /* of a reader */
	int fds[READER_FDS];
	uint32_t n_fds;
};

static void take_answers(struct crew *c, uint64_t now_ns, struct message *m)
{
	uint32_t n = MIN(__atomic_load_n(&c->shared->n_answers, __ATOMIC_ACQUIRE), c->n_sent);

	if (n > c->n_taken)
		c->moved_ns = now_ns;
	while (c->n_taken < n) {
		uint32_t i = c->n_taken++;
		struct readers_task *t = c->sent[i];
		struct readers_answer a = answer_at(c->shared, i);

		forgive(c, c->shared->tasks[i].pid);
		if (t && t->wants_fds) {
			a.fds = m->fds;
			a.n_fds = m->n_fds;
		}
		if (t)
			finish(t, &a);
	}
}

/* Before the reader says that it has done all. */
static void take_published(struct crew *c, uint64_t now_ns)
{
	struct message none = { .n_fds = 0 };

	if (!c->sent[0] || !c->sent[0]->wants_fds) /* whose descriptors come with the message */
		take_answers(c, now_ns, &none);
}

/* What was not begun waits again, in front. */
static void requeue(struct crew *c)
{
	for (uint32_t i = c->n_sent; i-- > c->n_taken;) {
		if (!c->sent[i])
			continue;
		c->sent[i]->sent = false;
		TAILQ_INSERT_HEAD(&c->waiting, c->sent[i], link);
	}
	c->n_sent = c->n_taken = 0;
}

/* It will not answer any more. Whatever it was at is blamed, and told @error. */
static void lose(struct readers *r, struct crew *c, uint64_t now_ns, int error)
{
	struct readers_task *culprit = NULL;
	bool stood = c->stands;

	take_published(c, now_ns);
	if (c->n_taken < c->n_sent && stood) {
		shun(c, c->shared->tasks[c->n_taken].pid, now_ns);
		culprit = c->sent[c->n_taken++];
	}
	requeue(c);
	abandon(r, c, error == -ETIMEDOUT);
	if (culprit)
		fail(culprit, error);
	if (!stood) {
		c->start_after_ns = now_ns + SHUN_FIRST_NS;
		fail_waiting(c, error);
	}
}

/* One byte, and maybe descriptors. 0: the reader has ended; -EAGAIN: nothing. */
static int receive(const struct crew *c, struct message *ret)
{
	union reader_control control = { 0 };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	do {
		n = recvmsg(c->helper.socket, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : 0;
	ret->n_fds = 0;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)))
		ret->n_fds = (uint32_t)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(ret->fds, CMSG_DATA(&control.header), ret->n_fds * sizeof(int));
	return (int)n;
}

/* The reader says that it has done all. What nobody took may be the last copy of a file. */
static void end_request(struct readers *r, struct crew *c, uint64_t now_ns, struct message *m)
{
	uint64_t spent_ns = c->shared->spent_ns;
	bool left = false;

	r->spent_ns += spent_ns - MIN(c->spent_ns, spent_ns);
	c->spent_ns = spent_ns;
	take_answers(c, now_ns, m);
	for (uint32_t i = 0; i < m->n_fds; i++) {
		left |= m->fds[i] >= 0;
		if (m->fds[i] >= 0)
			drop_later(&r->drops, m->fds[i], c->user);
	}
	if (left)
		drop_now(&r->drops);
	if (c->n_taken < c->n_sent)
		lose(r, c, now_ns, -EIO);
	else
		c->n_sent = c->n_taken = 0;
}

static void hear(struct readers *r, struct crew *c, uint64_t now_ns)
{
	struct message m;
	int n = receive(c, &m);

	if (n == -EAGAIN)
		return;
	if (n == 0) {
		lose(r, c, now_ns, -EIO);
	} else if (!c->stands) {
		c->stands = true;
		c->moved_ns = now_ns;
	} else {
		end_request(r, c, now_ns, &m);
	}
}

/* ---- requests ---- */

/* Writes @t into the request at *at. False: there is no more room. */
static bool put_task(struct crew *c, struct readers_task *t, size_t *at)
{
	size_t room = sizeof(c->shared->request) - *at, len = t->len;

	if (t->write)
		len = t->write(t, c->number, c->shared->request + *at, room);
	if (len > room)
		return false;
	if (!t->write && len)
		memcpy(c->shared->request + *at, t->request, len);
	c->shared->tasks[c->n_sent] = (struct reader_task){
		.service = t->service, .pid = t->pid, .at = (uint32_t)*at, .len = (uint32_t)len
	};
	*at = MIN((*at + len + TASK_ALIGN - 1) / TASK_ALIGN * TASK_ALIGN,
		  sizeof(c->shared->request));
	c->sent[c->n_sent++] = t;
	t->sent = true;
	return true;
}

static void put_tasks(struct crew *c, uint64_t now_ns)
{
	struct readers_task *t;
	bool alone = false;
	size_t at = 0;

	while (c->n_sent < READER_TASKS && !alone && (t = TAILQ_FIRST(&c->waiting))) {
		bool shunned = is_shunned(c, t->pid, now_ns);

		if (!shunned && c->n_sent && t->wants_fds)
			return;
		if (!shunned && !put_task(c, t, &at) && c->n_sent)
			return;
		TAILQ_REMOVE(&c->waiting, t, link);
		if (!t->sent)
			fail(t, shunned ? -ETIMEDOUT : -ENOBUFS);
		alone = t->wants_fds && c->n_sent;
	}
}

static void send_request(struct readers *r, struct crew *c, uint64_t now_ns)
{
	char byte = 0;

	put_tasks(c, now_ns);
	if (!c->n_sent)
		return;
	c->shared->n_tasks = c->n_sent;
	__atomic_store_n(&c->shared->n_answers, 0, __ATOMIC_RELEASE);
	c->moved_ns = c->used_ns = now_ns;
	if (send(c->helper.socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		lose(r, c, now_ns, -EIO);
}

static bool is_busy(const struct crew *c)
{
	return c->n_sent || !TAILQ_EMPTY(&c->waiting);
}

/* The one that has had nothing to do for the longest makes room. False: all have something. */
static bool make_room(struct readers *r)
{
	struct crew *c, *idle = NULL;

	LIST_FOREACH(c, &r->crews, link) {
		if (c->helper.pid && !is_busy(c) && !c->kept &&
		    (!idle || c->used_ns < idle->used_ns))
			idle = c;
	}
	if (idle)
		abandon(r, idle, false);
	return idle;
}

static void send_waiting(struct readers *r, struct crew *c, uint64_t now_ns)
{
	int error = 0;

	if (c->n_sent || TAILQ_EMPTY(&c->waiting))
		return;
	if (!c->helper.pid) {
		if (c->hung >= r->options.most_hung)
			error = -EUSERS;
		else if (now_ns < c->start_after_ns)
			error = -EIO;
		else if (r->running >= r->options.most && !make_room(r))
			error = -EUSERS;
		else
			error = start(r, c, now_ns);
	}
	if (error < 0)
		fail_waiting(c, error);
	else
		send_request(r, c, now_ns);
}

/* Who only waits for a processor is given more time. */
static void check_patience(struct readers *r, struct crew *c, uint64_t now_ns)
{
	uint64_t patience_ns = c->stands ? r->options.patience_ns : START_NS;

	if (!c->n_sent || now_ns - c->moved_ns < patience_ns)
		return;
	take_published(c, now_ns);
	if (c->moved_ns == now_ns)
		return;
	if (helper_is_blocked(&c->helper))
		lose(r, c, now_ns, -ETIMEDOUT);
	else
		c->moved_ns = now_ns;
}

/* ---- crews ---- */

static struct crew *crew_of(struct readers *r, uid_t user, bool apart)
{
	struct crew *c;

	LIST_FOREACH(c, &r->crews, link) {
		if (c->user == user && c->apart == apart)
			return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->user = user;
	c->apart = apart;
	c->helper = HELPER_NONE;
	TAILQ_INIT(&c->waiting);
	LIST_INSERT_HEAD(&r->crews, c, link);
	return c;
}

static bool is_unused(const struct crew *c, uint64_t now_ns)
{
	return !is_busy(c) && !c->hung && !c->kept && now_ns - c->used_ns >= UNUSED_NS;
}

static void crew_free(struct readers *r, struct crew *c)
{
	struct lost *l;

	if (c->helper.pid)
		abandon(r, c, false);
	LIST_FOREACH(l, &r->lost, link) {
		if (l->crew == c)
			l->crew = NULL; /* nobody counts it any more */
	}
	LIST_REMOVE(c, link);
	free(c);
}

static void see_to(struct readers *r, struct crew *c, uint64_t now_ns)
{
	check_patience(r, c, now_ns);
	send_waiting(r, c, now_ns);
	if (is_unused(c, now_ns))
		crew_free(r, c);
}

/* ---- for the owner ---- */

int readers_new(const struct readers_options *options, struct readers **ret)
{
	_cleanup_close_ int program = helper_open(READER_PROGRAM);
	struct readers *r;

	if (program < 0)
		return program == -ENOENT ? -ENOPKG : program;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->options = *options;
	if (!r->options.patience_ns)
		r->options.patience_ns = PATIENCE_NS;
	if (!r->options.most_hung)
		r->options.most_hung = MOST_HUNG;
	if (!r->options.most)
		r->options.most = MOST_READERS;
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0) {
		free(r);
		return -errno;
	}
	r->program = steal_fd(&program);
	*ret = r;
	return 0;
}

void readers_free(struct readers *r)
{
	struct lost *l;

	if (!r)
		return;
	while (!LIST_EMPTY(&r->crews))
		crew_free(r, LIST_FIRST(&r->crews));
	while ((l = LIST_FIRST(&r->lost))) {
		LIST_REMOVE(l, link);
		helper_leave(&l->helper);
		free(l);
	}
	drop_now(&r->drops); /* else the end of this process does it */
	free(r->drops.all);
	close(r->epoll);
	close(r->program);
	free(r);
}

int readers_fd(const struct readers *r)
{
	return r->epoll;
}

void readers_post(struct readers *r, struct readers_task *t)
{
	struct crew *c = crew_of(r, t->user, t->apart);

	if (!c) {
		fail(t, -ENOMEM);
		return;
	}
	t->crew = c;
	t->sent = false;
	c->kept = r->options.ended;
	c->used_ns = monotonic_ns();
	TAILQ_INSERT_TAIL(&c->waiting, t, link);
}

void readers_cancel(struct readers *r, struct readers_task *t)
{
	struct crew *c = t->crew;

	if (!c)
		return;
	if (!t->sent)
		TAILQ_REMOVE(&c->waiting, t, link);
	for (uint32_t i = c->n_taken; t->sent && i < c->n_sent; i++) {
		if (c->sent[i] == t)
			c->sent[i] = NULL;
	}
	t->crew = NULL;
	t->sent = false;
}

void readers_let_end(struct readers *r, uid_t user)
{
	struct crew *c;

	LIST_FOREACH(c, &r->crews, link)
		c->kept &= c->user != user;
}

void readers_see(struct readers *r)
{
	uint64_t now_ns = monotonic_ns();
	struct crew *c, *next;

	for (c = LIST_FIRST(&r->crews); c; c = next) {
		next = LIST_NEXT(c, link);
		see_to(r, c, now_ns);
	}
	if (!LIST_EMPTY(&r->lost))
		bury_lost(r);
	helper_bury_left();
}

void readers_run(struct readers *r)
{
	struct epoll_event events[32];
	int n = epoll_wait(r->epoll, events, ARRAY_SIZE(events), 0);
	uint64_t now_ns = monotonic_ns();

	for (int i = 0; i < n; i++)
		hear(r, events[i].data.ptr, now_ns);
	readers_see(r);
}

void readers_wait_unless(struct readers *r, uint64_t ns, const unsigned int *left, int other)
{
	uint64_t until_ns = monotonic_ns() + ns, now_ns;
	struct pollfd p[] = { { .fd = r->epoll, .events = POLLIN },
			      { .fd = other, .events = POLLIN } };

	readers_see(r);
	while ((left ? *left : readers_are_busy(r)) && (now_ns = monotonic_ns()) < until_ns &&
	       !p[1].revents) {
		struct timespec wait = { .tv_nsec = (long)MIN(until_ns - now_ns, LOOK_NS) };

		ppoll(p, ARRAY_SIZE(p), &wait, NULL);
		readers_run(r);
	}
}

void readers_wait(struct readers *r, uint64_t ns, const unsigned int *left)
{
	readers_wait_unless(r, ns, left, -1);
}

bool readers_are_busy(const struct readers *r)
{
	const struct crew *c;

	LIST_FOREACH(c, &r->crews, link) {
		if (is_busy(c))
			return true;
	}
	return false;
}

uint64_t readers_spent_ns(const struct readers *r)
{
	return r->spent_ns;
}

struct drops *readers_drops(struct readers *r)
{
	return &r->drops;
}

int readers_once(struct readers_task *t, uint64_t patience_ns, uint64_t ns)
{
	struct readers *r;
	int error = readers_new(&(struct readers_options){ .patience_ns = patience_ns }, &r);

	if (error < 0)
		return error;
	readers_post(r, t);
	readers_wait(r, ns, NULL);
	error = t->crew ? -ETIMEDOUT : 0;
	readers_cancel(r, t);
	readers_free(r);
	return error;
}
