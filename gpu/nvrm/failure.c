/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "util/advice.h"
#include "util/macros.h"

struct status {
	int status, error;
	const char *name;
};

static const struct status statuses[] = {
	{ NVRM_GPU_IS_LOST, ENODEV, "GPU_IS_LOST" },
	{ NVRM_INSUFFICIENT_PERMISSIONS, EPERM, "INSUFFICIENT_PERMISSIONS" },
	{ NVRM_INVALID_ARGUMENT, EINVAL, "INVALID_ARGUMENT" },
	{ NVRM_INVALID_CLIENT, ENOENT, "INVALID_CLIENT" },
	{ NVRM_INVALID_OBJECT_HANDLE, ENOENT, "INVALID_OBJECT_HANDLE" },
	{ NVRM_INVALID_STATE, EBUSY, "INVALID_STATE" },
	{ NVRM_NOT_SUPPORTED, EOPNOTSUPP, "NOT_SUPPORTED" },
	{ NVRM_OBJECT_NOT_FOUND, ENOENT, "OBJECT_NOT_FOUND" },
	{ NVRM_TIMEOUT, ETIMEDOUT, "TIMEOUT" },
};

/* NULL: nobody knows it. */
static const struct status *look_up(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		if (statuses[i].status == status)
			return &statuses[i];
	}
	return NULL;
}

int nvrm_status_errno(int status)
{
	const struct status *s = look_up(status);

	if (status <= 0)
		return status;
	return s ? -s->error : -EIO;
}

int nvrm_fail(struct nvrm_failure *ret, int r, enum nvrm_why why, const char *step)
{
	if (ret)
		*ret = (struct nvrm_failure){ .why = why, .step = step };
	return r;
}

int nvrm_fail_status(struct nvrm_failure *ret, int status, const char *step, uint32_t gpu)
{
	enum nvrm_why why = NVRM_WHY_REFUSED;

	if (status < 0)
		why = NVRM_WHY_SYSTEM;
	else if (status == NVRM_GPU_IS_LOST)
		why = NVRM_WHY_GPU_LOST;
	else if (status == NVRM_TIMEOUT)
		why = NVRM_WHY_TIMEOUT;
	if (ret)
		*ret = (struct nvrm_failure){ .why = why,
					      .step = step,
					      .status = status > 0 ? status : 0,
					      .gpu = gpu };
	return nvrm_status_errno(status);
}

struct plain_failure {
	enum nvrm_why why;
	enum gpu_why_kind kind;
	const char *message; /* after "process N", where it is of one */
	const char *hint;
	bool of_machine;
};

static const struct plain_failure plain_failures[] = {
	{ NVRM_WHY_NO_RIGHT, GPU_WHY_REFUSED, "may not be traced by the caller",
	  "needs the same user, or CAP_SYS_PTRACE; try sudo" },
	{ NVRM_WHY_EXITED, GPU_WHY_ABSENT, "has ended", "nothing of it is held" },
	{ NVRM_WHY_NO_CONTEXT, GPU_WHY_ABSENT, "has no context on an NVIDIA GPU",
	  "it may be starting; see what uses the GPUs with: gpreempt list" },
	{ NVRM_WHY_NOT_FOUND, GPU_WHY_REFUSED,
	  "uses an NVIDIA GPU, but its channel groups are not where libcuda has them",
	  "only CUDA programs can be held" },
	{ NVRM_WHY_FREEZER, GPU_WHY_REFUSED,
	  "cannot be held from here: this program is in a freezer group of cgroup v1 that the "
	  "process is not in, and who is frozen there could not let go",
	  "run it outside of that group (of a container: on the host), or with cgroup v2" },
	{ NVRM_WHY_SHARED, GPU_WHY_REFUSED, "shares its context with other processes (MPS)",
	  "holding it would stop them too; run it without MPS" },
	{ NVRM_WHY_TOO_MANY, GPU_WHY_REFUSED,
	  "has more channels than could be freed again should we die",
	  "set CUDA_DEVICE_MAX_CONNECTIONS lower" },
	{ NVRM_WHY_GUARD_DIED, GPU_WHY_FAILED, "was let go because the guard process has died",
	  "nothing is held; start again" },
	{ NVRM_WHY_NO_DRIVER, GPU_WHY_ABSENT,
	  "no NVIDIA GPU driver on this machine (no /dev/nvidiactl)",
	  "load nvidia, or try without a GPU: --device model", true },
	{ NVRM_WHY_DRIVER_UNKNOWN, GPU_WHY_REFUSED,
	  "this version of NVIDIA's driver was never checked, or is not the open kernel module",
	  "GPREEMPT_NVRM_ANY_DRIVER=1 tries it all the same", true },
	{ NVRM_WHY_SELF_TEST, GPU_WHY_REFUSED,
	  "a context of our own could not be held and freed as it should",
	  "this driver is left alone; see gpreempt doctor", true },
};

static const struct plain_failure *find_plain(enum nvrm_why why)
{
	for (size_t i = 0; i < ARRAY_SIZE(plain_failures); i++) {
		if (plain_failures[i].why == why)
			return &plain_failures[i];
	}
	return NULL;
}

static void say_refused(pid_t pid, const struct nvrm_failure *f, struct gpu_why *ret)
{
	const char *step = f->step ? f->step : "the driver";
	const struct status *said = look_up(f->status);
	char name[64], gpu[32] = "";

	if (f->gpu)
		snprintf(gpu, sizeof(gpu), " on GPU %#x", f->gpu);
	if (said)
		snprintf(name, sizeof(name), "%s (0x%x)", said->name, (unsigned int)f->status);
	else
		snprintf(name, sizeof(name), "status 0x%x", (unsigned int)f->status);
	switch (f->why) {
	case NVRM_WHY_NO_GROUP:
		gpu_why_set(ret, GPU_WHY_ABSENT, "see what it has with: gpreempt queues PID",
			    "process %d has no channel group %u", (int)pid, f->group);
		break;
	case NVRM_WHY_TWICE:
		gpu_why_set(ret, GPU_WHY_USAGE, "name each once", "channel group %u is named twice",
			    f->group);
		break;
	case NVRM_WHY_GPU_LOST:
		gpu_why_set(ret, GPU_WHY_FAILED, "look at dmesg",
			    "process %d: %s: the GPU%s is lost", (int)pid, step, gpu);
		break;
	case NVRM_WHY_TIMEOUT:
		gpu_why_set(ret, GPU_WHY_FAILED, "the GPU is left alone; look at dmesg",
			    "process %d: %s: the GPU did not answer in time%s", (int)pid, step,
			    gpu);
		break;
	default:
		gpu_why_set(ret, GPU_WHY_FAILED, "see what works here with: gpreempt doctor",
			    "process %d: %s: the driver says %s%s", (int)pid, step, name, gpu);
	}
}

static enum gpu_why_kind errno_kind(int r)
{
	bool refused = r == -EPERM || r == -EACCES || r == -EOPNOTSUPP;

	if (r == -ENODEV)
		return GPU_WHY_ABSENT;
	return refused ? GPU_WHY_REFUSED : GPU_WHY_FAILED;
}

static void say_system(int r, pid_t pid, const struct nvrm_failure *f, struct gpu_why *ret)
{
	if (r == -ESRCH)
		gpu_why_set(ret, GPU_WHY_ABSENT, "see what uses the GPUs with: gpreempt list",
			    "there is no process %d", (int)pid);
	else
		gpu_why_set(ret, errno_kind(r),
			    advice_for(r, "see what works here with: gpreempt doctor"),
			    "process %d: %s: %s", (int)pid, f->step ? f->step : "the driver",
			    strerror(-r));
}

void nvrm_failure_describe(int r, pid_t pid, const struct nvrm_failure *f, struct gpu_why *ret)
{
	const struct plain_failure *p = find_plain(f->why);

	if (p && p->of_machine)
		gpu_why_set(ret, p->kind, p->hint, "%s", p->message);
	else if (p)
		gpu_why_set(ret, p->kind, p->hint, "process %d %s", (int)pid, p->message);
	else if (f->why == NVRM_WHY_NONE || f->why == NVRM_WHY_SYSTEM)
		say_system(r, pid, f, ret);
	else
		say_refused(pid, f, ret);
}
