/* SPDX-License-Identifier: MIT */
/* What only NVIDIA's driver is asked for. */
#include <errno.h>

#include "lib/internal.h"

EXPORT int gpreempt_self_test(struct gpreempt_ctx *ctx, uint32_t index,
			      struct gpreempt_self_test *ret)
{
	struct gpreempt_self_test test = { .size = sizeof(test) };
	int r;

	r = out_check(&ctx->last, ret, UP_TO(struct gpreempt_self_test, running_ns));
	if (r < 0)
		return r;
	r = ctx->vendor->self_test(ctx, index, &test);
	return r < 0 ? r : out_struct(ret, &test);
}
