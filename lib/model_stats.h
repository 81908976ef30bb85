/* SPDX-License-Identifier: MIT */
/* What only a model can tell. */
#ifndef GPREEMPT_LIB_MODEL_STATS_H
#define GPREEMPT_LIB_MODEL_STATS_H

#include "lib/internal.h"

uint64_t model_save_ns(struct gpreempt_ctx *ctx); /* of all GPUs so far; 0 on hardware */

#endif
