/* SPDX-License-Identifier: MIT */
#include "tests/softgpu/rig.h"

#include <grp.h>

#include "cmd/gpreempt-softgpu/softgpu.h"

const struct gkfd_transport *const rig_transport = &gkfd_transport_soft;

/* ---- the device ---- */

static void serve(const struct rig *rig, const char *spec, int ready)
{
	struct softgpu *gpu = NULL;
	sd_event *loop = NULL;
	char *why = NULL;

	signal(SIGPIPE, SIG_IGN);
	if (sd_event_new(&loop) < 0 || softgpu_new(spec, loop, rig->path, &gpu, &why) < 0 ||
	    write(ready, ".", 1) != 1)
		_exit(1);
	sd_event_loop(loop);
	_exit(1);
}

static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void become(uid_t uid)
{
	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0))
		_exit(1);
}

int rig_set_up(void **state, const char *spec)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	int ready[2];
	char c;

	snprintf(rig->dir, sizeof(rig->dir), "%s/gpreempt-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
	assert_non_null(mkdtemp(rig->dir));
	assert_int_equal(chmod(rig->dir, 0755), 0);
	snprintf(rig->path, sizeof(rig->path), "%s/%s", rig->dir, DEVICE_SOCKET);
	assert_int_equal(pipe(ready), 0);
	rig->gpu = child();
	if (rig->gpu == 0)
		serve(rig, spec, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(soft_new(rig->path, &rig->data), 0);
	*state = rig;
	return 0;
}

int rig_tear_down(void **state)
{
	struct rig *rig = *state;

	if (rig->data)
		rig_transport->close(rig->data);
	kill(rig->gpu, SIGKILL);
	waitpid(rig->gpu, NULL, 0);
	unlink(rig->path);
	assert_int_equal(rmdir(rig->dir), 0);
	free(rig);
	return 0;
}

/* ---- jobs ---- */

static bool scribble(int go)
{
	uint64_t *page = (uint64_t *)(uintptr_t)DEVICE_PAGES_VA, value;

	if (read(go, &value, sizeof(value)) != sizeof(value))
		return false;
	page[RIG_WRITE_PTR / sizeof(*page)] = value;
	return true;
}

static bool work_once(int fd, uint32_t queue)
{
	struct device_submit kernel = { .queue = queue, .workgroups = 1, .wg_ns = 1000 };
	union device_any a;

	return device_submit(fd, 1, &kernel) >= 0 && device_receive(fd, &a) >= 0 &&
	       a.h.type == DEVICE_SUBMIT;
}

static void work(const char *path, int go, int told)
{
	struct device_welcome hello;
	uint32_t queue;
	int fd;
	char c;

	if (device_connect(path, &fd, &hello) < 0 || device_create_queue(fd, 0, 7, &queue) < 0 ||
	    write(told, ".", 1) != 1)
		_exit(1);
	while (read(go, &c, 1) == 1) {
		if (!(c == 's' ? scribble(go) : work_once(fd, queue)) || write(told, ".", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

struct job rig_job(const struct rig *rig, uid_t uid)
{
	struct job j;
	int go[2], told[2];
	char c;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(told), 0);
	j.pid = child();
	if (j.pid == 0) {
		close(go[1]);
		become(uid);
		work(rig->path, go[0], told[1]);
	}
	close(go[0]);
	close(told[1]);
	j.go = go[1];
	j.told = told[0];
	assert_int_equal(read(j.told, &c, 1), 1);
	return j;
}

void rig_job_scribbles(struct job *j, uint64_t value)
{
	char c;

	assert_int_equal(write(j->go, "s", 1), 1);
	assert_int_equal(write(j->go, &value, sizeof(value)), sizeof(value));
	assert_int_equal(read(j->told, &c, 1), 1);
}

void rig_end_job(struct job *j)
{
	kill(j->pid, SIGKILL);
	waitpid(j->pid, NULL, 0);
	close(j->go);
	close(j->told);
}

bool rig_job_works(struct job *j, int within_ms)
{
	struct pollfd p = { .fd = j->told, .events = POLLIN };
	char c;

	assert_int_equal(write(j->go, ".", 1), 1);
	if (poll(&p, 1, within_ms) != 1)
		return false;
	return read(j->told, &c, 1) == 1;
}

bool rig_apart(uid_t uid, bool (*run)(const char *path, pid_t job), const char *path, pid_t job)
{
	pid_t pid = child();
	int status;

	if (pid == 0) {
		become(uid);
		_exit(run(path, job) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- a debugger ---- */

static int trap(void *data, pid_t pid, uint32_t op, struct kfd_ioctl_dbg_trap_args *args)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return rig_transport->ioctl(data, AMDKFD_IOC_DBG_TRAP, args);
}

int rig_enable(void *data, pid_t pid)
{
	struct kfd_runtime_info info = { 0 };
	struct kfd_ioctl_dbg_trap_args args = {
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int fds[2], r = rig_transport->events(data, fds);

	if (r < 0)
		return r;
	args.enable.dbg_fd = (uint32_t)fds[1];
	r = trap(data, pid, KFD_IOC_DBG_TRAP_ENABLE, &args);
	if (r >= 0 && info.runtime_state != DEBUG_RUNTIME_STATE_ENABLED)
		return -EPROTO; /* what the device wrote must have come back */
	return r;
}

/* The driver suspends no queue its debugger has not seen. */
int rig_suspend_all(void *data, pid_t pid)
{
	struct kfd_queue_snapshot_entry entry = { 0 };
	struct kfd_ioctl_dbg_trap_args look = {
		.queue_snapshot = { .exception_mask = KFD_EC_MASK(EC_QUEUE_NEW),
				    .snapshot_buf_ptr = (uintptr_t)&entry,
				    .num_queues = 1,
				    .entry_size = sizeof(entry) },
	};
	struct kfd_ioctl_dbg_trap_args suspend = {
		.suspend_queues = { .queue_array_ptr = (uintptr_t)&entry.queue_id,
				    .num_queues = 1,
				    .grace_period = KFD_GRACE_KCLK_MIN },
	};
	int r = rig_transport->open(data);

	if (r >= 0)
		r = rig_transport->trace->seize(data, pid);
	if (r >= 0)
		r = rig_enable(data, pid);
	if (r >= 0)
		r = trap(data, pid, KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT, &look);
	if (r >= 0 && look.queue_snapshot.num_queues != 1)
		return -EPROTO;
	return r < 0 ? r : trap(data, pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES, &suspend);
}
