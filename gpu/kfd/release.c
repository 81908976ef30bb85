/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "gpu/helpers/proc_files.h"
#include "gpu/kfd/ext.h"
#include "gpu/kfd/procs.h"
#include "gpu/kfd/release.h"
#include "util/macros.h"

#define ASK_NS (1500 * NSEC_PER_MSEC) /* a holder that is well lets go at once */
#define LOOK_NS (20 * NSEC_PER_MSEC)
#define DIE_NS GUARD_DRIVER_CALL_NS /* one that waits inside the driver dies only afterwards */

static bool is_guard_of(struct gkfd *k, const char *pid, pid_t holder)
{
	_cleanup_free_ char *text = NULL;
	struct proc_stat stat;
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%.16s/stat", pid);
	return gkfd_read_file(k, GKFD_TREE_PROC, path, &text, &len) >= 0 &&
	       proc_stat_parse(text, len, &stat) >= 0 && stat.parent == holder &&
	       !strcmp(stat.comm, GUARD_MEMFD_NAME);
}

static bool has_guard(struct gkfd *k, pid_t holder)
{
	_cleanup_free_ char *names = NULL;

	if (gkfd_list_dir(k, GKFD_TREE_PROC, "", &names) < 0)
		return false;
	for (const char *name = names; *name; name += strlen(name) + 1)
		if (name[0] >= '1' && name[0] <= '9' && is_guard_of(k, name, holder))
			return true;
	return false;
}

/*
 * The guard is a child with a name of its own, which any user can see; a holder whose guard was
 * killed is still known by the name of our programs. Whoever forges these only offers his own
 * process.
 */
int gkfd_holder_of(struct gkfd *k, pid_t tid, pid_t *ret_holder)
{
	struct gkfd_proc_ident tracer;
	int r = gkfd_proc_identify(k, tid, &tracer);

	if (r < 0)
		return r;
	if (strncmp(tracer.comm, "gpreempt", 8) && !has_guard(k, tracer.tgid))
		return 0;
	*ret_holder = tracer.tgid;
	return 1;
}

/* A zombie that its parent has not buried yet holds nothing any more. */
static bool is_dead(struct gkfd *k, pid_t pid)
{
	struct gkfd_proc_ident ident;

	return gkfd_proc_identify(k, pid, &ident) < 0 || ident.state == 'Z' || ident.state == 'X';
}

static bool gone_within(struct gkfd *k, int pidfd, pid_t pid, uint64_t ns)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	uint64_t until = gkfd_now_ns(k) + ns;

	if (pidfd >= 0)
		return gkfd_wait(k, &end, 1, ns) > 0;
	while (!is_dead(k, pid) && gkfd_now_ns(k) < until)
		gkfd_wait(k, NULL, 0, LOOK_NS); /* a kernel without pidfds */
	return is_dead(k, pid);
}

/* Through the pidfd where there is one: the pid may have passed to somebody else. */
static int send_signal(int pidfd, pid_t pid, int sig)
{
	if (pidfd >= 0)
		return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
	return kill(pid, sig);
}

/* SIGKILL reaches a holder in any state; its death is what makes the driver resume. */
int gkfd_end_holder(struct gkfd *k, pid_t holder, struct gkfd_failure *fail)
{
	_cleanup_close_ int pidfd = k->transport->trace->pidfd(k->data, holder);

	if (send_signal(pidfd, holder, SIGTERM) < 0 && errno != ESRCH) {
		gkfd_fail(fail, -EPERM, GKFD_WHY_NO_RIGHT, "end holder");
		fail->other_pid = holder;
		return -EPERM;
	}
	/* A stopped one that is otherwise well may still answer. */
	send_signal(pidfd, holder, SIGCONT);
	if (gone_within(k, pidfd, holder, ASK_NS))
		return 0;
	send_signal(pidfd, holder, SIGKILL);
	if (gone_within(k, pidfd, holder, DIE_NS))
		return 0;
	gkfd_fail(fail, -ETIMEDOUT, GKFD_WHY_SYSTEM, "end holder");
	fail->other_pid = holder;
	return -ETIMEDOUT;
}

/* Whoever traces now will be gone in no time: a thread of the holder we ended, or its guard. */
static bool is_leaving(struct gkfd *k, pid_t tid, pid_t ended)
{
	struct gkfd_proc_ident tracer;
	pid_t holder;

	if (gkfd_proc_identify(k, tid, &tracer) < 0 || (ended && tracer.tgid == ended))
		return true;
	return gkfd_holder_of(k, tid, &holder) != 0;
}

int gkfd_recover(struct gkfd *k, pid_t pid, enum gkfd_way way, pid_t ended,
		 struct gkfd_failure *fail)
{
	uint64_t until = gkfd_now_ns(k) + ASK_NS;
	int r;

	while ((r = gkfd_target_recover(k, pid, way, fail)) == -EBUSY &&
	       fail->why == GKFD_WHY_TRACED) {
		if (!is_leaving(k, fail->other_pid, ended) || gkfd_now_ns(k) >= until)
			break;
		gkfd_wait(k, NULL, 0, LOOK_NS);
	}
	return r;
}

static int release_traced(struct gkfd *k, pid_t pid, struct gkfd_failure *ret_failure)
{
	struct gkfd_proc_ident ident;
	pid_t holder = 0;
	int r = gkfd_proc_identify(k, pid, &ident);

	if (r < 0)
		return gkfd_fail(ret_failure, r, GKFD_WHY_NO_PROCESS, "identify");
	if (ident.tracer_pid) {
		r = gkfd_holder_of(k, ident.tracer_pid, &holder);
		if (r == 0) {
			gkfd_fail(ret_failure, -EBUSY, GKFD_WHY_TRACED, "identify");
			ret_failure->other_pid = ident.tracer_pid;
			return -EBUSY;
		}
		if (r > 0 && holder == getpid())
			return gkfd_fail(ret_failure, -EALREADY, GKFD_WHY_ALREADY_HELD, "release");
		if (r > 0)
			r = gkfd_end_holder(k, holder, ret_failure);
		if (r < 0 && r != -ESRCH)
			return r;
	}
	r = gkfd_recover(k, pid, GKFD_BY_PAUSE, holder, ret_failure);
	if (holder && (r >= 0 || ret_failure->why == GKFD_WHY_NO_PROCESS ||
		       ret_failure->why == GKFD_WHY_NO_KFD_PROCESS))
		return 1;
	return r;
}

/* Whoever has it by the extension need not be whoever has it by tracing. */
int gkfd_release_pid(struct gkfd *k, pid_t pid, struct gkfd_failure *ret_failure)
{
	int held = gkfd_ext_release(k, pid, ret_failure), r;

	if (held < 0)
		return held;
	r = release_traced(k, pid, ret_failure);
	return r < 0 && !held ? r : held || r > 0;
}
