/* SPDX-License-Identifier: MIT */
/* The driver of a software GPU, called from other processes. */
#include <dirent.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "gpu/soft/wire.h"
#include "tests/softgpu/rig.h"

#define TRAIN 1001
#define SLOW_NS (300 * NSEC_PER_MSEC)

static const struct gkfd_transport *t;

static uint64_t now_ns(void)
{
	return gkfd_syscall_now_ns(NULL);
}

static int set_up(void **state)
{
	t = rig_transport;
	return rig_set_up(state, "mi308x,gpus=1");
}

static int set_up_slow(void **state)
{
	t = rig_transport;
	return rig_set_up(state, "mi308x,gpus=1,unmap_us=300000");
}

static int set_up_populated(void **state)
{
	t = rig_transport;
	return rig_set_up(state, "mi308x,gpus=1,jobs=1,occupancy=0,ext=1");
}

static bool is_listed(void *data, pid_t pid)
{
	char *names = NULL, wanted[16];
	bool found = false;

	snprintf(wanted, sizeof(wanted), "%d", pid);
	assert_int_equal(t->list_dir(data, GKFD_TREE_SYSFS, "proc", &names), 0);
	for (const char *name = names; *name; name += strlen(name) + 1)
		found |= !strcmp(name, wanted);
	free(names);
	return found;
}

static void caller_is_a_process_once_it_has_opened_the_device(void **state)
{
	struct rig *rig = *state;
	struct kfd_ioctl_get_version_args version = { 0 };

	assert_true(t->modelled && !t->alone);
	assert_false(is_listed(rig->data, getpid()));
	assert_int_equal(t->ioctl(rig->data, AMDKFD_IOC_GET_VERSION, &version), -EBADF);
	assert_int_equal(t->open(rig->data), 0);
	assert_true(is_listed(rig->data, getpid()));
	assert_int_equal(t->ioctl(rig->data, AMDKFD_IOC_GET_VERSION, &version), 0);
	assert_int_equal(version.major_version, 1);
	assert_int_equal(t->ioctl(rig->data, _IOC(_IOC_READ, 'K', 0x30, 8), &version), -ENOTTY);
}

static void caller_may_watch_as_many_processes_as_there_are(void **state)
{
	enum { MANY = 100, ENDS = 2 };
	struct rig *rig = *state;
	int fds[MANY][ENDS];

	for (int i = 0; i < MANY; i++)
		assert_int_equal(t->events(rig->data, fds[i]), 0);
	for (int i = 0; i < MANY * ENDS; i++)
		close(fds[i / ENDS][i % ENDS]);
}

static void held_job_does_not_work_until_it_is_resumed(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, 0);
	struct kfd_ioctl_dbg_trap_args resume = {
		.pid = (uint32_t)j.pid,
		.op = KFD_IOC_DBG_TRAP_RESUME_QUEUES,
	};

	assert_true(rig_job_works(&j, SOON_MS));
	assert_int_equal(rig_suspend_all(rig->data, j.pid), 1);
	assert_false(rig_job_works(&j, 50));
	assert_int_equal(t->ioctl(rig->data, AMDKFD_IOC_DBG_TRAP, &resume), 1);
	assert_true(rig_job_works(&j, SOON_MS));
	assert_int_equal(t->trace->detach(rig->data, j.pid, 0), 0);
	rig_end_job(&j);
}

/* ---- a call that waits for the hardware ---- */

struct hold {
	struct rig *rig;
	pid_t pid;
	uint64_t began_ns, ended_ns;
	int result;
	atomic_bool done;
};

static void *hold_it(void *arg)
{
	struct hold *h = arg;

	h->began_ns = now_ns();
	h->result = rig_suspend_all(h->rig->data, h->pid);
	h->ended_ns = now_ns();
	atomic_store(&h->done, true);
	return NULL;
}

static unsigned int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The connection that the other call needed goes when it has not been used for a while. */
static void await_descriptors(void *data, unsigned int most)
{
	uint64_t until_ns = now_ns() + SOON_MS * NSEC_PER_MSEC;

	while (count_descriptors() > most && now_ns() < until_ns)
		is_listed(data, 1);
	assert_in_range(count_descriptors(), 1, most);
}

static void call_takes_its_time_and_others_go_on_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, 0);
	struct hold h = { .rig = rig, .pid = j.pid };
	unsigned int answered = 0, before = count_descriptors();
	pthread_t thread;

	assert_true(rig_job_works(&j, SOON_MS)); /* there is something to unmap */
	assert_int_equal(pthread_create(&thread, NULL, hold_it, &h), 0);
	while (!atomic_load(&h.done)) {
		is_listed(rig->data, 1);
		answered++;
	}
	pthread_join(thread, NULL);
	assert_int_equal(h.result, 1);
	assert_true(h.ended_ns - h.began_ns >= SLOW_NS);
	/* Whoever had to wait for the call would have been answered before it, and after. */
	assert_true(answered > 2);
	await_descriptors(rig->data, before + 2); /* rig_enable() keeps two */
	rig_end_job(&j);
}

/* ---- ends ---- */

static bool hold_and_die(const char *path, pid_t job)
{
	void *data;

	if (soft_new(path, &data) < 0 || rig_suspend_all(data, job) != 1)
		return false;
	raise(SIGKILL);
	return true;
}

static void killed_holders_jobs_run_again(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, 0);

	assert_false(rig_apart(0, hold_and_die, rig->path, j.pid));
	assert_true(rig_job_works(&j, SOON_MS));
	rig_end_job(&j);
}

static bool seize_and_go(const char *path, pid_t job)
{
	void *data;

	return soft_new(path, &data) >= 0 && rig_suspend_all(data, job) == 1;
}

static void tracer_is_shown_where_proc_shows_it(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, 0);
	char path[32], line[48], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%d/status", j.pid);
	snprintf(line, sizeof(line), "\nTracerPid:\t%d\n", getpid());
	assert_int_equal(t->read_file(rig->data, GKFD_TREE_PROC, path, &text, &len), 0);
	assert_null(strstr(text, line));
	free(text);
	assert_int_equal(t->trace->seize(rig->data, j.pid), 0);
	assert_int_equal(t->read_file(rig->data, GKFD_TREE_PROC, path, &text, &len), 0);
	assert_non_null(strstr(text, line));
	assert_int_equal(strlen(text), len);
	free(text);
	assert_false(rig_apart(0, seize_and_go, rig->path, j.pid));
	assert_int_equal(t->trace->detach(rig->data, j.pid, 0), 0);
	assert_true(rig_apart(0, seize_and_go, rig->path, j.pid));
	rig_end_job(&j);
}

/* A child has the parent's connections open, but is another process to the device. */
static void forked_child_is_a_client_of_its_own(void **state)
{
	struct rig *rig = *state;
	struct kfd_ioctl_get_version_args version = { 0 };
	pid_t pid;
	int status;

	assert_int_equal(t->open(rig->data), 0);
	pid = fork();
	if (pid == 0) {
		if (t->ioctl(rig->data, AMDKFD_IOC_GET_VERSION, &version) != -EBADF ||
		    t->open(rig->data) < 0 || !is_listed(rig->data, getpid()))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(t->ioctl(rig->data, AMDKFD_IOC_GET_VERSION, &version), 0);
}

static void gone_device_is_no_device(void **state)
{
	struct rig *rig = *state;
	char *names = NULL;
	void *data;

	kill(rig->gpu, SIGKILL);
	assert_int_equal(waitpid(rig->gpu, NULL, 0), rig->gpu);
	assert_int_equal(t->list_dir(rig->data, GKFD_TREE_SYSFS, "proc", &names), -ENODEV);
	assert_int_equal(t->list_dir(rig->data, GKFD_TREE_SYSFS, "proc", &names), -ENODEV);
	assert_int_equal(soft_new(rig->path, &data), -ECONNREFUSED);
}

/* ---- the extension ---- */

static bool is_held(void *data)
{
	struct kfd_gpreempt_queue queues[16];
	struct kfd_gpreempt_stats stats = {
		.pid = TRAIN,
		.n = ARRAY_SIZE(queues),
		.queues = (uintptr_t)queues,
	};

	assert_int_equal(t->ext(data, KFD_GPREEMPT_GET_STATS, &stats), 0);
	assert_true(stats.n >= 1);
	for (uint32_t i = 0; i < stats.n; i++)
		if (queues[i].flags & KFD_GPREEMPT_QUEUE_HELD)
			return true;
	return false;
}

static int preempt(void *data, uint32_t hold_ms)
{
	struct kfd_gpreempt_one one = {
		.pid = TRAIN,
		.gpu_id = KFD_GPREEMPT_ANY_GPU,
		.grace = KFD_GPREEMPT_DEFAULT_GRACE,
		.hold_ms = hold_ms,
	};

	return t->ext(data, KFD_GPREEMPT_PREEMPT_QUEUE, &one);
}

static void what_a_client_holds_comes_back_when_it_closes(void **state)
{
	struct rig *rig = *state;
	void *second;

	assert_int_equal(soft_new(rig->path, &second), 0);
	assert_int_equal(preempt(second, 0), 0);
	assert_true(is_held(rig->data));
	t->close(second);
	assert_false(is_held(rig->data));
}

static void a_hold_ends_in_real_time(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(preempt(rig->data, 20), 0);
	assert_true(is_held(rig->data));
	assert_int_equal(t->wait(rig->data, NULL, 0, 25 * NSEC_PER_MSEC), 0);
	assert_false(is_held(rig->data));
}

/* ---- processes ---- */

static void proc_is_the_machines_own(void **state)
{
	struct rig *rig = *state;
	char path[32], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%d/status", getppid());
	assert_int_equal(t->read_file(rig->data, GKFD_TREE_PROC, path, &text, &len), 0);
	assert_non_null(strstr(text, "VmRSS:"));
	free(text);
	/* But what is of the device is not there: its descriptors, and whose pids it knows. */
	snprintf(path, sizeof(path), "%d/fd", getppid());
	assert_int_equal(t->list_dir(rig->data, GKFD_TREE_PROC, path, &text), -ENOENT);
	assert_int_equal(t->read_file(rig->data, GKFD_TREE_PROC, "self/ns/pid", &text, &len),
			 -ENOENT);
}

static void proc_of_the_presets_processes_is_the_devices(void **state)
{
	struct rig *rig = *state;
	char *text = NULL;
	size_t len;
	int fd;

	assert_int_equal(t->read_file(rig->data, GKFD_TREE_PROC, "1001/comm", &text, &len), 0);
	assert_string_equal(text, "train\n");
	free(text);
	assert_int_equal(t->trace->pidfd(rig->data, TRAIN), -ENOSYS);
	fd = t->trace->pidfd(rig->data, getpid());
	assert_true(fd >= 0);
	close(fd);
}

/* Longer than a packet. */
static void long_files_come_whole(void **state)
{
	struct rig *rig = *state;
	char *text = NULL;
	size_t len;

	assert_int_equal(t->read_file(rig->data, GKFD_TREE_DEBUGFS, "mqds", &text, &len), 0);
	assert_true(len > 16384);
	assert_int_equal(strlen(text), len);
	free(text);
}

static void memory_is_read_span_by_span(void **state)
{
	struct rig *rig = *state;
	struct kfd_gpreempt_queue queue;
	struct kfd_gpreempt_stats stats = { .pid = TRAIN, .n = 1, .queues = (uintptr_t)&queue };
	uint64_t words[3];
	struct gkfd_span spans[3];

	assert_int_equal(t->ext(rig->data, KFD_GPREEMPT_GET_STATS, &stats), 0);
	for (int i = 0; i < 3; i++)
		spans[i] = (struct gkfd_span){ queue.read_ptr, &words[i], sizeof(words[i]), false };
	spans[1].addr = 8;
	assert_int_equal(t->read_mem(rig->data, TRAIN, NULL, spans, 3), 0);
	assert_true(spans[0].ok && !spans[1].ok && spans[2].ok);
	assert_int_equal(t->read_mem(rig->data, 4194301, NULL, spans, 3), -ESRCH);
}

static uint64_t write_pointer(void *data, pid_t pid)
{
	struct gkfd_mem mem = GKFD_MEM_NONE;
	uint64_t value;
	struct gkfd_span span = { DEVICE_PAGES_VA + RIG_WRITE_PTR, &value, sizeof(value), false };

	assert_int_equal(t->read_mem(data, pid, &mem, &span, 1), 0);
	assert_true(span.ok);
	if (mem.fd >= 0)
		close(mem.fd);
	return value;
}

/* As with a real driver: who looks asks nobody but the process. */
static void pointers_are_read_where_the_job_has_them(void **state)
{
	struct rig *rig = *state;
	struct job j = rig_job(rig, 0);

	assert_int_equal(write_pointer(rig->data, j.pid), 0);
	assert_true(rig_job_works(&j, SOON_MS));
	assert_int_equal(write_pointer(rig->data, j.pid), 1);
	kill(rig->gpu, SIGSTOP);
	assert_int_equal(write_pointer(rig->data, j.pid), 1);
	rig_job_scribbles(&j, 77);
	assert_int_equal(write_pointer(rig->data, j.pid), 77);
	kill(rig->gpu, SIGCONT);
	rig_end_job(&j);
}

/* It has not mapped them: the device knows. */
static void pointers_of_a_job_without_pages_are_the_devices(void **state)
{
	struct rig *rig = *state;
	struct device_welcome welcome;
	uint32_t queue;
	int fd;

	assert_int_equal(device_connect(rig->path, &fd, &welcome), 0);
	assert_int_equal(device_create_queue(fd, 0, 7, &queue), 0);
	assert_int_equal(munmap((void *)(uintptr_t)DEVICE_PAGES_VA, DEVICE_PAGES_BYTES), 0);
	assert_int_equal(write_pointer(rig->data, getpid()), 0);
	close(fd);
}

/* ---- who means no good ---- */

static void assert_hung_up_on(struct rig *rig, uint64_t scribbled)
{
	struct job j = rig_job(rig, 0), other = rig_job(rig, 0);
	struct pollfd end = { .fd = j.told, .events = POLLIN };
	char c;

	for (int i = 0; i < 3; i++)
		assert_true(rig_job_works(&j, SOON_MS));
	rig_job_scribbles(&j, scribbled);
	assert_int_equal(write(j.go, ".", 1), 1);
	assert_int_equal(poll(&end, 1, SOON_MS), 1);
	assert_int_equal(read(j.told, &c, 1), 0); /* it has ended over it */
	assert_true(rig_job_works(&other, SOON_MS));
	rig_end_job(&other);
	rig_end_job(&j);
}

static void a_job_that_writes_nonsense_over_its_pointers_is_hung_up_on(void **state)
{
	assert_hung_up_on(*state, 0); /* less than was done */
	assert_hung_up_on(*state, DEVICE_MAX_RESERVED + 4);
	assert_hung_up_on(*state, UINT64_MAX / 2);
}

static int raw_connect(const struct rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(addr.sun_path, rig->path, strlen(rig->path));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static struct device_call call_of(enum device_op op, size_t more)
{
	return (struct device_call){
		.h = device_header(DEVICE_CALL, sizeof(struct device_call) + more, 1),
		.op = op,
		.tid = gettid(),
		.pid = getpid(),
	};
}

static int raw_join(const struct rig *rig)
{
	struct device_call c = call_of(DEVICE_OP_JOIN, 0);
	struct device_return a;
	int fd = raw_connect(rig);

	assert_int_equal(send(fd, &c, sizeof(c), 0), sizeof(c));
	assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
	assert_true(a.result >= 0);
	return fd;
}

static bool is_hung_up_on(int fd, const void *packet, size_t len)
{
	char c[64];
	bool ended;

	assert_int_equal(send(fd, packet, len, MSG_NOSIGNAL), len);
	ended = recv(fd, c, sizeof(c), 0) <= 0;
	close(fd);
	return ended;
}

static void garbage_is_hung_up_on(void **state)
{
	struct rig *rig = *state;
	struct {
		struct device_call call;
		struct device_span spans[3];
		uint8_t bytes[64];
	} p;
	const size_t whole = sizeof(p), spans = offsetof(typeof(p), bytes), bare = sizeof(p.call);

#define CASE(op_, len_, ...) \
	do { \
		memset(&p, 0, sizeof(p)); \
		p.call = call_of(op_, (len_)-bare); \
		__VA_ARGS__; \
		assert_true(is_hung_up_on(raw_join(rig), &p, len_)); \
	} while (0)
	CASE(0, bare, );
	CASE(DEVICE_OP_END, bare, );
	CASE(DEVICE_OP_JOIN, bare, ); /* for a second time */
	CASE(DEVICE_OP_OPEN, bare, p.call.h.version++);
	CASE(DEVICE_OP_OPEN, bare, p.call.h.bytes--);
	CASE(DEVICE_OP_OPEN, bare, p.call.tid = 0);
	CASE(DEVICE_OP_OPEN, bare, p.call.tid = 1); /* somebody else's thread */
	CASE(DEVICE_OP_OPEN, bare, p.call.pid = -1);
	CASE(DEVICE_OP_OPEN, bare, p.call.n_spans = 1);
	CASE(DEVICE_OP_OPEN, whole, p.call.n_spans = 3; p.call.n_bytes = 64);
	CASE(DEVICE_OP_READ_MEM, bare, p.call.n_spans = UINT32_MAX);
	CASE(DEVICE_OP_READ_MEM, bare, );
	CASE(DEVICE_OP_READ_MEM, spans, p.call.n_spans = 3; p.spans[1].bytes = UINT32_MAX);
	CASE(DEVICE_OP_READ_MEM, spans, p.call.n_spans = 3; p.spans[1].pad = 1);
	CASE(DEVICE_OP_READ_MEM, spans, p.call.n_spans = 3; p.spans[0].addr = UINT64_MAX;
	     p.spans[0].bytes = 8);
	CASE(DEVICE_OP_IOCTL, spans, p.call.n_spans = 3; p.call.request = AMDKFD_IOC_GET_VERSION);
	CASE(DEVICE_OP_READ_FILE, bare, );
	CASE(DEVICE_OP_READ_FILE, bare + 8, p.call.n_bytes = 8; memset(&p.spans, 'a', 8));
	CASE(DEVICE_OP_READ_FILE, bare + 8, p.call.n_bytes = 8); /* NUL before its end */
#undef CASE
	p.call = call_of(DEVICE_OP_OPEN, 0);
	assert_true(is_hung_up_on(raw_connect(rig), &p, bare)); /* before it has joined */
	assert_false(is_listed(rig->data, getpid()));
}

/* The argument alone is sent, and points into the device's own memory, or past what was sent. */
static void memory_that_was_not_sent_is_not_there(void **state)
{
	struct rig *rig = *state;
	struct {
		struct device_call call;
		struct device_span span[2];
		struct kfd_gpreempt_stats stats;
		uint8_t room[sizeof(struct kfd_gpreempt_queue)];
	} p = {
		.call = call_of(DEVICE_OP_EXT, sizeof(p) - sizeof(p.call)),
		.span = { { 0x1000, sizeof(p.stats), 0 }, { 0x2000, sizeof(p.room), 0 } },
		.stats = { .pid = TRAIN, .n = 2 },
	};
	const uint64_t wrong[] = { (uintptr_t)&rig, 0x2008, 0x1000, UINT64_MAX - 64, 0x1fff };
	struct {
		struct device_return r;
		char rest[256];
	} a;
	int fd = raw_join(rig);

	p.call.request = KFD_GPREEMPT_GET_STATS;
	p.call.n_spans = 2;
	p.call.n_bytes = sizeof(p.stats) + sizeof(p.room);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		p.stats.queues = wrong[i];
		assert_int_equal(send(fd, &p, sizeof(p), 0), sizeof(p));
		assert_true(recv(fd, &a, sizeof(a), 0) > 0);
		assert_int_equal(a.r.result, -EFAULT);
	}
	close(fd);
}

/* Asks and asks, and reads no answer. */
static void client_that_does_not_listen_keeps_nobody(void **state)
{
	struct rig *rig = *state;
	struct {
		struct device_call call;
		char path[8];
	} p = { .call = call_of(DEVICE_OP_LIST_DIR, sizeof(p.path)), .path = "\0\0\0\0\0\0\0" };
	size_t len = sizeof(p.call) + 1;
	int fd = raw_join(rig);
	uint64_t began_ns;

	p.call.n_bytes = 1;
	p.call.h.bytes = (uint32_t)len;
	while (send(fd, &p, len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	began_ns = now_ns();
	assert_false(is_listed(rig->data, 1));
	assert_true(now_ns() - began_ns < NSEC_PER_SEC);
	close(fd);
}

/* It may send as many descriptors as it likes, to no effect but its own end. */
static void descriptors_are_not_taken(void **state)
{
	struct rig *rig = *state;
	struct device_call c = call_of(DEVICE_OP_OPEN, 0);
	struct iovec part = { &c, sizeof(c) };
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr m = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd = raw_join(rig), mine = STDERR_FILENO;
	char byte;

	memcpy(CMSG_DATA(&control.h), &mine, sizeof(mine));
	if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0)
		assert_int_equal(errno, EPERM); /* from Linux 6.16 on they are not even sent */
	else
		assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

static void a_process_has_so_many_connections_and_no_more(void **state)
{
	struct rig *rig = *state;
	int fds[DEVICE_MAX_PROCESS_CONNECTIONS];
	size_t n = 0;
	void *data;

	while (n < DEVICE_MAX_PROCESS_CONNECTIONS - 1)
		fds[n++] = raw_join(rig);
	assert_int_equal(soft_new(rig->path, &data), -EUSERS);
	while (n)
		close(fds[--n]);
	assert_int_equal(soft_new(rig->path, &data), 0);
	t->close(data);
}

/* ---- jobs that call the driver as well ---- */

/* The end of its earlier connection may be noticed after the next one comes. */
static int hello(const struct rig *rig, int *ret_fd)
{
	uint64_t until_ns = now_ns() + SOON_MS * NSEC_PER_MSEC;
	struct device_welcome welcome;
	int r;

	do
		r = device_connect(rig->path, ret_fd, &welcome);
	while (r == -EEXIST && now_ns() < until_ns);
	return r;
}

static void a_process_that_stays_may_say_hello_again(void **state)
{
	struct rig *rig = *state;
	uint32_t queue;
	int fd;

	assert_int_equal(t->open(rig->data), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hello(rig, &fd), 0);
		assert_int_equal(device_create_queue(fd, 0, 7, &queue), 0);
		close(fd);
	}
}

/* As the driver has it, enabling the runtime then waits for the debugger; nobody can here. */
static void hello_under_a_debugger_is_refused_and_spoils_nothing(void **state)
{
	struct rig *rig = *state;
	struct kfd_ioctl_get_version_args version = { 0 };
	int to[2], from[2], fd, status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork();
	if (pid == 0) {
		if (t->open(rig->data) < 0 || write(from[1], ".", 1) != 1 ||
		    read(to[0], &c, 1) != 1 || hello(rig, &fd) != -EDEADLK ||
		    t->ioctl(rig->data, AMDKFD_IOC_GET_VERSION, &version) != 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(from[0], &c, 1), 1);
	assert_int_equal(t->open(rig->data), 0);
	assert_int_equal(t->trace->seize(rig->data, pid), 0);
	assert_int_equal(rig_enable(rig->data, pid), -EPROTO); /* attached; no runtime yet */
	assert_int_equal(write(to[1], ".", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

static void a_process_asks_for_so_many_queues_in_its_life(void **state)
{
	struct rig *rig = *state;
	uint32_t queue;
	int fd;

	assert_int_equal(hello(rig, &fd), 0);
	for (uint32_t i = 0; i < DEVICE_MAX_PROCESS_REQUESTS; i++)
		assert_int_equal(device_create_queue(fd, 1, 7, &queue), -ENODEV);
	assert_int_equal(device_create_queue(fd, 0, 7, &queue), -ENOSPC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, rig_tear_down)
#define POPULATED(name) cmocka_unit_test_setup_teardown(name, set_up_populated, rig_tear_down)
		TEST(caller_is_a_process_once_it_has_opened_the_device),
		TEST(caller_may_watch_as_many_processes_as_there_are),
		TEST(pointers_are_read_where_the_job_has_them),
		TEST(pointers_of_a_job_without_pages_are_the_devices),
		TEST(a_job_that_writes_nonsense_over_its_pointers_is_hung_up_on),
		TEST(held_job_does_not_work_until_it_is_resumed),
		cmocka_unit_test_setup_teardown(call_takes_its_time_and_others_go_on_meanwhile,
						set_up_slow, rig_tear_down),
		TEST(killed_holders_jobs_run_again),
		TEST(tracer_is_shown_where_proc_shows_it),
		TEST(forked_child_is_a_client_of_its_own),
		TEST(gone_device_is_no_device),
		POPULATED(what_a_client_holds_comes_back_when_it_closes),
		POPULATED(a_hold_ends_in_real_time),
		TEST(proc_is_the_machines_own),
		POPULATED(proc_of_the_presets_processes_is_the_devices),
		POPULATED(long_files_come_whole),
		POPULATED(memory_is_read_span_by_span),
		TEST(garbage_is_hung_up_on),
		POPULATED(memory_that_was_not_sent_is_not_there),
		TEST(client_that_does_not_listen_keeps_nobody),
		TEST(descriptors_are_not_taken),
		TEST(a_process_has_so_many_connections_and_no_more),
		TEST(a_process_that_stays_may_say_hello_again),
		TEST(hello_under_a_debugger_is_refused_and_spoils_nothing),
		TEST(a_process_asks_for_so_many_queues_in_its_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
