/* SPDX-License-Identifier: MIT */
/* The way to a target before it is seized, and why it could not be. */
#include <errno.h>

#include "gpu/kfd/target.h"

static int fail_traced(pid_t tracer, const char *step, struct gkfd_failure *fail)
{
	gkfd_fail(fail, -EBUSY, GKFD_WHY_TRACED, step);
	fail->other_pid = tracer;
	return -EBUSY;
}

static int identify(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
		    struct gkfd_failure *fail)
{
	int r = gkfd_proc_identify(k, pid, ret);

	if (r < 0)
		gkfd_fail(fail, r, r == -ESRCH ? GKFD_WHY_NO_PROCESS : GKFD_WHY_SYSTEM, "identify");
	return r;
}

int gkfd_leader_find(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail)
{
	int r = identify(k, pid, ret, fail);

	if (r < 0 || ret->tgid == pid)
		return r;
	gkfd_fail(fail, -EINVAL, GKFD_WHY_NOT_A_LEADER, "identify");
	fail->other_pid = ret->tgid;
	return -EINVAL;
}

int gkfd_seize_failed(struct gkfd *k, pid_t pid, int error, struct gkfd_failure *fail)
{
	struct gkfd_proc_ident now;
	int r;

	if (error == -ESRCH)
		return gkfd_fail(fail, error, GKFD_WHY_NO_PROCESS, "seize");
	if (error != -EPERM && error != -EACCES)
		return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, "seize");
	r = identify(k, pid, &now, fail);
	if (r < 0)
		return r;
	if (now.state == 'Z' || now.state == 'X')
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_EXITED, "seize");
	if (!now.tracer_pid)
		return gkfd_fail(fail, -EPERM, GKFD_WHY_NO_RIGHT, "seize");
	return fail_traced(now.tracer_pid, "seize", fail);
}

int gkfd_target_find(struct gkfd *k, pid_t pid, enum gkfd_cap cap, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail)
{
	int r = gkfd_leader_find(k, pid, ret, fail);

	if (r < 0)
		return r;
	if (pid == getpid() && !k->transport->alone)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_OWN_PROCESS, "identify");
	if (ret->tracer_pid)
		return fail_traced(ret->tracer_pid, "identify", fail);
	r = gkfd_open_device(k);
	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "open device");
	if (!gkfd_has(k, cap))
		return gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_KFD_TOO_OLD, "open device");
	return 0;
}
