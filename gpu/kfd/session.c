/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "gpu/kfd/procs.h"
#include "gpu/kfd/session.h"
#include "util/macros.h"

#define MAX_EVENTS_AT_ONCE 4096 /* then let the loop look at other things */
#define SNAPSHOT_ROOM 64

/*
 * What -errno of a debug call means once the session is open. -EPERM has two causes: the
 * runtime of the target has shut down (only queue operations need it), or the session is no
 * longer ours (then even an empty snapshot is refused).
 */
static int explain(struct gkfd_session *s, int error, const char *step, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -ESRCH, GKFD_WHY_EXITED },
		{ -EINVAL, GKFD_WHY_TAKEN, -EPERM }, /* debugging was disabled under us */
		{ 0 },
	};
	uint32_t none = 0;

	if (error != -EPERM)
		return gkfd_fail_by(fail, error, meanings, step);
	if (gkfd_dbg_queue_snapshot(s->k, s->pid, 0, NULL, &none) == -EPERM)
		return gkfd_fail(fail, error, GKFD_WHY_TAKEN, step);
	return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RUNTIME_BUSY, step);
}

/*
 * Never ENABLE what somebody else may debug: the driver would make us its debugger even while
 * it answers -EALREADY, and then neither death ends the session.
 */
static int probe(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -ESRCH, GKFD_WHY_NO_KFD_PROCESS },
		{ -EPERM, GKFD_WHY_NO_RIGHT },
		{ 0 },
	};
	uint32_t none = 0;
	int r = gkfd_dbg_queue_snapshot(k, pid, 0, NULL, &none);

	if (r >= 0)
		return gkfd_fail(fail, -EBUSY, GKFD_WHY_DEBUGGED, "probe");
	if (r == -EINVAL) /* no session: what we want */
		return 0;
	return gkfd_fail_by(fail, r, meanings, "probe");
}

static int enable_failed(struct gkfd_session *s, int error, struct gkfd_failure *fail)
{
	static const struct gkfd_meaning meanings[] = {
		{ -EALREADY, GKFD_WHY_DEBUGGED, -EBUSY },
		{ -ESRCH, GKFD_WHY_NO_KFD_PROCESS },
		{ -EPERM, GKFD_WHY_NO_RIGHT },
		{ -EINVAL, GKFD_WHY_NO_DEBUG, -EOPNOTSUPP }, /* sched_policy=2 */
		{ -ENODEV, GKFD_WHY_NO_DEBUG, -EOPNOTSUPP }, /* a GPU before gfx9 */
		{ 0 },
	};

	/*
	 * Somebody slipped in behind the probe, and the driver has made us the debugger.
	 * Disabling is the one way out that leaves no dangling session in the driver.
	 */
	if (error == -EALREADY) {
		gkfd_dbg_disable(s->k, s->pid);
		gkfd_stain();
	}
	return gkfd_fail_by(fail, error, meanings, "enable");
}

static int enable(struct gkfd_session *s, struct gkfd_failure *fail)
{
	struct kfd_runtime_info rinfo = { 0 };
	int r = gkfd_dbg_enable(s->k, s->pid, GKFD_SESSION_EVENTS, s->event_fd[1], &rinfo);

	if (r < 0)
		return enable_failed(s, r, fail);
	s->enabled = true;

	/*
	 * Sent ahead: a target that starts or ends its runtime while attached waits for this
	 * event, and must not hang when we are slow or gone.
	 */
	gkfd_dbg_send_runtime_event(s->k, s->pid, KFD_EC_MASK(EC_PROCESS_RUNTIME));

	switch (rinfo.runtime_state) {
	case DEBUG_RUNTIME_STATE_ENABLED:
		return 0;
	case DEBUG_RUNTIME_STATE_DISABLED:
		return gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_RUNTIME_TOO_OLD, "enable");
	default:
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RUNTIME_BUSY, "enable");
	}
}

int gkfd_session_begin(struct gkfd_session *s, struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	int r;

	*s = GKFD_SESSION_NONE;
	s->k = k;
	s->pid = pid;
	r = probe(k, pid, fail);
	if (r < 0)
		return r;
	/* A full blocking pipe would freeze the target inside the driver. */
	r = gkfd_event_fds(k, s->event_fd);
	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "pipe");
	r = enable(s, fail);
	if (r < 0)
		gkfd_session_end(s);
	return r;
}

void gkfd_session_forget_held(struct gkfd_session *s)
{
	s->holding = s->touched = s->holds_all = false;
	free(steal_ptr(&s->held));
	s->n_held = 0;
}

void gkfd_session_forget(struct gkfd_session *s)
{
	gkfd_session_forget_held(s);
	s->enabled = false;
	closep(&s->fd);
	s->fd = -1;
}

int gkfd_session_disable(struct gkfd_session *s)
{
	_cleanup_free_ char *tids = NULL;
	struct gkfd_proc_ident leader;
	char path[32];
	int r = gkfd_dbg_disable(s->k, s->pid);

	if (r != -ESRCH || gkfd_proc_identify(s->k, s->pid, &leader) < 0 || leader.state != 'Z')
		return r;
	snprintf(path, sizeof(path), "%d/task", (int)s->pid);
	if (gkfd_list_dir(s->k, GKFD_TREE_PROC, path, &tids) < 0)
		return r;
	for (const char *tid = tids; *tid && r == -ESRCH; tid += strlen(tid) + 1)
		r = gkfd_dbg_disable(s->k, (pid_t)strtol(tid, NULL, 10));
	return r;
}

void gkfd_session_end(struct gkfd_session *s)
{
	if (s->enabled && s->touched)
		gkfd_dbg_resume_queues(s->k, s->pid, NULL, 0);
	if (s->enabled)
		gkfd_session_disable(s);
	gkfd_session_forget(s);
	closep(&s->event_fd[0]);
	closep(&s->event_fd[1]);
	s->event_fd[0] = s->event_fd[1] = -1;
}

int gkfd_session_snapshot(struct gkfd_session *s, struct kfd_queue_snapshot_entry **ret,
			  uint32_t *ret_n, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	uint32_t room = SNAPSHOT_ROOM;

	for (;;) {
		uint32_t n = room;
		int r;

		free(entries);
		entries = calloc(room, sizeof(*entries));
		if (!entries)
			return gkfd_fail(fail, -ENOMEM, GKFD_WHY_SYSTEM, "snapshot");
		r = gkfd_dbg_queue_snapshot(s->k, s->pid, KFD_EC_MASK(EC_QUEUE_NEW), entries, &n);
		if (r < 0)
			return explain(s, r, "snapshot", fail);
		if (n <= room) {
			*ret = steal_ptr(&entries);
			*ret_n = n;
			return 0;
		}
		room = n + SNAPSHOT_ROOM; /* more may come before the next call */
	}
}

static int answer_event(struct gkfd_session *s, uint64_t pending)
{
	if (pending & KFD_EC_MASK(EC_PROCESS_RUNTIME))
		return gkfd_dbg_send_runtime_event(s->k, s->pid, KFD_EC_MASK(EC_PROCESS_RUNTIME));
	return 0;
}

bool gkfd_session_holds(const struct gkfd_session *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->n_held; i++)
		if (s->held[i] == id)
			return true;
	return false;
}

/* A process that is held wholly stays so: what it has created meanwhile is suspended too. */
static int hold_newcomers(struct gkfd_session *s, struct gkfd_failure *fail)
{
	_cleanup_free_ struct kfd_queue_snapshot_entry *entries = NULL;
	struct gpu_hold again = { .grace_kclk = s->grace_kclk };
	struct gkfd_moved moved;
	uint32_t n, new_queues = 0;
	int r = gkfd_session_snapshot(s, &entries, &n, fail);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		new_queues += !gkfd_session_holds(s, entries[i].queue_id);
	if (!new_queues)
		return 0;
	s->holding = false; /* those already suspended count as suspended again */
	s->n_held = 0;
	return gkfd_session_hold(s, &again, &moved, fail);
}

int gkfd_session_service(struct gkfd_session *s, struct gkfd_failure *fail)
{
	struct kfd_ioctl_dbg_trap_query_debug_event_args event;
	uint64_t seen = 0;
	char bytes[256];
	int r = 0;

	while (read(s->event_fd[0], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
		;
	for (int i = 0; i < MAX_EVENTS_AT_ONCE; i++) {
		r = gkfd_dbg_query_event(s->k, s->pid, GKFD_SESSION_EVENTS, &event);
		if (r < 0)
			break;
		seen |= event.exception_mask;
		answer_event(s, event.exception_mask);
	}
	if (r < 0 && r != -EAGAIN)
		return explain(s, r, "query event", fail);
	/* A target that shuts its runtime down gets all its queues back from the driver. */
	if (s->holding && (seen & KFD_EC_MASK(EC_PROCESS_RUNTIME)) &&
	    gkfd_dbg_suspend_queues(s->k, s->pid, NULL, 0, s->grace_kclk) == -EPERM)
		return gkfd_fail(fail, -EAGAIN, GKFD_WHY_RUNTIME_BUSY, "hold");
	/* Whatever was raised: a snapshot may have acknowledged a new queue already. */
	if (s->holding && s->holds_all)
		return hold_newcomers(s, fail);
	return 0;
}

int gkfd_session_recover(struct gkfd *k, pid_t pid, struct gkfd_failure *fail)
{
	_cleanup_close_ int rd = -1;
	_cleanup_close_ int wr = -1;
	struct kfd_runtime_info rinfo = { 0 };
	int fds[2], r;

	r = probe(k, pid, fail);
	if (r == 0)
		return 0;
	if (fail->why == GKFD_WHY_NO_KFD_PROCESS || fail->why == GKFD_WHY_SYSTEM)
		return r;

	r = gkfd_event_fds(k, fds);
	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "pipe");
	rd = fds[0];
	wr = fds[1];
	/* -EALREADY is what is wanted here: it makes us the debugger of the orphan. */
	r = gkfd_dbg_enable(k, pid, GKFD_SESSION_EVENTS, wr, &rinfo);
	if (r < 0 && r != -EALREADY)
		return gkfd_fail(fail, r, r == -EPERM ? GKFD_WHY_NO_RIGHT : GKFD_WHY_SYSTEM,
				 "take over");
	gkfd_dbg_send_runtime_event(k, pid, KFD_EC_MASK(EC_PROCESS_RUNTIME));
	gkfd_dbg_resume_queues(k, pid, NULL, 0);
	r = gkfd_dbg_disable(k, pid);
	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "disable");
	return 1;
}

const struct gkfd_session_ops gkfd_session_by_debug = {
	.begin = gkfd_session_begin,
	.end = gkfd_session_end,
	.snapshot = gkfd_session_snapshot,
	.hold = gkfd_session_hold,
	.resume = gkfd_session_resume,
};
