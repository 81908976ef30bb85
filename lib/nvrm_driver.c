/* SPDX-License-Identifier: MIT */
/* The machine's own driver. Alone in its file: a program for tests has another one. */
#include <errno.h>

#include "lib/internal.h"

int ctx_open_nvrm_driver(struct gpreempt_ctx *ctx)
{
	void *data = nvrm_syscall_new(NULL);
	struct nvrm *n = NULL;
	int r = data ? nvrm_new(&nvrm_transport_syscall, data, &n) : -ENOMEM;

	return r < 0 ? r : ctx_open_nvrm(ctx, n);
}
