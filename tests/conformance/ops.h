/* SPDX-License-Identifier: MIT */
/* Every operation of DBG_TRAP in one row. */
#ifndef GPREEMPT_TESTS_CONFORMANCE_OPS_H
#define GPREEMPT_TESTS_CONFORMANCE_OPS_H

#include "tests/conformance/case.h"

enum ops_how {
	OPS_EMPTY, /* with nothing in their arguments */
	OPS_SENSIBLE, /* as a debugger would */
};

/*
 * All operations but ENABLE, one after the other by @by on @target, DISABLE last when @disable.
 * Says "WHAT: result (names), ...", or just the result where it is the same for all.
 */
void say_ops(struct who by, struct actor *target, enum ops_how how, bool disable, const char *what);
/* ENABLE with a descriptor that is none: what is checked before that shows. */
int enable_without_fd(struct who by, struct actor *target);

#endif
