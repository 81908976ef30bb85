/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "cmd/gpreemptd/scheduler_internal.h"

#define PAGE_BYTES 4096

/* A longer one would keep others off for work that nobody may remember: it is said again. */
#define HINT_FOR_MAX_NS NSEC_PER_SEC

static int take_hint(struct scheduler *s, struct process *p, uint64_t at_ns, uint64_t for_ns)
{
	int r;

	for_ns = MIN(for_ns, HINT_FOR_MAX_NS);
	if (at_ns > s->now_ns + HINT_AHEAD_MAX_NS)
		return -EINVAL;
	if (s->handed_over) {
		r = native_hint(s, p, at_ns, for_ns);
		s->figures.status.hints += r >= 0;
		return r;
	}
	s->figures.status.hints++;
	for_each_job(p, j) {
		if (j->engine_job == NO_JOB)
			continue;
		engine_hint(s->engine, s->now_ns, (uint32_t)j->engine_job, at_ns, for_ns);
		j->hinted_ns = at_ns <= s->now_ns ? s->now_ns : 0;
		j->announced_until_ns =
			MAX(at_ns, s->now_ns) + MAX(for_ns, s->engine_config.hint_ns);
		if (j->on)
			gpu_stir(s, j->on);
	}
	return 0;
}

int scheduler_hint(struct scheduler *s, pid_t pid, uint64_t at_ns, uint64_t for_ns)
{
	struct process *p = process_find(s, pid);
	int r;

	scheduler_now(s);
	if (!p)
		r = -ENOENT;
	else if (p->verdict.job_class != JOB_ONLINE)
		r = -EPERM;
	else
		r = take_hint(s, p, at_ns, for_ns);
	s->figures.status.hints_refused += r < 0;
	return r;
}

/* What the process writes may be anything; a time far ahead is no hint. */
void hint_page_look(struct scheduler *s, struct process *p)
{
	uint64_t at_ns, for_ns;
	uint32_t calls;

	if (!p->page)
		return;
	calls = __atomic_load_n(&p->page->calls, __ATOMIC_ACQUIRE);
	if (calls == p->page_calls)
		return;
	p->page_calls = calls;
	at_ns = __atomic_load_n(&p->page->at_ns, __ATOMIC_RELAXED);
	for_ns = __atomic_load_n(&p->page->for_ns, __ATOMIC_RELAXED);
	if (p->verdict.job_class != JOB_ONLINE || take_hint(s, p, at_ns, for_ns) < 0)
		s->figures.status.hints_refused++;
	else
		s->step_due = true;
}

/* Neither side can make it shorter: reading it never faults. */
static int make_page(int *ret_fd, struct wire_hint_page **ret)
{
	_cleanup_close_ int fd = memfd_create("gpreempt-hints", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const struct wire_hint_page begin = {
		.magic = WIRE_MAGIC,
		.version = WIRE_HINT_VERSION,
		.since = WIRE_HINT_VERSION,
	};
	struct wire_hint_page *page;

	if (fd < 0 || ftruncate(fd, PAGE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	*page = begin;
	*ret_fd = steal_fd(&fd);
	*ret = page;
	return 0;
}

int scheduler_hint_page(struct scheduler *s, pid_t pid, int *ret_fd)
{
	struct process *p = process_find(s, pid);
	int fd, r;

	if (!p)
		return -ENOENT;
	if (p->verdict.job_class != JOB_ONLINE)
		return p->verdict.job_class == JOB_OFFLINE ? -EPERM : -EAGAIN;
	if (!p->page) {
		r = make_page(&p->page_fd, &p->page);
		if (r < 0)
			return r;
		p->page_calls = 0;
		jobs_change(s, p);
		native_tell_job(s, p); /* critical from here on */
		s->gpus_due = true;
	}
	fd = fcntl(p->page_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

void hint_page_close(struct process *p)
{
	if (!p->page)
		return;
	__atomic_store_n(&p->page->version, 0, __ATOMIC_RELEASE); /* the program asks anew */
	munmap(p->page, PAGE_BYTES);
	close(p->page_fd);
	p->page = NULL;
	p->page_fd = -1;
}
