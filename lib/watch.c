/* SPDX-License-Identifier: MIT */
/* Whether a daemon could be told at once of work, by hardware watchpoints. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpreempt/daemon.h"
#include "gpu/watchpoints/alerts.h"
#include "lib/internal.h"

struct capabilities {
	struct __user_cap_data_struct words[2];
};

static int capabilities_of(pid_t pid, struct capabilities *ret)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, pid };

	return syscall(SYS_capget, &h, ret->words) < 0 ? -errno : 0;
}

static bool is_admin(const struct capabilities *c)
{
	return c->words[0].effective >> CAP_SYS_ADMIN & 1;
}

/* Without that right, which decides about it and which root has here, for as long as it takes. */
static int try_without_admin(const struct capabilities *own)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct capabilities less = *own;
	int r;

	less.words[0].effective &= ~(1u << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &h, less.words) < 0)
		return -errno;
	r = points_try();
	return syscall(SYS_capset, &h, own->words) < 0 ? -errno : r;
}

EXPORT int gpreempt_check_watch(pid_t daemon, struct gpreempt_error *ret_error)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct capabilities own = { 0 }, its = { 0 };
	int r = capabilities_of(0, &own);

	if (daemon)
		capabilities_of(daemon, &its); /* else as its unit has it */
	if (r >= 0)
		r = is_admin(&own) && !is_admin(&its) ? try_without_admin(&own) : points_try();
	if (r >= 0)
		return 0;
	if (is_admin(&its) && !is_admin(&own))
		r = error_note(&e, -ENODATA, GPREEMPT_ERROR_REFUSED, "ask as root",
			       "gpreemptd has more rights to watchpoints than you");
	else
		r = error_note(&e, r, GPREEMPT_ERROR_REFUSED, "", "%s", alert_why(r));
	error_tell(&e, ret_error);
	return r;
}
