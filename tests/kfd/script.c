/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/kfd/script.h"
#include "util/macros.h"

struct script {
	struct gkfd_transport table;
	void *kernel; /* files of real processes */
	const struct script_step *steps;
	size_t n, next;
	size_t calls, vanish_at;
	pid_t lost_leader;
	uint32_t queues, suspended;
	unsigned int lent;
	bool paused;
	int evictions;
	int block_fd, files_fd;
	int dbg_fd; /* our copy of the driver's end of the pipe */
	bool enabled;
	bool frozen;
	pid_t pid, tracer;
	uint64_t start;
	char wrong[1200];
	pthread_mutex_t lock;
};

static void render_ids(char *buf, size_t size, const uint32_t *ids, uint32_t n)
{
	size_t at = strlen(buf);

	for (uint32_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%u", i ? "," : "", ids[i]);
}

static void render_update(char *buf, size_t size, const struct kfd_ioctl_update_queue_args *a)
{
	snprintf(buf, size, "update %u percent=%u priority=%u ring=%llx+%u", a->queue_id,
		 a->queue_percentage, a->queue_priority, (unsigned long long)a->ring_base_address,
		 a->ring_size);
}

static void render(char *buf, size_t size, unsigned long request,
		   const struct kfd_ioctl_dbg_trap_args *a)
{
	if (request == AMDKFD_IOC_GET_VERSION) {
		snprintf(buf, size, "version");
		return;
	}
	if (request == AMDKFD_IOC_CRIU_OP) {
		const struct kfd_ioctl_criu_args *criu = (const void *)a;

		snprintf(buf, size, criu->op == KFD_CRIU_OP_UNPAUSE ? "unpause" : "pause");
		return;
	}
	if (request == AMDKFD_IOC_UPDATE_QUEUE) {
		render_update(buf, size, (const void *)a);
		return;
	}
	if (request != AMDKFD_IOC_DBG_TRAP) {
		snprintf(buf, size, "request %lx", request);
		return;
	}
	switch (a->op) {
	case KFD_IOC_DBG_TRAP_ENABLE:
		snprintf(buf, size, "enable");
		break;
	case KFD_IOC_DBG_TRAP_DISABLE:
		snprintf(buf, size, "disable");
		break;
	case KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT:
		snprintf(buf, size, "runtime-event");
		break;
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		snprintf(buf, size, "suspend grace=%u ids=", a->suspend_queues.grace_period);
		render_ids(buf, size, (const uint32_t *)a->suspend_queues.queue_array_ptr,
			   a->suspend_queues.num_queues);
		break;
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		snprintf(buf, size,
			 a->resume_queues.queue_array_ptr ? "resume ids=" : "resume all");
		if (a->resume_queues.queue_array_ptr)
			render_ids(buf, size, (const uint32_t *)a->resume_queues.queue_array_ptr,
				   a->resume_queues.num_queues);
		break;
	case KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT:
		snprintf(buf, size, "query");
		break;
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		snprintf(buf, size, "snapshot mask=%llx room=%u",
			 (unsigned long long)a->queue_snapshot.exception_mask,
			 a->queue_snapshot.num_queues);
		break;
	default:
		snprintf(buf, size, "op %u", a->op);
	}
}

static void fill_snapshot(struct kfd_ioctl_dbg_trap_args *a, const uint32_t *ids, uint32_t n)
{
	struct kfd_queue_snapshot_entry *entries =
		(void *)(uintptr_t)a->queue_snapshot.snapshot_buf_ptr;

	for (uint32_t i = 0; i < n && i < a->queue_snapshot.num_queues; i++)
		entries[i] = (struct kfd_queue_snapshot_entry){
			.queue_id = ids && i < SCRIPT_MAX_IDS ? ids[i] : i,
			.gpu_id = 1,
			.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
			.ring_size = 65536,
		};
	a->queue_snapshot.num_queues = n;
}

static void or_bits(uint64_t array, uint32_t n, const uint32_t *bits)
{
	uint32_t *ids = (uint32_t *)(uintptr_t)array;

	for (uint32_t i = 0; ids && i < n && i < SCRIPT_MAX_IDS; i++)
		ids[i] |= bits[i];
}

static int answer(const struct script_step *step, unsigned long request,
		  struct kfd_ioctl_dbg_trap_args *a)
{
	if (request == AMDKFD_IOC_GET_VERSION) {
		struct kfd_ioctl_get_version_args *v = (void *)a;

		v->major_version = 1;
		v->minor_version = step->minor ? step->minor : 17;
		return step->ret;
	}
	if (request != AMDKFD_IOC_DBG_TRAP)
		return step->ret;
	switch (a->op) {
	case KFD_IOC_DBG_TRAP_ENABLE:
		((struct kfd_runtime_info *)(uintptr_t)a->enable.rinfo_ptr)->runtime_state =
			step->runtime_state;
		break;
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		if (step->ret >= 0)
			fill_snapshot(a, step->ids, step->queues);
		break;
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		or_bits(a->suspend_queues.queue_array_ptr, a->suspend_queues.num_queues, step->ids);
		break;
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		or_bits(a->resume_queues.queue_array_ptr, a->resume_queues.num_queues, step->ids);
		break;
	case KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT:
		a->query_debug_event.exception_mask = step->pending;
		break;
	}
	return step->ret;
}

static int oblige_resume(struct script *s, const struct kfd_ioctl_dbg_trap_args *a)
{
	s->suspended = 0;
	return a->resume_queues.queue_array_ptr ? (int)a->resume_queues.num_queues :
						  (int)s->queues;
}

/* As Linux 6.12: evictions are counted, the flag is not. */
static int oblige_criu(struct script *s, const struct kfd_ioctl_criu_args *a)
{
	bool pause = a->op == KFD_CRIU_OP_PROCESS_INFO;

	if (!pause && !s->paused)
		return -EINVAL;
	s->paused = pause;
	s->evictions += pause ? 1 : -1;
	return 0;
}

/* The small driver: one session, queues 0..n-1. */
static int oblige(struct script *s, unsigned long request, struct kfd_ioctl_dbg_trap_args *a)
{
	const struct script_step version = { .minor = 17 };

	if (request == AMDKFD_IOC_GET_VERSION)
		return answer(&version, request, a);
	if (request == AMDKFD_IOC_CRIU_OP)
		return oblige_criu(s, (const void *)a);
	if (a->op == KFD_IOC_DBG_TRAP_ENABLE) {
		s->enabled = true;
		closep(&s->dbg_fd);
		s->dbg_fd = dup((int)a->enable.dbg_fd);
		((struct kfd_runtime_info *)(uintptr_t)a->enable.rinfo_ptr)->runtime_state = 1;
		return 0;
	}
	if (!s->enabled)
		return -EINVAL;
	switch (a->op) {
	case KFD_IOC_DBG_TRAP_DISABLE:
		s->enabled = false;
		s->suspended = 0;
		return 0;
	case KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT:
		fill_snapshot(a, NULL, s->queues);
		return 0;
	case KFD_IOC_DBG_TRAP_SUSPEND_QUEUES:
		s->suspended = a->suspend_queues.num_queues;
		return (int)a->suspend_queues.num_queues;
	case KFD_IOC_DBG_TRAP_RESUME_QUEUES:
		return oblige_resume(s, a);
	case KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT:
		return -EAGAIN;
	default:
		return 0;
	}
}

static void maybe_block(struct script *s, unsigned long request,
			const struct kfd_ioctl_dbg_trap_args *a)
{
	struct pollfd p = { .fd = s->block_fd, .events = POLLIN };

	if (p.fd < 0 || request != AMDKFD_IOC_DBG_TRAP ||
	    a->op != KFD_IOC_DBG_TRAP_SUSPEND_QUEUES)
		return;
	s->block_fd = -1;
	pthread_mutex_unlock(&s->lock);
	poll(&p, 1, -1);
	pthread_mutex_lock(&s->lock);
}

/* May run on a thread that is not the test's: what is wrong is told by script_done(). */
static int play_step(struct script *s, unsigned long request, void *arg)
{
	const char *expected = s->next < s->n ? s->steps[s->next].call : "nothing";
	char line[512];

	render(line, sizeof(line), request, arg);
	if (strcmp(line, expected)) {
		if (!s->wrong[0])
			snprintf(s->wrong, sizeof(s->wrong),
				 "call %zu: expected \"%s\", got \"%s\"", s->next, expected, line);
		return -EPROTO;
	}
	return answer(&s->steps[s->next++], request, arg);
}

static int play_read_mem(void *data, pid_t pid, struct gkfd_mem *mem, struct gkfd_span *spans,
			 size_t n)
{
	struct script *s = data;

	return gkfd_transport_syscall.read_mem(s->kernel, pid, mem, spans, n);
}

static bool is_lost(const struct script *s, unsigned long request,
		    const struct kfd_ioctl_dbg_trap_args *a)
{
	return s->lost_leader && request == AMDKFD_IOC_DBG_TRAP &&
	       (pid_t)a->pid == s->lost_leader;
}

static int play_ioctl(void *data, unsigned long request, void *arg)
{
	struct script *s = data;
	int r;

	pthread_mutex_lock(&s->lock);
	maybe_block(s, request, arg);
	if (s->calls++ >= s->vanish_at || is_lost(s, request, arg)) {
		r = request == AMDKFD_IOC_GET_VERSION ?
			    answer(&(struct script_step){ 0 }, request, arg) :
			    -ESRCH;
	} else if (!s->steps) {
		r = oblige(s, request, arg);
	} else {
		r = play_step(s, request, arg);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int play_ioctl_on(void *data, pid_t pid, int fd, unsigned long request, void *arg)
{
	assert_true(fd >= 0);
	return play_ioctl(data, request, arg);
}

static int play_borrow(void *data, pid_t pid, unsigned int nth)
{
	struct script *s = data;

	return nth < s->lent ? open("/dev/null", O_RDWR | O_CLOEXEC) : -ENOENT;
}

static int play_open(void *data)
{
	return 0;
}

static void play_close(void *data)
{
	struct script *s = data;

	gkfd_transport_syscall.close(s->kernel);
	closep(&s->dbg_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int play_read_file(void *data, enum gkfd_tree tree, const char *path, char **ret_text,
			  size_t *ret_len)
{
	struct script *s = data;
	char prefix[32];
	int n;

	snprintf(prefix, sizeof(prefix), "%d/", s->pid);
	if (s->table.trace == &gkfd_trace_syscall)
		return gkfd_transport_syscall.read_file(s->kernel, tree, path, ret_text, ret_len);
	if (tree != GKFD_TREE_PROC || strncmp(path, prefix, strlen(prefix)))
		return -ENOENT;
	if (strstr(path, "/stat") && !strstr(path, "/status"))
		n = asprintf(ret_text, "%d (job) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0\n",
			     s->pid, (unsigned long long)s->start);
	else
		n = asprintf(ret_text,
			     "Name:\tjob\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t1\n"
			     "TracerPid:\t%d\nUid:\t0\t0\t0\t0\nNSpid:\t%d\n",
			     s->pid, s->pid, s->tracer, s->pid);
	*ret_len = (size_t)n;
	return n < 0 ? -ENOMEM : 0;
}

static int play_list_dir(void *data, enum gkfd_tree tree, const char *path, char **ret_names)
{
	struct script *s = data;
	struct pollfd p = { .fd = s->files_fd, .events = POLLIN };

	if (p.fd >= 0)
		poll(&p, 1, -1);
	return gkfd_transport_syscall.list_dir(s->kernel, tree, path, ret_names);
}

static int agree(void *data, pid_t pid)
{
	return 0;
}

static int agree_sig(void *data, pid_t pid, int sig)
{
	return 0;
}

static int no_event(void *data, pid_t pid, int *ret_status)
{
	return 0;
}

static int no_pidfd(void *data, pid_t pid)
{
	return -ENOSYS;
}

static const struct gkfd_trace_ops trace_nothing = {
	.seize = agree,
	.interrupt = agree,
	.cont = agree_sig,
	.listen = agree,
	.detach = agree_sig,
	.reap = no_event,
	.pidfd = no_pidfd,
};

static uint64_t play_now_ns(void *data)
{
	const struct script *s = data;
	struct pollfd nothing = { .fd = -1 };

	while (__atomic_load_n(&s->frozen, __ATOMIC_ACQUIRE))
		poll(&nothing, 1, -1);
	return gkfd_syscall_now_ns(s->kernel);
}

struct script *script_new(const struct gkfd_trace_ops *trace)
{
	struct script *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->table = gkfd_transport_syscall;
	s->table.trace = trace ? trace : &trace_nothing;
	s->table.open = play_open;
	s->table.close = play_close;
	s->table.ioctl = play_ioctl;
	s->table.ext = NULL;
	s->table.ioctl_on = play_ioctl_on;
	s->table.borrow = play_borrow;
	s->table.read_file = play_read_file;
	s->table.list_dir = play_list_dir;
	s->table.read_mem = play_read_mem;
	s->table.now_ns = play_now_ns;
	s->kernel = gkfd_syscall_new(NULL);
	s->vanish_at = SIZE_MAX;
	s->block_fd = s->files_fd = -1;
	s->dbg_fd = -1;
	s->queues = 2;
	s->start = 7;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void script_play(struct script *s, const struct script_step *steps, size_t n)
{
	s->steps = steps;
	s->n = n;
	s->next = 0;
}

void script_done(struct script *s)
{
	if (s->wrong[0]) {
		print_error("%s\n", s->wrong);
		fail();
	}
	if (s->next != s->n) {
		print_error("never called: %s\n", s->steps[s->next].call);
		fail();
	}
	s->steps = NULL;
}

void script_vanish_after(struct script *s, size_t n)
{
	pthread_mutex_lock(&s->lock);
	s->vanish_at = s->calls + n;
	s->enabled = false; /* it is another process each time */
	pthread_mutex_unlock(&s->lock);
}

void script_lose_leader(struct script *s, pid_t pid)
{
	pthread_mutex_lock(&s->lock);
	s->lost_leader = pid;
	pthread_mutex_unlock(&s->lock);
}

void script_set_queues(struct script *s, uint32_t n)
{
	s->queues = n;
}

uint32_t script_suspended(struct script *s)
{
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->suspended;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void script_lend(struct script *s, unsigned int n)
{
	s->lent = n;
}

int script_evictions(struct script *s)
{
	int n;

	pthread_mutex_lock(&s->lock);
	n = s->evictions;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void script_block_files(struct script *s, int fd)
{
	s->files_fd = fd;
}

void script_block_suspend(struct script *s, int fd)
{
	pthread_mutex_lock(&s->lock);
	s->block_fd = fd;
	pthread_mutex_unlock(&s->lock);
}

void script_hang_driver(struct script *s)
{
	pthread_mutex_lock(&s->lock);
}

void script_freeze(struct script *s)
{
	__atomic_store_n(&s->frozen, true, __ATOMIC_RELEASE);
}

void script_raise(struct script *s)
{
	assert_int_equal(write(s->dbg_fd, ".", 1), 1);
}

void script_set_process(struct script *s, pid_t pid, pid_t tracer, uint64_t start)
{
	s->pid = pid;
	s->tracer = tracer;
	s->start = start;
}

struct gkfd *script_gkfd(struct script *s)
{
	struct gkfd *k;

	assert_int_equal(gkfd_new(&s->table, s, &k), 0);
	return k;
}
