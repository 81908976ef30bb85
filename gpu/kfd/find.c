/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "gpu/kfd/find.h"

int gkfd_process_find(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
		      struct gkfd_failure *fail)
{
	int r = gkfd_proc_identify(k, pid, ret);

	if (r < 0)
		return gkfd_fail(fail, r, r == -ESRCH ? GKFD_WHY_NO_PROCESS : GKFD_WHY_SYSTEM,
				 "identify");
	if (ret->tgid != pid) {
		gkfd_fail(fail, -EINVAL, GKFD_WHY_NOT_A_LEADER, "identify");
		fail->other_pid = ret->tgid;
		return -EINVAL;
	}
	if (pid == getpid() && !k->transport->alone)
		return gkfd_fail(fail, -EINVAL, GKFD_WHY_OWN_PROCESS, "identify");
	return 0;
}

static int check_process(struct gkfd *k, pid_t pid, struct gkfd_proc_ident *ret,
			 struct gkfd_failure *fail)
{
	int r = gkfd_process_find(k, pid, ret, fail);

	if (r < 0)
		return r;
	if (ret->tracer_pid) {
		gkfd_fail(fail, -EBUSY, GKFD_WHY_TRACED, "identify");
		fail->other_pid = ret->tracer_pid;
		return -EBUSY;
	}
	return 0;
}

int gkfd_seize_failed(struct gkfd *k, pid_t pid, int error, struct gkfd_failure *fail)
{
	struct gkfd_proc_ident now;
	int r;

	if (error == -ESRCH)
		return gkfd_fail(fail, error, GKFD_WHY_NO_PROCESS, "seize");
	if (error != -EPERM && error != -EACCES)
		return gkfd_fail(fail, error, GKFD_WHY_SYSTEM, "seize");
	r = gkfd_proc_identify(k, pid, &now);
	if (r < 0)
		return gkfd_fail(fail, r, r == -ESRCH ? GKFD_WHY_NO_PROCESS : GKFD_WHY_SYSTEM,
				 "identify");
	if (now.state == 'Z' || now.state == 'X')
		return gkfd_fail(fail, -ESRCH, GKFD_WHY_EXITED, "seize");
	if (!now.tracer_pid)
		return gkfd_fail(fail, -EPERM, GKFD_WHY_NO_RIGHT, "seize");
	gkfd_fail(fail, -EBUSY, GKFD_WHY_TRACED, "seize");
	fail->other_pid = now.tracer_pid;
	return -EBUSY;
}

static int open_device(struct gkfd *k, enum gkfd_cap cap, struct gkfd_failure *fail)
{
	int r = gkfd_open_device(k);

	if (r < 0)
		return gkfd_fail(fail, r, GKFD_WHY_SYSTEM, "open device");
	if (!gkfd_has(k, cap))
		return gkfd_fail(fail, -EOPNOTSUPP, GKFD_WHY_KFD_TOO_OLD, "open device");
	return 0;
}

int gkfd_target_find(struct gkfd *k, pid_t pid, enum gkfd_cap cap, struct gkfd_proc_ident *ret,
		     struct gkfd_failure *fail)
{
	struct gkfd_proc_ident ident;
	int r = check_process(k, pid, &ident, fail);

	if (r < 0)
		return r;
	r = open_device(k, cap, fail);
	if (r < 0)
		return r;
	*ret = ident;
	return 0;
}
