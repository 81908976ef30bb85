/* SPDX-License-Identifier: MIT */
/* Who may name whom. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define BOTH (ON_CP | ON_MES)
#define UNMAP KFD_GPREEMPT_BATCH_UNMAP_QUEUES
#define PATIENCE_MS 5000

static int hold_by(struct actor *a, struct actor *target)
{
	struct kfd_gpreempt_entry *e = entry_of(target, ALL, ANY);
	int r = ext_by(a, UNMAP, batch(e, 1, 0));

	return r < 0 ? r : e->result;
}

static int let_go_by(struct actor *a, struct actor *target)
{
	struct kfd_gpreempt_entry *e = entry_of(target, ALL, ANY);
	int r = ext_by(a, KFD_GPREEMPT_FAST_REMAP, batch(e, 0, 1));

	return r < 0 ? r : e->result;
}

static int stats_by(struct actor *a, struct actor *target)
{
	struct kfd_gpreempt_stats *s = shared(sizeof(*s));

	s->pid = (uint32_t)target->pid;
	return ext_by(a, KFD_GPREEMPT_GET_STATS, s);
}

static struct actor *holder_of(uid_t uid)
{
	struct actor *a = actor(uid);

	open_ext_by(a);
	return a;
}

static void stranger(void)
{
	struct actor *a = job(1), *them = holder_of(SOMEBODY);
	struct kfd_gpreempt_version *v = shared(sizeof(*v));
	struct kfd_gpreempt_hqd *h = shared(sizeof(*h));
	struct kfd_gpreempt_stop *s = shared(sizeof(*s));
	struct meter m = meter(0);

	s->gpu_id = h->gpu_id = machine.gpu_ids[0];
	expect_is("GET_VERSION", ext_by(them, KFD_GPREEMPT_GET_VERSION, v), 0);
	expect_is("abilities", v->abilities, KFD_GPREEMPT_CAN_BATCH);
	expect_is("unmap", hold_by(them, a), -EPERM);
	expect_is("remap", let_go_by(them, a), -EPERM);
	expect_is("PREEMPT_QUEUE", ext_by(them, KFD_GPREEMPT_PREEMPT_QUEUE, one(a, ALL)), -EPERM);
	expect_is("GET_STATS", stats_by(them, a), -EPERM);
	expect_is("STOP_SCHED", ext_by(them, KFD_GPREEMPT_STOP_SCHED, s), -EPERM);
	expect_is("START_SCHED", ext_by(them, KFD_GPREEMPT_START_SCHED, s), -EPERM);
	expect_is("GET_HQD_STATUS", ext_by(them, KFD_GPREEMPT_GET_HQD_STATUS, h), 0);
	expect_no_work(m, 0);
}

static void bound(void)
{
	struct actor *a = job_of(SOMEBODY, 2), *them = holder_of(SOMEBODY);
	struct kfd_gpreempt_stop *s = shared(sizeof(*s));

	s->gpu_id = machine.gpu_ids[0];
	expect_is("before", hold_by(them, a), -EPERM);
	expect_is("BIND", bind_by(them, a), 0);
	expect_is("BIND again", bind_by(them, a), 0);
	give(a, 40);
	expect_is("unmap", hold_by(them, a), 0);
	expect_stands(a);
	expect_is("GET_STATS", stats_by(them, a), 0);
	expect_is("STOP_SCHED", ext_by(them, KFD_GPREEMPT_STOP_SCHED, s), -EPERM);
	expect_is("remap", let_go_by(them, a), 0);
	expect_all_done(a);
}

/* Of several who keep a queue off, the one to be ended first. */
static void named(void)
{
	struct actor *a = job_of(SOMEBODY, 1), *them = holder_of(SOMEBODY);
	struct kfd_gpreempt_stop s = { .gpu_id = machine.gpu_ids[0], .hold_ms = 10000 };
	int fd = open_ext();

	expect_is("BIND", bind_by(them, a), 0);
	expect_is("its own hold", hold_self(a), 0);
	expect_is("by itself", queue_stats(fd, a, 0).preempted_by, a->pid);
	expect_is("hold", hold_by(them, a), 0);
	expect_is("by the holder", queue_stats(fd, a, 0).preempted_by, them->pid);
	expect_is("STOP_SCHED", ext(fd, KFD_GPREEMPT_STOP_SCHED, &s), 0);
	expect_is("by the holder still", queue_stats(fd, a, 0).preempted_by, them->pid);
	expect_is("remap", let_go_by(them, a), 0);
	expect_is("by who stopped the GPU", queue_stats(fd, a, 0).preempted_by, getpid());
	s.hold_ms = 0;
	expect_is("START_SCHED", ext(fd, KFD_GPREEMPT_START_SCHED, &s), 0);
	expect_is("by itself again", queue_stats(fd, a, 0).preempted_by, a->pid);
	expect_is("let go", let_go_self(a), 0);
}

static void another_users(void)
{
	struct actor *a = job_of(SOMEBODY_ELSE, 1), *them = holder_of(SOMEBODY);

	expect_is("its descriptor", bind_by(them, a), -EPERM);
	expect_is("unmap", hold_by(them, a), -EPERM);
}

/* A binding is one file's. */
static void binding_of_another_file(void)
{
	struct actor *a = job_of(SOMEBODY, 1), *one_of_them = holder_of(SOMEBODY),
		     *other = holder_of(SOMEBODY);

	expect_is("BIND", bind_by(one_of_them, a), 0);
	expect_is("the other's unmap", hold_by(other, a), -EPERM);
}

static void bad_bindings(void)
{
	int fd = open_ext(), ends[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC), kfd, pidfd;
	struct kfd_gpreempt_bind b = { .fd = -1 }, *theirs = shared(sizeof(*theirs));
	struct actor *a = job(1);

	if (pipe2(ends, O_CLOEXEC))
		mk_die("pipe");
	expect_is("-1", ext(fd, KFD_GPREEMPT_BIND, &b), -EBADF);
	b.fd = 999;
	expect_is("999", ext(fd, KFD_GPREEMPT_BIND, &b), -EBADF);
	b.fd = ends[0];
	expect_is("a pipe", ext(fd, KFD_GPREEMPT_BIND, &b), -EINVAL);
	b.fd = file;
	expect_is("a file", ext(fd, KFD_GPREEMPT_BIND, &b), -EINVAL);
	b.fd = fd;
	expect_is("itself", ext(fd, KFD_GPREEMPT_BIND, &b), -EINVAL);
	theirs->fd = kfd_of(a);
	expect_is("on /dev/kfd", kfd_call(a, KFD_GPREEMPT_BIND, theirs), -ENOTTY);
	pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	kfd = (int)syscall(SYS_pidfd_getfd, pidfd, theirs->fd, 0);
	close(pidfd);
	expect_is("a call on another's /dev/kfd", ioctl(kfd, KFD_GPREEMPT_GET_VERSION, theirs), -1);
	expect_is("is", -errno, -EBADF);
	kill_actor(a);
	b.fd = kfd;
	expect_is("one of a process that ended", ext(fd, KFD_GPREEMPT_BIND, &b), -ESRCH);
	close(kfd);
}

static int do_hold_itself(void *arg)
{
	struct kfd_gpreempt_one *o = arg;
	int fd = open("/dev/" KFD_GPREEMPT_DEVICE, O_RDWR | O_CLOEXEC), r;

	r = ioctl(fd, KFD_GPREEMPT_PREEMPT_QUEUE, o) ? -errno : 0;
	close(fd);
	return r;
}

static void own_queues_need_no_binding(void)
{
	struct actor *a = job_of(SOMEBODY, 1);

	holder_of(SOMEBODY); /* lets anybody open the device */
	expect_is("of itself", in(a, do_hold_itself, one(a, ALL)), 0);
}

/* ---- another program ---- */

static int do_exec(void *arg)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDOUT_FILENO);
	execlp(arg, "mkqueues", "--old-runtime", (char *)NULL);
	return -errno;
}

static void wait_for_queues_of(struct actor *a)
{
	struct kfd_gpreempt_stats s = { .pid = (uint32_t)a->pid };
	uint64_t until = now_ms() + PATIENCE_MS * slowness;
	int fd = open_ext();

	do {
		s.n = 0;
		if (ioctl(fd, KFD_GPREEMPT_GET_STATS, &s) == 0 && s.n)
			return;
		let_pass(1);
	} while (now_ms() < until);
	fail_case("the other program makes no queues");
}

/* Its descriptors are gone, and so is the proof. */
static void after_exec_of(const char *program)
{
	struct actor *a = job_of(SOMEBODY, 1), *them = holder_of(SOMEBODY);
	int fd = open_ext();

	expect_is("BIND", bind_by(them, a), 0);
	expect_is("unmap", hold_by(them, a), 0);
	begin_in(a, do_exec, (void *)program);
	wait_for_exec(a);
	wait_for_queues_of(a);
	expect_is("unmap of what it has become", hold_by(them, a), -EPERM);
	expect_is("remap", let_go_by(them, a), -EPERM);
	expect_is("GET_STATS", stats_by(them, a), -EPERM);
	expect_is("by root", hold(fd, a), 0);
}

static void after_exec(void)
{
	after_exec_of("mkqueues");
}

static void after_setuid_exec(void)
{
	after_exec_of("mkqueues-setuid");
}

/* The next process gets @pid. */
static void reuse(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");

	if (!f || fprintf(f, "%d", pid - 1) < 0 || fclose(f))
		mk_die("ns_last_pid");
}

static void reused_pid(void)
{
	struct actor *a = job_of(SOMEBODY, 1), *them = holder_of(SOMEBODY), *b;
	struct kfd_gpreempt_entry *e = entry_of(a, ALL, ANY);
	int fd = open_ext();

	expect_is("BIND", bind_by(them, a), 0);
	expect_is("unmap", hold_by(them, a), 0);
	e->start_ticks = start_ticks_of(a->pid);
	let_pass(20); /* the next one starts at another tick */
	kill_actor(a);
	expect_is("unmap of one that has ended", ext(fd, UNMAP, batch(e, 1, 0)), 0);
	expect_is("result", e->result, -ESRCH);
	reuse((pid_t)e->pid);
	b = job_of(SOMEBODY, 1);
	expect(b->pid == (pid_t)e->pid, "pid %d is not %u again", b->pid, e->pid);
	expect_is("unmap of another with its pid", hold_by(them, b), -EPERM);
	expect_is("unmap with its start", ext(fd, UNMAP, batch(e, 1, 0)), 0);
	expect_is("result", e->result, -ESRCH);
	e->start_ticks = start_ticks_of(b->pid);
	expect_is("unmap with the new start", ext(fd, UNMAP, batch(e, 1, 0)), 1);
}

/* ---- /dev/kfd ---- */

struct inherited {
	int kfd;
	bool memory;
};

/* A child that has its parent's memory is another process all the same. */
static int do_fork_and_call(void *arg)
{
	struct inherited *i = arg;
	struct kfd_gpreempt_version v;
	pid_t child = i->memory ? vfork() : fork();
	int status;

	if (!child)
		_exit(ioctl(i->kfd, KFD_GPREEMPT_GET_VERSION, &v) ? errno : 0);
	while (waitpid(child, &status, 0) < 0)
		;
	return -WEXITSTATUS(status);
}

static void own_device(void)
{
	struct actor *a = job_of(SOMEBODY, 1), *b = job_of(SOMEBODY, 1);
	struct kfd_gpreempt_entry *e = entry_of(b, ALL, ANY);
	struct kfd_gpreempt_batch *other = batch(e, 1, 0);
	struct kfd_gpreempt_batch *async = batch(entry_of(a, ALL, ANY), 1, 0);
	struct kfd_gpreempt_stop *s = shared(sizeof(*s));
	struct kfd_gpreempt_collect *c = shared(sizeof(*c));
	struct kfd_gpreempt_stats *stats = shared(sizeof(*stats));
	struct inherited *i = shared(sizeof(*i));

	s->gpu_id = machine.gpu_ids[0];
	give(a, 40);
	expect_is("own", hold_self(a), 0);
	expect_stands(a);
	expect_is("own", let_go_self(a), 0);
	expect_is("another's", kfd_call(a, UNMAP, other), 0);
	expect_is("result", e->result, -EPERM);
	expect_is("another's stats",
		  (stats->pid = (uint32_t)b->pid, kfd_call(a, KFD_GPREEMPT_GET_STATS, stats)),
		  -EPERM);
	stats->pid = 0;
	expect_is("own stats", kfd_call(a, KFD_GPREEMPT_GET_STATS, stats), 0);
	expect_is("own queues", stats->n, 1);
	expect_is("STOP_SCHED", kfd_call(a, KFD_GPREEMPT_STOP_SCHED, s), -ENOTTY);
	expect_is("START_SCHED", kfd_call(a, KFD_GPREEMPT_START_SCHED, s), -ENOTTY);
	expect_is("COLLECT", kfd_call(a, KFD_GPREEMPT_COLLECT, c), -ENOTTY);
	async->flags = KFD_GPREEMPT_ASYNC;
	expect_is("ASYNC", kfd_call(a, UNMAP, async), -EOPNOTSUPP);
	async->flags = 0;
	async->timeout_ms = 1000;
	expect_is("a timeout", kfd_call(a, UNMAP, async), -EOPNOTSUPP);
	i->kfd = kfd_of(a);
	expect_is("by its child", in(a, do_fork_and_call, i), -EBADF);
	i->memory = true;
	expect_is("by a child in its memory", in(a, do_fork_and_call, i), -EBADF);
	expect_all_done(a);
}

/* Even root has to use the other device for others. */
static void own_device_of_root(void)
{
	struct actor *a = job(1), *b = job(1);
	struct kfd_gpreempt_entry *e = entry_of(b, ALL, ANY);

	expect_is("another's", kfd_call(a, UNMAP, batch(e, 1, 0)), 0);
	expect_is("result", e->result, -EPERM);
}

const struct ext_case right_cases[] = {
	{ "a stranger may look at the GPU and do nothing else", stranger, BOTH },
	{ "who has a descriptor of the target may hold it", bound, BOTH },
	{ "whoever keeps a queue off is named", named, BOTH },
	{ "another user's descriptor cannot be had", another_users, BOTH },
	{ "a binding is one file's", binding_of_another_file, BOTH },
	{ "only descriptors of living processes bind", bad_bindings, BOTH },
	{ "a process needs no binding for itself", own_queues_need_no_binding, BOTH },
	{ "a binding ends with exec", after_exec, BOTH },
	{ "a binding ends with exec of a setuid program", after_setuid_exec, BOTH },
	{ "a binding is not for the next process with the pid", reused_pid, BOTH },
	{ "through /dev/kfd a process has its own queues only", own_device, BOTH },
	{ "through /dev/kfd root has its own queues only", own_device_of_root, BOTH },
	{ 0 },
};
