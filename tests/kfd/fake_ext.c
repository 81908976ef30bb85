/* SPDX-License-Identifier: MIT */
#include "tests/kfd/fake_ext.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "util/macros.h"

#define MAX_PROCS 32
#define MAX_QUEUES 64

struct fake_queue {
	uint32_t id, flags;
	pid_t by;
	uint64_t until_ns;
};

struct fake_proc {
	pid_t pid, inherited_from;
	bool exited, execed, forbidden, bound;
	bool whole; /* those to come are held too */
	uint64_t whole_until_ns;
	int end_fd;
	int result;
	struct fake_queue queues[MAX_QUEUES];
	uint32_t n;
};

struct fake_ext {
	struct gkfd_transport table;
	pthread_mutex_t lock;
	struct fake_proc procs[MAX_PROCS];
	size_t n;
	int open_error, call_error;
	uint32_t version;
	bool admin;
	uint64_t slept_ns;
	int holder_fd; /* the end of somebody else who holds; -1: there is none who could end */
	pid_t lent_by; /* whose the descriptor is that was borrowed last */
	struct fake_ext_counts counts;
	struct kfd_gpreempt_batch last;
	uint32_t stops; /* of FAKE_GPU */
	uint64_t stopped_until_ns;
};

static struct fake_proc *find(struct fake_ext *f, uint32_t pid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->procs[i].pid == (pid_t)pid)
			return &f->procs[i];
	return NULL;
}

static uint64_t now_ns(const struct fake_ext *f)
{
	return gkfd_syscall_now_ns(NULL) + __atomic_load_n(&f->slept_ns, __ATOMIC_ACQUIRE);
}

static bool holder_died(const struct fake_ext *f)
{
	struct pollfd end = { .fd = f->holder_fd, .events = POLLIN };

	return poll(&end, 1, 0) > 0;
}

static bool is_over(const struct fake_ext *f, const struct fake_queue *q, uint64_t now)
{
	bool mine = q->flags & KFD_GPREEMPT_QUEUE_MINE;

	return now >= q->until_ns || (!mine && holder_died(f));
}

static void expire(struct fake_ext *f)
{
	uint64_t now = now_ns(f);

	if (now >= f->stopped_until_ns)
		f->stops = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct fake_proc *p = &f->procs[i];

		if (now >= p->whole_until_ns)
			p->whole = false;
		for (uint32_t j = 0; j < p->n; j++)
			if (is_over(f, &p->queues[j], now))
				p->queues[j].flags = KFD_GPREEMPT_QUEUE_ACTIVE;
	}
}

/* ---- the calls ---- */

static int name(struct fake_ext *f, uint32_t pid, uint64_t start_ticks, struct fake_proc **ret)
{
	struct fake_proc *p = find(f, pid);

	if (!p || p->exited || p->execed || (start_ticks && start_ticks != FAKE_START_TICKS))
		return -ESRCH;
	if (!f->admin && !p->bound)
		return -EPERM;
	*ret = p;
	return 0;
}

static bool is_named(const struct kfd_gpreempt_entry *e, const struct fake_queue *q)
{
	return e->queue_id == KFD_GPREEMPT_ALL_QUEUES || e->queue_id == q->id;
}

static int unmap_one(struct fake_proc *p, struct kfd_gpreempt_entry *e, uint64_t until_ns)
{
	bool found = e->queue_id == KFD_GPREEMPT_ALL_QUEUES;

	if (p->result)
		return p->result;
	for (uint32_t i = 0; i < p->n; i++) {
		struct fake_queue *q = &p->queues[i];

		if (!is_named(e, q))
			continue;
		if (q->flags & KFD_GPREEMPT_QUEUE_HELD && !(q->flags & KFD_GPREEMPT_QUEUE_MINE))
			return -EBUSY;
		e->queues += !(q->flags & KFD_GPREEMPT_QUEUE_HELD);
		q->flags = KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_MINE;
		q->by = getpid();
		q->until_ns = until_ns;
		found = true;
	}
	if (e->queue_id == KFD_GPREEMPT_ALL_QUEUES) {
		p->whole = true;
		p->whole_until_ns = until_ns;
	}
	return found ? 0 : -ENOENT;
}

static int map_one(struct fake_proc *p, struct kfd_gpreempt_entry *e)
{
	bool whole = e->queue_id == KFD_GPREEMPT_ALL_QUEUES && p->whole, found = false;

	for (uint32_t i = 0; i < p->n; i++) {
		struct fake_queue *q = &p->queues[i];

		found |= is_named(e, q);
		if (!is_named(e, q) || !(q->flags & KFD_GPREEMPT_QUEUE_MINE))
			continue;
		q->flags = KFD_GPREEMPT_QUEUE_ACTIVE;
		e->queues++;
	}
	p->whole = p->whole && !whole;
	if (e->queues || whole)
		return 0;
	return found ? -EALREADY : -ENOENT;
}

static int batch(struct fake_ext *f, struct kfd_gpreempt_batch *b)
{
	struct kfd_gpreempt_entry *entries = (void *)(uintptr_t)b->entries;
	uint32_t n = b->n_unmap + b->n_map;
	uint64_t until_ns = now_ns(f) + b->hold_ms * NSEC_PER_MSEC;
	int done = 0;

	if (f->call_error)
		return f->call_error;
	if (n == 0 || n > KFD_GPREEMPT_MAX_ENTRIES || b->hold_ms > KFD_GPREEMPT_MAX_HOLD_MS ||
	    (b->grace != KFD_GPREEMPT_DEFAULT_GRACE && (b->grace == 0 || b->grace > 255)))
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		struct kfd_gpreempt_entry *e = &entries[i];
		struct fake_proc *p;

		e->queues = 0;
		e->result = name(f, e->pid, e->start_ticks, &p);
		if (e->result == 0)
			e->result = i < b->n_unmap ? unmap_one(p, e, until_ns) : map_one(p, e);
		done += e->result == 0;
	}
	b->took_ns = 1000;
	return done;
}

static int look(struct fake_ext *f, struct kfd_gpreempt_stats *s)
{
	struct kfd_gpreempt_queue *room = (void *)(uintptr_t)s->queues;
	struct fake_proc *p;
	int r = name(f, s->pid, s->start_ticks, &p);

	f->counts.looks++;
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < MIN(p->n, s->n); i++)
		room[i] = (struct kfd_gpreempt_queue){
			.queue_id = p->queues[i].id,
			.gpu_id = FAKE_GPU,
			.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
			.ring_base = 0x1000 * p->queues[i].id,
			.ring_bytes = 4096,
			.priority = 2,
			.flags = p->queues[i].flags,
			.preempted_by = (uint32_t)p->queues[i].by,
		};
	s->n = p->n;
	return 0;
}

static int bind_to(struct fake_ext *f, struct kfd_gpreempt_bind *b)
{
	struct fake_proc *p = find(f, (uint32_t)f->lent_by);

	f->counts.binds++;
	if (fcntl(b->fd, F_GETFD) < 0)
		return -EBADF;
	if (!p || p->exited)
		return -ESRCH;
	p->bound = true;
	b->pid = (uint32_t)p->pid;
	return 0;
}

static int stop(struct fake_ext *f, struct kfd_gpreempt_stop *s, bool start)
{
	if (!f->admin)
		return -EPERM;
	if (s->gpu_id != FAKE_GPU)
		return -ENODEV;
	if (start && f->stops == 0)
		return -EALREADY;
	f->stops += start ? -1 : 1;
	if (!start)
		f->stopped_until_ns = now_ns(f) + s->hold_ms * NSEC_PER_MSEC;
	s->stops = f->stops;
	return 0;
}

static int set_class(struct fake_ext *f, const struct kfd_gpreempt_class *c)
{
	struct fake_proc *p = find(f, c->pid);

	if (!p || p->exited || (c->start_ticks && c->start_ticks != FAKE_START_TICKS))
		return -ESRCH;
	if (!f->admin)
		return -EPERM; /* an administrator has set it */
	for (uint32_t i = 0; i < p->n && c->class == KFD_GPREEMPT_NO_CLASS; i++)
		p->queues[i].flags &= ~KFD_GPREEMPT_QUEUE_SCHEDULED;
	return 0;
}

static int answer(struct fake_ext *f, unsigned long request, void *arg)
{
	switch (request) {
	case KFD_GPREEMPT_GET_VERSION:
		*(struct kfd_gpreempt_version *)arg = (struct kfd_gpreempt_version){
			.version = f->version,
			.max_entries = KFD_GPREEMPT_MAX_ENTRIES,
			.abilities = f->admin ? KFD_GPREEMPT_IS_ADMIN : 0,
		};
		return 0;
	case KFD_GPREEMPT_BATCH_UNMAP_QUEUES:
		f->counts.unmaps++;
		f->last = *(const struct kfd_gpreempt_batch *)arg;
		return f->last.n_map ? -EINVAL : batch(f, arg);
	case KFD_GPREEMPT_FAST_REMAP:
		f->counts.maps++;
		return ((const struct kfd_gpreempt_batch *)arg)->n_unmap ? -EINVAL : batch(f, arg);
	case KFD_GPREEMPT_SWITCH:
		f->counts.switches++;
		return batch(f, arg);
	case KFD_GPREEMPT_GET_STATS:
		return look(f, arg);
	case KFD_GPREEMPT_STOP_SCHED:
	case KFD_GPREEMPT_START_SCHED:
		return stop(f, arg, request == KFD_GPREEMPT_START_SCHED);
	case KFD_GPREEMPT_SET_CLASS:
		return set_class(f, arg);
	case KFD_GPREEMPT_BIND:
		return bind_to(f, arg);
	case KFD_GPREEMPT_GET_HQD_STATUS:
		return -EOPNOTSUPP; /* this GPU's slots are not told */
	default:
		f->counts.sins++;
		return -ENOTTY;
	}
}

static int fake_call(void *data, unsigned long request, void *arg)
{
	struct fake_ext *f = data;
	int r = f->open_error;

	if (r)
		return r;
	pthread_mutex_lock(&f->lock);
	expire(f);
	r = answer(f, request, arg);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* ---- the rest of a transport ---- */

static int fake_ioctl(void *data, unsigned long request, void *arg)
{
	struct fake_ext *f = data;

	if (request != AMDKFD_IOC_GET_VERSION) {
		f->counts.sins++;
		return -ENOTTY;
	}
	*(struct kfd_ioctl_get_version_args *)arg =
		(struct kfd_ioctl_get_version_args){ .major_version = 1, .minor_version = 17 };
	return 0;
}

static int fake_borrow(void *data, pid_t pid, unsigned int nth)
{
	struct fake_ext *f = data;
	const struct fake_proc *p = find(f, (uint32_t)pid);

	if (!p || p->exited)
		return -ESRCH;
	if (p->forbidden)
		return -EACCES;
	f->lent_by = nth == 0 && p->inherited_from ? p->inherited_from : p->pid;
	if (p->execed || nth > (p->inherited_from ? 1u : 0u))
		return -ENOENT;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int fake_pidfd(void *data, pid_t pid)
{
	const struct fake_proc *p = find(data, (uint32_t)pid);

	return p ? fcntl(p->end_fd, F_DUPFD_CLOEXEC, 0) : gkfd_trace_syscall.pidfd(NULL, pid);
}

static int fake_open(void *data)
{
	return 0;
}

static void fake_close(void *data)
{
	struct fake_ext *f = data;

	for (size_t i = 0; i < f->n; i++)
		closep(&f->procs[i].end_fd);
	closep(&f->holder_fd);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static int fake_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			  size_t *ret_len)
{
	uint32_t pid = tree == GKFD_TREE_PROC ? (uint32_t)strtoul(path, NULL, 10) : 0;
	const struct fake_proc *p = find(data, pid);
	int n;

	if (!p || p->exited)
		return -ENOENT;
	if (strstr(path, "/status"))
		n = asprintf(ret_text, "Name:\tjob\nTgid:\t%u\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n",
			     pid);
	else
		n = asprintf(ret_text, "%u (job) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0\n",
			     pid, FAKE_START_TICKS);
	*ret_len = (size_t)n;
	return n < 0 ? -ENOMEM : 0;
}

static int fake_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	return -ENOENT;
}

static int fake_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			 size_t n)
{
	return -EPERM;
}

static uint64_t fake_now_ns(void *data)
{
	return now_ns(data);
}

static int never(void *data, pid_t pid)
{
	((struct fake_ext *)data)->counts.sins++;
	return -EPERM;
}

static int never_sig(void *data, pid_t pid, int sig)
{
	return never(data, pid);
}

static int never_reap(void *data, pid_t pid, int *ret_status)
{
	return never(data, pid);
}

static const struct gkfd_trace_ops never_trace = {
	.seize = never,
	.interrupt = never,
	.cont = never_sig,
	.listen = never,
	.detach = never_sig,
	.reap = never_reap,
	.pidfd = fake_pidfd,
};

struct fake_ext *fake_ext_new(void)
{
	struct fake_ext *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->table = (struct gkfd_transport){
		.trace = &never_trace,
		.open = fake_open,
		.close = fake_close,
		.ioctl = fake_ioctl,
		.ext = fake_call,
		.borrow = fake_borrow,
		.read_file = fake_read_file,
		.list_dir = fake_list_dir,
		.read_mem = fake_read_mem,
		.now_ns = fake_now_ns,
		.wait = gkfd_syscall_wait,
	};
	f->version = KFD_GPREEMPT_VERSION;
	f->admin = true;
	f->holder_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	return f;
}

struct gkfd *fake_ext_gkfd(struct fake_ext *f)
{
	struct gkfd *k;

	assert_int_equal(gkfd_new(&f->table, f, &k), 0);
	return k;
}

/* ---- what happens to it ---- */

static struct fake_proc *enter(struct fake_ext *f, pid_t pid)
{
	pthread_mutex_lock(&f->lock);
	expire(f);
	return find(f, (uint32_t)pid);
}

static void leave(struct fake_ext *f)
{
	pthread_mutex_unlock(&f->lock);
}

void fake_ext_add(struct fake_ext *f, pid_t pid, uint32_t queues)
{
	struct fake_proc *p = &f->procs[f->n++];

	assert_true(f->n <= MAX_PROCS && queues <= MAX_QUEUES);
	p->pid = pid;
	p->end_fd = eventfd(0, EFD_CLOEXEC);
	for (uint32_t i = 1; i <= queues; i++)
		fake_ext_create(f, pid, i);
}

void fake_ext_exit(struct fake_ext *f, pid_t pid)
{
	struct fake_proc *p = enter(f, pid);

	p->exited = true;
	assert_int_equal(eventfd_write(p->end_fd, 1), 0);
	leave(f);
}

void fake_ext_exec(struct fake_ext *f, pid_t pid)
{
	enter(f, pid)->execed = true;
	leave(f);
}

void fake_ext_destroy(struct fake_ext *f, pid_t pid, uint32_t queue)
{
	struct fake_proc *p = enter(f, pid);

	for (uint32_t i = 0; i < p->n; i++)
		if (p->queues[i].id == queue)
			p->queues[i--] = p->queues[--p->n];
	leave(f);
}

void fake_ext_create(struct fake_ext *f, pid_t pid, uint32_t queue)
{
	struct fake_proc *p = enter(f, pid);
	struct fake_queue *q = &p->queues[p->n++];

	*q = (struct fake_queue){ .id = queue, .flags = KFD_GPREEMPT_QUEUE_ACTIVE };
	if (p->whole) {
		q->flags = KFD_GPREEMPT_QUEUE_HELD | KFD_GPREEMPT_QUEUE_MINE;
		q->until_ns = p->whole_until_ns;
	}
	leave(f);
}

void fake_ext_inherit(struct fake_ext *f, pid_t pid, pid_t owner)
{
	enter(f, pid)->inherited_from = owner;
	leave(f);
}

void fake_ext_schedule_off(struct fake_ext *f, pid_t pid)
{
	struct fake_queue *q = &enter(f, pid)->queues[0];

	q->flags = KFD_GPREEMPT_QUEUE_SCHEDULED;
	q->until_ns = UINT64_MAX;
	leave(f);
}

void fake_ext_hold_by(struct fake_ext *f, pid_t pid, pid_t holder)
{
	struct fake_queue *q = &enter(f, pid)->queues[0];

	q->flags = KFD_GPREEMPT_QUEUE_HELD;
	q->by = holder;
	q->until_ns = UINT64_MAX;
	closep(&f->holder_fd);
	f->holder_fd = holder > 0 ? gkfd_trace_syscall.pidfd(NULL, holder) : -1;
	leave(f);
}

void fake_ext_open_with(struct fake_ext *f, int error)
{
	f->open_error = error;
}

void fake_ext_set_version(struct fake_ext *f, uint32_t version)
{
	f->version = version;
}

void fake_ext_set_modelled(struct fake_ext *f)
{
	f->table.modelled = true;
}

void fake_ext_set_admin(struct fake_ext *f, bool admin)
{
	f->admin = admin;
}

void fake_ext_forbid(struct fake_ext *f, pid_t pid)
{
	enter(f, pid)->forbidden = true;
	leave(f);
}

void fake_ext_fail(struct fake_ext *f, pid_t pid, int result)
{
	enter(f, pid)->result = result;
	leave(f);
}

void fake_ext_fail_calls(struct fake_ext *f, int error)
{
	pthread_mutex_lock(&f->lock);
	f->call_error = error;
	leave(f);
}

void fake_ext_sleep(struct fake_ext *f, uint64_t ns)
{
	__atomic_add_fetch(&f->slept_ns, ns, __ATOMIC_ACQ_REL);
}

uint32_t fake_ext_held(struct fake_ext *f, pid_t pid)
{
	const struct fake_proc *p = enter(f, pid);
	uint32_t held = 0;

	for (uint32_t i = 0; i < p->n; i++)
		held += (p->queues[i].flags & KFD_GPREEMPT_QUEUE_HELD) != 0;
	leave(f);
	return held;
}

uint32_t fake_ext_stops(struct fake_ext *f, uint64_t *ret_left_ns)
{
	uint32_t stops;

	pthread_mutex_lock(&f->lock);
	expire(f);
	stops = f->stops;
	*ret_left_ns = stops ? f->stopped_until_ns - now_ns(f) : 0;
	leave(f);
	return stops;
}

struct fake_ext_counts fake_ext_counts(struct fake_ext *f)
{
	struct fake_ext_counts counts;

	pthread_mutex_lock(&f->lock);
	counts = f->counts;
	leave(f);
	return counts;
}

struct kfd_gpreempt_batch fake_ext_last(struct fake_ext *f)
{
	struct kfd_gpreempt_batch last;

	pthread_mutex_lock(&f->lock);
	last = f->last;
	leave(f);
	return last;
}
