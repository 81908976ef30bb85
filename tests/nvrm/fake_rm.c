/* SPDX-License-Identifier: MIT */
/* The fake's descriptors, clients and faults, and what tests ask it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "tests/nvrm/fake_rm_state.h"
#include "util/macros.h"

#define CALL_NS 5000u /* of a call that needs no firmware */

void fake_must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fake_rm: %s\n", what);
	abort();
}

/* ---- processes, files, clients ---- */

struct fake_process *fake_process(struct fake_rm *f, pid_t pid)
{
	for (size_t i = 0; i < f->n_processes; i++)
		if (f->processes[i].pid == pid && !f->processes[i].ended)
			return &f->processes[i];
	return NULL;
}

int fake_new_file(struct fake_rm *f, pid_t pid)
{
	for (int i = 0; i < FAKE_FILES; i++) {
		if (f->files[i].refs > 0)
			continue;
		f->files[i] = (struct fake_file){ .refs = 1, .pid = pid };
		return i;
	}
	fake_must(false, "too many open files");
	return -1;
}

void fake_end_client(struct fake_client *c)
{
	free(c->objects);
	*c = (struct fake_client){ 0 };
}

void fake_unref_file(struct fake_rm *f, int file)
{
	if (--f->files[file].refs > 0)
		return;
	for (size_t i = 0; i < FAKE_CLIENTS; i++)
		if (f->clients[i].handle && f->clients[i].file == file)
			fake_end_client(&f->clients[i]);
}

struct fake_client *fake_client(struct fake_rm *f, uint32_t handle)
{
	for (size_t i = 0; handle && i < FAKE_CLIENTS; i++)
		if (f->clients[i].handle == handle)
			return &f->clients[i];
	return NULL;
}

struct fake_client *fake_new_client(struct fake_rm *f, int file)
{
	uint32_t handle = f->recycle ? NVRM_FIRST_CLIENT : f->next_client;

	while (fake_client(f, handle))
		handle++;
	f->next_client = MAX(f->next_client, handle + 1);
	for (size_t i = 0; i < FAKE_CLIENTS; i++) {
		struct fake_client *c = &f->clients[i];

		if (c->handle)
			continue;
		*c = (struct fake_client){ .handle = handle, .file = file };
		return c;
	}
	fake_must(false, "too many clients");
	return NULL;
}

struct fake_object *fake_object(struct fake_client *c, uint32_t handle)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->objects[middle].handle == handle)
			return &c->objects[middle];
		if (c->objects[middle].handle < handle)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

pid_t fake_client_pid(const struct fake_rm *f, const struct fake_client *c)
{
	return f->files[c->file].pid;
}

void fake_end_process(struct fake_rm *f, pid_t pid)
{
	struct fake_process *p = fake_process(f, pid);
	uint64_t one = 1;

	if (!p)
		return;
	p->ended = true;
	for (unsigned int i = 0; i < p->n_numbers; i++)
		if (p->numbers[i].path[0] && p->numbers[i].file >= 0)
			fake_unref_file(f, p->numbers[i].file);
	fake_must(write(p->exit_fd, &one, sizeof(one)) == sizeof(one), "no eventfd");
}

/* ---- faults and the log ---- */

static bool fits(const struct fake_fault *fault, const struct fake_call *call)
{
	if (fault->op != FAKE_ANY && fault->op != call->op)
		return false;
	if (fault->status && call->op != FAKE_IOCTL)
		return false;
	return !fault->cmd || fault->cmd == call->cmd;
}

bool fake_enter(struct fake_rm *f, const struct fake_call *call, struct fake_fault *ret)
{
	bool hit = false;

	if (call->cmd && f->blocked_cmd == call->cmd) {
		f->waiting++;
		pthread_cond_broadcast(&f->changed);
		while (f->blocked_cmd == call->cmd)
			pthread_cond_wait(&f->changed, &f->lock);
		f->waiting--;
	}
	f->now_ns += CALL_NS;
	for (size_t i = 0; i < f->n_faults; i++) {
		struct fake_pending *p = &f->faults[i];

		if (!fits(&p->fault, call))
			continue;
		p->seen++;
		if (p->seen <= p->fault.after || p->seen > p->fault.after + MAX(p->fault.times, 1u))
			continue;
		if (p->fault.exits)
			fake_end_process(f, p->fault.exits);
		if (p->fault.then)
			p->fault.then(p->fault.arg);
		if (p->fault.error || p->fault.status) {
			*ret = p->fault;
			hit = true;
		}
	}
	return hit;
}

void fake_leave(struct fake_rm *f, const struct fake_call *call)
{
	if (f->n_calls == FAKE_CALLS)
		return;
	if (f->n_calls == f->room) {
		f->room = MAX(f->room * 2, (size_t)256);
		f->calls = reallocarray(f->calls, f->room, sizeof(*f->calls));
		fake_must(f->calls, "no memory");
	}
	f->calls[f->n_calls++] = *call;
}

void fake_rm_fault(struct fake_rm *f, const struct fake_fault *fault)
{
	pthread_mutex_lock(&f->lock);
	fake_must(f->n_faults < FAKE_FAULTS, "too many faults");
	f->faults[f->n_faults++] = (struct fake_pending){ .fault = *fault };
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_mend(struct fake_rm *f)
{
	pthread_mutex_lock(&f->lock);
	f->n_faults = 0;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_block(struct fake_rm *f, uint32_t cmd)
{
	pthread_mutex_lock(&f->lock);
	f->blocked_cmd = cmd;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_unblock(struct fake_rm *f)
{
	fake_rm_block(f, 0);
}

void fake_rm_wait_blocked(struct fake_rm *f)
{
	pthread_mutex_lock(&f->lock);
	while (f->waiting == 0)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

/* ---- the transport ---- */

/* A real descriptor that stands for a copy of @file. */
static int give_fd(struct fake_rm *f, int file)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	fake_must(fd >= 0 && fd < FAKE_FDS, "too many descriptors");
	f->fds[fd] = file;
	return fd;
}

int fake_rm_dup(struct fake_rm *f, int fd)
{
	int copy;

	pthread_mutex_lock(&f->lock);
	fake_must(fd >= 0 && fd < FAKE_FDS && f->fds[fd] >= 0, "no such descriptor");
	f->files[f->fds[fd]].refs++;
	copy = give_fd(f, f->fds[fd]);
	pthread_mutex_unlock(&f->lock);
	return copy;
}

static int fake_open(void *data)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_OPEN };
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	if (fake_enter(f, &call, &fault))
		call.result = -fault.error;
	else if (!f->version)
		call.result = -ENOENT;
	else
		call.result = give_fd(f, fake_new_file(f, 0));
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}

static void fake_close_fd(void *data, int fd)
{
	struct fake_rm *f = data;

	pthread_mutex_lock(&f->lock);
	if (fd < 0 || fd >= FAKE_FDS || f->fds[fd] < 0) {
		f->sins.misuse++;
	} else {
		fake_unref_file(f, f->fds[fd]);
		f->fds[fd] = -1;
		close(fd);
	}
	pthread_mutex_unlock(&f->lock);
}

static int fake_pidfd(void *data, pid_t pid)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_PIDFD };
	struct fake_process *p;
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	if (fake_enter(f, &call, &fault))
		call.result = -fault.error;
	else if (!(p = fake_process(f, pid)))
		call.result = -ESRCH;
	else
		call.result = fcntl(p->exit_fd, F_DUPFD_CLOEXEC, 0);
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
}

static int copy_some(struct fake_rm *f, pid_t pid, struct borrow_place *at, struct borrowed *ret)
{
	struct fake_process *p = fake_process(f, pid);
	uint64_t end = p ? p->n_numbers + p->n_plain : 0;
	int n = 0;

	if (!p)
		return -ESRCH;
	if (f->caller != 0 && f->caller != p->uid)
		return -EPERM;
	for (; n < (int)NVRM_COPIES && at->left && at->position < end; at->position++, at->left--) {
		const struct fake_number *x = &p->numbers[MIN(at->position, FAKE_NUMBERS - 1)];

		if (at->position >= p->n_numbers || !x->path[0] || x->file < 0)
			continue;
		f->files[x->file].refs++;
		ret[n].fd = give_fd(f, x->file);
		ret[n].number = FAKE_FIRST_NUMBER + (uint32_t)at->position;
		snprintf(ret[n++].link, BORROW_LINK, "%.*s", BORROW_LINK - 1, x->path);
	}
	if (at->position >= end)
		at->position = BORROW_END;
	return n;
}

static int fake_borrow(void *data, pid_t pid, uint64_t device, struct borrow_place *at,
		       struct borrowed *ret)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_BORROW };
	struct fake_fault fault;
	int r;

	pthread_mutex_lock(&f->lock);
	if (fake_enter(f, &call, &fault))
		r = -fault.error;
	else
		r = copy_some(f, pid, at, ret);
	call.result = MIN(r, 0);
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return r;
}

int fake_rm_borrow(struct fake_rm *f, pid_t pid)
{
	struct borrowed copies[NVRM_COPIES];
	struct borrow_place at = { .left = FAKE_NUMBERS };
	int n = fake_borrow(f, pid, 0, &at, copies);

	for (int i = 1; i < n; i++)
		fake_close_fd(f, copies[i].fd);
	return n < 0 ? n : (n > 0 ? copies[0].fd : -ENOENT);
}

/* ---- questions that are answered later ---- */

static const struct nvrm_transport transport;

static void fake_ask(void *data, struct nvrm_question *q)
{
	struct fake_rm *f = data;
	uint64_t one = 1;

	pthread_mutex_lock(&f->lock);
	fake_must(f->n_asked < FAKE_ASKED, "too many questions");
	f->asked[f->n_asked++] = q;
	fake_must(write(f->answers_fd, &one, sizeof(one)) == sizeof(one), "no answer");
	pthread_mutex_unlock(&f->lock);
}

static void fake_forget(void *data, struct nvrm_question *q)
{
	struct fake_rm *f = data;
	size_t kept = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->n_asked; i++)
		if (f->asked[i] != q)
			f->asked[kept++] = f->asked[i];
	fake_must(kept + 1 == f->n_asked, "what nobody asked is forgotten");
	f->n_asked = kept;
	pthread_mutex_unlock(&f->lock);
}

static int fake_answers_fd(void *data)
{
	return ((struct fake_rm *)data)->answers_fd;
}

/* The next one that is answered, if only with a failure. */
static struct nvrm_question *next_asked(struct fake_rm *f)
{
	struct nvrm_question *q = NULL;
	size_t kept = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->n_asked; i++)
		if (!q && (f->gives_up || f->asked[i]->blamed != f->silent))
			q = f->asked[i];
		else
			f->asked[kept++] = f->asked[i];
	f->n_asked = kept;
	pthread_mutex_unlock(&f->lock);
	return q;
}

static uint64_t fake_hear(void *data)
{
	struct nvrm n = { .transport = &transport, .data = data };
	struct fake_rm *f = data;
	struct nvrm_question *q;
	uint64_t count;

	while (read(f->answers_fd, &count, sizeof(count)) > 0)
		;
	while ((q = next_asked(f))) {
		bool silent;

		pthread_mutex_lock(&f->lock);
		silent = q->blamed == f->silent;
		if (silent)
			f->given_up =
				(struct fake_given_up){ f->given_up.n + 1, q->user, q->apart };
		pthread_mutex_unlock(&f->lock);
		nvrm_question_end(q, silent ? -ETIMEDOUT : nvrm_answer(&n, &q->words));
	}
	return fake_rm_unanswered(f) ? NSEC_PER_MSEC : UINT64_MAX;
}

static uint64_t fake_now_ns(void *data)
{
	struct fake_rm *f = data;
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_mutex_lock(&f->lock);
	now = f->real_time ? (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec : f->now_ns;
	pthread_mutex_unlock(&f->lock);
	return now;
}

/* The fake stays for the test to ask. */
static void fake_close(void *data)
{
}

#define CALLS \
	.close = fake_close, .open = fake_open, .ioctl = fake_rm_ioctl, .close_fd = fake_close_fd, \
	.pidfd = fake_pidfd, .borrow = fake_borrow, .drop_fd = fake_close_fd, \
	.read_proc = fake_rm_read_proc, .list_proc = fake_rm_list_proc, \
	.list_numbers = fake_rm_list_numbers, .read_link = fake_rm_read_link, \
	.owner = fake_rm_owner, .now_ns = fake_now_ns

static const struct nvrm_transport transport = { CALLS };
static const struct nvrm_transport slow_transport = {
	CALLS,
	.ask = fake_ask,
	.forget = fake_forget,
	.answers_fd = fake_answers_fd,
	.hear = fake_hear,
};

void fake_rm_answer_later(struct fake_rm *f)
{
	f->answers_later = true;
	f->answers_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_must(f->answers_fd >= 0, "no eventfd");
}

void fake_rm_silence(struct fake_rm *f, pid_t pid)
{
	pthread_mutex_lock(&f->lock);
	f->silent = pid;
	pthread_mutex_unlock(&f->lock);
}

void fake_rm_give_up(struct fake_rm *f)
{
	pthread_mutex_lock(&f->lock);
	f->gives_up = true;
	pthread_mutex_unlock(&f->lock);
}

struct fake_given_up fake_rm_given_up(struct fake_rm *f)
{
	struct fake_given_up given_up;

	pthread_mutex_lock(&f->lock);
	given_up = f->given_up;
	pthread_mutex_unlock(&f->lock);
	return given_up;
}

size_t fake_rm_unanswered(struct fake_rm *f)
{
	size_t n;

	pthread_mutex_lock(&f->lock);
	n = f->n_asked;
	pthread_mutex_unlock(&f->lock);
	return n;
}

struct nvrm *fake_rm_nvrm(struct fake_rm *f)
{
	struct nvrm *n = NULL;

	fake_must(nvrm_new(f->answers_later ? &slow_transport : &transport, f, &n) == 0, "no nvrm");
	return n;
}

/* ---- what happened ---- */

const struct fake_call *fake_rm_calls(struct fake_rm *f, size_t *ret_n)
{
	*ret_n = f->n_calls;
	return f->calls;
}

size_t fake_rm_count(struct fake_rm *f, enum fake_op op, uint32_t cmd)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->n_calls; i++)
		n += (op == FAKE_ANY || f->calls[i].op == op) && (!cmd || f->calls[i].cmd == cmd);
	pthread_mutex_unlock(&f->lock);
	return n;
}

size_t fake_rm_count_before(struct fake_rm *f, uint32_t cmd)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	while (n < f->n_calls && f->calls[n].cmd != cmd)
		n++;
	n = n < f->n_calls ? n : SIZE_MAX;
	pthread_mutex_unlock(&f->lock);
	return n;
}

void fake_rm_forget_calls(struct fake_rm *f)
{
	pthread_mutex_lock(&f->lock);
	f->n_calls = 0;
	pthread_mutex_unlock(&f->lock);
}

struct fake_sins fake_rm_sins(struct fake_rm *f)
{
	struct fake_sins sins;

	pthread_mutex_lock(&f->lock);
	sins = f->sins;
	pthread_mutex_unlock(&f->lock);
	return sins;
}

size_t fake_rm_descriptors(struct fake_rm *f)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_FDS; i++)
		n += f->fds[i] >= 0;
	pthread_mutex_unlock(&f->lock);
	return n;
}

size_t fake_rm_pinned(struct fake_rm *f)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_CLIENTS; i++) {
		const struct fake_client *c = &f->clients[i];

		n += c->handle && fake_client_pid(f, c) && !fake_process(f, fake_client_pid(f, c));
	}
	pthread_mutex_unlock(&f->lock);
	return n;
}
