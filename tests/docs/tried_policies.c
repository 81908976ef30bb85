/* SPDX-License-Identifier: MIT */
/* In place of gpol_all: what tests/core/test_policy_random.c asks of every policy there is. */
#include "docs/examples/policy.h"

const struct gpol_ops *const tried_policies[] = { &gpol_neediest, NULL };
