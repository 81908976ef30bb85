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

static int copy_nth(struct fake_rm *f, int pidfd, pid_t pid, unsigned int nth, uint32_t *ret_number)
{
	struct pollfd exited = { .fd = pidfd, .events = POLLIN };
	struct fake_process *p = fake_process(f, pid);

	if (poll(&exited, 1, 0) < 0 || (exited.revents & POLLNVAL)) {
		f->sins.misuse++;
		return -EBADF;
	}
	if (!p || exited.revents)
		return -ESRCH;
	if (f->caller != 0 && f->caller != p->uid)
		return -EPERM;
	for (unsigned int i = 0; i < p->n_numbers; i++) {
		if (!p->numbers[i].path[0] || p->numbers[i].file < 0 || nth-- > 0)
			continue;
		f->files[p->numbers[i].file].refs++;
		if (ret_number)
			*ret_number = FAKE_FIRST_NUMBER + i;
		return give_fd(f, p->numbers[i].file);
	}
	return -ENOENT;
}

static int fake_borrow(void *data, int pidfd, pid_t pid, unsigned int nth, uint32_t *ret_number)
{
	struct fake_rm *f = data;
	struct fake_call call = { .op = FAKE_BORROW };
	struct fake_fault fault;

	pthread_mutex_lock(&f->lock);
	if (fake_enter(f, &call, &fault))
		call.result = -fault.error;
	else
		call.result = copy_nth(f, pidfd, pid, nth, ret_number);
	fake_leave(f, &call);
	pthread_mutex_unlock(&f->lock);
	return call.result;
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

static const struct nvrm_transport transport = {
	.name = "fake",
	.close = fake_close,
	.open = fake_open,
	.ioctl = fake_rm_ioctl,
	.close_fd = fake_close_fd,
	.pidfd = fake_pidfd,
	.borrow = fake_borrow,
	.read_proc = fake_rm_read_proc,
	.list_proc = fake_rm_list_proc,
	.files = &fake_rm_files,
	.now_ns = fake_now_ns,
};

struct nvrm *fake_rm_nvrm(struct fake_rm *f)
{
	struct nvrm *n = NULL;

	fake_must(nvrm_new(&transport, f, &n) == 0, "no nvrm");
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
