/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_DOCS_EXAMPLES_POLICY_H
#define GPREEMPT_DOCS_EXAMPLES_POLICY_H

#include "core/policy/gpol.h"

extern const struct gpol_ops gpol_neediest;

#endif
