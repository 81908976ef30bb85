/* SPDX-License-Identifier: MIT */
#include "tests/backend/ground.h"

extern const struct ground_ops ground_toy, ground_k1, ground_k2, ground_k3, ground_nvrm;

const struct ground_ops *const grounds[] = {
	&ground_toy, &ground_k1, &ground_k2, &ground_k3, &ground_nvrm, NULL,
};
