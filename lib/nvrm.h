/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver behind the library's calls: what the files of it share. */
#ifndef GPREEMPT_LIB_NVRM_H
#define GPREEMPT_LIB_NVRM_H

#include "gpu/nvrm/machine.h"
#include "gpu/nvrm/process.h"
#include "lib/internal.h"

struct nv_device {
	struct nvrm *n;
	struct nvrm_version version;
	struct nvrm_finder *finder; /* since processes were asked for first */
};

/* Makes @ctx one of the machine's own driver. -ENODEV: there is none. */
int ctx_open_nvrm_driver(struct gpreempt_ctx *ctx);
/* The same with any driver, as tests have. Owns @n, also on failure. */
int ctx_open_nvrm(struct gpreempt_ctx *ctx, struct nvrm *n);

/* Notes the failure and returns @r. @pid 0: of no process. */
int ctx_fail_nvrm(struct gpreempt_ctx *ctx, int r, pid_t pid, const struct nvrm_failure *f);
/* A driver whose interface is known; anything else is left alone. */
int nv_check_driver(struct gpreempt_ctx *ctx);
uint64_t nv_now_ns(struct gpreempt_ctx *ctx);

/* ---- nvrm_machine.c ---- */

int nv_device_info(struct gpreempt_ctx *ctx, struct gpreempt_device_info *info);
int nv_gpus(struct gpreempt_ctx *ctx, struct out_array *out);
int nv_levels(struct gpreempt_ctx *ctx, struct out_array *out);
int nv_self_test(struct gpreempt_ctx *ctx, uint32_t index, struct gpreempt_self_test *ret);

/* ---- nvrm_processes.c ---- */

/* The processes that have a GPU open, but not the caller; *ret is the caller's to free. */
int nv_list(struct gpreempt_ctx *ctx, pid_t **ret, size_t *ret_n);
int nv_processes(struct gpreempt_ctx *ctx, struct out_array *out);
int nv_queues(struct gpreempt_ctx *ctx, const struct gpreempt_queue_filter *filter, bool only_idle,
	      struct out_array *out);
bool nv_mps_runs(struct gpreempt_ctx *ctx);
struct gpreempt_queue nv_describe_group(const struct nvrm_process *process,
					  const struct nvrm_group *g);

int nv_snapshot(struct gpreempt_process *p, struct gpreempt_queue **ret, size_t *ret_n);

#endif
