/* SPDX-License-Identifier: MIT */
/* Failures as a line for people, and what to do about them. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lib/internal.h"
#include "util/advice.h"

int error_note(struct gpreempt_error *e, int r, enum gpreempt_error_kind kind, const char *hint,
	       const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	e->error = r;
	va_start(ap, fmt);
	vsnprintf(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	snprintf(e->hint, sizeof(e->hint), "%s", hint ? hint : "");
	return r;
}

void error_tell(const struct gpreempt_error *e, struct gpreempt_error *ret)
{
	struct gpreempt_error nobodys;

	if (out_check(&nobodys, ret, UP_TO(struct gpreempt_error, hint)) >= 0)
		out_struct(ret, e);
}

int ctx_fail_errno(struct gpreempt_ctx *ctx, int r, const char *what)
{
	if (r == -EACCES || r == -EPERM)
		return ctx_fail(ctx, r, GPREEMPT_ERROR_REFUSED, "try sudo", "%s: %s", what,
				strerror(-r));
	if (r == -EBADMSG)
		return ctx_fail(
			ctx, r, GPREEMPT_ERROR_FAILED,
			"this driver prints something gpreempt does not know; please report it",
			"%s: the contents make no sense", what);
	return ctx_fail(ctx, r, GPREEMPT_ERROR_FAILED, advice_for(r, NULL), "%s: %s", what,
			strerror(-r));
}

void ctx_clear_error(struct gpreempt_ctx *ctx)
{
	ctx->last = (struct gpreempt_error){ .size = sizeof(ctx->last) };
}

EXPORT void gpreempt_get_error(const struct gpreempt_ctx *ctx, struct gpreempt_error *ret)
{
	error_tell(&ctx->last, ret);
}

int ctx_fail_why(struct gpreempt_ctx *ctx, int r, const struct gpu_why *why)
{
	_Static_assert((int)GPU_WHY_FAILED == GPREEMPT_ERROR_FAILED &&
			       (int)GPU_WHY_USAGE == GPREEMPT_ERROR_USAGE &&
			       (int)GPU_WHY_ABSENT == GPREEMPT_ERROR_ABSENT &&
			       (int)GPU_WHY_REFUSED == GPREEMPT_ERROR_REFUSED,
		       "kinds");

	return ctx_fail(ctx, r, (enum gpreempt_error_kind)why->kind, why->hint, "%s", why->message);
}

int ctx_fail_target(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct gkfd_failure *f)
{
	struct gpu_why why;

	gkfd_failure_describe(ctx->k, r, pid, f, &why);
	return ctx_fail_why(ctx, r, &why);
}
